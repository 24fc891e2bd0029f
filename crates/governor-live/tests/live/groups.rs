//! Control groups as targets and as means. Needs one of our own, which root can make.

use std::fs;
use std::path::{Path, PathBuf};

use governor_live::{Live, Means, Target};
use placement::CpuSet;

use super::load::{self, Load, options, until};

/// A group with a cpuset, below the hierarchy's root.
struct Group(PathBuf);

impl Group {
    /// `None` where this user or this machine has none, which is said.
    fn new(name: &str) -> Option<Group> {
        let one = Path::new("/sys/fs/cgroup/cpuset");
        let two = Path::new("/sys/fs/cgroup");
        let name = format!("atoll-test-{name}-{}", std::process::id());
        let made = if one.join("cpuset.cpus").exists() {
            let folder = one.join(name);
            let copy =
                |file: &str| fs::write(folder.join(file), fs::read_to_string(one.join(file))?);
            fs::create_dir(&folder)
                .and_then(|()| copy("cpuset.mems"))
                .and_then(|()| copy("cpuset.cpus"))
                .map(|()| folder.clone())
        } else {
            let folder = two.join(name);
            let enabled = fs::write(two.join("cgroup.subtree_control"), "+cpuset");
            enabled
                .and_then(|()| fs::create_dir(&folder))
                .map(|()| folder)
        };
        match made {
            Ok(folder) => Some(Group(folder)),
            Err(error) => {
                notrun::not_run(format!("no control group can be made here: {error}"));
                None
            }
        }
    }

    fn take(&self, load: &Load) {
        fs::write(self.0.join("cgroup.procs"), load.pid().to_string()).unwrap();
    }

    fn cpus(&self) -> String {
        let text = fs::read_to_string(self.0.join("cpuset.cpus")).unwrap();
        text.trim().to_owned()
    }

    fn set(&self, cpus: &CpuSet) {
        fs::write(self.0.join("cpuset.cpus"), cpus.to_string()).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let above = self.0.parent().unwrap().join("cgroup.procs");
        let list = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        for pid in list.lines() {
            let _ = fs::write(&above, pid);
        }
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_group_is_governed_and_put_back() {
    let Some(group) = Group::new("target") else {
        return;
    };
    let load = Load::start(&["threads", "3"]);
    group.take(&load);
    let before = group.cpus();
    let mut options = options(&load);
    options.means = Means::Auto;
    options.exclusive = true;
    let wanted = load::wanted(Target::Cgroup(group.0.clone()));
    let mut live = Live::begin(vec![wanted], options).unwrap();
    if !group.0.join("cpuset.cpus.partition").exists() {
        let notes = live.notes();
        assert!(
            notes.iter().any(|note| note.contains("generation two")),
            "{notes:?}"
        );
    }
    let first = live.check().unwrap().remove(0);
    assert_eq!(group.cpus(), first.cpus().to_string());
    let second = Live::begin(
        vec![load::wanted(Target::Cgroup(group.0.clone()))],
        load::options(&load),
    );
    let error = second.unwrap_err().to_string();
    assert!(error.starts_with("this control group"), "{error}");
    load.busy(true);
    let all = load::all_cpus();
    let grown = until(&mut live, |decision| decision.cpus.len() == all.len());
    assert_eq!(group.cpus(), grown.cpus().to_string());
    live.end().unwrap();
    assert_eq!(group.cpus(), before);
}

#[test]
fn processes_go_into_a_group_of_our_own_and_back() {
    let Some(_can) = Group::new("own") else {
        return;
    };
    let load = Load::start(&["backends", "5"]);
    let place = |pid: u32| fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let before = place(load.pid());
    let cpus = load.affinities();
    let mut options = options(&load);
    options.means = Means::Cgroup;
    let mut live = load.govern(options).unwrap();
    let first = live.check().unwrap().remove(0);
    assert_ne!(place(load.pid()), before);
    assert_eq!(load.affinities(), [first.cpus()]);
    live.check().unwrap();
    live.end().unwrap();
    assert_eq!(place(load.pid()), before);
    assert_eq!(load.affinities(), cpus);
}

#[test]
fn processes_of_another_group_stay_in_it() {
    let Some(other) = Group::new("other") else {
        return;
    };
    let load = Load::start(&["backends", "2"]);
    let child = load.children()[0];
    fs::write(other.0.join("cgroup.procs"), child.to_string()).unwrap();
    let place = |pid: u32| fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let before = (place(load.pid()), place(child));
    let mut options = options(&load);
    options.means = Means::Cgroup;
    let mut live = load.govern(options).unwrap();
    live.check().unwrap();
    let notes = live.notes();
    assert!(
        notes
            .iter()
            .any(|note| note.contains("stay in their groups")),
        "{notes:?}"
    );
    assert_ne!(place(load.pid()), before.0);
    assert_eq!(place(child), before.1);
    live.end().unwrap();
    assert_eq!((place(load.pid()), place(child)), before);
}

#[test]
fn a_cpuset_that_somebody_else_shrinks_is_respected() {
    if !load::several_cpus("a cpuset that can shrink") {
        return;
    }
    let Some(group) = Group::new("shrunk") else {
        return;
    };
    let load = Load::start(&["threads", "4"]);
    let before = load.affinities();
    group.take(&load);
    let all = load::all_cpus();
    let last: CpuSet = all.iter().last().into_iter().collect();
    let mut live = load::governed(&load);
    load.busy(true);
    until(&mut live, |decision| decision.cpus.len() == all.len());
    group.set(&last);
    let shrunk = until(&mut live, |decision| decision.cpus() == last);
    assert_eq!(shrunk.available, last.to_string());
    group.set(&all);
    until(&mut live, |decision| decision.cpus.len() == all.len());
    live.end().unwrap();
    assert_eq!(load.affinities(), before);
}
