//! The store against a naive model of it: by itself, under crashes, damage, and failing disks.

mod beside;
mod crash;
mod damage;
mod faults;
mod files;
mod mapped;
mod model;
mod raw;
mod readers;
mod reads;
mod threads;
mod torn;
