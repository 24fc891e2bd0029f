//! The memory of the pool: arenas, frames and their descriptors.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use memory::{Arena, Budget, pages};

use crate::config::{Config, PageId, Placement};
use crate::error::{Error, Result};
use crate::version::Version;

/// The least number of frames on a node.
pub const FRAMES_PER_NODE: usize = 8;
/// Bytes of pages that are dealt to one partition before the next has its turn.
const TOGETHER: usize = 256 << 10;

impl Config {
    /// Checks that the memory is a whole number of frames on each node, for callers that want
    /// exactly what they asked for: [`Pool::new`](crate::Pool::new) rounds down.
    ///
    /// # Errors
    /// [`Error::NotWhole`] where it is not (row B7).
    pub fn whole(&self) -> Result<()> {
        let multiple = (self.page_size as u64).saturating_mul(self.nodes.len() as u64);
        let over = self.bytes.checked_rem(multiple).unwrap_or(0);
        if over == 0 {
            return Ok(());
        }
        let lower = self.bytes - over;
        Err(Error::NotWhole {
            bytes: self.bytes,
            multiple,
            lower,
            upper: lower.saturating_add(multiple),
        })
    }
}

/// The descriptor of a frame (row B3). State, pins and usage count are in the word of its page.
#[derive(Debug)]
#[repr(align(32))]
pub(crate) struct Frame {
    /// Where its bytes are. Invariant: `page_size` bytes in the arena of `node`, in no other
    /// frame, aligned to 64.
    start: *mut u8,
    pub(crate) node: u32,
    /// The partition in whose free list and under whose clock hand the frame is.
    pub(crate) partition: u32,
    /// The page it held last. Only the word of that page says whether it still does.
    page: AtomicU32,
    /// The length of that page, at most `page_size`. Written by the frame's owner before the
    /// word names the frame, so those who pinned read the right one.
    len: AtomicU32,
    /// Odd while the owner of the frame, or who holds its page alone, may write to it.
    pub(crate) version: Version,
}

// SAFETY: `start` is an address in an arena that `Frames` owns; what lies there is accessed by the
// owner of the frame or under a pin, as `word` arranges.
unsafe impl Send for Frame {}
// SAFETY: as above; the other fields are constant or atomic.
unsafe impl Sync for Frame {}

impl Frame {
    pub(crate) fn page(&self) -> PageId {
        self.page.load(Ordering::Relaxed)
    }

    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed) as usize
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Records which page the frame holds, and its length in bytes. Only for the frame's owner.
    pub(crate) fn describe(&self, page: PageId, len: u32) {
        self.page.store(page, Ordering::Relaxed);
        self.len.store(len, Ordering::Relaxed);
    }
}

/// A share of the budget, given back when dropped.
#[derive(Debug)]
struct Share {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.give(self.bytes);
    }
}

/// How the frames are dealt: all nodes alike, and all partitions of a node nearly so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) page_size: usize,
    pub(crate) nodes: usize,
    pub(crate) frames_per_node: usize,
    pub(crate) partitions_per_node: usize,
}

impl Shape {
    pub(crate) fn of(config: &Config) -> Result<Shape> {
        let page_size = config.page_size;
        if !page_size.is_power_of_two() || !(4 << 10..=1 << 20).contains(&page_size) {
            return Err(Error::PageSize { page_size });
        }
        let nodes = config.nodes.len();
        if nodes == 0 || nodes > 256 {
            return Err(Error::Nodes { nodes });
        }
        let frames = config.bytes / page_size as u64 / nodes as u64;
        if frames < FRAMES_PER_NODE as u64 {
            return Err(Error::TooSmall {
                bytes: config.bytes,
                needed: (nodes * FRAMES_PER_NODE * page_size) as u64,
            });
        }
        // Frame numbers have 32 bits; that is 256 TiB of frames of 64 KiB.
        let frames_per_node = frames.min(u64::from(u32::MAX) / nodes as u64) as usize;
        let partitions_per_node = match config.partitions_per_node {
            0 => 16,
            some => some,
        };
        Ok(Shape {
            page_size,
            nodes,
            frames_per_node,
            partitions_per_node: partitions_per_node
                .min(frames_per_node / FRAMES_PER_NODE)
                .max(1),
        })
    }

    /// The frames of one partition of a node, counted from the node's first.
    pub(crate) fn frames_of(self, partition: usize) -> std::ops::Range<usize> {
        let cut = |p: usize| self.frames_per_node * p / self.partitions_per_node;
        cut(partition)..cut(partition + 1)
    }

    /// How many pages with numbers side by side are in one partition: [`TOGETHER`] bytes of them, and less where a
    /// partition is so small that they would push each other out.
    pub(crate) fn pages_together(self) -> usize {
        let frames = self.frames_per_node / self.partitions_per_node;
        (TOGETHER / self.page_size)
            .min(frames / FRAMES_PER_NODE)
            .max(1)
    }

    pub(crate) fn bytes(self) -> u64 {
        (self.nodes * self.frames_per_node * self.page_size) as u64
    }
}

/// All frames, node by node and within a node partition by partition.
#[derive(Debug)]
pub(crate) struct Frames {
    frames: Box<[Frame]>,
    arenas: Vec<Arena>,
    _share: Share,
}

impl Frames {
    pub(crate) fn new(shape: Shape, config: &Config, budget: Arc<Budget>) -> Result<Frames> {
        let bytes = shape.bytes();
        // Where the limit cannot be found out, the budget is the only one.
        if let Ok(available) = memory::available()
            && bytes > available
        {
            return Err(Error::TooLarge { bytes, available });
        }
        let refused = |source| Error::Memory {
            source: Arc::new(source),
        };
        budget.take(bytes).map_err(refused)?;
        let share = Share { budget, bytes };
        let mut arenas = Vec::with_capacity(shape.nodes);
        let all: Vec<u32> = config.nodes.iter().flatten().copied().collect();
        for os_node in &config.nodes {
            let bytes = shape.frames_per_node * shape.page_size;
            let own = os_node.as_slice();
            let (policy, nodes) = match config.placement {
                Placement::Prefer => (pages::Policy::Prefer, own),
                Placement::Bind => (pages::Policy::Bind, own),
                Placement::Interleave => (pages::Policy::Interleave, &all[..]),
                Placement::FirstUse => (pages::Policy::Prefer, &[][..]),
            };
            arenas.push(Arena::placed(bytes, policy, nodes).map_err(refused)?);
        }
        let mut frames = Vec::with_capacity(shape.nodes * shape.frames_per_node);
        for (node, arena) in arenas.iter().enumerate() {
            for part in 0..shape.partitions_per_node {
                for frame in shape.frames_of(part) {
                    frames.push(Frame {
                        // SAFETY: the arena has `frames_per_node` times `page_size` bytes, and
                        // `frame` is below `frames_per_node`.
                        start: unsafe { arena.as_ptr().add(frame * shape.page_size) },
                        node: node as u32,
                        partition: (node * shape.partitions_per_node + part) as u32,
                        page: AtomicU32::new(0),
                        len: AtomicU32::new(0),
                        version: Version::default(),
                    });
                }
            }
        }
        Ok(Frames {
            frames: frames.into_boxed_slice(),
            arenas,
            _share: share,
        })
    }

    #[inline]
    pub(crate) fn get(&self, frame: u32) -> &Frame {
        &self.frames[frame as usize]
    }

    /// Where the bytes of a frame begin, without a look at its descriptor.
    #[inline]
    pub(crate) fn start(&self, frame: u32, shape: Shape) -> NonNull<u8> {
        let frame = frame as usize;
        let (node, within) = if shape.nodes == 1 {
            (0, frame)
        } else {
            let per_node = shape.frames_per_node;
            (frame / per_node, frame % per_node)
        };
        // SAFETY: frames are numbered node by node, so the frame is within the arena of its node,
        // whose address is not 0.
        unsafe { NonNull::new_unchecked(self.arenas[node].as_ptr().add(within * shape.page_size)) }
    }

    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// The memory of each node's frames.
    pub(crate) fn memory(&self) -> impl Iterator<Item = Range<*const u8>> {
        self.arenas.iter().map(|arena| {
            let start = arena.as_ptr().cast_const();
            start..start.wrapping_add(arena.len())
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Frame)> {
        self.frames.iter().enumerate().map(|(i, f)| (i as u32, f))
    }

    /// Whether the descriptor of a frame is as it was made: of its node, with the bytes that are
    /// its own, and a page that fits into them.
    pub(crate) fn is_sound(&self, number: u32, shape: Shape) -> bool {
        let Some(frame) = self.frames.get(number as usize) else {
            return false;
        };
        let node = number as usize / shape.frames_per_node;
        let within = number as usize % shape.frames_per_node;
        let start = self.arenas[node].as_ptr();
        frame.node as usize == node
            && frame.partition as usize / shape.partitions_per_node == node
            && (shape.frames_of(frame.partition as usize % shape.partitions_per_node))
                .contains(&within)
            && frame.start == start.wrapping_add(within * shape.page_size)
            && frame.len() <= shape.page_size
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        for note in self.arenas.iter().flat_map(|arena| arena.notes()) {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
        notes
    }
}
