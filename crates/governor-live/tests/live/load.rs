//! A program to be governed, and a governor for it.

use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use governor::{Decision, Policy};
use governor_live::{Live, Means, Options, Target, Wanted};
use placement::CpuSet;

/// Nothing takes so long, on whichever machine.
pub const LIMIT: Duration = Duration::from_secs(120);

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The example that is governed: `cargo test` builds it beside the tests, in target/PROFILE/examples.
pub fn example() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let path = own.ancestors().nth(2).unwrap().join("examples/load");
    assert!(path.is_file(), "cargo build -p governor-live --examples");
    path
}

/// The program, under a name of its own, in a folder of its own.
pub struct Load {
    child: Child,
    folder: tempfile::TempDir,
    name: String,
}

impl Load {
    /// Starts the example `load` with these words, and waits until it is ready.
    pub fn start(words: &[&str]) -> Load {
        Load::try_start(words).unwrap_or_else(|| panic!("{words:?} did not get ready"))
    }

    /// The same; `None` where it ends before it is ready.
    pub fn try_start(words: &[&str]) -> Option<Load> {
        let folder = tempfile::tempdir().unwrap();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // The kernel keeps 15 bytes of a name.
        let name = format!("gl-{}-{number}", std::process::id() % 1_000_000);
        let program = folder.path().join(&name);
        std::fs::hard_link(example(), &program)
            .or_else(|_| std::fs::copy(example(), &program).map(drop))
            .unwrap();
        let child = ready(Command::new(&program).args(words).current_dir(&folder))?;
        Some(Load {
            child,
            folder,
            name,
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// Where governors of this load are recorded.
    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// A file that exists means work.
    pub fn busy(&self, busy: bool) {
        let file = self.folder.path().join("BUSY");
        if busy {
            std::fs::write(file, "").unwrap();
        } else {
            drop(std::fs::remove_file(file));
        }
    }

    pub fn threads(&self) -> Vec<i32> {
        threads(self.pid())
    }

    /// The cpus of each thread.
    pub fn affinities(&self) -> Vec<CpuSet> {
        affinities(self.pid())
    }

    /// Waits until its threads have these cpus.
    pub fn becomes(&self, wanted: &[CpuSet]) {
        wait_for(&format!("{wanted:?}"), || self.affinities() == wanted);
    }

    /// Whether each of its threads may run on one cpu alone.
    pub fn has_one_cpu(&self) -> bool {
        self.affinities().iter().all(|cpus| cpus.len() == 1)
    }

    /// The processes that it has started.
    pub fn children(&self) -> Vec<u32> {
        children(self.pid())
    }

    /// A governor of it in a process of its own: the example's `how`.
    pub fn governor(&self, how: &str) -> Child {
        governor(how, self.pid(), &self.state())
    }

    /// Governs it, as these options say.
    pub fn govern(&self, options: Options) -> governor_live::Result<Live> {
        govern(self.pid(), options)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A governor of a process, in a process of its own.
pub fn governor(how: &str, pid: u32, state: &Path) -> Child {
    let mut command = Command::new(example());
    started(command.arg(how).arg(pid.to_string()).arg(state))
}

/// Governs a process in this one.
pub fn govern(pid: u32, options: Options) -> governor_live::Result<Live> {
    Live::begin(vec![wanted(Target::Pid(pid))], options)
}

/// Waits until something has happened.
#[track_caller]
pub fn wait_for(what: &str, done: impl Fn() -> bool) {
    let limit = Instant::now() + LIMIT;
    while !done() {
        assert!(Instant::now() < limit, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ends a process that this test has started, and waits for its end.
pub fn end(mut process: Child) {
    process.kill().unwrap();
    process.wait().unwrap();
}

pub fn kill(pid: u32, signal: i32) {
    // SAFETY: sends a signal to a process that this test has started.
    unsafe { libc::kill(pid.cast_signed(), signal) };
}

/// Whether these tests run as root.
pub fn root() -> bool {
    // SAFETY: geteuid has no preconditions.
    unsafe { libc::geteuid() == 0 }
}

/// The processes that the first thread of one has started.
pub fn children(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let numbers = list.split_whitespace();
    numbers.map(|child| child.parse().unwrap()).collect()
}

/// Starts a program that says when it is ready.
pub fn started(command: &mut Command) -> Child {
    ready(command).unwrap_or_else(|| panic!("{command:?} did not get ready"))
}

/// Starts a program that may have been copied just now: a process that another thread starts meanwhile has the copy open
/// for writing for a moment, and nothing that is open for writing is run.
fn spawned(command: &mut Command) -> Child {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        match command.spawn() {
            Err(e) if e.kind() == ErrorKind::ExecutableFileBusy && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(10));
            }
            started => return started.unwrap(),
        }
    }
}

fn ready(command: &mut Command) -> Option<Child> {
    let mut child = spawned(command.stdout(Stdio::piped()));
    let mut line = String::new();
    let out = child.stdout.take().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    if line == "ready\n" {
        return Some(child);
    }
    let _ = child.kill();
    child.wait().unwrap();
    None
}

pub fn threads(pid: u32) -> Vec<i32> {
    let folder = Path::new("/proc").join(pid.to_string()).join("task");
    let entries = std::fs::read_dir(folder).unwrap();
    let number = |entry: std::io::Result<std::fs::DirEntry>| {
        entry
            .unwrap()
            .file_name()
            .to_str()
            .unwrap()
            .parse()
            .unwrap()
    };
    entries.map(number).collect()
}

pub fn affinities(pid: u32) -> Vec<CpuSet> {
    let of = |thread: i32| placement::apply::cpus_of(thread).unwrap();
    threads(pid).into_iter().map(of).collect()
}

/// The cpus this test may use, and so all that it starts.
pub fn all_cpus() -> CpuSet {
    placement::apply::cpus_of(0).unwrap()
}

/// Whether there are two at least; says so where there are not.
pub fn several_cpus(what: &str) -> bool {
    let several = all_cpus().len() > 1;
    if !several {
        notrun::not_run(format!("{what}: this machine has one cpu"));
    }
    several
}

pub fn wanted(target: Target) -> Wanted {
    Wanted {
        target,
        weight: 1.0,
        counter: None,
    }
}

pub fn options(load: &Load) -> Options {
    Options {
        period: Duration::from_millis(10),
        means: Means::Affinity,
        ..Options::new(Policy::default(), load.state()).unwrap()
    }
}

/// A governor of the load.
pub fn governed(load: &Load) -> Live {
    load.govern(options(load)).unwrap()
}

/// Decides until the decision is so.
pub fn until(live: &mut Live, done: impl Fn(&Decision) -> bool) -> Decision {
    let limit = Instant::now() + LIMIT;
    loop {
        let decision = live.check().unwrap().remove(0);
        if done(&decision) {
            return decision;
        }
        assert!(Instant::now() < limit, "stuck at {decision}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
