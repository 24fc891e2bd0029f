//! The topology that hwloc reads from this system or builds from a synthetic description.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;

use hwlocality::Topology;
use hwlocality::object::TopologyObject;
use hwlocality::object::attributes::ObjectAttributes;
use hwlocality::object::distance::DistancesKind;
use hwlocality::object::types::{CacheType, ObjectType};

use crate::machine::{Cache, CacheKind, Core};
use crate::parts::{Cpus, Memory, Parts};

/// Reads this system; cpus that are not `allowed` are left out.
///
/// # Errors
///
/// What is wrong, as half a sentence.
pub(crate) fn system(allowed: &Cpus) -> Result<Parts, String> {
    guarded(|| {
        let topology = Topology::builder()
            .build()
            .map_err(|error| error.to_string())?;
        if !topology.is_this_system() {
            return Err("HWLOC_XMLFILE or HWLOC_SYNTHETIC is set".to_owned());
        }
        Ok(convert(&topology, Some(allowed)))
    })
}

/// Builds what a synthetic description says, which must have been checked for its size.
///
/// # Errors
///
/// What is wrong, as half a sentence.
pub(crate) fn synthetic(description: &str) -> Result<Parts, String> {
    guarded(|| {
        let builder = Topology::builder().from_synthetic(description);
        let builder = builder.map_err(|_| "hwloc does not understand it".to_owned())?;
        let topology = builder.build().map_err(|error| error.to_string())?;
        Ok(convert(&topology, None))
    })
}

/// Turns a panic of the Rust binding into an error: it asserts what hwloc promises, and an odd system is no reason to
/// end the process.
fn guarded(read: impl FnOnce() -> Result<Parts, String>) -> Result<Parts, String> {
    let attempt = std::panic::catch_unwind(AssertUnwindSafe(read));
    attempt.unwrap_or_else(|_| Err("hwloc does not understand it".to_owned()))
}

fn convert(topology: &Topology, allowed: Option<&Cpus>) -> Parts {
    let nodes: Vec<&TopologyObject> = topology.objects_with_type(ObjectType::NUMANode).collect();
    let package = topology.objects_with_type(ObjectType::Package).next();
    let about = package.and_then(|package| package.info("CPUModel"));
    let caches = topology
        .objects()
        .filter(|object| object.object_type().is_cpu_cache());
    Parts {
        about: about.map_or_else(String::new, |text| text.to_string_lossy().trim().to_owned()),
        memories: nodes.iter().enumerate().map(memory).collect(),
        cores: cores(topology, allowed),
        caches: caches.filter_map(cache).collect(),
        distances: distances(topology, &nodes),
        notes: Vec::new(),
    }
}

fn memory((index, object): (usize, &&TopologyObject)) -> Memory {
    let bytes = match object.attributes() {
        Some(ObjectAttributes::NUMANode(numa)) => numa.local_memory().map_or(0, u64::from),
        _ => 0,
    };
    Memory {
        os_index: number(object).unwrap_or(index as u32),
        bytes,
        cpus: cpus(object),
    }
}

/// The operating system's number of an object.
fn number(object: &TopologyObject) -> Option<u32> {
    object
        .os_index()
        .and_then(|index| u32::try_from(index).ok())
}

/// The cpus below an object.
fn cpus(object: &TopologyObject) -> Cpus {
    let set = object.cpuset();
    let indexes = set.iter().flat_map(|set| set.iter_set());
    indexes
        .filter_map(|index| u32::try_from(usize::from(index)).ok())
        .collect()
}

/// All cores in the order of the machine. Where there are none each hardware thread is one.
fn cores(topology: &Topology, allowed: Option<&Cpus>) -> Vec<Core> {
    let mut cores: Vec<Core> = Vec::new();
    let mut by_object = BTreeMap::new();
    for unit in topology.objects_with_type(ObjectType::PU) {
        let Some(cpu) = number(unit) else { continue };
        if allowed.is_some_and(|allowed| !allowed.contains(&cpu)) {
            continue;
        }
        let object = unit
            .first_ancestor_with_type(ObjectType::Core)
            .unwrap_or(unit);
        let at = *by_object
            .entry(object.global_persistent_index())
            .or_insert_with(|| {
                let package = unit
                    .first_ancestor_with_type(ObjectType::Package)
                    .and_then(number);
                cores.push(Core {
                    cpus: Vec::new(),
                    package,
                });
                cores.len() - 1
            });
        cores[at].cpus.push(cpu);
    }
    cores
}

fn cache(object: &TopologyObject) -> Option<Cache> {
    let Some(ObjectAttributes::Cache(attributes)) = object.attributes() else {
        return None;
    };
    Some(Cache {
        level: u8::try_from(attributes.depth()).unwrap_or(u8::MAX),
        kind: match attributes.cache_type() {
            CacheType::Data => CacheKind::Data,
            CacheType::Instruction => CacheKind::Instruction,
            _ => CacheKind::Unified,
        },
        bytes: attributes.size().map_or(0, u64::from),
        cpus: cpus(object).into_iter().collect(),
    })
}

/// The latency matrix over all nodes; `None` where there is none.
fn distances(topology: &Topology, nodes: &[&TopologyObject]) -> Option<Vec<u64>> {
    let kind = Some(DistancesKind::MEANS_LATENCY);
    let found = topology
        .distances_with_type(kind, ObjectType::NUMANode)
        .ok()?;
    let matrix = found
        .iter()
        .find(|matrix| matrix.num_objects() == nodes.len())?;
    // Position in the matrix of each of our nodes.
    let order: Vec<usize> = nodes
        .iter()
        .map(|node| matrix.object_idx(node))
        .collect::<Option<_>>()?;
    let (count, values) = (nodes.len(), matrix.distances());
    let cells = order
        .iter()
        .flat_map(|&a| order.iter().map(move |&b| values[a * count + b]));
    Some(cells.collect())
}
