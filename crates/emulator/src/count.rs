//! The access counter: memory accesses of an emulated machine by node of the core and node of the page.
//!
//! The counter models the caches of the [`Shape`] and counts the lines that are filled from, and
//! written back to, memory: by node of the core and node of the page. It is exact within its
//! model, which `plugin/dram.c` describes: user programs' data accesses, three levels, least
//! recently used, no prefetching, no coherence (false sharing is not seen).

use std::fs::File;
use std::os::fd::RawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::shape::{Level, Shape};

/// The size of a cache line in bytes: what one count stands for.
pub const LINE_BYTES: u64 = 64;

/// Ways of the modelled caches: first, second, last level.
const WAYS: [u64; 3] = [8, 8, 16];

/// What to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// The whole command, with its children, from its start to its end.
    Command,
    /// What the command marks ([`roi`](crate::roi), `atoll-roi`, `atoll_roi.h`).
    Marks,
}

/// A matrix of lines: by node of the core, then by node of the page.
pub type Matrix = Vec<Vec<u64>>;

/// What was counted between two marks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// Loads and stores of data; one that is wider than 8 bytes may count as several.
    pub accesses: u64,
    /// Lines not found in a first-level cache.
    pub l1_misses: u64,
    /// Lines not found in a second-level cache either: what the last level was asked for.
    pub l2_misses: u64,
    /// Instructions executed by programs. Exact only where one thread executes all processors.
    pub instructions: u64,
    /// Lines read from memory because of a last-level miss.
    pub dram: Matrix,
    /// Dirty lines written to memory.
    pub write_backs: Matrix,
    /// Those of [`dram`](Region::dram) that were asked for by addresses in windows ([`roi::window`](crate::roi::window));
    /// empty where the program named none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Matrix,
}

/// The share of the lines, or bytes, that were on another node than the core; `None` if there are none.
pub fn remote_share(lines: &Matrix) -> Option<f64> {
    let all: u64 = lines.iter().flatten().sum();
    let local: u64 = (0..lines.len()).map(|node| lines[node][node]).sum();
    (all > 0).then(|| (all - local) as f64 / all as f64)
}

impl Region {
    /// Last-level misses as a share of what the last level was asked for; `None` if it was not
    /// asked for anything.
    pub fn llc_miss_ratio(&self) -> Option<f64> {
        let fills: u64 = self.dram.iter().flatten().sum();
        (self.l2_misses > 0).then(|| fills as f64 / self.l2_misses as f64)
    }

    /// The share of the lines read that were on another node than the core; `None` if none was
    /// read.
    pub fn remote_share(&self) -> Option<f64> {
        remote_share(&self.dram)
    }

    /// Counts another one as well; the machine is the same.
    pub fn add(&mut self, other: &Region) {
        self.accesses += other.accesses;
        self.l1_misses += other.l1_misses;
        self.l2_misses += other.l2_misses;
        self.instructions += other.instructions;
        if self.windows.is_empty() {
            self.windows = other.windows.iter().map(|row| vec![0; row.len()]).collect();
        }
        for (sums, terms) in [
            (&mut self.dram, &other.dram),
            (&mut self.write_backs, &other.write_backs),
            (&mut self.windows, &other.windows),
        ] {
            for (sum, term) in sums.iter_mut().flatten().zip(terms.iter().flatten()) {
                *sum += term;
            }
        }
    }
}

/// What was counted in a run. As JSON the sums over all regions stand beside `regions`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Count {
    /// All regions together.
    #[serde(flatten)]
    pub total: Region,
    /// See [`Region::llc_miss_ratio`]; `None` is no number, not zero.
    pub llc_miss_ratio: Option<f64>,
    /// See [`Region::remote_share`].
    pub remote_share: Option<f64>,
    /// Each region, in the order in which they ended.
    pub regions: Vec<Region>,
    /// Capacity in bytes of each modelled cache: first, second, last level.
    pub cache_bytes: [u64; 3],
    /// Number of modelled last-level caches.
    pub llcs: usize,
}

impl Counting {
    /// The emulator's word for the plugin, which writes to the open file `out`.
    pub(crate) fn plugin(self, plugin: &Path, shape: &Shape, out: RawFd) -> String {
        let roi = match self {
            Counting::Command => "off",
            Counting::Marks => "on",
        };
        let caches = shape.caches();
        let nodes = shape.node_of_cpu();
        let cpus: Vec<String> = nodes
            .iter()
            .enumerate()
            .map(|(cpu, node)| {
                let [first, second, last] = [0, 1, 2].map(|level| caches[level].of_cpu[cpu]);
                format!("{node}.{first}.{second}.{last}")
            })
            .collect();
        let [l1, l2, llc] = [0, 1, 2].map(|level| {
            let ways = WAYS[level];
            format!("{}.{ways}", capacity(&caches[level], ways))
        });
        format!(
            "{},out={out},roi={roi},nodes={},mib={},l1={l1},l2={l2},llc={llc},cpus={}",
            plugin.display().to_string().replace(',', ",,"),
            shape.nodes().len(),
            shape.nodes()[0].memory_mib,
            cpus.join("+")
        )
    }

    /// What the plugin wrote.
    pub(crate) fn read(self, file: &File, shape: &Shape) -> Result<Count> {
        let failed = |why: String| Error::Count { why };
        let length = file.metadata().map_err(|error| failed(error.to_string()))?;
        let mut bytes = vec![0; length.len() as usize];
        file.read_exact_at(&mut bytes, 0)
            .map_err(|error| failed(error.to_string()))?;
        parse(&String::from_utf8_lossy(&bytes), shape)
    }
}

/// The capacity that is modelled: whole sets of so many ways.
fn capacity(level: &Level, ways: u64) -> u64 {
    (level.bytes / LINE_BYTES / ways).max(1) * ways * LINE_BYTES
}

fn parse(text: &str, shape: &Shape) -> Result<Count> {
    #[derive(Deserialize)]
    struct Complaint {
        error: String,
    }
    let mut regions = Vec::new();
    for line in text.lines() {
        if let Ok(Complaint { error }) = serde_json::from_str(line) {
            return Err(Error::Count { why: error });
        }
        let region: Region = serde_json::from_str(line).map_err(|error| Error::Count {
            why: format!("it wrote '{line}': {error}"),
        })?;
        regions.push(region);
    }
    let count = shape.nodes().len();
    let zero = vec![vec![0; count]; count];
    let mut total = Region {
        dram: zero.clone(),
        write_backs: zero,
        ..Region::default()
    };
    for region in &regions {
        total.add(region);
    }
    let caches = shape.caches();
    let last = caches[2].of_cpu.iter().max();
    Ok(Count {
        llc_miss_ratio: total.llc_miss_ratio(),
        remote_share: total.remote_share(),
        total,
        regions,
        cache_bytes: [0, 1, 2].map(|level| capacity(&caches[level], WAYS[level])),
        llcs: last.map_or(0, |last| last + 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use topology::Machine;

    fn shape() -> Shape {
        Shape::of(&Machine::parse("2x2").unwrap(), 128, 0).unwrap()
    }

    #[test]
    fn regions_are_summed() {
        let text = "\
{\"accesses\":5,\"l1_misses\":4,\"l2_misses\":4,\"instructions\":9,\"dram\":[[1,2],[0,0]],\"write_backs\":[[0,0],[0,1]]}
{\"accesses\":1,\"l1_misses\":0,\"l2_misses\":0,\"instructions\":9,\"dram\":[[0,0],[0,0]],\"write_backs\":[[0,0],[0,0]]}
";
        let count = parse(text, &shape()).unwrap();
        assert_eq!((count.total.accesses, count.regions.len()), (6, 2));
        assert_eq!(count.llc_miss_ratio, Some(0.75));
        assert_eq!(count.remote_share, Some(2.0 / 3.0));
        assert_eq!(count.regions[1].llc_miss_ratio(), None);
        let json = serde_json::to_value(&count).unwrap();
        assert_eq!(json["dram"], serde_json::json!([[1, 2], [0, 0]]));
        assert_eq!(json["llc_miss_ratio"], 0.75);
    }

    #[test]
    fn windows_are_those_of_the_regions_that_have_any() {
        let text = "\
{\"accesses\":5,\"l1_misses\":4,\"l2_misses\":4,\"instructions\":9,\"dram\":[[1,2],[0,0]],\"write_backs\":[[0,0],[0,1]]}
{\"accesses\":5,\"l1_misses\":4,\"l2_misses\":4,\"instructions\":9,\"dram\":[[9,2],[0,5]],\"write_backs\":[[0,0],[0,0]],\"windows\":[[1,0],[0,3]]}
{\"accesses\":5,\"l1_misses\":4,\"l2_misses\":4,\"instructions\":9,\"dram\":[[9,2],[0,5]],\"write_backs\":[[0,0],[0,0]],\"windows\":[[1,2],[0,1]]}
";
        let count = parse(text, &shape()).unwrap();
        assert!(count.regions[0].windows.is_empty());
        assert_eq!(remote_share(&count.regions[0].windows), None);
        assert_eq!(count.total.windows, [[2, 2], [0, 4]]);
        assert_eq!(remote_share(&count.total.windows), Some(0.25));
        let json = serde_json::to_value(&count).unwrap();
        assert_eq!(json["windows"], serde_json::json!([[2, 2], [0, 4]]));
        assert!(json["regions"][0].get("windows").is_none());
    }

    #[test]
    fn without_a_region_there_is_no_ratio() {
        let count = parse("", &shape()).unwrap();
        assert_eq!(count.total.dram, [[0, 0], [0, 0]]);
        assert_eq!((count.llc_miss_ratio, count.remote_share), (None, None));
    }

    #[test]
    fn complaints_and_garbage_are_errors() {
        for text in ["{\"error\":\"no nodes\"}\n", "what?\n"] {
            assert!(parse(text, &shape()).is_err(), "{text}");
        }
    }

    #[test]
    fn the_plugin_is_told_each_cpus_node_and_caches() {
        let word = Counting::Marks.plugin(Path::new("/c/a,b.so"), &shape(), 7);
        assert!(
            word.starts_with("/c/a,,b.so,out=7,roi=on,nodes=2,mib=128,"),
            "{word}"
        );
        assert!(
            word.ends_with("cpus=0.0.0.0+0.1.1.0+1.2.2.1+1.3.3.1"),
            "{word}"
        );
        assert!(word.contains(",l1=32768.8,"), "{word}");
    }
}
