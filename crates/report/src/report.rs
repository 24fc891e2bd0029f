//! The blocks of a report, and its raw numbers as JSON.

use std::path::PathBuf;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};
use topology::Machine;

use crate::plot::Plot;
use crate::table::Table;

/// A report, built block by block.
#[derive(Clone, Debug)]
pub struct Report {
    pub(crate) title: String,
    pub(crate) lead: String,
    pub(crate) command: String,
    pub(crate) commit: Option<String>,
    pub(crate) date: DateTime<Utc>,
    pub(crate) machine: Option<Machine>,
    pub(crate) emulated: bool,
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) results: Value,
}

/// What a report is made of.
#[derive(Clone, Debug)]
pub(crate) enum Block {
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
}

/// The date and time, UTC, as RFC 3339 has it.
pub fn today() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true)
}
