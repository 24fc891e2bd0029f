//! Breadth-first search that changes its direction (Beamer, Asanović, Patterson, "Direction-optimizing breadth-first
//! search", SC 2012).
//!
//! Top-down, the vertices of a level look for neighbours that were not reached; bottom-up, the vertices that were not
//! reached look for a neighbour in the level. The second is cheaper where a level has much of the graph, as one
//! neighbour is enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::read::graph::Graph;
use crate::read::reader::{Enough, Reader, Reads};
use crate::run::bits::Bits;
use crate::run::crew::{Crew, Share, home};

/// Bottom-up when the edges of the level are more than one in this many of those that were not looked at (GAP's alpha).
const EDGES: u64 = 15;
/// Top-down again when the level has fewer than one in this many of the vertices (GAP's beta).
const VERTICES: u64 = 18;
/// Vertices of a level that a task takes at once.
const CHUNK: usize = 256;
/// The level of a vertex that was not reached.
const NEVER: u32 = u32::MAX;

/// What a search has found.
#[derive(Debug)]
pub struct Search {
    /// The level of each vertex.
    levels: Vec<AtomicU32>,
    /// How many vertices each level has. The first is that of the source alone.
    pub sizes: Vec<u64>,
    /// What it has asked of the pool.
    pub reads: Reads,
    /// How long it took.
    pub time: Duration,
}

impl Search {
    /// How many edges lie between the source and a vertex at least; `None` if no way leads there.
    pub fn level(&self, vertex: u32) -> Option<u32> {
        let level = self.levels.get(vertex as usize)?.load(Ordering::Relaxed);
        (level != NEVER).then_some(level)
    }

    /// Gives back the memory for the level of each vertex: after this, none has one.
    pub fn forget_levels(&mut self) {
        self.levels = Vec::new();
    }

    /// How many vertices were reached, the source among them.
    pub fn reached(&self) -> u64 {
        self.sizes.iter().sum()
    }
}

/// Searches from `source` along the edges.
///
/// In memory are 4 bytes and 2 bits for each vertex, and 4 bytes for each of a level.
///
/// # Errors
/// [`Error::NoVertex`](crate::Error::NoVertex); [`Error::Memory`](crate::Error::Memory);
/// [`Error::Damaged`](crate::Error::Damaged), [`Error::Buffer`](crate::Error::Buffer) of the pages;
/// [`Error::Interrupted`](crate::Error::Interrupted).
pub async fn bfs(graph: &Arc<Graph>, source: u32, crew: &Crew) -> Result<Search> {
    let begun = Instant::now();
    let vertices = graph.vertices();
    graph.check(source)?;
    // Levels, two sets, and the queues of two levels.
    let bytes = 12 * u64::from(vertices) + 2 * Bits::bytes(vertices);
    let _room = crew.room_of(graph, bytes, "a breadth-first search")?;
    let mut run = Run {
        graph,
        crew,
        state: Arc::new(State::new(vertices)),
        sizes: vec![1],
        reads: Reads::default(),
        scattered: graph.list_pages() > graph.pool().frames(),
    };
    run.search(source).await?;
    let Run {
        state,
        sizes,
        reads,
        ..
    } = run;
    let state = Arc::into_inner(state);
    Ok(Search {
        levels: state.map(|state| state.levels).unwrap_or_default(),
        sizes,
        reads,
        time: begun.elapsed(),
    })
}

/// What the tasks share.
#[derive(Debug)]
struct State {
    levels: Vec<AtomicU32>,
    /// Bottom-up: the vertices of the levels with even and with odd numbers.
    sets: [Bits; 2],
}

impl State {
    fn new(vertices: u32) -> State {
        State {
            levels: (0..vertices).map(|_| AtomicU32::new(NEVER)).collect(),
            sets: [Bits::new(vertices), Bits::new(vertices)],
        }
    }

    fn set(&self, level: u32) -> &Bits {
        &self.sets[level as usize % 2]
    }

    /// Whether this task is the first to reach a vertex.
    #[inline]
    fn claim(&self, vertex: u32, level: u32) -> bool {
        let slot = &self.levels[vertex as usize];
        // Relaxed: tasks of one level agree on who is first; who reads levels later does so after they were joined.
        slot.load(Ordering::Relaxed) == NEVER
            && slot
                .compare_exchange(NEVER, level, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

/// What one task has done in a level.
#[derive(Debug, Default)]
struct Step {
    /// Top-down: the vertices of the next level.
    found: Vec<u32>,
    count: u64,
    /// Top-down: edges of these, counted up to the limit.
    edges: u64,
    reads: Reads,
}

struct Run<'a> {
    graph: &'a Arc<Graph>,
    crew: &'a Crew,
    state: Arc<State>,
    sizes: Vec<u64>,
    reads: Reads,
    /// Whether the pool is too small for the lists: then a level is searched in the order of the pages.
    scattered: bool,
}

impl Run<'_> {
    async fn search(&mut self, source: u32) -> Result<()> {
        self.state.levels[source as usize].store(0, Ordering::Relaxed);
        let mut reader = Reader::new(self.graph, 2);
        let (start, end) = reader.bounds(self.graph.out(), source).await?;
        self.reads += reader.reads();
        drop(reader);
        let (mut queue, mut edges) = (vec![source], end - start);
        let mut unseen = self.graph.entries();
        while !queue.is_empty() {
            if edges > unseen / EDGES {
                queue = self.up(&queue).await?;
                // It is cheap to find out whether the next level goes bottom-up again: by going top-down first.
                edges = 0;
            } else {
                unseen = unseen.saturating_sub(edges);
                (queue, edges) = self.down(queue, unseen / EDGES).await?;
            }
        }
        Ok(())
    }

    /// The number of the level that is being found.
    fn level(&self) -> u32 {
        self.sizes.len() as u32
    }

    fn note(&mut self, count: u64) {
        if count > 0 {
            self.sizes.push(count);
        }
    }

    /// One level top-down: the next, and its edges as far as `limit`.
    async fn down(&mut self, mut queue: Vec<u32>, limit: u64) -> Result<(Vec<u32>, u64)> {
        if self.scattered {
            queue.sort_unstable();
        }
        let pieces = self.pieces(&queue).await?;
        let (queue, level) = (Arc::new(queue), self.level());
        let state = &self.state;
        let task = |graph, share| down(graph, share, state.clone(), queue.clone(), level, limit);
        let steps = self.crew.run(self.graph, pieces, task).await?;
        let (mut next, mut edges) = (Vec::new(), 0);
        for step in steps {
            self.reads += step.reads;
            edges += step.edges;
            if next.is_empty() {
                next = step.found;
            } else {
                next.extend_from_slice(&step.found);
            }
        }
        self.note(next.len() as u64);
        Ok((next, edges))
    }

    /// The chunks of a level, each with the home node of the first list.
    async fn pieces(&mut self, queue: &[u32]) -> Result<Vec<(usize, u32)>> {
        let chunks = queue.chunks(CHUNK).zip(0..);
        if self.graph.pool().nodes() == 1 {
            return Ok(chunks.map(|(_, number)| (0, number)).collect());
        }
        let lists = self.graph.out();
        let mut reader = Reader::new(self.graph, 2);
        let mut pieces = Vec::new();
        for (chunk, number) in chunks {
            let (start, _) = reader.bounds(lists, chunk[0]).await?;
            pieces.push((home(self.graph, lists, start), number));
        }
        self.reads += reader.reads();
        Ok(pieces)
    }

    /// Levels bottom-up, until one is small: this one.
    async fn up(&mut self, queue: &[u32]) -> Result<Vec<u32>> {
        let vertices = u64::from(self.graph.vertices());
        let first = self.state.set(self.level() - 1);
        first.clear();
        queue.iter().for_each(|&vertex| first.set(vertex));
        let mut size = queue.len() as u64;
        loop {
            let (before, level) = (size, self.level());
            let state = &self.state;
            let task = |graph, share| up(graph, share, state.clone(), level);
            let steps = self
                .crew
                .sweep(self.graph, self.graph.incoming(), task)
                .await?;
            steps.iter().for_each(|step| self.reads += step.reads);
            size = steps.iter().map(|step| step.count).sum();
            self.note(size);
            if size == 0 {
                return Ok(Vec::new());
            }
            if size < before && size <= vertices / VERTICES {
                return Ok(self
                    .state
                    .set(level)
                    .within(0..self.graph.vertices())
                    .collect());
            }
        }
    }
}

/// A task's share of a level, top-down.
async fn down(
    graph: Arc<Graph>,
    share: Share,
    state: Arc<State>,
    queue: Arc<Vec<u32>>,
    level: u32,
    limit: u64,
) -> Result<Step> {
    let lists = graph.out();
    let mut reader = share.reader(&graph);
    let mut step = Step::default();
    let (mut found, mut bounds) = (Vec::new(), Vec::new());
    while let Some(piece) = share.next()? {
        let from = piece as usize * CHUNK;
        let chunk = &queue[from..queue.len().min(from + CHUNK)];
        let first = |other: u32| state.claim(other, level);
        let see = |_: u32, part: &[u32]| {
            found.extend(part.iter().copied().filter(|&other| first(other)));
        };
        reader.lists_of(lists, chunk, &mut bounds, see).await?;
    }
    for chunk in found.chunks(CHUNK) {
        // More does not change which direction is next, and these pages may not be needed.
        if step.edges > limit {
            break;
        }
        reader.bounds_of(lists, chunk, &mut bounds).await?;
        step.edges += bounds.iter().map(|(start, end)| end - start).sum::<u64>();
    }
    step.found = found;
    step.reads = reader.reads();
    Ok(step)
}

/// A task's share of a level, bottom-up.
async fn up(graph: Arc<Graph>, share: Share, state: Arc<State>, level: u32) -> Result<Step> {
    let lists = graph.incoming();
    let (last, next) = (state.set(level - 1), state.set(level));
    let mut reader = share.reader(&graph);
    let mut step = Step::default();
    let mut offsets = Vec::new();
    while let Some(range) = share.vertices(&graph)? {
        next.clear_within(range.clone());
        // Relaxed: no other task has these vertices.
        let slots = &state.levels;
        let unseen = |vertex: u32| slots[vertex as usize].load(Ordering::Relaxed) == NEVER;
        let mut count = 0;
        let see = |vertex: u32, part: &[u32]| {
            if !part.iter().any(|&other| last.has(other)) {
                return Enough::No;
            }
            slots[vertex as usize].store(level, Ordering::Relaxed);
            next.set_alone(vertex);
            count += 1;
            Enough::Yes
        };
        reader
            .lists(lists, range, &mut offsets, unseen, see)
            .await?;
        step.count += count;
    }
    step.reads = reader.reads();
    Ok(step)
}
