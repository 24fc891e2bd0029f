//! The generator: the rows of each table, in parts that are generated independently.

use std::sync::atomic::{AtomicBool, Ordering};

use arrow::record_batch::RecordBatch;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow,
    SupplierArrow,
};

use crate::error::Error;
use crate::import::pipeline::Batches;
use crate::tpch::shapes::SHAPES;

/// Bytes of the text that all comments are parts of. The generator makes it once, and keeps it as long as the process runs:
/// with a smaller one the data would not be that of TPC-H.
const TEXT_BYTES: usize = 300 << 20;

/// Whether there is memory for the generator's text, or it has been made.
///
/// # Errors
/// [`Error::Import`] if there is not.
pub(crate) fn there_is_memory() -> Result<(), Error> {
    static FOUND: AtomicBool = AtomicBool::new(false);
    if FOUND.load(Ordering::Relaxed) {
        return Ok(());
    }
    let free = memory::available().unwrap_or(u64::MAX);
    // A limit of this process alone (`ulimit -d`) is no limit of the machine's.
    let is_granted = Vec::<u8>::new().try_reserve_exact(TEXT_BYTES).is_ok();
    if free < TEXT_BYTES as u64 || !is_granted {
        return Err(Error::Import(
            "generating TPC-H takes 300 MiB of memory for the text that its comments are cut from, beside the memory limit, \
             and there is less; make the store on a machine that has more, and copy it here with its .log file"
                .to_owned(),
        ));
    }
    FOUND.store(true, Ordering::Relaxed);
    Ok(())
}

/// Rows of a batch.
const BATCH_ROWS: usize = 8192;

/// The approximate number of rows of a part: small, because parts of `lineitem` are held until their place is known.
const PART_ROWS: i64 = 16_384;

/// The suppliers of each TPC-H part: `partsupp` has as many rows for a part, which the generator counts as one.
const SUPPLIERS: i64 = 4;

/// The rows of a table at a scale; approximate for `lineitem`.
pub(crate) fn expected_rows(name: &str, scale: f64) -> i64 {
    match name {
        "region" => 5,
        "nation" => 25,
        "part" => PartGenerator::calculate_row_count(scale, 1, 1),
        "supplier" => SupplierGenerator::calculate_row_count(scale, 1, 1),
        "customer" => CustomerGenerator::calculate_row_count(scale, 1, 1),
        "partsupp" => SUPPLIERS * PartSuppGenerator::calculate_row_count(scale, 1, 1),
        "orders" => OrderGenerator::calculate_row_count(scale, 1, 1),
        _ => 4 * OrderGenerator::calculate_row_count(scale, 1, 1),
    }
}

/// The number of parts in which a table is generated.
pub(crate) fn parts(name: &str, scale: f64) -> i32 {
    match name {
        "region" | "nation" => 1,
        _ => (expected_rows(name, scale) as u64)
            .div_ceil(PART_ROWS as u64)
            .clamp(1, i32::MAX as u64) as i32,
    }
}

/// Generates all of the table `name` at `scale`, in batches of at most 8,192 rows. An unknown name yields nothing.
pub fn generate(name: &str, scale: f64) -> Box<dyn Iterator<Item = RecordBatch> + Send> {
    match SHAPES.iter().find(|shape| shape.name == name) {
        // The generator's iterators never fail: their results carry the signature of a reader.
        Some(shape) => Box::new(generate_part(shape.name, scale, 1, 1).filter_map(Result::ok)),
        None => Box::new(std::iter::empty()),
    }
}

/// Generates part `part` of `of`, counted from 1.
pub(crate) fn generate_part(name: &str, scale: f64, part: i32, of: i32) -> Batches {
    macro_rules! batches {
        ($arrow:ident, $generator:ident) => {{
            let generated =
                $arrow::new($generator::new(scale, part, of)).with_batch_size(BATCH_ROWS);
            Box::new(generated.map(|batch| Ok(batch?)))
        }};
    }
    match name {
        "region" => batches!(RegionArrow, RegionGenerator),
        "nation" => batches!(NationArrow, NationGenerator),
        "part" => batches!(PartArrow, PartGenerator),
        "supplier" => batches!(SupplierArrow, SupplierGenerator),
        "customer" => batches!(CustomerArrow, CustomerGenerator),
        "partsupp" => batches!(PartSuppArrow, PartSuppGenerator),
        "orders" => batches!(OrderArrow, OrderGenerator),
        _ => batches!(LineItemArrow, LineItemGenerator),
    }
}

/// The rows of a part; `None` if they are known only once they are generated.
pub(crate) fn part_rows(name: &str, scale: f64, part: i32, of: i32) -> Option<u64> {
    let rows = match name {
        "region" => 5,
        "nation" => 25,
        "part" => PartGenerator::calculate_row_count(scale, part, of),
        "supplier" => SupplierGenerator::calculate_row_count(scale, part, of),
        "customer" => CustomerGenerator::calculate_row_count(scale, part, of),
        "partsupp" => SUPPLIERS * PartSuppGenerator::calculate_row_count(scale, part, of),
        "orders" => OrderGenerator::calculate_row_count(scale, part, of),
        // An order has 1 to 7 lines.
        _ => return None,
    };
    Some(rows as u64)
}
