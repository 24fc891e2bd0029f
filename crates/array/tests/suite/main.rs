//! Arrays in stores and as plans, compared with plain models.

mod crash;
mod damage;
mod model;
mod numpy;
mod plain;
mod plans;
mod storage;
