//! Machines: nodes, cores, memory, distances.

use ::topology::Machine;
use pyo3::prelude::*;

use crate::error::InterfaceError;

/// A node: its number, that of the operating system, the cpus of each core, bytes of memory, and of them free.
type Node = (usize, u32, Vec<Vec<u32>>, u64, Option<u64>);

/// Its name, its nodes, the distances between them, and a drawing.
type Described = (String, Vec<Node>, Vec<Vec<u32>>, String);

/// A machine: this one if `spec` is `live`, or else what `atoll topology --machine` takes.
///
/// # Errors
/// [`InterfaceError`] if it cannot be read.
#[pyfunction]
pub(crate) fn topology(py: Python<'_>, spec: &str) -> PyResult<Described> {
    let machine = py.detach(|| Machine::parse(spec));
    let machine = machine.map_err(|e| InterfaceError::new_err(e.to_string()))?;
    let nodes = machine.nodes();
    let described = nodes.iter().map(|node| {
        let cores = node.cores.iter().map(|core| core.cpus.clone());
        (
            node.index,
            node.os_index,
            cores.collect(),
            node.memory_bytes,
            node.free_bytes,
        )
    });
    let row = |from: usize| {
        (0..nodes.len())
            .map(|to| machine.distance(from, to))
            .collect()
    };
    Ok((
        machine.name().to_owned(),
        described.collect(),
        (0..nodes.len()).map(row).collect(),
        machine.render(),
    ))
}
