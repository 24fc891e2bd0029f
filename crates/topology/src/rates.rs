//! How fast the parts of a machine are, and how much power they take.

use serde::Serialize;

/// Facts of a machine's parts, from which a model computes time and energy (`placement::cost`). All nodes are alike.
///
/// A [shipped](crate::SHIPPED) machine has those of its processor, with their sources in its file; another one has none, and
/// [`Rates::TYPICAL`] stand for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Rates {
    /// Millions of cycles of a core in a second.
    pub clock_mhz: u32,
    /// Millions of bytes in a second that the memory of a node delivers or takes at most.
    pub memory_mb: u32,
    /// Channels among which a node's memory deals its lines.
    pub channels: u32,
    /// Nanoseconds until a node's own memory answers a core that asks it for one line, if nobody else does.
    pub latency_ns: u32,
    /// The same of the memory of the nearest other node. That of nodes further away grows with their distance.
    pub remote_ns: u32,
    /// Lines of 64 bytes that a core and its prefetchers wait for at a time.
    pub lines: u32,
    /// Millions of bytes in a second that a core takes from its last-level cache.
    pub cache_mb: u32,
    /// Millions of bytes in a second that a link between two nodes carries in each direction.
    pub link_mb: u32,
    /// Milliwatts of a core that works.
    pub core_mw: u32,
    /// Milliwatts of a core that does not.
    pub idle_mw: u32,
    /// Picojoules of a bit that is read from memory or written to it.
    pub memory_pj: u32,
    /// Milliwatts of a node's memory whether it is used or not.
    pub memory_mw: u32,
    /// Picojoules of a bit that crosses a link.
    pub link_pj: u32,
}

impl Rates {
    /// Of a server of about 2018: those of `xeon-4114`.
    pub const TYPICAL: Rates = Rates {
        clock_mhz: 2_200,
        memory_mb: 92_000,
        channels: 6,
        latency_ns: 85,
        remote_ns: 116,
        lines: 16,
        cache_mb: 25_000,
        link_mb: 21_500,
        core_mw: 6_400,
        idle_mw: 1_000,
        memory_pj: 40,
        memory_mw: 9_000,
        link_pj: 10,
    };

    /// None, to be [set](Rates::set) one by one.
    pub(crate) const NONE: Rates = Rates {
        clock_mhz: 0,
        memory_mb: 0,
        channels: 0,
        latency_ns: 0,
        remote_ns: 0,
        lines: 0,
        cache_mb: 0,
        link_mb: 0,
        core_mw: 0,
        idle_mw: 0,
        memory_pj: 0,
        memory_mw: 0,
        link_pj: 0,
    };

    /// The rates by their names in a machine's file.
    fn named(&mut self) -> [(&'static str, &mut u32); 13] {
        [
            ("clock_mhz", &mut self.clock_mhz),
            ("memory_mb", &mut self.memory_mb),
            ("channels", &mut self.channels),
            ("latency_ns", &mut self.latency_ns),
            ("remote_ns", &mut self.remote_ns),
            ("lines", &mut self.lines),
            ("cache_mb", &mut self.cache_mb),
            ("link_mb", &mut self.link_mb),
            ("core_mw", &mut self.core_mw),
            ("idle_mw", &mut self.idle_mw),
            ("memory_pj", &mut self.memory_pj),
            ("memory_mw", &mut self.memory_mw),
            ("link_pj", &mut self.link_pj),
        ]
    }

    /// Sets a rate from `NAME NUMBER`; `None` if that is none, or is 0.
    pub(crate) fn set(&mut self, text: &str) -> Option<()> {
        let (name, number) = text.split_once(char::is_whitespace)?;
        let number: u32 = number.trim().parse().ok().filter(|number| *number > 0)?;
        let (_, own) = self.named().into_iter().find(|(own, _)| *own == name)?;
        *own = number;
        Some(())
    }

    /// The name of one that is not set, if there is one.
    pub(crate) fn missing(&mut self) -> Option<&'static str> {
        let missing = self.named().into_iter().find(|(_, number)| **number == 0);
        missing.map(|(name, _)| name)
    }
}
