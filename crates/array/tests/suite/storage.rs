//! Writing and reading against the model.

use array::{
    Array, Attribute, Compression, DataType, Dimension, Error, Layout, Region, Scalar, Schema,
    Writer,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::model::{Cells, block, cells_of, part, region_in, schema, store, value, wait};

/// A change of an array.
#[derive(Debug, Clone)]
enum Change {
    /// A box, from parts of the shape, whose cells get values drawn by their number.
    Write {
        parts: Vec<(u64, u64)>,
        values: Vec<Vec<Scalar>>,
        holes: bool,
    },
    Append {
        dimension: usize,
        length: u64,
        values: Vec<Vec<Scalar>>,
    },
    Update {
        cells: Vec<(Vec<u64>, usize)>,
        values: Vec<Vec<Scalar>>,
    },
}

fn change(schema: &Schema) -> BoxedStrategy<Change> {
    let attributes = schema.attributes();
    let row: Vec<_> = attributes
        .iter()
        .map(|of| value(of.data_type(), of.is_nullable()))
        .collect();
    let values = prop::collection::vec(row, 1..8);
    let rank = schema.dimensions().len();
    let parts = prop::collection::vec((0..8u64, 0..8u64), rank);
    let cell = (prop::collection::vec(0..8u64, rank), 0..8usize);
    prop_oneof![
        4 => (parts, values.clone(), any::<bool>()).prop_map(|(parts, values, holes)| Change::Write { parts, values, holes }),
        1 => (0..rank, 0..4u64, values.clone()).prop_map(|(dimension, length, values)| Change::Append { dimension, length, values }),
        1 => (prop::collection::vec(cell, 0..5), values).prop_map(|(cells, values)| Change::Update { cells, values }),
    ]
    .boxed()
}

fn changes(layout: Layout) -> impl Strategy<Value = (Schema, Vec<Change>, Vec<Vec<(u64, u64)>>)> {
    schema(layout).prop_flat_map(|schema| {
        let changes = prop::collection::vec(change(&schema), 1..6);
        let rank = schema.dimensions().len();
        let read = prop::collection::vec(prop::collection::vec((0..9u64, 0..9u64), rank), 1..4);
        (Just(schema), changes, read)
    })
}

fn check(
    (schema, changes, reads): (Schema, Vec<Change>, Vec<Vec<(u64, u64)>>),
) -> Result<(), TestCaseError> {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory);
    let mut writer = Writer::begin(&store).unwrap();
    writer.create("a", &schema).unwrap();
    writer.commit().unwrap();
    let (mut model, mut schema) = (Cells::new(), schema);
    for change in changes {
        let before = store.snapshot();
        let old = (model.clone(), schema.clone());
        let mut writer = Writer::begin(&store).unwrap();
        let shape = schema.shape();
        match change {
            Change::Write {
                parts,
                values,
                holes,
            } => {
                let region = region_in(&shape, &parts);
                let draw = |at: &[u64]| {
                    let number = at.iter().sum::<u64>() as usize;
                    let hole = holes && number % 3 == 0;
                    (!hole).then(|| values[number % values.len()].clone())
                };
                let block = block(&schema, &region, draw);
                wait(writer.write("a", &block)).unwrap();
                model.extend(cells_of(&block));
            }
            Change::Append {
                dimension,
                length,
                values,
            } => {
                let mut ranges: Vec<_> = shape.iter().map(|&length| (0, length)).collect();
                ranges[dimension] = (shape[dimension], shape[dimension] + length);
                let region = Region::new(ranges);
                let block = block(&schema, &region, |at| {
                    Some(values[at.iter().sum::<u64>() as usize % values.len()].clone())
                });
                let name = schema.dimensions()[dimension].name().to_owned();
                wait(writer.append("a", &name, &block, &[])).unwrap();
                model.extend(cells_of(&block));
                schema = writer.schema("a").unwrap();
            }
            Change::Update { cells, values } if shape.iter().all(|&length| length > 0) => {
                let cells: Vec<_> = cells
                    .into_iter()
                    .map(|(at, row)| {
                        let at: Vec<u64> = at
                            .iter()
                            .zip(&shape)
                            .map(|(at, length)| at % length)
                            .collect();
                        (at, values[row % values.len()].clone())
                    })
                    .collect();
                wait(writer.update("a", &cells)).unwrap();
                model.extend(cells);
            }
            Change::Update { .. } => {}
        }
        writer.commit().unwrap();
        // Who looks at the version before sees it still.
        let array = Array::open(&before, "a").unwrap();
        let wanted = vec![true; schema.attributes().len()];
        let cells = cells_of(&wait(array.read(&array.region(), &wanted)).unwrap());
        prop_assert_eq!(cells, part(&old.0, &old.1, &array.region()));
    }
    let array = Array::open(&store.snapshot(), "a").unwrap();
    prop_assert_eq!(array.schema(), &schema);
    let all = vec![true; schema.attributes().len()];
    for parts in reads {
        let region = region_in(&schema.shape(), &parts);
        let found = wait(array.read(&region, &all)).unwrap();
        let expected = part(&model, &schema, &region);
        prop_assert_eq!(cells_of(&found), expected.clone());
        // Statistics bound what is there.
        for number in 0..all.len() {
            let Some(of) = array.statistics(&region, number).unwrap() else {
                prop_assert!(region.is_empty());
                continue;
            };
            for values in expected.values() {
                let value = values[number];
                let nan = matches!(value, Scalar::Float(of) if of.is_nan());
                let within = of.min.order(value).is_some_and(|order| order.is_le())
                    && of.max.order(value).is_some_and(|order| order.is_ge());
                prop_assert!(
                    within || (value.is_null() && of.nulls > 0) || (nan && of.nans > 0),
                    "{value} {of:?}"
                );
            }
        }
        if schema.layout() == Layout::Dense {
            let mut bytes = vec![9; found.column(0).unwrap().values().bytes().len()];
            wait(array.read_into(&region, 0, &mut bytes)).unwrap();
            if found.column(0).unwrap().valid().is_none() {
                prop_assert_eq!(&bytes[..], found.column(0).unwrap().values().bytes());
            }
        }
    }
    let mut writer = Writer::begin(&store).unwrap();
    writer.delete("a").unwrap();
    writer.commit().unwrap();
    drop(array);
    prop_assert!(array::list(&store.snapshot()).unwrap().is_empty());
    let problems = store.check(&|_, _| {}).unwrap();
    prop_assert!(problems.is_empty());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn dense_arrays_are_what_was_written(case in changes(Layout::Dense)) {
        check(case)?;
    }

    #[test]
    fn sparse_arrays_are_what_was_written(case in changes(Layout::Sparse)) {
        check(case)?;
    }
}

/// An array of 40 x 60 doubles in chunks of 10 x 16, each cell its row times 100 plus its column.
fn numbers(directory: &tempfile::TempDir, how: Compression) -> std::sync::Arc<store::Store> {
    let store = store(directory);
    let dimensions = vec![
        Dimension::integer("x", 0, 40).chunk(10),
        Dimension::integer("y", 0, 60).chunk(16),
    ];
    let schema = Schema::new(
        dimensions,
        vec![Attribute::new("v", DataType::F64).compressed(how)],
    )
    .unwrap();
    let mut writer = Writer::begin(&store).unwrap();
    writer.create("n", &schema).unwrap();
    let whole = block(&schema, &Region::of_shape(&[40, 60]), |at| {
        Some(vec![Scalar::Float((at[0] * 100 + at[1]) as f64)])
    });
    wait(writer.write("n", &whole)).unwrap();
    writer.commit().unwrap();
    store
}

#[test]
fn chunks_that_do_not_overlap_are_never_read() {
    for how in [Compression::None, Compression::Zstd(1)] {
        let directory = tempfile::tempdir().unwrap();
        let store = numbers(&directory, how);
        let array = Array::open(&store.snapshot(), "n").unwrap();
        for (region, chunks) in [
            (Region::new([(10, 20), (16, 32)]), 1),
            (Region::new([(9, 21), (16, 32)]), 3),
            (Region::new([(0, 1), (0, 60)]), 4),
            (Region::new([(5, 5), (0, 60)]), 0),
            (Region::new([(39, 40), (59, 60)]), 1),
        ] {
            store.pool().clear();
            let (before, pool) = (array.reads(), store.pool().statistics());
            wait(array.read(&region, &[true])).unwrap();
            let after = array.reads();
            assert_eq!(after.chunks - before.chunks, chunks, "{region:?}");
            // Each chunk is one page here: none but these was asked for.
            assert_eq!(after.pages - before.pages, chunks, "{region:?}");
            assert_eq!(
                store.pool().statistics().misses - pool.misses,
                chunks,
                "{region:?}"
            );
        }
        // What is not wanted is not read either.
        let before = array.reads();
        wait(array.read(&array.region(), &[false])).unwrap();
        assert_eq!(array.reads(), before);
    }
}

#[test]
fn what_was_never_written_takes_no_page() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory);
    let dimensions = vec![Dimension::integer("t", 0, 1 << 40).chunk(1 << 20)];
    let schema = Schema::new(dimensions, vec![Attribute::new("v", DataType::I32).fill(7)]).unwrap();
    let mut writer = Writer::begin(&store).unwrap();
    writer.create("huge", &schema).unwrap();
    wait(writer.update("huge", &[(vec![1 << 39], vec![Scalar::Int(-1)])])).unwrap();
    // What has the fill value everywhere is not stored.
    wait(writer.update("huge", &[(vec![5], vec![Scalar::Int(7)])])).unwrap();
    writer.commit().unwrap();
    let summary = &array::list(&store.snapshot()).unwrap()[0];
    assert_eq!(
        (summary.name.as_str(), summary.chunks, summary.written),
        ("huge", 1 << 20, 1)
    );
    let array = Array::open(&store.snapshot(), "huge").unwrap();
    let at = 1 << 39;
    let found = wait(array.read(&Region::new([(at - 1, at + 2)]), &[true])).unwrap();
    assert_eq!(
        found.column(0).unwrap().values().values::<i32>(),
        [7, -1, 7]
    );
}

#[test]
fn bad_input_is_an_error_that_says_what_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let store = numbers(&directory, Compression::None);
    let array = Array::open(&store.snapshot(), "n").unwrap();
    let schema = array.schema().clone();
    let error = |error: Error| error.to_string();
    let outside = error(wait(array.read(&Region::new([(0, 41), (0, 1)]), &[true])).unwrap_err());
    assert!(outside.contains("[40, 60]"), "{outside}");
    assert!(error(Array::open(&store.snapshot(), "m").unwrap_err()).contains("no array 'm'"));
    let mut writer = Writer::begin(&store).unwrap();
    assert!(error(writer.create("n", &schema).unwrap_err()).contains("'n' exists"));
    assert!(error(writer.create("", &schema).unwrap_err()).contains("1 to 255 bytes"));
    let null = block(&schema, &Region::of_shape(&[1, 1]), |_| {
        Some(vec![Scalar::Null])
    });
    assert!(error(wait(writer.write("n", &null)).unwrap_err()).contains("not nullable"));
    let grown = error(
        wait(writer.append(
            "n",
            "x",
            &block(&schema, &Region::new([(40, 41), (0, 60)]), |_| {
                Some(vec![Scalar::Float(1.0)])
            }),
            &[],
        ))
        .unwrap_err(),
    );
    assert!(grown.contains("does not grow"), "{grown}");
    let cell = error(wait(writer.update("n", &[(vec![40, 0], vec![Scalar::Int(1)])])).unwrap_err());
    assert!(cell.contains("[40, 0]"), "{cell}");
    let other = block(
        &Schema::new(
            schema.dimensions().to_vec(),
            vec![Attribute::new("v", DataType::I8)],
        )
        .unwrap(),
        &Region::of_shape(&[1, 1]),
        |_| Some(vec![Scalar::Int(1)]),
    );
    assert!(error(wait(writer.write("n", &other)).unwrap_err()).contains("is double, not int8"));
}

#[test]
fn a_dropped_writer_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = numbers(&directory, Compression::None);
    let version = store.snapshot().version();
    let mut writer = Writer::begin(&store).unwrap();
    writer.delete("n").unwrap();
    drop(writer);
    assert_eq!(store.snapshot().version(), version);
    assert_eq!(array::list(&store.snapshot()).unwrap().len(), 1);
    assert!(store.check(&|_, _| {}).unwrap().is_empty());
}
