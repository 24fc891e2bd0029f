//! What can go wrong with a governor and with what it governs.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::Instant;

use governor_live::{Error, Live, undo};
use placement::CpuSet;

use super::load::{
    self, LIMIT, Load, end, example, govern, governed, governor, kill, options, root, several_cpus,
    wait_for,
};

/// The guard of a governor.
fn guard_of(governor: &Child) -> u32 {
    load::children(governor.id())[0]
}

#[test]
fn the_guard_puts_back_what_a_killed_governor_leaves() {
    if !several_cpus("affinity that is narrower than before") {
        return;
    }
    let load = Load::start(&["threads", "3"]);
    let before = load.affinities();
    let governor = load.governor("govern");
    assert!(load.has_one_cpu());
    end(governor);
    load.becomes(&before);
}

#[test]
fn undo_puts_back_what_governor_and_guard_leave() {
    if !several_cpus("affinity that is narrower than before") {
        return;
    }
    let load = Load::start(&["threads", "3"]);
    let before = load.affinities();
    let governor = load.governor("govern");
    kill(guard_of(&governor), libc::SIGKILL);
    end(governor);
    assert_ne!(load.affinities(), before);
    let undone = undo(&load.state(), false).unwrap();
    assert_eq!(undone.len(), 1);
    assert_eq!(undone[0].restored, Some(before.len()));
    assert_eq!(load.affinities(), before);
    assert_eq!(undo(&load.state(), false).unwrap(), []);
}

#[test]
fn undo_ends_governors_that_run() {
    let load = Load::start(&["threads", "2"]);
    let before = load.affinities();
    let mut governor = load.governor("govern");
    let waiter = std::thread::spawn(move || governor.wait().unwrap());
    let undone = undo(&load.state(), false).unwrap();
    assert_eq!(undone.len(), 1);
    assert!(
        !waiter.join().unwrap().success(),
        "it has no handler for SIGTERM"
    );
    load.becomes(&before);
}

#[test]
fn undo_may_leave_governors_that_run() {
    if !several_cpus("affinity that is narrower than before") {
        return;
    }
    let (load, left) = (
        Load::start(&["threads", "2"]),
        Load::start(&["threads", "2"]),
    );
    let before = left.affinities();
    let killed = governor("govern", left.pid(), &load.state());
    let mut running = load.governor("govern");
    kill(guard_of(&killed), libc::SIGKILL);
    end(killed);
    let undone = undo(&load.state(), true).unwrap();
    assert_eq!(undone.len(), 1, "{undone:?}");
    assert_eq!(left.affinities(), before);
    assert!(running.try_wait().unwrap().is_none(), "it was not killed");
    assert!(load.has_one_cpu());
    end(running);
}

/// A shell that starts one, which starts a program and ends when it is told to.
#[test]
fn who_loses_its_parent_is_put_back_by_the_guard() {
    if !several_cpus("affinity that is narrower than before") {
        return;
    }
    let load = Load::start(&["threads", "1"]);
    let folder = tempfile::tempdir().unwrap();
    let inner =
        "sleep 600 & echo $! >pid.new; mv pid.new pid; while [ ! -e go ]; do sleep 0.01; done";
    let mut outer = Command::new("sh");
    outer.args(["-c", &format!("sh -c '{inner}' & wait; exec sleep 600")]);
    let outer = outer.current_dir(&folder).spawn().unwrap();
    wait_for("its start", || folder.path().join("pid").exists());
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    let pid: u32 = pid.trim().parse().unwrap();
    let before = load::affinities(pid);
    let governor = governor("govern", outer.id(), &load.state());
    wait_for("being bound", || load::affinities(pid)[0].len() == 1);
    std::fs::write(folder.path().join("go"), "").unwrap();
    let record = load.state().join(format!("{}.json", governor.id()));
    let recorded = || {
        std::fs::read_to_string(&record).is_ok_and(|text| text.contains(&format!("\"pid\":{pid},")))
    };
    wait_for("being recorded", recorded);
    end(governor);
    wait_for("being put back", || load::affinities(pid) == before);
    kill(pid, libc::SIGKILL);
    end(outer);
}

/// A folder as users have them who are not root.
struct Users(std::path::PathBuf);

impl Users {
    fn new(user: u32) -> Users {
        use std::os::unix::fs::PermissionsExt;
        let number = 3_000_000_000 + std::process::id() + user;
        let folder = std::path::PathBuf::from(format!("/tmp/atoll-govern-{number}"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::chown(&folder, Some(user), None).unwrap();
        Users(folder)
    }
}

impl Drop for Users {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn two_governors_that_are_recorded_in_different_folders() {
    // SAFETY: geteuid has no preconditions.
    let users = Users::new(unsafe { libc::geteuid() });
    let load = Load::start(&["threads", "1"]);
    let mut theirs = options(&load);
    theirs.state.clone_from(&users.0);
    let live = load.govern(theirs).unwrap();
    let second = || load.govern(options(&load));
    let error = second().unwrap_err();
    assert!(matches!(error, Error::Governed { .. }), "{error}");
    drop(live);
    assert!(second().is_ok());
}

#[test]
fn what_other_users_claim_is_believed_of_their_own_processes_only() {
    if !root() {
        return notrun::not_run("only root can be another user");
    }
    let (own, users) = (Load::start(&["threads", "1"]), Users::new(65534));
    let sleep = || Command::new("sleep").arg("600").uid(65534).spawn().unwrap();
    let (governor, theirs) = (sleep(), sleep());
    let start = |pid: u32| -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ")
            .unwrap()
            .1
            .split(' ')
            .nth(19)
            .unwrap()
            .parse()
            .unwrap()
    };
    let identity = |pid: u32| format!(r#"{{"pid":{pid},"start":{}}}"#, start(pid));
    let claim = |pid: u32| {
        let entry = format!(
            r#"{{"target":{{"name":"{}"}},"roots":[{}],"undo":"nothing"}}"#,
            own.name(),
            identity(pid)
        );
        let text = format!(
            r#"{{"governor":{},"entries":[{entry}]}}"#,
            identity(governor.id())
        );
        let path = users.0.join("1.json");
        std::fs::write(&path, text).unwrap();
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
    };
    let begin = |pid: u32| govern(pid, options(&own));
    claim(theirs.id());
    assert!(matches!(begin(theirs.id()), Err(Error::Governed { .. })));
    assert!(begin(own.pid()).is_ok(), "neither by its name");
    claim(own.pid());
    assert!(begin(own.pid()).is_ok() && begin(theirs.id()).is_ok());
    end(governor);
    end(theirs);
}

#[test]
fn two_governors_of_one_target() {
    let load = Load::start(&["backends", "2"]);
    let live = governed(&load);
    let child = load.children()[0];
    for pid in [load.pid(), child] {
        let second = govern(pid, options(&load));
        let error = second.unwrap_err();
        assert!(matches!(error, Error::Governed { .. }), "{error}");
    }
    live.end().unwrap();
    let again = govern(child, options(&load));
    let above = load.govern(options(&load));
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
    load.becomes(&before);
}

#[test]
fn many_backends_and_those_that_end() {
    let load = Load::start(&["backends", "500"]);
    let mut live = governed(&load);
    let one = live.check().unwrap().remove(0);
    let children = load.children();
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
    let mut live = govern(child.id(), options(&load)).unwrap();
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
    if !root() {
        return notrun::not_run("only root can start a governor as another user");
    }
    if !several_cpus("a thread that is to be bound otherwise") {
        return;
    }
    let load = Load::start(&["threads", "1"]);
    let before = load.affinities();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(folder.path(), Some(65534), Some(65534)).unwrap();
    let program = folder.path().join("load");
    std::fs::copy(example(), &program).unwrap();
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
