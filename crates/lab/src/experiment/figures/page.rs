//! The page: a table of each text's figures.

use std::path::Path;

use report::{Cell, Report, Table, Unit};
use serde_json::json;

use super::catalogue::{Figure, How, Text};
use super::perform::Ran;

/// What the page is made of.
pub struct Page<'p> {
    pub texts: &'p [Text],
    /// What was run, the last time of each.
    pub last: &'p [Ran],
    /// Where reports of what was run are.
    pub folder: &'p Path,
}

impl Page<'_> {
    /// The page, and the tables that are printed.
    pub fn report(&self, command: &str) -> (Report, Vec<Table>) {
        let counts = self.counts();
        let mut report = Report::new("The figures of the texts", command)
            .lead("Each figure and table of the five texts, what it showed, the command that repeats its shape here, and what that found. Measured: by the clock of one machine. Counted: by the emulated machine or the program's own counters. Modelled: computed by a model. Drawn: a drawing, or a table of words.")
            .section("How many there are")
            .table(counts.clone());
        let mut tables = vec![counts];
        for text in self.texts {
            let table = self.table(text);
            report = report
                .section(format!("{}: {}", text.rows, text.title))
                .table(table);
            tables.push(self.short(text));
            for ran in self.last.iter().filter(|ran| ran.figure.0 == text.rows) {
                report = report.text(said(ran));
            }
        }
        let results: Vec<_> = self
            .texts
            .iter()
            .flat_map(|text| text.figures.iter().map(move |figure| (text, figure)))
            .collect();
        let results: Vec<_> = results
            .into_iter()
            .map(|(text, figure)| self.result(text, figure))
            .collect();
        (report.results(json!({ "figures": results })), tables)
    }

    fn counts(&self) -> Table {
        let mut table = Table::new(["text", "figures", "drawn", "with a command", "measured", "counted", "modelled", "not repeated"])
            .caption("Of those that are not drawn: with a command that repeats the shape, by where its numbers come from, and those without.");
        for text in self.texts {
            let count = |test: &dyn Fn(&Figure) -> bool| {
                let many = text.figures.iter().filter(|figure| test(figure)).count();
                Cell::number(many as f64, Unit::Count)
            };
            let by = |how: How| {
                count(&move |figure: &Figure| figure.how == how && figure.command.is_some())
            };
            table.row([
                Cell::from(format!("{}: {}", text.rows, text.title)),
                count(&|_| true),
                count(&|figure| figure.how == How::Drawn),
                count(&|figure| figure.how != How::Drawn && figure.command.is_some()),
                by(How::Measured),
                by(How::Counted),
                by(How::Modelled),
                count(&|figure| figure.how != How::Drawn && figure.command.is_none()),
            ]);
        }
        table
    }

    fn table(&self, text: &Text) -> Table {
        let mut table = Table::new([
            "figure",
            "what it shows",
            "the text found",
            "here",
            "how",
            "atoll ...",
            "last run",
        ]);
        for figure in &text.figures {
            let parts = [
                figure.ours.clone(),
                figure
                    .missing
                    .as_ref()
                    .map(|missing| format!("Not repeated: {missing}")),
            ];
            let place = figure.place.as_ref().map(|place| format!("In {place}."));
            let here: Vec<String> = parts.into_iter().chain([place]).flatten().collect();
            table.row([
                Cell::from(figure.name.as_str()),
                Cell::from(figure.subject.as_str()),
                Cell::from(figure.showed.as_str()),
                Cell::from(here.join(" ")),
                Cell::from(figure.how.word()),
                Cell::from(figure.command.clone().unwrap_or_default()),
                Cell::from(self.last_run(text, figure)),
            ]);
        }
        table
    }

    /// What fits in a terminal.
    fn short(&self, text: &Text) -> Table {
        let mut table = Table::new([
            text.rows.as_str(),
            "what it shows",
            "how",
            "atoll ...",
            "last run",
        ]);
        for figure in &text.figures {
            let subject: String = figure.subject.chars().take(60).collect();
            table.row([
                Cell::from(figure.name.as_str()),
                Cell::from(subject),
                Cell::from(figure.how.word()),
                Cell::from(figure.command.clone().unwrap_or_default()),
                Cell::from(self.last_run(text, figure)),
            ]);
        }
        table
    }

    fn last_run(&self, text: &Text, figure: &Figure) -> String {
        match self.of(text, figure) {
            None => String::new(),
            Some(Ran {
                failed: Some(why), ..
            }) => why.clone(),
            Some(ran) => {
                let day: String = ran.day.chars().take(10).collect();
                format!("{day}, {:.1} s", ran.seconds)
            }
        }
    }

    fn of(&self, text: &Text, figure: &Figure) -> Option<&Ran> {
        let same = |ran: &&Ran| ran.figure.0 == text.rows && ran.figure.1 == figure.name;
        self.last.iter().find(same)
    }

    fn result(&self, text: &Text, figure: &Figure) -> serde_json::Value {
        json!({
            "text": text.rows,
            "figure": figure.name,
            "rows": figure.rows,
            "command": figure.command,
            "how": figure.how.word(),
            "ours": figure.ours,
            "missing": figure.missing,
            "last": self.of(text, figure),
            "reports": self.of(text, figure).map(|_| self.folder.display().to_string()),
        })
    }
}

/// Where what a command said is.
fn said(ran: &Ran) -> String {
    let (rows, name) = &ran.figure;
    let commit = ran.commit.as_deref().unwrap_or("unknown");
    let ended = match &ran.failed {
        Some(why) => why.clone(),
        None => format!("{:.1} s", ran.seconds),
    };
    format!(
        "{rows} {name}, {}, commit {commit}: atoll {}: {ended}. What it printed, and its report: folder {rows}-{name}.",
        ran.day, ran.command
    )
}
