//! Nanoseconds per row of the main kernels at each level of this machine, next to a bare loop that
//! reads the same bytes from the same place:
//!
//!     cargo run --release -p algebra --example kernels [PART OF A NAME]
//!
//! Inputs are one vector in the nearest cache, except where a table is named by its size. Each
//! figure is the best of many short runs: what the kernel takes when nothing else disturbs it.

use std::hint::black_box;
use std::io::{self, Write};
use std::time::Instant;

use algebra::filter::{self, Op};
use algebra::{Level, VECTOR_ROWS, dot, fold, hash, krao, levels, lift, order, with_level};

/// Nanoseconds per row, best of many runs.
fn time(rows: usize, mut work: impl FnMut()) -> f64 {
    work();
    let begun = Instant::now();
    work();
    let repeats = (20_000 / begun.elapsed().as_nanos().max(1)).clamp(1, 1000) as usize;
    let begun = Instant::now();
    let mut best = f64::INFINITY;
    let mut runs = 0;
    while runs < 20 || (begun.elapsed().as_millis() < 20 && runs < 2000) {
        let run = Instant::now();
        (0..repeats).for_each(|_| work());
        best = best.min(run.elapsed().as_nanos() as f64 / (repeats * rows) as f64);
        runs += 1;
    }
    best
}

/// A loop that reads `bytes` and does nothing more.
fn bare(bytes: &[u8]) {
    let (words, _) = bytes.as_chunks::<64>();
    let mut sums = [0u8; 64];
    for word in words {
        sums.iter_mut()
            .zip(word)
            .for_each(|(sum, byte)| *sum ^= byte);
    }
    black_box(sums);
}

/// The table that is printed.
struct Report {
    wanted: String,
}

impl Report {
    fn line(
        &self,
        name: &str,
        rows: usize,
        bytes_per_row: usize,
        mut work: impl FnMut(),
    ) -> io::Result<()> {
        if !name.contains(&self.wanted) {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        write!(out, "{name:<44}")?;
        for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
            if levels().any(|l| l == level) {
                write!(out, "{:>10.3}", with_level(level, || time(rows, &mut work)))?;
            } else {
                write!(out, "{:>10}", "-")?;
            }
        }
        let bytes = vec![1u8; rows.min(VECTOR_ROWS) * bytes_per_row];
        writeln!(
            out,
            "{:>10.3}",
            time(rows.min(VECTOR_ROWS), || bare(black_box(&bytes)))
        )
    }
}

fn main() -> io::Result<()> {
    let report = Report {
        wanted: std::env::args().nth(1).unwrap_or_default(),
    };
    writeln!(
        io::stdout(),
        "{:<44}{:>10}{:>10}{:>10}{:>10}",
        "nanoseconds per row",
        "baseline",
        "avx2",
        "avx512",
        "bare loop"
    )?;
    filters(&report)?;
    lifts(&report)?;
    folds(&report)?;
    keys(&report)?;
    joins(&report)?;
    orders(&report)
}

/// One vector of random integers below `limit`.
fn integers(limit: u64) -> Vec<i64> {
    let mut random = fastrand::Rng::with_seed(42);
    (0..VECTOR_ROWS)
        .map(|_| random.u64(..limit) as i64)
        .collect()
}

/// One vector of codes below `limit`.
fn codes(limit: u64) -> Vec<u32> {
    integers(limit).into_iter().map(|v| v as u32).collect()
}

/// One vector of flags, true in `percent` of a hundred.
fn flags(percent: u64) -> Vec<bool> {
    integers(100)
        .into_iter()
        .map(|v| (v as u64) < percent)
        .collect()
}

fn filters(report: &Report) -> io::Result<()> {
    let rows = VECTOR_ROWS;
    let (a, b) = (integers(100), integers(90));
    let f: Vec<f64> = a.iter().map(|v| *v as f64).collect();
    let wide: Vec<i128> = a.iter().map(|v| i128::from(*v)).collect();
    let c = codes(50);
    let (x, y) = (flags(50), flags(60));
    let (mut out, mut valid) = (vec![], vec![]);
    report.line("filter compare_i64", rows, 16, || {
        filter::compare_i64(Op::Lt, black_box(&a), &b, &mut out)
    })?;
    report.line("filter compare_i64_const", rows, 8, || {
        filter::compare_i64_const(Op::Lt, black_box(&a), 24, &mut out)
    })?;
    report.line("filter compare_f64_const", rows, 8, || {
        filter::compare_f64_const(Op::Lt, black_box(&f), 24.0, &mut out)
    })?;
    report.line("filter compare_i128_const", rows, 16, || {
        filter::compare_i128_const(Op::Lt, black_box(&wide), 24, &mut out)
    })?;
    report.line("filter compare_u32_const", rows, 4, || {
        filter::compare_u32_const(Op::Eq, black_box(&c), 24, &mut out)
    })?;
    let sets = [
        ("5", (0..5).collect()),
        ("20 near", (0..40).step_by(2).collect()),
        ("200 far", (0..200i64).map(|v| v * v * 7).collect()),
    ];
    for (name, set) in sets {
        let set: Vec<i64> = set;
        report.line(&format!("filter in_set_i64, {name}"), rows, 8, || {
            filter::in_set_i64(black_box(&a), &set, &mut out)
        })?;
    }
    for (name, limit) in [("50", 50), ("2,000", 2000), ("200,000", 200_000)] {
        let c = codes(limit);
        let hits: Vec<bool> = (0..limit).map(|v| v % 3 == 0).collect();
        report.line(&format!("filter labels, {name}"), rows, 4, || {
            filter::labels(black_box(&c), &hits, &mut out)
        })?;
    }
    report.line("filter and", rows, 2, || {
        filter::and(black_box(&x), None, &y, None, &mut out, &mut valid);
    })?;
    report.line("filter and, both with nulls", rows, 4, || {
        filter::and(black_box(&x), Some(&y), &y, Some(&x), &mut out, &mut valid);
    })?;
    selections(report)
}

/// Turning a selection into positions, and keeping the selected rows.
fn selections(report: &Report) -> io::Result<()> {
    let rows = VECTOR_ROWS;
    let (a, mut found) = (integers(100), vec![]);
    for percent in [2, 50, 98] {
        let keep = flags(percent);
        report.line(
            &format!("filter positions, {percent} % kept"),
            rows,
            1,
            || filter::positions(black_box(&keep), &mut found),
        )?;
        filter::positions(&keep, &mut found);
        let (positions, mut out) = (found.clone(), vec![]);
        report.line(
            &format!("filter gather i64, {percent} % kept, per input row"),
            rows,
            8,
            || filter::gather(black_box(&a), &positions, &mut out),
        )?;
        report.line(
            &format!("filter copy and compact i64, {percent} % kept"),
            rows,
            8,
            || {
                out.clear();
                out.extend_from_slice(black_box(&a));
                filter::compact(&mut out, &positions)
            },
        )?;
    }
    Ok(())
}

fn lifts(report: &Report) -> io::Result<()> {
    let rows = VECTOR_ROWS;
    let (a, b) = (integers(10_000_000), integers(100));
    let big: Vec<i64> = a.iter().map(|v| v << 30).collect();
    let (f, g): (Vec<f64>, Vec<f64>) = a
        .iter()
        .zip(&b)
        .map(|(a, b)| (*a as f64, *b as f64))
        .unzip();
    let (mut wide, mut wider) = (vec![], vec![]);
    lift::widen(&a, &mut wide);
    let days = integers(20_000);
    let mask = flags(50);
    let (mut out, mut floats, mut long) = (vec![], vec![], vec![]);
    report.line("lift add_i64", rows, 16, || {
        lift::add_i64(black_box(&a), &b, &mut out)
    })?;
    report.line("lift mul_i64", rows, 16, || {
        lift::mul_i64(black_box(&a), &b, &mut out)
    })?;
    report.line("lift rsub_i64_const", rows, 8, || {
        lift::rsub_i64_const(100, black_box(&b), &mut out)
    })?;
    report.line("lift try_add_i64", rows, 16, || {
        black_box(lift::try_add_i64(black_box(&a), &b, &mut out)).unwrap_or_default();
    })?;
    report.line("lift try_mul_i64, short", rows, 16, || {
        black_box(lift::try_mul_i64(black_box(&a), &b, &mut out)).unwrap_or_default();
    })?;
    report.line("lift try_mul_i64, long", rows, 16, || {
        black_box(lift::try_mul_i64(black_box(&big), &b, &mut out)).unwrap_or_default();
    })?;
    report.line("lift widen", rows, 8, || {
        lift::widen(black_box(&a), &mut long)
    })?;
    report.line("lift try_add_i128", rows, 32, || {
        black_box(lift::try_add_i128(black_box(&wide), &wide, &mut wider)).unwrap_or_default();
    })?;
    report.line("lift try_mul_i128", rows, 32, || {
        black_box(lift::try_mul_i128(black_box(&wide), &wide, &mut wider)).unwrap_or_default();
    })?;
    report.line("lift mul_f64", rows, 16, || {
        lift::mul_f64(black_box(&f), &g, &mut floats)
    })?;
    report.line("lift select i64", rows, 17, || {
        lift::select(black_box(&mask), &a, &b, &mut out)
    })?;
    report.line("lift year_of_day", rows, 8, || {
        lift::year_of_day(black_box(&days), &mut out)
    })?;
    report.line("lift month_of_day", rows, 8, || {
        lift::month_of_day(black_box(&days), &mut out)
    })
}

fn folds(report: &Report) -> io::Result<()> {
    let rows = VECTOR_ROWS;
    let values = integers(10_000_000);
    let floats: Vec<f64> = values.iter().map(|v| *v as f64).collect();
    let valid = flags(90);
    for (name, states, sorted) in [
        ("one", 1, false),
        ("4", 4, false),
        ("8", 8, false),
        ("100", 100, false),
        ("100 sorted", 100, true),
        ("100,000", 100_000, false),
    ] {
        let mut numbers = codes(states as u64);
        if sorted {
            numbers.sort();
        }
        let groups = (states > 1).then_some(&numbers[..]);
        let bytes = if states > 1 { 12 } else { 8 };
        let mut wide = vec![0i128; states];
        let mut small = vec![0i64; states];
        let mut float = vec![0f64; states];
        let mut seen = vec![false; states];
        report.line(&format!("fold count, {name}"), rows, bytes - 8, || {
            fold::count(black_box(groups), rows, None, &mut small)
        })?;
        report.line(&format!("fold sum_i64_small, {name}"), rows, bytes, || {
            fold::sum_i64_small(black_box(groups), &values, None, &mut small)
        })?;
        report.line(&format!("fold sum_i64, {name}"), rows, bytes, || {
            fold::sum_i64(black_box(groups), &values, None, &mut wide)
        })?;
        report.line(
            &format!("fold sum_i64, with nulls, {name}"),
            rows,
            bytes + 1,
            || fold::sum_i64(black_box(groups), &values, Some(&valid), &mut wide),
        )?;
        report.line(&format!("fold sum_f64, {name}"), rows, bytes, || {
            fold::sum_f64(black_box(groups), &floats, None, &mut float)
        })?;
        report.line(&format!("fold min_i64, {name}"), rows, bytes, || {
            fold::min_i64(black_box(groups), &values, None, &mut small, &mut seen)
        })?;
        report.line(&format!("fold max_f64, {name}"), rows, bytes, || {
            fold::max_f64(black_box(groups), &floats, None, &mut float, &mut seen)
        })?;
    }
    Ok(())
}

/// Columns of `vectors` vectors of words below `limit`, and their hashes.
fn hashed(vectors: usize, words: usize, limit: u64) -> (Vec<u64>, Vec<Vec<u64>>) {
    let mut random = fastrand::Rng::with_seed(7);
    let columns: Vec<Vec<u64>> = (0..words)
        .map(|_| {
            (0..vectors * VECTOR_ROWS)
                .map(|_| random.u64(..limit))
                .collect()
        })
        .collect();
    let mut hashes = vec![];
    hash::hash_u64(&columns[0], 1, &mut hashes);
    columns[1..]
        .iter()
        .for_each(|c| hash::combine_u64(c, &mut hashes));
    (hashes, columns)
}

fn keys(report: &Report) -> io::Result<()> {
    let rows = VECTOR_ROWS;
    let values: Vec<u64> = integers(1 << 40).into_iter().map(|v| v as u64).collect();
    let (mut out, mut index) = (vec![], vec![]);
    let c = codes(50);
    report.line("hash hash_u64", rows, 8, || {
        hash::hash_u64(black_box(&values), 1, &mut out)
    })?;
    report.line("hash combine_u64", rows, 16, || {
        hash::combine_u64(black_box(&values), &mut out)
    })?;
    let text = b"a text of 32 bytes, such as name";
    report.line("hash hash_bytes, 32 bytes", rows, 32, || {
        (0..rows).for_each(|_| {
            black_box(hash::hash_bytes(black_box(text), 1));
        })
    })?;
    krao::start(&c, &mut index);
    report.line("krao combine", rows, 12, || {
        krao::combine(black_box(&mut index), &c, 50)
    })?;
    let mut found = vec![];
    for (name, limit) in [
        ("4", 4),
        ("1,000", 1000),
        ("100,000", 100_000),
        ("2,000,000", 2_000_000),
    ] {
        for words in [1, 2, 4] {
            let vectors = (limit as usize / VECTOR_ROWS).max(1) * 2;
            let (hashes, columns) = hashed(vectors, 1, limit);
            let mut columns = columns;
            (1..words).for_each(|_| columns.push(columns[0].clone()));
            let all = vectors * VECTOR_ROWS;
            let mut groups = krao::Groups::new(words);
            report.line(
                &format!("krao Groups, {name} keys of {words}"),
                all,
                8 * words,
                || {
                    for v in 0..vectors {
                        let rows = v * VECTOR_ROWS..(v + 1) * VECTOR_ROWS;
                        let mut keys = [&[][..]; 4];
                        (0..words).for_each(|w| keys[w] = &columns[w][rows.clone()]);
                        groups.insert(&hashes[rows], &keys[..words], &mut found);
                    }
                },
            )?;
        }
    }
    Ok(())
}

fn joins(report: &Report) -> io::Result<()> {
    let (mut found, mut hits) = (vec![], vec![]);
    for (name, limit) in [("10,000", 10_000), ("1,500,000", 1_500_000)] {
        let vectors = (limit as usize / VECTOR_ROWS).max(1) * 2;
        let (hashes, columns) = hashed(vectors, 1, limit);
        let keys: Vec<i64> = columns[0].iter().map(|v| *v as i64).collect();
        let build: Vec<i64> = (0..limit as i64).collect();
        let rows: Vec<u32> = (0..limit as u32).collect();
        let all = vectors * VECTOR_ROWS;
        let ranges = || (0..vectors).map(|v| v * VECTOR_ROWS..(v + 1) * VECTOR_ROWS);

        let mut table = dot::Direct::new(0, limit as i64);
        report.line(
            &format!("dot Direct::set, {name} in order"),
            limit as usize,
            12,
            || {
                black_box(table.set(black_box(&build), &rows));
            },
        )?;
        report.line(
            &format!("dot Direct::find, {name} at random"),
            all,
            8,
            || ranges().for_each(|rows| table.find(&keys[rows], None, &mut found)),
        )?;
        let mut bits = dot::Bits::new(0, limit as i64);
        bits.set(&build, None);
        report.line(&format!("dot Bits::test, {name} at random"), all, 8, || {
            ranges().for_each(|rows| bits.test(&keys[rows], None, &mut hits))
        })?;
        let words: Vec<u64> = build.iter().map(|v| *v as u64).collect();
        let mut own = vec![];
        hash::hash_u64(&words, 1, &mut own);
        report.line(
            &format!("dot Hashed::build, {name}"),
            limit as usize,
            16,
            || {
                black_box(dot::Hashed::build(&own, &[&words]));
            },
        )?;
        let table = dot::Hashed::build(&own, &[&words]);
        report.line(
            &format!("dot Hashed::find_first, {name} at random"),
            all,
            16,
            || {
                ranges().for_each(|rows| {
                    table.find_first(&hashes[rows.clone()], &[&columns[0][rows]], &mut found)
                })
            },
        )?;
        let twice: Vec<u64> = words.iter().map(|w| w / 2).collect();
        hash::hash_u64(&twice, 1, &mut own);
        let table = dot::Hashed::build(&own, &[&twice]);
        let (mut probe, mut a, mut b) = (dot::Probe::new(), vec![], vec![]);
        report.line(
            &format!("dot Hashed::matches, {name} twice each"),
            all,
            16,
            || {
                ranges().for_each(|rows| {
                    table.probe(&hashes[rows.clone()], &[&columns[0][rows]], &mut probe);
                    while table.matches(&mut probe, &mut a, &mut b, VECTOR_ROWS) {}
                })
            },
        )?;
    }
    Ok(())
}

fn orders(report: &Report) -> io::Result<()> {
    let mut sorter = order::Sorter::new();
    for (name, limit) in [("2,000", 2_000usize), ("200,000", 200_000)] {
        let (mut words, columns) = hashed(limit.div_ceil(VECTOR_ROWS), 1, limit as u64 / 10);
        words.truncate(limit);
        let mut rows: Vec<u32> = vec![];
        report.line(
            &format!("order sort, {name} random words"),
            limit,
            8,
            || {
                rows.clear();
                rows.extend(0..limit as u32);
                sorter.sort(&[black_box(&words)], &mut rows)
            },
        )?;
        report.line(
            &format!("order sort, {name} by two columns"),
            limit,
            16,
            || {
                rows.clear();
                rows.extend(0..limit as u32);
                sorter.sort(&[black_box(&columns[0]), &words], &mut rows)
            },
        )?;
        let names: Vec<u64> = (0..words.len() as u64).collect();
        report.line(&format!("order top 10 of {name}"), limit, 8, || {
            let mut top = order::Top::new(1, 10);
            for (words, names) in words[..limit]
                .chunks(VECTOR_ROWS)
                .zip(names.chunks(VECTOR_ROWS))
            {
                top.push(&[black_box(words)], names);
            }
            black_box(top.finish());
        })?;
    }
    Ok(())
}
