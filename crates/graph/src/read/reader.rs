//! How a task reads a graph: through a bounded number of pins that it keeps for as long as it can.
//!
//! A task has *slots*, a power of two of them. The page with number *p* is kept in slot *p* modulo the
//! slots until another page wants the slot. The pages of an array have numbers one after the other, so
//! of a graph that has no more pages than the task has slots, each is pinned once; and in any case a
//! page is resolved once for each run of lists on it. A slot is emptied before its next page is
//! pinned, so that tasks that wait for a frame hold one page less.

use std::ops::Range;

use buffer::{PageId, Pin, Pool};
use bytemuck::AnyBitPattern;

use crate::error::Result;
use crate::read::ahead::Ahead;
use crate::read::graph::{Graph, Lists, Paged};

/// What a run has asked of the pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reads {
    /// Pages that were pinned.
    pub pins: u64,
    /// Pages that were not in a frame when they were pinned, or when they were asked for ahead of that, and so were read
    /// from the file. Where two tasks miss the same page at once, both count it.
    pub misses: u64,
}

impl std::ops::AddAssign for Reads {
    fn add_assign(&mut self, more: Reads) {
        self.pins += more.pins;
        self.misses += more.misses;
    }
}

/// Whether one has seen enough of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enough {
    Yes,
    No,
}

/// Reads the arrays of a graph for one task.
pub(crate) struct Reader<'g> {
    graph: &'g Graph,
    pool: &'g Pool,
    slots: Box<[Option<Pin<'g>>]>,
    mask: usize,
    reads: Reads,
    /// `None`: pages are read when they are pinned.
    ahead: Option<Ahead<'g>>,
}

impl<'g> Reader<'g> {
    /// A reader that pins at most `slots` pages, rounded up to a power of two.
    pub fn new(graph: &'g Graph, slots: usize) -> Reader<'g> {
        let slots = slots.max(1).next_power_of_two();
        Reader {
            graph,
            pool: graph.pool(),
            slots: (0..slots).map(|_| None).collect(),
            mask: slots - 1,
            reads: Reads::default(),
            ahead: None,
        }
    }

    /// The same reader, which has pages in order loaded ahead, if the graph's lists have more of them than the pool has frames.
    pub fn reading_ahead(mut self) -> Reader<'g> {
        let pool = self.graph.pool();
        if self.graph.list_pages() > pool.frames() {
            let most = pool.frames() / pool.nodes() / 8;
            self.ahead = Some(Ahead::new(pool, most.try_into().unwrap_or(u32::MAX)));
        }
        self
    }

    /// What it has asked of the pool so far.
    pub fn reads(&self) -> Reads {
        Reads {
            misses: self.reads.misses + self.ahead.as_ref().map_or(0, Ahead::unused),
            ..self.reads
        }
    }

    /// Makes a page of an array readable, until the next call.
    #[inline]
    async fn hold(&mut self, array: &Paged, page: usize) -> Result<()> {
        let id = array.pages[page];
        match &self.slots[id as usize & self.mask] {
            Some(pin) if pin.page() == id => Ok(()),
            _ => self.pin(array, page, id).await,
        }
    }

    #[cold]
    #[inline(never)]
    fn pin_resident(&mut self, id: PageId) -> Option<Pin<'g>> {
        self.slots[id as usize & self.mask] = None;
        self.reads.pins += 1;
        self.pool.try_pin(id)
    }

    async fn pin(&mut self, array: &Paged, page: usize, id: PageId) -> Result<()> {
        let resident = self.pin_resident(id);
        let was_read = match (&mut self.ahead, array.pages.last()) {
            (Some(ahead), Some(last)) => ahead.accessed(id, *last, resident.is_some()),
            _ => resident.is_none(),
        };
        self.reads.misses += u64::from(was_read);
        let pin = match resident {
            Some(pin) => pin,
            None => self.pool.pin(id).await?,
        };
        if !array.is_sound(page, &pin) {
            let what = format!("page {id} of {}", array.sort.name());
            return Err(self.graph.damaged(&what));
        }
        self.slots[id as usize & self.mask] = Some(pin);
        Ok(())
    }

    /// The values of a page, if it is held.
    #[inline]
    fn held<T: AnyBitPattern>(&self, array: &Paged, page: usize) -> Option<&[T]> {
        let id = *array.pages.get(page)?;
        match &self.slots[id as usize & self.mask] {
            Some(pin) if pin.page() == id => bytemuck::try_cast_slice(pin).ok(),
            _ => None,
        }
    }

    /// The values of a page that is held.
    #[inline]
    fn values<T: AnyBitPattern>(&self, array: &Paged, page: usize) -> &[T] {
        let id = array.pages[page];
        let pin = self.slots[id as usize & self.mask].as_deref();
        // Whether it can be cast was found out when it was pinned.
        bytemuck::try_cast_slice(pin.unwrap_or_default()).unwrap_or_default()
    }

    /// The elements of an array from `from` on, below `to`, as far as they lie on one page: at least
    /// one. Needs `from < to <= elements`.
    #[inline]
    async fn run<T: AnyBitPattern>(&mut self, array: &Paged, from: u64, to: u64) -> Result<&[T]> {
        let page = (from >> array.shift) as usize;
        self.hold(array, page).await?;
        let base = (page as u64) << array.shift;
        let end = (to - base).min(1 << array.shift) as usize;
        Ok(&self.values(array, page)[(from - base) as usize..end])
    }

    /// As [`run`](Reader::run), of neighbours.
    #[inline]
    pub async fn piece(&mut self, lists: &Lists, from: u64, to: u64) -> Result<&[u32]> {
        self.run(&lists.neighbours, from, to).await
    }

    /// An element of an array of 8 bytes.
    pub async fn wide(&mut self, array: &Paged, at: u64) -> Result<u64> {
        Ok(self.run(array, at, at + 1).await?[0])
    }

    /// An element of an array of 4 bytes.
    pub async fn narrow(&mut self, array: &Paged, at: u64) -> Result<u32> {
        Ok(self.run(array, at, at + 1).await?[0])
    }

    /// Where the list of a vertex begins and ends.
    #[inline]
    pub async fn bounds(&mut self, lists: &Lists, vertex: u32) -> Result<(u64, u64)> {
        let at = u64::from(vertex);
        let both = self.run::<u64>(&lists.offsets, at, at + 2).await?;
        let start = both[0];
        let end = match both.get(1) {
            Some(&end) => end,
            None => self.wide(&lists.offsets, at + 1).await?,
        };
        // Within a page they are sorted.
        if start <= end {
            Ok((start, end))
        } else {
            Err(self.graph.damaged(lists.offsets.sort.name()))
        }
    }

    /// Where the lists of `count` vertices from `first` on begin, and where the last one ends.
    pub async fn offsets(
        &mut self,
        lists: &Lists,
        first: u32,
        count: u32,
        into: &mut Vec<u64>,
    ) -> Result<()> {
        into.clear();
        let mut at = u64::from(first);
        let end = at + u64::from(count) + 1;
        while at < end {
            let run = self.run::<u64>(&lists.offsets, at, end).await?;
            at += run.len() as u64;
            into.extend_from_slice(run);
        }
        if into.is_sorted() {
            Ok(())
        } else {
            Err(self.graph.damaged(lists.offsets.sort.name()))
        }
    }

    /// Shows `see` the lists of those vertices of a range that are `wanted`, one after the other: the vertex, and its
    /// neighbours. A list that lies on several pages comes in as many parts, until `see` says that it has seen enough
    /// of it; an empty one does not come. Only pages of lists that are wanted are pinned, beside those of the offsets.
    ///
    /// `wanted` is asked again before each part.
    pub async fn lists(
        &mut self,
        lists: &Lists,
        range: Range<u32>,
        offsets: &mut Vec<u64>,
        wanted: impl Fn(u32) -> bool,
        mut see: impl FnMut(u32, &[u32]) -> Enough,
    ) -> Result<()> {
        let count = range.len();
        self.offsets(lists, range.start, count as u32, offsets)
            .await?;
        let array = &lists.neighbours;
        let (mut next, mut at) = (0, offsets[0]);
        while next < count {
            // Nothing before the first page; then from list to list for as long as they are on this one.
            let page = (at >> array.shift) as usize;
            let (base, values) = match self.held::<u32>(array, page) {
                Some(values) => ((page as u64) << array.shift, values),
                None => (at, &[][..]),
            };
            let limit = base + values.len() as u64;
            let needs = loop {
                let (vertex, end) = (range.start + next as u32, offsets[next + 1]);
                if at < end && wanted(vertex) {
                    if at >= limit {
                        break Some((at >> array.shift) as usize);
                    }
                    let stop = end.min(limit);
                    let part = &values[(at - base) as usize..(stop - base) as usize];
                    if see(vertex, part) == Enough::No && stop < end {
                        at = stop;
                        break Some((at >> array.shift) as usize);
                    }
                }
                next += 1;
                at = offsets[next];
                if next == count {
                    break None;
                }
            };
            if let Some(page) = needs {
                self.hold(array, page).await?;
            }
        }
        Ok(())
    }

    /// Shows `see` the lists of some vertices, as [`lists`](Reader::lists) does those of a range, all of each.
    pub async fn lists_of(
        &mut self,
        lists: &Lists,
        vertices: &[u32],
        bounds: &mut Vec<(u64, u64)>,
        mut see: impl FnMut(u32, &[u32]),
    ) -> Result<()> {
        self.bounds_of(lists, vertices, bounds).await?;
        let array = &lists.neighbours;
        for (&vertex, &(start, end)) in vertices.iter().zip(bounds.iter()) {
            let mut at = start;
            while at < end {
                let page = (at >> array.shift) as usize;
                let Some(values) = self.held::<u32>(array, page) else {
                    self.hold(array, page).await?;
                    continue;
                };
                let base = (page as u64) << array.shift;
                let stop = end.min(base + values.len() as u64);
                see(
                    vertex,
                    &values[(at - base) as usize..(stop - base) as usize],
                );
                at = stop;
            }
        }
        Ok(())
    }

    /// Where the lists of some vertices begin and end.
    pub async fn bounds_of(
        &mut self,
        lists: &Lists,
        vertices: &[u32],
        bounds: &mut Vec<(u64, u64)>,
    ) -> Result<()> {
        let array = &lists.offsets;
        bounds.clear();
        for &vertex in vertices {
            let at = u64::from(vertex);
            let (page, within) = ((at >> array.shift) as usize, at & ((1 << array.shift) - 1));
            let both = self.held::<u64>(array, page);
            let both = both.and_then(|values| values.get(within as usize..within as usize + 2));
            // Within a page they are sorted.
            bounds.push(match both {
                Some(both) => (both[0], both[1]),
                None => self.bounds(lists, vertex).await?,
            });
        }
        Ok(())
    }

    /// Appends the list of a vertex.
    pub async fn append(&mut self, lists: &Lists, vertex: u32, into: &mut Vec<u32>) -> Result<()> {
        let (mut at, end) = self.bounds(lists, vertex).await?;
        while at < end {
            let piece = self.piece(lists, at, end).await?;
            at += piece.len() as u64;
            into.extend_from_slice(piece);
        }
        Ok(())
    }

    /// The other vertices that a vertex has an edge with, in whatever direction, each once and in
    /// order.
    pub async fn around(&mut self, vertex: u32, into: &mut Vec<u32>) -> Result<()> {
        into.clear();
        self.append(self.graph.out(), vertex, into).await?;
        let meta = self.graph.meta();
        if meta.directed {
            self.append(self.graph.incoming(), vertex, into).await?;
            into.sort_unstable();
        }
        if meta.directed || meta.repeats {
            into.dedup();
        }
        if meta.loops > 0 {
            into.retain(|&other| other != vertex);
        }
        Ok(())
    }
}
