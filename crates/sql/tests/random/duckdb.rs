//! DuckDB as the other engine, in a process of its own: `peer.py` beside this file.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::answer::Cell;
use crate::query::Query;
use crate::{Database, Outcome};

/// A Python that has the module `duckdb`: `$ATOLL_PYTHON`, the one of `bench/run`, or the system's.
fn python() -> Option<PathBuf> {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/.venv/bin/python");
    let given = std::env::var_os("ATOLL_PYTHON").map(PathBuf::from);
    let candidates = given.into_iter().chain([bench, PathBuf::from("python3")]);
    candidates.into_iter().find(|python| {
        let found = Command::new(python)
            .args(["-c", "import duckdb"])
            .stderr(Stdio::null())
            .status();
        found.is_ok_and(|status| status.success())
    })
}

/// A running DuckDB over copies of the tables.
pub struct Duck {
    process: Child,
    queries: ChildStdin,
    answers: BufReader<ChildStdout>,
    _folder: tempfile::TempDir,
}

impl Duck {
    /// `None` if there is no Python with DuckDB.
    pub(crate) fn start(database: &Database) -> Option<Duck> {
        let python = python()?;
        let folder = tempfile::tempdir().unwrap();
        for table in &database.tables {
            let path = folder.path().join(format!("{}.parquet", table.name));
            let copy = format!("copy {} to '{}'", table.name, path.display());
            match database.ours(&copy) {
                Outcome::Rows { .. } => {}
                other => panic!("{copy}: {other:?}"),
            }
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/random/peer.py");
        let mut process = Command::new(python)
            .arg(script)
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Some(Duck {
            queries: process.stdin.take().unwrap(),
            answers: BufReader::new(process.stdout.take().unwrap()),
            process,
            _folder: folder,
        })
    }

    /// The rows, or DuckDB's error.
    pub fn answer(&mut self, query: &str) -> Result<Vec<Vec<Cell>>, String> {
        assert!(!query.contains('\n'));
        writeln!(self.queries, "{query}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let answer: serde_json::Value =
            serde_json::from_str(&line).unwrap_or_else(|e| panic!("{query}: {e}: {line}"));
        if let Some(error) = answer["error"].as_str() {
            return Err(error.to_string());
        }
        let cell = |value: &serde_json::Value| match value {
            serde_json::Value::Null => Cell::Null,
            serde_json::Value::String(text) => Cell::Text(text.clone()),
            other => Cell::Float(other["float"].as_str().unwrap().parse().unwrap()),
        };
        let rows = answer["rows"].as_array().unwrap();
        Ok(rows
            .iter()
            .map(|row| row.as_array().unwrap().iter().map(cell).collect())
            .collect())
    }
}

impl Drop for Duck {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Whether DuckDB answers a query over the database as Atoll's own engine does; false without DuckDB.
pub(crate) fn arbiter(database: &Database) -> impl FnMut(&Query) -> bool {
    let mut duck = None;
    move |query| {
        let duck = duck.get_or_insert_with(|| Duck::start(database));
        let Some(duck) = duck else {
            eprintln!(
                "no DuckDB that could say who is right: run bench/run once, or set ATOLL_PYTHON"
            );
            return false;
        };
        let text = query.sql();
        match (database.ours(&text), duck.answer(&text)) {
            (Outcome::Rows { rows, .. }, Ok(expected)) => {
                difference(rows, expected, query).is_none()
            }
            _ => false,
        }
    }
}

/// How our answer differs from DuckDB's.
pub fn difference(
    mut rows: Vec<Vec<Cell>>,
    mut expected: Vec<Vec<Cell>>,
    query: &Query,
) -> Option<String> {
    let order: Vec<usize> = query.order.iter().map(|(at, _)| at - 1).collect();
    (rows, expected) = (plain(rows), plain(expected));
    align(&mut rows, &mut expected);
    crate::answer::difference(&rows, &expected, &order)
}

/// The rows with numbers written alike: DuckDB has other types for some results, and as many digits.
fn plain(rows: Vec<Vec<Cell>>) -> Vec<Vec<Cell>> {
    let number = |text: &str| -> Option<String> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let fraction = fraction.trim_end_matches('0');
        let sign =
            if text.starts_with('-') && (whole.contains(|c| c != '0') || !fraction.is_empty()) {
                "-"
            } else {
                ""
            };
        let point = if fraction.is_empty() { "" } else { "." };
        plain.then(|| format!("{sign}{whole}{point}{fraction}"))
    };
    let cell = |cell: Cell| match cell {
        Cell::Text(text) => Cell::Text(number(&text).unwrap_or(text)),
        other => other,
    };
    rows.into_iter()
        .map(|row| row.into_iter().map(cell).collect())
        .collect()
}

/// Makes columns floats that are floats in either answer.
fn align(one: &mut [Vec<Cell>], other: &mut [Vec<Cell>]) {
    let columns = one.first().or(other.first()).map_or(0, Vec::len);
    for column in 0..columns {
        let float = |row: &Vec<Cell>| matches!(row[column], Cell::Float(_));
        if !one.iter().chain(other.iter()).any(float) {
            continue;
        }
        for row in one.iter_mut().chain(other.iter_mut()) {
            if let Cell::Text(text) = &row[column]
                && let Ok(number) = text.parse()
            {
                row[column] = Cell::Float(number);
            }
        }
    }
}
