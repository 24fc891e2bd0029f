//! Values between Arrow and the protocol: [`types`] says which type of PostgreSQL a column has, [`row`] writes values of
//! columns as [`text`] or in [`binary`], [`parameter`] makes texts of what clients bind.

pub(crate) mod binary;
pub(crate) mod calendar;
mod digits;
mod nested;
pub(crate) mod parameter;
pub(crate) mod row;
pub(crate) mod text;
pub(crate) mod types;
