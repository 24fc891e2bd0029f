//! Reports: one self-contained HTML page and, beside it, the raw numbers as JSON.
//!
//! A page loads nothing, neither from the network nor from other files, and says so to the
//! browser; it is made for light and dark, for wide and narrow screens, and for people who do not
//! see the plots. Everything that comes from outside, names and messages in particular, is
//! escaped.
//!
//! ```
//! use report::{Bars, Report, Table, Cell, Unit};
//!
//! let mut table = Table::new(["strategy", "remote"]);
//! table.row([Cell::from("compact"), Cell::number(0.031, Unit::Share)]);
//! let mut bars = Bars::new("Remote share of DRAM fills", "remote share", Unit::Share).up_to(1.0);
//! bars.category("compact", [0.031]);
//!
//! let report = Report::new("Placement", "atoll lab placement --quick")
//!     .machine(topology::Machine::parse("4x4")?)
//!     .emulated()
//!     .section("What was run")
//!     .table(table)
//!     .plot(bars);
//! let page = report.html(None)?;
//! assert!(page.contains("counts, not times"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod command;
mod commit;
mod error;
mod html;
mod page;
mod plot;
mod report;
mod sample;
mod table;
mod unit;

pub use command::{command_line, command_line_of, quoted};
pub use commit::commit;
pub use error::{Error, Result};
pub use page::can_write;
pub use plot::{Axis, Bars, Heat, Line, Lines, Plot, Point, Roofline, Span, Spans, Spread};
pub use report::{Report, Written, today};
pub use sample::Sample;
pub use table::{Cell, Table};
pub use unit::Unit;
