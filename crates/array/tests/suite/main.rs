//! Arrays in stores and as plans, compared with plain models.

mod model;
mod storage;
