//! Hit rates of the replacement policies on traces of pages, by size of the pool.
//!
//! `cargo run -p buffer --release --example traces`
//!
//! The policies are those of the pool; only its frames and words are simulated, so that a trace
//! gives the same figures everywhere. Percent of the pins that found their page.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::Write;

use buffer::replacement::{Replacement, Slots, Victim};
use buffer::{PageId, Policy, Swept};

/// As large as the largest count in the word of a page.
const USAGE_CAP: u32 = 5;
const PINS: usize = 400_000;

/// Frames of one partition, without pins.
struct Frames {
    /// The page of each frame, and its usage count while it is there.
    held: RefCell<Vec<(PageId, Option<u32>)>>,
    resident: RefCell<HashMap<PageId, u32>>,
    looks: Cell<u64>,
}

impl Frames {
    fn remove(&self, slot: u32) -> bool {
        let (page, uses) = &mut self.held.borrow_mut()[slot as usize];
        uses.take().is_some() && self.resident.borrow_mut().remove(page).is_some()
    }
}

impl Slots for Frames {
    fn look(&self, slot: u32) -> Swept {
        self.looks.set(self.looks.get() + 1);
        match self.held.borrow()[slot as usize].1 {
            Some(uses) => Swept::Aged(uses),
            None => Swept::Elsewhere,
        }
    }

    fn age(&self, slot: u32) -> Swept {
        match self.look(slot) {
            Swept::Aged(0) if self.remove(slot) => Swept::Evicted,
            Swept::Aged(uses) => {
                self.set_uses(slot, uses - 1);
                Swept::Aged(uses - 1)
            }
            other => other,
        }
    }

    fn set_uses(&self, slot: u32, uses: u32) {
        if let (_, Some(now)) = &mut self.held.borrow_mut()[slot as usize] {
            *now = uses;
        }
    }

    fn evict(&self, slot: u32) -> bool {
        self.looks.set(self.looks.get() + 1);
        self.remove(slot)
    }

    fn page(&self, slot: u32) -> PageId {
        self.held.borrow()[slot as usize].0
    }
}

/// The hits in percent, and the looks for each miss.
fn simulate(policy: &dyn Replacement, frames: u32, trace: &[PageId]) -> (f64, f64) {
    let pool = Frames {
        held: RefCell::new(vec![(0, None); frames as usize]),
        resident: RefCell::default(),
        looks: Cell::new(0),
    };
    let (mut hits, mut next) = (0u32, 0);
    for &page in trace {
        let found = pool.resident.borrow().get(&page).copied();
        if let Some(slot) = found {
            hits += 1;
            let uses = pool.held.borrow()[slot as usize].1.unwrap_or(0);
            pool.set_uses(slot, (uses + 1).min(USAGE_CAP));
            continue;
        }
        let slot = if next < frames {
            next += 1;
            next - 1
        } else {
            loop {
                if let Victim::Taken(slot) = policy.victim(&pool) {
                    break slot;
                }
            }
        };
        pool.held.borrow_mut()[slot as usize] = (page, Some(1));
        pool.resident.borrow_mut().insert(page, slot);
        policy.loaded(slot, page, &pool);
    }
    let misses = (trace.len() as f64 - f64::from(hits)).max(1.0);
    let rate = 100.0 * f64::from(hits) / trace.len() as f64;
    (rate, pool.looks.get() as f64 / misses)
}

/// Page numbers below `pages`; the one of rank r is as likely as 1 / r^exponent.
struct Zipf {
    sums: Vec<f64>,
}

impl Zipf {
    fn new(pages: u32, exponent: f64) -> Zipf {
        let mut sum = 0.0;
        let weight = |rank: u32| f64::from(rank).powf(-exponent);
        let sums = (1..=pages).map(|rank| {
            sum += weight(rank);
            sum
        });
        Zipf {
            sums: sums.collect(),
        }
    }

    fn next(&self, random: &mut fastrand::Rng) -> PageId {
        let total = self.sums.last().copied().unwrap_or(1.0);
        let at = random.f64() * total;
        self.sums.partition_point(|sum| *sum < at) as PageId
    }
}

/// Breadth-first searches from random starts over a random graph whose degrees follow a power
/// law: for each vertex its own page, and the pages of its neighbours.
fn searches(random: &mut fastrand::Rng) -> Vec<PageId> {
    const VERTICES: u32 = 1 << 16;
    const A_PAGE: u32 = 8;
    let popular = Zipf::new(VERTICES, 0.8);
    let neighbours: Vec<Vec<u32>> = (0..VERTICES)
        .map(|_| (0..8).map(|_| popular.next(random)).collect())
        .collect();
    let mut trace = Vec::new();
    while trace.len() < PINS {
        let start = random.u32(..VERTICES);
        let mut seen = vec![false; VERTICES as usize];
        seen[start as usize] = true;
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(vertex) = queue.pop_front() {
            trace.push(vertex / A_PAGE);
            for &next in &neighbours[vertex as usize] {
                if !std::mem::replace(&mut seen[next as usize], true) {
                    queue.push_back(next);
                }
            }
        }
    }
    trace.truncate(PINS);
    trace
}

/// Each trace is of about 10,000 different pages; `frames` matters to the loop only.
fn traces(frames: u32) -> Vec<(&'static str, Vec<PageId>)> {
    let mut random = fastrand::Rng::with_seed(7);
    let pages = 10_000u32;
    let mut all = vec![
        (
            "scan, repeated",
            (0..PINS as u32).map(|i| i % pages).collect(),
        ),
        (
            "loop of the pool and a tenth",
            (0..PINS as u32).map(|i| i % (frames * 11 / 10)).collect(),
        ),
    ];
    for (name, exponent) in [("Zipf 0.8", 0.8), ("Zipf 1.0", 1.0)] {
        let zipf = Zipf::new(pages, exponent);
        all.push((name, (0..PINS).map(|_| zipf.next(&mut random)).collect()));
    }
    // A scan of 20,000 other pages after every 20,000 pins.
    let zipf = Zipf::new(pages, 1.0);
    let mixed = (0..PINS as u32).map(|i| match i / 20_000 % 2 {
        0 => zipf.next(&mut random),
        _ => pages + i % 20_000,
    });
    all.push(("Zipf 1.0 and scans in turn", mixed.collect()));
    // One of three pins is a scan's.
    let mixed = (0..PINS as u32).map(|i| match i % 3 {
        0 => pages + i / 3 % 50_000,
        _ => zipf.next(&mut random),
    });
    all.push(("Zipf 1.0 beside a scan", mixed.collect()));
    // Queries: a big table in order, and for each of its pages three of hot small tables.
    let queries = (0..PINS as u32).map(|i| match i % 4 {
        0 => pages + i / 4 % 8000,
        1 => random.u32(..300),
        2 => random.u32(300..900),
        _ => random.u32(900..1000),
    });
    all.push(("big and small tables", queries.collect()));
    all.push(("breadth-first searches", searches(&mut random)));
    all
}

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    write!(out, "{:<30} {:>7}", "trace", "frames")?;
    for policy in Policy::ALL {
        write!(out, " {:>15}", format!("{policy:?}"))?;
    }
    writeln!(out, "   (hits in %, looks for a miss)")?;
    let mut sums = [0.0; Policy::ALL.len()];
    for frames in [500, 1000, 3000] {
        for (name, trace) in traces(frames) {
            write!(out, "{name:<30} {frames:>7}")?;
            for (policy, sum) in Policy::ALL.iter().zip(&mut sums) {
                let (rate, looks) = simulate(&*policy.start(frames), frames, &trace);
                *sum += rate / 24.0;
                write!(out, " {rate:>8.1} {looks:>6.1}")?;
            }
            writeln!(out)?;
        }
    }
    write!(out, "{:<38}", "mean")?;
    for sum in sums {
        write!(out, " {sum:>8.1}       ")?;
    }
    writeln!(out)
}
