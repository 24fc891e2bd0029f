//! Arrays in stores and as plans, compared with plain models.

mod crash;
mod damage;
mod metadata;
mod model;
mod numpy;
mod numpy_operators;
mod operators;
mod plain;
mod plans;
mod rounding;
mod statistics;
mod storage;
mod versions;
