//! Arrays in queries: a row for each cell, and no chunk is read that filters rule out.

use std::sync::Arc;

use array::{
    Array, Attribute, Block, Buffer, Column, DataType, Dimension, Layout, Metadata, Region, Scalar,
    Schema, Time, Writer,
};
use sql::{Answer, Executor};

use crate::answers::rows;
use crate::fixture;

const EXECUTORS: [Executor; 3] = [Executor::Fused, Executor::Stream, Executor::Staged];

struct Fixture {
    _directory: tempfile::TempDir,
    workers: Arc<workers::Workers>,
    instances: Vec<Arc<sql::Instance>>,
}

impl Fixture {
    /// Instances for each executor over stores that `fill` has filled.
    fn new(fill: impl Fn(&mut Writer)) -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let workers = fixture::workers();
        let instance = |executor: &Executor| {
            let mut store = store::Options::default();
            store.pool.bytes = 8 << 20;
            let path = directory.path().join(format!("{executor:?}.atoll"));
            let mut options = sql::Options::spilling_to(directory.path());
            options.executor = *executor;
            let instance = fixture::instance(&workers, &path, 1 << 30, store, options);
            let mut writer = Writer::begin(instance.store()).unwrap();
            fill(&mut writer);
            writer.commit().unwrap();
            instance
        };
        Fixture {
            instances: EXECUTORS.iter().map(instance).collect(),
            _directory: directory,
            workers,
        }
    }

    fn on(&self, instance: usize, text: &str) -> sql::Result<Answer> {
        let run = async { self.instances[instance].session().execute(text).await };
        let answers = self.workers.handle().block_on(run);
        answers.map(|mut all| all.pop().unwrap())
    }

    /// The rows that all executors give.
    fn rows(&self, text: &str) -> Vec<String> {
        let answers = (0..EXECUTORS.len()).map(|instance| {
            let answer = self.on(instance, text);
            rows(&answer.unwrap_or_else(|e| panic!("{text}: {e}")))
        });
        let answers: Vec<_> = answers.collect();
        assert!(
            answers.iter().all(|one| *one == answers[0]),
            "{text}: {answers:?}"
        );
        answers[0].clone()
    }
}

/// 6 latitudes from -25.426 on, 5 years from 2000 on: `t` is 10 times the latitude's number plus that of the year, `station`
/// is null in odd years.
fn temperature(writer: &mut Writer) {
    let dimensions = vec![
        Dimension::regular(
            "lat",
            "-25.426".parse().unwrap(),
            "0.001".parse().unwrap(),
            6,
        )
        .chunk(2),
        Dimension::integer("year", 2000, 5).chunk(2),
    ];
    let attributes = vec![
        Attribute::new("t", DataType::F64),
        Attribute::new("station", DataType::U8).nullable(),
    ];
    let schema = Schema::new(dimensions, attributes).unwrap();
    writer.create("temperature", &schema).unwrap();
    let t: Vec<f64> = (0..30).map(|at| f64::from(at / 5 * 10 + at % 5)).collect();
    let stations: Vec<u8> = (0..30).map(|at| 200 + at as u8).collect();
    let valid = (0..30u8).map(|at| u8::from(at % 5 % 2 == 0)).collect();
    let block = Block::new(
        Region::of_shape(&[6, 5]),
        vec![
            Some(Column::new(Buffer::of(DataType::F64, &t))),
            Some(Column::nullable(Buffer::of(DataType::U8, &stations), valid)),
        ],
    );
    futures::executor::block_on(writer.write("temperature", &block.unwrap())).unwrap();
}

#[test]
fn an_array_is_a_table_of_its_cells() {
    let fixture = Fixture::new(temperature);
    assert_eq!(fixture.rows("select count(*) from temperature"), ["30"]);
    assert_eq!(
        fixture.rows(
            "select lat, year, t, station from temperature where t in (0, 11, 54) order by t"
        ),
        [
            "-25.421|2004|54.0|229",
            "-25.425|2001|11.0|NULL",
            "-25.426|2000|0.0|200"
        ],
    );
    assert_eq!(
        fixture.rows("select year, avg(t) from temperature where lat between -25.425 and -25.423 group by year order by year"),
        ["2000|20.0", "2001|21.0", "2002|22.0", "2003|23.0", "2004|24.0"],
    );
    assert_eq!(
        fixture.rows("select sum(year), min(lat), max(lat), count(station) from temperature"),
        ["60060|-25.426|-25.421|18"],
    );
    assert_eq!(
        fixture.rows(
            "select year, count(*) from temperature where station is null group by 1 order by 1"
        ),
        ["2001|6", "2003|6"],
    );
    let joined = "select a.t - b.t from temperature a join temperature b on a.lat = b.lat and a.year = b.year + 1 \
        where a.year = 2003 and a.lat = -25.424";
    assert_eq!(fixture.rows(joined), ["1.0"]);
}

#[test]
fn filters_leave_out_chunks() {
    let fixture = Fixture::new(temperature);
    let chunks = |filter: &str| {
        let text = format!("explain select t from temperature where {filter}");
        let shown = rows(&fixture.on(0, &text).unwrap()).join("\n");
        let from = shown.find("chunks=").unwrap_or_else(|| panic!("{shown}"));
        let rest = &shown[from + 7..];
        rest[..rest.find(' ').unwrap()].parse::<usize>().unwrap()
    };
    // The array has 3 times 3 chunks.
    assert_eq!(chunks("true"), 9);
    assert_eq!(chunks("year = 2004"), 3);
    assert_eq!(chunks("lat < -25.425 and year < 2001"), 1);
    assert_eq!(
        chunks("lat between -25.425 and -25.423 and year >= 2002"),
        4
    );
    assert_eq!(chunks("year = 1999"), 0);
    // By the statistics of the attribute.
    assert_eq!(chunks("t > 53"), 1);
    assert_eq!(chunks("t < 12 and year > 2001"), 2);
    assert_eq!(
        fixture.rows("select count(*) from temperature where year = 1999"),
        ["0"]
    );
    // Neither dimension excludes anything by itself; both together leave 3 chunks and 3, one of them the same.
    assert_eq!(chunks("year = 2000 or lat = -25.421"), 5);
}

#[test]
fn what_an_array_is_not() {
    let fixture = Fixture::new(temperature);
    for text in [
        "insert into temperature values (1, 2, 3, 4)",
        "delete from temperature",
        "drop table temperature",
    ] {
        let error = fixture.on(0, text).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("temperature"), "{text}: {error}");
    }
    assert_eq!(fixture.rows("select count(*) from temperature"), ["30"]);
}

#[test]
fn cells_that_do_not_exist_are_no_rows() {
    let fixture = Fixture::new(|writer| {
        let dimensions = vec![
            Dimension::integer("x", -3, 1000).chunk(100),
            Dimension::integer("y", 0, 1000).chunk(100),
        ];
        let attributes = vec![Attribute::new("v", DataType::I64)];
        let schema = Schema::new(dimensions, attributes).unwrap();
        writer
            .create("few", &schema.with_layout(Layout::Sparse))
            .unwrap();
        let cells: Vec<_> = [(0, 0, 5), (999, 999, 7), (500, 3, -1)]
            .into_iter()
            .map(|(x, y, v)| (vec![x, y], vec![array::Scalar::Int(v)]))
            .collect();
        futures::executor::block_on(writer.update("few", &cells)).unwrap();
    });
    assert_eq!(
        fixture.rows("select x, y, v from few order by v"),
        ["-3|0|5", "497|3|-1", "996|999|7"],
    );
    assert_eq!(fixture.rows("select count(*) from few where v > 0"), ["2"]);
}

#[test]
fn operators_of_afl_are_tables() {
    let fixture = Fixture::new(temperature);
    for (text, expected) in [
        (
            "select year, avg_t from aggregate(temperature, avg(t), year) order by year",
            &[
                "2000|25.0",
                "2001|26.0",
                "2002|27.0",
                "2003|28.0",
                "2004|29.0",
            ][..],
        ),
        (
            "select count(*), max(r.m) from Regrid(temperature, 2, 5, max(t) as m) r where m > 20",
            &["2|54.0"],
        ),
        (
            "select lat, year, t from subarray('temperature', -25.424, 2001, -25.425, 2002) order by t",
            &["0|0|11.0", "0|1|12.0", "1|0|21.0", "1|1|22.0"],
        ),
        (
            "select count(*), sum(slice.t) from temperature a, slice(temperature, lat, -25.426) where slice.year = a.year",
            &["30|60.0"],
        ),
        (
            "select x, v from build(<v:int64>[x=0:3,2], x * 10) where v > 0 order by 1",
            &["1|10", "2|20", "3|30"],
        ),
        (
            "select count(*), count(station) from afl('filter(temperature, t > 20 and is_null(station))')",
            &["8|0"],
        ),
        (
            "select quantile, quantile_t from quantile(temperature, t, 0.25, 0.5)",
            &["0.25|12.25", "0.50|27.0"],
        ),
        (
            "select (select max(t) from scan(\"temperature\")), (select count(*) from filter(temperature, t > 100))",
            &["54.0|0"],
        ),
        // A transaction sees what it has made, and a view keeps the call.
        (
            "begin; create array q (x dimension [0:3], v integer); update q set v = x; select sum_v from aggregate(q, sum(v))",
            &["6"],
        ),
        (
            "create view hot as select t from filter(temperature, t > 50); select count(*) from hot",
            &["4"],
        ),
    ] {
        assert_eq!(fixture.rows(text), expected, "{text}");
    }
}

#[test]
fn what_is_called_like_an_operator_and_is_none_stays() {
    let fixture = Fixture::new(temperature);
    for (text, expected) in [
        (
            "select count(*) filter (where t > 20) from temperature",
            "19",
        ),
        (
            "select count(*) from temperature a cross join (select 1) b",
            "30",
        ),
        (
            "select max(t) over (partition by year order by lat) m from temperature order by m desc limit 1",
            "54.0",
        ),
        (
            "select sum(t) over w from temperature where year = 2000 window w as (order by lat) order by 1 limit 1",
            "0.0",
        ),
        ("select extract(year from date '2020-05-01')", "2020"),
        (
            "create table scan (a int, sort int); insert into scan (a, sort) values (1, 2); \
             select sort from scan where a in (1, 3) order by sort",
            "2",
        ),
        (
            "select count(*) from scan, \"scan\" s join scan(temperature) t on t.year = 2000, filter(temperature, t > 53)",
            "6",
        ),
    ] {
        assert_eq!(fixture.rows(text), [expected], "{text}");
    }
}

#[test]
fn wrong_operators_in_queries_are_said() {
    let fixture = Fixture::new(temperature);
    for (text, said) in [
        (
            "select * from regrid(nowhere, 2, 2, avg(t))",
            "no array 'nowhere'",
        ),
        (
            "select * from subarray(temperature, 1)",
            "2 dimensions need 4 bounds",
        ),
        ("select * from afl(1)", "afl takes a query of AFL as a text"),
        (
            "select * from afl('store(temperature, t)')",
            "this is no query",
        ),
        (
            "select * from scan(temperature) where nothing = 1",
            "nothing",
        ),
    ] {
        let error = fixture.on(0, text).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
    // What fails on the way is an error of the statement.
    let wrong = "select v from build(<v:int8>[x=0:9], x * 100)";
    for instance in 0..EXECUTORS.len() {
        let error = fixture.on(instance, wrong).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("does not hold"), "{error}");
    }
}

#[test]
fn a_query_for_coordinates_reads_no_page() {
    let fixture = Fixture::new(temperature);
    let pages = || {
        let store = fixture.instances[0].store();
        store.pool().statistics().loads
    };
    let before = pages();
    let answer = fixture.on(0, "select sum(year) from temperature").unwrap();
    assert_eq!(rows(&answer), ["60060"]);
    assert_eq!(pages(), before);
    let array = Array::open(&fixture.instances[0].store().snapshot(), "temperature").unwrap();
    assert_eq!(array.grid().chunks(), 9);
}

/// Days since 2000-01-01 as a list with 8 o'clock in it, and three cells of each: `v`; `seen`, hours since 2000-01-01, one of
/// them null; `read`, seconds since 1970 as a double, one of them NaN.
fn observations(writer: &mut Writer) {
    const EPOCH: i64 = 946_684_800_000_000;
    let days = ["0", "0.3333333333333333", "1", "10000"].map(|of| of.parse().unwrap());
    let dimensions = vec![Dimension::listed("day", days.to_vec()).chunk(1)];
    let attributes = vec![
        Attribute::new("v", DataType::F64),
        Attribute::new("seen", DataType::I32).nullable(),
        Attribute::new("read", DataType::F64),
    ];
    let mut metadata = Metadata::default();
    metadata.describe(None, vec![("title".to_owned(), "A sea".into())]);
    let units = |of: &str| vec![("units".to_owned(), of.into())];
    metadata.describe(Some("day"), units("days since 2000-01-01"));
    metadata.describe(Some("v"), units("K"));
    let time = |epoch, unit| Time::new(epoch, unit).unwrap();
    metadata.set_time("day", time(EPOCH, 86_400_000_000));
    metadata.set_time("seen", time(EPOCH, 3_600_000_000));
    metadata.set_time("read", time(0, 1_000_000));
    let schema = Schema::new(dimensions, attributes).unwrap();
    writer
        .create("obs", &schema.with_metadata(metadata))
        .unwrap();
    let float = Scalar::Float;
    let cells = [
        (1.5, Scalar::Int(0), float(0.25)),
        (2.5, Scalar::Null, float(f64::NAN)),
        (3.5, Scalar::Int(-1), float(-1.0)),
        (4.5, Scalar::Int(24), float(946_684_800.0)),
    ];
    let cells = cells.into_iter().zip(0..);
    let cells: Vec<_> = cells
        .map(|((v, seen, read), at)| (vec![at], vec![float(v), seen, read]))
        .collect();
    futures::executor::block_on(writer.update("obs", &cells)).unwrap();
}

#[test]
fn numbers_that_count_from_a_moment_are_timestamps() {
    let fixture = Fixture::new(observations);
    assert_eq!(
        fixture.rows("select day::text, seen::text, read::text, v from obs"),
        [
            "2000-01-01 00:00:00|2000-01-01 00:00:00|1970-01-01 00:00:00.25|1.5",
            "2000-01-01 08:00:00|NULL|NULL|2.5",
            "2000-01-02 00:00:00|1999-12-31 23:00:00|1969-12-31 23:59:59|3.5",
            "2027-05-19 00:00:00|2000-01-02 00:00:00|2000-01-01 00:00:00|4.5",
        ],
    );
    assert_eq!(
        fixture.rows("select pg_typeof(day)::text, pg_typeof(read)::text from obs limit 1"),
        ["timestamp without time zone|timestamp without time zone"],
    );
    assert_eq!(
        fixture.rows("select v from obs where day >= '2000-01-01 08:00' and day < '2000-01-03'"),
        ["2.5", "3.5"],
    );
    assert_eq!(
        fixture.rows("select count(*) from obs where read is null or seen < '2000-01-01'"),
        ["2"],
    );
    let text = "explain select v from obs where day = timestamp '2027-05-19'";
    let shown = rows(&fixture.on(0, text).unwrap()).join("\n");
    assert!(shown.contains("chunks=1 of 4"), "{shown}");
}

#[test]
fn times_are_written_as_numbers() {
    let fixture = Fixture::new(observations);
    for instance in 0..EXECUTORS.len() {
        for text in [
            "update obs set seen = timestamp '2000-01-01 05:00', read = '1970-01-01 00:00:01.5' where v = 2.5",
            "insert into obs values ('2000-01-01 08:00', 9.5, '2000-01-03', null)",
        ] {
            fixture.on(instance, text).unwrap();
        }
        for (text, said) in [
            (
                "update obs set seen = '2000-01-01 05:30'",
                "attribute 'seen' counts in units",
            ),
            (
                "insert into obs values ('2000-01-01 16:00', 1, null, null)",
                "dimension 'day' counts in units",
            ),
        ] {
            let error = fixture.on(instance, text).map(|_| ()).unwrap_err();
            assert!(error.to_string().contains(said), "{text}: {error}");
        }
    }
    assert_eq!(
        fixture.rows("select v, seen::text, read::text from obs where day = '2000-01-01 08:00'"),
        ["9.5|2000-01-03 00:00:00|NULL"],
    );
}

#[test]
fn numbers_beyond_all_times_are_errors() {
    let fixture = Fixture::new(|writer| {
        observations(writer);
        let cells = [(vec![0], vec![1.into(), 0.into(), Scalar::Float(1e300)])];
        futures::executor::block_on(writer.update("obs", &cells)).unwrap();
    });
    for instance in 0..EXECUTORS.len() {
        let error = fixture.on(instance, "select max(read) from obs");
        let error = error.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("timestamp out of range"), "{error}");
    }
    assert_eq!(fixture.rows("select count(v) from obs"), ["4"]);
    assert_eq!(
        fixture.rows("select count(*) from aggregate(obs, max(read))"),
        ["1"],
        "operators of AFL have numbers"
    );
}

#[test]
fn what_is_said_of_arrays_is_a_view() {
    let fixture = Fixture::new(observations);
    let all = "select table_name, column_name, attribute_name, attribute_value \
        from information_schema.array_attributes";
    assert_eq!(
        fixture.rows(all),
        [
            "obs|NULL|title|A sea",
            "obs|day|units|days since 2000-01-01",
            "obs|v|units|K",
        ],
    );
    fixture.rows("create version one of obs; update obs set v = 1; select count(*) from obs");
    assert_eq!(fixture.rows(all).len(), 3);
    assert_eq!(
        fixture.rows("select max(day)::text from \"obs@one\""),
        ["2027-05-19 00:00:00"],
    );
}
