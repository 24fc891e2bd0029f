//! Residency by what people call a piece of memory.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::residency::found::{Holds, Residency};

/// Mappings that go by one name, taken together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    /// The path of a file, `heap`, `anonymous`, `stack of NAME (TID)`, ...
    pub name: String,
    /// `heap`, `stack`, `file`, `shared`, `anonymous` or `kernel`.
    pub kind: &'static str,
    /// Of a stack: whose.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<u32>,
    /// How many mappings that have something in memory.
    pub mappings: usize,
    /// Bytes in memory, one per node of [`Residency::nodes`].
    pub bytes: Vec<u64>,
    /// Of these, bytes in huge pages; `None` where that is not known.
    pub huge: Option<u64>,
}

impl Group {
    /// Bytes in memory.
    pub fn total(&self) -> u64 {
        self.bytes.iter().sum()
    }
}

impl Residency {
    /// The mappings by name, the largest first. `thread` gives a thread's name.
    pub fn groups(&self, thread: impl Fn(u32) -> Option<String>) -> Vec<Group> {
        let mut groups: BTreeMap<&Holds, Group> = BTreeMap::new();
        for region in &self.regions {
            let group = groups.entry(&region.holds).or_insert_with(|| Group {
                name: name(&region.holds, &thread),
                kind: region.holds.kind(),
                threads: match &region.holds {
                    Holds::Stack(threads) => threads.clone(),
                    Holds::MainStack => vec![self.process],
                    _ => Vec::new(),
                },
                mappings: 0,
                bytes: vec![0; self.nodes.len()],
                huge: Some(0),
            });
            group.mappings += 1;
            for (sum, bytes) in group.bytes.iter_mut().zip(&region.bytes) {
                *sum += bytes;
            }
            group.huge = group.huge.zip(region.huge).map(|(sum, huge)| sum + huge);
        }
        let mut groups: Vec<Group> = groups.into_values().collect();
        groups.sort_by(|a, b| (b.total(), &a.name).cmp(&(a.total(), &b.name)));
        groups
    }
}

fn name(holds: &Holds, thread: impl Fn(u32) -> Option<String>) -> String {
    match holds {
        Holds::Heap => "heap".to_owned(),
        Holds::MainStack => "stack of the main thread".to_owned(),
        Holds::Stack(threads) => match threads[..] {
            [one] => match thread(one) {
                Some(name) => format!("stack of {name} ({one})"),
                None => format!("stack of thread {one}"),
            },
            _ => format!("stacks of {} threads", threads.len()),
        },
        Holds::Anonymous(name) if name.is_empty() => "anonymous".to_owned(),
        Holds::Shared(name) if name.is_empty() => "shared".to_owned(),
        Holds::File(name) | Holds::Shared(name) | Holds::Anonymous(name) | Holds::Kernel(name) => {
            name.clone()
        }
    }
}
