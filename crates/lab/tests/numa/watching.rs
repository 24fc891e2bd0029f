//! What is read of other processes, against what they are known to do.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use counters::{Error, Nodes, System, Watch};
use placement::CpuSet;
use placement::apply;

use crate::place::{alone, cpus, machine, probe, several_nodes, with_cores};

const MIB: u64 = 8;

/// A program with known behaviour, killed on drop.
struct Probe(Child);

impl Probe {
    fn new(words: &[&str]) -> Probe {
        let mut command = Command::new(probe());
        Probe(command.args(words).stdout(Stdio::piped()).spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Waits until it says that it is ready.
    fn ready(&mut self) {
        let mut text = [0; 6];
        self.0
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut text)
            .unwrap();
        assert_eq!(&text, b"ready\n");
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn kill(pid: u32) {
    // SAFETY: a signal to a process that a test started and still watches.
    unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) };
}

fn watch(pid: u32) -> Watch {
    Watch::new(&System::real(), &Nodes::new(&machine()), pid, true).unwrap()
}

#[test]
fn memory_of_a_process_and_its_children_is_seen_on_its_nodes() {
    let _alone = alone();
    let machine = machine();
    if !several_nodes(&machine) {
        return;
    }
    let nodes: Vec<String> = machine
        .nodes()
        .iter()
        .map(|node| node.os_index.to_string())
        .collect();
    let mut probe = Probe::new(&["hold", &nodes.join(","), &MIB.to_string(), "60"]);
    probe.ready();
    let mut watch = watch(probe.pid());
    let sample = watch.look().unwrap();
    assert_eq!(
        sample.processes.len(),
        nodes.len(),
        "each node has a process of its own"
    );
    let memory = sample.memory();
    for node in machine.nodes() {
        let bytes = memory[&node.os_index];
        assert!(bytes >= MIB << 20, "node {}: {bytes} bytes", node.os_index);
        // Programs and libraries come on top, on whichever node.
    }
    let own =
        |held: &BTreeMap<u32, u64>| held.values().filter(|bytes| **bytes >= MIB << 20).count();
    for seen in &sample.processes {
        let held = seen.memory.as_ref().unwrap();
        let held = held
            .nodes
            .iter()
            .copied()
            .zip(held.bytes.iter().copied())
            .collect();
        assert_eq!(
            own(&held),
            1,
            "a process holds memory on one node: {held:?}"
        );
    }
    for seen in &sample.processes {
        kill(seen.activity.process);
    }
}

#[test]
fn a_process_that_dies_while_watched_leaves_its_children() {
    let _alone = alone();
    let node = machine().nodes()[0].os_index;
    let nodes = format!("{node},{node},{node}");
    let mut probe = Probe::new(&["hold", &nodes, "1", "60"]);
    probe.ready();
    let mut watch = watch(probe.pid());
    let first = watch.look().unwrap();
    assert_eq!((first.processes.len(), watch.root_ended()), (3, false));
    kill(probe.pid());
    probe.0.wait().unwrap();
    let second = watch.look().unwrap();
    assert_eq!(
        (second.processes.len(), second.ended.as_slice()),
        (2, &[probe.pid()][..])
    );
    assert!(watch.root_ended());
    for seen in &second.processes {
        kill(seen.activity.process);
    }
    // They are no children of ours: it takes as long as it takes until they are gone.
    let until = Instant::now() + Duration::from_secs(20);
    while !matches!(watch.look(), Err(Error::Ended { .. })) {
        assert!(Instant::now() < until, "they are still there");
        std::thread::sleep(Duration::from_millis(20));
    }
    let summary = watch.summary();
    assert_eq!((summary.processes, summary.processes_ended), (3, 3));
}

#[test]
fn a_process_that_forks_and_dies_is_watched_to_its_end() {
    let _alone = alone();
    // Children come and go all the time; at last it kills itself with some still there.
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do for j in 1 2 3 4; do sleep 0.0$j & done; \
        sleep 0.03; done; kill -9 $$";
    let child = Command::new("sh").args(["-c", script]).spawn().unwrap();
    let mut probe = Probe(child);
    let mut watch = watch(probe.pid());
    let error = loop {
        // A process that has ended and has not been waited for is still listed.
        let _ = probe.0.try_wait();
        match watch.look() {
            Ok(sample) => assert!(!sample.processes.is_empty()),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Ended { .. }), "{error}");
    let summary = watch.summary();
    assert!(summary.processes > 1, "children were seen: {summary:?}");
    assert_eq!(summary.processes, summary.processes_ended);
}

#[test]
fn time_is_counted_on_the_node_of_the_cpus_and_nothing_migrates_there() {
    let _alone = alone();
    let machine = machine();
    let node = *with_cores(&machine).last().unwrap();
    let cpu = cpus(node)[0];
    let mut probe = {
        // Children start where their parent is.
        let _pinned = apply::pin(&CpuSet::from(vec![cpu])).unwrap();
        Probe::new(&["spin", "1", "2"])
    };
    let mut watch = watch(probe.pid());
    while watch.look().is_ok() {
        std::thread::sleep(Duration::from_millis(100));
        let _ = probe.0.try_wait();
    }
    let summary = watch.summary();
    let seconds = &summary.seconds_by_node;
    assert_eq!(
        seconds.keys().copied().collect::<Vec<_>>(),
        [node.os_index],
        "{seconds:?}"
    );
    assert!(seconds[&node.os_index] > 0.2, "{seconds:?}");
    assert_eq!(summary.migrations.unwrap_or(0), 0);
}
