//! TPC-H: the eight tables, generated in the process, and the 22 queries.
//!
//! Query 11 has the fraction 0.0001 at every scale, as the published answers have it; the
//! specification divides it by the scale.

mod generate;
pub(crate) mod shapes;
mod size;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use store::Transaction;

use crate::database::Database;
use crate::error::Error;
use crate::import;
use crate::import::pipeline::{Batches, Piece, Pieces};
use crate::progress::{Position, Progress};
use crate::tpch::generate::{expected_rows, generate_part, part_rows, parts, there_is_memory};
use crate::tpch::shapes::{SHAPES, Shape};

pub use crate::tpch::generate::generate;
pub use crate::tpch::shapes::{definition, tables};

macro_rules! queries {
    ($($number:literal)*) => { [$(include_str!(concat!("../queries/q", $number, ".sql"))),*] };
}

/// The texts of the 22 queries with the validation parameters, the first one first. Query 15 is
/// written with WITH instead of a view.
///
/// ```
/// assert!(atoll::tpch::QUERIES[5].contains("l_discount between"));
/// ```
pub const QUERIES: [&str; 22] = queries!(
    "01" "02" "03" "04" "05" "06" "07" "08" "09" "10" "11" "12" "13" "14" "15" "16" "17" "18" "19" "20" "21" "22"
);

/// The result of a load.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LoadReport {
    /// Rows in all tables.
    pub rows: u64,
    /// The size of the same data as `.tbl` files, in bytes.
    pub raw_bytes: u64,
    /// Seconds from the start to the commit.
    pub seconds: f64,
}

/// Which TPC-H tables a store has.
#[derive(Clone, Debug, PartialEq)]
pub enum Present {
    /// None of the eight.
    None,
    /// All eight, complete, at this scale.
    All {
        /// The scale, from the number of suppliers.
        scale: f64,
        /// The size of the same data as `.tbl` files, in bytes.
        raw_bytes: u64,
    },
}

/// Finds out which TPC-H tables the database has.
///
/// # Errors
/// [`Error::Import`] if it has tables of these names that [`load`] did not make, or only some of them.
pub fn present(database: &Database) -> Result<Present, Error> {
    let tables = database.tables_at(&database.store().snapshot())?;
    let found: Vec<&str> = tables
        .names()
        .into_iter()
        .filter(|name| self::tables().any(|table| table == *name))
        .collect();
    if found.is_empty() {
        return Ok(Present::None);
    }
    let path = database.path().display();
    let rows = |name: &str| tables.get(name).map_or(0, |table| table.rows());
    let scale = rows("supplier") as f64 / 10_000.0;
    for name in self::tables().filter(|name| *name != "lineitem") {
        if rows(name) != expected_rows(name, scale) as u64 {
            return Err(Error::Import(format!(
                "{path} has tables named like those of TPC-H ({}) that are not as generated: {name} has {} rows; \
                 take another store with --store",
                found.join(", "),
                rows(name)
            )));
        }
    }
    Ok(Present::All {
        scale,
        raw_bytes: read_raw_bytes(database),
    })
}

/// Generates the TPC-H tables at `scale` (0.001 to 100,000) and stores them in one commit, so that
/// a store has all of them or none.
///
/// # Errors
/// [`Error::Import`] for a scale out of range, or where the generator's 300 MiB of text have no room; [`Error::Interrupted`] if `progress` stopped the load; the errors of the
/// store. The store is then as before.
pub fn load(database: &Database, scale: f64, progress: &dyn Progress) -> Result<LoadReport, Error> {
    if !(0.001..=100_000.0).contains(&scale) {
        return Err(Error::Import(format!(
            "scale {scale} is out of range; take one from 0.001 to 100000"
        )));
    }
    there_is_memory()?;
    let started = Instant::now();
    let raw_bytes = Arc::new(AtomicU64::new(0));
    let _turn = database.turn()?;
    let mut transaction = database.store().begin()?;
    let mut rows = 0;
    for shape in &SHAPES {
        let definition = definition(shape.name).ok_or_else(|| {
            Error::Import(format!(
                "the generator's table {:?} is not known",
                shape.name
            ))
        })?;
        table::create(&mut transaction, &definition)?;
        let expected = expected_rows(shape.name, scale) as u64;
        let mut position = Position::start(shape.name);
        position.total_rows = Some(expected);
        position.total_bytes = Some((expected as f64 * shape.row_bytes) as u64);
        let pieces = pieces(shape, scale, &raw_bytes);
        let stored;
        (transaction, stored) = import::load::load(
            database,
            transaction,
            shape.name,
            pieces,
            position,
            progress,
        )?;
        rows += stored;
    }
    let raw_bytes = raw_bytes.load(Ordering::Relaxed);
    write_raw_bytes(&mut transaction, raw_bytes);
    transaction.commit()?;
    Ok(LoadReport {
        rows,
        raw_bytes,
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// The parts of a table, as pieces to import. As they are read, their size as `.tbl` is added to `raw_bytes`.
fn pieces(shape: &'static Shape, scale: f64, raw_bytes: &Arc<AtomicU64>) -> Pieces {
    let (name, of, raw_bytes) = (shape.name, parts(shape.name, scale), Arc::clone(raw_bytes));
    Box::new((1..=of).map(move |part| {
        let rows = part_rows(name, scale, part, of);
        let expected = rows.unwrap_or(expected_rows(name, scale) as u64 / of as u64);
        let raw_bytes = Arc::clone(&raw_bytes);
        let read = move || {
            let batches = generate_part(name, scale, part, of).inspect(move |batch| {
                if let Ok(batch) = batch {
                    raw_bytes.fetch_add(size::tbl_bytes(batch), Ordering::Relaxed);
                }
            });
            Ok(Box::new(batches) as Batches)
        };
        Ok(Piece {
            rows,
            bytes: (expected as f64 * shape.row_bytes) as u64,
            read: Box::new(read),
        })
    }))
}

/// The directory of the store in which the size of the raw data is kept.
const DIRECTORY: u32 = 0;
/// The key of this size. The keys of tables start with another letter.
const RAW_BYTES: &[u8] = b"property/tpch.raw_bytes";

fn write_raw_bytes(transaction: &mut Transaction, raw_bytes: u64) {
    transaction.put(DIRECTORY, RAW_BYTES, &raw_bytes.to_le_bytes());
}

fn read_raw_bytes(database: &Database) -> u64 {
    let found = database.store().snapshot().get(DIRECTORY, RAW_BYTES);
    found
        .and_then(|bytes| Some(u64::from_le_bytes(bytes.as_ref().try_into().ok()?)))
        .unwrap_or(0)
}
