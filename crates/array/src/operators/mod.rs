//! Operators: each answers for a region of its result by asking its inputs for what that takes.

pub(crate) mod aggregate;
pub(crate) mod build;
pub(crate) mod cellwise;
pub(crate) mod fold;
pub(crate) mod folder;
pub(crate) mod functions;
pub(crate) mod geometry;
pub(crate) mod histogram;
pub(crate) mod matmul;
pub(crate) mod memory;
pub(crate) mod quantile;
pub(crate) mod redimension;
pub(crate) mod reshape;
pub(crate) mod scan;
pub(crate) mod slide;
pub(crate) mod sort;
pub(crate) mod source;
pub(crate) mod states;
pub(crate) mod variable_window;
pub(crate) mod window;
pub(crate) mod zip;
