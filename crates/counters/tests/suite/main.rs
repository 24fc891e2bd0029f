//! Looks at generated trees of files, and at processes of our own.

mod child;
mod model;
mod places;
mod troubles;
mod watching;
