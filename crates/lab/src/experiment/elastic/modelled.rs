//! What counted accesses would take on the machine that is emulated: throughput and energy by a model, and the least remote share
//! that the cores could have had.
//!
//! An emulated machine counts and has no speed of its own. [`placement::cost`] turns what was counted into seconds and joules: each core
//! of a variant does an equal part of what was read on its node.

use emulator::count::{LINE_BYTES, Matrix, Region};
use placement::cost::{CYCLES, Cost, Limit, Model, Work};
use report::{Cell, Sample, Table, Unit};
use topology::Machine;

use super::found::Found;
use super::trial::Trial;

/// How far above the least a remote share may be, in points.
const POINTS: f64 = 0.05;

/// The least throughput, relative to that of the ungoverned work.
const THROUGHPUT: f64 = 0.97;

/// What a variant would do on the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Modelled {
    /// Queries answered a second if its cores have nothing else to do.
    pub throughput: f64,
    /// Joules of a query.
    pub joules: f64,
    /// The share of remote lines.
    pub remote: f64,
    /// The least share that as many cores could have, wherever they are.
    pub least: f64,
    limit: Limit,
}

/// Bytes of lines.
fn bytes(lines: u64) -> f64 {
    (lines * LINE_BYTES) as f64
}

/// The work of each core: those of a node, in proportion to what was read there, do equal parts of it.
fn works(region: &Region, cores: f64) -> Vec<Work> {
    let read = |node: usize| region.dram[node].iter().sum::<u64>();
    let all: u64 = (0..region.dram.len()).map(read).sum();
    // What the second level did not have, and the last did.
    let cached = bytes(region.l2_misses.saturating_sub(all));
    let mut works = Vec::new();
    for (node, row) in region.dram.iter().enumerate() {
        let share = read(node) as f64 / all.max(1) as f64;
        let own = (share * cores).round().max(1.0);
        if read(node) == 0 {
            continue;
        }
        let computed = CYCLES * (bytes(read(node)) + cached * share) / own;
        let core = Work::new(node)
            .cached(cached * share / own)
            .cycles(computed);
        let core = row.iter().enumerate().fold(core, |core, (home, lines)| {
            core.memory(home, bytes(*lines) / own)
        });
        works.extend(std::iter::repeat_n(core, own as usize));
    }
    works
}

/// The least remote share that so many cores have if each of them reads all that was read: they are on the nodes with most of it.
fn least(lines: &Matrix, cores: f64, machine: &Machine) -> f64 {
    let all: u64 = lines.iter().flatten().sum();
    let held = |home: usize| lines.iter().map(|row| row[home]).sum::<u64>() as f64 / all as f64;
    let mut nodes: Vec<(f64, usize)> = (0..lines.len())
        .map(|node| (held(node), machine.nodes()[node].cores.len()))
        .collect();
    nodes.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut left, mut local) = (cores, 0.0);
    for (share, room) in nodes {
        let own = left.min(room as f64);
        local += share * own / cores;
        left -= own;
    }
    1.0 - local
}

impl Modelled {
    /// What one run of a variant, with its counts, would take; `None` if nothing was counted or answered.
    fn of(trial: &Trial, region: &Region, machine: &Machine) -> Option<Modelled> {
        let (cores, queries) = (trial.last_cores(), trial.last_queries());
        let remote = region.remote_share()?;
        if !(cores >= 1.0 && queries >= 1.0) {
            return None;
        }
        let cost: Cost = Model::new(machine).cost(&works(region, cores));
        Some(Modelled {
            throughput: queries / cost.seconds,
            joules: cost.joules() / queries,
            remote,
            least: least(&region.dram, cores, machine),
            limit: cost.limit,
        })
    }

    /// The medians over the runs of a variant.
    pub fn median(trials: &[Trial], regions: &[Region], machine: &Machine) -> Option<Modelled> {
        let each = trials.iter().zip(regions);
        let each: Vec<Modelled> = each
            .filter_map(|(trial, region)| Modelled::of(trial, region, machine))
            .collect();
        let median = |of: fn(&Modelled) -> f64| each.iter().map(of).collect::<Sample>().median();
        Some(Modelled {
            throughput: median(|one| one.throughput),
            joules: median(|one| one.joules),
            remote: median(|one| one.remote),
            least: median(|one| one.least),
            limit: each.first()?.limit,
        })
    }

    /// What is asked of a governor, what was found beside the ungoverned work of `base`, and whether that is enough.
    pub fn judged(&self, base: &Modelled) -> [(&'static str, String, bool); 2] {
        let (share, least) = (self.remote, self.least);
        let shares = format!(
            "{} and {}",
            Unit::Share.show(share),
            Unit::Share.show(least)
        );
        let ratio = self.throughput / base.throughput;
        [
            (
                "a remote share within 5 points of the least that its cores could have",
                shares,
                share <= least + POINTS,
            ),
            (
                "by the model, 0.97 of the ungoverned throughput",
                Unit::Ratio.show(ratio),
                ratio >= THROUGHPUT,
            ),
        ]
    }

    /// What holds it up, in words.
    fn held_up_by(&self) -> String {
        match self.limit {
            Limit::Threads(_) => "cores, which wait for their lines".to_owned(),
            Limit::Memory(node) => format!("memory of node {node}"),
            Limit::Link(from, to) => format!("link {from} to {to}"),
        }
    }
}

/// Throughput, energy and remote shares of each variant.
pub(super) fn table(all: &[Found], machine: &Machine) -> Table {
    let mut table = Table::new([
        "clients",
        "variant",
        "cores",
        "queries a second",
        "of ungoverned",
        "energy of a query",
        "of ungoverned",
        "remote share",
        "least",
        "held up by",
    ])
    .caption(format!(
        "By a model of {} (docs/explanations/placement.md), from the counts; measured is none of it. Queries a second: if the cores it had \
         at the end did nothing else. Least: the remote share of as many cores on the nodes with most of what was read. Medians over the \
         runs.",
        machine.name()
    ));
    for found in all {
        let each = found.trials.iter().zip(&found.counted);
        let each: Vec<_> = each
            .map(|(trials, counted)| (trials, Modelled::median(trials, &counted.runs, machine)))
            .collect();
        let base = each.first().and_then(|(_, modelled)| *modelled);
        for (trials, modelled) in &each {
            let (Some(first), Some(own)) = (trials.first(), modelled) else {
                continue;
            };
            let of =
                |part: fn(&Modelled) -> f64| base.map_or(f64::NAN, |base| part(own) / part(&base));
            table.row([
                Cell::from(found.clients.to_string()),
                Cell::from(first.variant.name()),
                Cell::number(
                    trials
                        .iter()
                        .map(Trial::last_cores)
                        .collect::<Sample>()
                        .median(),
                    Unit::Count,
                ),
                Cell::number(own.throughput, Unit::Count),
                Cell::number(of(|one| one.throughput), Unit::Ratio),
                Cell::number(own.joules, Unit::Joules),
                Cell::number(of(|one| one.joules), Unit::Ratio),
                Cell::number(own.remote, Unit::Share),
                Cell::number(own.least, Unit::Share),
                Cell::from(own.held_up_by()),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine::parse("opteron-8387").unwrap().in_order()
    }

    fn region(dram: Matrix) -> Region {
        Region {
            l2_misses: dram.iter().flatten().sum(),
            dram,
            ..Region::default()
        }
    }

    #[test]
    fn the_least_share_is_that_of_cores_beside_the_data() {
        let mut lines = vec![vec![0; 4]; 4];
        lines[0][1] = 75;
        lines[2][3] = 25;
        let least = |cores| least(&lines, cores, &machine());
        // Four on the node with three quarters; four more on the other.
        assert!((least(4.0) - 0.25).abs() < 1e-9);
        assert!((least(8.0) - 0.5).abs() < 1e-9);
        assert!((least(16.0) - 0.75).abs() < 1e-9);
    }

    #[test]
    fn cores_beside_the_data_do_as_much_as_all_where_its_memory_is_the_limit() {
        let lines = 1 << 20;
        let mut near = vec![vec![0; 4]; 4];
        near[1][1] = lines;
        let mut far = vec![vec![0; 4]; 4];
        far.iter_mut().for_each(|row| row[1] = lines / 4);
        let model = Model::new(&machine());
        let all = model.cost(&works(&region(far), 16.0));
        let four = model.cost(&works(&region(near), 4.0));
        assert_eq!(all.limit, Limit::Memory(1), "{all}");
        assert!(four.seconds < 1.6 * all.seconds, "{four} and {all}");
        assert!(four.joules() < all.joules(), "{four} and {all}");
    }
}
