//! The space of the data file: where each page is, what is free, and what is freed but may still be
//! read.

pub(crate) mod chunk;
pub(crate) mod extents;
pub(crate) mod images;
mod leaf;
pub(crate) mod map;
pub(crate) mod pages;
pub(crate) mod pending;
mod reading;
mod room;
#[cfg(test)]
mod tests;
