//! Tests of statements, a module for each part of the dialect. One program, as each has all of the database in it: 300 MB
//! that are linked anew whenever a crate changes.

mod answers;
mod arrays;
mod block_zones;
mod changes;
mod clickbench;
mod common_subplans;
mod constraints;
mod deferred;
mod dialect;
mod documents;
mod domains;
mod estimates;
mod files;
mod first_rows;
#[path = "../fixture/mod.rs"]
mod fixture;
mod frames;
mod functions;
mod kernels;
mod maps;
#[path = "../peer/mod.rs"]
mod peer;
mod planning;
mod readers;
mod repeated;
mod shapes;
mod whole;
mod windows;
mod zones;
