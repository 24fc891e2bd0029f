//! The space of the data file: where each page is, what is free, and what is freed but may still be
//! read.

pub(crate) mod extents;
pub(crate) mod images;
pub(crate) mod map;
pub(crate) mod pages;
pub(crate) mod pending;
