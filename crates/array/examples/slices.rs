//! Slices of a dense array that lies in memory, uncompressed, beside one large copy of as many bytes.
//!
//! `cargo run --release -p array --example slices -- [MEGABYTES [ROUNDS]]`
//!
//! The array has two dimensions; the slice is the left half of every row, so that runs of neighbouring cells are half as
//! long as rows are. Columns are bytes per second as a part of what one large copy of memory reaches: of our slice into
//! memory that was touched before, of a loop that copies the same runs from one contiguous allocation, and of the same
//! slice as a plan, whose result is allocated anew. They are measured in turn; figures are medians.

use std::error::Error;
use std::io::Write;
use std::time::Instant;

use array::{
    Array, Attribute, Block, Buffer, Column, DataType, Dimension, Plan, Region, Run, Schema, Writer,
};
use futures::executor::block_on;
use store::{Durability, Options, PoolOptions, Store};

// As the program does: it keeps memory that was freed, so that a result is not made of new pages each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const RUNS: [u64; 10] = [
    64,
    256,
    512,
    1024,
    2048,
    3600,
    8192,
    16_384,
    65_536,
    1 << 20,
];
/// Bytes of a chunk, about.
const CHUNK: u64 = 8 << 20;

type Done<T> = Result<T, Box<dyn Error>>;

fn main() -> Done<()> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let megabytes = arguments.next().transpose()?.unwrap_or(128);
    let rounds = arguments.next().transpose()?.unwrap_or(11) as usize;
    let mut out = std::io::stdout();
    writeln!(
        out,
        "{megabytes} MB copied, {rounds} rounds, instruction level {:?}",
        algebra::level()
    )?;
    writeln!(
        out,
        "run, bytes | slice, % | loop, % | as a plan, % | large copy, GB/s"
    )?;
    for run in RUNS {
        let [slice, plain, plan, copy] = measure(run, megabytes << 20, rounds)?;
        let part = |time: f64| 100.0 * copy / time;
        let bytes = ((megabytes << 20) / run * run) as f64;
        writeln!(
            out,
            "{run:10} | {:8.0} | {:7.0} | {:12.0} | {:.1}",
            part(slice),
            part(plain),
            part(plan),
            bytes / copy / 1e9
        )?;
    }
    Ok(())
}

/// Seconds, as medians: of the slice, the loop, the plan, and one large copy.
fn measure(run: u64, bytes: u64, rounds: usize) -> Done<[f64; 4]> {
    let directory = tempfile::tempdir()?;
    let (columns, rows) = (run / 8 * 2, bytes / run);
    let (store, contiguous) = stored(directory.path(), rows, columns)?;
    let array = Array::open(&store.snapshot(), "a")?;
    let slice = Region::new([(0, rows), (0, columns / 2)]);
    let mut target = vec![1u8; (rows * run) as usize];
    let bounds = [
        (0.into(), i64::try_from(rows - 1)?.into()),
        (0.into(), i64::try_from(columns / 2 - 1)?.into()),
    ];
    let plan = Plan::scan(&array)
        .rechunk(&[rows, columns])
        .subarray(&bounds);
    // All pages are in the pool from here on.
    block_on(array.read_into(&slice, 0, &mut target))?;
    assert!(
        target == loop_of(&contiguous, run as usize),
        "the slice is what the loop copies"
    );
    let half = target.len();
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..rounds {
        for (kind, times) in times.iter_mut().enumerate() {
            let begun = Instant::now();
            match kind {
                0 => block_on(array.read_into(&slice, 0, &mut target))?,
                1 => copy_runs(&contiguous, run as usize, &mut target),
                2 => drop(block_on(plan.run(&Run::new()))?),
                _ => target.copy_from_slice(&contiguous[..half]),
            }
            times.push(begun.elapsed().as_secs_f64());
            std::hint::black_box(&mut target);
        }
    }
    Ok(times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }))
}

fn copy_runs(source: &[u8], run: usize, target: &mut [u8]) {
    let runs = target
        .chunks_exact_mut(run)
        .zip(source.chunks_exact(2 * run));
    runs.for_each(|(to, from)| to.copy_from_slice(&from[..run]));
}

fn loop_of(source: &[u8], run: usize) -> Vec<u8> {
    let mut target = vec![0; source.len() / 2];
    copy_runs(source, run, &mut target);
    target
}

/// A store with an array of doubles, whose pool holds all of it; and the same bytes in one piece.
fn stored(
    directory: &std::path::Path,
    rows: u64,
    columns: u64,
) -> Done<(std::sync::Arc<Store>, Vec<u8>)> {
    let bytes = rows * columns * 8;
    let options = Options {
        pool: PoolOptions {
            bytes: bytes + bytes / 4 + (64 << 20),
            ..PoolOptions::default()
        },
        compress: false,
        durability: Durability::None,
        ..Options::default()
    };
    let store = Store::create(directory.join("slices.atoll"), &options)?;
    let chunk = (CHUNK / (columns * 8)).clamp(1, rows);
    let dimensions = vec![
        Dimension::integer("row", 0, rows).chunk(chunk),
        Dimension::integer("column", 0, columns).chunk(columns),
    ];
    let schema = Schema::new(dimensions, vec![Attribute::new("v", DataType::F64)])?;
    let mut contiguous = Vec::with_capacity(bytes as usize);
    let mut writer = Writer::begin(&store)?;
    writer.create("a", &schema)?;
    for start in (0..rows).step_by(chunk as usize) {
        let end = rows.min(start + chunk);
        let values: Vec<f64> = (start * columns..end * columns)
            .map(|at| at as f64)
            .collect();
        let buffer = Buffer::of(DataType::F64, &values);
        contiguous.extend_from_slice(buffer.bytes());
        let region = Region::new([(start, end), (0, columns)]);
        let block = Block::new(region, vec![Some(Column::new(buffer))])?;
        block_on(writer.write("a", &block))?;
    }
    writer.commit()?;
    Ok((store, contiguous))
}
