//! Tables whose columns change, against rows that are kept beside.

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::DataType;
use futures::executor::block_on;
use memory::Traffic;
use store::{Store, Transaction};
use table::*;

type Row = Vec<Option<String>>;

fn store() -> (tempfile::TempDir, Arc<Store>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.atoll");
    let store = Store::create(path, &store::Options::default()).unwrap();
    (folder, store)
}

fn batch(rows: std::ops::Range<i64>) -> RecordBatch {
    let text = |n: i64| (n % 5 != 0).then(|| format!("text {}", n % 7));
    RecordBatch::try_from_iter_with_nullable([
        (
            "id",
            Arc::new(Int64Array::from_iter_values(rows.clone())) as ArrayRef,
            false,
        ),
        (
            "text",
            Arc::new(StringViewArray::from_iter(rows.clone().map(text))) as ArrayRef,
            true,
        ),
        (
            "half",
            Arc::new(Float64Array::from_iter_values(rows.map(|n| n as f64 / 2.0))) as ArrayRef,
            true,
        ),
    ])
    .unwrap()
}

/// A table with a block, deleted rows in it, and a tail.
fn filled(store: &Arc<Store>) -> Transaction {
    let mut tx = store.begin().unwrap();
    let definition = Definition::from_schema("t", &batch(0..1).schema()).unwrap();
    create(&mut tx, &definition).unwrap();
    let loader = block_on(Loader::new(tx, "t")).unwrap();
    loader.block(0, &[batch(0..300)]).unwrap();
    let (mut tx, _) = block_on(loader.finish()).unwrap();
    delete(&mut tx, "t", &[3, 4, 5]).unwrap();
    block_on(insert(tx, "t", &[batch(300..320)])).unwrap().0
}

fn rows(store: &Arc<Store>, name: &str) -> (Vec<String>, Vec<Row>) {
    let tables = Catalog::new().tables(&store.snapshot()).unwrap();
    let table = tables.get(name).unwrap().clone();
    let names: Vec<String> = table
        .definition()
        .columns
        .iter()
        .map(|c| c.name.clone())
        .collect();
    let scan = Scan::new(table, (0..names.len()).collect(), false);
    let pool = store.pool();
    let traffic = Traffic::new(pool.nodes());
    let mut rows = Vec::new();
    for (_, morsel) in scan.morsels() {
        let opened = block_on(scan.open(pool, morsel, &[], &traffic, || 0)).unwrap();
        let Some(mut cursor) = opened else { continue };
        while let Some(batch) = cursor.next(128).unwrap() {
            let columns: Vec<_> = batch
                .columns()
                .iter()
                .map(|column| arrow::compute::cast(column, &DataType::Utf8).unwrap())
                .collect();
            for at in 0..batch.num_rows() {
                let value = |column: &ArrayRef| {
                    let column = column.as_string::<i32>();
                    column.is_valid(at).then(|| column.value(at).to_owned())
                };
                rows.push(columns.iter().map(value).collect::<Row>());
            }
        }
    }
    rows.sort();
    (names, rows)
}

fn column(name: &str, data_type: DataType, nullable: bool) -> Column {
    let default = None;
    Column {
        name: name.into(),
        data_type,
        nullable,
        default,
        generated: None,
        sequences: vec![],
        digits: None,
        domain: None,
    }
}

#[test]
#[expect(
    clippy::too_many_lines,
    reason = "one history of a table, step by step"
)]
fn columns_come_and_go_and_rows_stay() {
    let (_folder, store) = store();
    filled(&store).commit().unwrap();
    let (_, before) = rows(&store, "t");
    assert_eq!(before.len(), 317);
    let pages = |store: &Arc<Store>| store.statistics().pages.pages;

    let mut tx = store.begin().unwrap();
    let added: [(&str, ArrayRef); 4] = [
        ("number", Arc::new(Int32Array::from(vec![7]))),
        ("label", Arc::new(StringViewArray::from(vec!["new"]))),
        ("ratio", Arc::new(Float64Array::from(vec![0.25]))),
        ("nothing", new_null_array(&DataType::Date32, 1)),
    ];
    for (name, value) in &added {
        let column = column(name, value.data_type().clone(), *name == "nothing");
        add_column(&mut tx, "t", column, value).unwrap();
    }
    let tx = block_on(insert(tx, "t", &[])).unwrap().0;
    tx.commit().unwrap();
    let (names, now) = rows(&store, "t");
    assert_eq!(
        names,
        ["id", "text", "half", "number", "label", "ratio", "nothing"]
    );
    let wanted: Vec<Row> = before
        .iter()
        .map(|row| {
            let more = [Some("7"), Some("new"), Some("0.25"), None];
            row.iter()
                .cloned()
                .chain(more.map(|v| v.map(str::to_owned)))
                .collect()
        })
        .collect();
    assert_eq!(now, wanted);

    // The one with a dictionary goes, and those behind it get another number.
    let with = pages(&store);
    let mut tx = store.begin().unwrap();
    drop_column(&mut tx, "t", "text").unwrap();
    drop_column(&mut tx, "t", "nothing").unwrap();
    rename_column(&mut tx, "t", "label", "mark").unwrap();
    rename(&mut tx, "t", "u").unwrap();
    tx.commit().unwrap();
    assert!(pages(&store) < with);
    let (names, now) = rows(&store, "u");
    assert_eq!(names, ["id", "half", "number", "mark", "ratio"]);
    let wanted: Vec<Row> = wanted
        .into_iter()
        .map(|row| [0, 2, 3, 4, 5].map(|at| row[at].clone()).to_vec())
        .collect();
    assert_eq!(now, wanted);
    let tables = Catalog::new().tables(&store.snapshot()).unwrap();
    assert_eq!(tables.names(), ["u"]);

    // Labels of new rows go into the dictionary that moved.
    let tx = store.begin().unwrap();
    let more = RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from(vec![1000])) as ArrayRef),
        ("half", Arc::new(Float64Array::from(vec![1.0])) as ArrayRef),
        ("number", Arc::new(Int32Array::from(vec![8])) as ArrayRef),
        (
            "mark",
            Arc::new(StringViewArray::from(vec!["other"])) as ArrayRef,
        ),
        ("ratio", Arc::new(Float64Array::from(vec![2.0])) as ArrayRef),
    ])
    .unwrap();
    let loader = block_on(Loader::new(tx, "u")).unwrap();
    loader.block(0, &[more]).unwrap();
    block_on(loader.finish()).unwrap().0.commit().unwrap();
    let (_, now) = rows(&store, "u");
    let marks = |mark: &str| {
        now.iter()
            .filter(|row| row[3].as_deref() == Some(mark))
            .count()
    };
    assert_eq!((marks("new"), marks("other")), (317, 1));
    let mut tx = store.begin().unwrap();
    table::drop(&mut tx, "u").unwrap();
    tx.commit().unwrap();
    assert_eq!(pages(&store), 0, "all that was written is freed");
    assert!(store.check(&|_, _| {}).unwrap().is_empty());
}

#[test]
fn keys_follow_and_hold_their_columns() {
    let (_folder, store) = store();
    let mut tx = filled(&store);
    redefine(&mut tx, "t", |definition| {
        definition.primary_key = vec![0];
        definition.columns[2].default = Some("1.5".into());
        Ok(())
    })
    .unwrap();
    let mut child = Definition::from_schema("c", &batch(0..1).schema()).unwrap();
    child.foreign_keys = vec![ForeignKey {
        columns: vec![0],
        parent: "t".into(),
        parent_columns: vec!["id".into()],
    }];
    create(&mut tx, &child).unwrap();
    let refused = |outcome: Result<()>, named: &str| {
        let message = outcome.unwrap_err().to_string();
        assert!(message.contains(named), "{message}");
    };
    refused(drop_column(&mut tx, "t", "id"), "column 'id' is in it");
    refused(drop_column(&mut tx, "c", "id"), "column 'id' is in it");
    refused(drop_column(&mut tx, "t", "none"), "no column 'none'");
    refused(rename_column(&mut tx, "t", "id", "text"), "occurs twice");
    refused(rename(&mut tx, "t", "c"), "exists already");
    let value = new_null_array(&DataType::Int64, 1);
    let strict = column("strict", DataType::Int64, false);
    refused(
        add_column(&mut tx.nested(), "t", strict, &value),
        "NULL in column 'strict'",
    );
    refused(
        redefine(&mut tx, "t", |d| {
            d.columns.pop();
            Ok(())
        }),
        "not changed in this way",
    );

    drop_column(&mut tx, "t", "text").unwrap();
    rename_column(&mut tx, "t", "id", "key").unwrap();
    rename(&mut tx, "t", "parent").unwrap();
    let child = definition(&tx, "c").unwrap();
    assert_eq!(child.foreign_keys[0].parent, "parent");
    assert_eq!(child.foreign_keys[0].parent_columns, ["key"]);
    let parent = definition(&tx, "parent").unwrap();
    assert_eq!(parent.primary_key, [0]);
    assert_eq!(parent.columns[1].default.as_deref(), Some("1.5"));
}

#[test]
fn sequences_of_columns_go_with_them() {
    let (_folder, store) = store();
    let mut tx = filled(&store);
    let sequence = Sequence {
        number: 1,
        state: 1,
        bytes: 8,
        start: 1,
        increment: 1,
        min: 1,
        max: 9,
        cycle: false,
        first: Position {
            value: 1,
            called: false,
        },
    };
    for name in ["a", "b", "c"] {
        create_sequence(&mut tx, name, &sequence).unwrap();
    }
    let identity = Generated::Identity {
        sequence: "a".into(),
        always: true,
    };
    let stored = Generated::Stored { text: "id".into() };
    redefine(&mut tx, "t", |definition| {
        definition.columns[0].sequences = vec!["a".into(), "gone".into()];
        definition.columns[0].generated = Some(identity.clone());
        definition.columns[1].generated = Some(stored.clone());
        definition.columns[2].sequences = vec!["b".into()];
        Ok(())
    })
    .unwrap();
    rename(&mut tx, "t", "u").unwrap();
    tx.commit().unwrap();
    let mut tx = store.begin().unwrap();
    let own = definition(&tx, "u").unwrap();
    assert_eq!(own.columns[0].generated, Some(identity));
    assert_eq!(own.columns[0].identity(), Some(("a", true)));
    assert_eq!(own.columns[0].sequences, ["a", "gone"]);
    assert_eq!(own.columns[1].generated, Some(stored));
    assert_eq!(own.columns[1].expression(), Some("id"));
    let left = |tx: &store::Transaction| -> Vec<String> {
        let tables = Catalog::new().tables(&tx.view()).unwrap();
        tables.sequences().into_iter().map(str::to_owned).collect()
    };
    let half = own.columns[2].name.clone();
    drop_column(&mut tx, "u", &half).unwrap();
    assert_eq!(left(&tx), ["a", "c"]);
    table::drop(&mut tx, "u").unwrap();
    assert_eq!(left(&tx), ["c"]);
}

#[test]
fn views_have_names_beside_tables() {
    let (_folder, store) = store();
    let mut tx = filled(&store);
    create_view(&mut tx, "v", "any text").unwrap();
    assert!(matches!(
        create_view(&mut tx, "t", ""),
        Err(Error::Exists { .. })
    ));
    let definition = Definition::from_schema("v", &batch(0..1).schema()).unwrap();
    assert!(matches!(
        create(&mut tx, &definition),
        Err(Error::Exists { .. })
    ));
    tx.commit().unwrap();
    let before = store.snapshot();
    let tables = |snapshot: &store::Snapshot| Catalog::new().tables(snapshot).unwrap();
    assert_eq!(tables(&before).view("v"), Some("any text"));
    let mut tx = store.begin().unwrap();
    drop_view(&mut tx, "v").unwrap();
    assert!(drop_view(&mut tx, "v").is_err());
    let own = tables(&tx.view());
    assert!(own.views().is_empty() && tables(&before).differs(&own, "v"));
    let seen = tables(&before).overlaid(&tables(&before), &own);
    assert_eq!((seen.views().len(), seen.names()), (0, vec!["t"]));
}

#[test]
fn what_constraints_and_indexes_say_is_kept() {
    let (_folder, store) = store();
    let mut tx = store.begin().unwrap();
    let mut own = Definition::from_schema("t", &batch(0..1).schema()).unwrap();
    own.primary_key = vec![0];
    own.enforce_primary_key();
    own.on_commit = OnCommit::DeleteRows;
    own.foreign_keys = vec![
        ForeignKey {
            columns: vec![0],
            parent: "t".into(),
            parent_columns: vec!["id".into()],
        };
        2
    ];
    own.rules = [Deferral::Immediate, Deferral::Deferred]
        .into_iter()
        .enumerate()
        .map(|(at, deferral)| Rule {
            foreign_key: at,
            name: format!("r{at}"),
            on_delete: Action::SetDefault,
            on_update: Action::Restrict,
            delete_columns: vec![0; at],
            full: at == 0,
            deferral,
            unchecked: at == 1,
        })
        .collect();
    own.checks = vec![Check {
        name: "c".into(),
        text: "id > 0".into(),
        unchecked: true,
    }];
    own.indexes = vec![Index {
        name: "i".into(),
        method: "btree".into(),
        columns: vec![IndexColumn {
            column: 1,
            descending: false,
            nulls_first: false,
        }],
        items: vec![("lower(text)".into(), " DESC".into())],
        predicate: Some("half > 1".into()),
    }];
    create(&mut tx, &own).unwrap();
    let mut bad = own.clone();
    bad.name = "bad".into();
    bad.rules[0].delete_columns = vec![1];
    assert!(matches!(create(&mut tx, &bad), Err(Error::Key { .. })));
    tx.commit().unwrap();
    let tables = Catalog::new().tables(&store.snapshot()).unwrap();
    assert_eq!(tables.get("t").unwrap().definition(), &own);
}

#[test]
fn a_table_takes_the_place_of_another() {
    let (_folder, store) = store();
    filled(&store).commit().unwrap();
    let pages = |store: &Arc<Store>| store.statistics().pages.pages;
    let before = pages(&store);
    let (_, old) = rows(&store, "t");
    let write = |keep: bool| {
        let mut tx = store.begin().unwrap();
        let mut aside = Definition::from_schema("aside", &batch(0..1).schema()).unwrap();
        aside.primary_key = vec![0];
        aside.enforce_primary_key();
        create(&mut tx, &aside).unwrap();
        let loader = block_on(Loader::new(tx, "aside")).unwrap();
        loader.block(0, &[batch(1000..1300)]).unwrap();
        let (mut tx, _) = block_on(loader.finish()).unwrap();
        take_over(&mut tx, "t", "aside").unwrap();
        if keep {
            tx.commit().unwrap();
        }
    };
    write(false);
    assert_eq!(rows(&store, "t").1, old);
    write(true);
    let (_, now) = rows(&store, "t");
    assert_eq!(now.len(), 300);
    assert!(now.iter().all(|row| !old.contains(row)));
    let tables = Catalog::new().tables(&store.snapshot()).unwrap();
    let table = tables.get("t").unwrap();
    assert_eq!(
        (tables.names(), table.definition().keys.len()),
        (vec!["t"], 1)
    );
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1000, 3]));
    let found = block_on(table.find(&table.definition().keys[0], &[ids])).unwrap();
    assert!(found[0].is_some() && found[1].is_none());
    // The pages of the old one are free.
    assert!(pages(&store) < 2 * before, "{} {before}", pages(&store));
    assert!(store.check(&|_, _| {}).unwrap().is_empty());
}

#[test]
fn the_order_of_rows_is_kept_and_goes_with_its_columns() {
    let (_folder, store) = store();
    let mut tx = store.begin().unwrap();
    let mut own = Definition::from_schema("t", &batch(0..1).schema()).unwrap();
    own.order = vec![3];
    assert!(create(&mut tx, &own).is_err());
    own.order = vec![2, 0, 1];
    create(&mut tx, &own).unwrap();
    assert_eq!(definition(&tx, "t").unwrap(), own);
    drop_column(&mut tx, "t", "id").unwrap();
    assert_eq!(definition(&tx, "t").unwrap().order, [1]);
    drop_column(&mut tx, "t", "text").unwrap();
    assert_eq!(definition(&tx, "t").unwrap().order, [0]);
    tx.commit().unwrap();
    let tables = Catalog::new().tables(&store.snapshot()).unwrap();
    assert_eq!(tables.get("t").unwrap().definition().order, [0]);
}
