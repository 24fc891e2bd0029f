//! Blocks go where the rows are that they refer to.

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use futures::executor::block_on;
use table::*;

/// Blocks of the parent, and keys of each. Keys count 1, 2, 3 ... unless stated.
const BLOCKS: u64 = 16;
const KEYS: i64 = 600;

fn batch(keys: impl IntoIterator<Item = i64>) -> RecordBatch {
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(keys));
    RecordBatch::try_from_iter([("key", keys)]).unwrap()
}

fn definition(name: &str, parent: Option<&str>) -> Definition {
    let schema = Schema::new(vec![Field::new("key", DataType::Int64, true)]);
    let mut definition = Definition::from_schema(name, &schema).unwrap();
    definition.foreign_keys = Vec::from_iter(parent.map(|parent| ForeignKey {
        columns: vec![0],
        parent: parent.to_owned(),
        parent_columns: vec!["key".to_owned()],
    }));
    definition
}

/// Buckets of the blocks of `child`, whose blocks have these keys, where those of the parent have these.
fn buckets(parent: &[Vec<i64>], child: &[Vec<i64>]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("n.atoll");
    let store = store::Store::create(path, &store::Options::default()).unwrap();
    let mut tx = store.begin().unwrap();
    create(&mut tx, &definition("parent", None)).unwrap();
    create(&mut tx, &definition("child", Some("parent"))).unwrap();
    for (name, blocks) in [("parent", parent), ("child", child)] {
        let loader = block_on(Loader::new(tx, name)).unwrap();
        for (ordinal, keys) in (0..).zip(blocks) {
            loader
                .block(ordinal, &[batch(keys.iter().copied())])
                .unwrap();
        }
        tx = block_on(loader.finish()).unwrap().0;
    }
    tx.commit().unwrap();
    let tables = Catalog::new().tables(&store.snapshot()).unwrap();
    let child = tables.get("child").unwrap();
    (0..child.blocks())
        .map(|block| child.block(block).bucket)
        .collect()
}

fn parent() -> Vec<Vec<i64>> {
    let keys = 1..=BLOCKS as i64 * KEYS;
    keys.collect::<Vec<_>>()
        .chunks(KEYS as usize)
        .map(<[i64]>::to_vec)
        .collect()
}

#[test]
fn a_block_goes_where_most_of_its_keys_are() {
    // Four for each of the parent's, but shifted by an eighth of a block, in four rows each.
    let quarter = KEYS / 4;
    let blocks = 0..4 * BLOCKS as i64 - 1;
    let rows = |block| {
        let first = 1 + block * quarter + quarter / 8;
        (first..first + quarter).flat_map(|key| [key; 4]).collect()
    };
    let child: Vec<Vec<i64>> = blocks.clone().map(rows).collect();
    let expected: Vec<u8> = blocks.map(|block| (block / 4) as u8).collect();
    assert_eq!(buckets(&parent(), &child), expected);
}

#[test]
fn scattered_keys_keep_their_turn() {
    let all = BLOCKS as i64 * KEYS;
    let scattered: Vec<i64> = (0..all).map(|row| 1 + row * 7919 % all).collect();
    let child: Vec<Vec<i64>> = scattered.chunks(1200).map(<[i64]>::to_vec).collect();
    assert_eq!(buckets(&parent(), &child), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn rows_of_one_parent_are_shared_out_all_the_same() {
    let child = vec![vec![5 * KEYS; 1000]; 6];
    assert_eq!(buckets(&parent(), &child), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn small_parents_and_parents_without_order_place_nothing() {
    let child: Vec<Vec<i64>> = parent().into_iter().rev().collect();
    let turn: Vec<u8> = (0..BLOCKS as u8).collect();
    let reverse: Vec<u8> = turn.iter().rev().copied().collect();
    assert_eq!(buckets(&parent(), &child), reverse);
    assert_eq!(buckets(&parent()[1..], &child), turn);
    let mut mixed = parent();
    let (first, second) = (mixed[0][0], mixed[1][0]);
    (mixed[0][0], mixed[1][0]) = (second, first);
    assert_eq!(buckets(&mixed, &child), turn);
    // No key is anywhere.
    let orphans: Vec<Vec<i64>> = vec![(-900..0).collect(); 3];
    assert_eq!(buckets(&parent(), &orphans), [0, 1, 2]);
}
