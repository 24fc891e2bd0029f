//! A plain model of an array: a value for each cell in a map, found by its position.

use std::collections::BTreeMap;
use std::sync::Arc;

use array::{
    Attribute, Block, Buffer, Column, Compression, DataType, Dimension, Layout, Region, Scalar,
    Schema,
};
use futures::executor::block_on;
use proptest::prelude::*;
use store::{Options, PoolOptions, Store};

/// Cells by position; those that are not there do not exist.
pub type Cells = BTreeMap<Vec<u64>, Vec<Scalar>>;

/// A store with small pages in a folder of its own.
pub fn store(directory: &tempfile::TempDir) -> Arc<Store> {
    let options = Options {
        page_size: 4096,
        pool: PoolOptions {
            bytes: 4 << 20,
            ..PoolOptions::default()
        },
        durability: store::Durability::None,
        ..Options::default()
    };
    Store::create(directory.path().join("t.atoll"), &options).unwrap()
}

/// All positions of a box, in row-major order.
pub fn positions(region: &Region) -> Vec<Vec<u64>> {
    let mut all = vec![vec![]];
    for &(start, end) in region.ranges() {
        let longer = all
            .iter()
            .flat_map(|of: &Vec<u64>| (start..end).map(move |at| [of.as_slice(), &[at]].concat()));
        all = longer.collect();
    }
    all
}

/// The cells of a block that exist.
pub fn cells_of(block: &Block) -> Cells {
    let mut cells = Cells::new();
    for (at, position) in positions(block.region()).into_iter().enumerate() {
        if block.exists(at) {
            let values = block
                .columns()
                .iter()
                .flatten()
                .map(|column| column.get(at));
            cells.insert(position, values.collect());
        }
    }
    cells
}

/// A block with these values; `None` for a cell that does not exist.
pub fn block(
    schema: &Schema,
    region: &Region,
    value: impl Fn(&[u64]) -> Option<Vec<Scalar>>,
) -> Block {
    let positions = positions(region);
    let cells: Vec<_> = positions.iter().map(|position| value(position)).collect();
    let columns = schema
        .attributes()
        .iter()
        .enumerate()
        .map(|(number, attribute)| {
            let values: Vec<Scalar> = cells
                .iter()
                .map(|cell| cell.as_ref().map_or(Scalar::Null, |cell| cell[number]))
                .collect();
            Some(column(attribute.data_type(), &values))
        });
    let block = Block::new(region.clone(), columns.collect()).unwrap();
    block.with_present(cells.iter().map(|cell| u8::from(cell.is_some())).collect())
}

/// A column of these values.
pub fn column(of: DataType, values: &[Scalar]) -> Column {
    let whole = |value: &Scalar| match *value {
        Scalar::Int(value) => value,
        Scalar::Bool(value) => value.into(),
        _ => 0,
    };
    let float = |value: &Scalar| value.to_f64().unwrap_or(0.0);
    macro_rules! ints {
        ($native:ty) => {
            Buffer::of(
                of,
                &values
                    .iter()
                    .map(|value| whole(value) as $native)
                    .collect::<Vec<_>>(),
            )
        };
    }
    let buffer = match of {
        DataType::Bool | DataType::U8 => ints!(u8),
        DataType::I8 => ints!(i8),
        DataType::I16 => ints!(i16),
        DataType::I32 => ints!(i32),
        DataType::I64 => ints!(i64),
        DataType::U16 => ints!(u16),
        DataType::U32 => ints!(u32),
        DataType::U64 => ints!(u64),
        DataType::F32 => Buffer::of(
            of,
            &values
                .iter()
                .map(|value| float(value) as f32)
                .collect::<Vec<_>>(),
        ),
        DataType::F64 => Buffer::of(of, &values.iter().map(float).collect::<Vec<_>>()),
    };
    Column::nullable(
        buffer,
        values
            .iter()
            .map(|value| u8::from(!value.is_null()))
            .collect(),
    )
}

/// A value of a type as people have them: few that repeat, the ends of the type, nulls, NaN.
pub fn value(of: DataType, nullable: bool) -> BoxedStrategy<Scalar> {
    let (least, most) = of.bounds();
    let some = match of {
        DataType::Bool => any::<bool>().prop_map(Scalar::Bool).boxed(),
        DataType::F32 | DataType::F64 => prop_oneof![
            6 => (-8..8i32).prop_map(|of| Scalar::Float(f64::from(of) / 2.0)),
            1 => Just(Scalar::Float(f64::NAN)),
            1 => Just(Scalar::Float(-0.0)),
            1 => Just(Scalar::Float(f64::INFINITY)),
        ]
        .boxed(),
        _ => prop_oneof![
            6 => (0..9i128).prop_map(Scalar::Int),
            1 => Just(Scalar::Int(least)),
            1 => Just(Scalar::Int(most)),
        ]
        .boxed(),
    };
    if nullable {
        prop_oneof![3 => some, 1 => Just(Scalar::Null)].boxed()
    } else {
        some
    }
}

/// A schema of 1 to 6 dimensions, some of length 0 or 1, with chunks that do not divide them, of any types.
pub fn schema(layout: Layout) -> impl Strategy<Value = Schema> {
    let dimension = (
        prop_oneof![1 => Just(0u64), 2 => Just(1), 6 => 2..7u64],
        1..5u64,
    );
    let attribute = (
        prop::sample::select(DataType::ALL.to_vec()),
        any::<bool>(),
        prop::sample::select(vec![
            Compression::None,
            Compression::Zstd(1),
            Compression::Lz4,
        ]),
        any::<bool>(),
    );
    let dimensions = prop::collection::vec(dimension, 1..=6);
    let attributes = prop::collection::vec(attribute, 1..4);
    (dimensions, attributes).prop_map(move |(dimensions, attributes)| {
        // Few cells, whatever the rank.
        let mut room = 200;
        let dimensions = dimensions
            .into_iter()
            .enumerate()
            .map(|(at, (length, chunk))| {
                let length = length.min(room);
                room /= length.max(1);
                Dimension::integer(&format!("d{at}"), at as i64 * 10, length)
                    .chunk(chunk)
                    .growing()
            });
        let attributes =
            attributes
                .into_iter()
                .enumerate()
                .map(|(at, (of, nullable, how, filled))| {
                    let attribute = Attribute::new(&format!("a{at}"), of).compressed(how);
                    let attribute = if nullable {
                        attribute.nullable()
                    } else {
                        attribute
                    };
                    if filled {
                        attribute.fill(Scalar::Int(1).cast(of).unwrap())
                    } else {
                        attribute
                    }
                });
        Schema::new(dimensions.collect(), attributes.collect())
            .unwrap()
            .with_layout(layout)
    })
}

/// What a cell has that was never written.
pub fn fills(schema: &Schema) -> Vec<Scalar> {
    schema
        .attributes()
        .iter()
        .map(Attribute::fill_value)
        .collect()
}

/// Cells of a region as the model has them.
pub fn part(cells: &Cells, schema: &Schema, region: &Region) -> Cells {
    let dense = schema.layout() == Layout::Dense;
    let mut part = Cells::new();
    for position in positions(region) {
        match cells.get(&position) {
            Some(values) => drop(part.insert(position, values.clone())),
            None if dense => drop(part.insert(position, fills(schema))),
            None => {}
        }
    }
    part
}

/// A box within a shape.
pub fn region_in(shape: &[u64], parts: &[(u64, u64)]) -> Region {
    let ranges = shape.iter().zip(parts).map(|(&length, &(a, b))| {
        let (a, b) = (a % (length + 1), b % (length + 1));
        (a.min(b), a.max(b))
    });
    Region::new(ranges)
}

/// Runs a future on this thread.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    block_on(future)
}
