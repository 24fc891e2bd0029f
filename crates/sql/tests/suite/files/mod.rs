//! Queries over files: each executor gives the answers of DataFusion's operators, however blocks are cut. Errors
//! name files that are damaged, cut off, or changed while they are read.

mod columns;

use std::path::Path;
use std::sync::Arc;

use arrow::array::*;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use sql::{Answer, Error, Executor};

use crate::answers::{rows, rows_of};
use crate::fixture;
use crate::peer::Peer;

struct Fixture {
    directory: Arc<tempfile::TempDir>,
    workers: Arc<workers::Workers>,
    instance: Arc<sql::Instance>,
}

impl Fixture {
    fn new(
        directory: &Arc<tempfile::TempDir>,
        executor: Executor,
        block: Option<usize>,
    ) -> Fixture {
        let workers = fixture::workers();
        let mut store = store::Options::default();
        store.pool.bytes = 8 << 20;
        let path = directory
            .path()
            .join(format!("{executor:?}{block:?}.atoll"));
        let mut options = sql::Options::spilling_to(directory.path());
        options.executor = executor;
        options.execution.block_rows = block;
        let instance = fixture::instance(&workers, &path, 1 << 30, store, options);
        Fixture {
            directory: Arc::clone(directory),
            workers,
            instance,
        }
    }

    fn sql(&self, text: &str) -> sql::Result<Answer> {
        let text = text.replace("$", &format!("{}/", self.directory.path().display()));
        let run = async { self.instance.session().execute(&text).await };
        self.workers
            .handle()
            .block_on(run)
            .map(|mut all| all.pop().unwrap())
    }

    /// The rows that DataFusion's operators find.
    fn asked_of(&self, peer: &Peer, text: &str) -> sql::Result<Vec<String>> {
        let text = text.replace("$", &format!("{}/", self.directory.path().display()));
        let session = self.instance.session();
        let found = peer.answer(&session, &text);
        let (_, batches) = self.workers.handle().block_on(found)?;
        Ok(rows_of(&batches))
    }
}

/// Some rows with a column of each kind, from number `from` on. Sums of what CSV makes floats are exact.
#[expect(clippy::too_many_lines, reason = "it is a table of columns")]
fn batch(from: i64, rows: i64) -> RecordBatch {
    let numbers = || from..from + rows;
    let some = |i: i64, n: i64| (i % n != 0).then_some(i);
    let words = [
        "AIR",
        "RAIL",
        "a text that is too long to be held inline",
        "",
        "SHIP",
    ];
    let word = |i: i64| words[i as usize % words.len()];
    let coded: DictionaryArray<Int32Type> = numbers().map(|i| some(i, 11).map(word)).collect();
    let wide = numbers().map(|i| some(i, 13).map(|i| i128::from(i) * 10_000 * (1 << 50)));
    let wide = Decimal128Array::from_iter(wide)
        .with_precision_and_scale(38, 4)
        .unwrap();
    let price = numbers().map(|i| some(i, 7).map(|i| i128::from((i * 37 % 4_000 - 200) * 25)));
    let price = Decimal128Array::from_iter(price)
        .with_precision_and_scale(15, 2)
        .unwrap();
    let large =
        LargeStringArray::from_iter(numbers().map(|i| some(i, 5).map(|i| format!("n{}", i % 40))));
    let columns: [(&str, ArrayRef); 12] = [
        ("id", Arc::new(Int64Array::from_iter_values(numbers()))),
        (
            "key",
            Arc::new(Int32Array::from_iter(
                numbers().map(|i| some(i, 9).map(|i| (i % 100) as i32)),
            )),
        ),
        (
            "tiny",
            Arc::new(Int8Array::from_iter_values(
                numbers().map(|i| (i % 100) as i8),
            )),
        ),
        (
            "unsigned",
            Arc::new(UInt64Array::from_iter_values(
                numbers().map(|i| u64::MAX - i as u64),
            )),
        ),
        ("price", Arc::new(price)),
        ("wide", Arc::new(wide)),
        (
            "day",
            Arc::new(Date32Array::from_iter_values(
                numbers().map(|i| 9_000 + (i % 900) as i32),
            )),
        ),
        (
            "moment",
            Arc::new(TimestampMicrosecondArray::from_iter(
                numbers().map(|i| some(i, 17).map(|i| i * 1_000_003)),
            )),
        ),
        ("mode", Arc::new(coded)),
        ("name", Arc::new(large)),
        (
            "share",
            Arc::new(Float64Array::from_iter(
                numbers().map(|i| some(i, 6).map(|i| i as f64 / 4.0)),
            )),
        ),
        (
            "flag",
            Arc::new(BooleanArray::from_iter(
                numbers().map(|i| some(i, 8).map(|i| i % 3 == 0)),
            )),
        ),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn parquet(path: &Path, batch: &RecordBatch, group: usize, compression: Compression) {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group))
        .set_data_page_row_count_limit(500)
        .set_write_batch_size(100)
        .set_compression(compression)
        .build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

/// What CSV can tell: texts without a type, numbers, dates.
fn csv(path: &Path, batch: &RecordBatch) {
    let texts = batch
        .columns()
        .iter()
        .map(|column| match column.data_type() {
            DataType::Dictionary(..) | DataType::LargeUtf8 => {
                cast(column, &DataType::Utf8).unwrap()
            }
            _ => Arc::clone(column),
        });
    let schema = batch.schema();
    let columns = schema.fields().iter().map(|f| f.name().clone()).zip(texts);
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = std::fs::File::create(path).unwrap();
    arrow::csv::Writer::new(file).write(&batch).unwrap();
}

fn directory() -> Arc<tempfile::TempDir> {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let path = |name: &str| directory.path().join(name);
    std::fs::create_dir(path("many")).unwrap();
    let all = batch(0, 20_000);
    parquet(&path("t.parquet"), &all, 3_000, Compression::SNAPPY);
    parquet(
        &path("none.parquet"),
        &all.slice(0, 0),
        3_000,
        Compression::SNAPPY,
    );
    parquet(
        &path("few.parquet"),
        &batch(100, 50),
        3_000,
        Compression::UNCOMPRESSED,
    );
    for number in 0..5 {
        let name = format!("many/{number}.parquet");
        let rows = batch(number * 4_000, if number == 2 { 0 } else { 4_000 });
        parquet(&path(&name), &rows, 1_500, Compression::UNCOMPRESSED);
    }
    csv(&path("t.csv"), &all);
    csv(&path("few.csv"), &batch(100, 50));
    directory
}

/// Queries over the file `F`, and a small one `S`.
const QUERIES: &[&str] = &[
    "select count(*) from 'F'",
    "select count(*), count(key), count(mode), sum(price), min(day), max(day), sum(share), min(name), max(mode) from 'F'",
    "select sum(price * (1 - tiny / 100)), avg(price), count(distinct key) from 'F' where day >= date '1995-01-01' and price < 500",
    "select mode, flag, count(*), sum(wide), max(moment), min(unsigned) from 'F' group by mode, flag",
    "select key, sum(id), min(name) from 'F' where name like 'n1%' or mode = 'AIR' group by key having count(*) > 2",
    "select id, key, mode, name, day, moment, wide, share, flag from 'F' where id % 997 = 3",
    "select id, price from 'F' order by price desc nulls last, id limit 12",
    "select distinct mode from 'F'",
    "select s.id, count(*), sum(f.price) from 'F' f join 'S' s on f.key = s.key group by s.id",
    "select f.mode, s.mode, count(*) from 'F' f left join 'S' s on f.id = s.id and s.flag group by f.mode, s.mode",
    "select count(*) from 'F' where id not in (select id from 'S') and mode is not null",
    "select count(*), sum(f.id) from 'F' f where exists (select 1 from 'S' s where s.name = f.name and s.id > f.id)",
    "select count(*), sum(price) from 'F' where price > (select avg(price) from 'S')",
    "select max(id) from (select id from 'F' union all select id from 'S')",
    "select sum(id) from 'F' where id > 100000000",
    "select name, sum(id) from 'F' where unsigned < 18446744073709550000 group by name",
];

#[test]
fn files_give_what_datafusion_gives() {
    let directory = directory();
    let peer = Peer::new();
    let ours = [
        Fixture::new(&directory, Executor::Fused, None),
        Fixture::new(&directory, Executor::Stream, None),
        Fixture::new(&directory, Executor::Stream, Some(2_048)),
    ];
    let pairs = [
        ("$t.parquet", "$few.parquet"),
        ("$many/*.parquet", "$few.parquet"),
        ("$none.parquet", "$few.parquet"),
        ("$few.parquet", "$none.parquet"),
        ("$t.csv", "$few.csv"),
        ("$t.csv", "$few.parquet"),
    ];
    for (file, small) in pairs {
        for query in QUERIES {
            let text = query.replace('F', file).replace('S', small);
            // Keywords are in lower case here, so F and S stand for files only.
            let wanted = ours[0].asked_of(&peer, &text);
            for own in &ours {
                let found = own.sql(&text);
                let (Ok(wanted), Ok(found)) = (&wanted, &found) else {
                    let (wanted, found) = (wanted.as_ref().err(), found.as_ref().err());
                    // CSV infers floats and texts where the query wants decimals: both refuse.
                    assert_eq!(
                        wanted.map(|e| e.to_string()),
                        found.map(|e| e.to_string()),
                        "{text}"
                    );
                    continue;
                };
                assert_eq!(*wanted, rows(found), "{text}");
                // Of a file without rows the planner may make a constant, which needs no engine; a double and a decimal are
                // compared by a function that the engine has not got.
                let is_mixed = file.ends_with(".csv") && small.ends_with(".parquet");
                if ![file, small].contains(&"$none.parquet") && !is_mixed {
                    assert_eq!(found.statistics.ran_on, "algebra", "{text}");
                }
            }
        }
    }
}

/// Rows of a CSV file of some megabytes whose values hold line breaks, quotes and what looks like other records; `end`
/// ends each, but for the last if it is not `closed`.
fn hostile_csv(end: &str, closed: bool) -> String {
    let mut text = format!("id,\"a\nname\",n{end}");
    for id in 0..60_000 {
        let name = match id % 7 {
            0 => format!("\"{end}{id},x,1{end}\""),
            1 => format!("\"he said \"\"no{end}\"\", {id}\""),
            2 => format!("{id}\" pipe"),
            3 => "\"\"".to_owned(),
            4 => format!("\"{}\"", "\"\",\n".repeat(id % 40)),
            5 if id % 1_001 == 5 => format!("\"{}\"", "long\n".repeat(5_000)),
            _ => format!("name {id}"),
        };
        text += &format!("{id},{name},{}{end}", id * 3);
    }
    if !closed {
        text.truncate(text.len() - end.len());
    }
    text
}

#[test]
fn csv_is_cut_after_records_only() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let write = |name: &str, text: &str| {
        std::fs::write(directory.path().join(name), text).unwrap();
    };
    write("lf.csv", &hostile_csv("\n", true));
    write("crlf.csv", &hostile_csv("\r\n", false));
    // Three megabytes in one record.
    let huge = "a\n,\"\"".repeat(1 << 19);
    write(
        "huge.csv",
        &format!("id,\"a\nname\",n\n1,\"{huge}\",2\n2,b,3"),
    );
    write(
        "one.csv",
        &format!("id,\"a\nname\",n\n1,{},2", "b".repeat(3 << 20)),
    );
    write("header.csv", "id,\"a\nname\",n\n");
    let peer = Peer::new();
    let ours = [
        Fixture::new(&directory, Executor::Fused, None),
        Fixture::new(&directory, Executor::Stream, Some(2_048)),
        Fixture::new(&directory, Executor::Staged, None),
    ];
    for file in [
        "lf.csv",
        "crlf.csv",
        "huge.csv",
        "one.csv",
        "header.csv",
        "*.csv",
    ] {
        let columns = match file {
            // Nothing tells their types.
            "header.csv" => "count(*)",
            _ => {
                r#"count(*), sum(id), sum(n), min("a
name"), max("a
name"), sum(length("a
name"))"#
            }
        };
        let text = format!("select {columns} from '${file}'");
        let wanted = ours[0].asked_of(&peer, &text).unwrap();
        for own in &ours {
            let found = own.sql(&text).unwrap();
            assert_eq!(wanted, rows(&found), "{file}");
            assert_eq!(found.statistics.ran_on, "algebra", "{file}");
            if matches!(file, "lf.csv" | "crlf.csv") {
                let told = own.sql(&format!("explain {text}")).unwrap();
                let told = rows(&told).join("\n");
                assert!(!told.contains(" in 1 parts"), "{told}");
            }
        }
    }
    write("empty.csv", "");
    let refused = ours[0]
        .sql("select count(*) from '$empty.csv'")
        .unwrap_err();
    assert!(refused.to_string().contains("no columns"), "{refused}");
}

#[test]
fn what_is_only_read_runs_on_the_engine_too() {
    let directory = directory();
    let own = Fixture::new(&directory, Executor::Stream, None);
    for text in [
        "select id, mode from '$t.parquet'",
        "select * from '$t.csv' where id > 5 limit 3",
        "select id from '$t.parquet' where mode = 'AIR'",
    ] {
        assert_eq!(
            own.sql(text).unwrap().statistics.ran_on,
            "algebra",
            "{text}"
        );
    }
}

#[test]
fn explain_tells_what_is_read() {
    let directory = directory();
    let own = Fixture::new(&directory, Executor::Stream, None);
    let plan = own
        .sql("explain select sum(price) from '$many/*.parquet' where id > 3")
        .unwrap();
    let plan = rows(&plan).join("\n");
    assert!(
        plan.contains("many/*.parquet in ") && plan.contains(" parts, as they are processed"),
        "{plan}"
    );
    let plan = own
        .sql("explain analyze select sum(price) from '$many/*.parquet' where id > 3")
        .unwrap();
    let plan = rows(&plan).join("\n");
    assert!(
        plan.contains("read ") && plan.contains("asleep for input"),
        "{plan}"
    );
}

#[test]
fn files_that_come_are_seen() {
    let directory = directory();
    let own = Fixture::new(&directory, Executor::Fused, None);
    let count = || {
        rows(
            &own.sql("select count(*) from '$many/*.parquet' where id >= 0")
                .unwrap(),
        )
    };
    assert_eq!(count(), ["16000"]);
    parquet(
        &directory.path().join("many/9.parquet"),
        &batch(0, 7),
        100,
        Compression::SNAPPY,
    );
    assert_eq!(count(), ["16007"]);
    std::fs::remove_file(directory.path().join("many/0.parquet")).unwrap();
    assert_eq!(count(), ["12007"]);
}

/// A failure that names the file.
fn is_told(found: sql::Result<Answer>, path: &Path) {
    match found {
        Err(Error::File {
            path: named,
            message,
        }) => {
            assert_eq!(named, path);
            assert!(!message.contains('\n'), "{message}");
        }
        Err(e) => panic!("{e:?}"),
        Ok(answer) => panic!("{:?}", rows(&answer)),
    }
}

fn executors(directory: &Arc<tempfile::TempDir>) -> [Fixture; 2] {
    [Executor::Fused, Executor::Stream].map(|executor| Fixture::new(directory, executor, None))
}

const ALL: &str =
    "select count(mode), sum(price), max(name), sum(id), max(share), max(wide) from 'F'";

#[test]
fn files_that_are_cut_off_are_named() {
    let directory = directory();
    let bytes = std::fs::read(directory.path().join("t.parquet")).unwrap();
    for own in executors(&directory) {
        for left in [0, 3, 11, bytes.len() / 2, bytes.len() - 1] {
            let path = directory.path().join("cut.parquet");
            std::fs::write(&path, &bytes[..left]).unwrap();
            is_told(own.sql(&ALL.replace('F', "$cut.parquet")), &path);
        }
        // One of several, the middle of which was lost while the footer stayed.
        let path = directory.path().join("many/3.parquet");
        let whole = std::fs::read(&path).unwrap();
        let hole = [
            &whole[..4],
            &vec![0xff; whole.len() / 2][..],
            &whole[4 + whole.len() / 2..],
        ]
        .concat();
        std::fs::write(&path, hole).unwrap();
        is_told(own.sql(&ALL.replace('F', "$many/*.parquet")), &path);
        std::fs::write(&path, whole).unwrap();
    }
}

#[test]
fn wrong_cells_are_named() {
    let directory = directory();
    // The type of a column is found in the first rows.
    let mut text: String = (0..150_000).map(|i| format!("{i},{}\n", i % 7)).collect();
    text.insert_str(0, "id,kind\n");
    text.push_str("150000,seven\n");
    let path = directory.path().join("wrong.csv");
    std::fs::write(&path, text).unwrap();
    for own in executors(&directory) {
        is_told(
            own.sql("select kind, sum(id) from '$wrong.csv' group by kind"),
            &path,
        );
        let found = own
            .sql("select kind, sum(id) from '$wrong.csv' group by kind")
            .unwrap_err();
        assert!(found.to_string().contains("seven"), "{found}");
    }
}

/// Whatever is flipped: an answer, or a failure that names the file; nothing else, and no end without either.
#[test]
fn flipped_bits_do_no_harm() {
    let directory = directory();
    let path = directory.path().join("flipped.parquet");
    let both = executors(&directory);
    for compression in [Compression::SNAPPY, Compression::UNCOMPRESSED] {
        parquet(&path, &batch(0, 2_000), 1_000, compression);
        let whole = std::fs::read(&path).unwrap();
        for own in &both {
            let mut failed = 0;
            for at in (0..whole.len()).step_by(whole.len() / 60) {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << (at % 8);
                std::fs::write(&path, bytes).unwrap();
                match own.sql(&ALL.replace('F', "$flipped.parquet")) {
                    Ok(_) => {}
                    Err(Error::File { path: named, .. }) if named == path => failed += 1,
                    // A footer that is another may be one of other columns.
                    Err(Error::UnknownColumn { .. } | Error::Invalid { .. }) => failed += 1,
                    // Sums of other values may be too great.
                    Err(Error::Arithmetic { .. }) => {}
                    Err(e) => panic!("byte {at}: {e:?}"),
                }
            }
            println!("{compression:?}: {failed} failed");
        }
    }
}

#[test]
fn the_next_statement_sees_another_file() {
    let directory = directory();
    let path = directory.path().join("t.parquet");
    for own in executors(&directory) {
        let first = rows(&own.sql(&ALL.replace('F', "$t.parquet")).unwrap());
        parquet(&path, &batch(5, 20_000), 2_000, Compression::SNAPPY);
        let second = rows(&own.sql(&ALL.replace('F', "$t.parquet")).unwrap());
        assert_ne!(first, second);
        parquet(&path, &batch(0, 20_000), 3_000, Compression::SNAPPY);
        assert_eq!(
            first,
            rows(&own.sql(&ALL.replace('F', "$t.parquet")).unwrap())
        );
    }
}
