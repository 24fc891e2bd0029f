//! What keys cost, and what they give: `cargo run --release -p atoll --example keys -- [ROWS] [ROUNDS]`.
//!
//! Loads the same rows into a table without a key that holds and into one with a primary key, in the order of the key and
//! not, in turn. Then asks for single rows by their keys, and changes single rows by `insert ... on conflict do update`,
//! each a statement of its own and durable; beside SQLite, if `python3` is there (WAL, `synchronous=full`), in turn.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use atoll::{Database, Options, Session};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Single statements of a round.
const SINGLE: usize = 200;

/// Times statements that come in lines, and answers each line of several with the median of their seconds.
const PEER: &str = r#"
import sqlite3, statistics, sys, time
rows, path = int(sys.argv[1]), sys.argv[2]
db = sqlite3.connect(path, isolation_level=None)
db.execute("pragma journal_mode = wal"); db.execute("pragma synchronous = full")
db.execute("create table t (id integer primary key, a integer, b real, s text)")
db.execute("begin")
db.executemany("insert into t values (?, ?, ?, ?)", ((n, n % 1000, n / 7, "text %d" % (n % 977)) for n in range(1, rows + 1)))
db.execute("commit")
print("ready", flush=True)
for line in sys.stdin:
    took = []
    for text in line.rstrip("\n").split(";"):
        begun = time.perf_counter()
        db.execute(text).fetchall()
        took.append(time.perf_counter() - begun)
    print(statistics.median(took), flush=True)
"#;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

struct Peer {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Peer {
    fn new(rows: usize, path: &std::path::Path) -> Option<Peer> {
        let mut command = Command::new("python3");
        command.args(["-c", PEER, &rows.to_string()]).arg(path);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let answers = BufReader::new(child.stdout.take()?);
        let mut peer = Peer { child, answers };
        (peer.line().ok()?.trim() == "ready").then_some(peer)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line)
    }

    fn run(&mut self, statements: &[String]) -> Result<f64> {
        let stdin = self.child.stdin.as_mut().ok_or("no pipe")?;
        writeln!(stdin, "{}", statements.join(";"))?;
        stdin.flush()?;
        Ok(self.line()?.trim().parse()?)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Loads the same rows with and without a primary key, in its order and in another; leaves the tables with keys.
fn loads(session: &Session, rows: usize, rounds: usize, out: &mut impl Write) -> Result<()> {
    let columns = "id bigint not null, a int, b double precision, s varchar";
    // The second has the same ids in another order: a prime beyond the number of rows, and one of its roots.
    for (name, id) in [("ordered", "n"), ("shuffled", "n * 48271 % 2147483647")] {
        session.sql(&format!(
            "create table {name} ({columns}); insert into {name} select {id}, n % 1000, n / 7.0, 'text ' || (n % 977) from generate_series(1, {rows}) as g(n)"
        ))?;
    }
    for source in ["ordered", "shuffled"] {
        let mut took = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for (key, constraint) in ["", ", primary key (id)"].into_iter().enumerate() {
                let table = format!("{source}_{key}");
                session.sql(&format!(
                    "create or replace table {table} ({columns}{constraint})"
                ))?;
                let begun = Instant::now();
                session.sql(&format!("insert into {table} select * from {source}"))?;
                took[key].push(begun.elapsed().as_secs_f64());
            }
        }
        let [plain, keyed] = took.map(median);
        let times = keyed / plain;
        writeln!(
            out,
            "load of {rows} rows, {source}: {plain:.2} s, with a primary key {times:.2} times that"
        )?;
    }
    Ok(())
}

/// Asks for single rows, and changes single rows, beside the peer.
fn singles(
    session: &Session,
    (rows, rounds): (usize, usize),
    mut peer: Option<Peer>,
    out: &mut impl Write,
) -> Result<()> {
    let mut state = 1_u64;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % rows + 1
    };
    for (what, table) in [
        ("select", "ordered_1"),
        ("upsert", "ordered_1"),
        ("select", "shuffled_1"),
        ("upsert", "shuffled_1"),
    ] {
        let (mut own, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let statement = |id: usize, table: &str| match what {
                "select" => format!("select * from {table} where id = {id}"),
                _ => format!(
                    "insert into {table} values ({id}, 1, 2.5, 'new') on conflict (id) do update set a = {table}.a + excluded.a"
                ),
            };
            let shuffled = table == "shuffled_1";
            let id = |n: usize| {
                if shuffled {
                    n * 48271 % 2_147_483_647
                } else {
                    n
                }
            };
            let ids: Vec<usize> = (0..SINGLE).map(|_| random()).collect();
            let mut single = Vec::new();
            for n in &ids {
                let text = statement(id(*n), table);
                let begun = Instant::now();
                session.sql(&text)?;
                single.push(begun.elapsed().as_secs_f64());
            }
            own.push(median(single));
            if let Some(peer) = &mut peer {
                let statements: Vec<String> = ids.iter().map(|n| statement(*n, "t")).collect();
                theirs.push(peer.run(&statements)?);
            }
        }
        let own = median(own);
        write!(out, "{what} of one row of {table}: {:.3} ms", own * 1e3)?;
        if theirs.is_empty() {
            writeln!(out, "; SQLite: NOT RUN, no python3")?;
        } else {
            writeln!(out, ", {:.1} times SQLite's", own / median(theirs))?;
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let rows: usize = arguments
        .next()
        .map_or(Ok(10_000_000), |text| text.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let database = Database::create(folder.path().join("keys.atoll"), &Options::default())?;
    let session = database.session();
    let mut out = std::io::stdout();
    loads(&session, rows, rounds, &mut out)?;
    let peer = Peer::new(rows, &folder.path().join("keys.sqlite"));
    singles(&session, (rows, rounds), peer, &mut out)
}
