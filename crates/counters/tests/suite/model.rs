//! Generated trees of files against a model of what they say.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use counters::{Depth, Error, Looker, Nodes, Process, System, Tasks, Watch};
use proptest::prelude::*;

/// A process as the model has it.
#[derive(Debug, Clone)]
struct Modelled {
    start: u64,
    minor: u64,
    major: u64,
    threads: BTreeMap<u32, ThreadModel>,
}

#[derive(Debug, Clone)]
struct ThreadModel {
    start: u64,
    cpu: u32,
    minor: u64,
    run: u64,
    wait: u64,
    slices: u64,
    migrations: u64,
}

const PID: u32 = 100;

fn stat(pid: u32, start: u64, minor: u64, major: u64, cpu: u32, threads: usize) -> String {
    format!(
        "{pid} (a (b) c) S 1 {pid} {pid} 0 -1 4194304 {minor} 0 {major} 0 7 5 0 0 20 0 {threads} 0 {start} \
         8192 3 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 {cpu} 0 0 0 0 0\n"
    )
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

impl Modelled {
    fn write(&self, root: &Path) {
        let folder = root.join(format!("proc/{PID}"));
        let text = stat(
            PID,
            self.start,
            self.minor,
            self.major,
            0,
            self.threads.len(),
        );
        write(&folder.join("stat"), &text);
        write(&folder.join("status"), &format!("Name:\ta\nTgid:\t{PID}\n"));
        let _ = fs::remove_dir_all(folder.join("task"));
        for (number, thread) in &self.threads {
            let folder = folder.join(format!("task/{number}"));
            let text = stat(*number, thread.start, thread.minor, 0, thread.cpu, 1);
            write(&folder.join("stat"), &text);
            let text = format!("{} {} {}\n", thread.run, thread.wait, thread.slices);
            write(&folder.join("schedstat"), &text);
            let text = format!(
                "a (1, #threads: 1)\n---\nse.nr_migrations   :   {}\n",
                thread.migrations
            );
            write(&folder.join("sched"), &text);
            write(&folder.join("children"), "");
        }
    }
}

fn nodes() -> Nodes {
    Nodes::new(&topology::Machine::parse("2x4").unwrap())
}

/// What happens between two looks.
#[derive(Debug, Clone)]
enum Step {
    Start(u32),
    End(u32),
    /// Ends, and another takes its number.
    Replace(u32),
    Run {
        thread: u32,
        cpu: u32,
        run: u64,
        faults: u64,
    },
    Fault {
        minor: u64,
        major: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (101u32..110).prop_map(Step::Start),
        (101u32..110).prop_map(Step::End),
        (101u32..110).prop_map(Step::Replace),
        (100u32..110, 0u32..10, 1u64..1 << 40, 0u64..1000).prop_map(
            |(thread, cpu, run, faults)| Step::Run {
                thread,
                cpu,
                run,
                faults
            }
        ),
        (0u64..1 << 40, 0u64..1 << 30).prop_map(|(minor, major)| Step::Fault { minor, major }),
    ]
}

fn fresh(clock: &mut u64) -> ThreadModel {
    *clock += 1;
    ThreadModel {
        start: *clock,
        cpu: 0,
        minor: 0,
        // No two threads have had and awaited a cpu for the same nanoseconds.
        run: *clock,
        wait: *clock,
        slices: 1,
        migrations: 0,
    }
}

impl Modelled {
    fn take(&mut self, step: &Step, clock: &mut u64) {
        match *step {
            Step::Start(number) => {
                self.threads.entry(number).or_insert_with(|| fresh(clock));
            }
            Step::End(number) => {
                self.threads.remove(&number);
            }
            Step::Replace(number) => {
                if let Some(thread) = self.threads.get_mut(&number) {
                    *thread = fresh(clock);
                }
            }
            Step::Run {
                thread,
                cpu,
                run,
                faults,
            } => {
                if let Some(thread) = self.threads.get_mut(&thread) {
                    thread.migrations += u64::from(thread.cpu != cpu);
                    thread.cpu = cpu;
                    thread.run += run;
                    thread.slices += 1;
                    thread.minor += faults;
                    self.minor += faults;
                }
            }
            Step::Fault { minor, major } => {
                self.minor += minor;
                self.major += major;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever threads do, what is told of them is what their files say.
    #[test]
    fn tasks_are_as_the_files_say(looks in proptest::collection::vec(proptest::collection::vec(step(), 0..6), 1..8)) {
        let folder = tempfile::tempdir().unwrap();
        let system = System::at(folder.path());
        let mut clock = 1000;
        let mut model = Modelled {
            start: 5,
            minor: 50,
            major: 3,
            threads: BTreeMap::from([(PID, fresh(&mut clock)), (101, fresh(&mut clock))]),
        };
        model.write(folder.path());
        let first = model.clone();
        let process = Process::open(&system, PID).unwrap();
        let mut tasks = Tasks::attach(&system, &nodes(), process).unwrap();
        let mut before = model.clone();
        for steps in looks {
            for step in &steps {
                model.take(step, &mut clock);
            }
            model.write(folder.path());
            let activity = tasks.look().unwrap();
            prop_assert_eq!(activity.minor_faults, model.minor - first.minor);
            prop_assert_eq!(activity.major_faults, model.major - first.major);
            let numbers: Vec<u32> = activity.threads.iter().map(|thread| thread.thread).collect();
            prop_assert_eq!(&numbers, &model.threads.keys().copied().collect::<Vec<_>>());
            for seen in &activity.threads {
                let now = &model.threads[&seen.thread];
                let base = first.threads.get(&seen.thread).filter(|base| base.start == now.start);
                prop_assert_eq!(seen.cpu, Some(now.cpu));
                prop_assert_eq!(seen.node, (now.cpu < 8).then_some(now.cpu / 4));
                prop_assert_eq!(seen.migrations, Some(now.migrations - base.map_or(0, |base| base.migrations)));
                prop_assert_eq!(seen.minor_faults, now.minor - base.map_or(0, |base| base.minor));
                let run = now.run - base.map_or(0, |base| base.run);
                prop_assert!((seen.seconds - run as f64 / 1e9).abs() < 1e-6);
            }
            let same = |of: &Modelled, number: &u32, start| of.threads.get(number).is_some_and(|t: &ThreadModel| t.start == start);
            let started: Vec<u32> = model.threads.iter().filter(|(n, t)| !same(&before, n, t.start)).map(|(n, _)| *n).collect();
            let ended: BTreeSet<u32> = before.threads.iter().filter(|(n, t)| !same(&model, n, t.start)).map(|(n, _)| *n).collect();
            prop_assert_eq!(&activity.started, &started);
            prop_assert_eq!(activity.ended.into_iter().collect::<BTreeSet<_>>(), ended);
            before = model.clone();
        }
    }

    /// What lies where adds up to what the files say, whatever is mapped.
    #[test]
    fn residency_is_as_the_files_say(
        maps in proptest::collection::vec(
            (1u64..64, 0usize..7, proptest::collection::btree_map(0u32..4, 0u64..9999, 0..3), any::<bool>()),
            1..30,
        ),
    ) {
        const NAMES: [&str; 7] = ["", "[heap]", "[stack]", "/usr/lib/a b.so", "[anon:pool]", "/memfd:x (deleted)", "[vdso]"];
        let folder = tempfile::tempdir().unwrap();
        let system = System::at(folder.path());
        let process = folder.path().join(format!("proc/{PID}"));
        let thread = fresh(&mut 1);
        let model = Modelled { start: 5, minor: 0, major: 0, threads: BTreeMap::from([(PID, thread)]) };
        model.write(folder.path());
        let (mut lines, mut numa) = (String::new(), String::new());
        let mut start = 0x1000_0000u64;
        let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
        let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
        for (pages, name, on, huge) in &maps {
            let name = NAMES[*name];
            let kib = if *huge { 2048 } else { 4 };
            let end = start + pages * 4096;
            lines += &format!("{start:x}-{end:x} rw-p 00000000 00:00 0    {name}\n");
            numa += &format!("{start:x} default");
            for (node, pages) in on {
                numa += &format!(" N{node}={pages}");
                *sums.entry(*node).or_default() += pages * kib * 1024;
                *kinds.entry(name).or_default() += pages * kib * 1024;
            }
            numa += &format!(" kernelpagesize_kB={kib}\n");
            start = end + 4096;
        }
        write(&process.join("maps"), &lines);
        write(&process.join("numa_maps"), &numa);
        let process = Process::open(&system, PID).unwrap();
        let looker = Looker::new(&system, &nodes()).depth(Depth::Walk);
        let residency = looker.look(&process).unwrap();
        for (node, bytes) in residency.nodes.iter().zip(residency.bytes()) {
            prop_assert_eq!(bytes, sums.get(node).copied().unwrap_or(0));
        }
        prop_assert_eq!(residency.total(), sums.values().sum::<u64>());
        prop_assert!(residency.nodes.starts_with(&[0, 1]));
        let groups = residency.groups(|_| None);
        let named = |kind: &str| groups.iter().filter(|g| g.kind == kind).map(|g| g.total()).sum::<u64>();
        for (name, kind) in NAMES.iter().zip(["anonymous", "heap", "stack", "file", "anonymous", "shared", "kernel"]) {
            if kind != "anonymous" {
                prop_assert_eq!(named(kind), kinds.get(name).copied().unwrap_or(0), "{}", kind);
            }
        }
        prop_assert_eq!(residency.huge(), None::<u64>.or(if residency.regions.is_empty() { Some(0) } else { None }));
    }

    /// Files that are cut off anywhere, or hold anything, are answered.
    #[test]
    fn damaged_files_are_errors_and_no_panics(
        file in prop_oneof![Just("stat"), Just("maps"), Just("numa_maps"), Just("task/100/stat"), Just("task/100/schedstat"), Just("task/100/sched")],
        bytes in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let system = System::at(folder.path());
        let model = Modelled { start: 5, minor: 0, major: 0, threads: BTreeMap::from([(PID, fresh(&mut 1))]) };
        model.write(folder.path());
        let process: PathBuf = folder.path().join(format!("proc/{PID}"));
        write(&process.join("maps"), "1000-2000 rw-p 0 00:00 0 \n");
        write(&process.join("numa_maps"), "1000 default N0=1\n");
        let opened = Process::open(&system, PID).unwrap();
        let mut tasks = Tasks::attach(&system, &nodes(), Process::open(&system, PID).unwrap()).unwrap();
        fs::write(process.join(file), &bytes).unwrap();
        let _ = Looker::new(&system, &nodes()).stacks().huge().look(&opened);
        let _ = tasks.look();
        let _ = Watch::new(&system, &nodes(), PID, true).map(|mut watch| watch.look().map(|_| ()));
    }
}

/// Another process takes the number: on the kernel's files the folder tells, elsewhere the start.
#[test]
fn a_number_in_use_again_is_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let system = System::at(folder.path());
    let mut model = Modelled {
        start: 5,
        minor: 0,
        major: 0,
        threads: BTreeMap::from([(PID, fresh(&mut 1))]),
    };
    model.write(folder.path());
    let mut watch = Watch::new(&system, &nodes(), PID, false).unwrap();
    watch.look().unwrap();
    model.start = 6;
    model.write(folder.path());
    let error = watch.look().unwrap_err();
    assert!(matches!(error, Error::Ended { pid: PID }), "{error}");
    assert!(
        Process::open(&system, PID).is_ok(),
        "the new one can be looked at"
    );
}

/// A kernel without nodes, as on small boards: `smaps` tells how much, and it is on node 0.
#[test]
fn without_nodes_all_memory_is_on_node_0() {
    let folder = tempfile::tempdir().unwrap();
    let system = System::at(folder.path());
    let model = Modelled {
        start: 5,
        minor: 0,
        major: 0,
        threads: BTreeMap::from([(PID, fresh(&mut 1))]),
    };
    model.write(folder.path());
    let process = folder.path().join(format!("proc/{PID}"));
    write(
        &process.join("maps"),
        "1000-9000 rw-p 00000000 00:00 0      [heap]\n",
    );
    write(
        &process.join("smaps"),
        "1000-9000 rw-p 00000000 00:00 0      [heap]\nSize:  32 kB\nRss:  12 kB\nAnonHugePages:  0 kB\n",
    );
    let process = Process::open(&system, PID).unwrap();
    let residency = Looker::new(&system, &nodes()).look(&process).unwrap();
    assert_eq!(residency.bytes(), [12 << 10, 0]);
    assert_eq!(residency.notes.len(), 1, "{:?}", residency.notes);
}
