//! What governors have changed, in files: what puts everything back, however a governor ends.

pub(crate) mod folders;
pub(crate) mod guard;
pub(crate) mod record;
pub(crate) mod status;
