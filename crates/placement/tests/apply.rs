//! Placing real threads. One test, as it binds every thread of its process.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use placement::apply::{self, Keeper, Options};
use placement::{CpuSet, Error, Placement, Site};
use topology::Machine;

/// A thread that waits until it is told to end.
struct Sleeper {
    number: i32,
    stop: mpsc::Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Sleeper {
    fn new() -> Sleeper {
        let (stop, wait) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            // SAFETY: gettid has no preconditions.
            tell.send(unsafe { libc::gettid() }).unwrap();
            let _ = wait.recv();
        });
        let number = told.recv().unwrap();
        Sleeper {
            number,
            stop,
            thread,
        }
    }

    fn end(self) {
        drop(self.stop);
        self.thread.join().unwrap();
        await_end(self.number);
    }
}

/// Joining may return just before a thread has left its process.
fn await_end(thread: i32) {
    while std::fs::exists(format!("/proc/self/task/{thread}")).unwrap() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Where the kernel says that a thread may run.
fn allowed(process: u32, thread: i32) -> CpuSet {
    let status = format!("/proc/{process}/task/{thread}/status");
    let status = std::fs::read_to_string(status).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap().parse().unwrap()
}

fn single(cpu: u32) -> CpuSet {
    CpuSet::from(vec![cpu])
}

#[test]
fn threads_are_placed_kept_and_put_back() {
    let site = Site::new(&Machine::live().unwrap());
    let all = site.allowed();
    if all.len() < 2 {
        return notrun::not_run("binding cannot be told apart on one cpu");
    }
    let (a, b) = (all.as_slice()[0], all.as_slice()[1]);
    own_thread(&all, a);
    own_process(&site, &all, a, b);
    child(&site, a, b);
    failures(&site, a);
}

fn own_thread(all: &CpuSet, a: u32) {
    let own = std::process::id();
    // SAFETY: gettid has no preconditions.
    let thread = unsafe { libc::gettid() };
    let pinned = apply::pin(&single(a)).unwrap();
    assert_eq!(allowed(own, thread), single(a));
    // Undone from elsewhere.
    let other = std::thread::spawn(move || {
        drop(pinned);
        // SAFETY: gettid has no preconditions.
        unsafe { libc::gettid() }
    });
    await_end(other.join().unwrap());
    assert_eq!(&allowed(own, thread), all);
    let error = apply::pin(&single(8000)).unwrap_err().to_string();
    assert!(
        error.contains("8000") && error.contains("cpuset"),
        "{error}"
    );
}

fn own_process(site: &Site, all: &CpuSet, a: u32, b: u32) {
    let own = std::process::id();
    let of = |sleeper: &Sleeper| allowed(own, sleeper.number);
    let before = std::fs::read_dir("/proc/self/task").unwrap().count();
    let (one, two) = (Sleeper::new(), Sleeper::new());
    let placement = Placement::explicit(site, vec![single(a), single(b)]).unwrap();
    let options = Options {
        skip: before,
        children: false,
        ..Options::default()
    };
    let mut keeper = Keeper::attach(own as i32, &placement, options).unwrap();
    assert_eq!(&of(&one), all, "nothing happens before the first step");
    let step = keeper.step().unwrap();
    assert_eq!(
        (step.placed, step.alive, step.ended),
        (before + 2, before + 2, 0)
    );
    assert_eq!((of(&one), of(&two)), (single(a), single(b)));
    assert_eq!(keeper.step().unwrap().placed, 0);
    // A new thread shares with the first, the next takes the place of one that ended.
    let three = Sleeper::new();
    keeper.step().unwrap();
    assert_eq!(of(&three), single(a));
    two.end();
    let four = Sleeper::new();
    let step = keeper.step().unwrap();
    assert_eq!((step.placed, step.ended), (1, 1));
    assert_eq!(of(&four), single(b));
    let changes = keeper.changes();
    assert_eq!(changes.len(), before + 3);
    let slots: Vec<_> = changes.iter().map(|change| change.slot).collect();
    assert_eq!(slots[before..], [Some(0), Some(0), Some(1)]);
    assert!(
        changes.iter().all(|change| &change.before == all),
        "{changes:?}"
    );
    three.end();
    let undone = keeper.undo();
    assert_eq!(
        (undone.restored, undone.ended, undone.refused),
        (before + 2, 1, 0)
    );
    assert_eq!((&of(&one), &of(&four)), (all, all));
    // One that was created by a placed thread gets what the first had, not what it inherited.
    let placement = Placement::explicit(site, vec![single(a)]).unwrap();
    let mut keeper = Keeper::attach(own as i32, &placement, Options::default()).unwrap();
    keeper.step().unwrap();
    let five = Sleeper::new();
    assert_eq!(of(&five), single(a), "inherited");
    keeper.step().unwrap();
    keeper.undo();
    assert_eq!(&of(&five), all);
    [one, four, five].into_iter().for_each(Sleeper::end);
}

/// A shell with two children, which are processes of one thread each.
fn child(site: &Site, a: u32, b: u32) {
    let placement = Placement::explicit(site, vec![single(b), single(a)]).unwrap();
    let script = "sleep 60 & sleep 60 & echo $!; grep Cpus_allowed_list /proc/self/status; wait";
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdout(Stdio::piped());
    let mut child = apply::start(&mut command, &placement).unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut text = String::new();
    while !text.contains("list:") || !text.ends_with('\n') {
        let mut bytes = [0; 256];
        let count = out.read(&mut bytes).unwrap();
        assert!(count > 0, "{text}");
        text.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
    }
    let second: i32 = text.lines().next().unwrap().parse().unwrap();
    let begun: CpuSet = text.split("list:").nth(1).unwrap().parse().unwrap();
    assert_eq!(
        begun,
        placement.cpus(),
        "it starts on all cpus of the placement"
    );
    let own = child.id() as i32;
    let options = Options {
        settle: Duration::from_secs(60),
        ..Options::default()
    };
    let mut keeper = Keeper::attach(own, &placement, options).unwrap();
    assert_eq!(keeper.step().unwrap().placed, 0, "they have not settled");
    let options = Options {
        settle: Duration::ZERO,
        ..Options::default()
    };
    let mut keeper = Keeper::attach(own, &placement, options).unwrap();
    let step = keeper.step().unwrap();
    assert!(step.placed >= 3, "{step:?}");
    assert_eq!(allowed(child.id(), own), single(b));
    assert_eq!(
        allowed(second as u32, second),
        single(b),
        "the third of two"
    );
    let kill = |process: i32| {
        // SAFETY: kill has no preconditions; the processes are ours.
        let killed = unsafe { libc::kill(process, libc::SIGKILL) } == 0;
        // The one that told of the cpus may have ended by itself.
        let gone = std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH);
        assert!(killed || gone, "{process}");
    };
    let children = keeper.changes();
    children.iter().map(|change| change.process).for_each(kill);
    child.wait().unwrap();
    assert_eq!(keeper.step().unwrap().alive, 0, "it has ended");
    assert_eq!(keeper.undo().restored, 0);
    let gone = Keeper::attach(own, &placement, Options::default());
    assert!(matches!(gone, Err(Error::NoProcess { .. })));
}

fn failures(site: &Site, a: u32) {
    let placement = Placement::explicit(site, vec![single(a)]).unwrap();
    let missing = apply::start(&mut Command::new("/no/such/command"), &placement).unwrap_err();
    assert!(
        missing.to_string().contains("/no/such/command"),
        "{missing}"
    );
    let none = Keeper::attach(0x3fff_ffff, &placement, Options::default()).unwrap_err();
    assert!(none.to_string().contains("there is no process"), "{none}");
    // Without privileges the first process of the system, or a child of ours, is somebody else's.
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    // SAFETY: geteuid has no preconditions.
    let root = unsafe { libc::geteuid() } == 0;
    let process = if root { child.id() as i32 } else { 1 };
    let refused = std::thread::spawn(move || {
        if root {
            // SAFETY: the system call changes the user of this thread alone, which ends soon.
            let result = unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) };
            assert_eq!(result, 0);
        }
        let options = Options {
            settle: Duration::ZERO,
            ..Options::default()
        };
        let mut keeper = Keeper::attach(process, &placement, options)?;
        keeper.step()
    });
    let refused = refused.join().unwrap().unwrap_err().to_string();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        refused.contains("as the user the process belongs to"),
        "{refused}"
    );
}
