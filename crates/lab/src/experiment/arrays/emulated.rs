//! The mappings and the scheduler on an emulated machine, whose counter says which node's memory each line came from.
//!
//! Chunks lie on nodes whatever is placed where: beside the threads of the task stands one for each node, which loads
//! the chunks of its node and does nothing else.

use placement::arrays::{Chunk, Division, Goal, Load, schedule};
use placement::{Classes, Placement, Site, Threads};
use report::{Bars, Cell, Plot, Table, Unit};
use serde::Serialize;
use serde_json::json;

use super::mappings::mappings;
use super::scheduler::mirrored;
use super::section::{Section, step};
use super::variants::Setting;
use super::work::System;
use crate::desk::Desk;
use crate::error::Result;
use crate::guest::{Guest, parts};
use crate::workload::kernel::{Job, Piece, Plan, Step};

/// Bytes of a page: what chunks are cut into.
const PAGE: u64 = 4096;
/// Pages of all chunks together: several times what the modelled caches hold.
const PAGES: u64 = 2880;
/// The numbers of chunks: fewer than groups have threads, and many.
const COUNTS: [usize; 2] = [3, 24];

/// A placement, counted and computed.
#[derive(Clone, Debug, Serialize)]
struct Counted {
    chunks: usize,
    variant: String,
    local: u64,
    remote: u64,
    /// The remote share that follows from the placement.
    computed: f64,
}

impl Counted {
    fn share(&self) -> f64 {
        self.remote as f64 / (self.local + self.remote) as f64
    }
}

/// Boots the machine and counts.
///
/// # Errors
/// Those of the emulated machine and of placing.
pub(super) fn section(
    guest: &Guest,
    setting: &Setting,
    quick: bool,
    desk: &mut Desk<'_>,
) -> Result<Section> {
    let mut all: Vec<Counted> = Vec::new();
    for count in COUNTS {
        step(
            desk,
            &format!("{count} chunks on the emulated {}", guest.machine().name()),
        )?;
        all.extend(counted(setting, guest, count, quick, desk)?);
    }
    let (named, mapped): (Vec<&Counted>, Vec<&Counted>) =
        all.iter().partition(|one| one.variant != MAPPING);
    let mut table = Table::new(["array", "strategy", "lines from memory", "remote share", "computed"])
        .caption("Lines of 64 bytes that the emulated machine read from memory, and the remote share that the model computes for the same placement. Best mapping: with the least remote lines.");
    let mut plots: Vec<Vec<Plot>> = Vec::new();
    for count in COUNTS {
        let own = mapped.iter().filter(|one| one.chunks == count).copied();
        let best = own.min_by_key(|one| one.remote).map(|one| Counted {
            variant: "best mapping".to_owned(),
            ..one.clone()
        });
        let own = named.iter().filter(|one| one.chunks == count).copied();
        let title = format!("{count} chunks: lines from memory");
        let mut bars = Bars::new(title, "lines of 64 bytes", Unit::Count)
            .series(["local", "remote"])
            .stacked();
        for one in own.chain(best.iter()) {
            table.row([
                Cell::from(format!("{count} chunks")),
                Cell::from(one.variant.as_str()),
                Cell::number((one.local + one.remote) as f64, Unit::Count),
                Cell::number(one.share(), Unit::Share),
                Cell::number(one.computed, Unit::Share),
            ]);
            bars.category(one.variant.as_str(), [one.local as f64, one.remote as f64]);
        }
        plots.push(vec![bars.into()]);
    }
    let apart = all
        .iter()
        .filter(|one| one.variant != "os" && one.variant != "petri");
    let apart = apart
        .map(|one| (one.share() - one.computed).abs())
        .fold(0.0, f64::max);
    Ok(Section {
        key: "emulated".to_owned(),
        heading: format!("Counted on the emulated {}", guest.machine().name()),
        texts: vec![format!(
            "{} threads read {} of which three quarters lie on node 0, once. {}. Counted and computed remote shares of {} placements differ by {} percentage points at most, but for those that leave threads to the system. Counts, not times.",
            setting.threads,
            Unit::Bytes.show((PAGES * PAGE) as f64),
            guest.caches(),
            all.len(),
            Unit::Plain.show(apart * 100.0),
        )],
        tables: vec![table],
        plots,
        raw: json!({ "counted": all, "apart": apart }),
    })
}

/// The name of a mapping among all.
const MAPPING: &str = "mapping";

fn counted(
    setting: &Setting,
    guest: &Guest,
    count: usize,
    quick: bool,
    desk: &mut Desk<'_>,
) -> Result<Vec<Counted>> {
    let site = &setting.site;
    let nodes = site.machine().nodes().len();
    let pages = PAGES / count as u64;
    let chunk = |at: usize| Chunk {
        home: usize::from(at % 4 == 3 || (count < 4 && at == 0)) % nodes,
        bytes: pages * PAGE,
        slabs: pages,
    };
    let chunks: Vec<Chunk> = (0..count).map(chunk).collect();
    let sharing = System::Groups.sharing(setting.threads);
    let division = sharing.divide(setting.threads, &chunks)?;
    let groups = Threads::with_groups(sharing.groups(setting.threads)?)?;
    let mut placements = setting.named(&groups, setting.threads)?;
    let classes = Classes::new(site, &Threads::in_groups(setting.threads, 1)?)?;
    for placement in mappings(&classes, quick).0 {
        placements.push((MAPPING.to_owned(), mirrored(site, &placement)?));
        placements.push((MAPPING.to_owned(), placement));
    }
    let mut all = carried_out(site, guest, &division, &chunks, &placements, desk)?;
    for (name, goal) in [
        ("scheduler, shortest", Goal::Shortest),
        ("scheduler, local", Goal::Local),
    ] {
        let schedule = schedule(site, setting.threads, &chunks, goal)?;
        let own = [(name.to_owned(), schedule.placement().clone())];
        all.extend(carried_out(
            site,
            guest,
            schedule.division(),
            &chunks,
            &own,
            desk,
        )?);
    }
    Ok(all)
}

/// Counts a division of chunks under placements.
fn carried_out(
    site: &Site,
    guest: &Guest,
    division: &Division,
    chunks: &[Chunk],
    placements: &[(String, Placement)],
    desk: &mut Desk<'_>,
) -> Result<Vec<Counted>> {
    // A thread more for each node, on its first cpu.
    let loaders: Vec<Vec<u32>> = site
        .node_sets()
        .iter()
        .map(|set| set.iter().take(1).collect())
        .collect();
    let sets = |placement: &Placement| -> Vec<Vec<u32>> {
        let own = placement.sets().iter().map(|set| set.iter().collect());
        own.chain(loaders.iter().cloned()).collect()
    };
    let job = Job {
        plan: plan(division, chunks, loaders.len()),
        placements: placements
            .iter()
            .map(|(_, placement)| sets(placement))
            .collect(),
    };
    let told = guest.kernel(&job, desk)?;
    let each = placements
        .iter()
        .zip(told)
        .map(|((variant, placement), (_, region))| {
            let (local, remote) = parts(&region.dram);
            Ok(Counted {
                chunks: chunks.len(),
                variant: variant.clone(),
                local,
                remote,
                computed: Load::of(site, placement, division, chunks)?.remote_share(),
            })
        });
    each.collect()
}

/// Each thread reads its pieces once; they were loaded on their home.
fn plan(division: &Division, chunks: &[Chunk], nodes: usize) -> Plan {
    let threads = division.threads().len();
    let mut pieces = Vec::new();
    let mut steps: Vec<Vec<Step>> = Vec::with_capacity(threads + nodes);
    for own in division.threads() {
        let step = |piece: &placement::arrays::Piece| {
            pieces.push(Piece {
                bytes: piece.bytes() as usize,
                loader: threads + chunks[piece.chunk].home,
            });
            Step::Scan {
                piece: pieces.len() - 1,
                from: 0.0,
                times: 1,
            }
        };
        steps.push(own.iter().map(step).collect());
    }
    steps.extend((0..nodes).map(|_| Vec::new()));
    Plan {
        pieces,
        threads: steps,
    }
}

#[cfg(test)]
mod tests {
    use topology::Machine;

    use super::*;

    #[test]
    fn pieces_are_whole_pages_loaded_by_the_thread_of_their_node() {
        let setting = Setting::new(&Machine::parse("xeon-2630").unwrap(), 12, true);
        for count in COUNTS {
            let pages = PAGES / count as u64;
            let chunk = |at: usize| Chunk {
                home: at % 2,
                bytes: pages * PAGE,
                slabs: pages,
            };
            let chunks: Vec<Chunk> = (0..count).map(chunk).collect();
            let schedule = schedule(&setting.site, 12, &chunks, Goal::Shortest).unwrap();
            let groups = System::Groups.sharing(12).divide(12, &chunks).unwrap();
            for division in [schedule.division(), &groups] {
                let plan = plan(division, &chunks, 2);
                assert_eq!(plan.threads.len(), 14);
                assert_eq!(plan.bytes() as u64, PAGES * PAGE);
                let sound = |piece: &Piece| {
                    piece.bytes.is_multiple_of(4096) && (12..14).contains(&piece.loader)
                };
                assert!(plan.pieces.iter().all(sound));
            }
        }
    }
}
