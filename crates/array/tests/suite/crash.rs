//! Loss of power at every operation of the disk while chunks are written: an array is as a commit left it, whole.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use array::{
    Array, Attribute, Compression, DataType, Dimension, Layout, Region, Scalar, Schema, Writer,
};
use io::fault::Disk;
use store::{Options, PoolOptions, Store};

use crate::model::{Cells, block, cells_of, part, region_in, wait};

fn options() -> Options {
    Options {
        page_size: 4096,
        pool: PoolOptions {
            bytes: 64 * 4096,
            io_threads: 1,
            ..PoolOptions::default()
        },
        // So few that some commits write pages in place, and so short a log that it is folded now and then.
        dirty_bytes: 6_000,
        checkpoint_bytes: 20_000,
        ..Options::default()
    }
}

fn schema(layout: Layout) -> Schema {
    let dimensions = vec![
        Dimension::integer("x", 0, 30).chunk(16),
        Dimension::integer("y", 0, 40).chunk(32).growing(),
    ];
    let attributes = vec![
        Attribute::new("v", DataType::F64),
        Attribute::new("k", DataType::I16)
            .nullable()
            .compressed(Compression::Lz4),
    ];
    Schema::new(dimensions, attributes)
        .unwrap()
        .with_layout(layout)
}

/// What each version of the store has of the array; `None` before it is there.
type States = Vec<Option<(Cells, Schema)>>;

/// Creates an array and changes it until the disk stops; the last version that was acknowledged, if any.
fn work(disk: &Disk, layout: Layout, steps: u64) -> (States, Option<usize>) {
    let mut states: States = vec![None];
    let mut acknowledged = None;
    let Ok(store) = Store::create_on(disk.device("data"), disk.device("log"), &options()) else {
        return (states, acknowledged);
    };
    acknowledged = Some(0);
    let mut random = fastrand::Rng::with_seed(5);
    for step in 0..steps {
        let (mut cells, mut schema) = match states.last() {
            Some(Some(state)) => state.clone(),
            _ => (Cells::new(), schema(layout)),
        };
        let mut change = || -> array::Result<usize> {
            let mut writer = Writer::begin(&store)?;
            if step == 0 {
                writer.create("a", &schema)?;
            }
            let shape = schema.shape();
            let draw = |at: &[u64]| {
                let number = (at[0] * 31 + at[1] * 7 + step * 13) % 97;
                let null = if number % 5 == 0 {
                    Scalar::Null
                } else {
                    Scalar::Int(number.into())
                };
                (layout == Layout::Dense || number % 3 == 0)
                    .then(|| vec![Scalar::Float(number as f64), null])
            };
            let written = if step % 4 == 3 {
                let region = Region::new([(0, shape[0]), (shape[1], shape[1] + 9)]);
                let block = block(&schema, &region, draw);
                wait(writer.append("a", "y", &block, &[]))?;
                block
            } else {
                let parts = [(); 2].map(|()| (random.u64(0..40), random.u64(0..40)));
                let block = block(&schema, &region_in(&shape, &parts), draw);
                wait(writer.write("a", &block))?;
                block
            };
            cells.extend(cells_of(&written));
            schema = writer.schema("a")?;
            Ok(writer.commit()? as usize)
        };
        let version = states.len();
        let changed = change();
        // Whether it was committed or not, this is what it would be.
        states.push(Some((cells, schema)));
        match changed {
            Ok(done) if done == version => acknowledged = Some(version),
            // A box without cells changes nothing.
            Ok(_) => drop(states.pop()),
            Err(_) => return (states, acknowledged),
        }
    }
    (states, acknowledged)
}

/// Opens what a crash left, and compares.
fn recovers(image: &Disk, states: &States, acknowledged: Option<usize>, of: &str) {
    let store = match Store::open_on(image.device("data"), image.device("log"), &options()) {
        Ok(store) => store,
        Err(error) => {
            assert!(acknowledged.is_none(), "{of}: {error}");
            return;
        }
    };
    check(&store, states, acknowledged, of);
    assert!(store.check(&|_, _| {}).unwrap().is_empty(), "{of}");
}

fn check(store: &Arc<Store>, states: &States, acknowledged: Option<usize>, of: &str) {
    let snapshot = store.snapshot();
    let version = snapshot.version() as usize;
    assert!(
        version >= acknowledged.unwrap_or(0),
        "{of}: {version} lost {acknowledged:?}"
    );
    let Some((cells, schema)) = states.get(version).expect("a version that was") else {
        assert!(array::list(&snapshot).unwrap().is_empty(), "{of}");
        return;
    };
    let array = Array::open(&snapshot, "a").unwrap();
    assert_eq!(array.schema(), schema, "{of}");
    let found = cells_of(&wait(array.read(&array.region(), &[true, true])).unwrap());
    assert!(
        found == part(cells, schema, &array.region()),
        "{of}: other cells"
    );
}

fn every_operation(layout: Layout) -> usize {
    let whole = Disk::new(1);
    let (states, acknowledged) = work(&whole, layout, 8);
    assert!(acknowledged.unwrap() > 5, "the workload commits");
    recovers(&whole.crash(0), &states, acknowledged, "nothing failed");
    let mut seen = HashSet::new();
    for operation in 0..whole.operations() {
        let disk = Disk::new(1);
        disk.stop_after(operation);
        let (states, acknowledged) = work(&disk, layout, 8);
        for image in 0..4 {
            let left = disk.crash(operation * 31 + image);
            let mut hasher = DefaultHasher::new();
            left.names()
                .iter()
                .for_each(|name| (name, left.bytes(name)).hash(&mut hasher));
            if seen.insert(hasher.finish()) {
                recovers(
                    &left,
                    &states,
                    acknowledged,
                    &format!("operation {operation}, image {image}"),
                );
            }
        }
    }
    seen.len()
}

#[test]
fn dense_chunks_survive_a_crash_at_every_operation() {
    let images = every_operation(Layout::Dense);
    assert!(images > 60, "{images} distinct images");
}

#[test]
fn sparse_chunks_survive_a_crash_at_every_operation() {
    let images = every_operation(Layout::Sparse);
    assert!(images > 60, "{images} distinct images");
}
