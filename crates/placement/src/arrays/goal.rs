//! What schedules aim at.

/// Bytes of a chunk below which a part of it is not worth a thread of its own.
pub const LEAST_PIECE: u64 = 64 << 10;

/// What a schedule is to have as little of as possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Goal {
    /// Weighted bytes of the busiest core; of two alike the one with fewer remote bytes. All threads are used, and
    /// remote bytes are read where a core would otherwise wait.
    #[default]
    Shortest,
    /// Remote bytes; of two alike the one whose busiest core has less to do. Nodes on which nothing lies stay idle.
    Local,
}
