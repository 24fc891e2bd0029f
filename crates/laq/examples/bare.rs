//! TPC-H Q6 beside bare loops over the same columns in arrays of their narrowest widths:
//! `MIMALLOC_PURGE_DELAY=10000 cargo run --release -p laq --example bare -- STORE [RUNS] [THREADS]`.
//!
//! In each round the engine runs the query (fused, hot, planning not included), two loops do the same over arrays (the
//! first marks the rows of a vector that pass the three filters, the second sums over those that are marked), and one
//! loop only reads the arrays. Medians of seconds, and of the ratios of loops to engine in the same round.

use std::error::Error;
use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use engine::{Execution, Executor, Runtime};
use fiber::{Layout, Workers};
use table::{Scan, Table};

/// As the program `atoll` has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Rows that a worker takes at a time, and rows of a vector: those of the engine.
const PIECE: usize = 65_536;
const VECTOR: usize = 2_048;
/// The columns, in the order of [`Columns`].
const NAMES: [&str; 4] = ["l_shipdate", "l_discount", "l_quantity", "l_extendedprice"];
/// Days since 1970 of 1994-01-01 and 1995-01-01.
const YEAR: (i64, i64) = (8_766, 9_131);

/// A piece of the columns as distances from their least values, in the widths in which they are stored.
#[derive(Default)]
struct Columns {
    least: [i64; 4],
    dates: Vec<u16>,
    discounts: Vec<u8>,
    quantities: Vec<u16>,
    prices: Vec<u32>,
}

/// Compiles a loop for the instructions that there are.
macro_rules! widest {
    (fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty $body:block) => {
        fn $name($($arg: $ty),*) -> $ret {
            #[inline(always)]
            fn plain($($arg: $ty),*) -> $ret $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2")]
                fn avx512($($arg: $ty),*) -> $ret { plain($($arg),*) }
                #[target_feature(enable = "avx2")]
                fn avx2($($arg: $ty),*) -> $ret { plain($($arg),*) }
                let wide = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
                if wide && is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("avx512dq") {
                    // SAFETY: the processor was just asked for all of them; AVX2 is among what AVX-512 has.
                    return unsafe { avx512($($arg),*) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor was just asked for it.
                    return unsafe { avx2($($arg),*) };
                }
            }
            plain($($arg),*)
        }
    };
}

widest! {
    fn filter_and_sum(columns: &Columns) -> u64 {
        let [date, discount, quantity, price] = columns.least;
        let (first, span) = ((YEAR.0 - date) as u16, (YEAR.1 - YEAR.0 - 1) as u16);
        let low = (5 - discount) as u8;
        let below = (2_400 - quantity) as u16;
        let (base, zero) = (price as u64, discount as u64);
        let mut marks = [0u8; VECTOR];
        let mut sum = 0;
        let dates = columns.dates.chunks(VECTOR);
        let discounts = columns.discounts.chunks(VECTOR);
        let others = columns.quantities.chunks(VECTOR).zip(columns.prices.chunks(VECTOR));
        for ((dates, discounts), (quantities, prices)) in dates.zip(discounts).zip(others) {
            let marks = &mut marks[..dates.len()];
            let filters = dates.iter().zip(discounts).zip(quantities);
            for (mark, ((date, discount), quantity)) in marks.iter_mut().zip(filters) {
                let dated = date.wrapping_sub(first) <= span;
                let cheap = discount.wrapping_sub(low) <= 2;
                *mark = u8::from(dated & cheap & (*quantity < below));
            }
            for ((mark, discount), price) in marks.iter().zip(discounts).zip(prices) {
                let product = (base + u64::from(*price)) * (zero + u64::from(*discount));
                sum += u64::from(*mark) * product;
            }
        }
        sum
    }
}

widest! {
    fn read(columns: &Columns) -> u64 {
        let all = [
            bytemuck(&columns.dates),
            bytemuck(&columns.discounts),
            bytemuck(&columns.quantities),
            bytemuck(&columns.prices),
        ];
        let sum = |words: &[u64]| words.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
        all.into_iter().map(sum).fold(0, u64::wrapping_add)
    }
}

/// The whole words among the bytes of numbers.
#[inline(always)]
fn bytemuck<T: Copy>(numbers: &[T]) -> &[u64] {
    // SAFETY: the numbers are plain, and any eight bytes of them are a word.
    unsafe { numbers.align_to::<u64>().1 }
}

/// Reads the columns of a table into arrays, piece by piece.
fn columns(table: &Arc<Table>) -> Result<Vec<Columns>, Box<dyn Error>> {
    let schema = table.schema();
    let places = NAMES.iter().map(|name| schema.index_of(name));
    let places = places.collect::<Result<Vec<_>, _>>()?;
    let scan = Scan::new(table.clone(), places, false);
    let pool = table.snapshot().pool().clone();
    let traffic = memory::Traffic::new(pool.nodes());
    let mut all = Vec::new();
    for (_, morsel) in scan.morsels() {
        let opened = scan.open(&pool, morsel, &[], &traffic, || 0);
        let Some(mut cursor) = futures::executor::block_on(opened)? else {
            continue;
        };
        let mut values = [const { Vec::new() }; 4];
        let mut list = Vec::new();
        while let Some(run) = cursor.next_rows(VECTOR, &mut list) {
            let rows = match run {
                Some(run) => table::Rows::Run(run),
                None => table::Rows::Some(&list),
            };
            for (column, out) in values.iter_mut().enumerate() {
                cursor.ints(column, &rows, out)?;
            }
        }
        all.push(narrowed(&values)?);
    }
    Ok(all)
}

fn narrowed(values: &[Vec<i64>; 4]) -> Result<Columns, Box<dyn Error>> {
    fn narrow<T: TryFrom<i64>>(values: &[i64], least: i64, out: &mut Vec<T>) -> Option<()> {
        let narrow = values.iter().map(|value| T::try_from(value - least).ok());
        *out = narrow.collect::<Option<_>>()?;
        Some(())
    }
    let mut columns = Columns::default();
    for (least, values) in columns.least.iter_mut().zip(values) {
        *least = values.iter().copied().min().unwrap_or(0);
    }
    // What is compared with may not lie below the least.
    columns.least[0] = columns.least[0].min(YEAR.0);
    columns.least[1] = columns.least[1].min(5);
    let least = columns.least;
    narrow(&values[0], least[0], &mut columns.dates)
        .and_then(|()| narrow(&values[1], least[1], &mut columns.discounts))
        .and_then(|()| narrow(&values[2], least[2], &mut columns.quantities))
        .and_then(|()| narrow(&values[3], least[3], &mut columns.prices))
        .ok_or("a column is wider than that of TPC-H")?;
    Ok(columns)
}

/// Seconds that the workers take for all pieces, and what they add up.
fn looped(
    workers: &Arc<Workers>,
    all: &Arc<Vec<Columns>>,
    each: fn(&Columns) -> u64,
) -> (f64, u64) {
    let (next, sum) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
    let begun = Instant::now();
    let tasks = (0..workers.threads()).map(|_| {
        let (all, next, sum) = (all.clone(), next.clone(), sum.clone());
        workers.spawn(async move {
            while let Some(piece) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                sum.fetch_add(black_box(each(piece)), Ordering::Relaxed);
            }
        })
    });
    let tasks: Vec<_> = tasks.collect();
    for task in tasks {
        // A panic has been told of already; the sum then shows it.
        let _ = futures::executor::block_on(task);
    }
    (begun.elapsed().as_secs_f64(), sum.load(Ordering::Relaxed))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = arguments.first().ok_or("which store?")?;
    let runs: usize = arguments.get(1).map_or(Ok(11), |text| text.parse())?;
    let threads: usize = arguments.get(2).map_or(Ok(2), |text| text.parse())?;
    let live = topology::Machine::live()?;
    let workers = Workers::new(Layout::of(&live, &live, threads, true))?;
    let mut options = store::Options {
        access: store::Access::Read,
        ..store::Options::default()
    };
    options.pool.nodes = vec![None; workers.nodes()];
    options.pool.bytes = 4 << 30;
    let store = store::Store::open(path, &options)?;
    let tables = table::Catalog::new().tables(&store.snapshot())?;
    let lineitem = tables.get("lineitem").ok_or("no table lineitem")?;
    let arrays = Arc::new(columns(lineitem)?);
    let rows: usize = arrays.iter().map(|piece| piece.dates.len()).sum();
    let runtime = Runtime {
        nearness: workers.layout().nearness().clone(),
        traffic: Arc::new(memory::Traffic::new(workers.nodes())),
        budget: memory::Budget::new(2 << 30),
        workers: workers.clone(),
        stop: engine::Stop::default(),
    };
    let text = laq::TPCH.iter().find(|(number, _)| *number == 6);
    let (_, text) = text.ok_or("Q6 is not in LAQ")?;
    let prepared = Arc::new(futures::executor::block_on(laq::compile(text, &tables))?.prepared);
    let execution = Execution::by(Executor::Fused);
    let mut times = [const { Vec::new() }; 3];
    let mut answers = (String::new(), 0);
    for run in 0..=runs {
        let (own, with, how) = (prepared.clone(), runtime.clone(), execution.clone());
        let (engine, batches) = workers.block_on(async move {
            let begun = Instant::now();
            let done = own.run_by(&with, &how).await;
            (begun.elapsed().as_secs_f64(), done)
        });
        let (loops, sum) = looped(&workers, &arrays, filter_and_sum);
        let (reading, _) = looped(&workers, &arrays, read);
        answers = (format!("{:?}", batches?.0), sum);
        // The first fills the pool.
        if run > 0 {
            let own = [engine, loops, reading];
            times
                .iter_mut()
                .zip(own)
                .for_each(|(times, own)| times.push(own));
        }
    }
    let (digits, sum) = (answers.0.replace('.', ""), answers.1.to_string());
    if !digits.contains(&sum) {
        return Err(format!("the loops found {sum}, the engine {}", answers.0).into());
    }
    let mut out = std::io::stdout().lock();
    let bytes = rows * 9;
    writeln!(
        out,
        "{rows} rows, {threads} threads, {runs} rounds, {PIECE} rows a piece; arrays of {bytes} bytes"
    )?;
    for (name, own) in ["engine", "two loops", "one loop that reads"]
        .iter()
        .zip(&times)
    {
        let ratios = own.iter().zip(&times[0]).map(|(own, engine)| own / engine);
        writeln!(
            out,
            "{name}: {:.2} ms, {:.1} GB/s of the arrays; the engine reaches {:.3} of it",
            median(own.clone()) * 1e3,
            bytes as f64 / median(own.clone()) / 1e9,
            median(ratios.collect())
        )?;
    }
    Ok(())
}
