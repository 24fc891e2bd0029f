//! Processes to look at: this test program again, told by its environment what to do.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use counters::{Nodes, System};

const ROLE: &str = "COUNTERS_TEST_ROLE";

/// A process that does what it is told, and ends when this does.
pub struct Subject {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Subject {
    /// Starts one and waits until it says that it is ready.
    pub fn start(role: &str) -> Subject {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "child::role",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut subject = Subject {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        };
        subject.wait_for("ready");
        subject
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it go on, and waits until it says that it has.
    pub fn go_on(&mut self) {
        let input = self.input.as_mut().unwrap();
        input.write_all(b"go\n").unwrap();
        input.flush().unwrap();
        self.wait_for("done");
    }

    /// Lets it go on without waiting.
    pub fn let_go(&mut self) {
        self.input.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    /// What it says after `word`.
    pub fn wait_for(&mut self, word: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            let bytes = self.output.read_line(&mut line).unwrap();
            assert!(bytes > 0, "it ended before it said {word}");
            // The harness writes before us, on the same line.
            if let Some((_, rest)) = line.split_once(&format!("#{word}")) {
                return rest.trim().to_owned();
            }
        }
    }

    /// Ends it, and collects it.
    pub fn end(mut self) {
        self.kill();
        self.child.wait().unwrap();
    }

    /// Ends it, without collecting it.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Those of this machine.
pub fn nodes() -> Nodes {
    Nodes::new(&topology::Machine::live().unwrap())
}

/// This machine.
pub fn real() -> System {
    System::real()
}

fn say(word: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "#{word}").unwrap();
    out.flush().unwrap();
}

/// Waits for a line; ends the process when whoever started it has gone.
fn listen() {
    let mut line = String::new();
    if std::io::stdin().read_line(&mut line).unwrap() == 0 {
        std::process::exit(0);
    }
}

/// Not a test but the main function of subjects.
///
/// # Panics
///
/// Without a role.
#[test]
#[ignore = "run by the other tests, as a program of its own"]
fn role() {
    let role = std::env::var(ROLE).expect("a subject has a role");
    match role.as_str() {
        "idle" => {
            say("ready");
            loop {
                listen();
                say("done");
            }
        }
        "memory" => memory(),
        "stacks" => stacks(false),
        "running stacks" => stacks(true),
        "faults" => faults(),
        "moves" => moves(),
        "busy" => busy(),
        "many threads" => many_threads(),
        "threads come and go" => threads_come_and_go(),
        "forks" => forks(),
        "exits" => {
            say("ready");
            listen();
        }
        other => panic!("no role '{other}'"),
    }
    std::process::exit(0);
}

/// Bytes of each arena of the role "memory".
pub const ARENA: usize = 16 << 20;

/// One arena on each node, all of it written.
fn memory() {
    let nodes = nodes();
    let arena = |&node: &u32| {
        let arena = memory::Arena::new(ARENA, Some(node)).unwrap();
        // SAFETY: the whole arena is ours alone.
        unsafe { std::ptr::write_bytes(arena.as_ptr(), 1, ARENA) };
        arena
    };
    let arenas: Vec<memory::Arena> = nodes.numbers().iter().map(arena).collect();
    say("ready");
    listen();
    drop(arenas);
}

/// Bytes that threads of the role "stacks" write on their stacks.
pub const STACK: usize = 1 << 20;

fn stacks(running: bool) {
    static STOP: AtomicBool = AtomicBool::new(false);
    let barrier = std::sync::Arc::new(std::sync::Barrier::new(4));
    for at in 0..3 {
        let barrier = barrier.clone();
        let body = move || {
            let mut room = [0u8; STACK];
            for byte in room.iter_mut().step_by(512) {
                *byte = std::hint::black_box(1);
            }
            barrier.wait();
            while !STOP.load(Ordering::Relaxed) {
                if !running {
                    std::thread::park_timeout(Duration::from_millis(200));
                }
            }
            std::hint::black_box(&room);
        };
        std::thread::Builder::new()
            .name(format!("worker-{at}"))
            .stack_size(4 << 20)
            .spawn(body)
            .unwrap();
    }
    barrier.wait();
    say("ready");
    listen();
    STOP.store(true, Ordering::Relaxed);
}

/// Pages that the role "faults" touches for the first time.
pub const PAGES: usize = 5000;

fn faults() {
    let bytes = PAGES * 4096;
    // SAFETY: a new mapping of our own, without huge pages, so that each page faults.
    let start = unsafe {
        let start = libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        assert_ne!(start, libc::MAP_FAILED);
        libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE);
        start.cast::<u8>()
    };
    say("ready");
    listen();
    for page in 0..PAGES {
        // SAFETY: within the mapping.
        unsafe { start.add(page * 4096).write_volatile(1) };
    }
    say("done");
    listen();
}

/// How often the role "moves" goes to another cpu.
pub const MOVES: u64 = 200;

fn moves() {
    let machine = topology::Machine::live().unwrap();
    let cores = machine.nodes().iter().flat_map(|node| &node.cores);
    let cpus: Vec<u32> = cores.flat_map(|core| core.cpus.clone()).collect();
    let to = |cpu: u32| placement::apply::bind(0, &vec![cpu].into()).unwrap();
    to(cpus[0]);
    say("ready");
    listen();
    for turn in 1..=MOVES {
        to(cpus[turn as usize % cpus.len().min(2)]);
    }
    say("done");
    listen();
}

fn busy() {
    say("ready");
    let (send, receive) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        let mut sum = 0u64;
        while receive.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            sum = std::hint::black_box(sum + 1);
        }
    });
    listen();
    drop(send);
}

/// How many threads the role "many threads" has beside its own.
pub const THREADS: usize = 256;

fn many_threads() {
    for at in 0..THREADS {
        let body = move || {
            loop {
                // Some work now and then, never all at once.
                std::thread::sleep(Duration::from_millis(20 + at as u64 % 30));
            }
        };
        std::thread::Builder::new()
            .stack_size(64 << 10)
            .spawn(body)
            .unwrap();
    }
    say("ready");
    listen();
}

fn threads_come_and_go() {
    say("ready");
    std::thread::spawn(|| {
        listen();
        std::process::exit(0);
    });
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(30) {
        let some: Vec<_> = (0..8)
            .map(|_| std::thread::spawn(|| std::thread::sleep(Duration::from_millis(2))))
            .collect();
        some.into_iter().for_each(|one| one.join().unwrap());
    }
}

fn forks() {
    say("ready");
    listen();
    for _ in 0..30 {
        let some: Vec<Child> = (0..4)
            .map(|_| Command::new("sleep").arg("0.05").spawn().unwrap())
            .collect();
        some.into_iter().for_each(|mut one| {
            one.wait().unwrap();
        });
    }
    say("done");
}
