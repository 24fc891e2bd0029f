//! Random rows go in by every way and come back as they were.

use std::sync::Arc;

use adbc_core::options::OptionStatement;
use adbc_core::{Connection as _, Optionable, Statement as _};
use arrow::array::*;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use fastrand::Rng;

use super::{connection, rows, run, statement};

const TYPES: usize = 14;

/// Values of a type, some of which are NULL.
fn some<T, A>(random: &mut Rng, length: usize, make: impl Fn(&mut Rng) -> T) -> A
where
    A: Array + FromIterator<Option<T>>,
{
    (0..length)
        .map(|_| (random.u8(..) > 40).then(|| make(random)))
        .collect()
}

fn text(random: &mut Rng) -> String {
    let letters: Vec<char> = "aé'\"\\$?1 \n🐟%;-".chars().collect();
    let length = random.usize(..30);
    (0..length)
        .map(|_| letters[random.usize(..letters.len())])
        .collect()
}

fn bytes(random: &mut Rng) -> Vec<u8> {
    let length = random.usize(..20);
    (0..length).map(|_| random.u8(..)).collect()
}

fn double(random: &mut Rng) -> f64 {
    f64::from(random.i32(..)) / 1024.0 * 10_f64.powi(random.i32(-200..200))
}

/// A column of one of the types.
fn column(r: &mut Rng, kind: usize, n: usize) -> ArrayRef {
    let micros = |r: &mut Rng| r.i64(-4_000_000_000_000_000..4_000_000_000_000_000);
    let digits = |r: &mut Rng| i128::from(r.i64(-999_999_999_999..999_999_999_999));
    match kind {
        0 => Arc::new(some::<_, BooleanArray>(r, n, Rng::bool)),
        1 => Arc::new(some::<_, Int8Array>(r, n, |r| r.i8(..))),
        2 => Arc::new(some::<_, Int32Array>(r, n, |r| r.i32(..))),
        3 => Arc::new(some::<_, Int64Array>(r, n, |r| r.i64(..))),
        4 => Arc::new(some::<_, UInt32Array>(r, n, |r| r.u32(..))),
        5 => Arc::new(some::<_, Float64Array>(r, n, double)),
        6 => Arc::new(some::<_, Float32Array>(r, n, |r| r.f32() - 0.5)),
        7 => Arc::new(some::<_, StringArray>(r, n, text)),
        8 => Arc::new(some::<_, LargeStringArray>(r, n, text)),
        9 => Arc::new(some::<_, BinaryArray>(r, n, bytes)),
        10 => Arc::new(some::<_, Date32Array>(r, n, |r| r.i32(-700_000..700_000))),
        11 => Arc::new(some::<_, TimestampMicrosecondArray>(r, n, micros)),
        12 => {
            let numbers: Decimal128Array = some(r, n, digits);
            Arc::new(numbers.with_precision_and_scale(18, 5).unwrap())
        }
        _ => {
            let keys: Int8Array = some(r, n, |r| r.i8(0..3));
            let values = StringArray::from(vec!["a", "b?", "c'"]);
            Arc::new(DictionaryArray::new(keys, Arc::new(values)))
        }
    }
}

/// What `create table` calls the types of [`column`].
fn type_name(array: &ArrayRef) -> String {
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp".into(),
        other => sql::type_name(other),
    }
}

fn batch(random: &mut Rng) -> RecordBatch {
    let (width, length) = (random.usize(1..6), random.usize(..30));
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..length as i64));
    let columns = (0..width).map(|_| {
        let kind = random.usize(..TYPES);
        column(random, kind, length)
    });
    let columns: Vec<ArrayRef> = std::iter::once(ids).chain(columns).collect();
    let fields = columns.iter().enumerate();
    let fields = fields.map(|(at, c)| Field::new(format!("C {at}"), c.data_type().clone(), true));
    RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns).unwrap()
}

/// A reader of the batch in pieces.
fn pieces(random: &mut Rng, batch: &RecordBatch) -> Box<dyn RecordBatchReader + Send> {
    let (mut at, mut all) = (0, Vec::new());
    while at < batch.num_rows() {
        let length = random.usize(..=batch.num_rows() - at);
        all.push(Ok(batch.slice(at, length)));
        at += length;
    }
    Box::new(RecordBatchIterator::new(all, batch.schema()))
}

#[test]
fn rows_go_in_by_every_way_and_come_back() {
    for seed in 0..25 {
        let mut random = Rng::with_seed(seed);
        let given = batch(&mut random);
        let mut connection = connection();
        let types: Vec<String> = given
            .columns()
            .iter()
            .enumerate()
            .map(|(at, column)| format!("\"C {at}\" {}", type_name(column)))
            .collect();
        run(
            &mut connection,
            &format!("create table plain ({})", types.join(", ")),
        )
        .unwrap();
        run(
            &mut connection,
            &format!("create table each ({})", types.join(", ")),
        )
        .unwrap();

        let mut ingest = connection.new_statement().unwrap();
        ingest
            .set_option(OptionStatement::TargetTable, "ingested".into())
            .unwrap();
        ingest.bind_stream(pieces(&mut random, &given)).unwrap();
        let wanted = Some(given.num_rows() as i64);
        assert_eq!(ingest.execute_update().unwrap(), wanted, "seed {seed}");

        let marks = vec!["?"; given.num_columns()].join(", ");
        for (table, text) in [
            ("plain", format!("insert into plain values ({marks})")),
            ("each", format!("insert into each select {marks}")),
        ] {
            let mut insert = statement(&mut connection, &text);
            insert.bind_stream(pieces(&mut random, &given)).unwrap();
            let written = insert.execute_update();
            assert_eq!(
                written.as_ref().ok(),
                Some(&wanted),
                "seed {seed}, {table}: {written:?}"
            );
        }
        for table in ["ingested", "plain", "each"] {
            let query = format!("select * from {table} order by \"C 0\"");
            let found = rows(&mut connection, &query).unwrap();
            assert_eq!(found.num_rows(), given.num_rows());
            for (at, wanted) in given.columns().iter().enumerate() {
                let (found, wanted) = match wanted.data_type() {
                    DataType::Dictionary(_, value) => {
                        (cast(found.column(at), value), cast(wanted, value))
                    }
                    own => (cast(found.column(at), own), Ok(Arc::clone(wanted))),
                };
                let (found, wanted) = (found.unwrap(), wanted.unwrap());
                assert_eq!(&found, &wanted, "seed {seed}, {table}, column {at}");
            }
        }
    }
}
