//! Programs to be governed, for tests and measurements: threads that are busy or idle, a lock they
//! contend for, processes that come and go. Also a governor that tests can kill.
//!
//!     load threads N [COUNTER]   N threads; busy while the file BUSY of the folder is there
//!     load lock N COUNTER        N threads that contend for one lock, counted in a file
//!     load backends N [MS]       N processes that wait, or work a little every MS milliseconds
//!     load storm                 processes that come and go as fast as they can
//!     load govern PID STATE      a governor that gives a process one core, until it is killed
//!     load grow PID STATE        one that gives it as many as it needs
//!     load lose PID STATE        one that loses its rights after its first decision
//!     load guard RECORD          its guard

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use governor::Policy;
use governor_live::{Live, Means, Options, Target, Wanted};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["threads", count] => threads(number(count), None),
        ["threads", count, counter] => threads(number(count), Some(Path::new(counter))),
        ["lock", count, counter] => lock(number(count), Path::new(counter)),
        ["backends", count] => backends(number(count), None),
        ["backends", count, pause] => backends(number(count), Some(number(pause) as u64)),
        ["storm"] => storm(),
        ["nothing"] => {}
        ["govern", pid, state] => govern(number(pid) as u32, state.into(), Some(1), false),
        ["grow", pid, state] => govern(number(pid) as u32, state.into(), None, false),
        ["lose", pid, state] => govern(number(pid) as u32, state.into(), None, true),
        ["guard", record] => {
            let _ = governor_live::guard(Path::new(record), std::io::stdin());
        }
        _ => {
            eprintln!("load: see the top of its source");
            std::process::exit(2);
        }
    }
}

fn number(text: &str) -> usize {
    text.parse().unwrap_or_else(|_| {
        eprintln!("load: {text} is not a number");
        std::process::exit(2);
    })
}

/// Says that everything runs.
fn ready() {
    let _ = writeln!(std::io::stdout(), "ready");
    let _ = std::io::stdout().flush();
}

/// Keeps a file at the present count, until the process ends.
fn keep(path: &Path, count: &AtomicU64) -> ! {
    loop {
        let new = path.with_extension("new");
        let text = format!("{}\n", count.load(Ordering::Relaxed));
        let _ = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, path));
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn threads(count: usize, counter: Option<&Path>) {
    let busy = Arc::new(AtomicBool::new(false));
    let done = Arc::new(AtomicU64::new(0));
    for _ in 0..count {
        let (busy, done) = (busy.clone(), done.clone());
        std::thread::spawn(move || {
            loop {
                if !busy.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(50));
                    continue;
                }
                work();
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    if let Some(path) = counter {
        let (path, done) = (path.to_owned(), done.clone());
        std::thread::spawn(move || keep(&path, &done));
    }
    ready();
    loop {
        busy.store(Path::new("BUSY").exists(), Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Some microseconds of arithmetic.
fn work() {
    let mut sum = 1u64;
    for at in 0..20_000u64 {
        sum = std::hint::black_box(sum.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(at));
    }
}

/// All work is done under one lock of the kind that waits busily, on data that moves between the
/// processors' caches: the more of them, the less is done.
fn lock(count: usize, counter: &Path) {
    let done = Arc::new(AtomicU64::new(0));
    let held = Arc::new(AtomicBool::new(false));
    let data: Arc<Vec<AtomicU64>> = Arc::new((0..512).map(AtomicU64::new).collect());
    for _ in 0..count {
        let (done, held, data) = (done.clone(), held.clone(), data.clone());
        std::thread::spawn(move || {
            loop {
                while held.swap(true, Ordering::Acquire) {
                    std::hint::spin_loop();
                }
                for word in data.iter().step_by(8) {
                    word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                }
                held.store(false, Ordering::Release);
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    ready();
    keep(counter, &done)
}

fn backends(count: usize, pause: Option<u64>) {
    for _ in 0..count {
        // SAFETY: this process has one thread, so that the child may do what it likes.
        let child = unsafe { libc::fork() };
        if child < 0 {
            // Those there are end with this one.
            std::process::exit(1);
        }
        if child == 0 {
            // SAFETY: the child asks to be ended with its parent, and waits for signals.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            }
            let Some(pause) = pause else {
                loop {
                    // SAFETY: as above.
                    unsafe { libc::pause() };
                }
            };
            loop {
                std::thread::sleep(Duration::from_millis(pause));
                work();
            }
        }
    }
    ready();
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn storm() {
    let Ok(own) = std::env::current_exe() else {
        return;
    };
    ready();
    let mut children = Vec::new();
    loop {
        if let Ok(child) = Command::new(&own).arg("nothing").spawn() {
            children.push(child);
        }
        if children.len() > 20 {
            for mut child in children.drain(..) {
                let _ = child.wait();
            }
        }
    }
}

fn govern(pid: u32, state: PathBuf, max_cores: Option<usize>, loses: bool) {
    let run = || -> governor_live::Result<()> {
        let own = std::env::current_exe().unwrap_or_default();
        let wanted = Wanted {
            target: Target::Pid(pid),
            weight: 1.0,
            counter: None,
        };
        let policy = Policy {
            max_cores,
            ..Policy::default()
        };
        let options = Options {
            period: Duration::from_millis(20),
            means: Means::Affinity,
            guard: vec![own.into(), "guard".into()],
            ..Options::new(policy, state)?
        };
        let mut live = Live::begin(vec![wanted], options)?;
        let mut first = true;
        loop {
            let begun = Instant::now();
            let decisions = live.check()?;
            if std::mem::take(&mut first) && !decisions.is_empty() {
                if loses {
                    // SAFETY: no pointers; the calling thread, which governs, becomes nobody.
                    unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) };
                }
                ready();
            }
            std::thread::sleep(live.pause(begun));
        }
    };
    if let Err(error) = run() {
        eprintln!("load: {error}");
        std::process::exit(1);
    }
}
