//! The queries of the authors' scripts by the real program on this machine, its threads placed from outside.

use std::path::Path;
use std::process::{Command, Stdio};

use placement::apply::{Options, run};
use placement::{Placement, Site, Strategy, Threads};
use report::{Cell, Sample, Table, Unit};
use serde::Serialize;
use serde_json::json;
use topology::Machine;

use super::section::{Section, step};
use super::work::{Query, of_the_scripts};
use crate::desk::Desk;
use crate::error::{Error, Result};

/// Chunks of the array.
const CHUNKS: u64 = 21;
/// Threads of the program that start before those that compute: its main thread, which waits.
const FIRST: usize = 1;

/// What is timed.
pub(super) struct Times {
    /// Bytes of the array.
    pub bytes: u64,
    /// Runs of each query under each strategy.
    pub runs: usize,
}

/// A query under a strategy.
#[derive(Clone, Debug, Serialize)]
struct Timed {
    query: &'static str,
    afl: String,
    strategy: String,
    /// Of the whole command, from its start to its end.
    seconds: Sample,
}

impl Times {
    /// Makes the array, and runs each query under each strategy in turn.
    ///
    /// # Errors
    /// [`Error::Given`] without the program, [`Error::Drive`] where it fails, those of placing.
    pub(super) fn section(&self, desk: &mut Desk<'_>) -> Result<Section> {
        let program = desk.database.clone().ok_or_else(|| Error::Given {
            why: "--gib times Atoll's own program: use atoll lab arrays".to_owned(),
        })?;
        let folder = tempfile::tempdir().map_err(|source| Error::Write {
            path: std::env::temp_dir(),
            source,
        })?;
        let store = folder.path().join("shots.atoll");
        let sides = sides(self.bytes);
        step(
            desk,
            &format!("an array of {CHUNKS} chunks of {sides:?} cells"),
        )?;
        let mut load = Command::new(&program);
        let chunk = sides.map(|side| side.to_string()).join(",");
        load.args(["load", "seismic"])
            .arg(&store)
            .args(["--trials", "--name", "shots"]);
        load.args(["--chunks", &CHUNKS.to_string(), "--chunk", &chunk]);
        finished(&program, load.stdout(Stdio::null()).stderr(Stdio::piped()))?;

        let site = Site::new(&Machine::live()?);
        let threads = site.cpus();
        let strategies = strategies(&site, threads)?;
        let mut all = Vec::new();
        for query in of_the_scripts(CHUNKS, sides) {
            step(desk, &format!("{}: {}", query.name, query.afl))?;
            let mut seconds = vec![Sample::default(); strategies.len()];
            for round in 0..=self.runs {
                for ((_, placement), sample) in strategies.iter().zip(&mut seconds) {
                    let time = ask(&program, &store, &query, threads, placement)?;
                    // The first round fills the system's cache.
                    if round > 0 {
                        sample.push(time);
                    }
                }
                step(desk, "")?;
            }
            all.extend(
                strategies
                    .iter()
                    .zip(seconds)
                    .map(|((strategy, _), seconds)| Timed {
                        query: query.name,
                        afl: query.afl.clone(),
                        strategy: strategy.clone(),
                        seconds,
                    }),
            );
        }
        Ok(self.shown(&site, threads, &all))
    }

    fn shown(&self, site: &Site, threads: usize, all: &[Timed]) -> Section {
        let mut table = Table::new(["query", "strategy", "median", "least", "most", "variation"]).caption(
            "Times of the whole command, its start and the opening of the store included, on the machine at hand: they say nothing of the machines above.",
        );
        for timed in all {
            let (least, most) = timed.seconds.range();
            table.row([
                Cell::from(timed.query),
                Cell::from(timed.strategy.as_str()),
                Cell::number(timed.seconds.median(), Unit::Seconds),
                Cell::number(least, Unit::Seconds),
                Cell::number(most, Unit::Seconds),
                Cell::number(timed.seconds.variation(), Unit::Share),
            ]);
        }
        let nodes = site.machine().nodes().len();
        Section {
            key: "times".to_owned(),
            heading: "Times on this machine".to_owned(),
            texts: vec![format!(
                "The queries of the authors' scripts in AFL over an array of {} in {CHUNKS} chunks, by atoll afl with {threads} threads, which the lab places from outside as atoll pin does. {} runs of each, which take turns. This machine has {nodes} node{}.",
                Unit::Bytes.show(self.bytes as f64),
                self.runs,
                if nodes == 1 {
                    ": no strategy can change what is remote"
                } else {
                    "s"
                },
            )],
            tables: vec![table],
            plots: Vec::new(),
            raw: json!({ "machine": site.machine(), "timed": all }),
        }
    }
}

/// The sides of a chunk in the proportions of the scripts, of floats.
fn sides(bytes: u64) -> [u64; 3] {
    let cells = (bytes / 4 / CHUNKS) as f64;
    let long = (cells * 2.0).cbrt().round().max(2.0);
    [(long / 2.0).round().max(1.0), long, long].map(|side| side as u64)
}

/// The strategies that place threads here, with a placement of all threads.
fn strategies(site: &Site, threads: usize) -> Result<Vec<(String, Placement)>> {
    let groups = Threads::in_groups(threads, site.cache_sets().len().min(threads))?;
    let mut all = Vec::new();
    for strategy in [
        Strategy::Os,
        Strategy::Compact,
        Strategy::Sparse,
        Strategy::Shared,
    ] {
        match strategy.place(site, &groups) {
            Ok(placement) => all.push((strategy.to_string(), placement)),
            Err(placement::Error::GroupTooLarge { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(all)
}

/// The seconds of a query.
fn ask(
    program: &Path,
    store: &Path,
    query: &Query,
    threads: usize,
    placement: &Placement,
) -> Result<f64> {
    let mut command = Command::new(program);
    command.arg("afl").arg(store).arg(&query.afl);
    command.args([
        "--analyze",
        "--affinity",
        "off",
        "--threads",
        &threads.to_string(),
    ]);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let options = Options {
        skip: FIRST,
        ..Options::default()
    };
    let ran = run(&mut command, placement, options, |_| {}, || false)?;
    if ran.status.success() {
        return Ok(ran.time.as_secs_f64());
    }
    Err(Error::Drive {
        program: program.display().to_string(),
        why: format!("{}: {}", query.afl, ran.status),
    })
}

/// Runs a command to its end.
fn finished(program: &Path, command: &mut Command) -> Result<()> {
    let wrong = |why: String| Error::Drive {
        program: program.display().to_string(),
        why,
    };
    let output = command.output().map_err(|error| wrong(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(wrong(said.lines().last().unwrap_or("it failed").to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_have_the_proportions_of_the_scripts() {
        let [x, y, z] = sides(21 * 251 * 501 * 501 * 4);
        assert!(
            (250..=252).contains(&x) && (500..=502).contains(&y) && y == z,
            "{x} {y}"
        );
        assert_eq!(sides(0), [1, 2, 2]);
    }
}
