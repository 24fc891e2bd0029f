//! Parts of documents that are kept apart are those of the documents, whatever these are.

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use documents::{Form, Paths, text_of};
use futures::executor::block_on;
use memory::Traffic;
use proptest::prelude::*;
use table::*;

struct Case {
    _folder: tempfile::TempDir,
    store: Arc<store::Store>,
    catalog: Catalog,
}

impl Case {
    /// A table `t` of documents between two other columns.
    fn new() -> Case {
        let folder = tempfile::tempdir().unwrap();
        let options = store::Options {
            page_size: 16_384,
            ..store::Options::default()
        };
        let store = store::Store::create(folder.path().join("t.atoll"), &options).unwrap();
        let schema = Schema::new(vec![
            Field::new("id", DataType::Int64, false),
            Field::new("doc", jsonb_type(), true),
            Field::new("more", jsonb_type(), true),
        ]);
        let mut tx = store.begin().unwrap();
        create(&mut tx, &Definition::from_schema("t", &schema).unwrap()).unwrap();
        tx.commit().unwrap();
        Case {
            _folder: folder,
            store,
            catalog: Catalog::new(),
        }
    }

    /// Loads a block of documents, of which `more` holds the first half.
    fn load(&self, documents: &[Option<String>]) {
        let loader = block_on(Loader::new(self.store.begin().unwrap(), "t")).unwrap();
        loader.block(0, &[batch(documents)]).unwrap();
        block_on(loader.finish()).unwrap().0.commit().unwrap();
    }

    fn insert(&self, documents: &[Option<String>]) {
        let tx = self.store.begin().unwrap();
        let (tx, _) = block_on(insert(tx, "t", &[batch(documents)])).unwrap();
        tx.commit().unwrap();
    }

    fn table(&self) -> Arc<Table> {
        let tables = self.catalog.tables(&self.store.snapshot()).unwrap();
        Arc::clone(tables.get("t").unwrap())
    }

    /// The part in all rows, and how many of these have it from where it is kept apart.
    fn part(&self, part: &DocumentPart) -> (Vec<Option<String>>, usize) {
        let scan = Scan::new(self.table(), vec![0], true).with_parts(vec![part.clone()]);
        let pool = self.store.pool();
        let traffic = Traffic::new(pool.nodes());
        let (mut all, mut apart, mut list) = (vec![], 0, vec![]);
        for (_, morsel) in scan.morsels() {
            let opened = block_on(scan.open(pool, morsel, &[], &traffic, || 0)).unwrap();
            let Some(mut cursor) = opened else { continue };
            while let Some(run) = cursor.next_rows(700, &mut list) {
                let rows = match &run {
                    Some(run) => Rows::Run(run.clone()),
                    None => Rows::Some(&list),
                };
                let mut ids = vec![];
                cursor.row_ids(&rows, &mut ids).unwrap();
                assert_eq!(ids.len(), rows.len());
                match cursor.part(0, &rows).unwrap() {
                    PartValues::Parts(parts) => {
                        apart += parts.len();
                        let parts = parts.as_string_view().iter();
                        all.extend(parts.map(|text| text.map(str::to_owned)));
                    }
                    PartValues::Documents(documents) => {
                        let texts = documents.as_struct().column(0).as_string_view().clone();
                        let own = |row: usize| {
                            let valid = documents.is_valid(row) && texts.is_valid(row);
                            valid.then(|| texts.value(row))
                        };
                        all.extend((0..texts.len()).map(|row| found(own(row)?, part)));
                    }
                }
            }
        }
        (all, apart)
    }
}

fn batch(documents: &[Option<String>]) -> RecordBatch {
    let column = |count: usize| -> ArrayRef {
        let texts = documents.iter().enumerate();
        let texts = texts.map(|(row, text)| text.as_deref().filter(|_| row < count));
        let texts = StringViewArray::from_iter(texts);
        let DataType::Struct(fields) = jsonb_type() else {
            panic!("jsonb is a struct");
        };
        let nulls = texts.nulls().cloned();
        Arc::new(StructArray::new(fields, vec![Arc::new(texts)], nulls))
    };
    let ids = Int64Array::from_iter_values(0..documents.len() as i64);
    let columns = [
        ("id", Arc::new(ids) as ArrayRef, false),
        ("doc", column(documents.len()), true),
        ("more", column(documents.len() / 2), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// What a walk through the document finds.
fn found(text: &str, part: &DocumentPart) -> Option<String> {
    let mut found = [None];
    let paths = Paths::new(std::slice::from_ref(&part.keys));
    paths.find(text, Form::Normal, &mut found).unwrap();
    if !part.as_text {
        return found[0].map(str::to_owned);
    }
    text_of(found[0]?).unwrap().map(|text| text.to_string())
}

fn part(keys: &[&str], as_text: bool) -> DocumentPart {
    DocumentPart {
        column: 1,
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        as_text,
    }
}

/// Documents in the form of `jsonb`: shorter keys first.
fn events(count: usize) -> Vec<Option<String>> {
    let one = |n: usize| {
        if n % 7 == 3 {
            return None;
        }
        let rare = match n % 50 {
            0 => r#", "rare": ["a", {"b": 1}]"#,
            _ => "",
        };
        let text = format!("line\\n{}", "long ".repeat(30));
        let mixed = ["1", "\"one\"", "null", "true", "1.50", "{\"x\": 1}"][n % 6];
        Some(format!(
            r#"{{"n": {}, "who": {{"id": {n}, "name": "user {}"}}, "kind": "{}"{rare}, "text": "{text}", "mixed": {mixed}}}"#,
            n as i64 - 1_000,
            n % 100,
            if n.is_multiple_of(3) {
                "a\\\"b"
            } else {
                "create"
            }
        ))
    };
    (0..count).map(one).collect()
}

#[test]
fn what_many_documents_have_is_kept_apart() {
    let case = Case::new();
    let documents = events(5_000);
    case.load(&documents);
    let table = case.table();
    let block = table.block(0);
    let forms: Vec<(String, ShredForm)> = block
        .shreds_of(1)
        .map(|shred| (shred.keys.join("."), shred.form))
        .collect();
    let wanted = [
        ("kind", ShredForm::Strings),
        ("mixed", ShredForm::Written),
        ("n", ShredForm::Numbers),
        ("rare", ShredForm::Written),
        ("who.id", ShredForm::Numbers),
        ("who.name", ShredForm::Strings),
    ];
    let wanted: Vec<_> = wanted
        .iter()
        .map(|(path, form)| ((*path).to_owned(), *form))
        .collect();
    assert_eq!(
        forms, wanted,
        "the long texts are more than half of the bytes"
    );
    for (keys, as_text, apart) in [
        (&["kind"][..], true, true),
        (&["kind"], false, false),
        (&["n"], true, true),
        (&["n"], false, true),
        (&["who", "id"], true, true),
        (&["who", "name"], true, true),
        (&["mixed"], true, true),
        (&["mixed"], false, true),
        (&["mixed", "x"], true, false),
        (&["rare"], false, true),
        (&["rare"], true, true),
        (&["who"], false, false),
        (&["none"], true, false),
        (&["text"], true, false),
    ] {
        let part = part(keys, as_text);
        let (values, kept) = case.part(&part);
        let wanted = documents.iter().map(|text| found(text.as_deref()?, &part));
        assert_eq!(values, wanted.collect::<Vec<_>>(), "{keys:?}");
        assert_eq!(kept, if apart { documents.len() } else { 0 }, "{keys:?}");
        let share = table.share_with_part(&part);
        assert!(
            (share - f64::from(u8::from(apart))).abs() < 1e-9,
            "{keys:?}"
        );
    }
    // Each of the two columns has its own.
    assert!(block.shreds_of(2).count() > 0 && block.shreds_of(0).count() == 0);
}

#[test]
fn rows_that_are_not_in_blocks_have_the_documents_and_deleted_ones_are_gone() {
    let case = Case::new();
    let documents = events(2_000);
    case.load(&documents);
    let few = events(20);
    case.insert(&few);
    let mut tx = case.store.begin().unwrap();
    let first = {
        let scan = Scan::new(case.table(), vec![0], true);
        let pool = case.store.pool();
        let traffic = Traffic::new(pool.nodes());
        let (_, morsel) = scan.morsels().next().unwrap();
        let cursor = block_on(scan.open(pool, morsel, &[], &traffic, || 0)).unwrap();
        let batch = cursor.unwrap().next(10).unwrap().unwrap();
        batch
            .column(1)
            .as_primitive::<UInt64Type>()
            .values()
            .to_vec()
    };
    let gone = delete(&mut tx, "t", &first).unwrap();
    assert_eq!(gone, 10);
    tx.commit().unwrap();
    let part = part(&["who", "id"], true);
    let (values, kept) = case.part(&part);
    let wanted = documents[10..].iter().chain(&few);
    let wanted = wanted.map(|text| found(text.as_deref()?, &part));
    assert_eq!(values, wanted.collect::<Vec<_>>());
    assert_eq!(kept, documents.len() - 10);
}

#[test]
fn pages_go_with_their_column_and_their_table() {
    let case = Case::new();
    case.load(&events(3_000));
    let pages = |case: &Case| -> Vec<(Part, usize)> {
        let parts = case.table().parts().into_iter();
        parts.map(|(part, pages)| (part, pages.len())).collect()
    };
    let before = pages(&case);
    let mut tx = case.store.begin().unwrap();
    drop_column(&mut tx, "t", "doc").unwrap();
    tx.commit().unwrap();
    let table = case.table();
    assert_eq!(pages(&case), [before[0], (Part::Column(1), before[2].1)]);
    let block = table.block(0);
    assert!(block.shreds.iter().all(|shred| shred.column == 1) && !block.shreds.is_empty());
    let mut tx = case.store.begin().unwrap();
    truncate(&mut tx, "t").unwrap();
    tx.commit().unwrap();
    assert!(pages(&case).iter().all(|(_, pages)| *pages == 0));
    assert!(case.store.check(&|_, _| {}).unwrap().is_empty());
}

/// Keys and values as people write them, and as they do not.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        (-1000i64..1000).prop_map(|n| n.to_string()),
        Just("-0".to_owned()),
        Just("1.0".to_owned()),
        Just("99999999999999999999".to_owned()),
        Just("\"\"".to_owned()),
        Just("\"null\"".to_owned()),
        Just("\"\\u0001\\\\ \\\"é\"".to_owned()),
        "[a-z ]{0,20}".prop_map(|text| format!("\"{text}\"")),
        Just("[]".to_owned()),
        Just("[1, {\"a\": 2}]".to_owned()),
        Just("{}".to_owned()),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop::collection::btree_map("[ab]", inner, 0..3).prop_map(|members| {
            let members: Vec<String> = members
                .iter()
                .map(|(key, value)| format!("\"{key}\": {value}"))
                .collect();
            format!("{{{}}}", members.join(", "))
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn parts_are_those_of_the_documents(
        kinds in prop::collection::vec(prop::option::weighted(0.9, value()), 1..40),
        keys in prop::collection::vec("[ab]", 1..4),
        as_text in any::<bool>(),
    ) {
        let case = Case::new();
        let documents: Vec<Option<String>> = (0..1_500).map(|n| kinds[n * 7 % kinds.len()].clone()).collect();
        case.load(&documents);
        let part = DocumentPart { column: 1, keys, as_text };
        let (values, _) = case.part(&part);
        let wanted = documents.iter().map(|text| found(text.as_deref()?, &part));
        prop_assert_eq!(values, wanted.collect::<Vec<_>>());
    }
}
