//! Reports: one self-contained HTML page and, beside it, the raw numbers as JSON.
//!
//! A page loads nothing, neither from the network nor from other files, and says so to the
//! browser; it is made for light and dark, for wide and narrow screens, and for people who do not
//! see the plots. Everything that comes from outside, names and messages in particular, is
//! escaped.
//!
//! ```
//! use lab::report::{Bars, Report, Table, Cell, Unit};
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
mod html;
mod page;
mod plot;
mod table;
mod unit;

use std::path::{Path, PathBuf};

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};
use topology::Machine;

use crate::{Error, Result};

pub use command::{command_line, quoted};
pub use commit::commit;
pub use plot::{Axis, Bars, Heat, Line, Lines, Plot, Point, Roofline, Span, Spans, Spread};
pub use table::{Cell, Table};
pub use unit::Unit;

/// A report, built block by block.
#[derive(Clone, Debug)]
pub struct Report {
    title: String,
    lead: String,
    command: String,
    commit: Option<String>,
    date: DateTime<Utc>,
    machine: Option<Machine>,
    emulated: bool,
    facts: Vec<(String, String)>,
    blocks: Vec<Block>,
    results: Value,
}

/// What a report is made of.
#[derive(Clone, Debug)]
enum Block {
    Section(String),
    Text(String),
    Table(Table),
    Plot(Box<Plot>),
    /// Small ones, side by side where there is room.
    Plots(Vec<Plot>),
}

/// Where a report was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The page.
    pub html: PathBuf,
    /// The raw numbers.
    pub json: PathBuf,
}

impl Report {
    /// An empty report; `command` repeats what it shows, see [`command_line`].
    pub fn new(title: impl Into<String>, command: impl Into<String>) -> Report {
        Report {
            title: title.into(),
            lead: String::new(),
            command: command.into(),
            commit: None,
            date: Utc::now(),
            machine: None,
            emulated: false,
            facts: Vec::new(),
            blocks: Vec::new(),
            results: Value::Null,
        }
    }

    /// A sentence or two below the title: what was found.
    pub fn lead(mut self, text: impl Into<String>) -> Report {
        self.lead = text.into();
        self
    }

    /// The commit of the program that measured, as [`commit`] tells it; without one the report says that it is not known.
    pub fn commit(mut self, commit: Option<&str>) -> Report {
        self.commit = commit
            .filter(|commit| !commit.is_empty())
            .map(str::to_owned);
        self
    }

    /// The machine it was measured on.
    pub fn machine(mut self, machine: Machine) -> Report {
        self.machine = Some(machine);
        self
    }

    /// Says on its face that the machine was an emulated one.
    pub fn emulated(mut self) -> Report {
        self.emulated = true;
        self
    }

    /// Adds a line to the facts: what was measured, with which settings.
    pub fn fact(mut self, name: impl Into<String>, value: impl Into<String>) -> Report {
        self.facts.push((name.into(), value.into()));
        self
    }

    /// Starts a section.
    pub fn section(mut self, title: impl Into<String>) -> Report {
        self.blocks.push(Block::Section(title.into()));
        self
    }

    /// Adds a paragraph.
    pub fn text(mut self, text: impl Into<String>) -> Report {
        self.blocks.push(Block::Text(text.into()));
        self
    }

    /// Adds a table.
    pub fn table(mut self, table: Table) -> Report {
        self.blocks.push(Block::Table(table));
        self
    }

    /// Adds a plot as wide as the page.
    pub fn plot(mut self, plot: impl Into<Plot>) -> Report {
        self.blocks.push(Block::Plot(Box::new(plot.into())));
        self
    }

    /// Adds small plots, such as one matrix per variant, side by side.
    pub fn plots<P: Into<Plot>>(mut self, plots: impl IntoIterator<Item = P>) -> Report {
        self.blocks
            .push(Block::Plots(plots.into_iter().map(Into::into).collect()));
        self
    }

    /// The raw numbers, for [`Report::json`].
    pub fn results(mut self, results: Value) -> Report {
        self.results = results;
        self
    }

    /// The raw numbers with what they were measured on: `{"title", "command", "date" (RFC 3339,
    /// UTC), "version", "commit" (null where it is not known), "emulated", "machine", "facts": {...}, "results"}`.
    pub fn json(&self) -> Value {
        let facts: serde_json::Map<String, Value> = self
            .facts
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        json!({
            "title": self.title,
            "command": self.command,
            "date": self.date.to_rfc3339_opts(SecondsFormat::Secs, true),
            "version": env!("CARGO_PKG_VERSION"),
            "commit": self.commit,
            "emulated": self.emulated,
            "machine": self.machine,
            "facts": facts,
            "results": self.results,
        })
    }

    /// The page; `json` is the name of the file of raw numbers that lies beside it.
    ///
    /// # Errors
    ///
    /// [`Error::Plot`], which names the plot.
    pub fn html(&self, json: Option<&str>) -> Result<String> {
        page::html(self, json)
    }

    /// Writes the page to `path` and the raw numbers to the same name ending in `.json`.
    ///
    /// # Errors
    ///
    /// [`Error::Plot`], and [`Error::Write`] with the file that could not be written.
    pub fn write(&self, path: &Path) -> Result<Written> {
        let html = match path.extension() {
            Some(ending) if ending.eq_ignore_ascii_case("html") => path.to_owned(),
            _ => PathBuf::from(format!("{}.html", path.display())),
        };
        let json = html.with_extension("json");
        let name = json
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let page = self.html(name.as_deref())?;
        let raw = format!("{:#}\n", self.json());
        put(&json, raw.as_bytes())?;
        put(&html, page.as_bytes())?;
        Ok(Written { html, json })
    }
}

/// The date and time, UTC, as RFC 3339 has it.
pub(crate) fn today() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).map_err(|source| Error::Write {
        path: path.to_owned(),
        source,
    })
}
