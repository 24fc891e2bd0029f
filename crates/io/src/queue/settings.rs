//! How a queue reads.

/// The most requests in a window, so that one read with its gaps stays within the 1,024 pieces that
/// the kernel takes.
pub(super) const WIDEST: usize = 512;
/// The most reads under way at the same time.
pub(super) const DEEPEST: u32 = 4096;

/// What hands reads to the operating system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Backend {
    /// [`Uring`](Backend::Uring) where the system lets us, else [`Threads`](Backend::Threads):
    /// containers and administrators often refuse it. [`Queue::backend`](crate::Queue::backend)
    /// says which it became, and why.
    #[default]
    Auto,
    /// One ring of io_uring, which one thread feeds: many reads are under way at once, and one
    /// system call hands over all that wait. Devices that are not files are read by threads.
    Uring,
    /// A fixed number of threads, each in one positioned read.
    Threads,
}

/// The settings of a [`Queue`](crate::Queue).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// What hands reads to the operating system.
    pub backend: Backend,
    /// Threads of the backend of threads, at least 1. A ring has one thread whatever this says.
    pub threads: usize,
    /// Reads that a ring has under way at the same time, 1 to 4,096. What waits meanwhile is
    /// coalesced.
    pub depth: u32,
    /// How many waiting requests are looked at together, 1 to 512: the oldest ones are ordered by
    /// position, and neighbours become one read. 1 coalesces nothing.
    pub window: usize,
    /// Bytes between two requests that are read, and thrown away, rather than making two reads of
    /// them. 0 joins only what touches.
    pub gap: u64,
    /// The longest read that coalescing may build, in bytes, gaps included. A longer single request
    /// is served whole.
    pub longest: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            backend: Backend::Auto,
            threads: 4,
            depth: 64,
            window: 256,
            gap: 4096,
            longest: 1 << 20,
        }
    }
}

impl Settings {
    /// The settings with each number moved to where it may be.
    pub(super) fn sane(self) -> Settings {
        Settings {
            threads: self.threads.max(1),
            depth: self.depth.clamp(1, DEEPEST),
            window: self.window.clamp(1, WIDEST),
            longest: self.longest.clamp(1, 1 << 30),
            ..self
        }
    }
}
