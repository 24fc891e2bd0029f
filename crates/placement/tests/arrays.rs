//! The scheduler of array queries against every mapping there is.

use placement::arrays::{Chunk, Division, Goal, LEAST_PIECE, Load, Piece, Sharing, schedule};
use placement::{Classes, CpuSet, Placement, Random, Site, Strategy, Threads};
use topology::Machine;

fn site(machine: &str) -> Site {
    Site::new(&Machine::parse(machine).unwrap())
}

/// Where chunks lie: in turn, in halves, all on one node, three of four on one node, by chance.
const RESIDENCIES: [&str; 5] = ["even", "halves", "one", "three of four", "chance"];

fn chunks(residency: &str, count: usize, bytes: u64) -> Vec<Chunk> {
    let mut random = Random::new(count as u64);
    let mut home = |at: usize| match residency {
        "even" => at % 2,
        "halves" => at * 2 / count,
        "one" => 1,
        "three of four" => usize::from(at.is_multiple_of(4)),
        _ => random.below(2) as usize,
    };
    (0..count)
        .map(|at| Chunk {
            home: home(at),
            bytes,
            slabs: 250,
        })
        .collect()
}

/// The least of the busiest core and the least remote bytes of all placements that differ, with the nodes either way
/// round: chunks lie on nodes, which makes these differ.
fn best(site: &Site, threads: usize, division: &Division, chunks: &[Chunk]) -> (f64, f64) {
    let classes = Classes::new(site, &Threads::in_groups(threads, 1).unwrap()).unwrap();
    let half = site.cpus() as u32 / 2;
    let other = |set: &CpuSet| set.iter().map(|cpu| (cpu + half) % (2 * half)).collect();
    let both = classes.iter().flat_map(|placement| {
        let mirrored = placement.sets().iter().map(other).collect();
        [Placement::explicit(site, mirrored).unwrap(), placement]
    });
    let loads = both.map(|placement| Load::of(site, &placement, division, chunks).unwrap());
    loads.fold((f64::INFINITY, f64::INFINITY), |(busiest, remote), load| {
        (busiest.min(load.busiest), remote.min(load.remote))
    })
}

fn within_five_per_cent(machine: &str, threads: usize, counts: &[usize]) {
    let site = site(machine);
    let ways = [
        Sharing::Whole,
        Sharing::Groups { of: 4 },
        Sharing::Instances { count: 3 },
    ];
    for residency in RESIDENCIES {
        for &count in counts {
            let chunks = chunks(residency, count, (1 << 30) / count as u64);
            let load = |goal| {
                let schedule = schedule(&site, threads, &chunks, goal).unwrap();
                Load::of(&site, schedule.placement(), schedule.division(), &chunks).unwrap()
            };
            let (shortest, local) = (load(Goal::Shortest), load(Goal::Local));
            assert_eq!(local.remote, 0.0, "{machine}, {residency}, {count} chunks");
            for way in ways {
                let division = way.divide(threads, &chunks).unwrap();
                let (busiest, remote) = best(&site, threads, &division, &chunks);
                let case = format!("{machine}, {residency}, {count} chunks, {way}");
                assert!(
                    shortest.busiest <= 1.05 * busiest,
                    "{case}: {} against {busiest}",
                    shortest.busiest
                );
                assert!(local.remote <= 1.05 * remote, "{case}");
                // No division of all bytes among so many threads has a shorter longest one.
                let all = shortest.local + shortest.remote;
                assert!(shortest.busiest >= all / threads as f64 - 1.0, "{case}");
            }
        }
    }
}

#[test]
fn within_five_per_cent_of_the_best_of_all_462_mappings() {
    let site = site("xeon-2630");
    let threads = Threads::in_groups(12, 1).unwrap();
    assert_eq!(Classes::new(&site, &threads).unwrap().count(), Some(462));
    within_five_per_cent("xeon-2630", 12, &[1, 3, 10, 100]);
}

#[test]
fn within_five_per_cent_on_two_nodes_of_ten() {
    within_five_per_cent("xeon-4114", 12, &[3, 100]);
}

/// Every byte of every chunk is in exactly one piece.
fn complete(division: &Division, chunks: &[Chunk]) {
    let mut pieces: Vec<Piece> = division.threads().concat();
    pieces.sort_by_key(|piece| (piece.chunk, piece.from));
    let mut ends = vec![0; chunks.len()];
    for piece in pieces {
        assert!(piece.to > piece.from);
        assert_eq!(
            piece.from,
            std::mem::replace(&mut ends[piece.chunk], piece.to)
        );
    }
    let all: Vec<u64> = chunks.iter().map(|chunk| chunk.bytes).collect();
    assert_eq!(ends, all);
}

#[test]
fn whatever_is_asked_for_all_is_read_once_and_no_strategy_is_much_better() {
    let mut random = Random::new(7);
    let mut below = |most: u128| random.below(most) as usize;
    for case in 0..300 {
        let machine = ["2x6", "4x4", "1x3", "xeon-4657l", "3x2"][below(5)];
        let site = site(machine);
        let nodes = site.machine().nodes().len();
        let threads = below(40) + 1;
        let count = below(30);
        let chunks: Vec<Chunk> = (0..count)
            .map(|_| Chunk {
                // The first node more often than the others.
                home: (below(nodes as u128 * 2)).saturating_sub(nodes),
                bytes: [0, 1, 1 << 16, 70 << 20, 1 << 28][below(5)] + below(1 << 20) as u64,
                slabs: [0, 1, 3, 250, 1000][below(5)],
            })
            .collect();
        for goal in [Goal::Shortest, Goal::Local] {
            let schedule = schedule(&site, threads, &chunks, goal).unwrap();
            complete(schedule.division(), &chunks);
            assert!((1..=threads).contains(&schedule.threads()), "case {case}");
            assert_eq!(schedule.division().threads().len(), schedule.threads());
            let cpus = schedule.placement().cpus().len();
            if threads <= site.cores() {
                assert_eq!(cpus, schedule.threads(), "case {case}: a cpu each");
            }
            assert!(!schedule.why().is_empty());
        }
        // Of chunks that can be cut finely no named strategy makes more.
        let fine = |chunk: &Chunk| Chunk {
            slabs: chunk.bytes.max(1),
            bytes: chunk.bytes.max(64 * LEAST_PIECE),
            ..*chunk
        };
        let chunks: Vec<Chunk> = chunks.iter().map(fine).collect();
        let ours = schedule(&site, threads, &chunks, Goal::Shortest).unwrap();
        let ours = Load::of(&site, ours.placement(), ours.division(), &chunks).unwrap();
        for way in [Sharing::Whole, Sharing::fitting(threads, count)] {
            let division = way.divide(threads, &chunks).unwrap();
            let grouped = Threads::with_groups(way.groups(threads).unwrap()).unwrap();
            for strategy in [
                Strategy::Os,
                Strategy::Compact,
                Strategy::Sparse,
                Strategy::Shared,
            ] {
                let Ok(placement) = strategy.place(&site, &grouped) else {
                    continue;
                };
                let load = Load::of(&site, &placement, &division, &chunks).unwrap();
                let most = 1.05 * load.busiest + 4.0 * LEAST_PIECE as f64;
                assert!(
                    ours.busiest <= most,
                    "case {case}, {machine}, {threads} threads, {strategy}: {} of {}",
                    ours.busiest,
                    load.busiest
                );
            }
        }
    }
}

#[test]
fn it_says_why() {
    let site = site("xeon-2630");
    let why = |threads, chunks: &[Chunk], goal| {
        schedule(&site, threads, chunks, goal)
            .unwrap()
            .why()
            .join("\n")
    };
    let large = |home| Chunk {
        home,
        bytes: 250 << 20,
        slabs: 250,
    };
    let text = why(12, &[large(0)], Goal::Shortest);
    assert!(text.contains("12 threads: 250 MiB of 1 chunk"), "{text}");
    assert!(
        text.contains("node 1, 6 threads") && text.contains("of node 0"),
        "{text}"
    );
    assert!(
        text.contains("1 of 1 chunk shared by up to 6 threads"),
        "{text}"
    );
    let text = why(12, &[large(0)], Goal::Local);
    assert!(
        text.contains("node 1 stays idle: nothing lies there"),
        "{text}"
    );
    let text = why(
        12,
        &vec![
            Chunk {
                bytes: 1 << 20,
                ..large(1)
            };
            600
        ],
        Goal::Local,
    );
    assert!(
        text.contains("taken whole") || text.contains("shared by up to 2"),
        "{text}"
    );
    let small = Chunk {
        bytes: 100 << 10,
        ..large(0)
    };
    let text = why(12, &[small], Goal::Shortest);
    assert!(
        text.contains("2 threads: 100 KiB of 1 chunk") && text.contains("work for no more"),
        "{text}"
    );
    let text = why(20, &[large(0), large(1)], Goal::Shortest);
    assert!(text.contains("12 threads of 20"), "{text}");
    // Six threads with 1.5 MB each, read and made, do not fit into 15 MiB; three do.
    let text = why(
        12,
        &vec![
            Chunk {
                bytes: 1_500_000,
                ..large(1)
            };
            60
        ],
        Goal::Local,
    );
    assert!(text.contains("60 chunks shared by teams of 2"), "{text}");
    let text = why(12, &[], Goal::Shortest);
    assert!(text.contains("1 thread: 0 B of 0 chunks"), "{text}");
    assert!(schedule(&site, 0, &[], Goal::Local).is_err());
}
