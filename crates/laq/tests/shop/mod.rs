//! A small shop with everything that goes wrong: keys that are no positions, orphans, NULLs, empty tables.

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::{Field, Schema};
use arrow::util::display::array_value_to_string;
use engine::Runtime;
use store::Store;
use table::{Catalog, Definition, ForeignKey, Tables};

/// An open store and the workers that compute.
pub struct Shop {
    tables: Arc<Tables>,
    workers: Arc<workers::Workers>,
    _store: Arc<Store>,
    _folder: tempfile::TempDir,
}

fn decimals(values: &[Option<i128>]) -> ArrayRef {
    let array = Decimal128Array::from(values.to_vec());
    Arc::new(array.with_precision_and_scale(15, 2).unwrap())
}

fn texts(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringViewArray::from(values.to_vec()))
}

fn dates(values: &[i32]) -> ArrayRef {
    Arc::new(Date32Array::from(values.to_vec()))
}

fn ints(values: &[i32]) -> ArrayRef {
    Arc::new(Int32Array::from(values.to_vec()))
}

/// Days since 1970 of 2020-01-01.
const YEAR_2020: i32 = 18_262;

fn create(
    store: &Arc<Store>,
    name: &str,
    columns: Vec<(&str, ArrayRef)>,
    primary_key: &[usize],
    foreign_keys: &[(usize, &str, &str)],
) {
    let fields: Vec<Field> = columns
        .iter()
        .enumerate()
        .map(|(n, (name, array))| {
            Field::new(*name, array.data_type().clone(), !primary_key.contains(&n))
        })
        .collect();
    let schema = Arc::new(Schema::new(fields));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).unwrap();
    let mut definition = Definition::from_schema(name, &schema).unwrap();
    definition.primary_key = primary_key.to_vec();
    for (column, parent, key) in foreign_keys {
        definition.foreign_keys.push(ForeignKey {
            columns: vec![*column],
            parent: (*parent).into(),
            parent_columns: vec![(*key).into()],
        });
    }
    let mut tx = store.begin().unwrap();
    table::create(&mut tx, &definition).unwrap();
    let tx = match batch.num_rows() {
        0 => tx,
        _ => {
            futures::executor::block_on(table::insert(tx, name, &[batch]))
                .unwrap()
                .0
        }
    };
    tx.commit().unwrap();
}

/// Three countries, whose keys are neither dense nor in order.
fn create_country(store: &Arc<Store>) {
    let country = vec![
        ("key", ints(&[70, 10, 40])),
        ("name", texts(&[Some("Peru"), Some("Fiji"), Some("Cuba")])),
    ];
    create(store, "country", country, &[0], &[]);
}

/// Five customers of these countries.
fn create_customer(store: &Arc<Store>) {
    let customer = vec![
        ("key", ints(&[5, 3, 900, 8, 1])),
        ("country", ints(&[10, 70, 10, 40, 70])),
        (
            "segment",
            texts(&[
                Some("home"),
                Some("trade"),
                Some("trade"),
                None,
                Some("home"),
            ]),
        ),
        (
            "balance",
            decimals(&[Some(10_000), Some(-550), Some(0), None, Some(2_000)]),
        ),
    ];
    create(store, "customer", customer, &[0], &[(1, "country", "key")]);
}

/// Ten sales to these customers, one of them to a customer who does not exist.
fn create_sale(store: &Arc<Store>) {
    let sale = vec![
        ("id", ints(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10])),
        // Customer 77 does not exist.
        ("customer", ints(&[3, 5, 3, 900, 77, 1, 5, 8, 3, 900])),
        (
            "day",
            dates(&[0, 10, 40, 40, 50, 60, 370, 380, 390, 400].map(|d| YEAR_2020 + d)),
        ),
        (
            "sent",
            dates(&[1, 9, 41, 39, 50, 61, 371, 370, 390, 401].map(|d| YEAR_2020 + d)),
        ),
        (
            "price",
            decimals(
                &[
                    1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000, 8_000, 9_000, 10_000,
                ]
                .map(Some),
            ),
        ),
        ("rate", decimals(&[5, 6, 7, 8, 5, 6, 7, 8, 5, 6].map(Some))),
        (
            "mode",
            texts(&[
                Some("AIR"),
                Some("SHIP"),
                Some("AIR"),
                None,
                Some("SHIP"),
                Some("RAIL"),
                Some("AIR"),
                Some("RAIL"),
                Some("SHIP"),
                Some("AIR"),
            ]),
        ),
        ("pieces", ints(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10])),
    ];
    create(store, "sale", sale, &[0], &[(1, "customer", "key")]);
}

impl Shop {
    /// Three countries, five customers, ten sales, and a table without rows.
    pub fn open() -> Shop {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.atoll");
        let store = Store::create(path, &store::Options::default()).unwrap();
        create_country(&store);
        create_customer(&store);
        create_sale(&store);
        let nothing = vec![("customer", ints(&[])), ("price", decimals(&[]))];
        create(&store, "nothing", nothing, &[], &[(0, "customer", "key")]);
        // No keys are declared.
        let visit = vec![
            ("who", ints(&[3, 3, 8, 42])),
            ("at", texts(&[Some("x"), Some("y"), Some("x"), Some("y")])),
        ];
        create(&store, "visit", visit, &[], &[]);
        let live = topology::Machine::live().unwrap();
        let layout = workers::Layout::of(&live, &live, 2, false);
        Shop {
            tables: Catalog::new().tables(&store.snapshot()).unwrap(),
            workers: workers::Workers::new(layout).unwrap(),
            _store: store,
            _folder: folder,
        }
    }

    /// The rows that a program returns, as text, sorted unless it orders them.
    pub fn rows(&self, text: &str) -> Vec<String> {
        let compiled = self.compile(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let workers = &self.workers;
        let runtime = Runtime {
            nearness: workers.layout().nearness().clone(),
            traffic: Arc::new(memory::Traffic::new(workers.nodes())),
            budget: memory::Budget::new(64 << 20),
            workers: workers.clone(),
            stop: engine::Stop::default(),
        };
        let prepared = compiled.prepared;
        let batches = workers.block_on(async move { prepared.run(&runtime).await });
        let batches = batches.unwrap_or_else(|e| panic!("{e}\n{text}"));
        let mut rows = Vec::new();
        for batch in &batches {
            for row in 0..batch.num_rows() {
                let cell = |array: &ArrayRef| {
                    if array.is_null(row) {
                        "null".to_string()
                    } else {
                        array_value_to_string(array, row).unwrap()
                    }
                };
                let cells: Vec<String> = batch.columns().iter().map(cell).collect();
                rows.push(cells.join(" "));
            }
        }
        if !text.contains("order by") {
            rows.sort();
        }
        rows
    }

    pub fn compile(&self, text: &str) -> laq::Result<laq::Compiled> {
        futures::executor::block_on(laq::compile(text, &self.tables))
    }

    /// The message of the error that a program has.
    pub fn error(&self, text: &str) -> String {
        match self.compile(text) {
            Ok(_) => panic!("this should not have been taken:\n{text}"),
            Err(e) => e.to_string(),
        }
    }
}
