//! What a machine specification may look like.

use crate::machine::{Core, Node, Source};
use crate::{Error, Machine, Result, SHIPPED};

pub(crate) fn parse(spec: &str) -> Result<Machine> {
    let spec = spec.trim();
    if spec == "live" {
        return Machine::live();
    }
    let sizes = match SHIPPED.iter().position(|name| *name == spec) {
        Some(at) => Some([(4, 4), (2, 10), (2, 6), (4, 12)][at]),
        None => spec
            .split_once('x')
            .and_then(|(n, c)| Some((n.parse().ok()?, c.parse().ok()?))),
    };
    let (nodes, cores): (u32, u32) = sizes.ok_or_else(|| Error::Unknown {
        spec: spec.to_owned(),
    })?;
    let node = |n: u32| Node {
        index: 0,
        os_index: n,
        cores: (0..cores)
            .map(|c| Core {
                cpus: vec![n * cores + c],
                package: None,
            })
            .collect(),
        memory_bytes: 1 << 30,
        free_bytes: None,
        caches: Vec::new(),
    };
    let all = (0..nodes).map(node).collect();
    Machine::assemble(
        spec.to_owned(),
        Source::Synthetic(spec.to_owned()),
        all,
        None,
        Vec::new(),
    )
}
