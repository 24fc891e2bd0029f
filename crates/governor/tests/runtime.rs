//! Governing the workers of the own process: threads that are looked at, a clock that runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use governor::runtime::{Crew, Options, Runtime};
use governor::{Action, BUSY, Governor, RESIDENCY, Readings, THROUGHPUT};
use placement::CpuSet;
use topology::Machine;

/// After so long it counts as stuck.
const HANG: Duration = Duration::from_secs(60);

/// Threads that work when they are told to, and say that they read from one node.
struct Team {
    threads: Vec<u32>,
    busy: Arc<AtomicBool>,
    node: AtomicU64,
    bytes: Mutex<Vec<(u32, u64)>>,
    placed: Mutex<Vec<CpuSet>>,
    /// Bytes that so many of them read in a microsecond; none: each look finds some.
    rate: Option<fn(usize) -> u64>,
    since: Mutex<Instant>,
}

impl Team {
    fn start(threads: usize) -> Arc<Team> {
        Team::with(threads, None)
    }

    fn with(threads: usize, rate: Option<fn(usize) -> u64>) -> Arc<Team> {
        let busy = Arc::new(AtomicBool::new(false));
        let (send, receive) = std::sync::mpsc::channel();
        for _ in 0..threads {
            let (busy, send) = (Arc::downgrade(&busy), send.clone());
            // They end when nobody knows `busy` any more.
            std::thread::spawn(move || {
                // SAFETY: the call has no preconditions.
                let id = unsafe { libc::gettid() }.cast_unsigned();
                send.send(id).unwrap();
                while let Some(busy) = busy.upgrade() {
                    if busy.load(Ordering::Relaxed) {
                        (0..10_000).for_each(|_| std::hint::spin_loop())
                    } else {
                        std::thread::sleep(Duration::from_millis(1))
                    }
                }
            });
        }
        Arc::new(Team {
            threads: receive.iter().take(threads).collect(),
            busy,
            node: AtomicU64::new(2),
            bytes: Mutex::new((0..4).map(|node| (node, 0)).collect()),
            placed: Mutex::default(),
            rate,
            since: Mutex::new(Instant::now()),
        })
    }

    fn until(&self, what: &str, done: impl Fn(&CpuSet) -> bool) -> CpuSet {
        let begun = Instant::now();
        loop {
            let last = self.placed.lock().unwrap().last().cloned();
            if let Some(last) = last.filter(&done) {
                return last;
            }
            let placed = self.placed.lock().unwrap().clone();
            assert!(begun.elapsed() < HANG, "{what}: {placed:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Crew for Team {
    fn threads(&self) -> Vec<u32> {
        self.threads.clone()
    }

    fn bytes(&self) -> Vec<(u32, u64)> {
        let last = self.placed.lock().unwrap().last().cloned();
        let cores = last.map_or(self.threads.len(), |last| last.len());
        let mut bytes = self.bytes.lock().unwrap();
        if let Some(rate) = self.rate {
            let elapsed =
                std::mem::replace(&mut *self.since.lock().unwrap(), Instant::now()).elapsed();
            bytes[0].1 += elapsed.as_micros() as u64 * rate(cores);
            return bytes.clone();
        }
        bytes[self.node.load(Ordering::Relaxed) as usize].1 += 1000;
        bytes.clone()
    }

    fn place(&self, cpus: &CpuSet) -> Result<(), String> {
        self.placed.lock().unwrap().push(cpus.clone());
        Ok(())
    }
}

fn cpus(list: &str) -> CpuSet {
    list.parse().unwrap()
}

#[test]
fn workers_lose_what_a_statement_does_not_use_and_get_it_back() {
    let team = Team::start(4);
    let machine = Machine::parse("4x1").unwrap();
    let mut options = Options::new(machine.clone(), cpus("0-3"));
    options.period = Duration::from_millis(10);
    let runtime = Runtime::start(team.clone(), Some(options.clone())).unwrap();
    let began = Instant::now();
    let statement = runtime.begin();
    // Nothing is computed: one core is left, where what is read is.
    team.until("idle", |placed| *placed == cpus("2"));
    team.busy.store(true, Ordering::Relaxed);
    team.until("busy", |placed| placed.len() == 4);
    let lines = runtime.since(began);
    assert!(lines[0].contains("it began with 4 cores"), "{lines:?}");
    let all = lines.join("\n");
    assert!(
        all.contains("release cpu") && all.contains("allocate cpu"),
        "{all}"
    );
    assert!(
        all.contains("waits of 4 workers") || all.contains("clocks of 4 workers"),
        "{all}"
    );
    team.busy.store(false, Ordering::Relaxed);
    team.node.store(1, Ordering::Relaxed);
    team.until("idle again, on another node", |placed| *placed == cpus("1"));
    replayed(&runtime, &options);
    drop(statement);
    team.until("no statement", |placed| placed.len() == 4);
    // It places the workers first and forgets its decisions then.
    team.until("decisions are forgotten", |_| {
        runtime.decisions().is_empty()
    });
}

/// The same readings, the same decisions: what is decided live is the policy's own.
fn replayed(runtime: &Runtime, options: &Options) {
    let decisions = runtime.decisions();
    let net = governor::elastic_net().unwrap();
    let mut again = Governor::new(options.policy.clone(), &options.machine, &net).unwrap();
    again.holds(&options.cpus);
    assert!(decisions.iter().any(|one| one.action == Action::Release));
    for decision in &decisions {
        let mut readings = Readings::new(decision.time, options.cpus.clone());
        readings.values = decision.readings.clone();
        let same = again.step(&readings).unwrap();
        assert_eq!((&same.cpus, &same.why), (&decision.cpus, &decision.why));
        let rate = &decision.readings[THROUGHPUT];
        assert_eq!(rate.source, "Atoll's own counter");
        assert!(rate.value.is_some_and(|rate| rate > 0.0));
        assert!(decision.readings[BUSY].source.contains("4 workers"));
        assert!(decision.readings.contains_key(&format!("{RESIDENCY}2")));
    }
}

/// All workers are busy, and with two of four most is read: what load alone cannot see.
#[test]
fn workers_that_do_not_pay_are_left_out() {
    let team = Team::with(4, Some(|cores| [0, 100, 200, 120, 60][cores]));
    team.busy.store(true, Ordering::Relaxed);
    let machine = Machine::parse("1x4").unwrap();
    let mut options = Options::new(machine, cpus("0-3")).by_throughput();
    options.period = Duration::from_millis(20);
    let runtime = Runtime::start(team.clone(), Some(options)).unwrap();
    let statement = runtime.begin();
    let begun = Instant::now();
    let last = loop {
        let last = runtime.decisions().pop();
        let found = |one: &governor::Decision| one.why.contains("throughput is best with 2 cores");
        if let Some(last) = last.filter(found) {
            break last;
        }
        assert!(begun.elapsed() < HANG, "{:?}", runtime.since(begun));
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(last.cpus.len(), 2, "{last}");
    assert_eq!(last.lonc.unwrap().holds, Some(true));
    drop(statement);
    team.until("no statement", |placed| placed.len() == 4);
}

#[test]
fn without_statements_nothing_is_done() {
    let team = Team::start(2);
    let machine = Machine::parse("2x1").unwrap();
    let options = Options::new(machine, cpus("0-1"));
    let runtime = Runtime::start(team.clone(), Some(options)).unwrap();
    team.busy.store(true, Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(200));
    assert!(runtime.decisions().is_empty());
    let before = team.bytes.lock().unwrap().clone();
    assert!(before.iter().all(|(_, bytes)| *bytes == 0), "{before:?}");
    drop(runtime);
    assert!(team.placed.lock().unwrap().is_empty());
    let mut wrong = Options::new(Machine::parse("2x1").unwrap(), cpus("0-1"));
    wrong.policy.min_cores = 0;
    assert!(Runtime::start(team, Some(wrong)).is_err());
}
