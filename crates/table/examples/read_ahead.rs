//! A scan with and without reading ahead, out of core and in memory.
//!
//! `cargo run -p table --release --example read_ahead [MiB] [rounds] [folder]`
//!
//! Bars: out of core at least 1.5 times as fast with it, in memory at least 0.98 times. The two take turns;
//! medians are shown. Out of core is a pool of a sixteenth of the table, read past the page cache where the file
//! system can. The last line but one is what the disk gives to whoever reads the file from end to end.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use futures::executor::block_on;
use memory::Traffic;
use store::{PoolOptions, Store};
use table::{BATCH_ROWS, Catalog, Chunker, Definition, Loader, Scan, create};

const COLUMNS: usize = 8;
const BATCH: usize = 1 << 16;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |usual: u64| arguments.next().map_or(Ok(usual), |text| text.parse());
    let (mib, rounds) = (next(512)?, next(7)?.max(1) as usize);
    let folder = match arguments.next() {
        Some(folder) => tempfile::tempdir_in(folder)?,
        None => tempfile::tempdir()?,
    };
    let path = folder.path().join("t.atoll");
    fill(&path, mib << 20)?;
    let mut out = std::io::stdout().lock();
    let places = [
        ("out of core, direct", mib << 16, io::Direct::IfPossible),
        ("out of core, page cache", mib << 16, io::Direct::Never),
        ("in memory", (mib << 20) * 5 / 4, io::Direct::Never),
    ];
    for (name, bytes, direct) in places {
        compare(&mut out, name, &path, bytes, direct, rounds)?;
    }
    writeln!(
        out,
        "the file, in order, through the page cache: {}",
        sequential(&path)?
    )?;
    Ok(())
}

/// Random numbers, so that nothing is compressed.
fn fill(path: &Path, bytes: u64) -> Result<(), Box<dyn Error>> {
    let fields =
        (0..COLUMNS).map(|column| Field::new(format!("c{column}"), DataType::Int64, false));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let store = Store::create(path, &store::Options::default())?;
    let mut tx = store.begin()?;
    create(&mut tx, &Definition::from_schema("t", &schema)?)?;
    tx.commit()?;
    let loader = block_on(Loader::new(store.begin()?, "t"))?;
    let mut random = fastrand::Rng::with_seed(1);
    let (mut chunker, mut ordinal) = (Chunker::default(), 0);
    for _ in 0..bytes / (COLUMNS * BATCH * 8) as u64 {
        let mut column = || {
            Arc::new(Int64Array::from_iter_values(
                (0..BATCH).map(|_| random.i64(..)),
            )) as Arc<dyn Array>
        };
        let columns = (0..COLUMNS).map(|_| column()).collect();
        for block in chunker.push(RecordBatch::try_new(schema.clone(), columns)?) {
            loader.block(ordinal, &block)?;
            ordinal += 1;
        }
    }
    if let Some(block) = chunker.rest() {
        loader.block(ordinal, &block)?;
    }
    block_on(loader.finish())?.0.commit()?;
    Ok(store.close()?)
}

fn compare(
    out: &mut impl Write,
    name: &str,
    path: &Path,
    bytes: u64,
    direct: io::Direct,
    rounds: usize,
) -> Result<(), Box<dyn Error>> {
    let options = store::Options {
        pool: PoolOptions {
            bytes,
            direct,
            ..PoolOptions::default()
        },
        ..store::Options::default()
    };
    let store = Store::open(path, &options)?;
    let tables = Catalog::new().tables(&store.snapshot())?;
    let table = tables.get("t").ok_or("the table is gone")?.clone();
    let mut seconds = [Vec::new(), Vec::new()];
    let expected = scan(&table, true)?;
    let before = store.pool().statistics();
    for _ in 0..rounds {
        for (ahead, seconds) in [false, true].into_iter().zip(&mut seconds) {
            let begin = Instant::now();
            let sum = scan(&table, ahead)?;
            seconds.push(begin.elapsed().as_secs_f64());
            assert_eq!(sum, expected);
        }
    }
    let after = store.pool().statistics();
    let [off, on] = seconds.map(median);
    let read = (COLUMNS * 8) as f64 * expected.1 as f64;
    writeln!(
        out,
        "{name}: off {:.3} s ({:.2} GB/s), on {:.3} s ({:.2} GB/s): {:.2} times as fast; accuracy {:.3}, late {}, dropped {}",
        off,
        read / off / 1e9,
        on,
        read / on / 1e9,
        off / on,
        after.accuracy().unwrap_or(1.0),
        after.prefetch_late - before.prefetch_late,
        after.prefetch_dropped - before.prefetch_dropped,
    )?;
    Ok(())
}

/// The sum of all numbers, and the rows.
fn scan(table: &Arc<table::Table>, ahead: bool) -> Result<(i64, usize), Box<dyn Error>> {
    let scan = Scan::new(table.clone(), (0..COLUMNS).collect(), false);
    let scan = if ahead {
        scan
    } else {
        scan.without_read_ahead()
    };
    let pool = table.snapshot().pool().clone();
    let traffic = Traffic::new(pool.nodes());
    let (mut sum, mut rows) = (0i64, 0);
    for (_, morsel) in scan.morsels() {
        let Some(mut cursor) = block_on(scan.open(&pool, morsel, &[], &traffic, || 0))? else {
            continue;
        };
        while let Some(batch) = cursor.next(BATCH_ROWS)? {
            rows += batch.num_rows();
            for column in batch.columns() {
                let column = column.as_any().downcast_ref::<Int64Array>();
                let values = column.ok_or("a column of other numbers")?.values();
                sum = values
                    .iter()
                    .fold(sum, |sum, value| sum.wrapping_add(*value));
            }
        }
    }
    Ok((sum, rows))
}

/// What one reader of the whole file gets.
fn sequential(path: &Path) -> Result<String, Box<dyn Error>> {
    use std::io::Read;
    let mut file = std::fs::File::open(path)?;
    let mut buffer = vec![0; 4 << 20];
    let (begin, mut bytes) = (Instant::now(), 0);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            some => bytes += some,
        }
    }
    Ok(format!(
        "{:.2} GB/s",
        bytes as f64 / begin.elapsed().as_secs_f64() / 1e9
    ))
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
