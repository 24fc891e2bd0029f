//! Many sessions at the same time: `cargo run --release -p atoll --example sessions -- STORE [RUNS] [THREADS] [LIMIT_MIB]`,
//! with TPC-H in the store.
//!
//! The same work, [`ROUNDS`] times the 22 queries, done by 2, by 16 and by 64 sessions in turn, each with a thread of its
//! own that asks one query after the other. Shown for each number of sessions: the throughput against 2 sessions, and
//! how long sessions took by the time that their queries take alone, which tells whether one of them starved.

use std::error::Error;
use std::io::Write;
use std::time::Instant;

use atoll::{Database, Options, Session, tpch};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// How many times the 22 queries are run, by all sessions together.
const ROUNDS: usize = 32;
const SESSIONS: [usize; 3] = [2, 16, 64];

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Which queries a session asks: all together ask each query [`ROUNDS`] times, beginning at different ones.
fn share(session: usize, sessions: usize) -> Vec<usize> {
    let queries = tpch::QUERIES.len();
    let each = ROUNDS * queries / sessions;
    (0..each)
        .map(|at| (session * each + (at + session * 5) % each) % queries)
        .collect()
}

fn seconds(session: &Session, query: usize) -> Result<f64> {
    let begun = Instant::now();
    session.sql(tpch::QUERIES[query])?;
    Ok(begun.elapsed().as_secs_f64())
}

/// One number of sessions, over all runs.
#[derive(Default)]
struct Level {
    seconds: Vec<f64>,
    /// The least and the most that a session took, by what its queries take alone.
    least: Vec<f64>,
    most: Vec<f64>,
}

impl Level {
    fn run(&mut self, database: &Database, sessions: usize, alone: &[f64]) -> Result<()> {
        let begun = Instant::now();
        let slowdowns = std::thread::scope(|scope| {
            let running: Vec<_> = (0..sessions)
                .map(|number| {
                    scope.spawn(move || -> Result<f64> {
                        let session = database.session();
                        let queries = share(number, sessions);
                        let (mut took, mut would) = (0.0, 0.0);
                        for query in queries {
                            took += seconds(&session, query)?;
                            would += alone[query];
                        }
                        Ok(took / would)
                    })
                })
                .collect();
            running
                .into_iter()
                .map(|thread| thread.join().map_err(|_| "a session panicked")?)
                .collect::<Result<Vec<f64>>>()
        })?;
        self.seconds.push(begun.elapsed().as_secs_f64());
        self.least
            .push(slowdowns.iter().copied().fold(f64::MAX, f64::min));
        self.most
            .push(slowdowns.iter().copied().fold(0.0, f64::max));
        Ok(())
    }
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let store = arguments.next().ok_or("which store?")?;
    let runs: usize = arguments.next().map_or(Ok(5), |n| n.parse())?;
    let mut options = Options::read_only();
    options.threads = Some(arguments.next().map_or(Ok(2), |n| n.parse())?);
    options.memory_limit = match arguments.next() {
        Some(limit) => Some(limit.parse::<u64>()? << 20),
        None => options.memory_limit,
    };
    let database = Database::open(store, &options)?;
    let session = database.session();
    let queries = 0..tpch::QUERIES.len();
    let mut alone = Vec::new();
    for query in queries {
        let times: Result<Vec<f64>> = (0..4).map(|_| seconds(&session, query)).collect();
        alone.push(median(times?));
    }
    let mut levels: [Level; 3] = Default::default();
    for _ in 0..runs {
        for (level, sessions) in levels.iter_mut().zip(SESSIONS) {
            level.run(&database, sessions, &alone)?;
        }
    }
    let mut out = std::io::stdout().lock();
    let first = levels[0].seconds.clone();
    for (level, sessions) in levels.into_iter().zip(SESSIONS) {
        let against = first.iter().zip(&level.seconds).map(|(two, own)| two / own);
        let throughput = median(against.collect());
        let (seconds, least, most) = (
            median(level.seconds),
            median(level.least),
            median(level.most),
        );
        writeln!(
            out,
            "{sessions} sessions: {seconds:.2} s for {} queries, throughput {throughput:.2} of 2 sessions; a session took {least:.1} to {most:.1} times what its queries take alone",
            ROUNDS * alone.len()
        )?;
    }
    Ok(())
}
