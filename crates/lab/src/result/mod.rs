//! What runs say together: [records](record) of variants that took turns, tables of what was [counted], and that
//! [compared] with what the engine counts itself.

pub(crate) mod compared;
pub(crate) mod counted;
pub mod record;
