//! Enums: tables with values of a type whose labels change, against the texts of the values.

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::{DataType, Field, Schema};
use futures::executor::block_on;
use memory::Traffic;
use store::{Store, Transaction};
use table::*;

fn store() -> (tempfile::TempDir, Arc<Store>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.atoll");
    let store = Store::create(path, &store::Options::default()).unwrap();
    (folder, store)
}

fn labels(labels: &[&str]) -> Vec<String> {
    labels.iter().map(ToString::to_string).collect()
}

/// Rows of a number and a text.
fn batch(rows: &[(i64, Option<&str>)]) -> RecordBatch {
    let numbers = rows.iter().map(|(number, _)| *number);
    let texts = rows.iter().map(|(_, text)| *text);
    RecordBatch::try_from_iter_with_nullable([
        (
            "id",
            Arc::new(Int64Array::from_iter_values(numbers)) as ArrayRef,
            false,
        ),
        (
            "mood",
            Arc::new(StringViewArray::from_iter(texts)) as ArrayRef,
            true,
        ),
    ])
    .unwrap()
}

/// A table of this type, with a block and a tail.
fn filled(store: &Arc<Store>, own: &EnumType) -> Transaction {
    let mut tx = store.begin().unwrap();
    create_type(&mut tx, own).unwrap();
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("mood", own.data_type(), true),
    ]);
    let mut definition = Definition::from_schema("t", &schema).unwrap();
    definition.add_key("t_key".into(), vec![0, 1], false);
    create(&mut tx, &definition).unwrap();
    let loader = block_on(Loader::new(tx, "t")).unwrap();
    let block = batch(&[(0, Some("sad")), (1, None), (2, Some("happy"))]);
    let block = normalise(&block, &definition).unwrap();
    loader.block(0, &[block]).unwrap();
    let (tx, _) = block_on(loader.finish()).unwrap();
    block_on(insert(
        tx,
        "t",
        &[batch(&[(3, Some("happy")), (4, Some("sad"))])],
    ))
    .unwrap()
    .0
}

/// The texts of the rows in order of their numbers, and their places.
fn rows(catalog: &Catalog, store: &Arc<Store>) -> (Vec<Option<String>>, Vec<Option<u16>>) {
    let tables = catalog.tables(&store.snapshot()).unwrap();
    let scan = Scan::new(tables.get("t").unwrap().clone(), vec![0, 1], false);
    let pool = store.pool();
    let traffic = Traffic::new(pool.nodes());
    let mut rows = Vec::new();
    for (_, morsel) in scan.morsels() {
        let opened = block_on(scan.open(pool, morsel, &[], &traffic, || 0)).unwrap();
        let Some(mut cursor) = opened else { continue };
        while let Some(batch) = cursor.next(2).unwrap() {
            let own = enum_type(batch.column(1).data_type()).unwrap();
            let numbers = batch
                .column(0)
                .as_primitive::<arrow::datatypes::Int64Type>();
            let texts = own.texts(batch.column(1));
            let at = places(batch.column(1));
            for (row, text) in texts.into_iter().enumerate() {
                let place = at.is_valid(row).then(|| at.value(row));
                rows.push((numbers.value(row), text.map(str::to_owned), place));
            }
        }
    }
    rows.sort();
    let texts = rows.iter().map(|(_, text, _)| text.clone()).collect();
    (texts, rows.into_iter().map(|(_, _, place)| place).collect())
}

fn changed(store: &Arc<Store>, name: &str, change: impl FnOnce(&mut EnumType)) {
    let tables = Catalog::new().tables(&store.snapshot()).unwrap();
    let mut own = tables.named_type(name).unwrap().as_ref().clone();
    change(&mut own);
    let mut tx = store.begin().unwrap();
    change_type(&mut tx, name, &own).unwrap();
    tx.commit().unwrap();
}

#[test]
fn labels_change_and_rows_stay() {
    let (_folder, store) = store();
    let catalog = Catalog::new();
    let own = EnumType::new("mood", labels(&["sad", "happy"]));
    filled(&store, &own).commit().unwrap();
    let expected = |texts: [&str; 2]| {
        let [sad, happy] = texts.map(|text| Some(text.to_owned()));
        vec![sad.clone(), None, happy.clone(), happy, sad]
    };
    let (texts, at) = rows(&catalog, &store);
    assert_eq!(texts, expected(["sad", "happy"]));
    assert_eq!(at, [Some(0), None, Some(1), Some(1), Some(0)]);

    // The same catalog, which has decoded the rows with the labels of before.
    changed(&store, "mood", |own| {
        let number = own.free_number().unwrap();
        let text = "awful".to_owned();
        own.labels.insert(0, Label { number, text });
    });
    let (texts, at) = rows(&catalog, &store);
    assert_eq!(texts, expected(["sad", "happy"]));
    assert_eq!(at, [Some(1), None, Some(2), Some(2), Some(1)]);

    changed(&store, "mood", |own| own.labels[1].text = "down".into());
    changed(&store, "mood", |own| own.name = "feeling".into());
    let (texts, _) = rows(&catalog, &store);
    assert_eq!(texts, expected(["down", "happy"]));
    let tables = catalog.tables(&store.snapshot()).unwrap();
    assert_eq!(tables.types(), ["feeling"]);
    let column = &tables.get("t").unwrap().definition().columns[1];
    assert_eq!(enum_within(&column.data_type), Some("feeling"));

    // A key finds rows by the labels that they have now.
    let table = tables.get("t").unwrap();
    let own = enum_type(&column.data_type).unwrap();
    let wanted: ArrayRef = Arc::new(Int64Array::from(vec![0, 4, 4]));
    let moods = own
        .read(&StringArray::from(vec!["down", "down", "awful"]))
        .unwrap();
    let key = &table.definition().keys[0];
    let found = block_on(table.find(key, &[wanted, moods])).unwrap();
    let found: Vec<bool> = found.iter().map(Option::is_some).collect();
    assert_eq!(found, [true, true, false]);
    let tx = store.begin().unwrap();
    let twice = block_on(insert(tx, "t", &[batch(&[(4, Some("down"))])])).unwrap_err();
    assert!(twice.to_string().contains("(4, down)"), "{twice}");
}

#[test]
fn what_cannot_be_is_refused() {
    let (_folder, store) = store();
    let own = EnumType::new("mood", labels(&["sad", "happy"]));
    filled(&store, &own).commit().unwrap();
    let mut tx = store.begin().unwrap();
    assert!(matches!(
        create_type(&mut tx, &own),
        Err(Error::Exists { .. })
    ));
    let table = EnumType::new("t", []);
    assert!(matches!(
        create_type(&mut tx, &table),
        Err(Error::Exists { .. })
    ));
    assert!(matches!(
        drop_type(&mut tx, "mood"),
        Err(Error::Mismatch { .. })
    ));
    assert!(matches!(
        drop_type(&mut tx, "t"),
        Err(Error::NoTable { .. })
    ));
    let less = EnumType::new("mood", labels(&["sad"]));
    assert!(matches!(
        change_type(&mut tx, "mood", &less),
        Err(Error::Mismatch { .. })
    ));
    let twice = EnumType::new("mood", labels(&["sad", "happy", "sad"]));
    assert!(matches!(
        change_type(&mut tx, "mood", &twice),
        Err(Error::Mismatch { .. })
    ));
    std::mem::drop(tx);

    let tx = store.begin().unwrap();
    let wrong = block_on(insert(tx, "t", &[batch(&[(9, Some("mauve"))])])).unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "invalid input value for enum mood: \"mauve\""
    );
    assert_eq!(wrong.sqlstate(), "22P02");

    let mut tx = store.begin().unwrap();
    table::drop(&mut tx, "t").unwrap();
    drop_type(&mut tx, "mood").unwrap();
    tx.commit().unwrap();
    let tables = Catalog::new().tables(&store.snapshot()).unwrap();
    assert!(tables.types().is_empty());
}

#[test]
fn a_type_goes_with_its_schema() {
    let (_folder, store) = store();
    let mut tx = store.begin().unwrap();
    create_schema(&mut tx, "s").unwrap();
    let own = EnumType::new(&within("s", "mood"), labels(&["sad"]));
    create_type(&mut tx, &own).unwrap();
    let schema = Schema::new(vec![Field::new("m", own.data_type(), true)]);
    let definition = Definition::from_schema("t", &schema).unwrap();
    create(&mut tx, &definition).unwrap();
    assert!(drop_schema(&mut tx, "s").is_err());
    rename_schema(&mut tx, "s", "r").unwrap();
    tx.commit().unwrap();
    let tables = Catalog::new().tables(&store.snapshot()).unwrap();
    let name = within("r", "mood");
    assert_eq!(tables.types(), [name.as_str()]);
    let column = &tables.get("t").unwrap().definition().columns[0];
    assert_eq!(enum_name(&column.data_type), Some(name.as_str()));
}
