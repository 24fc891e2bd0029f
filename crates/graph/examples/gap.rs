//! The kernels beside plain loops over arrays in memory: in a pool that holds the graph, and in one of a tenth of it.
//!
//! `cargo run --release -p graph --example gap -- [MILLION_EDGES [THREADS [ROUNDS]]]`
//!
//! The graph is a skewed random one (R-MAT, undirected, ids shuffled). The loops are GAP's kernels written down
//! sequentially, so give one thread to compare like with like. Rounds of the loops and of ours alternate; figures are
//! medians, a search is the mean of some sources. After that: pages that searches read through a pool of a tenth, by
//! order of the vertices.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use graph::{
    Crew, Graph, Job, LoadOptions, Order, RankOptions, ReorderOptions, bfs, components, pagerank,
    triangles,
};
use memory::Budget;
use store::{Options, PoolOptions, Store};
use topology::Machine;
use workers::{Layout, Workers};

const PAGE: u32 = 64 << 10;
const SOURCES: usize = 8;
const KERNELS: [&str; 4] = ["bfs", "pagerank", "components", "triangles"];

type Done<T> = Result<T, Box<dyn Error>>;

fn main() -> Done<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (edges, threads, rounds) = (number(10)? * 1_000_000, number(1)?, number(5)?);
    let directory = tempfile::tempdir()?;
    let (file, path) = (
        directory.path().join("edges.txt"),
        directory.path().join("store"),
    );
    let edges = random_edges(edges);
    write_edges(&file, &edges)?;
    let plain = Plain::new(edges);
    let pages = make(&path, &file)?;
    let live = Machine::live()?;
    let crew = Crew::new(
        Workers::new(Layout::of(&live, &live, threads as usize, false))?,
        Budget::new(4 << 30),
    );
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{} vertices, {} entries, {pages} pages of 64 KiB; {threads} threads",
        plain.vertices(),
        plain.lists.len()
    )?;
    for (name, pool) in [("in memory", 2 * pages), ("a tenth", pages / 10)] {
        let store = Store::open(&path, &options(pool))?;
        let graph = block_on(Graph::open(&store.snapshot(), "g"))?;
        let mut times: [(Vec<Duration>, Vec<Duration>); 4] = Default::default();
        let mut reads = [0; 4];
        for _ in 0..rounds {
            for (at, kernel) in KERNELS.into_iter().enumerate() {
                let begun = Instant::now();
                let expected = plain.run(kernel);
                times[at].0.push(begun.elapsed());
                let begun = Instant::now();
                let (found, misses) = run(&graph, kernel, &plain, &crew)?;
                times[at].1.push(begun.elapsed());
                reads[at] = misses;
                assert_eq!(found, expected, "{kernel}");
            }
        }
        for ((kernel, (plain, own)), reads) in KERNELS.into_iter().zip(times).zip(reads) {
            let (plain, own) = (median(plain).as_secs_f64(), median(own).as_secs_f64());
            writeln!(
                out,
                "{name:9} {kernel:10} plain {plain:7.3} s, ours {own:7.3} s: {:5.2} times; {reads} pages read",
                own / plain
            )?;
        }
    }
    orders(&mut out, &path, pages, &plain, &crew)
}

/// Pages that searches read through a pool of a tenth of the graph, by order.
fn orders(out: &mut impl Write, path: &Path, pages: u64, plain: &Plain, crew: &Crew) -> Done<()> {
    for order in Order::ALL {
        let store = Store::open(path, &options(2 * pages))?;
        let into = ReorderOptions {
            into: Some("other".to_owned()),
            replace: true,
            ..ReorderOptions::default()
        };
        let begun = Instant::now();
        let job = Job::new(Budget::new(4 << 30));
        block_on(graph::reorder(&store, "g", order, &into, job))?;
        let ordering = begun.elapsed();
        store.close()?;
        let store = Store::open(path, &options(pages / 10))?;
        let graph = block_on(Graph::open(&store.snapshot(), "other"))?;
        let begun = Instant::now();
        let (_, misses) = run(&graph, "bfs", plain, crew)?;
        writeln!(
            out,
            "{:7} {SOURCES} searches read {misses:7} pages in {:6.2} s; reordering took {:5.1} s",
            order.name(),
            begun.elapsed().as_secs_f64(),
            ordering.as_secs_f64()
        )?;
    }
    Ok(())
}

fn options(frames: u64) -> Options {
    Options {
        page_size: PAGE,
        pool: PoolOptions {
            bytes: frames.max(64) * u64::from(PAGE),
            ..PoolOptions::default()
        },
        compress: false,
        ..Options::default()
    }
}

/// Loads the file into a new store: the pages of the graph.
fn make(path: &Path, file: &Path) -> Done<u64> {
    let store = Store::create(path, &options(4096))?;
    let undirected = LoadOptions {
        directed: false,
        ..LoadOptions::default()
    };
    let job = Job::new(Budget::new(4 << 30));
    let loaded = block_on(graph::load(&store, "g", file, &undirected, job))?;
    store.close()?;
    Ok(loaded.pages)
}

/// Runs a kernel of ours: a number that the plain one finds too, and the pages that were read.
fn run(graph: &Arc<Graph>, kernel: &str, plain: &Plain, crew: &Crew) -> Done<(u64, u64)> {
    block_on(async {
        Ok(match kernel {
            "bfs" => {
                let (mut sum, mut misses) = (0, 0);
                for source in plain.sources() {
                    let source = graph.find(plain.ids[source as usize].cast_signed()).await?;
                    let found = bfs(graph, source, crew).await?;
                    sum += found
                        .sizes
                        .iter()
                        .zip(0..)
                        .map(|(size, level)| size * level)
                        .sum::<u64>();
                    misses += found.reads.misses;
                }
                (sum, misses)
            }
            "pagerank" => {
                let found = pagerank(graph, RankOptions::default(), crew).await?;
                (u64::from(found.rounds), found.reads.misses)
            }
            "components" => {
                let found = components(graph, crew).await?;
                (found.count, found.reads.misses)
            }
            _ => {
                let found = triangles(graph, crew).await?;
                (found.triangles, found.reads.misses)
            }
        })
    })
}

/// Compressed sparse rows in memory.
struct Plain {
    ids: Vec<u64>,
    offsets: Vec<usize>,
    lists: Vec<u32>,
}

impl Plain {
    fn new(edges: Vec<(u64, u64)>) -> Plain {
        let mut ids: Vec<u64> = edges.iter().flat_map(|&(a, b)| [a, b]).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut numbers = vec![0; ids.last().map_or(0, |&id| id as usize + 1)];
        for (number, &id) in ids.iter().enumerate() {
            numbers[id as usize] = number as u32;
        }
        let number = |id: u64| numbers[id as usize];
        let mut both: Vec<(u32, u32)> = edges
            .into_iter()
            .filter(|(a, b)| a != b)
            .flat_map(|(a, b)| [(number(a), number(b)), (number(b), number(a))])
            .collect();
        both.sort_unstable();
        both.dedup();
        let mut offsets = vec![0; ids.len() + 1];
        both.iter()
            .for_each(|&(from, _)| offsets[from as usize + 1] += 1);
        (1..offsets.len()).for_each(|at| offsets[at] += offsets[at - 1]);
        let lists = both.into_iter().map(|(_, to)| to).collect();
        Plain {
            ids,
            offsets,
            lists,
        }
    }

    fn vertices(&self) -> usize {
        self.ids.len()
    }

    fn list(&self, vertex: u32) -> &[u32] {
        &self.lists[self.offsets[vertex as usize]..self.offsets[vertex as usize + 1]]
    }

    /// Vertices that have edges, spread over the ids.
    fn sources(&self) -> impl Iterator<Item = u32> {
        let step = self.vertices() / SOURCES;
        (0..SOURCES).map(move |at| {
            let from = (at * step) as u32;
            (from..)
                .find(|&vertex| !self.list(vertex).is_empty())
                .unwrap_or(from)
        })
    }

    fn run(&self, kernel: &str) -> u64 {
        match kernel {
            "bfs" => self.sources().map(|source| self.bfs(source)).sum(),
            "pagerank" => self.pagerank(),
            "components" => self.components(),
            _ => self.triangles(),
        }
    }

    /// The sum of all levels.
    fn bfs(&self, source: u32) -> u64 {
        let mut levels = vec![u32::MAX; self.vertices()];
        levels[source as usize] = 0;
        let (mut queue, mut level, mut sum) = (vec![source], 0, 0);
        let (mut edges, mut unseen) = (self.list(source).len(), self.lists.len());
        while !queue.is_empty() {
            if edges > unseen / 15 {
                let mut front = vec![false; self.vertices()];
                queue
                    .iter()
                    .for_each(|&vertex| front[vertex as usize] = true);
                let mut size = queue.len();
                loop {
                    level += 1;
                    let mut next = vec![false; self.vertices()];
                    let (before, mut count) = (size, 0);
                    for vertex in 0..self.vertices() as u32 {
                        let near = |&&other: &&u32| front[other as usize];
                        if levels[vertex as usize] == u32::MAX
                            && self.list(vertex).iter().find(near).is_some()
                        {
                            levels[vertex as usize] = level;
                            next[vertex as usize] = true;
                            count += 1;
                        }
                    }
                    size = count;
                    sum += u64::from(level) * count as u64;
                    front = next;
                    if size == 0 || (size < before && size <= self.vertices() / 18) {
                        break;
                    }
                }
                let vertices = 0..self.vertices() as u32;
                queue = vertices.filter(|&vertex| front[vertex as usize]).collect();
                edges = 0;
            } else {
                unseen = unseen.saturating_sub(edges);
                (level, edges) = (level + 1, 0);
                let mut next = Vec::new();
                for &vertex in &queue {
                    for &other in self.list(vertex) {
                        if levels[other as usize] == u32::MAX {
                            levels[other as usize] = level;
                            edges += self.list(other).len();
                            next.push(other);
                        }
                    }
                }
                sum += u64::from(level) * next.len() as u64;
                queue = next;
            }
        }
        sum
    }

    /// The number of rounds.
    fn pagerank(&self) -> u64 {
        let count = self.vertices() as f64;
        let mut ranks = vec![1.0 / count; self.vertices()];
        let mut shares = vec![0.0; self.vertices()];
        for round in 1..=20 {
            let mut dangling = 0.0;
            for (vertex, rank) in ranks.iter().enumerate() {
                let degree = self.list(vertex as u32).len();
                dangling += if degree == 0 { *rank } else { 0.0 };
                shares[vertex] = rank / degree.max(1) as f64;
            }
            let base = (0.15 + 0.85 * dangling) / count;
            let mut change = 0.0;
            for (vertex, rank) in ranks.iter_mut().enumerate() {
                let list = self.list(vertex as u32);
                let sum: f64 = list.iter().map(|&other| shares[other as usize]).sum();
                let before = std::mem::replace(rank, base + 0.85 * sum);
                change += (*rank - before).abs();
            }
            if change < 1e-4 {
                return round;
            }
        }
        20
    }

    /// How many there are, by Afforest.
    fn components(&self) -> u64 {
        let vertices = self.vertices() as u32;
        let mut parents: Vec<u32> = (0..vertices).collect();
        for vertex in 0..vertices {
            let list = self.list(vertex).iter().take(2);
            list.for_each(|&other| link(&mut parents, vertex, other));
        }
        compress(&mut parents);
        let mut sample: Vec<u32> = parents.iter().copied().step_by(1024).collect();
        sample.sort_unstable();
        let most = sample.chunk_by(|a, b| a == b).max_by_key(|run| run.len());
        let most = most.map_or(0, |run| run[0]);
        for vertex in 0..vertices {
            if parents[vertex as usize] != most {
                let list = self.list(vertex).iter().skip(2);
                list.for_each(|&other| link(&mut parents, vertex, other));
            }
        }
        compress(&mut parents);
        parents
            .iter()
            .zip(0..)
            .filter(|&(&parent, vertex)| parent == vertex)
            .count() as u64
    }

    /// How many there are; each edge is kept at its end with fewer edges.
    fn triangles(&self) -> u64 {
        let rank = |vertex: u32| (self.list(vertex).len(), vertex);
        let (mut offsets, mut kept) = (vec![0], Vec::new());
        for vertex in 0..self.vertices() as u32 {
            let own = rank(vertex);
            kept.extend(self.list(vertex).iter().filter(|&&other| rank(other) > own));
            offsets.push(kept.len());
        }
        let list = |vertex: u32| &kept[offsets[vertex as usize]..offsets[vertex as usize + 1]];
        let mut found = 0;
        for vertex in 0..self.vertices() as u32 {
            for &other in list(vertex) {
                found += shared(list(vertex), list(other));
            }
        }
        found
    }
}

fn link(parents: &mut [u32], one: u32, other: u32) {
    let (mut one, mut other) = (parents[one as usize], parents[other as usize]);
    while one != other {
        let (low, high) = (one.min(other), one.max(other));
        let above = parents[high as usize];
        if above == high {
            parents[high as usize] = low;
        }
        if above == high || above == low {
            return;
        }
        (one, other) = (parents[above as usize], parents[low as usize]);
    }
}

fn compress(parents: &mut [u32]) {
    for vertex in 0..parents.len() {
        while parents[vertex] != parents[parents[vertex] as usize] {
            parents[vertex] = parents[parents[vertex] as usize];
        }
    }
}

fn shared(one: &[u32], other: &[u32]) -> u64 {
    let (mut count, mut i, mut j) = (0, 0, 0);
    while i < one.len() && j < other.len() {
        let (a, b) = (one[i], other[j]);
        count += u64::from(a == b);
        i += usize::from(a <= b);
        j += usize::from(b <= a);
    }
    count
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Edges between vertices some of which have far more than others.
fn random_edges(count: u64) -> Vec<(u64, u64)> {
    let mut random = fastrand::Rng::with_seed(1);
    let scale = (count / 10).max(2).ilog2();
    let mut ids: Vec<u64> = (0..1 << scale).collect();
    random.shuffle(&mut ids);
    let edges = (0..count).map(|_| {
        let (mut from, mut to) = (0, 0);
        for _ in 0..scale {
            let part = random.u32(..100);
            from = 2 * from + usize::from(part >= 76);
            to = 2 * to + usize::from((57..76).contains(&part) || part >= 95);
        }
        (ids[from], ids[to])
    });
    edges.collect()
}

fn write_edges(path: &Path, edges: &[(u64, u64)]) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    for (from, to) in edges {
        writeln!(file, "{from}\t{to}")?;
    }
    file.flush()
}
