//! The search: its manners, and how near the best it gets on costs it was not built with.

#[path = "../examples/worlds/mod.rs"]
mod worlds;

use std::path::PathBuf;

use placement::search::{Options, Search, Stop};
use placement::table::{Costs, Entry, Table};
use placement::{Classes, Error, Placement, Random, Site, Strategy, Threads};
use topology::Machine;
use worlds::World;

fn site(machine: &str) -> Site {
    Site::new(&Machine::parse(machine).unwrap())
}

fn options(runs: usize, seed: u64) -> Options {
    Options {
        runs,
        seed,
        ..Options::default()
    }
}

/// Runs a search to its end.
fn search(
    site: &Site,
    threads: &Threads,
    options: Options,
    cost: impl Fn(&Placement) -> f64,
) -> Search {
    let mut search = Search::new(site, threads, options).unwrap();
    while let Some(placement) = search.ask() {
        assert_eq!(search.ask().as_ref(), Some(&placement), "asking twice");
        search.tell(&placement, cost(&placement)).unwrap();
    }
    assert!(search.stopped().is_some());
    search
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    (of[(of.len() - 1) / 2] + of[of.len() / 2]) / 2.0
}

/// Threads of one half are best together.
fn halves(site: &Site, placement: &Placement) -> f64 {
    let nodes = placement.nodes(site);
    let count = nodes.len();
    let apart = (0..count)
        .filter(|&at| nodes[at] != nodes[at * 2 / count * (count / 2)])
        .count();
    1.0 + apart as f64
}

#[test]
fn a_search_keeps_to_its_runs_and_repeats_itself() {
    let site = site("2x6");
    let threads = Threads::in_groups(12, 1).unwrap();
    let run = || {
        search(&site, &threads, options(20, 3), |placed| {
            halves(&site, placed)
        })
    };
    let (one, other) = (run(), run());
    assert!(one.runs() <= 20);
    assert_eq!(one.best(), other.best());
    let (best, cost) = one.best().unwrap();
    assert_eq!(halves(&site, &best), 1.0, "compact is among the first");
    // The model's idea of it, drawn to the usual costs, which are about 4.
    assert!((0.8..2.0).contains(&cost), "{cost}");
}

#[test]
fn it_stops_when_nothing_is_to_be_gained() {
    let site = site("2x6");
    let threads = Threads::in_groups(12, 1).unwrap();
    let flat = search(&site, &threads, options(40, 1), |_| 5.0);
    assert!(
        matches!(flat.stopped(), Some(Stop::Gain { .. })),
        "{:?}",
        flat.stopped()
    );
    assert!(flat.runs() < 25, "{} runs", flat.runs());
    let few = Threads::in_groups(4, 1).unwrap();
    let all = search(&site, &few, options(40, 1), |placed| halves(&site, placed));
    assert!(all.runs() <= 8, "there are eight classes");
    let one = Threads::in_groups(1, 1).unwrap();
    assert_eq!(search(&site, &one, options(40, 1), |_| 1.0).runs(), 1);
    let none = Search::new(&site, &one, options(0, 1)).unwrap().ask();
    assert_eq!(none, None);
}

#[test]
fn what_it_is_told_is_checked() {
    let site = site("2x2");
    let threads = Threads::in_groups(4, 1).unwrap();
    let mut search = Search::new(&site, &threads, options(5, 1)).unwrap();
    assert_eq!(search.best(), None);
    let placement = search.ask().unwrap();
    for cost in [f64::NAN, f64::INFINITY] {
        assert!(search.tell(&placement, cost).is_err());
    }
    let os = Strategy::Os.place(&site, &threads).unwrap();
    assert!(matches!(search.tell(&os, 1.0), Err(Error::Mapping { .. })));
    // Costs of 0 and below are costs.
    search.tell(&placement, 0.0).unwrap();
    search.tell(&placement, -1.0).unwrap();
    assert_eq!(search.runs(), 2);
    let sharing = Some(vec![vec![0.0; 4]; 3]);
    let options = Options {
        sharing,
        ..Options::default()
    };
    assert!(Search::new(&site, &threads, options).is_err());
}

#[test]
fn where_all_can_be_run_each_is_run_once() {
    let site = site("2x6");
    let threads = Threads::in_groups(4, 1).unwrap();
    let mut random = Random::new(3);
    let mut search = Search::new(&site, &threads, options(40, 1)).unwrap();
    let mut asked = Vec::new();
    while let Some(placement) = search.ask() {
        let noise = 1.0 + 0.3 * random.unit();
        search
            .tell(&placement, noise * halves(&site, &placement))
            .unwrap();
        asked.push(placement);
    }
    let runs = asked.len();
    asked.sort();
    asked.dedup();
    assert_eq!((asked.len(), runs), (8, 8));
    assert_eq!(search.stopped(), Some(Stop::All));
}

#[test]
fn what_is_known_of_sharing_helps() {
    // Pairs that no usual pattern has.
    let pairs = [(0, 7), (1, 10), (2, 5), (3, 8), (4, 11), (6, 9)];
    let site = site("2x6");
    let threads = Threads::in_groups(12, 1).unwrap();
    let cost = |placed: &Placement| {
        let nodes = placed.nodes(&site);
        10.0 + pairs.iter().filter(|(a, b)| nodes[*a] != nodes[*b]).count() as f64
    };
    let mut sharing = vec![vec![0.0; 12]; 12];
    pairs.iter().for_each(|&(a, b)| sharing[a][b] = 1.0);
    let found = |sharing: Option<Vec<Vec<f64>>>| -> f64 {
        let one = |seed| {
            let options = Options {
                sharing: sharing.clone(),
                ..options(14, seed)
            };
            cost(&search(&site, &threads, options, cost).best().unwrap().0)
        };
        (0..6).map(one).sum()
    };
    assert!(found(Some(sharing)) <= found(None));
}

#[test]
fn more_placements_than_can_be_listed_are_searched_too() {
    let site = site("4x8");
    let threads = Threads::in_groups(32, 4).unwrap();
    let classes = Classes::new(&site, &threads).unwrap();
    assert!(classes.count().unwrap() > 1 << 50);
    let apart = |placed: &Placement| {
        let nodes = placed.nodes(&site);
        let same = (1..32)
            .filter(|&at| nodes[at] == nodes[(at + 31) % 32 / 2])
            .count();
        40.0 - same as f64
    };
    let found = search(&site, &threads, options(25, 2), apart);
    let cost = apart(&found.best().unwrap().0);
    let mut random = Random::new(5);
    let mut drawn = || {
        let costs = (0..25).map(|_| apart(&classes.sample(&mut random)));
        costs.fold(f64::INFINITY, f64::min)
    };
    let usual = (0..20).map(|_| drawn()).sum::<f64>() / 20.0;
    assert!(
        cost < usual,
        "{cost}, the best of 25 draws is {usual} on average"
    );
}

/// The gain of a search on a world with noise.
fn on_world(world: &World, seed: u64) -> f64 {
    let cost = |placed: &Placement| world.costs[world.placements.binary_search(placed).unwrap()];
    let random = std::cell::RefCell::new(Random::new(seed));
    let run = |placed: &Placement| world.run(cost(placed), &mut random.borrow_mut());
    let found = {
        let mut search = Search::new(&world.site, &world.threads, options(25, seed)).unwrap();
        while let Some(placement) = search.ask() {
            search.tell(&placement, run(&placement)).unwrap();
        }
        search.best().unwrap().0
    };
    world.gain(cost(&found))
}

/// The mean gain of the best of 25 placements drawn by chance, each run once.
fn drawn(world: &World, times: u64) -> f64 {
    let mut random = Random::new(99);
    let mut one = || {
        let runs = (0..25).map(|_| {
            let cost = world.costs[random.index(world.costs.len())];
            (world.run(cost, &mut random), cost)
        });
        let best = runs.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        world.gain(best.1)
    };
    (0..times).map(|_| one()).sum::<f64>() / times as f64
}

#[test]
fn unseen_laws_are_searched_better_than_by_chance() {
    let worlds: Vec<World> = (0..15).map(worlds::unseen::world).collect();
    for world in &worlds {
        assert!(world.costs.iter().all(|cost| *cost > 0.0), "{}", world.name);
    }
    let ours: Vec<f64> = worlds.iter().map(|world| on_world(world, 1)).collect();
    let theirs: Vec<f64> = worlds.iter().map(|world| drawn(world, 20)).collect();
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    println!(
        "search {:.3}, draws {:.3}, {ours:?}",
        mean(&ours),
        mean(&theirs)
    );
    assert!(mean(&ours) > mean(&theirs) + 0.1);
    assert!(median(ours) > 0.8);
    let seen = (0..6).flat_map(|seed| [worlds::tuned::world(seed), worlds::varied::world(seed)]);
    let seen: Vec<f64> = seen.map(|world| on_world(&world, 1)).collect();
    assert!(mean(&seen) > 0.8, "{seen:?}");
}

fn recorded(name: &str) -> Costs {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../bench/placements");
    let path = folder.join(format!("xeon-2630-12-{name}.json"));
    Table::read(&path).unwrap().costs().unwrap()
}

/// The required quality of the search, with fewer seeds than the example `compare` takes.
#[test]
fn recorded_tables_are_searched_to_95_per_cent_in_25_runs() {
    for name in ["chunks", "join", "stream"] {
        let costs = recorded(name);
        let gain = |seed| {
            let cost = |placed: &Placement| costs.of(placed).expect("all 462 were recorded");
            let found = search(costs.site(), costs.threads(), options(25, seed), cost);
            assert!(found.runs() <= 25);
            costs.gain(cost(&found.best().unwrap().0))
        };
        let gain = median((0..7).map(gain).collect());
        println!("{name}: {gain:.3} of the best gain");
        assert!(gain >= 0.95, "{name}: {gain}");
    }
}

#[test]
fn tables_are_checked() {
    let table = |placements: Vec<Entry>| Table {
        machine: "2x2".to_owned(),
        threads: 4,
        workload: "w".to_owned(),
        baseline: None,
        placements,
    };
    let entry = |cpus: [u32; 4], cost| Entry {
        cpus: cpus.to_vec(),
        cost,
    };
    let good = table(vec![entry([0, 1, 2, 3], 3.0), entry([0, 2, 1, 3], 1.0)]);
    let text = serde_json::to_string(&good).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.json");
    std::fs::write(&path, text.replace('{', "{\"more\":[1],")).unwrap();
    assert_eq!(Table::read(&path).unwrap(), good);
    let costs = good.costs().unwrap();
    assert_eq!((costs.least(), costs.baseline()), (1.0, 2.0));
    assert_eq!(
        (costs.gain(1.0), costs.gain(2.0), costs.gain(3.0)),
        (1.0, 0.0, -1.0)
    );
    // Nodes and cores exchanged.
    let sets = [3u32, 1, 2, 0].map(|cpu| vec![cpu].into()).to_vec();
    let placed = Placement::explicit(costs.site(), sets).unwrap();
    assert_eq!(costs.of(&placed), Some(1.0));
    for (wrong, word) in [
        (table(Vec::new()), "empty"),
        (table(vec![entry([0, 1, 2, 9], 1.0)]), "cpu 9"),
        (table(vec![entry([0, 1, 2, 3], f64::NAN)]), "costs NaN"),
        (
            Table {
                threads: 3,
                ..good.clone()
            },
            "3 threads",
        ),
        (
            Table {
                machine: "m".to_owned(),
                ..good
            },
            "unknown machine",
        ),
    ] {
        let error = wrong.costs().unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    std::fs::write(&path, "{\"machine\": 3}").unwrap();
    let error = Table::read(&path).unwrap_err().to_string();
    assert!(
        error.contains("table.json") && error.contains("line 1"),
        "{error}"
    );
}
