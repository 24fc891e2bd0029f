//! What a plan reads of stored arrays, chunk by chunk, before it is run.

use crate::error::Result;
use crate::operators::source::Crew;
use crate::plan::builder::Plan;
use crate::plan::node::{Node, Operator};

/// A chunk that a plan reads, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// The logical node on whose memory most of it lies, as far as that is known; otherwise 0.
    pub home: usize,
    /// Bytes of its cells, uncompressed, with all attributes that there are at that place of the plan.
    pub bytes: u64,
    /// Its length along the first dimension: into how many parts it can be cut without cutting a run of cells.
    pub slabs: u64,
}

impl Plan {
    /// The parts of stored chunks that the plan reads, as far as operators ask for them chunk by chunk: those below
    /// aggregates, sorting and other operators that need whole inputs, and of all inputs of operators on several. `None` if
    /// there are more than `most`. Nothing is computed.
    ///
    /// # Errors
    /// What is wrong with the plan.
    pub fn reads(&self, most: usize) -> Result<Option<Vec<Read>>> {
        // What is wrong is found first, at its place.
        self.schema()?;
        let mut all = Vec::new();
        Ok(collect(&self.node, most, &mut all)?.then_some(all))
    }
}

/// Adds what a node reads; whether there was room.
fn collect(node: &Node, most: usize, all: &mut Vec<Read>) -> Result<bool> {
    let shrinks = matches!(
        node.operator,
        Operator::Aggregate(..)
            | Operator::Regrid(..)
            | Operator::Redimension(_)
            | Operator::Sort(_)
            | Operator::Matmul
    );
    if shrinks || node.inputs.len() > 1 {
        for input in &node.inputs {
            if !collect(input, most, all)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    if !stored(node) {
        return Ok(true);
    }
    let source = node.source(&Crew::default())?;
    let widths = source.schema().attributes().iter();
    let width: usize = widths.map(|of| of.data_type().width()).sum();
    let grid = source.grid();
    if grid.chunks() > (most - all.len()) as u64 {
        return Ok(false);
    }
    for chunk in grid.all() {
        let region = grid.region(&chunk);
        let bytes = region.cells("a chunk")? as u64 * width as u64;
        all.push(Read {
            home: source.home(&region),
            bytes,
            slabs: region.shape().first().copied().unwrap_or(1),
        });
    }
    Ok(true)
}

/// Whether a stored array is at the bottom of a node with one input or none.
fn stored(node: &Node) -> bool {
    matches!(node.operator, Operator::Scan(_)) || node.inputs.iter().any(|input| stored(input))
}
