//! Sets of cpus.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The highest cpu number that is read from a text; no kernel is built for more.
const MAX_CPU: u32 = 65_535;

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

impl FromStr for CpuSet {
    type Err = Error;

    /// Reads `0-3,8`; white space around numbers is ignored.
    fn from_str(text: &str) -> Result<CpuSet> {
        let wrong = |why: &str| Error::List {
            text: text.trim().chars().take(60).collect(),
            why: why.to_owned(),
        };
        let number = |text: &str| match text.trim().parse::<u32>() {
            Ok(cpu) if cpu <= MAX_CPU => Ok(cpu),
            Ok(_) => Err(wrong("its numbers go up to 65535")),
            Err(_) => Err(wrong("it is not made of numbers and ranges")),
        };
        let mut cpus = Vec::new();
        for part in text.split(',') {
            match part.split_once('-') {
                None => cpus.push(number(part)?),
                Some((first, last)) => {
                    let (first, last) = (number(first)?, number(last)?);
                    if first > last {
                        return Err(wrong("a range ends before it begins"));
                    }
                    cpus.extend(first..=last);
                }
            }
        }
        Ok(CpuSet::from(cpus))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_list_format_is_read_and_written() {
        for (text, cpus, written) in [
            ("0", vec![0], "0"),
            (" 3 - 5, 1", vec![1, 3, 4, 5], "1,3-5"),
            ("0-1,1-2", vec![0, 1, 2], "0-2"),
        ] {
            let set: CpuSet = text.parse().unwrap();
            assert_eq!(set.as_slice(), cpus, "{text}");
            assert_eq!(set.to_string(), written);
        }
        for text in ["", "a", "1-", "3-1", "-1", "1,,2", "0-99999999", "70000"] {
            let error = text.parse::<CpuSet>().unwrap_err().to_string();
            assert!(error.contains("0-3,8"), "{text}: {error}");
        }
    }
}
