//! Records of what governors have changed, in files, so that everything is put back however a governor ends.

pub(crate) mod folders;
pub(crate) mod guard;
pub(crate) mod record;
pub(crate) mod status;
