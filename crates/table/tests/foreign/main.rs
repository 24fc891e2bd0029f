//! A row index says what a naive join of the two tables says, or is not there.

mod case;
mod life;

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use futures::executor::block_on;
use memory::Traffic;
use proptest::prelude::*;
use table::*;

use case::{Case, Row, child_keys, one, parent_keys};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn as_the_naive_join(
        shape in 0u8..6,
        sizes in (1usize..4_000, 1usize..5_000, 200usize..1_500),
        nulls in prop_oneof![Just(0u64), Just(5), Just(100)],
        orphans in prop_oneof![Just(0u64), Just(20), Just(100)],
        deletes: [bool; 2],
        seed: u64,
        threads in 0usize..5,
    ) {
        let (parents, children, block) = sizes;
        let keys = parent_keys(shape, parents, seed);
        let case = Case::of(keys[0].len());
        case.load("parent", &keys, block);
        case.load("child", &child_keys(&keys, children, nulls, orphans, seed), block);
        if deletes[0] {
            // The second block and more, so that there are parents no more and gaps in the ids.
            case.delete("parent", |id| id >> 16 == 1 || id % 11 == seed % 11);
        }
        if deletes[1] {
            case.delete("child", |id| id % 5 == seed % 5);
        }
        let blocks = case.table("child").blocks();
        let made = case.index(threads);
        let (covered, missing) = case.compare();
        prop_assert_eq!(covered, blocks);
        match made {
            Outcome::Affine => prop_assert!(dense_in_order(&keys)),
            Outcome::Blocks { written, orphans } => {
                prop_assert_eq!((written, orphans), (blocks, missing));
            }
            other => prop_assert!(false, "{:?}", other),
        }
        prop_assert_eq!(case.index(threads), Outcome::Current);

        // Whole blocks go and others come, whose numbers may be those that went.
        let gone = seed.rotate_left(7) % 3;
        case.delete("child", |id| (id >> 16) % 3 == gone || id >> 16 == blocks as u64 - 1);
        case.load("child", &child_keys(&keys, 700, nulls, orphans, !seed), 300);
        let (covered, _) = case.compare();
        let blocks = case.table("child").blocks();
        match case.index(threads) {
            Outcome::Current => prop_assert_eq!(covered, blocks),
            Outcome::Blocks { written, .. } => prop_assert_eq!(covered + written, blocks),
            other => prop_assert!(false, "{:?}", other),
        }
        prop_assert_eq!(case.compare().0, blocks);
        case.assert_sound();

        // The parent changes.
        case.load("parent", &one_more(&keys), 10);
        prop_assert!(case.row_index().is_none());
        let Outcome::Blocks { written, .. } = case.index(threads) else {
            return Err(TestCaseError::fail("not made anew"));
        };
        prop_assert_eq!(written, blocks);
        prop_assert_eq!(case.compare().0, blocks);
        case.assert_sound();
    }
}

/// Whether each key is one more than the key before it, as shuffled keys, too, may happen to be.
fn dense_in_order(keys: &[Row]) -> bool {
    keys[0].len() == 1
        && keys
            .windows(2)
            .all(|pair| pair[0][0].map(|key| key + 1) == pair[1][0])
}

/// A key that does not come right after the others.
fn one_more(keys: &[Row]) -> Vec<Row> {
    let mut new = keys[0].clone();
    while keys.contains(&new) || keys.len() == 1 && new == keys[0] {
        new[0] = new[0].map(|v| v.wrapping_add(1_000_003));
    }
    vec![new]
}

#[test]
fn dense_keys_in_order_need_a_constant() {
    let case = Case::of(1);
    case.load("parent", &one(1..=150_000), BLOCK_ROWS);
    let keys = one((0..80_000).map(|i| i * 7_919 % 149_999 + 1));
    case.load("child", &keys, BLOCK_ROWS);
    let before = case.pages();
    assert_eq!(case.index(2), Outcome::Affine);
    assert_eq!(case.pages(), before, "nothing is stored per block");
    assert_eq!(case.compare(), (2, 0));
    // Blocks added later are covered, too, and so are keys of no parent.
    case.load("child", &one([0, 1, 150_000, 150_001]), 10);
    assert_eq!(case.compare(), (3, 2));
    assert_eq!(case.index(2), Outcome::Current);
    // A gap: a constant would lead to a row that is gone.
    case.delete("parent", |id| id == 0);
    assert_eq!(case.index(2), Outcome::Affine);
    case.delete("parent", |id| id == 70_000);
    assert!(matches!(case.index(2), Outcome::Blocks { written: 3, .. }));
    assert_eq!(case.compare().0, 3);
}

#[test]
fn large_parents_in_any_order() {
    let case = Case::of(1);
    let keys = parent_keys(1, 150_000, 42);
    case.load("parent", &keys, BLOCK_ROWS);
    case.load("child", &child_keys(&keys, 150_000, 3, 0, 42), BLOCK_ROWS);
    let made = case.index(3);
    assert_eq!(
        made,
        Outcome::Blocks {
            written: 3,
            orphans: 0
        }
    );
    assert_eq!(case.compare().0, 3);
    // The bytes that reading takes are counted: 4 per row.
    let traffic = Traffic::new(1);
    let index = case.row_index().unwrap();
    block_on(index.read(0, &traffic, || 0)).unwrap().unwrap();
    assert_eq!(traffic.total(), 4 * BLOCK_ROWS as u64);
    case.assert_sound();
}

#[test]
fn a_key_that_occurs_twice_is_refused_and_takes_the_index_away() {
    let case = Case::of(1);
    case.load("parent", &one([5, 9, 7]), 10);
    case.load("child", &one([7, 5, 8]), 2);
    let before = case.pages();
    assert_eq!(
        case.index(1),
        Outcome::Blocks {
            written: 2,
            orphans: 1
        }
    );
    assert!(case.pages() > before);
    case.load("parent", &one([9]), 10);
    let grown = case.pages();
    let Outcome::Refused { why } = case.index(1) else {
        panic!("9 occurs twice");
    };
    assert!(why.contains("(9) more than once"), "{why}");
    assert!(case.row_index().is_none());
    assert!(case.pages() < grown, "the old index is freed");
    let version = case.store.snapshot().version();
    assert!(matches!(case.index(1), Outcome::Refused { .. }));
    assert_eq!(
        case.store.snapshot().version(),
        version,
        "nothing to commit"
    );
    case.assert_sound();
}

#[test]
fn rows_in_the_tail() {
    let case = Case::of(1);
    case.load("parent", &one([1, 2]), 10);
    case.insert("parent", &one([3]));
    case.load("child", &one([1, 3]), 10);
    let Outcome::Refused { why } = case.index(1) else {
        panic!("3 is in the tail");
    };
    assert!(why.contains("tail"), "{why}");
    case.delete_tail("parent");
    assert_eq!(case.index(1), Outcome::Affine);
    // A tail of the child is no hindrance: it has no blocks.
    case.insert("child", &one([2]));
    assert_eq!(case.compare(), (1, 1));
}

impl Case {
    fn delete_tail(&self, name: &str) {
        let scan = Scan::new(self.table(name), vec![], true);
        let traffic = Traffic::new(1);
        let opened = scan.open(self.store.pool(), Morsel::Tail(0), &[], &traffic, || 0);
        let mut cursor = block_on(opened).unwrap().unwrap();
        let batch = cursor.next(usize::MAX).unwrap().unwrap();
        let ids = batch.column(0).as_primitive::<UInt64Type>().values();
        let mut tx = self.store.begin().unwrap();
        delete(&mut tx, name, ids).unwrap();
        tx.commit().unwrap();
    }
}

#[test]
fn empty_parents_and_parents_of_nulls() {
    let case = Case::of(1);
    case.load("child", &one([0, 1, 2]), 2);
    assert_eq!(
        case.index(1),
        Outcome::Blocks {
            written: 2,
            orphans: 3
        }
    );
    case.load("parent", &[vec![None], vec![None]], 2);
    assert!(case.row_index().is_none());
    assert_eq!(
        case.index(1),
        Outcome::Blocks {
            written: 2,
            orphans: 3
        }
    );
    assert_eq!(case.compare(), (2, 3));
}

#[test]
fn types_that_do_not_compare_are_refused() {
    let decimal = |scale| DataType::Decimal128(20, scale);
    for (parent, child, fine) in [
        (DataType::UInt8, DataType::Int64, true),
        (DataType::Date32, DataType::Date32, true),
        (decimal(2), decimal(2), true),
        (decimal(2), decimal(1), false),
        (decimal(0), DataType::Int64, false),
        (DataType::Int32, DataType::Date32, false),
        (DataType::Date32, DataType::Int32, false),
        (DataType::Utf8View, DataType::Utf8View, false),
        (DataType::Float64, DataType::Float64, false),
    ] {
        let case = Case::new(std::slice::from_ref(&parent), std::slice::from_ref(&child));
        let made = case.index(1);
        match made {
            Outcome::Refused { why } => assert!(!fine && why.contains("'k0'"), "{why}"),
            _ => assert!(fine, "{parent} {child}"),
        }
    }
    let wide = DataType::Decimal128(38, 0);
    let case = Case::new(&[wide.clone(), wide.clone()], &[wide.clone(), wide]);
    let rows: Vec<_> = [i128::MIN / 2, i128::MAX / 2].map(|v| v / 4).to_vec();
    let column = Decimal128Array::from(rows)
        .with_precision_and_scale(38, 0)
        .unwrap();
    let column: ArrayRef = Arc::new(column);
    let batch = RecordBatch::try_new(case.table("parent").schema(), vec![column.clone(), column]);
    let loader = block_on(Loader::new(case.store.begin().unwrap(), "parent")).unwrap();
    loader.block(0, &[batch.unwrap()]).unwrap();
    loader.finish().unwrap().0.commit().unwrap();
    let Outcome::Refused { why } = case.index(1) else {
        panic!("two such columns do not fit 128 bits");
    };
    assert!(why.contains("128 bits"), "{why}");
}
