//! Page migration: pages of a group on nodes where it has no core are moved to nodes where it has.
//!
//! 1. Nothing is moved before the nodes of the cores have been the same for [`CALM`].
//! 2. One process after the other, mapping after mapping, parts of 8 MiB are looked at: some addresses
//!    of each, and where one of these is on a node without cores, all.
//! 3. Those that are go to the nodes with cores, to each as many as it has cores. A step moves
//!    as many pages as a part has at most, and rests ten times as long as it took.
//! 4. When nothing was found in all processes, they are left alone for [`AGAIN`].
//!
//! Pages that several processes share are moved if the system permits it (as root); pages of code are never moved.
//! Pages are not moved back in the end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::time::{Duration, Instant};

use governor::Migrated;
use memory::pages::{self, Movable};
use placement::CpuSet;
use topology::Machine;

use crate::error::{Error, Result};
use crate::group::target::Group;
use crate::system::proc;

/// How long the cores must have been on the same nodes.
const CALM: Duration = Duration::from_secs(2);

/// Pause after a round in which nothing was found.
const AGAIN: Duration = Duration::from_secs(10);

/// The pause after a step, as a multiple of the time it took.
const REST: u32 = 10;

/// Pages in a part.
const PART: u64 = 2048;

/// Addresses of a part that are looked at first.
const PROBES: u64 = 16;

/// Addresses of one step.
const LOOKS: u64 = 4096;

/// The cost of turning to another process, counted in addresses.
const PROCESS: u64 = 64;

/// Migrates the pages of a group, a bounded amount of work at a time.
#[derive(Debug)]
pub(crate) struct Migration {
    /// The node of each cpu, by the operating system's numbers.
    of_cpu: BTreeMap<u32, u32>,
    /// The nodes that have cores: memory on other nodes stays where somebody has put it.
    nodes: BTreeSet<u32>,
    page: u64,
    /// The flag of `move_pages` for the pages that we may move.
    movable: Movable,
    /// The node of each core.
    kept: Vec<u32>,
    since: Instant,
    next: Instant,
    /// Processes of this round that are still to be looked at.
    round: VecDeque<u32>,
    /// Parts of the present process that are still to be looked at: process, first and last address.
    parts: VecDeque<(u32, u64, u64)>,
    /// Whether something was moved in this round, or no round is complete yet.
    found: bool,
    note: Option<String>,
}

/// What the next step does.
#[derive(Debug, Default)]
struct Step {
    looks: u64,
    moved: u64,
    stayed: u64,
    from: BTreeSet<u32>,
    to: BTreeSet<u32>,
}

impl Migration {
    /// # Errors
    ///
    /// [`Error::Command`] on a machine with one node.
    pub(crate) fn new(machine: &Machine) -> Result<Migration> {
        let mut of_cpu = BTreeMap::new();
        for node in machine.nodes() {
            let cpus = node.cores.iter().flat_map(|core| &core.cpus);
            of_cpu.extend(cpus.map(|cpu| (*cpu, node.os_index)));
        }
        let nodes: BTreeSet<u32> = of_cpu.values().copied().collect();
        if nodes.len() < 2 {
            return Err(Error::Command {
                what: "--migrate".to_owned(),
                why: "this machine has one node with cores, so that there is nowhere to move pages; leave it out"
                    .to_owned(),
            });
        }
        // SAFETY: sysconf has no preconditions.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let now = Instant::now();
        Ok(Migration {
            of_cpu,
            nodes,
            page: u64::try_from(page).unwrap_or(4096),
            movable: Movable::Shared,
            kept: Vec::new(),
            since: now,
            next: now,
            round: VecDeque::new(),
            parts: VecDeque::new(),
            found: true,
            note: None,
        })
    }

    /// What people should know, once.
    pub(crate) fn note(&mut self) -> Option<String> {
        self.note.take()
    }

    /// Makes one step if it is due; returns what it moved.
    pub(crate) fn step(&mut self, cpus: &CpuSet, group: &Group) -> Option<Migrated> {
        let begun = Instant::now();
        let mut kept: Vec<u32> = cpus
            .iter()
            .filter_map(|cpu| self.of_cpu.get(&cpu).copied())
            .collect();
        kept.sort_unstable();
        let nodes = |of: &[u32]| of.iter().copied().collect::<BTreeSet<u32>>();
        if nodes(&kept) != nodes(&self.kept) {
            (self.since, self.next) = (begun, begun);
            self.round.clear();
            self.parts.clear();
            self.found = true;
        }
        self.kept = kept;
        if self.kept.is_empty() || begun - self.since < CALM || begun < self.next {
            return None;
        }
        let mut step = Step::default();
        while step.looks < LOOKS && self.next_fits(&step) {
            if let Some((pid, first, last)) = self.parts.pop_front() {
                self.part(pid, first, last, &mut step);
            } else if let Some(pid) = self.round.pop_front() {
                step.looks += PROCESS;
                self.parts = parts(pid, self.page);
            } else if std::mem::take(&mut self.found) {
                self.round = group.members.keys().copied().collect();
            } else {
                self.next = begun + AGAIN;
                self.found = true;
                return None;
            }
        }
        self.next = begun + begun.elapsed() * REST;
        self.found |= step.moved > 0;
        (step.moved > 0).then(|| Migrated {
            pages: step.moved,
            bytes: step.moved * self.page,
            stayed: step.stayed,
            from: step.from.into_iter().collect(),
            to: step.to.into_iter().collect(),
        })
    }

    /// Whether the next part still fits into this step.
    fn next_fits(&self, step: &Step) -> bool {
        let next = self.parts.front();
        let pages = next.map_or(PART, |(_, first, last)| (last - first) / self.page);
        let moved = step.moved + step.stayed;
        moved == 0 || moved + pages <= PART
    }

    /// Looks at a part, and moves its pages that are on nodes without cores.
    fn part(&mut self, pid: u32, first: u64, last: u64, step: &mut Step) {
        let pages = (last - first) / self.page;
        let address = |page: u64| (first + page * self.page) as usize;
        let probes: Vec<usize> = (0..pages.min(PROBES))
            .map(|at| address(at * pages / pages.min(PROBES)))
            .collect();
        step.looks += probes.len() as u64;
        let given_up = |node: u32| self.nodes.contains(&node) && !self.kept.contains(&node);
        let away = |node: &i32| u32::try_from(*node).is_ok_and(given_up);
        match nodes_of(pid, &probes) {
            Ok(nodes) if nodes.iter().any(away) => {}
            Ok(_) => return,
            Err(error) => {
                self.refused(pid, &error);
                return;
            }
        }
        let all: Vec<usize> = (0..pages).map(address).collect();
        step.looks += pages;
        let Ok(nodes) = nodes_of(pid, &all) else {
            return;
        };
        let (mut moving, mut from, mut to) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (address, node)) in all.into_iter().zip(&nodes).enumerate() {
            if away(node) {
                moving.push(address);
                from.push(node.unsigned_abs());
                to.push(self.kept[at % self.kept.len()].cast_signed());
            }
        }
        let moved = match pages::relocate(pid, &moving, &to, self.movable) {
            Err(error)
                if error.raw_os_error() == Some(libc::EPERM) && self.movable == Movable::Shared =>
            {
                self.movable = Movable::Private;
                self.tell(
                    "pages that several processes share stay where they are; root may move them",
                );
                pages::relocate(pid, &moving, &to, self.movable)
            }
            moved => moved,
        };
        match moved {
            Ok(now) => {
                for ((now, to), from) in now.iter().zip(to).zip(from) {
                    if *now == to {
                        step.moved += 1;
                        step.from.insert(from);
                        step.to.insert(to.cast_unsigned());
                    } else {
                        step.stayed += 1;
                    }
                }
            }
            Err(error) => self.refused(pid, &error),
        }
    }

    fn refused(&mut self, pid: u32, error: &io::Error) {
        if !proc::gone(error) {
            self.tell(&format!("pages of process {pid} are not moved: {error}"));
        }
        self.parts.clear();
    }

    fn tell(&mut self, text: &str) {
        self.note.get_or_insert_with(|| text.to_owned());
    }
}

/// The parts of a process's memory that may be moved.
fn parts(pid: u32, page: u64) -> VecDeque<(u32, u64, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mut parts = VecDeque::new();
    for (start, end) in text.lines().filter_map(usable) {
        let mut first = start;
        while first < end {
            let last = end.min(first + PART * page);
            parts.push_back((pid, first, last));
            first = last;
        }
    }
    parts
}

/// The address range in a line of `maps`, if it holds data: neither code, nor read-only parts of libraries, nor
/// mappings of the kernel.
fn usable(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split_ascii_whitespace();
    let (range, rights) = (words.next()?, words.next()?);
    let name = words.nth(3).unwrap_or_default();
    let readable = rights.starts_with('r');
    let library = name.starts_with('/') && rights.starts_with("r--p");
    let kernel = name.starts_with("[v");
    if !readable || rights.contains('x') || library || kernel {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = (number(start)?, number(end)?);
    (start < end).then_some((start, end))
}

/// The node of each address; negative if there is no page.
fn nodes_of(pid: u32, addresses: &[usize]) -> io::Result<Vec<i32>> {
    let mut nodes = vec![0; addresses.len()];
    pages::locate(pid, addresses, &mut nodes)?;
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_data_is_moved() {
        let line = |text| usable(text).is_some();
        assert!(line("7f00-7f10 rw-p 00000000 00:00 0"));
        assert!(line(
            "7f00-7f10 rw-p 00000000 00:00 0                  [heap]"
        ));
        assert!(line("7f00-7f10 rw-s 00000000 00:01 7 /dev/zero (deleted)"));
        assert!(line(
            "7f00-7f10 r--s 00000000 08:01 7 /var/lib/monetdb/a.tail"
        ));
        assert!(!line("7f00-7f10 r-xp 00000000 08:01 7 /usr/lib/libc.so.6"));
        assert!(!line("7f00-7f10 r--p 00000000 08:01 7 /usr/lib/libc.so.6"));
        assert!(!line("7f00-7f10 ---p 00000000 00:00 0"));
        assert!(!line("7f00-7f10 r--p 00000000 00:00 0 [vvar]"));
        for nothing in ["", "7f00", "x-y rw-p 0 0 0", "20-10 rw-p 0 0 0"] {
            assert!(!line(nothing), "{nothing}");
        }
    }

    #[test]
    fn own_memory_comes_in_parts_and_its_node_is_known() {
        let memory = vec![1u8; 3 * (PART as usize) * 4096];
        let own = std::process::id();
        let parts = parts(own, 4096);
        let at = memory.as_ptr().addr() as u64 + 4096;
        assert!(
            parts
                .iter()
                .any(|(_, first, last)| (*first..*last).contains(&at))
        );
        assert!(
            parts
                .iter()
                .all(|(_, first, last)| last - first <= PART * 4096 && first < last)
        );
        match nodes_of(own, &[at as usize]) {
            Ok(nodes) => assert!(nodes[0] >= 0, "{nodes:?}"),
            Err(error) => println_refused(&error),
        }
    }

    /// Containers may forbid the call.
    fn println_refused(error: &io::Error) {
        assert!(
            matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS)),
            "{error}"
        );
        notrun::not_run(format!("move_pages is refused here: {error}"));
    }

    #[test]
    fn one_node_is_refused_in_one_line() {
        let error = Migration::new(&Machine::parse("1x4").unwrap()).unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains("--migrate") && said.contains("one node"),
            "{said}"
        );
    }
}
