//! TPC-H: the eight tables, generated in the process, and the 22 queries.
//!
//! Query 11 has the fraction 0.0001 at every scale, as the published answers have it; the
//! specification divides it by the scale.

mod size;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use arrow::record_batch::RecordBatch;
use store::Transaction;
use table::{Definition, ForeignKey};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow,
    SupplierArrow,
};

use crate::import::pipeline::{Batches, Piece, Pieces};
use crate::{Database, Error, Position, Progress};

/// Rows generated at a time.
const BATCH_ROWS: usize = 8192;

/// Rows of one part, about: small, because parts of `lineitem` are held until their place is known.
const PART_ROWS: i64 = 16_384;

/// Suppliers of a part: `partsupp` has as many rows for each, which its generator counts as one.
const SUPPLIERS: i64 = 4;

/// A table of TPC-H.
struct Shape {
    name: &'static str,
    primary_key: &'static [&'static str],
    /// Columns and the parent; the parent's columns are its primary key.
    foreign_keys: &'static [(&'static [&'static str], &'static str)],
    /// Bytes of a row in a `.tbl` file, on average. Only for the progress bar.
    row_bytes: f64,
}

/// Parents before children.
const SHAPES: [Shape; 8] = [
    Shape {
        name: "region",
        primary_key: &["r_regionkey"],
        foreign_keys: &[],
        row_bytes: 77.8,
    },
    Shape {
        name: "nation",
        primary_key: &["n_nationkey"],
        foreign_keys: &[(&["n_regionkey"], "region")],
        row_bytes: 89.0,
    },
    Shape {
        name: "part",
        primary_key: &["p_partkey"],
        foreign_keys: &[],
        row_bytes: 120.7,
    },
    Shape {
        name: "supplier",
        primary_key: &["s_suppkey"],
        foreign_keys: &[(&["s_nationkey"], "nation")],
        row_bytes: 140.9,
    },
    Shape {
        name: "customer",
        primary_key: &["c_custkey"],
        foreign_keys: &[(&["c_nationkey"], "nation")],
        row_bytes: 162.3,
    },
    Shape {
        name: "partsupp",
        primary_key: &["ps_partkey", "ps_suppkey"],
        foreign_keys: &[(&["ps_partkey"], "part"), (&["ps_suppkey"], "supplier")],
        row_bytes: 148.7,
    },
    Shape {
        name: "orders",
        primary_key: &["o_orderkey"],
        foreign_keys: &[(&["o_custkey"], "customer")],
        row_bytes: 114.6,
    },
    Shape {
        name: "lineitem",
        primary_key: &["l_orderkey", "l_linenumber"],
        foreign_keys: &[
            (&["l_orderkey"], "orders"),
            (&["l_partkey"], "part"),
            (&["l_suppkey"], "supplier"),
            (&["l_partkey", "l_suppkey"], "partsupp"),
        ],
        row_bytes: 126.6,
    },
];

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

/// The names of the tables, parents before children.
pub fn tables() -> impl Iterator<Item = &'static str> {
    SHAPES.iter().map(|shape| shape.name)
}

/// The definition, with its keys, of the TPC-H table `name`; none if there is no such table.
///
/// ```
/// let orders = atoll::tpch::definition("orders").unwrap();
/// assert_eq!(orders.foreign_keys[0].parent, "customer");
/// assert!(atoll::tpch::definition("order").is_none());
/// ```
pub fn definition(name: &str) -> Option<Definition> {
    let shape = SHAPES.iter().find(|shape| shape.name == name)?;
    let schema = match name {
        "region" => RegionArrow::schema_ref(),
        "nation" => NationArrow::schema_ref(),
        "part" => PartArrow::schema_ref(),
        "supplier" => SupplierArrow::schema_ref(),
        "customer" => CustomerArrow::schema_ref(),
        "partsupp" => PartSuppArrow::schema_ref(),
        "orders" => OrderArrow::schema_ref(),
        _ => LineItemArrow::schema_ref(),
    };
    let place = |column: &&str| schema.index_of(column).ok();
    let mut definition = Definition::from_schema(name, &schema).ok()?;
    definition.primary_key = shape.primary_key.iter().filter_map(place).collect();
    for (columns, parent) in shape.foreign_keys {
        let of = SHAPES.iter().find(|shape| shape.name == *parent)?;
        definition.foreign_keys.push(ForeignKey {
            columns: columns.iter().filter_map(place).collect(),
            parent: (*parent).to_owned(),
            parent_columns: of
                .primary_key
                .iter()
                .map(|column| (*column).to_owned())
                .collect(),
        });
    }
    Some(definition)
}

/// Rows of a table at a scale; of `lineitem` only about.
fn expected_rows(name: &str, scale: f64) -> i64 {
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
fn parts(name: &str, scale: f64) -> i32 {
    match name {
        "region" | "nation" => 1,
        _ => (expected_rows(name, scale) as u64)
            .div_ceil(PART_ROWS as u64)
            .clamp(1, i32::MAX as u64) as i32,
    }
}

/// Generates the table `name` at `scale`, whole, in batches of at most 8,192 rows. Unknown names
/// yield nothing.
pub fn generate(name: &str, scale: f64) -> Box<dyn Iterator<Item = RecordBatch> + Send> {
    match SHAPES.iter().find(|shape| shape.name == name) {
        // The generator's iterators never fail: their results carry the signature of a reader.
        Some(shape) => Box::new(generate_part(shape.name, scale, 1, 1).filter_map(Result::ok)),
        None => Box::new(std::iter::empty()),
    }
}

fn generate_part(name: &str, scale: f64, part: i32, of: i32) -> Batches {
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

fn part_rows(name: &str, scale: f64, part: i32, of: i32) -> Option<u64> {
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

/// What a load did.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LoadReport {
    /// Rows in all tables.
    pub rows: u64,
    /// Bytes that the same data has as `.tbl` files.
    pub raw_bytes: u64,
    /// From the start to the commit.
    pub seconds: f64,
}

/// The TPC-H tables a store has.
#[derive(Clone, Debug, PartialEq)]
pub enum Present {
    /// None of the eight.
    None,
    /// All eight, complete, at this scale.
    All {
        /// The scale, from the number of suppliers.
        scale: f64,
        /// Bytes that the same data has as `.tbl` files.
        raw_bytes: u64,
    },
}

/// Tells which TPC-H tables the database has.
///
/// # Errors
/// [`Error::Import`] where it has tables of those names that [`load`] did not make, or some only.
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
/// [`Error::Import`] for a scale out of range; [`Error::Interrupted`] when `progress` said so;
/// whatever the store reports. The store is then as before.
pub fn load(database: &Database, scale: f64, progress: &dyn Progress) -> Result<LoadReport, Error> {
    if !(0.001..=100_000.0).contains(&scale) {
        return Err(Error::Import(format!(
            "scale {scale} is out of range; take one from 0.001 to 100000"
        )));
    }
    let started = Instant::now();
    let raw_bytes = Arc::new(AtomicU64::new(0));
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
        (transaction, stored) = crate::import::load(
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

/// The parts of a table; what they would take as `.tbl` is added to `raw_bytes`.
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

/// Where a store keeps how large the raw data was.
const DIRECTORY: u32 = 0;
/// Apart from the names of tables, which start with another letter.
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
