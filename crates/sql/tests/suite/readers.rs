//! Files in queries: what `from 'file'`, `read_csv(...)` and `copy` take, and that statistics decide nothing wrongly.

use std::path::Path;
use std::sync::Arc;

use arrow::array::*;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use sql::{Answer, Executor};

use crate::answers::rows;
use crate::fixture;

const EXECUTORS: [Executor; 3] = [Executor::Fused, Executor::Stream, Executor::Staged];

struct Fixture {
    directory: tempfile::TempDir,
    workers: Arc<workers::Workers>,
    instances: Vec<Arc<sql::Instance>>,
}

impl Fixture {
    fn new() -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let workers = fixture::workers();
        let instance = |executor: &Executor| {
            let mut store = store::Options::default();
            store.pool.bytes = 8 << 20;
            let path = directory.path().join(format!("{executor:?}.atoll"));
            let mut options = sql::Options::spilling_to(directory.path());
            options.executor = *executor;
            fixture::instance(&workers, &path, 1 << 30, store, options)
        };
        Fixture {
            instances: EXECUTORS.iter().map(instance).collect(),
            directory,
            workers,
        }
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn on(&self, instance: usize, text: &str) -> sql::Result<Answer> {
        let text = text.replace('$', &format!("{}/", self.directory.path().display()));
        let run = async { self.instances[instance].session().execute(&text).await };
        let answers = self.workers.handle().block_on(run);
        answers.map(|mut all| all.pop().unwrap())
    }

    /// The rows that all executors give.
    fn rows(&self, text: &str) -> Vec<String> {
        let answers = (0..EXECUTORS.len()).map(|instance| {
            let answer = self
                .on(instance, text)
                .unwrap_or_else(|e| panic!("{text}: {e}"));
            rows(&answer)
        });
        let answers: Vec<_> = answers.collect();
        assert!(
            answers.windows(2).all(|two| two[0] == two[1]),
            "{text}: {answers:?}"
        );
        answers.into_iter().next().unwrap()
    }

    fn error(&self, text: &str) -> String {
        let error = self
            .on(1, text)
            .err()
            .unwrap_or_else(|| panic!("{text} gives rows"));
        error
            .to_string()
            .replace(&format!("{}/", self.directory.path().display()), "")
    }
}

fn parquet(path: &Path, batch: &RecordBatch, group: usize, statistics: EnabledStatistics) {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group))
        .set_statistics_enabled(statistics)
        .build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

/// Columns of two values a row group, whose least and greatest values say little of them.
fn floats() -> RecordBatch {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let values = [
        [Some(nan), Some(inf)],
        [Some(nan), Some(nan)],
        [Some(-0.0), Some(0.0)],
        [None, Some(-inf)],
        [Some(1.0), None],
        [Some(nan), Some(1.0)],
        [None, None],
        [Some(-nan), Some(-1.5)],
        [Some(1.0), Some(1.0)],
    ];
    let all: Vec<Option<f64>> = values.into_iter().flatten().collect();
    let narrow: Float32Array = all
        .iter()
        .map(|value| value.map(|value| value as f32))
        .collect();
    let ids = Int64Array::from_iter_values(0..all.len() as i64);
    let columns: [(&str, ArrayRef); 3] = [
        ("id", Arc::new(ids)),
        ("x", Arc::new(Float64Array::from(all))),
        ("y", Arc::new(narrow)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn statistics_of_floats_say_nothing_of_nan() {
    let fixture = Fixture::new();
    let path = |name: &str| fixture.directory.path().join(name);
    let batch = floats();
    // Nothing is known of the first; of the others row groups tell, and pages.
    parquet(&path("none.parquet"), &batch, 100, EnabledStatistics::None);
    parquet(&path("chunk.parquet"), &batch, 2, EnabledStatistics::Chunk);
    parquet(&path("page.parquet"), &batch, 2, EnabledStatistics::Page);
    parquet(&path("whole.parquet"), &batch, 100, EnabledStatistics::Page);
    for (number, row) in (0..batch.num_rows()).step_by(2).enumerate() {
        let name = format!("many{number}.parquet");
        parquet(
            &path(&name),
            &batch.slice(row, 2),
            100,
            EnabledStatistics::Page,
        );
    }
    let raw = fixture.rows("select id, x, y from '$page.parquet' where id < 2");
    assert_eq!(raw, ["0|NaN|NaN", "1|inf|inf"]);
    for query in [
        "select id, x, y from F",
        "select id from F where x > 5",
        "select id from F where x >= 'inf'::double",
        "select id from F where x > 'inf'::double",
        "select id from F where x = 'nan'::double",
        "select id from F where x <> 1",
        "select id from F where y <= 0",
        "select id from F where not (y < 3)",
        "select id from F where x = 0",
        "select id from F where x between -1 and 2",
        "select id from F where x in (1, 'nan'::double)",
        "select id from F where x is null and y is null",
        "select id from F where x is not null and id > 3",
        "select min(x), max(x), min(y), max(y), count(x) from F",
        "select min(x), max(x) from F where id >= 2",
        "select id from F order by x desc nulls last, id limit 5",
        "select id from F order by y nulls first, id limit 4",
        "select a.id, b.id from F a join F b on a.x = b.x where a.id < 6",
        "select a.id, count(*) from F a left join F b on a.y = b.y and b.id > 9 group by a.id",
    ] {
        for (instance, executor) in EXECUTORS.iter().enumerate() {
            let on = |file: &str| {
                let text = query.replace('F', &format!("'${file}'"));
                rows(
                    &fixture
                        .on(instance, &text)
                        .unwrap_or_else(|e| panic!("{text}: {e}")),
                )
            };
            let wanted = on("none.parquet");
            for file in [
                "chunk.parquet",
                "page.parquet",
                "whole.parquet",
                "many*.parquet",
            ] {
                assert_eq!(on(file), wanted, "{query} on {file}, {:?}", executor);
            }
        }
    }
}

#[test]
fn row_groups_are_left_out_by_what_is_known() {
    let fixture = Fixture::new();
    let path = fixture.directory.path().join("t.parquet");
    let ids = Int64Array::from_iter_values(0..1000);
    let texts = StringArray::from_iter_values((0..1000).map(|n| format!("{n:04}")));
    let columns: [(&str, ArrayRef); 2] = [("n", Arc::new(ids)), ("s", Arc::new(texts))];
    parquet(
        &path,
        &RecordBatch::try_from_iter(columns).unwrap(),
        100,
        EnabledStatistics::Page,
    );
    let plan = |text: &str| rows(&fixture.on(0, &format!("explain {text}")).unwrap()).join("\n");
    assert!(plan("select n from '$t.parquet' where n < 250").contains("groups=3 of 10"));
    assert!(
        plan("select n from '$t.parquet' where s >= '0850' and s < '0860'")
            .contains("groups=1 of 10")
    );
    for (filter, count) in [
        ("n < 250", "250"),
        ("s >= '0850'", "150"),
        ("n = 5 or s = '0999'", "2"),
        ("n > 5000", "0"),
        ("n is null", "0"),
    ] {
        assert_eq!(
            fixture.rows(&format!("select count(*) from '$t.parquet' where {filter}")),
            [count]
        );
    }
    fixture.write("h/k=1/a.csv", "n\n1\n");
    fixture.write("h/k=2/a.csv", "n\n2\n");
    assert!(plan("select n from '$h' where k = 2").contains("groups=1 of 2"));
    assert_eq!(fixture.rows("select n, k from '$h' where k = 2"), ["2|2"]);
    assert_eq!(
        fixture.rows("select count(*), sum(k), max(n) from '$h/*/*.csv'"),
        ["2|3|2"]
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a list of cases")]
fn functions_take_options() {
    let fixture = Fixture::new();
    fixture.write("a.dat", "id;'name';zip\n1;'a;''b';01234\n2;NA;-\n");
    let read = "read_csv('$a.dat', delim=';', header=true, quote='''', nullstr=['NA', '-'])";
    assert_eq!(
        fixture.rows(&format!("select * from {read}")),
        ["1|a;'b|01234", "2|NULL|NULL"]
    );
    assert_eq!(
        fixture.rows(&format!(
            "select t.id + 1 from {read} t where t.name is null"
        )),
        ["3"]
    );
    assert_eq!(fixture.rows(&format!("with c as (select * from {read}) select count(*) from c a, c b where a.id in (select id from {read})")), ["4"]);
    fixture.write("g.dat", "id;name;zip\n1;'a;01234\n2;NA;-\n");
    let typed = "read_csv('$a.dat', quote := '''', nullstr => '-', types = {'zip': 'int', 'ID': 'decimal(9,2)'})";
    assert_eq!(
        fixture.rows(&format!("select id, zip from {typed}")),
        ["1.00|1234", "2.00|NULL"]
    );
    assert_eq!(
        fixture.rows(
            "select count(*) from read_csv('$g.dat', types = 'zip varchar', delim=';', quote='')"
        ),
        ["2"]
    );
    fixture.write("b.dat", "{\"n\":1}\n{\"n\":2}\n");
    fixture.write("c.csv.gz", gzip(b"n\n3\n"));
    assert_eq!(
        fixture.rows("select sum(n) from read_json(['$b.dat', '$b.dat'])"),
        ["6"]
    );
    assert_eq!(
        fixture.rows("select n from '$c.csv.gz' union all select n from '$b.dat'"),
        ["1", "2", "3"]
    );
    fixture
        .on(1, "copy (select 1 as n, 'x' as s) to '$d.parquet'")
        .unwrap();
    fixture
        .on(1, "copy (select 2 as n, 'y' as s) to '$e.arrow'")
        .unwrap();
    assert_eq!(
        fixture.rows("select * from read_parquet('$d.parquet')"),
        ["1|x"]
    );
    assert_eq!(
        fixture.rows("select s, n from read_arrow('$e.arrow') where s = 'y'"),
        ["y|2"]
    );
    assert_eq!(
        fixture.rows("select upper(s) from '$[de].*' where s > 'a'"),
        ["X", "Y"]
    );
    fixture.write("f[1].csv", "n\n7\n");
    assert_eq!(fixture.rows("select n from '$f[1].csv'"), ["7"]);
    for (call, told) in [
        ("read_csv()", "read_csv takes the path of a file"),
        (
            "read_csv('$a.dat', colour='red')",
            "read_csv has no option colour; it has: delim, ",
        ),
        (
            "read_parquet('$d.parquet', delim=';')",
            "read_parquet has no option delim",
        ),
        (
            "read_csv('$a.dat', delim=';;')",
            "delim takes one ASCII character",
        ),
        ("read_csv('$a.dat', delim='''', quote='''')", "must differ"),
        ("read_csv('$a.dat', types={'nope': 'int'})", "\"nope\""),
        ("read_csv('$a.dat', types={'zip': 'nonsense'})", ""),
        ("read_csv('$missing.dat')", "missing.dat: no such file"),
        (
            "read_parquet('$a.dat')",
            "a.dat: is no readable Parquet file",
        ),
    ] {
        let error = fixture.error(&format!("select * from {call}"));
        assert!(
            error.contains(told) && !error.contains('\n'),
            "{call}: {error}"
        );
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn what_we_write_we_read() {
    let fixture = Fixture::new();
    let run = |text: &str| fixture.on(1, text).unwrap();
    run(
        "create table t (a int, b varchar, c decimal(8, 2), d date, e boolean, f double, g timestamp)",
    );
    run(
        "insert into t values (1, 'x,y', 1.25, '2020-01-02', true, 'nan'::double, '2020-01-02 03:04:05'), (2, 'say \"hi\"', -2.50, '1999-12-31', false, 'inf'::double, '1970-01-01'), (3, null, null, null, null, null, null)",
    );
    let wanted = rows(&run("select * from t"));
    for extension in ["parquet", "arrow", "json", "csv"] {
        run(&format!("copy t to '$t.{extension}'"));
        if matches!(extension, "parquet" | "arrow") {
            assert_eq!(
                rows(&run(&format!("select * from '$t.{extension}'"))),
                wanted,
                "{extension}"
            );
        }
        run(&format!(
            "create or replace table u as select * from t limit 0; copy u from '$t.{extension}'"
        ));
        assert_eq!(rows(&run("select * from u")), wanted, "{extension}");
    }
}

#[test]
fn a_copy_that_fails_leaves_what_was_there() {
    let fixture = Fixture::new();
    let names = || {
        let entries = std::fs::read_dir(fixture.directory.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.contains("atoll")).collect();
        names.sort();
        names
    };
    let path = |name: &str| fixture.directory.path().join(name);
    fixture
        .on(
            1,
            "create table t (a int); insert into t select * from generate_series(1, 200000)",
        )
        .unwrap();
    for extension in ["csv", "json", "parquet", "arrow"] {
        let name = format!("t.{extension}");
        fixture.write(&name, "what was before");
        let failing = format!("copy (select 1 / (a - 150000) as x from t) to '${name}'");
        let error = fixture.on(1, &failing).unwrap_err();
        assert_eq!(error.sqlstate(), "22012", "{extension}: {error}");
        assert_eq!(
            std::fs::read_to_string(path(&name)).unwrap(),
            "what was before"
        );
        assert_eq!(names(), [name.as_str()]);
        let copied = fixture.on(1, &format!("copy t to '${name}'")).unwrap();
        assert_eq!(copied.changed, Some(200_000));
        let count = fixture.on(1, &format!("select count(*), sum(a) from '${name}'"));
        assert_eq!(rows(&count.unwrap()), ["200000|20000100000"]);
        assert_eq!(names(), [name.as_str()]);
        std::fs::remove_file(path(&name)).unwrap();
    }
    // One that was not there is not made, and a name needs no extension.
    let failing = "copy (select 1 / (a - 5) as x from t) to '$new' (format csv)";
    fixture.on(1, failing).unwrap_err();
    assert_eq!(names(), [""; 0]);
    fixture.on(1, "copy t to '$new' (format csv)").unwrap();
    assert_eq!(names(), ["new"]);
}

#[test]
fn devices_and_pipes_get_rows_and_stay() {
    use std::os::unix::fs::FileTypeExt;
    let fixture = Fixture::new();
    let run = |text: &str| fixture.on(1, text);
    run("copy (select 1 as a) to '/dev/null' (format csv)").unwrap();
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    let full = run("copy (select 1 as a) to '/dev/full' (format csv)").unwrap_err();
    assert_eq!(full.sqlstate(), "53100", "{full}");

    let pipe = fixture.directory.path().join("pipe.csv");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let from = pipe.clone();
    let reader = std::thread::spawn(move || std::fs::read_to_string(from).unwrap());
    run("copy (select 1 as a, 'x' as b) to '$pipe.csv'").unwrap();
    assert_eq!(reader.join().unwrap(), "a,b\n1,x\n");
    assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
}
