//! What is run: workloads as phases, and the variants that they run under.

use clap::ValueEnum;
use governor::{Mode, Policy, Sensor};
use report::Unit;
use serde::{Deserialize, Serialize};

use super::queries::{ALL, BELOW, selected};

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// One query, asked by clients that become more and fewer
    Clients,
    /// Queries drawn at random, by clients that ask now and then, or without a pause
    Mixed,
    /// From nearly nothing to all there is, and back
    Step,
    /// All work under one lock that is waited for busily: fewer cores are faster
    Lock,
    /// Scans that select more and more of the rows, up to all of them
    Selectivity,
    /// One query for a while, by all clients, then the next: the statements given, or those of mixed
    Stable,
    /// TPC-H's Q6 as a program has it that was written for it alone, its threads bound to a core each or to all
    Native,
}

/// Quantities below which a phase of [`Workload::Selectivity`] selects: 2 % of the rows to all.
const QUANTITIES: [u32; 6] = [2, 12, 23, 34, 42, ALL];

/// Different queries of our own, of which [`Workload::Mixed`] draws.
pub const OWN: usize = 4;

/// The queries of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Queries of our own program.
    Own {
        /// Rows of its columns.
        rows: usize,
    },
    /// Statements for a client that the user named.
    Client {
        /// The number of statements.
        statements: usize,
    },
}

/// A stretch of time in which the same clients ask.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Its length in seconds.
    pub seconds: f64,
    /// The number of clients that ask.
    pub clients: usize,
    /// The share of its time that a client would wait for answers if it were alone. It asks at fixed times, or at
    /// once if an answer took longer. 1: without a pause.
    pub share: f64,
    /// Which query: for [`Workload::Selectivity`] the quantity below which rows are selected, for [`Workload::Stable`] the number of
    /// the statement, from 0; of no meaning for others.
    #[serde(default)]
    pub which: usize,
}

impl Phase {
    /// What it is called among the phases of a workload.
    pub fn name(&self, workload: Workload, rows: usize) -> String {
        let clients = match self.clients {
            1 => "1 client".to_owned(),
            many => format!("{many} clients"),
        };
        match workload {
            Workload::Selectivity => {
                let share = Unit::Share.show(selected(rows, self.which as u32));
                format!("{clients}, {share} selected")
            }
            Workload::Stable => format!("{clients}, query {}", self.which + 1),
            _ => clients,
        }
    }

    /// Whether it keeps this many cpus busy all the time.
    pub fn fills(&self, cpus: usize) -> bool {
        self.share >= 1.0 && self.clients >= cpus
    }
}

impl Workload {
    /// As typed.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Clients => "clients",
            Workload::Mixed => "mixed",
            Workload::Step => "step",
            Workload::Lock => "lock",
            Workload::Selectivity => "selectivity",
            Workload::Stable => "stable",
            Workload::Native => "native",
        }
    }

    /// Whether it is asked by the numbers of clients that the user named.
    pub fn takes_clients(self) -> bool {
        !matches!(self, Workload::Lock | Workload::Mixed | Workload::Step)
    }

    /// Whether it is a program of our own and no database.
    pub fn is_own(self) -> bool {
        matches!(
            self,
            Workload::Lock | Workload::Selectivity | Workload::Native
        )
    }

    /// A description for the report: the queries, whether they read our own columns or go to a database's client, and
    /// how they are asked.
    pub fn about(self, asked: Asked) -> String {
        let share = |rows: usize, below: u32| Unit::Share.show(selected(rows, below));
        let what = match (self, asked) {
            (Workload::Lock, _) => {
                return "two threads per cpu that do all work under one lock, waited for busily, on data that moves between caches".to_owned();
            }
            (Workload::Clients | Workload::Step, Asked::Own { rows }) => {
                format!("a scan that selects {} of the rows", share(rows, BELOW))
            }
            (Workload::Native, _) => {
                return "TPC-H's Q6 over four columns in memory by a loop that was written for it, a thread for each client; threads may run \
                        on all cores, or are bound to one each, node after node (dense) or around the nodes (sparse)"
                    .to_owned();
            }
            (Workload::Selectivity, _) => {
                return "a scan that selects from 2 % of the rows to all of them, asked without a pause, a phase for each share"
                    .to_owned();
            }
            (Workload::Stable, Asked::Own { .. }) => {
                return "two scans, a group by and a sort, one after the other by all clients, asked without a pause".to_owned();
            }
            (Workload::Stable, Asked::Client { .. }) => {
                return "each of the statements for a while by all clients, asked without a pause"
                    .to_owned();
            }
            (Workload::Mixed, Asked::Own { rows }) => format!(
                "scans that select {} and {} of the rows, a group by and a sort, drawn at random",
                share(rows, BELOW),
                share(rows, ALL)
            ),
            (Workload::Mixed, Asked::Client { statements: 2.. }) => {
                "the statements, drawn at random".to_owned()
            }
            (_, Asked::Client { statements: 2.. }) => "the first of the statements".to_owned(),
            (_, Asked::Client { .. }) => "the statement".to_owned(),
        };
        let how = match self {
            Workload::Clients => {
                "one client up to six per cpu and down again; each asks so often that alone it would be busy a fifth of the time"
            }
            Workload::Mixed => "clients that ask now and then, and two per cpu without a pause",
            _ => {
                "one client that would be busy 5 % of the time; twice, for a while, two per cpu without a pause"
            }
        };
        format!("{what}, asked by {how}")
    }

    /// The phases on a machine with this many cpus, each `unit` seconds long or a few times that; by `clients` if numbers of them were
    /// named, and with so many `statements`, 0 of queries of our own.
    pub fn phases(
        self,
        cpus: usize,
        unit: f64,
        clients: &[usize],
        statements: usize,
    ) -> Vec<Phase> {
        let phase = |clients: usize, share: f64, units: f64| Phase {
            seconds: unit * units,
            clients,
            share,
            which: 0,
        };
        let usual = [2 * cpus];
        let named = if clients.is_empty() { &usual } else { clients };
        let each = |queries: Vec<usize>| -> Vec<Phase> {
            let of = |clients: &usize| {
                let clients = phase(*clients, 1.0, 1.0);
                let phases = queries.iter().map(move |which| Phase {
                    which: *which,
                    ..clients
                });
                phases.collect::<Vec<_>>()
            };
            named.iter().flat_map(of).collect()
        };
        match self {
            Workload::Selectivity => each(QUANTITIES.map(|below| below as usize).to_vec()),
            Workload::Stable if statements == 0 => each((0..OWN).collect()),
            Workload::Stable => each((0..statements).collect()),
            Workload::Native => each(vec![0]),
            Workload::Clients if !clients.is_empty() => each(vec![0]),
            Workload::Clients => [1, cpus, 2 * cpus, 4 * cpus, 6 * cpus]
                .into_iter()
                .chain([4 * cpus, 2 * cpus, cpus, 1])
                .map(|clients| phase(clients, 0.2, 1.0))
                .collect(),
            Workload::Mixed => vec![
                phase(cpus, 0.2, 2.0),
                phase(2 * cpus, 1.0, 2.0),
                phase(cpus, 0.4, 2.0),
                phase(2 * cpus, 0.1, 2.0),
            ],
            Workload::Step => vec![
                phase(1, 0.05, 2.0),
                phase(2 * cpus, 1.0, 2.0),
                phase(1, 0.05, 2.0),
                phase(2 * cpus, 1.0, 2.0),
                phase(1, 0.05, 2.0),
            ],
            // The second half is told apart: the sensor has found its number by then.
            Workload::Lock => vec![phase(2 * cpus, 1.0, 5.0), phase(2 * cpus, 1.0, 5.0)],
        }
    }
}

/// Who decides which cpus the workload has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// The operating system, as always: all of them.
    Ungoverned,
    /// Nobody: a fixed number of cores.
    Fixed(usize),
    /// The governor.
    Governed(Mode, Sensor),
    /// The governor with only the text's net: one core per decision.
    Plain(Mode),
    /// Nobody: each thread has bound itself to one core, in the order of this mode.
    Bound(Mode),
}

impl Variant {
    /// Its name in tables.
    pub fn name(&self) -> String {
        match self {
            Variant::Ungoverned => "ungoverned".to_owned(),
            Variant::Fixed(1) => "1 core fixed".to_owned(),
            Variant::Fixed(cores) => format!("{cores} cores fixed"),
            Variant::Governed(mode, sensor) => format!("{}, {}", mode.name(), sensor.name()),
            Variant::Plain(mode) => format!("{}, plain net", mode.name()),
            Variant::Bound(mode) => format!("bound to a core each, {}", mode.name()),
        }
    }

    /// The governor's policy; without a governor, one that changes nothing.
    pub fn policy(&self) -> Policy {
        match self {
            Variant::Ungoverned | Variant::Bound(_) => Policy::default(),
            Variant::Fixed(cores) => Policy {
                mode: Mode::Dense,
                min_cores: *cores,
                max_cores: Some(*cores),
                ..Policy::default()
            },
            Variant::Governed(mode, sensor) => Policy {
                mode: *mode,
                ..Policy::default().thresholds_of(*sensor)
            },
            Variant::Plain(mode) => Policy {
                mode: *mode,
                ..Policy::plain()
            },
        }
    }

    /// Whether the governor decides.
    pub fn governed(&self) -> bool {
        matches!(self, Variant::Governed(..) | Variant::Plain(_))
    }

    /// Whether nobody gives or takes cores.
    pub fn leaves_alone(&self) -> bool {
        matches!(self, Variant::Ungoverned | Variant::Bound(_))
    }

    /// The variants of a workload, the operating system first.
    pub fn of(workload: Workload, modes: &[Mode], sensors: &[Sensor], cpus: usize) -> Vec<Variant> {
        let mut all = vec![Variant::Ungoverned];
        if workload == Workload::Lock {
            // Which number is best is what the sensor has to find out.
            let fixed = std::iter::successors(Some(1), |cores| Some(cores * 2));
            all.extend(fixed.take_while(|cores| *cores < cpus).map(Variant::Fixed));
            all.push(Variant::Fixed(cpus));
            all.push(Variant::Governed(Mode::Adaptive, Sensor::Throughput));
            return all;
        }
        if workload == Workload::Native {
            all.extend([Mode::Dense, Mode::Sparse].map(Variant::Bound));
        }
        for sensor in sensors {
            all.extend(modes.iter().map(|mode| Variant::Governed(*mode, *sensor)));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_are_what_they_say() {
        for workload in Workload::value_variants() {
            let phases = workload.phases(4, 2.0, &[], 0);
            assert!(
                phases
                    .iter()
                    .all(|phase| phase.clients > 0 && phase.seconds >= 2.0)
            );
            let filled = phases.iter().filter(|phase| phase.fills(4)).count();
            let expected = match workload {
                Workload::Clients => 0,
                Workload::Mixed => 1,
                Workload::Step | Workload::Lock => 2,
                Workload::Selectivity => 6,
                Workload::Stable => OWN,
                Workload::Native => 1,
            };
            assert_eq!(filled, expected, "{}", workload.name());
        }
    }

    #[test]
    fn phases_follow_the_clients_that_were_named() {
        let names = |workload: Workload, statements| -> Vec<String> {
            let phases = workload.phases(4, 1.0, &[1, 256], statements);
            phases
                .iter()
                .map(|phase| phase.name(workload, 1 << 16))
                .collect()
        };
        assert_eq!(names(Workload::Clients, 0), ["1 client", "256 clients"]);
        assert_eq!(
            names(Workload::Stable, 2),
            [
                "1 client, query 1",
                "1 client, query 2",
                "256 clients, query 1",
                "256 clients, query 2"
            ]
        );
        let selected = names(Workload::Selectivity, 0);
        assert_eq!(selected.len(), 12);
        assert_eq!(
            [&selected[2], &selected[11]],
            ["1 client, 44.0 % selected", "256 clients, 100 % selected"]
        );
        // Those that have clients of their own are not changed.
        let lock = Workload::Lock.phases(4, 1.0, &[7], 0);
        assert!(lock.iter().all(|phase| phase.clients == 8));
    }

    #[test]
    fn what_is_told_of_a_workload_is_what_is_asked() {
        let own = Asked::Own { rows: 1 << 16 };
        assert!(Workload::Clients.about(own).contains("44.0 % of the rows"));
        assert!(Workload::Mixed.about(own).contains("44.0 % and 100 %"));
        assert!(Workload::Lock.about(own).contains("one lock"));
        for workload in [Workload::Clients, Workload::Mixed, Workload::Step] {
            for statements in [1, 2] {
                let about = workload.about(Asked::Client { statements });
                assert!(about.starts_with("the "), "{about}");
                for ours in ["rows", "scan", "group by", "Q6"] {
                    assert!(!about.contains(ours), "{about}");
                }
            }
        }
    }

    #[test]
    fn variants_begin_with_the_system_and_fixed_numbers_reach_all_cpus() {
        let names = |workload, cpus| -> Vec<String> {
            let modes = [Mode::Dense, Mode::Adaptive];
            let all = Variant::of(workload, &modes, &[Sensor::Load], cpus);
            all.iter().map(Variant::name).collect()
        };
        assert_eq!(
            names(Workload::Step, 4),
            ["ungoverned", "dense, load", "adaptive, load"]
        );
        assert_eq!(
            names(Workload::Lock, 6),
            [
                "ungoverned",
                "1 core fixed",
                "2 cores fixed",
                "4 cores fixed",
                "6 cores fixed",
                "adaptive, throughput"
            ]
        );
        assert_eq!(names(Workload::Lock, 1).len(), 3);
    }
}
