//! The figures: what each compares, and how it is shown.

use pages::{Sweep, Timed};
use report::{Axis, Cell, Line, Lines, Table, Unit};
use serde::Serialize;

use super::measure::{Bench, Variant};
use super::profile::Profile;
use crate::desk::Desk;
use crate::error::Result;

/// Passes over the data in the figures on iterations.
const PASSES: [usize; 5] = [1, 2, 4, 8, 16];
/// Passes that are measured together in the figures on threads.
const TOGETHER: usize = 10;
/// Page sizes.
const SIZES: [u32; 6] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10];
/// Pages that are prefetched: none, the text's one, and what helps.
const AHEAD: [usize; 3] = [0, 1, 8];

/// A figure of the text, measured.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figure {
    /// Its number after the point.
    pub number: u32,
    /// What it shows.
    pub title: &'static str,
    /// What was done, and what the text found.
    #[serde(skip)]
    pub text: &'static str,
    #[serde(skip)]
    across: (&'static str, Unit),
    #[serde(skip)]
    up: (&'static str, Unit),
    series: Vec<Series>,
}

/// A row of values with a name.
#[derive(Clone, Debug, Serialize)]
struct Series {
    name: String,
    points: Vec<Value>,
}

/// A value, and what it was computed from.
#[derive(Clone, Debug, Serialize)]
struct Value {
    x: f64,
    /// The median, or a ratio of medians.
    y: f64,
    /// Seconds of each round; none of a ratio.
    seconds: Vec<f64>,
}

impl Value {
    fn of(x: f64, timed: &Timed) -> Value {
        Value {
            x,
            y: timed.median(),
            seconds: timed.seconds.clone(),
        }
    }

    fn ratio(x: f64, y: f64) -> Value {
        Value {
            x,
            y,
            seconds: vec![],
        }
    }
}

impl Figure {
    /// `4.3: Scan by threads and partitions`
    pub(super) fn heading(&self) -> String {
        format!("4.{}: {}", self.number, self.title)
    }

    /// A row for each value across, a column for each series.
    pub(super) fn table(&self) -> Table {
        let mut header = vec![self.across.0.to_owned()];
        header.extend(self.series.iter().map(|series| series.name.clone()));
        let mut table = Table::new(header).caption(self.heading());
        let xs = self.series.first().map_or(&[][..], |series| &series.points);
        for (at, value) in xs.iter().enumerate() {
            let cells = self.series.iter().map(|series| {
                let y = series.points.get(at).map_or(f64::NAN, |value| value.y);
                Cell::number(y, self.up.1)
            });
            table.row(
                [Cell::number(value.x, self.across.1)]
                    .into_iter()
                    .chain(cells),
            );
        }
        table
    }

    /// Curves.
    pub(super) fn plot(&self) -> Lines {
        let (x, y) = (
            Axis::new(self.across.0, self.across.1).log(),
            Axis::new(self.up.0, self.up.1).from_zero(),
        );
        let lines = Lines::new(self.title, x, y);
        self.series.iter().fold(lines, |lines, series| {
            let points = series.points.iter().map(|value| (value.x, value.y));
            lines.line(Line::new(series.name.clone(), points))
        })
    }
}

/// Measures the figures of a profile with these numbers.
pub(super) fn measure(
    bench: &Bench,
    profile: Profile,
    numbers: &[u32],
    desk: &mut Desk<'_>,
) -> Result<Vec<Figure>> {
    let first = *profile.figures().start();
    let wanted = |number: u32| numbers.contains(&number);
    let mut all = Vec::new();
    if wanted(first) {
        desk.progress(&format!("figure 4.{first}"));
        all.push(iterations(bench, first, desk)?);
    }
    if wanted(first + 1) {
        desk.progress(&format!("figure 4.{}", first + 1));
        all.push(page_sizes(bench, first + 1, desk)?);
    }
    if wanted(first + 2) || wanted(first + 3) {
        desk.progress(&format!("figures 4.{} and 4.{}", first + 2, first + 3));
        let both = scaling(bench, first + 2, desk)?;
        all.extend(both.into_iter().filter(|figure| wanted(figure.number)));
    }
    if profile == Profile::Server && wanted(5) {
        desk.progress("figure 4.5");
        all.push(numa(bench, desk)?);
    }
    let last = *profile.figures().end();
    if wanted(last) {
        desk.progress(&format!("figure 4.{last}"));
        all.push(prefetching(bench, profile, last, desk)?);
    }
    Ok(all)
}

/// A cold scan by one thread with one partition.
fn cold(page_size: u32, iterations: usize) -> Variant {
    Variant {
        page_size,
        pool_part: 1,
        sweep: Sweep {
            iterations,
            cold: true,
            ..Sweep::default()
        },
    }
}

fn iterations(bench: &Bench, number: u32, desk: &mut Desk<'_>) -> Result<Figure> {
    let page_size = bench.setup().first_page_size;
    let variants = PASSES.map(|passes| cold(page_size, passes));
    let times = bench.turns(&variants, desk)?;
    let points = PASSES.iter().zip(&times);
    let points = points.map(|(&passes, times)| Value::of(passes as f64, &times[0]));
    Ok(Figure {
        number,
        title: "scan by the number of passes",
        text: "One thread passes over all pages so many times, and the pool is empty at first. In the text a pass over pages in the pool takes a 13th of the first one on the server, a 14th on the board.",
        across: ("passes", Unit::Count),
        up: ("time", Unit::Seconds),
        series: vec![Series {
            name: "time".to_owned(),
            points: points.collect(),
        }],
    })
}

fn page_sizes(bench: &Bench, number: u32, desk: &mut Desk<'_>) -> Result<Figure> {
    let variants = SIZES.map(|page_size| cold(page_size, 1));
    let times = bench.turns(&variants, desk)?;
    let points = SIZES.iter().zip(&times);
    let points = points.map(|(&bytes, times)| Value::of(f64::from(bytes), &times[0]));
    Ok(Figure {
        number,
        title: "scan by page size",
        text: "One thread passes once over all pages, and the pool is empty at first. In the text 64 KiB are best on the server and 4 KiB on the board, by less than 1 %.",
        across: ("page size", Unit::Bytes),
        up: ("time", Unit::Seconds),
        series: vec![Series {
            name: "time".to_owned(),
            points: points.collect(),
        }],
    })
}

/// The figure on threads and partitions, and the one that shows it as speedups.
fn scaling(bench: &Bench, number: u32, desk: &mut Desk<'_>) -> Result<[Figure; 2]> {
    let setup = bench.setup();
    let variant = Variant {
        page_size: setup.page_size,
        pool_part: 1,
        sweep: Sweep {
            threads: setup.threads.clone(),
            partitions: setup.partitions.clone(),
            iterations: TOGETHER,
            ..Sweep::default()
        },
    };
    let times = bench.turns(&[variant], desk)?.concat();
    let find = |threads: usize, partitions: usize| {
        times
            .iter()
            .find(|timed| (timed.threads, timed.partitions) == (threads, partitions))
    };
    let series = |value: &dyn Fn(&Timed) -> Value| {
        let named = |&partitions: &usize| Series {
            name: match partitions {
                1 => "1 partition".to_owned(),
                _ => format!("{partitions} partitions"),
            },
            points: setup
                .threads
                .iter()
                .filter_map(|&threads| find(threads, partitions).map(value))
                .collect(),
        };
        setup.partitions.iter().map(named).collect::<Vec<_>>()
    };
    let mut plain = series(&|timed| Value::of(timed.threads as f64, timed));
    plain.extend(ideal(&plain[0]));
    let speedup = |timed: &Timed| {
        let one = find(timed.threads, setup.partitions[0]).map_or(f64::NAN, Timed::median);
        Value::ratio(timed.threads as f64, one / timed.median())
    };
    Ok([
        Figure {
            number,
            title: "scan by threads and partitions",
            text: "Ten passes over pages that are in the pool already. In the text the server scales 7.68 times without partitions, the board 2.46 times.",
            across: ("threads", Unit::Count),
            up: ("time", Unit::Seconds),
            series: plain,
        },
        Figure {
            number: number + 1,
            title: "speedup by partitions",
            text: "The same times, against those of one partition and as many threads. In the text up to 5 % with 4 partitions and 13 % with 128 on the server, 10 % with 16 on the board: there each pin takes a lock, here a pin of a page in the pool takes none.",
            across: ("threads", Unit::Count),
            up: ("speedup", Unit::Ratio),
            series: series(&speedup),
        },
    ])
}

/// The time of one thread, divided by the threads.
fn ideal(series: &Series) -> Option<Series> {
    let first = series.points.first()?;
    let divided = |value: &Value| Value::ratio(value.x, first.y * first.x / value.x);
    Some(Series {
        name: "ideal".to_owned(),
        points: series.points.iter().map(divided).collect(),
    })
}

fn numa(bench: &Bench, desk: &mut Desk<'_>) -> Result<Figure> {
    let setup = bench.setup();
    let most = setup.partitions.iter().copied().max().unwrap_or(1);
    let variant = Variant {
        page_size: setup.page_size,
        pool_part: 1,
        sweep: Sweep {
            threads: setup.threads.clone(),
            partitions: vec![most],
            numa: vec![false, true],
            iterations: TOGETHER,
            ..Sweep::default()
        },
    };
    let times = bench.turns(&[variant], desk)?.concat();
    let of = |numa: bool, name: &str| Series {
        name: name.to_owned(),
        points: times
            .iter()
            .filter(|timed| timed.numa == numa)
            .map(|timed| Value::of(timed.threads as f64, timed))
            .collect(),
    };
    let mut series = vec![of(false, "NUMA mode off"), of(true, "NUMA mode on")];
    series.extend(ideal(&series[1]));
    Ok(Figure {
        number: 5,
        title: "scan by NUMA mode",
        text: "Ten passes over pages that are in the pool already, with 128 partitions. In the text 32 threads are 20 to 24.5 times as fast as one in NUMA mode. On a machine with one node the mode only binds threads to cpus.",
        across: ("threads", Unit::Count),
        up: ("time", Unit::Seconds),
        series,
    })
}

/// Out of core: the pool is empty at first, or too small.
fn prefetching(
    bench: &Bench,
    profile: Profile,
    number: u32,
    desk: &mut Desk<'_>,
) -> Result<Figure> {
    let setup = bench.setup();
    let most = setup.partitions.iter().copied().max().unwrap_or(1);
    let parts = [(1, ""), (4, ", pool of a quarter")];
    let mut variants = Vec::new();
    let mut names = Vec::new();
    for (pool_part, pool) in parts {
        for ahead in AHEAD {
            names.push(format!("prefetch {ahead}{pool}"));
            variants.extend(setup.threads.iter().map(|&threads| Variant {
                page_size: setup.page_size,
                pool_part,
                sweep: Sweep {
                    threads: vec![threads],
                    partitions: vec![most],
                    prefetch: vec![ahead],
                    numa: vec![profile == Profile::Server],
                    cold: true,
                    ..Sweep::default()
                },
            }));
        }
    }
    let times = bench.turns(&variants, desk)?;
    let series = names.into_iter().zip(times.chunks(setup.threads.len()));
    let series = series.map(|(name, times)| Series {
        name,
        points: times
            .iter()
            .map(|times| Value::of(times[0].threads as f64, &times[0]))
            .collect(),
    });
    Ok(Figure {
        number,
        title: "cold scan by prefetching",
        text: "One pass from an empty pool, once of the size of the data and once of a quarter of it. In the text prefetching one page makes the scan slower: by 1.8 % on the server, 8.7 % on the board.",
        across: ("threads", Unit::Count),
        up: ("time", Unit::Seconds),
        series: series.collect(),
    })
}
