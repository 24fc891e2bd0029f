//! The store against a naive model of it: by itself, under crashes, damage, and failing disks.

mod aside;
mod beside;
mod between;
mod crash;
mod damage;
mod dirty;
mod durability;
mod faults;
mod files;
mod lies;
mod mapped;
mod model;
mod nested;
mod old;
mod ondemand;
mod proof;
mod raw;
mod readers;
mod reading;
mod reads;
mod threads;
mod torn;
