//! For tests: files made at random, loaded by a map in memory, and graphs read back as such.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use futures::executor::block_on;
use io::fault::Disk;
use memory::Budget;
use proptest::prelude::*;
use store::{Options, PoolOptions, Store};

use super::LoadOptions;
use crate::error::Result;
use crate::format::meta::{Meta, Sort};
use crate::read::graph::Graph;
use crate::read::reader::Reader;
use crate::sort::spool::Spill;

/// What is in a graph: the bits of its ids, rising, and its edges by ids of the file, sorted, in the order of
/// the file where they are the same.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Contents {
    pub ids: Vec<u64>,
    pub out: Vec<(u64, u64, f64)>,
    pub loops_dropped: u64,
    pub repeats_dropped: u64,
    /// As one counts them: undirected ones once.
    pub edges: u64,
}

/// What the lines of a file make with these options.
pub(crate) fn expected(lines: &[(u64, u64, f64)], options: &LoadOptions) -> Contents {
    let ids: BTreeSet<u64> = lines.iter().flat_map(|&(from, to, _)| [from, to]).collect();
    let mut contents = Contents {
        ids: ids.into_iter().collect(),
        out: Vec::new(),
        loops_dropped: 0,
        repeats_dropped: 0,
        edges: 0,
    };
    let mut seen = HashSet::new();
    for &(from, to, weight) in lines {
        let weight = if options.weighted { weight } else { 0.0 };
        let name = if options.directed {
            (from, to)
        } else {
            (from.min(to), from.max(to))
        };
        if from == to && !options.loops {
            contents.loops_dropped += 1;
        } else if !options.repeats && !seen.insert(name) {
            contents.repeats_dropped += 1;
        } else {
            contents.edges += 1;
            contents.out.push((from, to, weight));
            if !options.directed && from != to {
                contents.out.push((to, from, weight));
            }
        }
    }
    contents.out.sort_by_key(|&(from, to, _)| (from, to));
    contents
}

/// What is in a graph; the counts of what was left out are not known.
pub(crate) fn contents(graph: &Graph) -> Contents {
    block_on(read_contents(graph)).unwrap()
}

async fn read_contents(graph: &Graph) -> Result<Contents> {
    let mut reader = Reader::new(graph, 8);
    let mut ids = Vec::new();
    for vertex in 0..graph.vertices() {
        let id = graph.id(vertex).await?;
        assert_eq!(graph.find(id).await?, vertex);
        ids.push(id.cast_unsigned());
    }
    let (mut out, mut into) = (Vec::new(), Vec::new());
    for vertex in 0..graph.vertices() {
        let mut list = Vec::new();
        reader.append(graph.out(), vertex, &mut list).await?;
        assert!(list.is_sorted());
        let (start, _) = reader.bounds(graph.out(), vertex).await?;
        for (at, &to) in (start..).zip(&list) {
            let weight = match &graph.weights {
                Some(weights) => f64::from_bits(reader.wide(weights, at).await?),
                None => 0.0,
            };
            out.push((ids[vertex as usize], ids[to as usize], weight));
        }
        list.clear();
        reader.append(graph.incoming(), vertex, &mut list).await?;
        assert!(list.is_sorted());
        into.extend(
            list.iter()
                .map(|&from| (ids[from as usize], ids[vertex as usize])),
        );
    }
    out.sort_by_key(|&(from, to, _)| (from, to));
    into.sort_unstable();
    let ends: Vec<(u64, u64)> = out.iter().map(|&(from, to, _)| (from, to)).collect();
    assert_eq!(into, ends, "in-edges are the out-edges, read the other way");
    check(graph.meta(), &ends);
    ids.sort_unstable();
    Ok(Contents {
        ids,
        loops_dropped: 0,
        repeats_dropped: 0,
        edges: graph.summary().edges,
        out,
    })
}

/// What the metadata says of the edges is so.
fn check(meta: &Meta, ends: &[(u64, u64)]) {
    let loops = ends.iter().filter(|(from, to)| from == to).count();
    assert_eq!(meta.loops, loops as u64);
    assert_eq!(meta.repeats, ends.windows(2).any(|pair| pair[0] == pair[1]));
    assert_eq!(meta.edges, ends.len() as u64);
    assert_eq!(meta.ends.is_none(), ends.is_empty());
    assert_eq!(
        meta.array(Sort::Ids).map(|ids| ids.elements),
        Some(meta.vertices)
    );
}

/// A store of small pages on a simulated disk.
pub(crate) fn store(disk: &Disk) -> Arc<Store> {
    let options = Options {
        page_size: 4096,
        pool: PoolOptions {
            bytes: 1 << 20,
            io_threads: 1,
            ..PoolOptions::default()
        },
        ..Options::default()
    };
    if disk.bytes("log").is_empty() {
        Store::create_on(disk.device("data"), disk.device("log"), &options).unwrap()
    } else {
        Store::open_on(disk.device("data"), disk.device("log"), &options).unwrap()
    }
}

/// Temporary files on a simulated disk.
pub(crate) fn spill(disk: &Disk) -> Spill {
    let (disk, made) = (disk.clone(), std::sync::atomic::AtomicU32::new(0));
    Spill::devices(move || {
        let number = made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(disk.device(&format!("spill{number}")))
    })
}

/// More memory than any test needs.
pub(crate) fn budget() -> Arc<Budget> {
    Budget::new(256 << 20)
}

/// Lines of a file, with the bits of their ids: close together, far apart, below 0, and at the ends of what there is.
pub(crate) fn lines(most: usize) -> impl Strategy<Value = Vec<(u64, u64, f64)>> {
    let id = prop_oneof![
        6 => 0..12_u64,
        3 => 1000..1100_u64,
        1 => any::<u32>().prop_map(u64::from),
        1 => any::<u64>(),
    ];
    prop::collection::vec((id.clone(), id, -1e6..1e6), 1..most)
}

/// Options of a load with little memory.
pub(crate) fn options() -> impl Strategy<Value = LoadOptions> {
    any::<(bool, bool, bool, bool)>().prop_map(|(directed, weighted, loops, repeats)| LoadOptions {
        directed,
        weighted,
        loops,
        repeats,
        memory: 1,
        ..LoadOptions::default()
    })
}

/// The text of a file with these edges, with comments and all separators and line ends there may be.
pub(crate) fn text(lines: &[(u64, u64, f64)], weighted: bool, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut text = String::new();
    for (from, to, weight) in lines {
        if random.u8(..8) == 0 {
            text += ["# a comment\n", "% another\r\n", "\n", "  \t\r\n"][random.usize(..4)];
        }
        let mut gap = || [" ", "\t", ",", " , ", "\t\t"][random.usize(..5)];
        let (from, to) = (from.cast_signed(), to.cast_signed());
        text += &format!("{from}{}{to}", gap());
        if weighted {
            text += &format!("{}{weight}", gap());
        }
        text += ["\n", "\r\n", " \n"][random.usize(..3)];
    }
    if random.bool() {
        text.truncate(text.trim_end().len());
    }
    text.into_bytes()
}

/// As gzip, of one or two members.
pub(crate) fn gzip(text: &[u8], members: usize) -> Vec<u8> {
    use std::io::Write;
    let mut all = Vec::new();
    for part in text.chunks(text.len() / members + 1) {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(part).unwrap();
        all.extend(encoder.finish().unwrap());
    }
    all
}
