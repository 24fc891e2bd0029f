//! The version of this program.

/// The commit that this program was built from, with `-dirty` where files differed from it; empty where that is not known.
pub const COMMIT: &str = env!("ATOLL_COMMIT");

/// `0.1.0 (5afe76295d01)`, without the commit where it is not known.
pub const VERSION: &str = if COMMIT.is_empty() {
    env!("CARGO_PKG_VERSION")
} else {
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("ATOLL_COMMIT"), ")")
};
