//! Pages that follow the cores.

use std::collections::BTreeSet;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use counters::{Nodes, System, Watch};
use governor::{Decision, Policy};
use governor_live::{Error, Live, Means, Options, Target, Wanted};

use crate::place::{alone, machine, probe, several_nodes, with_cores};

/// What the process holds on each node.
const MIB: u64 = 8;
const HELD: u64 = MIB << 20;

/// After so long it counts as stuck: emulated machines are slow.
const LIMIT: Duration = Duration::from_secs(240);

fn begin(pid: u32, state: &std::path::Path) -> governor_live::Result<Live> {
    let wanted = Wanted {
        target: Target::Pid(pid),
        weight: 1.0,
        counter: None,
    };
    let options = Options {
        period: Duration::from_millis(50),
        means: Means::Affinity,
        migrate: true,
        ..Options::new(Policy::default(), state.to_owned())?
    };
    Live::begin(vec![wanted], options)
}

/// Bytes of the process and its children on each node, by the operating system's numbers.
fn memory(watch: &mut Watch) -> Vec<(u32, u64)> {
    let sample = watch.look().unwrap();
    let memory = sample.memory();
    let machine = machine();
    let nodes = with_cores(&machine);
    nodes
        .into_iter()
        .map(|node| {
            (
                node.os_index,
                memory.get(&node.os_index).copied().unwrap_or(0),
            )
        })
        .collect()
}

/// Governs until what the process held is on the node of its core. Returns that node, and the decisions that moved pages.
fn until_moved(live: &mut Live, watch: &mut Watch, before: &[(u32, u64)]) -> (u32, Vec<Decision>) {
    let machine = machine();
    let begun = Instant::now();
    let mut moved: Vec<Decision> = Vec::new();
    // It is idle, so that it has one core.
    loop {
        let check = Instant::now();
        let decision = live.check().unwrap().remove(0);
        let kept = machine.node_of_cpu(decision.cpus[0]).unwrap();
        let kept = machine.nodes()[kept].os_index;
        assert_eq!(decision.cpus.len(), 1, "{decision}");
        if decision.migrated.is_some() {
            moved.push(decision);
            // Code and what is shared stay where they are, which is anywhere; what the process holds leaves.
            let left = |(before, now): (&(u32, u64), &(u32, u64))| {
                before.0 == kept || now.1 + HELD / 10 * 9 <= before.1
            };
            if before.iter().zip(&memory(watch)).all(left) {
                return (kept, moved);
            }
        }
        assert!(begun.elapsed() < LIMIT, "{:?}, {moved:?}", memory(watch));
        std::thread::sleep(live.pause(check));
    }
}

#[test]
fn pages_follow_the_cores_of_a_governed_process() {
    let _alone = alone();
    let machine = machine();
    let folder = tempfile::tempdir().unwrap();
    if with_cores(&machine).len() == 1 {
        // The other half of what is promised.
        let refused = begin(std::process::id(), folder.path());
        assert!(matches!(refused, Err(Error::Command { .. })), "{refused:?}");
    }
    if !several_nodes(&machine) {
        return;
    }
    let nodes: Vec<String> = machine
        .nodes()
        .iter()
        .map(|node| node.os_index.to_string())
        .collect();
    let mut child = Command::new(probe())
        .args(["hold", &nodes.join(","), &MIB.to_string(), "600"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut text = [0; 6];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut text)
        .unwrap();
    let pid = child.id();
    let mut watch = Watch::new(&System::real(), &Nodes::new(&machine), pid, true).unwrap();
    let before = memory(&mut watch);
    assert!(before.iter().all(|(_, bytes)| *bytes >= HELD), "{before:?}");

    let mut live = begin(pid, folder.path()).unwrap();
    let (kept, moved) = until_moved(&mut live, &mut watch, &before);
    let told: BTreeSet<u32> = moved
        .iter()
        .flat_map(|one| one.migrated.clone().unwrap().from)
        .collect();
    let others = machine
        .nodes()
        .iter()
        .map(|node| node.os_index)
        .filter(|node| *node != kept);
    // The core may have gone to where more of the pages are, once or twice.
    assert!(told.is_superset(&others.collect()), "{told:?}");
    for decision in &moved {
        let migrated = decision.migrated.clone().unwrap();
        let own = machine.node_of_cpu(decision.cpus[0]).unwrap();
        assert_eq!(migrated.to, [machine.nodes()[own].os_index]);
        // A part at a time.
        assert!(
            migrated.pages <= 2048 && migrated.bytes == migrated.pages * 4096,
            "{migrated:?}"
        );
        assert!(
            decision.to_string().contains("moved from node"),
            "{decision}"
        );
    }
    live.end().unwrap();
    let after = memory(&mut watch);
    let on_kept = after
        .iter()
        .find(|(node, _)| *node == kept)
        .map_or(0, |(_, bytes)| *bytes);
    let all = before.len() as u64 * HELD;
    assert!(on_kept > all / 10 * 9, "{before:?}, {after:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}
