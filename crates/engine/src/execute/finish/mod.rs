//! The end of a stage: what its workers collected becomes the rows, the groups or the join table of the stage.

mod aggregate;
mod join_table;
mod rows;
