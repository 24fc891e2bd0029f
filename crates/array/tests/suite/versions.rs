//! Named versions, cells that are erased, and arrays that grow: on the plain model, with their pages counted.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use array::{
    Array, Attribute, Block, DataType, Dimension, Error, Layout, Region, Scalar, Schema, Writer,
};
use proptest::prelude::*;
use store::Store;

use crate::model::{Cells, block, cells_of, part, region_in, store, wait};

fn schema(layout: Layout) -> Schema {
    let dimensions = vec![
        Dimension::integer("x", 0, 6).chunk(4).growing(),
        Dimension::integer("y", 0, 5).chunk(2),
    ];
    let attributes = vec![
        Attribute::new("v", DataType::F64),
        Attribute::new("k", DataType::I16).nullable(),
    ];
    Schema::new(dimensions, attributes)
        .unwrap()
        .with_layout(layout)
}

#[derive(Debug, Clone)]
enum Change {
    Write(Vec<(u64, u64)>, i128),
    Erase(Vec<(u64, u64)>, u64),
    Grow(u64),
    Keep(u8),
    Drop(u8),
}

fn change() -> impl Strategy<Value = Change> {
    let parts = || prop::collection::vec((0..9u64, 0..9u64), 2);
    prop_oneof![
        4 => (parts(), 0..9i128).prop_map(|(parts, value)| Change::Write(parts, value)),
        2 => (parts(), 1..4u64).prop_map(|(parts, of)| Change::Erase(parts, of)),
        1 => (0..4u64).prop_map(Change::Grow),
        2 => (0..3u8).prop_map(Change::Keep),
        1 => (0..3u8).prop_map(Change::Drop),
    ]
}

type State = (Schema, Cells);

fn perform(
    change: &Change,
    writer: &mut Writer,
    (schema, cells): &mut State,
    versions: &mut BTreeMap<String, State>,
) {
    let name = |of: &u8| format!("v{of}");
    match change {
        Change::Write(parts, value) => {
            let region = region_in(&schema.shape(), parts);
            let block = block(schema, &region, |at| {
                let value = value + i128::from(at[0] * 3 + at[1]);
                let null = value % 4 == 0;
                let k = if null {
                    Scalar::Null
                } else {
                    Scalar::Int(value)
                };
                (value % 3 != 0).then(|| vec![Scalar::Float(value as f64), k])
            });
            wait(writer.write("a", &block)).unwrap();
            cells.extend(cells_of(&block));
        }
        Change::Erase(parts, of) => {
            let region = region_in(&schema.shape(), parts);
            let positions = crate::model::positions(&region);
            let present: Vec<u8> = positions
                .iter()
                .map(|at| u8::from((at[0] + at[1]) % of == 0))
                .collect();
            let erased = Block::new(region, vec![None, None])
                .unwrap()
                .with_present(present.clone());
            let done = wait(writer.erase("a", &erased));
            if schema.layout() == Layout::Dense {
                assert!(matches!(done, Err(Error::Write { .. })), "{done:?}");
                return;
            }
            let before = cells.len();
            for (at, present) in positions.iter().zip(present) {
                if present == 1 {
                    cells.remove(at);
                }
            }
            assert_eq!(done.unwrap(), (before - cells.len()) as u64);
        }
        Change::Grow(more) => {
            writer.grow("a", "x", *more, &[]).unwrap();
            *schema = writer.schema("a").unwrap();
        }
        Change::Keep(of) => {
            let kept = writer.create_version("a", &name(of));
            match versions.entry(name(of)) {
                Entry::Vacant(entry) => {
                    kept.unwrap();
                    entry.insert((schema.clone(), cells.clone()));
                }
                Entry::Occupied(_) => {
                    assert!(matches!(kept, Err(Error::Exists { .. })), "{kept:?}");
                }
            }
        }
        Change::Drop(of) => {
            let dropped = writer.drop_version("a", &name(of));
            assert_eq!(
                dropped.is_ok(),
                versions.remove(&name(of)).is_some(),
                "{dropped:?}"
            );
        }
    }
}

fn reads(store: &Arc<Store>, name: &str, (schema, cells): &State) {
    let array = Array::open(&store.snapshot(), name).unwrap();
    assert_eq!(array.schema(), schema);
    let found = cells_of(&wait(array.read(&array.region(), &[true, true])).unwrap());
    assert_eq!(found, part(cells, schema, &array.region()), "{name}");
}

fn check(layout: Layout, changes: &[Vec<Change>]) {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory);
    let mut writer = Writer::begin(&store).unwrap();
    writer.create("a", &schema(layout)).unwrap();
    writer.commit().unwrap();
    let mut state = (schema(layout), Cells::new());
    let mut versions = BTreeMap::new();
    for changes in changes {
        let mut writer = Writer::begin(&store).unwrap();
        for change in changes {
            perform(change, &mut writer, &mut state, &mut versions);
        }
        writer.commit().unwrap();
        reads(&store, "a", &state);
        for (name, state) in &versions {
            reads(&store, &format!("a@{name}"), state);
        }
        let summary = &array::list(&store.snapshot()).unwrap()[0];
        assert_eq!(
            summary.versions,
            versions.keys().cloned().collect::<Vec<_>>()
        );
    }
    let mut writer = Writer::begin(&store).unwrap();
    let refused = writer.delete("a");
    assert_eq!(refused.is_err(), !versions.is_empty(), "{refused:?}");
    for name in versions.keys() {
        writer.drop_version("a", name).unwrap();
    }
    if refused.is_err() {
        writer.delete("a").unwrap();
    }
    writer.commit().unwrap();
    // Nothing that was written is left, and no page was freed that something had.
    assert_eq!(store.statistics().pages.pages, 0);
    assert!(store.check(&|_, _| {}).unwrap().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn versions_are_what_was_kept_and_hold_no_page_longer(
        sparse in any::<bool>(),
        changes in prop::collection::vec(prop::collection::vec(change(), 1..5), 1..6),
    ) {
        check(if sparse { Layout::Sparse } else { Layout::Dense }, &changes);
    }
}

#[test]
fn kept_pages_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory);
    let mut writer = Writer::begin(&store).unwrap();
    writer.create("a", &schema(Layout::Dense)).unwrap();
    let all = |writer: &mut Writer, range: (u64, u64), value: f64| {
        let schema = writer.schema("a").unwrap();
        let region = Region::new([range, (0, 5)]);
        let block = block(&schema, &region, |_| Some(vec![value.into(), 1.into()]));
        wait(writer.write("a", &block)).unwrap();
    };
    all(&mut writer, (0, 6), 1.0);
    writer.create_version("a", "one").unwrap();
    writer.create_version("a", "same").unwrap();
    writer.commit().unwrap();
    let list = || array::list(&store.snapshot()).unwrap().remove(0);
    assert_eq!(
        (list().pages, list().kept),
        (12, 0),
        "3 times 2 chunks of two attributes"
    );
    // Half of the chunks are written again.
    let mut writer = Writer::begin(&store).unwrap();
    all(&mut writer, (0, 4), 2.0);
    writer.commit().unwrap();
    assert_eq!((list().pages, list().kept), (12, 6));
    let versions = array::versions(&store.snapshot(), "a").unwrap();
    let names: Vec<_> = versions
        .iter()
        .map(|of| (of.name.as_str(), of.kept))
        .collect();
    assert_eq!(names, [("a@one", 6), ("a@same", 6)]);
    let used = || store.statistics().pages.pages;
    assert_eq!(used(), 18);
    for (version, left) in [("one", 18), ("same", 12)] {
        let mut writer = Writer::begin(&store).unwrap();
        writer.drop_version("a", version).unwrap();
        writer.commit().unwrap();
        assert_eq!(used(), left);
    }
}

#[test]
fn names_of_versions_and_of_other_things_are_not_those_of_arrays() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory);
    let mut writer = Writer::begin(&store).unwrap();
    let schema = schema(Layout::Dense);
    let wrong = |result: array::Result<()>| result.unwrap_err().to_string();
    assert!(wrong(writer.create("a@b", &schema)).contains("'@'"));
    writer.create("a", &schema).unwrap();
    assert!(wrong(writer.create_version("b", "v")).contains("no array 'b'"));
    assert!(wrong(writer.create_version("a", "v@w")).contains("'@'"));
    writer.create_version("a", "v").unwrap();
    assert!(wrong(writer.create_version("a", "v")).contains("'a@v' exists"));
    assert!(wrong(writer.drop_version("a", "w")).contains("there are 'v'"));
    let cell = [(vec![0, 0], vec![1.0.into(), 1.into()])];
    assert!(wrong(wait(writer.update("a@v", &cell))).contains("'v' is only read"));
    let mut transaction = writer.into_transaction();
    transaction.put(0, b"tfish", b"1234");
    transaction.put(0, b"wsight", b"select 1");
    let mut writer = Writer::of(transaction);
    assert!(wrong(writer.create("fish", &schema)).contains("'fish' is a table"));
    assert!(wrong(writer.create("sight", &schema)).contains("'sight' is a view"));
}

#[test]
fn what_differs_between_snapshots_is_seen() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory);
    let change = |with: &dyn Fn(&mut Writer)| {
        let before = store.snapshot();
        let mut writer = Writer::begin(&store).unwrap();
        with(&mut writer);
        writer.commit().unwrap();
        let after = store.snapshot();
        ["a", "b"].map(|name| array::differs(&before, &after, name))
    };
    let schema = schema(Layout::Sparse);
    assert_eq!(
        change(&|writer| writer.create("a", &schema).unwrap()),
        [true, false]
    );
    let cell = [(vec![0, 0], vec![1.0.into(), 1.into()])];
    assert_eq!(
        change(&|writer| wait(writer.update("a", &cell)).unwrap()),
        [true, false]
    );
    assert_eq!(
        change(&|writer| writer.create("b", &schema).unwrap()),
        [false, true]
    );
    assert_eq!(
        change(&|writer| writer.grow("b", "x", 2, &[]).unwrap()),
        [false, true]
    );
    assert_eq!(
        change(&|writer| writer.create_version("b", "v").unwrap()),
        [false, true]
    );
    let again = |writer: &mut Writer| {
        writer.delete("a").unwrap();
        writer.create("a", &schema).unwrap();
    };
    assert_eq!(change(&again), [true, false]);
}
