//! Finishing a stage: what its workers collected becomes the rows, groups or join table of the stage.

mod aggregate;
mod by_hash;
mod by_partition;
mod by_range;
mod join_table;
mod rows;
mod sort;
mod window;
