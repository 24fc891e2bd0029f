//! The traces: page numbers in the order in which they are pinned.

use buffer::PageId;

const PINS: usize = 400_000;

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
pub fn traces(frames: u32) -> Vec<(&'static str, Vec<PageId>)> {
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

/// For prefetchers, beside those above: streams in turn, a stride, and a walk that is repeated.
pub fn streams() -> Vec<(&'static str, Vec<PageId>)> {
    let mut random = fastrand::Rng::with_seed(11);
    let four = (0..PINS as u32).map(|i| i % 4 * 1_000_000 + i / 4);
    let stride = (0..PINS as u32).map(|i| i * 7 % 700_000);
    let mut walk: Vec<PageId> = (0..10_000).collect();
    random.shuffle(&mut walk);
    let walks = (0..PINS).map(|i| walk[i % walk.len()]);
    vec![
        ("four scans in turn", four.collect()),
        ("every seventh page", stride.collect()),
        ("a list walked again and again", walks.collect()),
    ]
}
