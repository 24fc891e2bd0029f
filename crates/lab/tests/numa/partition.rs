//! Cpus that a governed control group has for itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use governor::Policy;
use governor_live::{Live, Means, Options, Target, Wanted};
use placement::CpuSet;

use crate::place::{alone, fit};

/// A control group with a process in it; both go with it.
struct Group(PathBuf, Child);

impl Group {
    fn new(folder: PathBuf) -> Group {
        let top = folder.parent().unwrap();
        fs::write(top.join("cgroup.subtree_control"), "+cpuset +cpu").unwrap();
        fs::create_dir(&folder).unwrap();
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        fs::write(folder.join("cgroup.procs"), child.id().to_string()).unwrap();
        Group(folder, child)
    }

    fn says(&self, file: &str) -> String {
        said(&self.0.join(file))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.1.kill();
        let _ = self.1.wait();
        remove(&self.0);
    }
}

/// The kernel takes a moment to notice that the last process has ended.
fn remove(folder: &Path) {
    for _ in 0..100 {
        if fs::remove_dir(folder).is_ok() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn begin(group: &Group, state: &Path) -> Live {
    with(Target::Cgroup(group.0.clone()), Means::Auto, state)
}

fn with(target: Target, means: Means, state: &Path) -> Live {
    let wanted = Wanted {
        target,
        weight: 1.0,
        counter: None,
    };
    let options = Options {
        period: Duration::from_millis(50),
        means,
        exclusive: true,
        ..Options::new(Policy::default(), state.to_owned()).unwrap()
    };
    Live::begin(vec![wanted], options).unwrap()
}

/// What a file says.
fn said(path: &Path) -> String {
    fs::read_to_string(path).unwrap().trim().to_owned()
}

/// The group above all others, where groups with cpus of their own may be made.
fn groups() -> Option<&'static Path> {
    let top = Path::new("/sys/fs/cgroup");
    let file = top.join("cgroup.subtree_control");
    let can = file.exists() && fs::write(file, "+cpuset +cpu").is_ok();
    fit("control groups of generation two that may be made", can).then_some(top)
}

/// The cpus that a group has.
fn effective(group: &Path) -> CpuSet {
    said(&group.join("cpuset.cpus.effective")).parse().unwrap()
}

fn without(cpus: &CpuSet, some: &CpuSet) -> CpuSet {
    cpus.iter().filter(|cpu| !some.contains(*cpu)).collect()
}

/// Cpus that are governed are still among those to choose from.
fn chooses_from(live: &mut Live, cpus: &CpuSet) {
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(700));
        let later = live.check().unwrap().remove(0);
        assert_eq!(later.available, cpus.to_string(), "{later}");
    }
}

#[test]
fn a_governed_group_has_its_cpus_for_itself_and_gives_them_back() {
    let _alone = alone();
    let Some(top) = groups() else { return };
    let state = tempfile::tempdir().unwrap();
    let group = Group::new(top.join("atoll-own"));
    let before = effective(top);
    let mut live = begin(&group, state.path());
    let decision = live.check().unwrap().remove(0);
    assert_eq!(group.says("cpuset.cpus.partition"), "root", "{decision}");
    assert_eq!(
        group.says("cpuset.cpus.effective"),
        decision.cpus().to_string()
    );
    assert_eq!(
        effective(top),
        without(&before, &decision.cpus()),
        "nobody else has them"
    );
    chooses_from(&mut live, &before);
    live.end().unwrap();
    assert_eq!(group.says("cpuset.cpus.partition"), "member");
    assert_eq!(group.says("cpuset.cpus.effective"), before.to_string());

    // Below a group that is no partition itself the kernel refuses: cpus are shared, and one line says why.
    let middle = top.join("atoll-middle");
    fs::create_dir(&middle).unwrap();
    let inner = Group::new(middle.join("inner"));
    let mut live = begin(&inner, state.path());
    let decision = live.check().unwrap().remove(0);
    assert_eq!(inner.says("cpuset.cpus.partition"), "member");
    assert_eq!(
        inner.says("cpuset.cpus.effective"),
        decision.cpus().to_string()
    );
    let notes = live.notes();
    assert!(
        notes.iter().any(|note| note.contains("stay shared")),
        "{notes:?}"
    );
    live.end().unwrap();
    drop(inner);
    remove(&middle);
}

/// The group that a governor makes itself: its cpus are its own, and all is gone at the end.
#[test]
fn a_group_of_the_governor_has_its_cpus_for_itself_and_goes() {
    let _alone = alone();
    let Some(top) = groups() else { return };
    let before = effective(top);
    let state = tempfile::tempdir().unwrap();
    let mut child = Command::new("sleep").arg("600").spawn().unwrap();
    let own_group = format!("/proc/{}/cgroup", child.id());
    let where_from = said(Path::new(&own_group));
    let mut live = with(Target::Pid(child.id()), Means::Cgroup, state.path());
    let decision = live.check().unwrap().remove(0);
    let now = said(Path::new(&own_group));
    let (_, path) = now.split_once("::/").unwrap();
    let folder = top.join(path);
    let told = live.notes();
    assert_eq!(
        said(&folder.join("cpuset.cpus.partition")),
        "root",
        "{decision}, {told:?}"
    );
    assert_eq!(
        effective(top),
        without(&before, &decision.cpus()),
        "nobody else has them"
    );
    chooses_from(&mut live, &before);
    live.end().unwrap();
    assert_eq!(said(Path::new(&own_group)), where_from);
    assert!(!folder.exists());
    assert_eq!(effective(top), before);
    child.kill().unwrap();
    child.wait().unwrap();
}
