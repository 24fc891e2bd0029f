//! Residency of every page.

use std::collections::BTreeMap;

use crate::residency::found::{Found, Look, Part};
use crate::residency::maps::{self, Held};
use crate::{Error, Process, Result};

/// Looks at every page of a process; at what lies in huge pages too where `huge` says so.
pub(super) fn walk(process: &Process, huge: bool) -> Result<Found> {
    let of = |name: &str| format!("/proc/{}/{name}", process.pid());
    let maps = maps::parse(&process.text("maps")?, &of("maps"))?;
    let numa = match process.text("numa_maps") {
        Ok(text) => Some(text),
        // A kernel without NUMA has no such file.
        Err(Error::Ended { .. }) if process.with_memory().is_ok() => None,
        Err(error) => return Err(error),
    };
    let held = match (huge, &numa) {
        (false, Some(_)) => None,
        _ => match process.text("smaps") {
            Ok(text) => Some(maps::parse_smaps(&text)),
            // An old or small kernel has none of this file either.
            Err(Error::Ended { .. }) if process.with_memory().is_ok() => None,
            Err(error) => return Err(error),
        },
    };
    let (parts, notes) = match (numa, held) {
        (Some(numa), held) => {
            let mappings = memory::parse_numa_maps(&numa)
                .map_err(|error| Error::parse(of("numa_maps"), 0, error.to_string()))?;
            let parts = mappings.into_iter().map(|m| part(m, held.as_ref()));
            (parts.collect(), Vec::new())
        }
        (None, Some(held)) => {
            let note = "this kernel does not know of nodes: all memory counts as node 0";
            (without_nodes(&held), vec![note.to_owned()])
        }
        (None, None) => {
            return Err(Error::parse(
                of("numa_maps"),
                0,
                "this kernel has neither this file nor smaps",
            ));
        }
    };
    Ok(Found {
        maps,
        parts,
        look: Look::Walked,
        error: Vec::new(),
        notes,
    })
}

fn part(mapping: memory::Mapping, held: Option<&BTreeMap<u64, Held>>) -> Part {
    let name = match (mapping.file, mapping.heap, mapping.stack) {
        (Some(file), _, _) => Some(file),
        (None, true, _) => Some("[heap]".to_owned()),
        (None, false, true) => Some("[stack]".to_owned()),
        (None, false, false) => None,
    };
    let bytes = |&(node, pages): &(u32, u64)| (node, pages.saturating_mul(mapping.page_bytes));
    Part {
        start: mapping.address,
        name,
        policy: Some(mapping.policy),
        bytes: mapping.pages.iter().map(bytes).collect(),
        huge: held.map(|held| held.get(&mapping.address).map_or(0, |held| held.huge)),
    }
}

/// Where only `smaps` tells: everything on node 0.
fn without_nodes(held: &BTreeMap<u64, Held>) -> Vec<Part> {
    held.iter()
        .map(|(&start, held)| Part {
            start,
            name: None,
            policy: None,
            bytes: vec![(0, held.resident)],
            huge: Some(held.huge),
        })
        .collect()
}
