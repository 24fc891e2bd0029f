//! What a decision takes, from reading to the cpus' being set, and what governing costs.
//!
//!     cargo build --release -p governor-live --examples
//!     cargo run --release -p governor-live --example decide -- [CHANGES] [SECONDS] [affinity|cgroup] [idle|busy]
//!
//! First CHANGES decisions that each change the cpus of a program with 64 threads, all of which are
//! busy at every second one, in adaptive mode; then SECONDS each of a decision every 100 ms for a
//! program with 256 processes: idle, and with each working ten times a second; governed by affinity
//! and, where this user can make control groups, through one. Nothing else should run meanwhile.

use std::io::{BufRead, BufReader, Error, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use governor::{Action, Policy};
use governor_live::{Live, Options, Target, Wanted, hurry};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// A control group with a process and all that descend from it, in each hierarchy there is.
struct Group {
    folders: Vec<PathBuf>,
}

impl Group {
    fn new(root: u32) -> std::io::Result<Group> {
        let top = Path::new("/sys/fs/cgroup");
        let name = format!("atoll-decide-{}", std::process::id());
        let old = [top.join("cpuset"), top.join("cpuacct")];
        let two = !old[0].exists();
        let tops = if two {
            vec![top.to_owned()]
        } else {
            old.to_vec()
        };
        let mut group = Group {
            folders: Vec::new(),
        };
        if two {
            std::fs::write(top.join("cgroup.subtree_control"), "+cpuset +cpu")?;
        }
        for top in &tops {
            let folder = top.join(&name);
            std::fs::create_dir(&folder)?;
            group.folders.push(folder.clone());
            for file in ["cpuset.mems", "cpuset.cpus"] {
                if !two && let Ok(value) = std::fs::read_to_string(top.join(file)) {
                    std::fs::write(folder.join(file), value)?;
                }
            }
        }
        let children = format!("/proc/{root}/task/{root}/children");
        let list = format!("{root} {}", std::fs::read_to_string(children)?);
        for (folder, pid) in group
            .folders
            .iter()
            .flat_map(|folder| list.split_whitespace().map(move |pid| (folder, pid)))
        {
            std::fs::write(folder.join("cgroup.procs"), pid)?;
        }
        Ok(group)
    }

    fn path(&self) -> PathBuf {
        self.folders[0].clone()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in &self.folders {
            let list = std::fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            let above = folder.with_file_name("cgroup.procs");
            for pid in list.lines() {
                let _ = std::fs::write(&above, pid);
            }
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// A program that is governed.
struct Load {
    child: Child,
    folder: tempfile::TempDir,
}

impl Load {
    fn start(words: &[&str]) -> std::io::Result<Load> {
        let own = std::env::current_exe()?;
        let program = own.with_file_name("load");
        // In memory, as /run is, where governors are recorded.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() {
            tempfile::tempdir_in(memory)?
        } else {
            tempfile::tempdir()?
        };
        let mut command = Command::new(&program);
        command.args(words).current_dir(&folder);
        let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| {
            let program = program.display();
            Error::other(format!(
                "{program}: {error}; cargo build --release -p governor-live --examples"
            ))
        })?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        Ok(Load { child, folder })
    }

    fn busy(&self, busy: bool) -> std::io::Result<()> {
        let file = self.folder.path().join("BUSY");
        if busy {
            std::fs::write(file, "")
        } else {
            std::fs::remove_file(file)
        }
    }

    fn govern(&self, policy: Policy, group: Option<&Group>) -> governor_live::Result<Live> {
        let target = match group {
            Some(group) => Target::Cgroup(group.path()),
            None => Target::Pid(self.child.id()),
        };
        let wanted = Wanted {
            target,
            weight: 1.0,
            counter: None,
        };
        let options = Options::new(policy, self.folder.path().join("state"))?;
        Live::begin(vec![wanted], options)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Median, 99th percentile and mean.
fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (at(0.5), at(0.99), mean)
}

/// Seconds of the decisions that changed something: those that allocated, and those that released.
fn changes(count: usize) -> Outcome<[Vec<f64>; 2]> {
    let load = Load::start(&["threads", "64"])?;
    // The text's own net: a change at each check that finds a reason.
    let mut live = load.govern(Policy::plain(), None)?;
    live.check()?;
    let mut times = [Vec::new(), Vec::new()];
    for change in 0..count {
        let busy = change % 2 == 0;
        load.busy(busy)?;
        let limit = Instant::now() + Duration::from_secs(30);
        loop {
            std::thread::sleep(Duration::from_millis(50));
            let decision = live.check()?.remove(0);
            match decision.action {
                Action::None => {}
                Action::Allocate => times[0].push(decision.decision_seconds),
                Action::Release => times[1].push(decision.decision_seconds),
            }
            if decision.action != Action::None {
                break;
            }
            if Instant::now() > limit {
                return Err(format!("nothing changes: {decision}").into());
            }
        }
    }
    live.end()?;
    Ok(times)
}

/// Processor time of this process.
fn own_time() -> Duration {
    // SAFETY: all bytes zero are a valid rusage, and getrusage writes one.
    let used = unsafe {
        let mut used: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut used);
        used
    };
    let of = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    of(used.ru_utime) + of(used.ru_stime)
}

/// The processor time of each check, as a share of the period, and the whole share.
fn cost(words: &[&str], grouped: bool, seconds: f64) -> Outcome<(Vec<f64>, f64)> {
    let load = Load::start(words)?;
    let group = if grouped {
        Some(Group::new(load.child.id())?)
    } else {
        None
    };
    let period = Duration::from_millis(100);
    let mut live = load.govern(Policy::default(), group.as_ref())?;
    live.check()?;
    let mut shares = Vec::new();
    let (begun, used) = (Instant::now(), own_time());
    while begun.elapsed().as_secs_f64() < seconds {
        let (check, before) = (Instant::now(), own_time());
        live.check()?;
        shares.push((own_time() - before).as_secs_f64() / period.as_secs_f64());
        // Never longer, as the governor itself would where it costs much.
        std::thread::sleep(period.saturating_sub(check.elapsed()));
    }
    let whole = (own_time() - used).as_secs_f64() / begun.elapsed().as_secs_f64();
    live.end()?;
    Ok((shares, whole))
}

fn main() -> Outcome<()> {
    hurry();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: f64| match arguments.get(at) {
        Some(text) => text.parse::<f64>(),
        None => Ok(default),
    };
    let (count, seconds) = (number(0, 200.0)? as usize, number(1, 20.0)?);
    let mut out = std::io::stdout().lock();
    if count > 1 {
        let [up, down] = changes(count)?;
        let both = [up.clone(), down.clone()].concat();
        let named = [
            ("all", both),
            ("allocate, all busy", up),
            ("release, all idle", down),
        ];
        for (name, times) in named {
            let many = times.len();
            let (median, p99, _) = spread(times);
            let (median, p99) = (median * 1000.0, p99 * 1000.0);
            writeln!(
                out,
                "decision, 64 threads, adaptive, {name:19} median {median:.3} ms, p99 {p99:.3} ms ({many})"
            )?;
        }
    }
    for (name, words) in [
        ("idle", &["backends", "256"][..]),
        ("each 10/s", &["backends", "256", "100"]),
    ] {
        let wanted = |at: usize, name: &str| {
            arguments
                .get(at)
                .is_none_or(|word| name.starts_with(&**word))
        };
        for (how, grouped) in [("affinity", false), ("cgroup", true)] {
            if !wanted(2, how) || !wanted(3, if words.len() > 2 { "busy" } else { "idle" }) {
                continue;
            }
            match cost(words, grouped, seconds) {
                Ok((shares, whole)) => {
                    let (median, p99, _) = spread(shares);
                    let [median, p99, whole] = [median, p99, whole].map(|share| share * 100.0);
                    writeln!(
                        out,
                        "256 processes {name:9} by {how:8} {whole:.2} % of a core (checks: median {median:.2} %, p99 {p99:.2} %)"
                    )?;
                }
                Err(error) => writeln!(out, "256 processes {name} by {how}: NOT RUN: {error}")?,
            }
        }
    }
    Ok(())
}
