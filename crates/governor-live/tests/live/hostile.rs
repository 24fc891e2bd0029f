//! What the system does to a governor: numbers used again, cpus that go, rights that are lost.

use std::path::Path;
use std::time::{Duration, Instant};

use governor_live::{Error, Options};
use placement::CpuSet;

use super::load::{
    self, LIMIT, Load, all_cpus, end, governed, kill, options, root, several_cpus, until,
};

#[test]
fn five_thousand_backends() {
    let Some(load) = Load::try_start(&["backends", "5000"]) else {
        return notrun::not_run("this user may not have 5000 processes");
    };
    let before = load.affinities();
    let mut live = governed(&load);
    let one = live.check().unwrap().remove(0);
    let children = load.children();
    assert_eq!(children.len(), 5000);
    for child in &children {
        assert_eq!(load::affinities(*child), [one.cpus()]);
    }
    for _ in 0..3 {
        let begun = Instant::now();
        let decision = live.check().unwrap().remove(0);
        assert!(decision.readings["busy"].value.is_some(), "{decision:?}");
        assert!(decision.readings["waiting"].value.is_some(), "{decision:?}");
        std::thread::sleep(live.pause(begun));
    }
    live.end().unwrap();
    for child in &children {
        assert_eq!(load::affinities(*child), before);
    }
}

/// A folder with the one file of `/sys` that tells which cpus are online.
fn sys(online: &CpuSet) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("devices/system/cpu")).unwrap();
    set_online(folder.path(), online);
    folder
}

fn set_online(sys: &Path, online: &CpuSet) {
    let file = sys.join("devices/system/cpu/online");
    let new = file.with_extension("new");
    std::fs::write(&new, format!("{online}\n")).unwrap();
    std::fs::rename(new, file).unwrap();
}

#[test]
fn cpus_that_go_offline_and_come_back() {
    if !several_cpus("a cpu that can go offline") {
        return;
    }
    let all = all_cpus();
    let sys = sys(&all);
    let load = Load::start(&["threads", "4"]);
    let before = load.affinities();
    let options = Options {
        sys: sys.path().to_owned(),
        ..options(&load)
    };
    let mut live = load.govern(options).unwrap();
    live.check().unwrap();
    load.busy(true);
    until(&mut live, |decision| decision.cpus.len() == all.len());
    let rest: CpuSet = all.iter().skip(1).collect();
    set_online(sys.path(), &rest);
    let fewer = until(&mut live, |decision| decision.cpus() == rest);
    assert_eq!(fewer.available, rest.to_string());
    assert!(load.affinities().iter().all(|cpus| *cpus == rest));
    let notes = live.notes().join("\n");
    assert!(notes.contains("cpus online are"), "{notes}");
    set_online(sys.path(), &all);
    until(&mut live, |decision| decision.cpus.len() == all.len());
    live.end().unwrap();
    assert_eq!(load.affinities(), before);
}

#[test]
fn rights_that_are_lost_half_way() {
    if !root() {
        return notrun::not_run("only root has rights to lose");
    }
    if !several_cpus("affinity that is narrower than before") {
        return;
    }
    let load = Load::start(&["threads", "3"]);
    let before = load.affinities();
    let mut governor = load.governor("lose");
    assert!(load.has_one_cpu());
    // It may not give any cpu now, tries for a while, and ends.
    load.busy(true);
    let limit = Instant::now() + LIMIT;
    let status = loop {
        if let Some(status) = governor.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < limit, "it governs on");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(status.code(), Some(1));
    // Its guard still has its rights.
    load.becomes(&before);
}

#[test]
fn a_governor_that_was_stopped_goes_on() {
    if !several_cpus("a load that needs more than one core") {
        return;
    }
    let load = Load::start(&["threads", "3"]);
    let before = load.affinities();
    let governor = load.governor("grow");
    kill(governor.id(), libc::SIGSTOP);
    load.busy(true);
    std::thread::sleep(Duration::from_millis(300));
    assert!(load.has_one_cpu());
    kill(governor.id(), libc::SIGCONT);
    load.becomes(&before);
    end(governor);
}

/// A process that waits, with this number; `None` where that cannot be arranged.
fn with_number(pid: u32) -> Option<u32> {
    let number = pid.cast_signed();
    let limit = Instant::now() + Duration::from_secs(5);
    loop {
        // SAFETY: all bytes zero are a valid clone_args.
        let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
        arguments.exit_signal = libc::SIGCHLD as u64;
        arguments.set_tid = (&raw const number).addr() as u64;
        arguments.set_tid_size = 1;
        let size = size_of_val(&arguments);
        // SAFETY: as fork; the kernel reads `arguments`, and the number that it points to.
        let child = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size) };
        if child == 0 {
            // SAFETY: the child calls nothing that takes a lock.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                loop {
                    libc::pause();
                }
            }
        }
        if child > 0 {
            return Some(child as u32);
        }
        // The one that had it is still there, until somebody has waited for it.
        let taken = std::io::Error::last_os_error().raw_os_error() == Some(libc::EEXIST);
        if !taken || Instant::now() > limit {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_number_that_is_used_again_is_another_process() {
    if !several_cpus("affinity that is narrower than before") {
        return;
    }
    let load = Load::start(&["backends", "3"]);
    let mut live = governed(&load);
    let one = live.check().unwrap().remove(0);
    let child = load.children()[0];
    assert_eq!(load::affinities(child), [one.cpus()]);
    // All of them end; who had a child of that number is no more.
    drop(load);
    let Some(stranger) = with_number(child) else {
        return notrun::not_run("no process can be given a number here (clone3)");
    };
    // Neither the group's cpus nor those from before.
    let own: CpuSet = all_cpus().iter().last().into_iter().collect();
    placement::apply::bind(stranger.cast_signed(), &own).unwrap();
    let ended = live.check().unwrap_err();
    assert!(matches!(ended, Error::Ended { .. }), "{ended}");
    drop(live);
    assert_eq!(stranger, child);
    assert_eq!(load::affinities(stranger), [own]);
    kill(stranger, libc::SIGKILL);
    // SAFETY: the process is a child of this one, and nobody else waits for it.
    unsafe { libc::waitpid(stranger.cast_signed(), std::ptr::null_mut(), 0) };
}
