//! The scan through the pool against its kernel over one array, and what partitions do to it.
//!
//! `cargo run -p pages --release --example scan [MiB] [rounds]`
//!
//! Bars: 95 % of the array's speed with pages of 64 KiB, 85 % with 4 KiB; no number of partitions
//! slows the scan down. All that is compared takes turns; medians are shown.

use std::error::Error;
use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use pages::{Access, Fill, Operator, Options, PageFile, Session, Sweep};

const THRESHOLD: i32 = 0;
const BARS: [(u32, f64); 2] = [(64 << 10, 0.95), (4 << 10, 0.85)];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |usual: u64| arguments.next().map_or(Ok(usual), |text| text.parse());
    let (mib, rounds) = (next(256)?, next(9)?.max(1) as usize);
    let bytes = mib << 20;
    let directory = tempfile::tempdir()?;
    let mut out = std::io::stdout().lock();
    for (page_size, bar) in BARS {
        let path = directory.path().join(format!("{page_size}.pages"));
        let options = Options {
            // A frame more for each protected page, which the pool holds too.
            pool_bytes: bytes + bytes / 8 + (1 << 20),
            ..Options::default()
        };
        let file = PageFile::create(&path, page_size, bytes / u64::from(page_size), &options)?;
        pages::alloc(&file, 2, &Fill::default(), &|| false)?;
        file.close()?;
        let options = Options {
            access: Access::Read,
            ..options
        };
        against_array(&mut out, &path, &options, rounds, bar)?;
        partitions(&mut out, &path, &options, rounds)?;
    }
    Ok(())
}

/// The same bytes once through the pool and once in an array, on one thread.
fn against_array(
    out: &mut impl Write,
    path: &Path,
    options: &Options,
    rounds: usize,
    bar: f64,
) -> Result<(), Box<dyn Error>> {
    let file = PageFile::open(path, options)?;
    let page_size = file.store().page_size();
    let session = Session::start(&file, 1, 0)?;
    let view = file.store().view();
    let mut array = vec![0; session.bytes() as usize];
    for (index, page) in array.chunks_mut(page_size).enumerate() {
        view.read(session.pages().page(index), page)?;
    }
    let loads = file.pool().loads;
    let (mut pooled, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let begin = Instant::now();
        let through_pool = pages::scan(&session, THRESHOLD)?;
        pooled.push(begin.elapsed().as_secs_f64());
        let begin = Instant::now();
        let over_array = pages::count_above(black_box(&array), THRESHOLD);
        plain.push(begin.elapsed().as_secs_f64());
        assert_eq!(through_pool, over_array);
    }
    assert_eq!(file.pool().loads, loads, "all pages stayed resident");
    let speed = |seconds: f64| array.len() as f64 / seconds / 1e9;
    let (pooled, plain) = (median(pooled), median(plain));
    let reached = plain / pooled;
    let said = if reached >= bar { "reached" } else { "MISSED" };
    writeln!(
        out,
        "pages of {:>3} KiB: pool {:6.2} GB/s, array {:6.2} GB/s: {:5.1} % (bar {:.0} %: {said})",
        page_size >> 10,
        speed(pooled),
        speed(plain),
        reached * 100.0,
        bar * 100.0,
    )?;
    Ok(())
}

fn partitions(
    out: &mut impl Write,
    path: &Path,
    options: &Options,
    rounds: usize,
) -> Result<(), Box<dyn Error>> {
    let cpus = std::thread::available_parallelism()?.get();
    let wanted = Sweep {
        threads: (0..)
            .map(|bits| 1 << bits)
            .take_while(|&threads| threads <= cpus.max(4))
            .collect(),
        partitions: vec![1, 4, 16, 128],
        rounds,
        iterations: 4,
        ..Sweep::default()
    };
    let operator = Operator::Scan(THRESHOLD);
    let swept = pages::sweep(path, options, operator, &wanted, &|| false)?;
    for timed in &swept.times {
        let mut same = swept.times.iter();
        let one = same.find(|other| other.partitions == 1 && other.threads == timed.threads);
        writeln!(
            out,
            "  {:>3} partitions, {:>2} threads: {:6.2} GB/s, {:.3} of one partition's time",
            timed.partitions,
            timed.threads,
            swept.bytes as f64 * wanted.iterations as f64 / timed.median() / 1e9,
            timed.median() / one.map_or(f64::NAN, |one| one.median()),
        )?;
    }
    Ok(())
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
