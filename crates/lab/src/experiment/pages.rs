//! Over which nodes pages spread and which threads move, with affinity on and off.

use std::collections::BTreeMap;

use clap::Args;
use report::{Bars, Cell, Report, Sample, Spread, Table, Unit};
use serde::Serialize;
use serde_json::json;

use crate::desk::Desk;
use crate::error::{Error, Result};
use crate::guest::Guest;
use crate::options::Options;
use crate::workload::database::{Databases, Engine, Q1};
use crate::workload::drive::{Look, OnNode, Thread, Told};

/// Not the machine of the text on memory mapping (rows M), which is `xeon-4657l`: of that 96 cpus would have to be emulated.
const MACHINE: &str = "opteron-8387";
/// Warm-up runs before the first look.
const WARM: usize = 1;

/// `pages`
#[derive(Args, Clone, Debug)]
pub struct Pages {
    /// The database
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Engine::Atoll)]
    pub engine: Engine,
    /// The databases under test
    #[command(flatten)]
    pub databases: Databases,
    /// Those of all experiments
    #[command(flatten)]
    pub options: Options,
}

/// What was seen under one setting.
#[derive(Clone, Debug, Serialize)]
struct Seen {
    affinity: &'static str,
    before: Look,
    after: Look,
}

impl Pages {
    pub(super) fn run(&self, desk: &mut Desk<'_>) -> Result<()> {
        let guest = Guest::new(&self.options, MACHINE, 512)?;
        // Only Atoll can be told; the others leave everything to the system.
        let settings: &[&'static str] = if self.engine == Engine::Atoll {
            &["on", "off"]
        } else {
            &["off"]
        };
        let mut all = Vec::with_capacity(settings.len());
        for affinity in settings {
            desk.progress(&format!(
                "{} Q1 with affinity {affinity}",
                self.engine.name()
            ));
            let mut task = self
                .databases
                .task(self.engine, guest.machine().cpus(), desk)?;
            if self.engine == Engine::Atoll {
                task.command
                    .extend(["--affinity", affinity].map(str::to_owned));
            }
            task.before = vec![Q1.to_owned(); WARM];
            task.statement = Q1.to_owned();
            task.times = self.options.runs();
            task.look = true;
            let (told, _) = guest.drive(&task, desk)?;
            all.push(seen(affinity, told)?);
        }
        let tables = [spread(&all), moves(&all)];
        let report = self.report(&guest, &all, &tables, &desk.command);
        desk.finish(
            &self.options.report("pages"),
            self.options.json,
            report,
            &[&tables[0], &tables[1]],
        )
    }

    fn report(&self, guest: &Guest, all: &[Seen], tables: &[Table; 2], command: &str) -> Report {
        let mut bytes = Bars::new("Data pages by node", "in memory", Unit::Bytes)
            .series(all.iter().map(|seen| format!("affinity {}", seen.affinity)));
        for node in nodes(all) {
            bytes.category(
                format!("node {node}"),
                all.iter().map(|seen| on(&seen.after, node).data as f64),
            );
        }
        let mut migrations = Spread::new(
            "Migrations of each thread",
            "moves to another cpu while the query ran",
            Unit::Count,
        )
        .from_zero();
        for seen in all {
            migrations.category(format!("affinity {}", seen.affinity), seen.migrations());
        }
        Report::new("Pages and threads with affinity on and off", command)
            .lead(format!("{} answers TPC-H Q1: over which nodes its mapped pages are spread, and how often its threads were moved.", self.engine.name()))
            .machine(guest.machine().clone())
            .emulated()
            .fact("Data", format!("TPC-H scale {}, hot, {} runs between the two looks", self.databases.scale, self.options.runs()))
            .section("Pages")
            .table(tables[0].clone())
            .plot(bytes)
            .section("Threads")
            .table(tables[1].clone())
            .plot(migrations)
            .results(json!(all))
    }
}

fn seen(affinity: &'static str, told: Told) -> Result<Seen> {
    match (told.before, told.after) {
        (Some(before), Some(after)) => Ok(Seen {
            affinity,
            before,
            after,
        }),
        _ => Err(Error::Count {
            why: "the program was not looked at".to_owned(),
        }),
    }
}

impl Seen {
    /// Migrations of each thread between the two looks, for threads that were seen in both.
    fn migrations(&self) -> Sample {
        self.moves().map(|(_, moves)| moves as f64).collect()
    }

    fn moves(&self) -> impl Iterator<Item = (&Thread, u64)> {
        self.after.threads.iter().filter_map(|thread| {
            let mut earlier = self.before.threads.iter();
            let first = earlier.find(|first| first.id == thread.id)?;
            let moves = thread.migrations?.saturating_sub(first.migrations?);
            Some((thread, moves))
        })
    }

    /// The names of threads that moved, each once, with the number of threads of that name.
    fn moved(&self) -> String {
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for (thread, _) in self.moves().filter(|(_, moves)| *moves > 0) {
            *names.entry(&thread.name).or_default() += 1;
        }
        let names = names
            .iter()
            .map(|(name, threads)| format!("{threads} {name}"));
        names.collect::<Vec<_>>().join(", ")
    }
}

/// All nodes that hold anything.
fn nodes(all: &[Seen]) -> Vec<u32> {
    let on = all.iter().flat_map(|seen| seen.after.nodes.iter());
    let mut nodes: Vec<u32> = on.map(|on| on.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

fn on(look: &Look, node: u32) -> OnNode {
    let found = look.nodes.iter().find(|on| on.node == node);
    found.copied().unwrap_or_default()
}

fn spread(all: &[Seen]) -> Table {
    let mut header = vec!["affinity".to_owned(), "pages of".to_owned()];
    header.extend(nodes(all).iter().map(|node| format!("node {node}")));
    header.push("fullest to mean".to_owned());
    let mut table = Table::new(header).caption("Mapped and in memory after the last run. Data: the program's own and shared memory; files: the program itself, mapped files, stacks.");
    for seen in all {
        for kind in ["data", "files"] {
            let bytes: Vec<f64> = nodes(all)
                .iter()
                .map(|node| {
                    let on = on(&seen.after, *node);
                    (if kind == "data" { on.data } else { on.files }) as f64
                })
                .collect();
            let mean = bytes.iter().sum::<f64>() / bytes.len().max(1) as f64;
            let most = bytes.iter().copied().fold(0.0, f64::max);
            let names = [Cell::from(seen.affinity), Cell::from(kind)];
            let cells = bytes.iter().map(|bytes| Cell::number(*bytes, Unit::Bytes));
            table.row(
                names
                    .into_iter()
                    .chain(cells)
                    .chain([Cell::number(most / mean, Unit::Ratio)]),
            );
        }
    }
    table
}

fn moves(all: &[Seen]) -> Table {
    let mut table = Table::new([
        "affinity",
        "threads",
        "migrations",
        "most of a thread",
        "threads that moved",
    ])
    .caption("Moves of threads to another cpu between the two looks, of the threads that were there at both and of which the kernel tells it; –: it tells none.");
    for seen in all {
        let moved = seen.migrations();
        let values = moved.values();
        // Where the kernel tells of no thread there is no sum.
        let sum = if values.is_empty() {
            f64::NAN
        } else {
            values.iter().sum()
        };
        table.row([
            Cell::from(seen.affinity),
            Cell::number(values.len() as f64, Unit::Count),
            Cell::number(sum, Unit::Count),
            Cell::number(moved.range().1, Unit::Count),
            Cell::from(seen.moved()),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(threads: &[(u32, &str, Option<u64>)]) -> Look {
        let thread = |(id, name, migrations): &(u32, &str, Option<u64>)| Thread {
            id: *id,
            name: (*name).to_owned(),
            migrations: *migrations,
        };
        let nodes = vec![OnNode {
            node: 2,
            data: 30,
            files: 1,
        }];
        Look {
            nodes,
            threads: threads.iter().map(thread).collect(),
        }
    }

    #[test]
    fn only_threads_that_were_there_all_the_time_are_counted() {
        let before = look(&[
            (1, "main", Some(5)),
            (2, "w", Some(0)),
            (3, "w", Some(7)),
            (5, "w", None),
        ]);
        let after = look(&[
            (1, "main", Some(5)),
            (2, "w", Some(4)),
            (3, "w", Some(8)),
            (4, "new", Some(9)),
            (5, "w", None),
        ]);
        let seen = Seen {
            affinity: "off",
            before,
            after,
        };
        assert_eq!(seen.migrations().values(), [0.0, 4.0, 1.0]);
        assert_eq!(seen.moved(), "2 w");
        let all = [seen];
        assert_eq!(spread(&all).rows()[0][2].as_str(), "30.0 B");
        let table = moves(&all);
        let row: Vec<&str> = table.rows()[0].iter().map(Cell::as_str).collect();
        assert_eq!(row, ["off", "3", "5", "4", "2 w"]);
        assert_eq!(
            table.header()[3..],
            ["most of a thread", "threads that moved"]
        );
    }

    #[test]
    fn moves_that_the_kernel_does_not_tell_are_no_zero() {
        let untold = look(&[(1, "main", None), (2, "w", None)]);
        let all = [Seen {
            affinity: "on",
            before: untold.clone(),
            after: untold,
        }];
        let table = moves(&all);
        let row: Vec<&str> = table.rows()[0].iter().map(Cell::as_str).collect();
        assert_eq!(row, ["on", "0", "–", "–", ""]);
    }
}
