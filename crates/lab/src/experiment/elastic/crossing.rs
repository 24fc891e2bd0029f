//! Accesses and threads that crossed between nodes on an emulated machine, and whether they are as few as the targets
//! demand.

use std::collections::BTreeMap;

use governor::Mode;
use report::{Cell, Sample, Table, Unit};
use topology::Machine;

use super::found::Found;
use super::modelled::Modelled;
use super::plan::Variant;
use super::trial::Trial;

/// The greatest remote share under the adaptive mode, relative to that under the operating system.
const SHARE: f64 = 0.25;

/// By what factor thread migrations between nodes must be fewer.
const MOVES: f64 = 5.0;

fn sample(trials: &[Trial], of: impl Fn(&Trial) -> f64) -> Sample {
    trials.iter().map(of).collect()
}

/// Migrations of threads to another node in the counted phase, as the kernel reports them; NaN if it does not.
fn node_moves(trials: &[Trial], machine: &Machine) -> f64 {
    let moves = |trial: &Trial| {
        let begun = trial.phases.last().map_or(0.0, |told| told.from);
        let Some(moves) = &trial.moves else {
            return f64::NAN;
        };
        let node = |cpu| machine.node_of_cpu(cpu);
        let later = moves.iter().filter(|one| one.time >= begun);
        later.filter(|one| node(one.from) != node(one.to)).count() as f64
    };
    sample(trials, moves).median()
}

/// Threads that were sampled on another node than before, in the counted phase; NaN if none was ever seen.
fn seen(trial: &Trial) -> f64 {
    if trial.lives.is_empty() {
        return f64::NAN;
    }
    let begun = trial.phases.last().map_or(0.0, |told| told.from);
    let mut last = BTreeMap::new();
    let mut moves = 0;
    for life in &trial.lives {
        let before = last.insert(life.thread, life.node);
        let moved = before.is_some_and(|node| node != life.node);
        moves += usize::from(moved && life.from >= begun);
    }
    moves as f64
}

/// Thread migrations and answered queries, for each number of clients and variant.
pub(super) fn moves(all: &[Found], machine: &Machine) -> Table {
    let mut table = Table::new(["clients", "variant", "moves between nodes", "seen", "migrations", "cores", "queries"])
        .caption("Moves of threads to another node, while accesses were counted: each that the kernel's scheduler made, and those seen by looking now and then; moves to another cpu that the kernel counted, of the whole run; cores at the end; queries answered while accesses were counted. Medians over the runs; –: the kernel did not tell. Nothing is said of energy: an emulated machine uses none.");
    for found in all {
        for trials in found.trials.iter().filter(|trials| !trials.is_empty()) {
            let migrations =
                |trial: &Trial| trial.migrations.map_or(f64::NAN, |count| count as f64);
            table.row([
                Cell::from(found.clients.to_string()),
                Cell::from(trials[0].variant.name()),
                Cell::number(node_moves(trials, machine), Unit::Count),
                Cell::number(sample(trials, seen).median(), Unit::Count),
                Cell::number(sample(trials, migrations).median(), Unit::Count),
                Cell::number(sample(trials, Trial::last_cores).median(), Unit::Count),
                Cell::number(sample(trials, Trial::last_queries).median(), Unit::Count),
            ]);
        }
    }
    table
}

/// What is asked of the adaptive mode where clients are so few that the `most` cores of a node are
/// enough.
pub(super) fn judged(all: &[Found], most: usize, machine: &Machine) -> Table {
    let mut table = Table::new(["clients", "asked for", "found", "met"]).caption(
        "Not judged where more cores than a node has are kept busy, what is read lies on several, or no thread moves at all.",
    );
    for found in all {
        let base = (&found.counted[0], &found.trials[0]);
        let few =
            sample(base.1, |trial| trial.used_seconds() / trial.seconds).median() <= most as f64;
        let adaptive = found
            .counted
            .iter()
            .zip(&found.trials)
            .filter(|(_, trials)| {
                let first = trials.first().map(|trial| trial.variant);
                matches!(
                    first,
                    Some(Variant::Governed(Mode::Adaptive, _) | Variant::Plain(Mode::Adaptive))
                )
            });
        for (counted, trials) in adaptive {
            let mut row = |asked: &str, found_in_words: String, met: Option<bool>| {
                table.row([
                    Cell::from(found.clients.to_string()),
                    Cell::from(format!("{}: {asked}", counted.variant)),
                    Cell::from(found_in_words),
                    match met {
                        Some(true) => Cell::from("yes"),
                        Some(false) => Cell::from("no").strong(),
                        None => Cell::from("not judged"),
                    },
                ]);
            };
            let (share, all_of) = (counted.share().median(), base.0.share().median());
            row(
                "at most a quarter of the ungoverned remote share",
                if share.is_finite() && all_of.is_finite() {
                    format!(
                        "{} of {}, {:.1} times lower",
                        Unit::Share.show(share),
                        Unit::Share.show(all_of),
                        all_of / share
                    )
                } else {
                    "not measured: no line was counted".to_owned()
                },
                (few && share.is_finite() && all_of.is_finite()).then_some(share <= all_of * SHARE),
            );
            let (own, others) = (node_moves(trials, machine), node_moves(base.1, machine));
            let known = own.is_finite() && others.is_finite();
            row(
                &format!("{MOVES} times fewer moves between nodes"),
                if known {
                    format!("{own} instead of {others}")
                } else {
                    "not measured: the kernel did not tell each".to_owned()
                },
                // Where nobody moves there is nothing to be made less.
                (few && known && (others > 0.0 || own > 0.0)).then_some(own * MOVES <= others),
            );
            let both = [(trials, counted), (base.1, base.0)]
                .map(|(trials, counted)| Modelled::median(trials, &counted.runs, machine));
            if let [Some(own), Some(base)] = both {
                for (asked, found, met) in own.judged(&base) {
                    row(asked, found, Some(met));
                }
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use emulator::count::Region;
    use governor::Sensor;

    use super::super::moves::Move;
    use super::super::verdict::tests::step;
    use super::*;
    use crate::result::counted::Counted;

    fn found(remote: u64, moves: Option<usize>, variant: Variant) -> (Counted, Vec<Trial>) {
        let mut trial = step();
        trial.variant = variant;
        let begun = trial.phases.last().unwrap().from;
        let one = Move {
            time: begun + 0.1,
            thread: 7,
            name: "load".to_owned(),
            from: 0,
            to: 1,
        };
        trial.moves = moves.map(|count| vec![one; count]);
        let lines = match remote {
            0 => vec![vec![0, 0], vec![0, 0]],
            _ => vec![vec![100 - remote, remote], vec![0, 0]],
        };
        let counted = Counted {
            workload: "2 clients".to_owned(),
            variant: variant.name(),
            runs: vec![Region {
                dram: lines,
                ..Region::default()
            }],
        };
        (counted, vec![trial])
    }

    /// What is found of a governed run, and whether that is judged to be met.
    fn judge(base: (Counted, Vec<Trial>), own: (Counted, Vec<Trial>)) -> Vec<[String; 2]> {
        let (counted, trials) = [base, own].into_iter().unzip();
        let all = [Found {
            clients: 2,
            counted,
            windows: Vec::new(),
            trials,
        }];
        let machine = Machine::parse("2x1").unwrap();
        let table = judged(&all, 4, &machine);
        let rows = table.rows().iter();
        rows.map(|row| [2, 3].map(|at| row[at].as_str().to_owned()))
            .collect()
    }

    const OWN: Variant = Variant::Governed(Mode::Adaptive, Sensor::Load);

    #[test]
    fn what_was_counted_is_judged() {
        let rows = judge(
            found(80, Some(20), Variant::Ungoverned),
            found(4, Some(1), OWN),
        );
        assert_eq!(rows[0], ["4.0 % of 80.0 %, 20.0 times lower", "yes"]);
        assert_eq!(rows[1], ["1 instead of 20", "yes"]);
        // By the model: all that is read lies on the first node, which the one core of the second could not have better.
        assert!(rows[2][0].starts_with("4.0 % and "), "{rows:?}");
        assert!(rows[3][0].ends_with('×'), "{rows:?}");
        let rows = judge(
            found(80, Some(4), Variant::Ungoverned),
            found(60, Some(3), OWN),
        );
        assert_eq!([&rows[0][1], &rows[1][1]], ["no", "no"]);
    }

    #[test]
    fn what_nobody_counted_is_not_judged() {
        let rows = judge(found(0, None, Variant::Ungoverned), found(4, Some(0), OWN));
        for row in &rows {
            assert!(row[0].starts_with("not measured"), "{row:?}");
            assert_eq!(row[1], "not judged");
        }
        // Without a reading of what was busy nobody knows whether one node was enough.
        let mut base = found(80, Some(20), Variant::Ungoverned);
        base.1[0].used = None;
        let rows = judge(base, found(4, Some(1), OWN));
        assert!(
            rows[..2].iter().all(|row| row[1] == "not judged"),
            "{rows:?}"
        );
    }

    #[test]
    fn nothing_is_told_of_joules_that_an_emulated_machine_does_not_use() {
        let (counted, trials) = found(4, None, OWN);
        let all = [Found {
            clients: 2,
            counted: vec![counted],
            windows: Vec::new(),
            trials: vec![trials],
        }];
        let table = moves(&all, &Machine::parse("2x1").unwrap());
        assert!(table.header().iter().all(|name| !name.contains('J')));
        // Neither the kernel nor any look told of moves: that is no zero.
        let row: Vec<&str> = table.rows()[0].iter().map(Cell::as_str).collect();
        assert_eq!(row[2..5], ["–", "–", "–"]);
    }
}
