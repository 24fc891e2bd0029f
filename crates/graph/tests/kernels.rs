//! The kernels compared with plain ones over edges in memory, on graphs of all kinds and pools down to the least.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::executor::block_on;
use graph::{
    Crew, EdgeRows, Error, Graph, Job, LoadOptions, Order, RankOptions, ReorderOptions, bfs,
    components, pagerank, triangles,
};
use memory::Budget;
use proptest::prelude::*;
use store::{Options, PoolOptions, Store};
use topology::Machine;
use workers::{Layout, Workers};

/// Workers for all tests of this file: four, on two nodes that are made up.
fn workers() -> Arc<Workers> {
    use std::sync::OnceLock;
    static WORKERS: OnceLock<Arc<Workers>> = OnceLock::new();
    let start = || {
        let live = Machine::live().unwrap();
        let made_up = Machine::parse("2x2").unwrap();
        Workers::new(Layout::of(&made_up, &live, 4, false)).unwrap()
    };
    WORKERS.get_or_init(start).clone()
}

fn crew(bytes: u64) -> Crew {
    Crew::new(workers(), Budget::new(bytes))
}

/// A store and what is loaded into it; gone when this is dropped.
struct Loaded {
    graph: Arc<Graph>,
    _store: Arc<Store>,
    _directory: tempfile::TempDir,
}

/// Loads edges into a store with a pool of `frames` pages of 4 KiB, in an order.
fn loaded(edges: &[(i64, i64)], options: &LoadOptions, frames: u64, order: Order) -> Loaded {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("edges.txt");
    let text: String = edges.iter().map(|(a, b)| format!("{a} {b}\n")).collect();
    std::fs::write(&file, text).unwrap();
    let settings = Options {
        page_size: 4096,
        pool: PoolOptions {
            bytes: frames * 4096,
            partitions_per_node: 1,
            ..PoolOptions::default()
        },
        ..Options::default()
    };
    let store = Store::create(directory.path().join("store"), &settings).unwrap();
    let job = || Job::new(Budget::new(64 << 20));
    let graph = block_on(async {
        graph::load(&store, "g", &file, options, job()).await?;
        if order != Order::Ids {
            graph::reorder(&store, "g", order, &ReorderOptions::default(), job()).await?;
        }
        Graph::open(&store.snapshot(), "g").await
    });
    Loaded {
        graph: graph.unwrap(),
        _store: store,
        _directory: directory,
    }
}

/// Lists of neighbours by id: with their repetitions and loops as the options say.
type Lists = BTreeMap<i64, Vec<i64>>;

fn lists(edges: &[(i64, i64)], options: &LoadOptions) -> Lists {
    let mut lists = Lists::new();
    let mut seen = BTreeSet::new();
    for &(a, b) in edges {
        lists.entry(a).or_default();
        lists.entry(b).or_default();
        let name = if options.directed {
            (a, b)
        } else {
            (a.min(b), a.max(b))
        };
        if (a == b && !options.loops) || (!options.repeats && !seen.insert(name)) {
            continue;
        }
        lists.entry(a).or_default().push(b);
        if !options.directed && a != b {
            lists.entry(b).or_default().push(a);
        }
    }
    lists
}

fn levels(lists: &Lists, source: i64) -> HashMap<i64, u32> {
    let mut levels = HashMap::from([(source, 0)]);
    let mut queue = VecDeque::from([source]);
    while let Some(vertex) = queue.pop_front() {
        for &other in &lists[&vertex] {
            if !levels.contains_key(&other) {
                levels.insert(other, levels[&vertex] + 1);
                queue.push_back(other);
            }
        }
    }
    levels
}

fn both_ways(lists: &Lists) -> BTreeMap<i64, BTreeSet<i64>> {
    let mut both: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
    for (&from, list) in lists {
        both.entry(from).or_default();
        for &to in list {
            both.entry(from).or_default().insert(to);
            both.entry(to).or_default().insert(from);
        }
    }
    both
}

fn ranks(lists: &Lists, options: RankOptions) -> (HashMap<i64, f64>, u32) {
    let vertices = lists.len() as f64;
    let mut ranks: HashMap<i64, f64> = lists.keys().map(|&v| (v, 1.0 / vertices)).collect();
    for round in 0..options.rounds {
        let mut next: HashMap<i64, f64> = lists.keys().map(|&v| (v, 0.0)).collect();
        let mut dangling = 0.0;
        for (from, list) in lists {
            if list.is_empty() {
                dangling += ranks[from];
            }
            for to in list {
                *next.get_mut(to).unwrap() += ranks[from] / list.len() as f64;
            }
        }
        let base = (1.0 - options.damping + options.damping * dangling) / vertices;
        next.values_mut()
            .for_each(|rank| *rank = base + options.damping * *rank);
        let change: f64 = next.iter().map(|(v, rank)| (rank - ranks[v]).abs()).sum();
        ranks = next;
        if change < options.tolerance {
            return (ranks, round + 1);
        }
    }
    (ranks, options.rounds)
}

fn edges() -> impl Strategy<Value = Vec<(i64, i64)>> {
    // Few vertices with many edges, many with few, hubs, and paths that have many levels.
    let any = |most: i64, count: usize| {
        prop::collection::vec((0..most, 0..most), 1..count).prop_map(|mut edges| {
            edges
                .iter_mut()
                .for_each(|(a, b)| (*a, *b) = (*a * 7 - 60, *b * 7 - 60));
            edges
        })
    };
    let hub = (2..4000_i64).prop_map(|n| (1..n).map(|v| (0, v)).chain([(1, 2)]).collect());
    let path = (2..600_i64).prop_map(|n| (1..n).map(|v| (v - 1, v)).collect());
    prop_oneof![any(40, 300), any(3000, 6000), any(9000, 3000), hub, path]
}

fn options() -> impl Strategy<Value = LoadOptions> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(directed, loops, repeats)| {
        LoadOptions {
            directed,
            loops,
            repeats,
            ..LoadOptions::default()
        }
    })
}

fn order() -> impl Strategy<Value = Order> {
    prop::sample::select(Order::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_search_finds_the_levels_that_a_queue_finds(
        edges in edges(), options in options(), order in order(),
        frames in prop_oneof![Just(16_u64), Just(24), Just(1024)], pick in any::<prop::sample::Index>(),
    ) {
        let loaded = loaded(&edges, &options, frames, order);
        let lists = lists(&edges, &options);
        let source = edges[pick.index(edges.len())].0;
        let expected = levels(&lists, source);
        let (graph, crew) = (&loaded.graph, crew(64 << 20));
        block_on(async {
            let found = bfs(graph, graph.find(source).await.unwrap(), &crew).await.unwrap();
            for &id in lists.keys() {
                let level = found.level(graph.find(id).await.unwrap());
                assert_eq!(level, expected.get(&id).copied(), "vertex {id} from {source}");
            }
            assert_eq!(found.reached(), expected.len() as u64);
            let mut sizes = vec![0_u64; found.sizes.len()];
            expected.values().for_each(|&level| sizes[level as usize] += 1);
            assert_eq!(found.sizes, sizes);
        });
        prop_assert_eq!(crew.budget().used(), 0);
    }

    #[test]
    fn ranks_are_those_of_a_plain_loop(
        edges in edges(), options in options(), order in order(), frames in prop_oneof![Just(16_u64), Just(1024)],
    ) {
        let loaded = loaded(&edges, &options, frames, order);
        let how = RankOptions { tolerance: 1e-9, ..RankOptions::default() };
        let (expected, rounds) = ranks(&lists(&edges, &options), how);
        let graph = &loaded.graph;
        block_on(async {
            let found = pagerank(graph, how, &crew(64 << 20)).await.unwrap();
            assert_eq!(found.rounds, rounds);
            assert!((found.ranks.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            for (&id, rank) in &expected {
                let own = found.ranks[graph.find(id).await.unwrap() as usize];
                assert!((own - rank).abs() < 1e-12, "vertex {id}: {own}, not {rank}");
            }
        });
    }

    #[test]
    fn components_are_what_can_be_reached_both_ways(
        edges in edges(), options in options(), order in order(), frames in prop_oneof![Just(16_u64), Just(1024)],
    ) {
        let loaded = loaded(&edges, &options, frames, order);
        let both = both_ways(&lists(&edges, &options));
        let graph = &loaded.graph;
        block_on(async {
            let found = components(graph, &crew(64 << 20)).await.unwrap();
            let plain: Lists = both.iter().map(|(&v, set)| (v, set.iter().copied().collect())).collect();
            let (mut seen, mut count, mut largest) = (BTreeSet::new(), 0, 0);
            for &id in both.keys() {
                if seen.contains(&id) {
                    continue;
                }
                let members: Vec<i64> = levels(&plain, id).into_keys().collect();
                let mut numbers = Vec::new();
                for &member in &members {
                    numbers.push(graph.find(member).await.unwrap());
                }
                let least = numbers.iter().copied().min().unwrap();
                for number in numbers {
                    assert_eq!(found.labels[number as usize], least);
                }
                count += 1;
                largest = largest.max(members.len() as u64);
                seen.extend(members);
            }
            assert_eq!((found.count, found.largest), (count, largest));
        });
    }

    #[test]
    fn triangles_are_counted_once_in_however_many_turns(
        edges in edges(), options in options(), order in order(),
        frames in prop_oneof![Just(16_u64), Just(1024)], tight in any::<bool>(),
    ) {
        let loaded = loaded(&edges, &options, frames, order);
        let both = both_ways(&lists(&edges, &options));
        let mut expected = 0;
        for (&a, list) in &both {
            for &b in list.range(a + 1..) {
                expected += list.range(b + 1..).filter(|c| both[&b].contains(c)).count() as u64;
            }
        }
        // Room for the degrees and for one piece, when tight.
        let vertices = u64::from(loaded.graph.vertices());
        let memory = if tight { 8 * vertices + 4 * loaded.graph.entries() } else { 64 << 20 };
        let found = block_on(triangles(&loaded.graph, &crew(memory + 16_384)));
        prop_assert_eq!(found.unwrap().triangles, expected);
    }
}

/// Vertices each of which has an edge to some that come after it.
fn ladder(vertices: i64, each: i64) -> Vec<(i64, i64)> {
    (0..vertices)
        .flat_map(|v| (1..=each).map(move |step| (v, (v + step) % vertices)))
        .collect()
}

#[test]
fn little_memory_makes_turns_and_too_little_is_an_error() {
    let loaded = loaded(&ladder(8192, 6), &LoadOptions::default(), 1024, Order::Ids);
    let count = |bytes: u64| block_on(triangles(&loaded.graph, &crew(bytes)));
    let much = count(64 << 20).unwrap();
    assert_eq!(much.turns, 1);
    let little = count(8 * 8192 + 150_000).unwrap();
    assert!(little.turns > 1, "{little:?}");
    assert_eq!(little.triangles, much.triangles);
    let error = count(8 * 8192 + 1000).unwrap_err();
    assert!(matches!(error, Error::Memory { .. }), "{error}");
    let error = block_on(bfs(&loaded.graph, 0, &crew(1000))).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("a breadth-first search of graph 'g' needs"),
        "{error}"
    );
}

#[test]
fn a_search_pins_only_the_pages_that_it_needs() {
    // A small part beside a large one.
    let mut edges = ladder(60_000, 4);
    edges.extend((0..20).map(|v| (1_000_000 + v, 1_000_001 + v)));
    let loaded = loaded(&edges, &LoadOptions::default(), 4096, Order::Ids);
    let graph = &loaded.graph;
    let pages = graph.summary().pages;
    block_on(async {
        let source = graph.find(1_000_003).await.unwrap();
        let small = bfs(graph, source, &crew(64 << 20)).await.unwrap();
        assert_eq!(small.reached(), 18);
        assert!(
            small.reads.misses <= 4,
            "{:?} of {pages} pages",
            small.reads
        );
    });
}

#[test]
fn a_vertex_that_is_not_there_and_a_damping_that_is_none_are_errors() {
    let loaded = loaded(&[(1, 2)], &LoadOptions::default(), 64, Order::Ids);
    let error = block_on(bfs(&loaded.graph, 2, &crew(1 << 20))).unwrap_err();
    assert!(
        matches!(error, Error::NoVertex { vertex: 2, .. }),
        "{error}"
    );
    for damping in [-0.1, 1.1, f64::NAN] {
        let options = RankOptions {
            damping,
            ..RankOptions::default()
        };
        let error = block_on(pagerank(&loaded.graph, options, &crew(1 << 20))).unwrap_err();
        assert!(matches!(error, Error::Option { .. }), "{error}");
    }
}

#[test]
fn what_is_stopped_ends_and_gives_back_its_memory() {
    let loaded = loaded(&ladder(5000, 3), &LoadOptions::default(), 256, Order::Ids);
    let crew = crew(64 << 20);
    crew.stop().store(true, Ordering::Relaxed);
    let stopped = block_on(async {
        [
            bfs(&loaded.graph, 0, &crew).await.err(),
            pagerank(&loaded.graph, RankOptions::default(), &crew)
                .await
                .err(),
            components(&loaded.graph, &crew).await.err(),
            triangles(&loaded.graph, &crew).await.err(),
        ]
    });
    for error in stopped {
        assert!(matches!(error, Some(Error::Interrupted)), "{error:?}");
    }
    assert_eq!(crew.budget().used(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn rows_are_the_edges_and_the_degrees(
        edges in edges(), options in options(), order in order(), frames in prop_oneof![Just(16_u64), Just(256)],
        most in 1..5000_usize,
    ) {
        let loaded = loaded(&edges, &options, frames, order);
        let lists = lists(&edges, &options);
        let mut expected: Vec<(i64, i64)> = lists
            .iter()
            .flat_map(|(&from, list)| list.iter().map(move |&to| (from, to)))
            .collect();
        expected.sort_unstable();
        let graph = &loaded.graph;
        block_on(async {
            let (mut rows, mut found) = (EdgeRows::new(graph), Vec::new());
            while let Some(some) = rows.next(most).await.unwrap() {
                assert!(some.from.len() <= most && some.from.len() == some.to.len());
                assert!(some.weights.is_none());
                found.extend(some.from.into_iter().zip(some.to));
            }
            found.sort_unstable();
            assert_eq!(found, expected);
            let degrees = graph.degrees(0..u32::MAX).await.unwrap();
            let mut leading_to: BTreeMap<i64, u64> = BTreeMap::new();
            expected.iter().for_each(|&(_, to)| *leading_to.entry(to).or_default() += 1);
            for (number, (out, into)) in degrees.into_iter().enumerate() {
                let id = graph.id(number as u32).await.unwrap();
                assert_eq!(out, lists[&id].len() as u64);
                assert_eq!(into, leading_to.get(&id).copied().unwrap_or(0));
            }
            for source in graph.sources(20, 3).await.unwrap() {
                assert!(!lists[&graph.id(source).await.unwrap()].is_empty());
            }
        });
    }
}
