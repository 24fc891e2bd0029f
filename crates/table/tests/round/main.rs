//! Any batch written is read back equal, whatever its types, encodings, page size and nulls;
//! filters give what their tests say; deletes and small inserts keep both true.

mod columns;
mod numbers;

use std::sync::Arc;

use arrow::array::*;
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::*;
use futures::executor::block_on;
use memory::Traffic;
use proptest::prelude::*;
use table::*;

use crate::columns::every_type;

fn options(page_size: u32) -> store::Options {
    store::Options {
        page_size,
        ..store::Options::default()
    }
}

/// A store of one table `t` that holds `batches`, each written by its own insert.
struct Case {
    _folder: tempfile::TempDir,
    store: Arc<store::Store>,
    catalog: Catalog,
}

impl Case {
    fn new(schema: &Schema, page_size: u32) -> Case {
        let folder = tempfile::tempdir().unwrap();
        let store = store::Store::create(folder.path().join("t.atoll"), &options(page_size));
        let store = store.unwrap();
        let mut tx = store.begin().unwrap();
        create(&mut tx, &Definition::from_schema("t", schema).unwrap()).unwrap();
        tx.commit().unwrap();
        Case {
            _folder: folder,
            store,
            catalog: Catalog::new(),
        }
    }

    fn insert(&self, batch: &RecordBatch) {
        let tx = self.store.begin().unwrap();
        let (tx, rows) = block_on(insert(tx, "t", std::slice::from_ref(batch))).unwrap();
        assert_eq!(rows, batch.num_rows() as u64);
        tx.commit().unwrap();
    }

    /// Loads `batch` as blocks, whatever its size.
    fn load(&self, batch: &RecordBatch) {
        let loader = block_on(Loader::new(self.store.begin().unwrap(), "t")).unwrap();
        let mut chunker = Chunker::default();
        let mut blocks = chunker.push(batch.clone());
        blocks.extend(chunker.rest());
        // From the last to the first: their order comes from the ordinal alone.
        for (ordinal, block) in blocks.iter().enumerate().rev() {
            loader.block(ordinal as u64, block).unwrap();
        }
        block_on(loader.finish()).unwrap().0.commit().unwrap();
    }

    fn table(&self) -> Arc<Table> {
        self.catalog
            .tables(&self.store.snapshot())
            .unwrap()
            .get("t")
            .unwrap()
            .clone()
    }

    fn read(&self) -> RecordBatch {
        self.scan(&[])
    }

    fn scan(&self, filters: &[Filter]) -> RecordBatch {
        let table = self.table();
        let all = (0..table.schema().fields().len()).collect();
        self.deliver(&Scan::new(table, all, false), filters)
    }

    /// As [`scan`](Case::scan), of each so many-th row.
    fn scan_some(&self, step: usize, filters: &[Filter]) -> RecordBatch {
        let table = self.table();
        let all = self.deliver(&Scan::new(table.clone(), vec![], true), &[]);
        let all = all.column(0).as_primitive::<UInt64Type>();
        let chosen: Vec<u64> = all.values().iter().copied().step_by(step).collect();
        let columns = (0..table.schema().fields().len()).collect();
        let scan = Scan::new(Arc::new(table.choose("", &chosen)), columns, false);
        self.deliver(&scan, filters)
    }

    fn deliver(&self, scan: &Scan, filters: &[Filter]) -> RecordBatch {
        let pool = self.store.pool();
        let traffic = Traffic::new(pool.nodes());
        let mut batches = vec![];
        for (_, morsel) in scan.morsels() {
            let opened = block_on(scan.open(pool, morsel, filters, &traffic, || 0)).unwrap();
            let Some(mut cursor) = opened else { continue };
            while let Some(batch) = cursor.next(3_000).unwrap() {
                batches.push(batch);
            }
        }
        concat_batches(scan.schema(), &batches).unwrap()
    }
}

/// The array of `shape` in which the rows that are not `valid` are null.
fn shaped(shape: u8, rows: usize, valid: &[bool], mut next: impl FnMut() -> u64) -> ArrayRef {
    let ints = |values: Vec<i64>| -> ArrayRef {
        Arc::new(Int64Array::from_iter(
            values.iter().zip(valid).map(|(v, k)| k.then_some(*v)),
        ))
    };
    match shape {
        0 => ints((0..rows).map(|_| (next() % 200) as i64 - 100).collect()),
        1 => ints(
            (0..rows as i64)
                .map(|i| i * 3 + (next() % 2) as i64)
                .collect(),
        ),
        2 => ints((0..rows).map(|_| next() as i64 >> 20).collect()),
        3 => ints((0..rows).map(|_| next() as i64).collect()),
        4 => ints(vec![i64::MIN; rows]),
        5..=8 => texts(shape, rows, valid, next),
        9 => Arc::new(Float64Array::from_iter(valid.iter().map(|k| {
            let bits = next();
            k.then(|| {
                if bits.is_multiple_of(11) {
                    f64::NAN
                } else {
                    f64::from_bits(bits)
                }
            })
        }))),
        10 => {
            let values = valid
                .iter()
                .map(|k| k.then(|| i128::from(next() as i64) << 40));
            Arc::new(
                Decimal128Array::from_iter(values)
                    .with_precision_and_scale(38, 4)
                    .unwrap(),
            )
        }
        11 => {
            let values = valid.iter().map(|k| k.then(|| i128::from(next() % 5_000)));
            Arc::new(
                Decimal128Array::from_iter(values)
                    .with_precision_and_scale(15, 2)
                    .unwrap(),
            )
        }
        12 => Arc::new(BooleanArray::from_iter(
            valid.iter().map(|k| k.then(|| next().is_multiple_of(2))),
        )),
        _ => Arc::new(UInt64Array::from_iter(
            valid.iter().map(|k| k.then(&mut next)),
        )),
    }
}

/// An array of texts: few different ones, short ones, all different ones, or some longer than a page.
fn texts(shape: u8, rows: usize, valid: &[bool], mut next: impl FnMut() -> u64) -> ArrayRef {
    let values: Vec<String> = match shape {
        5 => (0..rows)
            .map(|_| format!("label {}", next() % 40))
            .collect(),
        6 => (0..rows)
            .map(|_| "x".repeat((next() % 60) as usize))
            .collect(),
        7 => (0..rows).map(|i| format!("{i}-{}", next())).collect(),
        _ => {
            let long = |r: u64| {
                if r.is_multiple_of(997) {
                    70_000
                } else {
                    (r % 30) as usize
                }
            };
            (0..rows).map(|_| "é".repeat(long(next()))).collect()
        }
    };
    Arc::new(StringViewArray::from_iter(
        values
            .iter()
            .zip(valid)
            .map(|(v, k)| k.then_some(v.as_str())),
    ))
}

/// A column of `rows` values in some shape that asks for another encoding.
fn column(rows: usize) -> impl Strategy<Value = (DataType, ArrayRef)> {
    let nulls = prop_oneof![Just(0u32), Just(3), Just(1000)];
    (0..14u8, nulls, any::<u64>()).prop_map(move |(shape, nulls, seed)| {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut next = move || random.u64(..);
        let valid: Vec<bool> = (0..rows)
            .map(|_| nulls == 0 || (nulls < 1000 && next() % 7 >= u64::from(nulls) - 1))
            .collect();
        let array = shaped(shape, rows, &valid, &mut next);
        (array.data_type().clone(), array)
    })
}

fn batch(rows: usize) -> impl Strategy<Value = RecordBatch> {
    prop::collection::vec(column(rows), 1..5).prop_map(|columns| {
        let fields = columns.iter().enumerate();
        let fields = fields.map(|(i, (t, _))| Field::new(format!("c{i}"), t.clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        RecordBatch::try_new(schema, columns.into_iter().map(|(_, a)| a).collect()).unwrap()
    })
}

/// Floats compare by bits, so that NaN equals itself.
fn assert_same(a: &RecordBatch, b: &RecordBatch) {
    assert_eq!(a.num_rows(), b.num_rows());
    for (left, right) in a.columns().iter().zip(b.columns()) {
        match (
            left.as_primitive_opt::<Float64Type>(),
            right.as_primitive_opt::<Float64Type>(),
        ) {
            (Some(left), Some(right)) => {
                let bits =
                    |a: &Float64Array| a.iter().map(|v| v.map(f64::to_bits)).collect::<Vec<_>>();
                assert_eq!(bits(left), bits(right));
            }
            _ => assert_eq!(left, right),
        }
    }
}

/// `low <= column <= high` on an `Int64` column.
#[derive(Debug)]
struct Between(i64, i64);

impl Test for Between {
    fn evaluate(
        &self,
        columns: &[ArrayRef],
        _: usize,
    ) -> std::result::Result<BooleanArray, Box<dyn std::error::Error + Send + Sync>> {
        let values = columns[0].as_primitive::<Int64Type>();
        Ok(values
            .iter()
            .map(|v| v.map(|v| (self.0..=self.1).contains(&v)))
            .collect())
    }
}

/// Texts that contain a letter.
#[derive(Debug)]
struct Contains(&'static str);

impl Test for Contains {
    fn evaluate(
        &self,
        columns: &[ArrayRef],
        _: usize,
    ) -> std::result::Result<BooleanArray, Box<dyn std::error::Error + Send + Sync>> {
        let values = columns[0].as_string_view();
        Ok(values
            .iter()
            .map(|v| v.map(|v| v.contains(self.0)))
            .collect())
    }
}

/// The answers for empty texts and for others.
#[derive(Debug)]
struct Empty([bool; 2]);

impl Test for Empty {
    fn evaluate(
        &self,
        columns: &[ArrayRef],
        _: usize,
    ) -> std::result::Result<BooleanArray, Box<dyn std::error::Error + Send + Sync>> {
        let values = columns[0].as_string_view().iter();
        let answer = |text: &str| self.0[usize::from(!text.is_empty())];
        Ok(values.map(|text| text.map(answer)).collect())
    }

    fn of_emptiness(&self) -> Option<[bool; 2]> {
        Some(self.0)
    }
}

/// The filters that `seed` picks for the columns of `batch`.
fn filters(batch: &RecordBatch, seed: u64) -> Vec<Filter> {
    let mut filters = vec![];
    for (column, array) in batch.columns().iter().enumerate() {
        let form = |form| Filter {
            columns: vec![column],
            test: Arc::new(Contains("1")),
            form,
            gauge: None,
        };
        if let Some(values) = array.as_primitive_opt::<Int64Type>() {
            let pick =
                |n: u64| values.value((seed.rotate_left(n as u32) % values.len() as u64) as usize);
            let (low, high) = (pick(3).min(pick(40)), pick(3).max(pick(40)));
            let ranges = [(i128::from(low), i128::from(high))];
            let form = match seed % 3 {
                0 => Form::Ranges(ranges.into()),
                1 => Form::Within {
                    column,
                    ranges: ranges.into(),
                },
                _ => Form::Any,
            };
            let test = Arc::new(Between(low, high));
            filters.push(Filter {
                columns: vec![column],
                test,
                form,
                gauge: None,
            });
        } else if array.data_type() == &DataType::Utf8View {
            filters.push(match seed % 4 {
                0 => form(Form::Labels(Arc::default())),
                1 => Filter {
                    test: Arc::new(Empty([seed & 4 != 0, seed & 8 != 0])),
                    ..form(Form::Labels(Arc::default()))
                },
                _ => form(Form::Any),
            });
        }
    }
    filters
}

fn naive(batch: &RecordBatch, filters: &[Filter]) -> RecordBatch {
    let mut batch = batch.clone();
    for filter in filters {
        let columns: Vec<_> = filter
            .columns
            .iter()
            .map(|c| batch.column(*c).clone())
            .collect();
        let hits = filter.test.evaluate(&columns, batch.num_rows()).unwrap();
        batch = arrow::compute::filter_record_batch(&batch, &hits).unwrap();
    }
    batch
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_is_loaded_is_read_back(batch in (1usize..9_000).prop_flat_map(batch), size in 0u32..3) {
        let case = Case::new(&batch.schema(), 16_384 << size);
        case.load(&batch);
        assert_same(&case.read(), &batch);
        // And once more from the disk alone.
        case.store.pool().clear();
        assert_same(&case.read(), &batch);
    }

    #[test]
    fn filters_mean_their_tests(batch in (1usize..9_000).prop_flat_map(batch), seed: u64) {
        let case = Case::new(&batch.schema(), 16_384);
        let head = batch.num_rows() / 3;
        case.load(&batch.slice(0, batch.num_rows() - head));
        case.insert(&batch.slice(batch.num_rows() - head, head));
        let filters = filters(&batch, seed);
        assert_same(&case.scan(&filters), &naive(&batch, &filters));
        // Of few rows of a page only these are read.
        for step in [1_000, 50, 3] {
            let chosen = (0..batch.num_rows() as u32).step_by(step);
            let chosen = take_record_batch(&batch, &UInt32Array::from_iter_values(chosen)).unwrap();
            assert_same(&case.scan_some(step, &filters), &naive(&chosen, &filters));
        }
    }

    #[test]
    fn small_inserts_and_deletes(sizes in prop::collection::vec(1usize..900, 1..12), seed: u64) {
        let schema = Schema::new(vec![Field::new("n", DataType::Int64, false)]);
        let case = Case::new(&schema, 16_384);
        let mut model: Vec<i64> = vec![];
        for (round, size) in sizes.iter().enumerate() {
            let start = model.len() as i64 + 10_000 * round as i64;
            let rows: Vec<i64> = (start..start + *size as i64).collect();
            let batch = RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(rows.clone())) as ArrayRef)]).unwrap();
            match round % 3 {
                0 => case.load(&batch),
                _ => case.insert(&batch),
            }
            model.extend(rows);
            if round % 2 == 1 {
                let divisor = 2 + (seed.rotate_left(round as u32) % 5) as i64;
                delete_where(&case, |n| n % divisor == 0);
                model.retain(|n| n % divisor != 0);
            }
            let mut got: Vec<i64> = case.read().column(0).as_primitive::<Int64Type>().values().to_vec();
            got.sort_unstable();
            model.sort_unstable();
            prop_assert_eq!(&got, &model);
            prop_assert_eq!(case.table().rows(), model.len() as u64);
        }
    }
}

fn delete_where(case: &Case, gone: impl Fn(i64) -> bool) {
    let scan = Scan::new(case.table(), vec![0], true);
    let pool = case.store.pool();
    let traffic = Traffic::new(1);
    let mut ids = vec![];
    for (_, morsel) in scan.morsels() {
        let Some(mut cursor) = block_on(scan.open(pool, morsel, &[], &traffic, || 0)).unwrap()
        else {
            continue;
        };
        while let Some(batch) = cursor.next(usize::MAX).unwrap() {
            let values = batch.column(0).as_primitive::<Int64Type>();
            let rows = batch.column(1).as_primitive::<UInt64Type>();
            let picked = values
                .values()
                .iter()
                .zip(rows.values())
                .filter(|(v, _)| gone(**v));
            ids.extend(picked.map(|(_, id)| *id));
        }
    }
    let mut tx = case.store.begin().unwrap();
    assert_eq!(delete(&mut tx, "t", &ids).unwrap(), ids.len() as u64);
    tx.commit().unwrap();
}

#[test]
fn every_type_comes_back() {
    let batch = RecordBatch::try_from_iter_with_nullable(
        every_type()
            .into_iter()
            .map(|(name, array)| (name, array, true)),
    )
    .unwrap();
    let case = Case::new(&batch.schema(), 65_536);
    let expected = normalise(&batch, case.table().definition()).unwrap();
    case.load(&batch);
    assert_eq!(case.read(), expected);
    case.insert(&batch);
    assert_eq!(case.table().tail_rows(), 3);
    assert_eq!(
        case.read(),
        concat_batches(&expected.schema(), [&expected, &expected]).unwrap()
    );
}

#[test]
fn what_does_not_fit_is_refused_with_its_name() {
    let point = Field::new("place", DataType::Struct(Fields::empty()), true);
    let error = Definition::from_schema("t", &Schema::new(vec![point]))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("'place'") && error.contains("Struct"),
        "{error}"
    );
    let mut key =
        Definition::from_schema("t", &Schema::new(vec![Field::new("j", jsonb_type(), true)]))
            .unwrap();
    key.primary_key = vec![0];
    let error = key.validate().unwrap_err().to_string();
    assert!(error.contains("stand in no key"), "{error}");

    let schema = Schema::new(vec![Field::new("n", DataType::Int64, false)]);
    let case = Case::new(&schema, 65_536);
    let nulls = RecordBatch::try_from_iter_with_nullable([(
        "n",
        Arc::new(Int64Array::from(vec![None])) as ArrayRef,
        true,
    )])
    .unwrap();
    let error = block_on(insert(case.store.begin().unwrap(), "t", &[nulls])).unwrap_err();
    assert!(
        matches!(error, Error::Null { ref column, .. } if column == "n"),
        "{error}"
    );
    let error = block_on(insert(case.store.begin().unwrap(), "nope", &[])).unwrap_err();
    assert!(error.to_string().contains("'nope'"), "{error}");
    let error = create(&mut case.store.begin().unwrap(), case.table().definition()).unwrap_err();
    assert!(matches!(error, Error::Exists { .. }), "{error}");
    assert_eq!(case.table().rows(), 0);
}

#[test]
fn a_dropped_table_gives_its_pages_back() {
    let rows = Int64Array::from_iter_values((0..200_000).map(|i| i * 7_919 % 100_003));
    let batch = RecordBatch::try_from_iter([("n", Arc::new(rows) as ArrayRef)]).unwrap();
    let case = Case::new(&batch.schema(), 65_536);
    case.load(&batch);
    let mut tx = case.store.begin().unwrap();
    table::drop(&mut tx, "t").unwrap();
    tx.commit().unwrap();
    assert!(
        case.catalog
            .tables(&case.store.snapshot())
            .unwrap()
            .get("t")
            .is_none()
    );
    let problems = case.store.check(&|_, _| {}).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(case.store.statistics().pages.pages, 0);
}

/// The columns of a block may be written side by side, and it is added when all of them were.
#[test]
fn columns_of_a_block_are_written_in_any_order_and_none_is_missing() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..70_000));
    let texts = (0..70_000i32).map(|n| (n % 7 > 0).then(|| format!("text {}", n % 1000)));
    let texts: ArrayRef = Arc::new(StringViewArray::from_iter(texts));
    let doubles = (0..70_000i32).map(|n| f64::from(n) / 8.0);
    let doubles: ArrayRef = Arc::new(Float64Array::from_iter_values(doubles));
    let columns = [("n", numbers), ("t", texts), ("d", doubles)];
    let columns = columns.map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let case = Case::new(&batch.schema(), 16_384);
    let loader = block_on(Loader::new(case.store.begin().unwrap(), "t")).unwrap();
    let mut chunker = Chunker::default();
    let full = chunker.push(batch.clone()).remove(0);
    loader.block(0, &full).unwrap();
    let last = loader.begin(1, &chunker.rest().unwrap()).unwrap().unwrap();
    assert_eq!(last.columns(), 3);
    std::thread::scope(|scope| {
        let (loader, last) = (&loader, &last);
        for column in [2, 0, 1] {
            scope.spawn(move || loader.column(last, column).unwrap());
        }
    });
    loader.end(&last).unwrap();
    assert_eq!(loader.rows(), 70_000);
    block_on(loader.finish()).unwrap().0.commit().unwrap();
    assert_same(&case.read(), &batch);

    let loader = block_on(Loader::new(case.store.begin().unwrap(), "t")).unwrap();
    let block = loader.begin(0, &full).unwrap().unwrap();
    loader.column(&block, 1).unwrap();
    assert!(matches!(
        loader.end(&block),
        Err(table::Error::Mismatch { .. })
    ));
    assert!(loader.begin(1, &[batch.slice(0, 0)]).unwrap().is_none());
}
