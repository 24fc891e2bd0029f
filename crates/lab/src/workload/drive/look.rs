//! Where the memory and the threads of the program under test are.

use std::collections::BTreeMap;

use counters::{Holds, Looker, Nodes, Process, System};
use serde::{Deserialize, Serialize};
use topology::Machine;

use crate::error::{Error, Result};

/// The most processes that are looked at.
const MOST: usize = 256;

/// The place of memory and threads of the program and its descendants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Resident memory by node, ascending.
    pub nodes: Vec<OnNode>,
    /// Threads that were there.
    pub threads: Vec<Thread>,
}

/// Resident memory on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnNode {
    /// The system's number of the node.
    pub node: u32,
    /// Bytes of the program's own and shared memory: pools, tables, heaps.
    pub data: u64,
    /// Bytes of mapped files, stacks and the like: the program itself, for the most part.
    pub files: u64,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// How often it was moved to another cpu; `None` if the kernel does not say.
    pub migrations: Option<u64>,
}

/// Looks at a process and its descendants. Memory that several of them map is counted for each.
///
/// # Errors
///
/// [`Error::Drive`] if the process cannot be looked at. A descendant that ends meanwhile is no error.
pub(super) fn look(program: &str, pid: u32) -> Result<Look> {
    let failed = |error: &dyn std::fmt::Display| Error::Drive {
        program: program.to_owned(),
        why: format!("cannot look at it: {error}"),
    };
    let system = System::real();
    let nodes = Nodes::new(&Machine::live()?);
    let looker = Looker::new(&system, &nodes);
    let mut nodes_of: BTreeMap<u32, OnNode> = BTreeMap::new();
    let mut look = Look::default();
    let mut family = vec![pid];
    let mut at = 0;
    while let Some(pid) = family.get(at).copied().filter(|_| at < MOST) {
        at += 1;
        let process = match Process::open(&system, pid) {
            Ok(process) => process,
            Err(error) if at == 1 => return Err(failed(&error)),
            Err(_) => continue,
        };
        family.extend(process.children().unwrap_or_default());
        match looker.look(&process) {
            Ok(residency) => {
                for region in &residency.regions {
                    for (node, bytes) in residency.nodes.iter().zip(&region.bytes) {
                        add(
                            nodes_of.entry(*node).or_default(),
                            *node,
                            &region.holds,
                            *bytes,
                        );
                    }
                }
            }
            Err(error) if at == 1 => return Err(failed(&error)),
            Err(_) => continue,
        }
        for id in process.threads().unwrap_or_default() {
            look.threads.push(Thread {
                id,
                name: name(pid, id),
                migrations: process.migrations(id),
            });
        }
    }
    look.nodes = nodes_of.into_values().collect();
    Ok(look)
}

fn add(on: &mut OnNode, node: u32, holds: &Holds, bytes: u64) {
    on.node = node;
    match holds {
        Holds::Heap | Holds::Anonymous(_) | Holds::Shared(_) => on.data += bytes,
        _ => on.files += bytes,
    }
}

fn name(process: u32, thread: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/comm"));
    name.map(|name| name.trim().to_owned()).unwrap_or_default()
}
