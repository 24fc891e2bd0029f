//! Counts in software where the bytes of a query over chunks come from: which node's memory, or a last-level cache.
//!
//! The model: threads take turns, a block each. A group of threads goes through its chunks one after the other. Of a
//! chunk each thread reads its part and writes those blocks that the query keeps; when all of them have, the next
//! operator reads what was kept, each thread the part of its neighbour. Groups go from step to step together. Each last-level cache has 16 ways and forgets
//! what was least recently used. A block lies where it was first written: the input by the first thread of its group, or
//! at the home that is given. What may run on several cpus is dealt to them anew every few blocks. No prefetching, no
//! private caches, no coherence.

use std::collections::BTreeMap;

use placement::arrays::{Chunk, Division, Schedule, Sharing};
use placement::{CpuSet, Placement, Random, Site, Threads, cost};
use serde::Serialize;

use super::cache::{BLOCK, Cache, capacity};
use super::works::{Reader, Works};
use crate::error::Result;

/// Blocks after which the system may move a thread.
const SLICE: usize = 32;
/// Of a block that nobody has written.
const NOWHERE: u8 = u8::MAX;

/// What the threads of a query do.
#[derive(Clone, Debug)]
pub(super) struct Task {
    threads: usize,
    groups: Vec<Group>,
    /// The first block of each chunk, and the end of the last.
    starts: Vec<usize>,
    /// Where each chunk lies; without, where it was loaded.
    homes: Option<Vec<usize>>,
    /// The share of the blocks that is kept.
    keep: f64,
    /// Whether the next operator's threads are those of the next group, as where results get chunks of their own.
    redistribute: bool,
}

/// Threads that go through chunks together.
#[derive(Clone, Debug)]
struct Group {
    members: Vec<usize>,
    turns: Vec<Turn>,
}

/// A chunk's blocks of each member.
#[derive(Clone, Debug)]
struct Turn {
    parts: Vec<(usize, usize)>,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Counted {
    /// Bytes from the memory of the reader's own node.
    pub local: f64,
    /// Bytes from that of other nodes.
    pub remote: f64,
    /// Bytes that the last-level caches were asked for.
    pub asked: f64,
    /// Bytes from memory, those of other nodes weighted with their distance.
    pub weighted: f64,
    /// The weighted bytes of the core that has most of them, or of the thread, where the system moves threads.
    pub busiest: f64,
    /// Seconds of the machine, by a [model](cost) of it.
    pub seconds: f64,
    /// Joules of its memory, and of cores, memory and links together, by the same.
    pub memory_joules: f64,
    pub joules: f64,
}

impl Counted {
    /// Remote bytes of those from memory.
    pub(super) fn remote_share(&self) -> f64 {
        self.remote / (self.local + self.remote)
    }

    /// Bytes from memory of those that the caches were asked for.
    pub(super) fn miss_ratio(&self) -> f64 {
        (self.local + self.remote) / self.asked
    }
}

impl Task {
    /// Threads that share chunks as they say; chunks lie where their group's first thread loads them.
    ///
    /// # Errors
    /// Those of the division.
    pub(super) fn grouped(
        sharing: Sharing,
        threads: usize,
        chunks: &[Chunk],
        keep: f64,
        redistribute: bool,
    ) -> Result<Task> {
        let division = sharing.divide(threads, chunks)?;
        let members = Threads::with_groups(sharing.groups(threads)?)?.by_group();
        let starts = starts(chunks);
        let group = |members: Vec<usize>| Group {
            turns: turns(&members, &division, &starts),
            members,
        };
        Ok(Task {
            threads,
            groups: members.into_iter().map(group).collect(),
            homes: None,
            starts,
            keep,
            redistribute,
        })
    }

    /// Threads that read what the scheduler says, and then what they have kept themselves; chunks lie on their homes.
    pub(super) fn scheduled(schedule: &Schedule, chunks: &[Chunk], keep: f64) -> Task {
        let starts = starts(chunks);
        let division = schedule.division();
        let group = |thread: usize| Group {
            turns: turns(&[thread], division, &starts),
            members: vec![thread],
        };
        Task {
            threads: schedule.threads(),
            groups: (0..schedule.threads()).map(group).collect(),
            homes: Some(chunks.iter().map(|chunk| chunk.home).collect()),
            starts,
            keep,
            redistribute: false,
        }
    }

    /// Whether block `at` is kept: as many of any run of blocks as the share says.
    fn keeps(&self, at: usize) -> bool {
        (self.keep * (at + 1) as f64).floor() > (self.keep * at as f64).floor()
    }

    /// How many threads have something to do.
    pub(super) fn busy(&self) -> usize {
        let groups = self.groups.iter();
        let busy = groups.map(|group| {
            let works = |at: &usize| {
                let mut turns = group.turns.iter();
                turns.any(|turn| turn.parts[*at].0 < turn.parts[*at].1)
            };
            (0..group.members.len()).filter(works).count()
        });
        busy.sum()
    }
}

fn starts(chunks: &[Chunk]) -> Vec<usize> {
    let mut end = 0;
    let ends = chunks.iter().map(|chunk| {
        end += chunk.bytes.div_ceil(BLOCK) as usize;
        end
    });
    std::iter::once(0).chain(ends).collect()
}

/// The turns of a group, in the order of its chunks.
fn turns(members: &[usize], division: &Division, starts: &[usize]) -> Vec<Turn> {
    let mut turns: BTreeMap<usize, Turn> = BTreeMap::new();
    for (at, &member) in members.iter().enumerate() {
        for piece in &division.threads()[member] {
            let turn = turns.entry(piece.chunk).or_insert_with(|| Turn {
                parts: vec![(0, 0); members.len()],
            });
            let (first, end) = (starts[piece.chunk], starts[piece.chunk + 1]);
            let block = |byte: u64| (first + (byte / BLOCK) as usize).min(end);
            // The last part has the rest of the last block.
            let to = block(piece.to + BLOCK - 1);
            let from = block(piece.from + BLOCK - 1);
            let from = if piece.from == 0 { first } else { from };
            turn.parts[at] = (from, to.max(from));
        }
    }
    turns.into_values().collect()
}

/// Where a thread is.
#[derive(Clone, Copy, Debug, Default)]
struct Spot {
    core: usize,
    node: usize,
    cache: usize,
}

/// The machine as the model sees it.
pub(super) struct Model {
    spots: BTreeMap<u32, Spot>,
    cores: usize,
    caches: Vec<u64>,
    weights: Vec<Vec<f64>>,
    cost: cost::Model,
}

impl Model {
    /// Of the cpus that a site has.
    pub(super) fn of(site: &Site) -> Model {
        let machine = site.machine();
        let sets = site.cache_sets();
        let cache_of = |cpu: u32| sets.iter().position(|set| set.contains(cpu)).unwrap_or(0);
        let mut spots = BTreeMap::new();
        let cores = machine.nodes().iter().flat_map(|node| {
            let index = node.index;
            node.cores.iter().map(move |core| (index, core))
        });
        for (number, (node, core)) in cores.enumerate() {
            for &cpu in &core.cpus {
                let spot = Spot {
                    core: number,
                    node,
                    cache: cache_of(cpu),
                };
                spots.insert(cpu, spot);
            }
        }
        let local = |node| f64::from(machine.distance(node, node).max(1));
        let nodes = machine.nodes().len();
        let weight = |a: usize, b: usize| f64::from(machine.distance(a, b)) / local(a);
        Model {
            spots,
            cores: machine.cores(),
            caches: sets.iter().map(|set| capacity(machine, set)).collect(),
            weights: (0..nodes)
                .map(|a| (0..nodes).map(|b| weight(a, b)).collect())
                .collect(),
            cost: cost::Model::new(machine),
        }
    }

    /// What the largest of the caches holds, in bytes.
    pub(super) fn cache_bytes(&self) -> u64 {
        self.caches.iter().copied().max().unwrap_or(0)
    }

    /// Counts a task under a placement of its threads. The same seed gives the same numbers; it decides only where
    /// threads are that the placement leaves to the system.
    pub(super) fn count(&self, placement: &Placement, task: &Task, seed: u64) -> Counted {
        let blocks = task.starts.last().copied().unwrap_or(0);
        let mut run = Run {
            model: self,
            task,
            placement,
            random: Random::new(seed),
            spots: vec![Spot::default(); task.threads],
            caches: self.caches.iter().map(|&bytes| Cache::new(bytes)).collect(),
            input: vec![NOWHERE; blocks],
            output: vec![NOWHERE; blocks],
            cores: vec![0.0; self.cores],
            threads: vec![0.0; task.threads],
            works: Works::new(task.groups.len()),
            sharing: vec![0; self.cores],
            counted: Counted::default(),
        };
        run.deal();
        run.load();
        run.work();
        let all = run.cores.iter().chain(&run.threads);
        run.counted.busiest = all.copied().fold(0.0, f64::max);
        let cost = run.works.cost(&self.cost);
        run.counted.seconds = cost.seconds;
        (run.counted.memory_joules, run.counted.joules) = (cost.memory_joules, cost.joules());
        run.counted
    }
}

/// A task under way.
struct Run<'m> {
    model: &'m Model,
    task: &'m Task,
    placement: &'m Placement,
    random: Random,
    spots: Vec<Spot>,
    caches: Vec<Cache>,
    /// The node of each block that is read, and of each that was written.
    input: Vec<u8>,
    output: Vec<u8>,
    /// Weighted bytes.
    cores: Vec<f64>,
    threads: Vec<f64>,
    works: Works,
    /// How many threads of groups that have chunks are on each core.
    sharing: Vec<usize>,
    counted: Counted,
}

/// How far a group is.
#[derive(Clone, Debug)]
struct Progress {
    turn: usize,
    /// Whether the next operator reads.
    gathers: bool,
    /// The next block of each member.
    at: Vec<usize>,
}

impl Run<'_> {
    /// Puts threads on their cpus; those that may run on several on some of them, no two on one if there are enough.
    fn deal(&mut self) {
        let mut last: Option<(&CpuSet, Vec<u32>)> = None;
        let mut given = 0;
        for thread in 0..self.task.threads {
            let set = self.placement.of(thread);
            let fits = last.as_ref().is_some_and(|(own, _)| *own == set);
            if !fits {
                let mut cpus: Vec<u32> = set.iter().collect();
                for at in (1..cpus.len()).rev() {
                    cpus.swap(at, self.random.index(at + 1));
                }
                last = Some((set, cpus));
                given = 0;
            }
            let cpu = last.as_ref().map(|(_, cpus)| cpus[given % cpus.len()]);
            given += 1;
            let spot = cpu.and_then(|cpu| self.model.spots.get(&cpu));
            self.spots[thread] = spot.copied().unwrap_or_default();
        }
        self.sharing.fill(0);
        let working = self
            .task
            .groups
            .iter()
            .filter(|group| !group.turns.is_empty());
        for &thread in working.flat_map(|group| &group.members) {
            self.sharing[self.spots[thread].core] += 1;
        }
    }

    /// Where the input lies.
    fn load(&mut self) {
        let task = self.task;
        if let Some(homes) = &task.homes {
            for (chunk, &home) in homes.iter().enumerate() {
                self.input[task.starts[chunk]..task.starts[chunk + 1]].fill(home as u8);
            }
            return;
        }
        for group in &task.groups {
            let set = self.placement.of(group.members[0]);
            let cpus: Vec<u32> = set.iter().collect();
            for part in group.turns.iter().flat_map(|turn| &turn.parts) {
                let blocks = &mut self.input[part.0..part.1];
                for some in blocks.chunks_mut(SLICE) {
                    let cpu = cpus[self.random.index(cpus.len())];
                    let node = self.model.spots.get(&cpu).map_or(0, |spot| spot.node);
                    some.fill(node as u8);
                }
            }
        }
    }

    fn work(&mut self) {
        let task = self.task;
        let begin = |group: &Group, turn: usize| Progress {
            turn,
            gathers: false,
            at: part_starts(group.turns.get(turn)),
        };
        let mut all: Vec<Progress> = task.groups.iter().map(|group| begin(group, 0)).collect();
        let moves = self.placement.sets().iter().any(|set| set.len() > 1);
        for round in 1usize.. {
            if moves && round.is_multiple_of(SLICE) {
                self.deal();
            }
            let mut idle = true;
            for (number, group) in task.groups.iter().enumerate() {
                for (member, &thread) in group.members.iter().enumerate() {
                    idle &= !self.step(number, member, thread, &mut all[number]);
                }
            }
            if !idle {
                continue;
            }
            // A round without work: all have come to the end of their part. Groups go on together, as what one has made
            // another may read.
            let mut more = false;
            for (progress, group) in all.iter_mut().zip(&task.groups) {
                if progress.turn >= group.turns.len() {
                    continue;
                }
                more = true;
                if progress.gathers {
                    *progress = begin(group, progress.turn + 1);
                } else {
                    progress.gathers = true;
                    progress.at.fill(usize::MAX);
                }
            }
            if !more {
                return;
            }
        }
    }

    /// A block by a member of a group; whether there was one.
    fn step(
        &mut self,
        group: usize,
        member: usize,
        thread: usize,
        progress: &mut Progress,
    ) -> bool {
        let task = self.task;
        let Some(turn) = task.groups[group].turns.get(progress.turn) else {
            return false;
        };
        if !progress.gathers {
            let (block, end) = (progress.at[member], turn.parts[member].1);
            if block >= end {
                return false;
            }
            progress.at[member] += 1;
            let reader = self.reader(thread, (group, member), progress);
            self.access(thread, block, false, reader);
            if task.keeps(block) {
                if self.output[block] == NOWHERE {
                    self.output[block] = self.spots[thread].node as u8;
                }
                self.access(thread, block, true, reader);
            }
            return true;
        }
        let (from, to) = self.source(group, member, progress.turn);
        let at = if progress.at[member] == usize::MAX {
            from
        } else {
            progress.at[member]
        };
        let next = (at..to).find(|&block| task.keeps(block));
        progress.at[member] = next.map_or(to, |block| block + 1);
        if let Some(block) = next {
            let reader = self.reader(thread, (group, member), progress);
            self.access(thread, block, true, reader);
        }
        next.is_some()
    }

    /// The blocks whose kept ones a member reads for the next operator.
    fn source(&self, group: usize, member: usize, turn: usize) -> (usize, usize) {
        let groups = &self.task.groups;
        let own = &groups[group].turns[turn].parts;
        let next = &groups[(group + 1) % groups.len()];
        match next.turns.get(turn).and_then(|turn| turn.parts.get(member)) {
            Some(part) if self.task.redistribute => *part,
            _ => own[(member + 1) % own.len()],
        }
    }

    fn reader(&self, thread: usize, (group, member): (usize, usize), at: &Progress) -> Reader {
        let spot = self.spots[thread];
        Reader {
            group,
            member,
            step: 2 * at.turn + usize::from(at.gathers),
            node: spot.node,
            sharing: self.sharing[spot.core],
        }
    }

    fn access(&mut self, thread: usize, block: usize, output: bool, reader: Reader) {
        let spot = self.spots[thread];
        let bytes = BLOCK as f64;
        self.counted.asked += bytes;
        if self.caches[spot.cache].access(block as u64 * 2 + u64::from(output)) {
            return self.works.cached(reader, bytes);
        }
        let home = if output {
            self.output[block]
        } else {
            self.input[block]
        };
        let home = usize::from(home);
        let weights = &self.model.weights[spot.node];
        let weighted = bytes * weights.get(home).copied().unwrap_or(1.0);
        if home == spot.node {
            self.counted.local += bytes;
        } else {
            self.counted.remote += bytes;
        }
        self.counted.weighted += weighted;
        self.cores[spot.core] += weighted;
        self.threads[thread] += weighted;
        self.works.memory(reader, home, bytes);
    }
}

/// The first block of each member.
fn part_starts(turn: Option<&Turn>) -> Vec<usize> {
    turn.map_or(Vec::new(), |turn| {
        turn.parts.iter().map(|part| part.0).collect()
    })
}

#[cfg(test)]
mod tests {
    use placement::Strategy;
    use placement::arrays::{Goal, schedule};
    use topology::Machine;

    use super::*;

    const MIB: f64 = 1048576.0;

    fn site() -> Site {
        Site::new(&Machine::parse("xeon-2630").unwrap())
    }

    fn chunks(count: usize, mib: u64) -> Vec<Chunk> {
        let chunk = |at: usize| Chunk {
            home: at % 2,
            bytes: mib << 20,
            slabs: mib * 16,
        };
        (0..count).map(chunk).collect()
    }

    fn on(cpus: &[u32]) -> Placement {
        let sets = cpus.iter().map(|&cpu| CpuSet::from(vec![cpu])).collect();
        Placement::explicit(&site(), sets).unwrap()
    }

    fn count(sharing: Sharing, placement: &Placement, chunks: &[Chunk], keep: f64) -> Counted {
        let task = Task::grouped(sharing, placement.threads(), chunks, keep, false).unwrap();
        Model::of(&site()).count(placement, &task, 1)
    }

    #[test]
    fn groups_on_one_node_read_nothing_remotely() {
        let groups = Sharing::Groups { of: 2 };
        let all = chunks(4, 32);
        let together = count(groups, &on(&[0, 1, 6, 7]), &all, 0.0);
        assert_eq!((together.local, together.remote), (128.0 * MIB, 0.0));
        assert_eq!(together.asked, together.local);
        assert_eq!(together.busiest, 32.0 * MIB);
        // 32 MiB at 9.6 GB/s, and the queue of a memory that two threads read from.
        assert!((0.0035..0.0038).contains(&together.seconds), "{together:?}");
        // The first thread of a group loads, the second one reads half of it from the other node.
        let apart = count(groups, &on(&[0, 6, 1, 7]), &all, 0.0);
        assert_eq!((apart.local, apart.remote), (64.0 * MIB, 64.0 * MIB));
        assert!((apart.busiest - 1.3 * 32.0 * MIB).abs() < 1.0);
        assert!(apart.seconds > 1.2 * together.seconds && apart.joules > together.joules);
    }

    #[test]
    fn what_is_kept_is_read_again_out_of_the_cache_of_a_neighbour_or_not() {
        let groups = Sharing::Groups { of: 2 };
        let small = chunks(4, 4);
        let together = count(groups, &on(&[0, 1, 6, 7]), &small, 1.0);
        // Read, written, and read again: of three the last is found.
        assert_eq!(together.asked, 3.0 * 16.0 * MIB);
        assert_eq!(together.local, 2.0 * 16.0 * MIB);
        let apart = count(groups, &on(&[0, 6, 1, 7]), &small, 1.0);
        assert_eq!(apart.local + apart.remote, 3.0 * 16.0 * MIB);
        assert_eq!(apart.remote, 16.0 * MIB * 1.5);
        // What does not fit into the cache is not found.
        let large = count(groups, &on(&[0, 1, 6, 7]), &chunks(2, 64), 1.0);
        assert_eq!(large.local, large.asked);
        let half = count(groups, &on(&[0, 1, 6, 7]), &small, 0.5);
        assert_eq!(half.asked, 2.0 * 16.0 * MIB);
    }

    #[test]
    fn the_system_spreads_what_it_may_move() {
        let threads = Threads::in_groups(12, 3).unwrap();
        let os = Strategy::Os.place(&site(), &threads).unwrap();
        let groups = Sharing::Groups { of: 4 };
        let counted = count(groups, &os, &chunks(12, 64), 0.0);
        assert!((counted.remote_share() - 0.5).abs() < 0.05, "{counted:?}");
        assert_eq!(counted, count(groups, &os, &chunks(12, 64), 0.0));
    }

    #[test]
    fn instances_read_what_others_made() {
        let all = chunks(8, 4);
        let own = Sharing::Instances { count: 2 };
        let placement = on(&[0, 1, 6, 7]);
        let task = Task::grouped(own, 4, &all, 1.0, true).unwrap();
        let counted = Model::of(&site()).count(&placement, &task, 1);
        assert_eq!(counted.remote, 32.0 * MIB);
        assert_eq!(counted.local, 64.0 * MIB);
    }

    #[test]
    fn the_scheduler_reads_homes_and_gets_its_own_back() {
        let all = chunks(12, 4);
        let site = site();
        let schedule = schedule(&site, 12, &all, Goal::Shortest).unwrap();
        let task = Task::scheduled(&schedule, &all, 1.0);
        let counted = Model::of(&site).count(schedule.placement(), &task, 1);
        assert_eq!((counted.remote, counted.asked), (0.0, 3.0 * 48.0 * MIB));
        assert_eq!(task.busy(), 12);
    }
}
