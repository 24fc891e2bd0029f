//! Hostile arrays: all checksums are right, and what records and pages say is not.

use std::sync::Arc;

use buffer::PageId;
use futures::executor::block_on;
use fuzz::{Draw, Target};
use io::fault::Disk;
use store::{Kind, Options, PoolOptions, Store, Transaction};

use crate::data::block::{Block, Column};
use crate::data::buffer::Buffer;
use crate::data::region::Region;
use crate::error::Result;
use crate::model::dimension::Dimension;
use crate::model::schema::{Attribute, Compression, Layout, Schema};
use crate::model::types::DataType;
use crate::storage::array::{Array, list};
use crate::storage::keys::{Catalog, Entry, encode, put_entry, unpack};
use crate::storage::record::{Plane, Record};
use crate::storage::write::Writer;

const PAGE: usize = 4096;
const SHAPE: [u64; 2] = [40, 60];

fn options() -> Options {
    Options {
        page_size: PAGE as u32,
        pool: PoolOptions {
            bytes: 64 * PAGE as u64,
            io_threads: 1,
            ..PoolOptions::default()
        },
        ..Options::default()
    }
}

/// A store with an array of two attributes, some of whose cells exist, or all.
fn some_array(draw: &mut Draw) -> Arc<Store> {
    let compression = *draw.one_of(&[Compression::None, Compression::Lz4, Compression::Zstd(1)]);
    let attributes = vec![
        Attribute::new("v", DataType::F64).compressed(compression),
        Attribute::new("k", DataType::I16).nullable(),
    ];
    let dimensions = vec![
        Dimension::integer("x", 0, SHAPE[0]).chunk(16),
        Dimension::integer("y", 0, SHAPE[1]).chunk(60),
    ];
    let layout = *draw.one_of(&[Layout::Sparse, Layout::Sparse, Layout::Dense]);
    let schema = Schema::new(dimensions, attributes).unwrap();
    let disk = Disk::new(0);
    let store = Store::create_on(disk.device("data"), disk.device("log"), &options()).unwrap();
    let mut writer = Writer::begin(&store).unwrap();
    writer.create("a", &schema.with_layout(layout)).unwrap();
    block_on(writer.write("a", &some_cells(draw))).unwrap();
    writer.commit().unwrap();
    store
}

/// Cells of the whole array, some of which do not exist.
fn some_cells(draw: &mut Draw) -> Block {
    let count = (SHAPE[0] * SHAPE[1]) as usize;
    let of = draw.below(4) + 1;
    let values: Vec<f64> = (0..count).map(|at| (at % 50) as f64).collect();
    let small: Vec<i16> = (0..count).map(|at| at as i16).collect();
    let valid = (0..count).map(|at| u8::from(at % 7 != 0)).collect();
    let columns = vec![
        Some(Column::new(Buffer::of(DataType::F64, &values))),
        Some(Column::nullable(Buffer::of(DataType::I16, &small), valid)),
    ];
    let present = (0..count).map(|at| u8::from(at % of == 0)).collect();
    let block = Block::new(Region::of_shape(&SHAPE), columns).unwrap();
    block.with_present(present)
}

/// Changes the record of a chunk: its bytes, or what they say.
fn disturb_record(draw: &mut Draw, transaction: &mut Transaction, space: u32) {
    let all: Vec<_> = transaction.prefix(space, b"").collect();
    let (key, value) = draw.one_of(&all).clone();
    let mut bytes = value.to_vec();
    match unpack::<Record>(&value) {
        Some(mut record) if !draw.one_in(3) => {
            disturb_fields(draw, transaction, &mut record);
            bytes = encode(&record, "a").unwrap();
        }
        _ => draw.mutate(&mut bytes),
    }
    transaction.put(space, &key, &bytes);
}

fn disturb_fields(draw: &mut Draw, transaction: &mut Transaction, record: &mut Record) {
    let number = draw.number();
    let plane: &mut Plane = match &mut record.valid {
        Some(valid) if draw.one_in(2) => valid,
        _ => &mut record.values,
    };
    match draw.below(7) {
        0 => plane.bytes = number,
        1 => plane.blocks.push(number as u32),
        2 => plane
            .pages
            .push((number as PageId, draw.below(1 << 20) as u32)),
        3 => plane.pages = vec![(plane.pages.first().map_or(0, |of| of.0), number as u32)],
        4 => {
            // As many cells as it says, and bytes to match: pages are missing.
            record.shape = vec![number as u32];
            record.values.bytes = (number & 0xffff_ffff) * u64::from(record.values.width);
        }
        5 => record.bucket = number as u8,
        _ => {
            // Other positions, or values, of the same number.
            let mut bytes = draw.bytes(record.values.bytes as usize);
            bytes.truncate(PAGE);
            if bytes.is_empty() {
                return;
            }
            let page = transaction.write_pages(&[&bytes], 0, Kind::Values).unwrap();
            record.values.pages = vec![(page[0], 1)];
        }
    }
}

/// Changes what the directory says of the array.
fn disturb_entry(draw: &mut Draw, transaction: &mut Transaction, entry: &Entry) {
    let mut entry = entry.clone();
    match draw.below(3) {
        0 => entry.space = draw.number() as u32,
        1 => entry.schema = entry.schema.clone().with_layout(Layout::Sparse),
        _ => entry.schema = entry.schema.clone().with_layout(Layout::Dense),
    }
    put_entry(transaction, "a", &entry).unwrap();
}

/// Reads all that there is, and, where that is sound, writes and deletes it.
fn use_it(draw: &mut Draw, store: &Arc<Store>) -> Result<()> {
    let snapshot = store.snapshot();
    list(&snapshot)?;
    let array = Array::open(&snapshot, "a")?;
    let region = Region::of_shape(&SHAPE);
    let block = block_on(array.read(&region, &[true, true]))?;
    assert_eq!(block.cells() as u64, SHAPE[0] * SHAPE[1]);
    for number in 0..2 {
        array.statistics(&region, number)?;
    }
    let mut writer = Writer::begin(store)?;
    block_on(writer.write("a", &some_cells(draw)))?;
    if array.schema().layout() == Layout::Sparse {
        block_on(writer.erase("a", &some_cells(draw)))?;
    }
    drop(writer);
    let mut writer = Writer::begin(store)?;
    writer.delete("a")
}

#[test]
fn records_and_positions_of_chunks() {
    let name = "storage::fuzzed::records_and_positions_of_chunks";
    let target = Target::new(name, 600).expects(&["used", "refused"]);
    target.run(|draw| {
        let store = some_array(draw);
        let mut transaction = store.begin().unwrap();
        let entry = Catalog::Transaction(&transaction).entry("a").unwrap();
        for _ in 0..=draw.below(2) {
            disturb_record(draw, &mut transaction, entry.space);
        }
        if draw.one_in(8) {
            disturb_entry(draw, &mut transaction, &entry);
        }
        transaction.commit().unwrap();
        match use_it(draw, &store) {
            Ok(()) => "used",
            Err(error) => {
                assert!(!error.to_string().is_empty());
                "refused"
            }
        }
    });
}
