//! The version of this program.

/// The commit that this program was built from, with `-dirty` if files differed from it; empty if unknown.
pub const COMMIT: &str = env!("ATOLL_COMMIT");

/// `0.1.0 (5afe76295d01)`, without the commit if it is unknown.
pub const VERSION: &str = if COMMIT.is_empty() {
    env!("CARGO_PKG_VERSION")
} else {
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("ATOLL_COMMIT"), ")")
};
