//! [`Machine::live`]: the running system, as far as this process may use it.

use std::fs;

use crate::error::{Error, Result};
use crate::hwloc;
use crate::machine::{Core, Machine, Source};
use crate::parts::{Cpus, Memory, Parts};

impl Machine {
    /// The running system: only the nodes' cpus this process may use (cpusets, `taskset`).
    ///
    /// Where hwloc cannot read the system, as in some containers, the answer is one node with
    /// the allowed cpus, and [`notes`](Machine::notes) says so.
    ///
    /// # Errors
    ///
    /// [`Error::Live`] where not even the allowed cpus can be read.
    pub fn live() -> Result<Machine> {
        machine()
    }
}

/// The live machine; one node with the allowed cpus where hwloc fails.
fn machine() -> Result<Machine> {
    let cpus = allowed()?;
    let parts = match hwloc::system(&cpus.iter().copied().collect()) {
        Ok(parts) if !parts.cores.is_empty() && !parts.memories.is_empty() => parts,
        Ok(_) => flat(&cpus, "it shows none of the cpus this process may use"),
        Err(why) => flat(&cpus, &why),
    };
    let mut machine = parts.into_machine("live".into(), Source::Live)?;
    for node in &mut machine.nodes {
        node.free_bytes = free(node.os_index);
    }
    Ok(machine)
}

/// One node with these cpus, and a note that says why.
fn flat(cpus: &[u32], why: &str) -> Parts {
    let bytes = memory().unwrap_or(0);
    let note = format!("hwloc cannot read this system ({why}): taken as one node");
    Parts {
        memories: vec![Memory {
            os_index: 0,
            bytes,
            cpus: Cpus::from_iter(cpus.iter().copied()),
        }],
        cores: cpus
            .iter()
            .map(|&cpu| Core {
                cpus: vec![cpu],
                package: None,
            })
            .collect(),
        notes: vec![note],
        ..Parts::default()
    }
}

/// How many memory nodes this machine has, at least one. Cheaper than [`Machine::live`], as nothing else is looked at.
pub fn live_nodes() -> usize {
    let numbered = |name: &str| name.strip_prefix("node")?.parse::<u32>().ok();
    let entries = fs::read_dir("/sys/devices/system/node");
    let entries = entries.into_iter().flatten().flatten();
    let nodes = entries.filter(|entry| entry.file_name().to_str().and_then(numbered).is_some());
    nodes.count().max(1)
}

/// Physical memory in bytes.
fn memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    field(&text, "MemTotal:")
}

/// Free memory of a node in bytes; of the whole system where nodes are not told apart.
fn free(os_index: u32) -> Option<u64> {
    let node = format!("/sys/devices/system/node/node{os_index}/meminfo");
    let text = match fs::read_to_string(node) {
        Ok(text) => text,
        Err(_) if os_index == 0 => fs::read_to_string("/proc/meminfo").ok()?,
        Err(_) => return None,
    };
    field(&text, "MemFree:")
}

/// The value after `key`, in bytes, in lines such as `Node 0 MemFree: 12 kB`.
fn field(text: &str, key: &str) -> Option<u64> {
    let mut words = text
        .split_whitespace()
        .skip_while(|word| *word != key)
        .skip(1);
    words.next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The cpus this process may run on, ascending.
fn allowed() -> Result<Vec<u32>> {
    /// The kernel refuses masks shorter than its own; no kernel is built for more cpus.
    const WORDS: usize = 8192 / 64;
    let mut mask = [0u64; WORDS];
    // SAFETY: getpid has no preconditions.
    let process = unsafe { libc::getpid() };
    // SAFETY: the kernel writes at most `size_of_val(&mask)` bytes into `mask`, which is ours.
    let written = unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            process,
            size_of_val(&mask),
            mask.as_mut_ptr(),
        )
    };
    if written <= 0 {
        let why = std::io::Error::last_os_error().to_string();
        return Err(Error::Live { why });
    }
    let set = |cpu: &usize| mask[cpu / 64] >> (cpu % 64) & 1 == 1;
    Ok((0..WORDS * 64).filter(set).map(|cpu| cpu as u32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_hwloc_there_is_one_node_and_a_note() {
        let found = flat(&[3, 5], "not mounted");
        let machine = found.into_machine("live".into(), Source::Live).unwrap();
        assert_eq!((machine.nodes().len(), machine.cpus()), (1, 2));
        assert_eq!(machine.node_of_cpu(5), Some(0));
        assert!(machine.notes()[0].contains("not mounted"));
        assert!(
            machine.nodes()[0].memory_bytes > 0,
            "Linux says how much memory there is"
        );
    }

    #[test]
    fn fields_of_both_formats() {
        assert_eq!(
            field("Node 1 MemTotal: 8 kB\nNode 1 MemFree:  3 kB\n", "MemFree:"),
            Some(3072)
        );
        assert_eq!(
            field("MemTotal: 8 kB\nMemFree: 3 kB\n", "MemTotal:"),
            Some(8192)
        );
        assert_eq!(field("MemTotal: lots", "MemTotal:"), None);
        assert_eq!(field("", "MemTotal:"), None);
    }
}
