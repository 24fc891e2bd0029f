//! Maps of all types: what is written comes back, from the store, from files of every format, and under each key.

use std::fmt::Write as _;
use std::sync::Arc;

use sql::Answer;

use crate::answers::rows;
use crate::fixture;

struct Fixture {
    directory: tempfile::TempDir,
    workers: Arc<workers::Workers>,
    instance: Arc<sql::Instance>,
}

impl Fixture {
    fn new() -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let workers = fixture::workers();
        let mut store = store::Options::default();
        store.pool.bytes = 8 << 20;
        let path = directory.path().join("maps.atoll");
        let options = sql::Options::spilling_to(directory.path());
        let instance = fixture::instance(&workers, &path, 1 << 30, store, options);
        Fixture {
            directory,
            workers,
            instance,
        }
    }

    fn try_sql(&self, text: &str) -> sql::Result<Answer> {
        let text = text.replace('$', &format!("{}/", self.directory.path().display()));
        let run = async { self.instance.session().execute(&text).await };
        let answers = self.workers.handle().block_on(run);
        answers.map(|mut all| all.pop().unwrap())
    }

    fn sql(&self, text: &str) -> Vec<String> {
        match self.try_sql(text) {
            Ok(answer) => rows(&answer),
            Err(error) => panic!("{error}\n{text}"),
        }
    }
}

/// Types of values, each with some of its constants.
const VALUES: [(&str, &[&str]); 17] = [
    ("boolean", &["true", "false"]),
    ("smallint", &["-32768", "0", "7"]),
    ("integer", &["-2147483648", "12", "0"]),
    ("bigint", &["9223372036854775807", "-1"]),
    ("ubigint", &["18446744073709551615", "0"]),
    ("real", &["1.5", "'-Infinity'", "'NaN'", "0.1"]),
    ("double precision", &["0.1", "-1e300", "'NaN'"]),
    ("numeric(9,2)", &["1.50", "-0.01", "1234567.89"]),
    (
        "numeric(60,3)",
        &[
            "123456789012345678901234567890123456789012345.678",
            "-0.001",
        ],
    ),
    (
        "text",
        &[
            "''",
            "'a'",
            "'with \"quotes\" and \\ back'",
            "'null'",
            "'a text that is long enough to be kept elsewhere'",
        ],
    ),
    ("bytea", &["'\\x00ff'", "''"]),
    ("date", &["'2024-02-29'", "'0044-03-15 BC'"]),
    (
        "timestamp",
        &["'2024-02-29 12:30:00.25'", "'1900-01-01 00:00:00'"],
    ),
    ("timestamptz", &["'2024-02-29 12:30:00+02'"]),
    ("time", &["'23:59:59.5'"]),
    ("uuid", &["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"]),
    ("integer[]", &["array[1,null,3]", "array[]::int[]"]),
];

/// Types of keys, each with constants that differ.
const KEYS: [(&str, &[&str]); 8] = [
    (
        "text",
        &[
            "'a'",
            "''",
            "'b \"c\"'",
            "'NULL'",
            "'a longer key than twelve bytes'",
        ],
    ),
    ("integer", &["1", "-5", "0", "2147483647"]),
    ("bigint", &["1", "-9223372036854775807", "0"]),
    ("boolean", &["true", "false"]),
    ("date", &["'2024-01-01'", "'1999-12-31'", "'2000-01-01'"]),
    ("numeric(9,2)", &["1.50", "-2.25", "0"]),
    ("double precision", &["1.5", "-2.25", "0"]),
    (
        "uuid",
        &[
            "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
            "'00000000-0000-0000-0000-000000000000'",
        ],
    ),
];

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }
}

/// A map: its entries, of which a value may be NULL; or none.
type Model<'m> = Option<Vec<(&'m str, Option<&'m str>)>>;

fn drawn<'m>(random: &mut Random, keys: &[&'m str], values: &[&'m str]) -> Model<'m> {
    if random.below(6) == 0 {
        return None;
    }
    let mut entries = Vec::new();
    for key in keys {
        if random.below(2) == 0 {
            let at = random.below(values.len() + 1);
            entries.push((*key, values.get(at).copied()));
        }
    }
    if random.below(2) == 0 {
        entries.reverse();
    }
    Some(entries)
}

fn literal(map: &Model<'_>, key: &str, value: &str) -> String {
    let Some(entries) = map else {
        return "null".into();
    };
    let of = |(k, v): &(&str, Option<&str>)| {
        format!(
            "cast({k} as {key}): cast({} as {value})",
            v.unwrap_or("null")
        )
    };
    let entries: Vec<String> = entries.iter().map(of).collect();
    format!("map {{{}}}", entries.join(", "))
}

#[test]
fn maps_of_all_types_come_back() {
    let fixture = Fixture::new();
    let mut random = Random(7);
    for (number, (value, values)) in VALUES.iter().enumerate() {
        // Each type of values with two types of keys.
        for at in [number % KEYS.len(), (number + 3) % KEYS.len()] {
            let (key, keys) = KEYS[at];
            let maps: Vec<Model<'_>> = (0..12).map(|_| drawn(&mut random, keys, values)).collect();
            round(&fixture, (key, keys), value, &maps);
        }
    }
}

fn round(fixture: &Fixture, (key, keys): (&str, &[&str]), value: &str, maps: &[Model<'_>]) {
    let what = format!("map({key}, {value})");
    for table in ["t", "u"] {
        fixture.sql(&format!(
            "drop table if exists {table}; create table {table} (id int, m {what}); select 1"
        ));
    }
    let mut inserts = String::new();
    for (id, map) in maps.iter().enumerate() {
        let _ = write!(
            inserts,
            "insert into t values ({id}, {}); ",
            literal(map, key, value)
        );
    }
    fixture.sql(&format!("{inserts} select 1"));
    let nulls = maps.iter().filter(|map| map.is_none()).count();
    let counts = fixture.sql("select count(*), count(m), count(*) filter (where m is null) from t");
    let wanted = format!("{}|{}|{nulls}", maps.len(), maps.len() - nulls);
    assert_eq!(counts, [wanted], "{what}");
    // Under each key, what was written there.
    for (id, map) in maps.iter().enumerate() {
        for own in keys {
            let there = map
                .as_ref()
                .and_then(|map| map.iter().find(|entry| entry.0 == *own));
            let wanted = there.and_then(|entry| entry.1).unwrap_or("null");
            // The text of bytes that are no UTF-8 is refused.
            let text = if value == "bytea" { "" } else { "::text" };
            let found = fixture.sql(&format!(
                "select (m[cast({own} as {key})]){text} is not distinct from (cast({wanted} as {value})){text} and \
                 coalesce(map_contains(m, cast({own} as {key})), false) = {} from t where id = {id}",
                there.is_some()
            ));
            assert_eq!(found, ["true"], "{what} {map:?} {own}");
        }
        let length = map
            .as_ref()
            .map_or("NULL".to_string(), |map| map.len().to_string());
        assert_eq!(
            fixture.sql(&format!("select cardinality(m) from t where id = {id}")),
            [length]
        );
    }
    let same = "select count(*) from t join u on t.id = u.id where t.m::text is not distinct from u.m::text and coalesce(t.m = u.m, t.m is null and u.m is null)";
    let all = [maps.len().to_string()];
    // As a whole, by its text, and by files.
    fixture.sql("insert into u select id, m from t; select 1");
    assert_eq!(fixture.sql(same), all, "{what}");
    fixture.sql(&format!(
        "delete from u; insert into u select id, m::text::{what} from t; select 1"
    ));
    assert_eq!(fixture.sql(same), all, "{what} by its text");
    for format in ["parquet", "arrow", "csv"] {
        fixture.sql(&format!(
            "delete from u; copy t to '$m.{format}'; copy u from '$m.{format}'; select 1"
        ));
        assert_eq!(fixture.sql(same), all, "{what} by {format}");
        std::fs::remove_file(fixture.directory.path().join(format!("m.{format}"))).unwrap();
    }
}

#[test]
fn a_key_is_there_once_and_never_null() {
    let fixture = Fixture::new();
    for (text, part) in [
        ("select map {'a': 1, 'a': 2}", "the key a is there twice"),
        ("select map {0.0::float8: 1, '-0'::float8: 2}", "twice"),
        ("select map {null: 1}", "NULL"),
        ("select map(array[1, 2], array[1])", "as many of both"),
        ("select '{\"a\":1,\"a\":2}'::map(text, int)", "twice"),
        ("select map {array[1]: 1}", "keys of type"),
        ("create table k (m map(int[], int))", "keys of type"),
        (
            "create table k (m map(int, int) primary key)",
            "stand in no key",
        ),
        ("select map {'a': 1} < map {'a': 2}", "the order of maps"),
        (
            "select count(*) from (values (map {'a': 1})) v(m) group by m",
            "map_entries",
        ),
        (
            "select m from (values (map {'a': 1})) v(m) order by m",
            "map_entries",
        ),
        (
            "select distinct m from (values (map {'a': 1})) v(m)",
            "map_entries",
        ),
        ("select map {'a': 1} = 1", "does not exist"),
    ] {
        let error = fixture.try_sql(text).err();
        let error = error.unwrap_or_else(|| panic!("{text} is answered"));
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}
