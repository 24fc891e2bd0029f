//! The machines of the papers, as descriptions in `machines/`.

/// Names of the machine descriptions that are part of this crate, for
/// [`Machine::parse`](crate::Machine::parse).
pub const SHIPPED: &[&str] = &["opteron-8387", "xeon-4114", "xeon-2630", "xeon-4657l"];
