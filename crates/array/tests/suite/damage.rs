//! Damaged bytes and a disk that cannot be read: errors that name the place, never other values.

use array::{Array, Attribute, Compression, DataType, Dimension, Region, Scalar, Schema, Writer};
use io::fault::Disk;
use store::{Options, PoolOptions, Store};

use crate::model::{block, cells_of, wait};

fn options() -> Options {
    Options {
        page_size: 4096,
        pool: PoolOptions {
            bytes: 64 * 4096,
            io_threads: 1,
            ..PoolOptions::default()
        },
        ..Options::default()
    }
}

#[test]
fn every_flipped_bit_is_noticed_or_harmless() {
    let dimensions = vec![
        Dimension::integer("x", 0, 40).chunk(16),
        Dimension::integer("y", 0, 30).chunk(30),
    ];
    let attributes = vec![
        Attribute::new("v", DataType::F64),
        Attribute::new("k", DataType::I32)
            .nullable()
            .compressed(Compression::Zstd(1)),
    ];
    let schema = Schema::new(dimensions, attributes).unwrap();
    let whole = Region::of_shape(&[40, 30]);
    let written = block(&schema, &whole, |at| {
        let number = at[0] * 100 + at[1];
        let null = if number % 7 == 0 {
            Scalar::Null
        } else {
            Scalar::Int((number % 50).into())
        };
        Some(vec![Scalar::Float(number as f64), null])
    });
    let disk = Disk::new(3);
    let store = Store::create_on(disk.device("data"), disk.device("log"), &options()).unwrap();
    let mut writer = Writer::begin(&store).unwrap();
    writer.create("a", &schema).unwrap();
    wait(writer.write("a", &written)).unwrap();
    writer.commit().unwrap();
    store.close().unwrap();
    let bits = disk.bytes("data").len() as u64 * 8;
    let (mut noticed, mut harmless) = (0, 0);
    for bit in (0..bits).step_by(997) {
        let image = disk.crash(0);
        image.flip("data", bit);
        let Ok(store) = Store::open_on(image.device("data"), image.device("log"), &options())
        else {
            noticed += 1;
            continue;
        };
        let read = Array::open(&store.snapshot(), "a")
            .and_then(|array| wait(array.read(&whole, &[true, true])));
        match read {
            Ok(found) => {
                assert!(
                    cells_of(&found) == cells_of(&written),
                    "bit {bit} changed values in silence"
                );
                harmless += 1;
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("page") || text.contains("'a'"), "{text}");
                noticed += 1;
            }
        }
    }
    assert!(noticed > 10, "{noticed} noticed, {harmless} harmless");
}
