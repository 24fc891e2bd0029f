//! The store against a naive model of it: by itself, under crashes, damage, and failing disks.

mod beside;
mod crash;
mod damage;
mod faults;
mod files;
mod model;
mod raw;
mod readers;
mod reading;
mod reads;
mod threads;
mod torn;
