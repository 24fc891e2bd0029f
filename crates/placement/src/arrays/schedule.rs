//! The scheduler: threads per chunk and their nodes, from where the chunks lie and what is read of them.

use std::collections::BTreeMap;

use topology::CacheKind;

use super::cut::Tape;
use super::division::{Chunk, Division, Piece, check};
use super::flow::{Flow, Nodes};
use super::goal::{Goal, LEAST_PIECE};
use super::load::Weights;
use crate::error::{Error, Result};
use crate::placement::Placement;
use crate::site::Site;
use crate::threads::MAX_THREADS;

/// A chunk that is at most this part of a thread's work is not cut.
const GRAIN: f64 = 0.02;

/// Which thread reads what, where it runs, and why.
#[derive(Debug, Clone)]
pub struct Schedule {
    placement: Placement,
    division: Division,
    why: Vec<String>,
}

impl Schedule {
    /// The cpu of each thread.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// The pieces of each thread.
    pub fn division(&self) -> &Division {
        &self.division
    }

    /// How many threads there are: no more than were asked for.
    pub fn threads(&self) -> usize {
        self.placement.threads()
    }

    /// The reasons in words, a sentence each: first how many threads, then node by node.
    pub fn why(&self) -> &[String] {
        &self.why
    }
}

/// Chooses how many of `threads` threads work on each chunk, and on which nodes.
///
/// 1. No more threads than there are pieces of [`LEAST_PIECE`] and cores, or whole multiples of the cores.
/// 2. Nodes get threads in proportion to the bytes that lie on them, as far as they have cores. What is left over goes,
///    under [`Goal::Shortest`], to the nearest nodes with free cores, which read as much remotely as makes all cores
///    equally busy.
/// 3. Each thread of a node takes the next run of the node's bytes. Where that cuts a chunk, several threads share it, and
///    they are neighbours; chunks much smaller than a thread's work are taken whole. Where what the threads of a node read
///    and make of a chunk each would not fit into its last-level cache together, but that of fewer chunks would, teams of
///    threads share each chunk.
///
/// It follows from its arguments alone.
///
/// # Errors
/// [`Error::Threads`] for no thread or too many, [`Error::Home`] for a chunk on a node that the machine has not.
pub fn schedule(site: &Site, threads: usize, chunks: &[Chunk], goal: Goal) -> Result<Schedule> {
    if threads == 0 || threads > MAX_THREADS {
        return Err(Error::Threads { threads });
    }
    check(site, chunks)?;
    let (wanted, first) = wanted(site, threads, chunks);
    let weights = Weights::of(site);
    let mut data = vec![0.0; site.nodes().len()];
    for chunk in chunks {
        data[chunk.home] += chunk.bytes as f64;
    }
    let nodes = Nodes {
        data,
        cores: site.nodes().iter().map(Vec::len).collect(),
        times: wanted.div_ceil(site.cores()),
        weights: &weights,
        goal,
    };
    let flow = nodes.plan(wanted);
    let teams = teams(site, &flow, chunks);
    let work = work(&flow, &teams, chunks, &weights);
    let mut why = vec![first];
    let (mut cpus, mut all) = (Vec::new(), Vec::new());
    for (node, own) in work.into_iter().enumerate() {
        if own.is_empty() {
            why.extend(idle(&nodes, node, &flow));
            continue;
        }
        why.push(reason(&nodes, &flow, node, &own, chunks, teams[node]));
        let order = site.siblings_last(&site.nodes()[node]);
        cpus.extend(order.iter().copied().cycle().take(own.len()));
        all.extend(own);
    }
    if all.is_empty() {
        // Nothing is to be read: one thread finds that out, anywhere.
        cpus.extend(site.allowed().iter().take(1));
        all.push(Vec::new());
    }
    Ok(Schedule {
        placement: Placement::single(cpus),
        division: Division { threads: all },
        why,
    })
}

/// How many threads there is work and room for, and the reason.
fn wanted(site: &Site, threads: usize, chunks: &[Chunk]) -> (usize, String) {
    let pieces = |chunk: &Chunk| chunk.slabs.max(1).min(chunk.bytes.div_ceil(LEAST_PIECE));
    let pieces = chunks.iter().map(pieces).fold(0, u64::saturating_add);
    let bytes: u64 = chunks.iter().map(|chunk| chunk.bytes).sum();
    let what = format!(
        "{} of {} to read",
        size(bytes as f64),
        counted(chunks.len(), "chunk")
    );
    let room = match threads / site.cores() {
        0 => threads,
        times => times * site.cores(),
    };
    let work = usize::try_from(pieces).unwrap_or(usize::MAX).max(1);
    let named = |count| counted(count, "thread");
    if work < room {
        let why = format!(
            "{}: {what}, which is work for no more: pieces have at least {} and do not cut a run of cells",
            named(work),
            size(LEAST_PIECE as f64)
        );
        (work, why)
    } else if room < threads {
        let cores = site.cores();
        let why = format!(
            "{} of {threads}: {what}; of more, some of the {cores} cores would have more than others",
            named(room)
        );
        (room, why)
    } else {
        (threads, format!("{}: {what}", named(threads)))
    }
}

/// The pieces of each thread, by node.
fn work(flow: &Flow, teams: &[usize], chunks: &[Chunk], weights: &Weights) -> Vec<Vec<Vec<Piece>>> {
    let nodes = flow.threads.len();
    let grain = flow.busiest * GRAIN;
    let mut tapes: Vec<Tape<'_>> = (0..nodes).map(|_| Tape::new(chunks, grain)).collect();
    for home in 0..nodes {
        let mut own = Tape::new(chunks, grain);
        let all = chunks.iter().enumerate();
        let all = all.filter(|(_, chunk)| chunk.home == home && chunk.bytes > 0);
        own.put(
            all.map(|(at, chunk)| Piece {
                chunk: at,
                from: 0,
                to: chunk.bytes,
            }),
            1.0,
        );
        // Its own threads first, then the others; the last of them takes what rounding leaves.
        let mut readers: Vec<usize> = (0..nodes)
            .filter(|&node| flow.bytes[home][node] > 0.5)
            .collect();
        readers.sort_by_key(|&node| node != home);
        let last = readers.pop();
        for node in readers {
            let taken = own.take(flow.bytes[home][node]);
            tapes[node].put(taken, weights.get(node, home));
        }
        if let Some(node) = last {
            tapes[node].put(own.rest(), weights.get(node, home));
        }
    }
    tapes
        .into_iter()
        .enumerate()
        .map(|(node, mut tape)| of_node(&mut tape, flow.threads[node], teams[node], chunks))
        .collect()
}

/// The pieces of so many threads of a node, in teams.
fn of_node(tape: &mut Tape<'_>, threads: usize, team: usize, chunks: &[Chunk]) -> Vec<Vec<Piece>> {
    let mut own = Vec::with_capacity(threads);
    let teams = threads / team.max(1);
    for left in (1..=teams).rev() {
        let taken = match left {
            1 => tape.rest(),
            _ => tape.take(tape.weighted() / left as f64),
        };
        own.extend(shared(taken, team, chunks));
    }
    own.retain(|pieces: &Vec<Piece>| !pieces.is_empty());
    own
}

/// The pieces of the members of a team, which share each of these.
fn shared(pieces: Vec<Piece>, team: usize, chunks: &[Chunk]) -> Vec<Vec<Piece>> {
    if team <= 1 {
        return vec![pieces];
    }
    let mut members: Vec<Vec<Piece>> = vec![Vec::new(); team];
    let mut bytes = vec![0; team];
    for piece in pieces {
        let each = piece.bytes() / team as u64;
        if each < LEAST_PIECE {
            // Too small to be shared: for who has least.
            let least = (0..team).min_by_key(|&member| bytes[member]).unwrap_or(0);
            bytes[least] += piece.bytes();
            members[least].push(piece);
            continue;
        }
        let mut from = piece.from;
        for member in 0..team {
            let end = piece.from + each * (member as u64 + 1);
            let to = if member + 1 == team {
                piece.to
            } else {
                chunks[piece.chunk].nearest_cut(end).clamp(from, piece.to)
            };
            if to > from {
                bytes[member] += to - from;
                members[member].push(Piece { from, to, ..piece });
                from = to;
            }
        }
    }
    members
}

/// How many threads of each node share each chunk, so that what they read and make of all they work on fits into the
/// last-level cache; 1 where it does anyway, or never does.
fn teams(site: &Site, flow: &Flow, chunks: &[Chunk]) -> Vec<usize> {
    let mut bytes = vec![(0u64, 0u64); flow.threads.len()];
    for chunk in chunks.iter().filter(|chunk| chunk.bytes > 0) {
        let (sum, count) = &mut bytes[chunk.home];
        (*sum, *count) = (*sum + chunk.bytes, *count + 1);
    }
    let of_node = |(node, &threads): (usize, &usize)| {
        let (sum, count) = bytes[node];
        let cores = site.nodes()[node].len();
        let Some(mean) = sum.checked_div(count).filter(|_| threads > 1 && cores > 0) else {
            return 1;
        };
        let caches = site.machine().nodes()[node].caches.iter();
        let last = caches
            .filter(|cache| cache.kind != CacheKind::Instruction && cache.bytes > 0)
            .max_by_key(|cache| cache.level);
        let Some(last) = last else { return 1 };
        // Threads below one cache, and what they read and make of a chunk each.
        let below = last.cpus.len().min(threads).max(1) as u64;
        let wanted = (2 * mean * below).div_ceil(last.bytes.max(1));
        let fits = |team: &usize| threads.is_multiple_of(*team) && *team as u64 >= wanted;
        (1..=threads.min(below as usize)).find(fits).unwrap_or(1)
    };
    flow.threads.iter().enumerate().map(of_node).collect()
}

/// Why a node with work has its threads, and how they share the chunks.
fn reason(
    nodes: &Nodes<'_>,
    flow: &Flow,
    node: usize,
    own: &[Vec<Piece>],
    chunks: &[Chunk],
    team: usize,
) -> String {
    let mut of_home: BTreeMap<usize, f64> = BTreeMap::new();
    let mut readers: BTreeMap<usize, usize> = BTreeMap::new();
    for pieces in own {
        let mut last = None;
        for piece in pieces {
            *of_home.entry(chunks[piece.chunk].home).or_default() += piece.bytes() as f64;
            if last != Some(piece.chunk) {
                *readers.entry(piece.chunk).or_default() += 1;
            }
            last = Some(piece.chunk);
        }
    }
    let local = of_home.remove(&node).unwrap_or(0.0);
    let mut text = format!("node {node}, {}: ", counted(own.len(), "thread"));
    text += &match (
        local > 0.0,
        flow.bytes[node].iter().sum::<f64>() - local > LEAST_PIECE as f64,
    ) {
        (true, false) => format!("read the {} that lie there", size(local)),
        (true, true) => format!(
            "read {} of the {} that lie there",
            size(local),
            size(nodes.data[node])
        ),
        (false, _) => "nothing lies there that they read".to_owned(),
    };
    for (home, bytes) in of_home {
        let weight = nodes.weights.get(node, home);
        text += &match nodes.cores[home] {
            0 => format!(", and {} of node {home}, which has no cores", size(bytes)),
            _ => format!(
                ", and {} of node {home}, whose cores would have more to do than these although each byte weighs {weight:.1} here",
                size(bytes)
            ),
        };
    }
    let shared = readers.values().filter(|&&threads| threads > 1).count();
    let most = readers.values().copied().max().unwrap_or(0);
    text += &match shared {
        _ if team > 1 => format!(
            "; {} shared by teams of {team}, so that what all of them work on at a time fits into the last-level cache",
            counted(readers.len(), "chunk")
        ),
        0 => format!("; {} taken whole", counted(readers.len(), "chunk")),
        _ => format!(
            "; {} of {} shared by up to {most} threads, as whole ones would not be equally many for each",
            shared,
            counted(readers.len(), "chunk"),
        ),
    };
    text
}

/// Why a node has no work, if that needs a reason.
fn idle(nodes: &Nodes<'_>, node: usize, flow: &Flow) -> Option<String> {
    let reader = flow.bytes[node].iter().position(|bytes| *bytes > 0.5);
    match (nodes.cores[node], reader) {
        (0, Some(reader)) => Some(format!(
            "node {node} has no cores: node {reader} reads its {}",
            size(nodes.data[node])
        )),
        (0, None) => None,
        (_, Some(reader)) => Some(format!(
            "node {node} gets no thread for its {}: node {reader} reads them",
            size(nodes.data[node])
        )),
        (_, None) => Some(format!("node {node} stays idle: nothing lies there")),
    }
}

/// `1 chunk`, `3 chunks`
fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// `80 MiB`
fn size(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut at) = (bytes, 0);
    while value >= 1024.0 && at + 1 < units.len() {
        value /= 1024.0;
        at += 1;
    }
    if value >= 100.0 || value.fract() < 0.05 || at == 0 {
        format!("{value:.0} {}", units[at])
    } else {
        format!("{value:.1} {}", units[at])
    }
}
