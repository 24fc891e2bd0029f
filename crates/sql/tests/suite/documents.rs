//! Parts of random documents: what the engine finds in one walk is what DataFusion's operators find one by one.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use fastrand::Rng;

use crate::fixture;
use crate::peer::Peer;

const KEYS: [&str; 6] = ["a", "b", "ab", "é", "q\\\"", "longer key"];

/// A JSON value, at most so deep.
fn value(rng: &mut Rng, depth: usize) -> String {
    match rng.usize(0..if depth == 0 { 6 } else { 11 }) {
        0 => "null".into(),
        1 => rng.i64(-50..50).to_string(),
        2 => [
            "1e2",
            "-0.50",
            "123456789012345678901234567890",
            "true",
            "false",
        ][rng.usize(0..5)]
        .into(),
        3 => [
            "\"\"",
            "\"x\"",
            "\"a \\\"quoted\\\" text\"",
            "\"\\u0061\\\\\"",
            "\"]}\\\\\"",
        ][rng.usize(0..5)]
        .into(),
        4 => format!(
            "\"{}\"",
            "a longer text that fills blocks, ".repeat(rng.usize(0..12))
        ),
        5 => ["\"7\"", "\" 12 \"", "\"é\""][rng.usize(0..3)].into(),
        6 => {
            let items: Vec<String> = (0..rng.usize(0..4))
                .map(|_| value(rng, depth - 1))
                .collect();
            format!("[{}]", items.join(", "))
        }
        _ => {
            let members: Vec<String> = (0..rng.usize(0..7))
                .map(|_| {
                    let key = KEYS[rng.usize(0..KEYS.len())];
                    let blank = [" ", "", "\n"][rng.usize(0..3)];
                    format!("\"{key}\"{blank}:{blank}{}", value(rng, depth - 1))
                })
                .collect();
            format!("{{{}}}", members.join(","))
        }
    }
}

/// A part of a document in column `of`: as a text, if it is asked for.
fn part(rng: &mut Rng, of: &str, as_text: bool) -> String {
    let keys = ["a", "b", "ab", "é", "q\"", "longer key", "none"];
    let mut part = of.to_string();
    let steps = rng.usize(1..4);
    for step in 0..steps {
        let operator = if as_text && step + 1 == steps {
            "->>"
        } else {
            "->"
        };
        part += &format!(" {operator} '{}'", keys[rng.usize(0..keys.len())]);
    }
    format!("({part})")
}

/// A question whether documents in column `of`, or parts of them, contain a constant or are contained in it.
fn contains(rng: &mut Rng, of: &str) -> String {
    let document = match rng.usize(0..2) {
        0 => format!("({of})"),
        _ => part(rng, of, false),
    };
    let key = |rng: &mut Rng| KEYS[rng.usize(0..KEYS.len())];
    let constant = match rng.usize(0..6) {
        0 => value(rng, 2),
        1 => ["{}", "[]", "null"][rng.usize(0..3)].to_string(),
        2 => format!("{{\"{}\": {{}}, \"{}\": {{}}}}", key(rng), key(rng)),
        3 => format!(
            "{{\"{}\": {{\"{}\": {}}}}}",
            key(rng),
            key(rng),
            value(rng, 1)
        ),
        4 => format!(
            "{{\"{}\": {}, \"{}\": []}}",
            key(rng),
            value(rng, 0),
            key(rng)
        ),
        _ => format!("{{\"{}\": {}}}", key(rng), value(rng, 0)),
    };
    let cast = if of == "k" { "::jsonb" } else { "" };
    match rng.usize(0..4) {
        0 => format!("'{constant}' <@ {document}{cast}"),
        1 => format!("not {document}{cast} @> '{constant}'"),
        _ => format!("{document}{cast} @> '{constant}'"),
    }
}

/// A query of parts of one column.
fn query(rng: &mut Rng) -> String {
    let of = ["j", "k"][rng.usize(0..2)];
    let text = |rng: &mut Rng| part(rng, of, true);
    let shown: Vec<String> = (0..rng.usize(1..6))
        .map(|_| match rng.usize(0..7) {
            0 => format!("{}::text", part(rng, of, false)),
            1 => format!("length({})", text(rng)),
            2 => format!(
                "case when {} = 'x' then {} else {} end",
                text(rng),
                text(rng),
                text(rng)
            ),
            3 => format!("coalesce({}, {}, 'none')", text(rng), text(rng)),
            4 => contains(rng, of),
            5 => format!(
                "case when {} then {} end",
                contains(rng, of),
                contains(rng, of)
            ),
            _ => text(rng),
        })
        .collect();
    let tests: Vec<String> = (0..rng.usize(0..3))
        .map(|_| match rng.usize(0..8) {
            0 => format!("{} = 'x'", text(rng)),
            1 => format!("'x' <> {}", text(rng)),
            2 => format!("{} in ('x', '7', 'true', '')", text(rng)),
            3 => format!("{} is not null", text(rng)),
            4 => format!("{} not in ('x', 'a\"quoted\" text')", text(rng)),
            5..7 => contains(rng, of),
            _ => format!("{} < 'm'", text(rng)),
        })
        .collect();
    let tests = match &tests[..] {
        [] => String::new(),
        tests => format!(" where {}", tests.join([" and ", " or "][rng.usize(0..2)])),
    };
    match rng.usize(0..3) {
        0 => format!("select {} as g, count(*), count(distinct {}), max({}) from t{tests} group by 1 order by 1", text(rng), text(rng), text(rng)),
        1 => format!("select t.id, o.id, {} from t join (select id, j as other from t) o on o.id = t.id + 1 and (other ->> 'a') is distinct from 'x'{tests} order by t.id", shown.join(", ")).replace("(j", "(t.j").replace("(k", "(t.k"),
        _ => format!("select id, {} from t{tests} order by id", shown.join(", ")),
    }
}

/// A database, and what is asked of it.
struct Asked {
    workers: Arc<workers::Workers>,
    session: sql::Session,
    _directory: tempfile::TempDir,
}

impl Asked {
    fn new() -> Asked {
        let (workers, directory) = (fixture::workers(), tempfile::tempdir().unwrap());
        let options = sql::Options::spilling_to(directory.path());
        let path = directory.path().join("d.atoll");
        let store = store::Options::default();
        let instance = fixture::instance(&workers, &path, 256 << 20, store, options);
        Asked {
            workers,
            session: instance.session(),
            _directory: directory,
        }
    }

    /// The rows of a statement, a line each.
    fn lines(&self, text: &str) -> String {
        let answers = self.workers.handle().block_on(self.session.execute(text));
        match answers {
            Ok(mut answers) => lines(&answers.pop().unwrap().batches),
            Err(e) => panic!("{text}: {e}"),
        }
    }

    /// The same of a query that DataFusion's operators run.
    fn lines_of_peer(&self, peer: &Peer, text: &str) -> String {
        let found = peer.answer(&self.session, text);
        match self.workers.handle().block_on(found) {
            Ok((_, batches)) => lines(&batches),
            Err(e) => panic!("{text}: {e}"),
        }
    }
}

fn lines(batches: &[RecordBatch]) -> String {
    let format = FormatOptions::default().with_null("NULL");
    let mut lines = Vec::new();
    for batch in batches {
        let columns = batch.columns().iter();
        let columns = columns.map(|column| ArrayFormatter::try_new(column, &format).unwrap());
        let columns: Vec<_> = columns.collect();
        for row in 0..batch.num_rows() {
            let values = columns.iter().map(|column| column.value(row).to_string());
            lines.push(values.collect::<Vec<_>>().join("|"));
        }
    }
    lines.join("\n")
}

/// The rows of statements over a new database.
fn answers(statements: &[String]) -> Vec<String> {
    let asked = Asked::new();
    let run = |text: &String| asked.lines(text);
    statements.iter().map(run).collect()
}

/// Tables of random documents, in 400 rows.
fn tables(rng: &mut Rng, name: &str) -> Vec<String> {
    let row = |id| {
        let document = if rng.usize(0..20) == 0 {
            "null".to_string()
        } else {
            format!("'{}'", value(rng, 4))
        };
        format!("({id}, {document}, {document})")
    };
    let rows: Vec<String> = (0..400).map(row).collect();
    vec![
        format!("create table {name} (id int, j jsonb, k json)"),
        format!("insert into {name} values {}", rows.join(", ")),
    ]
}

/// That both engines find the same, after some statements.
fn compare(before: &[String], queries: &[String]) {
    let (asked, peer) = (Asked::new(), Peer::new());
    for statement in before {
        asked.lines(statement);
    }
    for query in queries {
        assert_eq!(
            asked.lines(query),
            asked.lines_of_peer(&peer, query),
            "{query}"
        );
    }
}

#[test]
fn parts_of_random_documents_are_those_that_are_found_one_by_one() {
    let mut rng = Rng::with_seed(7);
    let before = tables(&mut rng, "t");
    let queries: Vec<String> = (0..100).map(|_| query(&mut rng)).collect();
    compare(&before, &queries);
}

/// In a block, which keeps parts apart, with rows behind it that are in none.
#[test]
fn parts_that_are_kept_apart_are_those_of_the_documents() {
    let mut rng = Rng::with_seed(11);
    let mut statements = tables(&mut rng, "few");
    statements.push("create table t (id int, j jsonb, k json)".into());
    statements.push(
        "insert into t select id + 400 * n, j, k from few, generate_series(0, 40) as s(n)".into(),
    );
    statements.push("insert into t select id + 16400, k::jsonb, k from few".into());
    statements.push("delete from t where id % 3 = 0".into());
    let queries: Vec<String> = (0..30).map(|_| query(&mut rng)).collect();
    compare(&statements, &queries);
}

/// A query of parts that are kept apart does not read the documents; one of the documents does, and so does one of parts that few have.
#[test]
fn documents_are_not_read_for_what_is_kept_apart() {
    let statements = [
        "create table t (j jsonb)",
        "insert into t select jsonb_build_object('kind', 'k' || n % 5, 'at', n, 'text', repeat('long ', 50)) from generate_series(1, 20000) as s(n)",
        "explain select j ->> 'kind', max((j ->> 'at')::int) from t where j -> 'at' <> '7' group by 1",
        "explain select j from t where j ->> 'kind' = 'k1'",
        "explain select j ->> 'text' from t",
        "explain select j ->> 'kind' from t as o where exists (select 1 from t as i where i.j ->> 'at' = o.j ->> 'at')",
    ];
    let statements = statements.map(str::to_owned);
    let found = answers(&statements);
    let scans = |plan: &str| -> Vec<String> {
        let lines = plan.lines().map(str::trim);
        let scans = lines.filter(|line| line.starts_with("scan"));
        scans.map(str::to_owned).collect()
    };
    assert_eq!(
        scans(&found[2]),
        ["scan t (j -> 'at', j ->> 'kind', j ->> 'at')"]
    );
    let whole = scans(&found[3]);
    assert_eq!(whole, ["scan t (j, j ->> 'kind' in ('k1'))"]);
    assert_eq!(scans(&found[4]), ["scan t (j)"], "half of the bytes");
    let both = scans(&found[5]);
    assert!(
        both.len() == 2
            && both
                .iter()
                .all(|scan| !scan.contains("(j,") && !scan.contains("(j)")),
        "{both:?}"
    );
}
