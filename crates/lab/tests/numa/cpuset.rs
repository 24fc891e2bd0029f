//! Inside a cpuset there is only what it allows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use memory::Arena;

use crate::place::{alone, cpus, fit, machine, several_nodes, with_cores};
use crate::system::{pages_of, resident};
use crate::threads::{look, workers};

/// What the test inside is told: the cpus and the memory node that are allowed.
const ALLOWED: &str = "NUMA_ALLOWED_CPUS";
const NODE: &str = "NUMA_ALLOWED_NODE";

/// A control group, removed on drop.
struct Group(PathBuf);

impl Group {
    fn new(name: &str) -> std::io::Result<Group> {
        let root = Path::new("/sys/fs/cgroup");
        fs::write(root.join("cgroup.subtree_control"), "+cpuset")?;
        let path = root.join(name);
        fs::create_dir(&path)?;
        Ok(Group(path))
    }

    fn set(&self, what: &str, value: &str) {
        fs::write(self.0.join(what), value).unwrap();
    }

    /// Runs one test of this program inside.
    fn run(&self, test: &str, environment: &[(&str, String)]) {
        let script = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.0.display());
        let output = Command::new("sh")
            .args(["-c", &script, "sh"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .envs(environment.iter().map(|(name, value)| (*name, value)))
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{test} inside: {text}"
        );
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The kernel takes a moment to notice that the last process has ended.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// Run inside a cpuset by the tests below; outside, for all that this process may use.
#[test]
fn workers_and_memory_keep_to_what_is_allowed() {
    let outside = std::env::var(ALLOWED).is_err();
    let _alone = outside.then(alone);
    let machine = machine();
    let allowed: Vec<u32> = machine.nodes().iter().flat_map(cpus).collect();
    if let Ok(expected) = std::env::var(ALLOWED) {
        let expected: Vec<u32> = expected
            .split(',')
            .map(|cpu| cpu.parse().unwrap())
            .collect();
        assert_eq!(allowed, expected, "the machine is what is allowed");
    }
    // Many more than there are cpus.
    let seen = look(&workers(&machine, allowed.len() * 3));
    assert_eq!(seen.len(), allowed.len() * 3);
    assert!(
        seen.values().all(|seen| allowed.contains(&seen.cpu)),
        "{seen:?}"
    );

    let Ok(node) = std::env::var(NODE) else {
        return;
    };
    let node: u32 = node.parse().unwrap();
    for asked in [None, Some(node), Some(0)] {
        let arena = Arena::new(1 << 20, asked).unwrap();
        let pages = pages_of(&arena);
        for page in &pages {
            // SAFETY: inside the arena, which is ours alone.
            unsafe { page.cast_mut().write(1) };
        }
        assert_eq!(
            resident(&pages),
            [(node, pages.len())],
            "asked for {asked:?}"
        );
        let refused = asked.is_some_and(|asked| asked != node);
        assert_eq!(
            arena.notes().len(),
            usize::from(refused),
            "{:?}",
            arena.notes()
        );
    }
}

/// Two cpus of the last node that has cores, and its memory.
#[test]
fn a_cpuset_smaller_than_asked() {
    let _alone = alone();
    let machine = machine();
    if !several_nodes(&machine) {
        return;
    }
    let group = Group::new("atoll-lab-test");
    let why = group
        .as_ref()
        .err()
        .map_or_else(String::new, ToString::to_string);
    if !fit(
        &format!("the right to make a cpuset ({why})"),
        group.is_ok(),
    ) {
        return;
    }
    let group = group.unwrap();
    let node = *with_cores(&machine).last().unwrap();
    let cpus: Vec<String> = cpus(node).iter().take(2).map(ToString::to_string).collect();
    group.set("cpuset.cpus", &cpus.join(","));
    group.set("cpuset.mems", &node.os_index.to_string());
    let environment = [(ALLOWED, cpus.join(",")), (NODE, node.os_index.to_string())];
    group.run(
        "cpuset::workers_and_memory_keep_to_what_is_allowed",
        &environment,
    );
}
