//! The arrays and queries of the experiments.

use placement::arrays::{Chunk, Sharing};
use serde::Serialize;

/// Threads of a group, and of an instance: three groups of four made the text's 12.
const GROUP: usize = 4;
/// The chunks of the large array, and the bytes of one: 250 x 250 x 500 doubles.
const CHUNKS: usize = 210;
const CHUNK_BYTES: u64 = 250 * 250 * 500 * 8;
/// Bytes of the small array.
const SMALL: u64 = 1_000_000_000;
/// The shares that queries keep: low selectivity filters out 20 %, high 70 %.
const LOW: f64 = 0.8;
const HIGH: f64 = 0.3;

/// How threads share chunks, after the text's two systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum System {
    /// Groups share chunks, and go on with what they made: SAVIME.
    Groups,
    /// Instances own chunks, and hand on what they made in new ones: SciDB.
    Instances,
}

impl System {
    pub(super) fn name(self) -> &'static str {
        match self {
            System::Groups => "groups (SAVIME)",
            System::Instances => "instances (SciDB)",
        }
    }

    pub(super) fn sharing(self, threads: usize) -> Sharing {
        match self {
            System::Groups => Sharing::Groups { of: GROUP },
            System::Instances => Sharing::Instances {
                count: threads.div_ceil(GROUP),
            },
        }
    }

    /// Whether results are handed to others.
    pub(super) fn redistributes(self) -> bool {
        self == System::Instances
    }
}

/// Chunks, and a query over them.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub name: String,
    /// The chunks that the query touches; their homes are those of Atoll, a node after the other.
    pub chunks: Vec<Chunk>,
    /// The share of their bytes that it keeps.
    pub keep: f64,
}

/// So many chunks of so many bytes on so many nodes in turn, in the proportions of the text: twice as long in z.
pub(super) fn chunks(count: usize, bytes: u64, nodes: usize) -> Vec<Chunk> {
    let side = ((bytes / 8) as f64 / 2.0).cbrt().round().max(1.0);
    let chunk = |at: usize| Chunk {
        home: at % nodes,
        bytes,
        slabs: side as u64,
    };
    (0..count).map(chunk).collect()
}

/// The array of 1 GB in so many chunks, of which a query of low selectivity reads all.
pub(super) fn small(count: usize, nodes: usize) -> Case {
    Case {
        name: format!("{count} chunks"),
        chunks: chunks(count, SMALL / count as u64, nodes),
        keep: LOW,
    }
}

/// The array of 50 GB, its bytes divided by `scale`, in so many chunks.
pub(super) fn large(count: usize, scale: u64, nodes: usize) -> Case {
    let bytes = CHUNK_BYTES * CHUNKS as u64 / scale / count as u64;
    Case {
        name: format!("{count} chunks"),
        chunks: chunks(count, bytes, nodes),
        keep: LOW,
    }
}

/// The queries on selectivity: one chunk exactly, and of one, a fifth and all chunks most or little. The number of
/// chunks is divided by `scale`.
pub(super) fn selectivity(scale: u64, nodes: usize) -> Vec<Case> {
    let all = CHUNKS.div_ceil(scale as usize).max(1);
    let few = all.div_ceil(5);
    let case = |name: &str, count: usize, keep: f64| Case {
        name: name.to_owned(),
        chunks: chunks(count, CHUNK_BYTES, nodes),
        keep,
    };
    vec![
        case("EQ", 1, 1.0),
        case("LSC", 1, LOW),
        case("LFC", few, LOW),
        case("LMC", all, LOW),
        case("HSC", 1, HIGH),
        case("HFC", few, HIGH),
        case("HMC", all, HIGH),
    ]
}

/// A query of the experiments in AFL.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Query {
    /// The name of its case.
    pub name: &'static str,
    /// What it asks for.
    pub about: &'static str,
    pub afl: String,
}

/// The queries of the text, over `seismic` as `atoll load seismic --chunk 250,250,500 --chunks 210` makes it: 5, 6 and 7
/// chunks along x, y and z.
pub(super) fn of_the_text() -> Vec<Query> {
    let query = |name, about, low: [u64; 3], high: [u64; 3]| Query {
        name,
        about,
        afl: subarray("seismic", &low, &high),
    };
    let all = [1249, 1499, 3499];
    vec![
        query("EQ", "one chunk exactly", [0; 3], [249, 249, 499]),
        query("LSC", "80 % of one chunk", [0; 3], [199, 249, 499]),
        query("LFC", "80 % of 42 chunks", [0; 3], [199, 1499, 3499]),
        query(
            "LMC",
            "80 % of all, of every chunk some",
            [125, 0, 0],
            [1124, 1499, 3499],
        ),
        query("HSC", "30 % of one chunk", [0; 3], [74, 249, 499]),
        query("HFC", "30 % of 42 chunks", [0; 3], [74, 1499, 3499]),
        query(
            "HMC",
            "29 % of all, of every chunk some",
            [249, 249, 499],
            [1000, 1250, 3000],
        ),
        query(
            "all",
            "the whole array of 1 GB in the same shape",
            [0; 3],
            all,
        ),
    ]
}

/// The queries as the authors' scripts have them: trials of x, y and z, of which each is a chunk. The scripts have 210 of
/// 251 x 501 x 501 floats; bounds follow in proportion for other sizes.
pub(super) fn of_the_scripts(trials: u64, [x, y, z]: [u64; 3]) -> Vec<Query> {
    let part = |length: u64, last: u64, of: u64| ((last + 1) * length / of).max(1) - 1;
    let whole = [x - 1, y - 1, z - 1];
    let low = [part(x, 199, 251), part(y, 450, 501), part(z, 450, 501)];
    let high = [part(x, 150, 251), part(y, 300, 501), part(z, 300, 501)];
    let few = part(trials, 100, 210);
    let query = |name, about, last: u64, [x, y, z]: [u64; 3]| Query {
        name,
        about,
        afl: subarray("shots", &[0; 4], &[last, x, y, z]),
    };
    let mut all = vec![
        query("EQ", "one trial exactly", 0, whole),
        query("LSC", "of one trial 35 % filtered out", 0, low),
        query("LFC", "the same of 48 % of the trials", few, low),
        query("LMC", "the same of all trials", trials - 1, low),
        query("HSC", "of one trial 78 % filtered out", 0, high),
        query("HFC", "the same of 48 % of the trials", few, high),
        query("HMC", "the same of all trials", trials - 1, high),
    ];
    let sparse = format!("filter({}, x % 2 = 1 and y % 2 = 0)", all[3].afl);
    all.push(Query {
        name: "sparse",
        about: "cells of all trials here and there",
        afl: sparse,
    });
    all
}

fn subarray(array: &str, low: &[u64], high: &[u64]) -> String {
    let bounds = low.iter().chain(high).map(u64::to_string);
    format!(
        "subarray({array}, {})",
        bounds.collect::<Vec<_>>().join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_have_the_sizes_of_the_text() {
        let cases = selectivity(1, 2);
        let counts: Vec<usize> = cases.iter().map(|case| case.chunks.len()).collect();
        assert_eq!(counts, [1, 1, 42, 210, 1, 42, 210]);
        let bytes: u64 = cases[3].chunks.iter().map(|chunk| chunk.bytes).sum();
        assert_eq!(bytes, 52_500_000_000);
        assert_eq!(cases[0].chunks[0].slabs, 250);
        assert_eq!(small(1000, 2).chunks.len(), 1000);
        assert_eq!(selectivity(1000, 2)[3].chunks.len(), 1);
    }

    #[test]
    fn queries_have_the_bounds_of_the_scripts() {
        let all = of_the_scripts(210, [251, 501, 501]);
        let afl = |name: &str| {
            all.iter()
                .find(|query| query.name == name)
                .unwrap()
                .afl
                .as_str()
        };
        assert_eq!(afl("LSC"), "subarray(shots, 0, 0, 0, 0, 0, 199, 450, 450)");
        assert_eq!(
            afl("HMC"),
            "subarray(shots, 0, 0, 0, 0, 209, 150, 300, 300)"
        );
        assert_eq!(
            afl("LFC"),
            "subarray(shots, 0, 0, 0, 0, 100, 199, 450, 450)"
        );
        assert!(
            of_the_scripts(1, [1, 1, 1])
                .iter()
                .all(|query| query.afl.contains("0, 0, 0, 0, 0, 0, 0, 0"))
        );
    }
}
