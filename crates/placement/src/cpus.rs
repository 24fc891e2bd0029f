//! Sets of cpus.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A set of cpus by the operating system's numbers, ascending and without repetition.
///
/// Its text is the kernel's list format: `0-3,8`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Vec<u32>", into = "Vec<u32>")]
pub struct CpuSet(Vec<u32>);

impl CpuSet {
    /// The cpus, ascending.
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }

    /// Number of cpus.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `cpu` is one of them.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.binary_search(&cpu).is_ok()
    }

    /// The cpus, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }
}

impl From<Vec<u32>> for CpuSet {
    fn from(mut cpus: Vec<u32>) -> CpuSet {
        cpus.sort_unstable();
        cpus.dedup();
        CpuSet(cpus)
    }
}

impl From<CpuSet> for Vec<u32> {
    fn from(set: CpuSet) -> Vec<u32> {
        set.0
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> CpuSet {
        CpuSet::from(cpus.into_iter().collect::<Vec<u32>>())
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for run in self.0.chunk_by(|a, b| a + 1 == *b) {
            match run {
                [one] => write!(f, "{comma}{one}")?,
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                [] => {}
            }
            comma = ",";
        }
        Ok(())
    }
}
