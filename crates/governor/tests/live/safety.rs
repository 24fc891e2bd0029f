//! What can go wrong with a governor and with what it governs.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use governor::Error;
use governor::live::{Live, Target, undo};
use placement::CpuSet;

use super::load::{self, LIMIT, Load, governed, options, several_cpus, started};

/// A governor in a process of its own.
fn governor_of(load: &Load) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_governor-load"));
    started(
        command
            .arg("govern")
            .arg(load.pid().to_string())
            .arg(load.state()),
    )
}

/// Its guard.
fn guard_of(governor: &Child) -> u32 {
    let children = format!("/proc/{0}/task/{0}/children", governor.id());
    let list = std::fs::read_to_string(children).unwrap();
    list.split_whitespace().next().unwrap().parse().unwrap()
}

fn kill(pid: u32, signal: i32) {
    // SAFETY: sends a signal to a process that this test has started.
    unsafe { libc::kill(pid.cast_signed(), signal) };
}

fn becomes(load: &Load, wanted: &[CpuSet]) {
    let limit = Instant::now() + LIMIT;
    while load.affinities() != wanted {
        assert!(Instant::now() < limit, "{:?}", load.affinities());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_guard_puts_back_what_a_killed_governor_leaves() {
    if !several_cpus("affinity that is narrower than before") {
        return;
    }
    let load = Load::start(&["threads", "3"]);
    let before = load.affinities();
    let mut governor = governor_of(&load);
    assert!(load.affinities().iter().all(|cpus| cpus.len() == 1));
    governor.kill().unwrap();
    governor.wait().unwrap();
    becomes(&load, &before);
}

#[test]
fn undo_puts_back_what_governor_and_guard_leave() {
    if !several_cpus("affinity that is narrower than before") {
        return;
    }
    let load = Load::start(&["threads", "3"]);
    let before = load.affinities();
    let mut governor = governor_of(&load);
    let guard = guard_of(&governor);
    kill(guard, libc::SIGKILL);
    governor.kill().unwrap();
    governor.wait().unwrap();
    assert_ne!(load.affinities(), before);
    let undone = undo(&load.state()).unwrap();
    assert_eq!(undone.len(), 1);
    assert_eq!(undone[0].restored, Some(before.len()));
    assert_eq!(load.affinities(), before);
    assert_eq!(undo(&load.state()).unwrap(), []);
}

#[test]
fn undo_ends_governors_that_run() {
    let load = Load::start(&["threads", "2"]);
    let before = load.affinities();
    let mut governor = governor_of(&load);
    let waiter = std::thread::spawn(move || governor.wait().unwrap());
    let undone = undo(&load.state()).unwrap();
    assert_eq!(undone.len(), 1);
    assert!(
        !waiter.join().unwrap().success(),
        "it has no handler for SIGTERM"
    );
    becomes(&load, &before);
}

#[test]
fn two_governors_of_one_target() {
    let load = Load::start(&["backends", "2"]);
    let live = governed(&load);
    let child = {
        let list = format!("/proc/{0}/task/{0}/children", load.pid());
        let list = std::fs::read_to_string(list).unwrap();
        list.split_whitespace().next().unwrap().parse().unwrap()
    };
    for pid in [load.pid(), child] {
        let second = Live::begin(vec![load::wanted(Target::Pid(pid))], options(&load));
        let error = second.unwrap_err();
        assert!(matches!(error, Error::Governed { .. }), "{error}");
    }
    live.end().unwrap();
    let again = Live::begin(vec![load::wanted(Target::Pid(child))], options(&load));
    let above = Live::begin(vec![load::wanted(Target::Pid(load.pid()))], options(&load));
    assert!(again.is_ok() && matches!(above, Err(Error::Governed { .. })));
}

#[test]
fn a_storm_of_processes() {
    let load = Load::start(&["storm"]);
    let before = load.affinities();
    let mut live = governed(&load);
    for _ in 0..100 {
        let decision = live.check().unwrap().remove(0);
        assert!(
            decision.readings["busy"]
                .value
                .is_some_and(|busy| busy >= 0.0)
        );
    }
    live.end().unwrap();
    becomes(&load, &before);
}

#[test]
fn many_backends_and_those_that_end() {
    let load = Load::start(&["backends", "500"]);
    let mut live = governed(&load);
    let one = live.check().unwrap().remove(0);
    let list = format!("/proc/{0}/task/{0}/children", load.pid());
    let children: Vec<u32> = std::fs::read_to_string(list)
        .unwrap()
        .split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect();
    assert_eq!(children.len(), 500);
    for child in &children {
        assert_eq!(load::affinities(*child), [one.cpus()]);
    }
    let processes = |live: &Live| live.status().lock().unwrap().targets[0].processes;
    assert_eq!(processes(&live), 501);
    for child in children.iter().step_by(2) {
        kill(*child, libc::SIGKILL);
        live.check().unwrap();
    }
    live.end().unwrap();
    let before = load.affinities();
    for child in children.iter().skip(1).step_by(2) {
        assert_eq!(load::affinities(*child), before);
    }
}

#[test]
fn a_process_that_becomes_another_program_is_still_governed() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let mut shell = Command::new("sh");
    let script = format!(
        "while [ ! -e {} ]; do sleep 0.01; done; exec sleep 600",
        go.display()
    );
    let mut child = shell.args(["-c", &script]).spawn().unwrap();
    let load = Load::start(&["threads", "1"]);
    let target = Target::Pid(child.id());
    let mut live = Live::begin(vec![load::wanted(target)], options(&load)).unwrap();
    live.check().unwrap();
    std::fs::write(go, "").unwrap();
    let name = format!("/proc/{}/comm", child.id());
    let limit = Instant::now() + LIMIT;
    while std::fs::read_to_string(&name).unwrap().trim() != "sleep" {
        assert!(Instant::now() < limit);
        live.check().unwrap();
    }
    let decision = live.check().unwrap().remove(0);
    assert_eq!(load::affinities(child.id()), [decision.cpus()]);
    child.kill().unwrap();
    child.wait().unwrap();
    let ended = live.check().unwrap_err();
    assert!(matches!(ended, Error::Ended { .. }), "{ended}");
}

#[test]
fn somebody_else_who_sets_affinity_is_overruled_and_remembered() {
    if !several_cpus("another affinity than ours") {
        return;
    }
    let load = Load::start(&["threads", "2"]);
    let mut live = governed(&load);
    let one = live.check().unwrap().remove(0).cpus();
    let others: CpuSet = load::all_cpus()
        .iter()
        .filter(|cpu| !one.contains(*cpu))
        .collect();
    let main = load.pid().cast_signed();
    placement::apply::bind(main, &others).unwrap();
    let limit = Instant::now() + LIMIT;
    while placement::apply::cpus_of(main).unwrap() != one {
        assert!(Instant::now() < limit);
        live.check().unwrap();
    }
    live.end().unwrap();
    assert_eq!(placement::apply::cpus_of(main).unwrap(), others);
}

#[test]
fn a_user_who_may_not_is_told() {
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        println!("NOT RUN: only root can start a governor as another user");
        return;
    }
    if !several_cpus("a thread that is to be bound otherwise") {
        return;
    }
    let load = Load::start(&["threads", "1"]);
    let before = load.affinities();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(folder.path(), Some(65534), Some(65534)).unwrap();
    let program = folder.path().join("governor-load");
    std::fs::copy(env!("CARGO_BIN_EXE_governor-load"), &program).unwrap();
    let mut command = Command::new(&program);
    command.arg("govern").arg(load.pid().to_string());
    command
        .arg(folder.path().join("state"))
        .uid(65534)
        .gid(65534);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("your own user, or as root"), "{said}");
    assert_eq!(load.affinities(), before);
}
