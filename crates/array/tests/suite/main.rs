//! Arrays in stores and as plans, compared with plain models.

mod model;
mod plain;
mod plans;
mod storage;
