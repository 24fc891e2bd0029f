//! Statements: cut from text, run one after the other, their failures shown in their text.

mod excerpt;
pub mod place;
pub mod runner;
#[cfg(feature = "lab")]
mod time_line;
