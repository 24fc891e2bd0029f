//! Progress of a load on standard error: a bar on a terminal, a line every few seconds elsewhere.

use std::cell::RefCell;
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use atoll::{Position, Progress};
use indicatif::{ProgressBar, ProgressStyle};

use crate::terminal::interrupt;
use crate::units;

/// How often a line is written if there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Fewer rows say nothing of how fast they come: what takes time is to open files and to commit.
const MEASURED: u64 = 10_000;

/// Shows loads, one after the other, and stops them on Ctrl-C.
pub struct Display {
    current: RefCell<Option<Current>>,
    terminal: bool,
}

struct Current {
    what: String,
    started: Instant,
    spoke: Instant,
    bar: Option<ProgressBar>,
    last: Position,
}

impl Display {
    /// Shows nothing before the first load.
    pub fn new() -> Display {
        Display {
            current: RefCell::new(None),
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Writes the summary of the last load.
    pub fn finish(&self) {
        if let Some(current) = self.current.borrow_mut().take() {
            current.end();
        }
    }
}

impl Current {
    fn new(position: &Position, terminal: bool) -> Current {
        let bar = terminal.then(|| {
            let bar = ProgressBar::new(1000);
            if let Ok(style) =
                ProgressStyle::with_template("{prefix:>10} {bar:24.cyan} {percent:>3} %  {msg}")
            {
                bar.set_style(style);
            }
            bar.set_prefix(position.what.clone());
            bar
        });
        let now = Instant::now();
        Current {
            what: position.what.clone(),
            started: now,
            spoke: now,
            bar,
            last: position.clone(),
        }
    }

    fn rates(&self) -> String {
        rates(&self.last, self.started.elapsed().as_secs_f64())
    }

    fn left(&self) -> String {
        let seconds = self.started.elapsed().as_secs_f64();
        match self.last.fraction() {
            Some(done) if done > 0.005 && seconds > 0.3 => {
                format!(
                    "  {} left",
                    units::seconds((seconds / done - seconds).max(0.0))
                )
            }
            _ => String::new(),
        }
    }

    fn show(&mut self, position: &Position) {
        self.last = position.clone();
        let message = format!("{}{}", self.rates(), self.left());
        if let Some(bar) = &self.bar {
            bar.set_position((1000.0 * position.fraction().unwrap_or(0.0)) as u64);
            bar.set_message(message);
        } else if self.spoke.elapsed() >= LINE_EVERY {
            self.spoke = Instant::now();
            let percent = 100.0 * position.fraction().unwrap_or(0.0);
            eprintln!("{}: {percent:.0} %  {message}", self.what);
        }
    }

    fn end(self) {
        let took = units::seconds(self.started.elapsed().as_secs_f64());
        let line = format!("{:>10} {}  in {took}", self.what, self.rates());
        match &self.bar {
            Some(bar) => {
                bar.finish_and_clear();
                eprintln!("{line}");
            }
            None => eprintln!("{}", line.trim_start()),
        }
    }
}

/// How many rows there are after so many seconds, and how many came in a second, where these are enough to tell.
fn rates(position: &Position, seconds: f64) -> String {
    let rows = units::count(position.rows);
    if position.rows < MEASURED {
        return format!("{rows} rows");
    }
    let seconds = seconds.max(1e-3);
    format!(
        "{rows} rows  {} rows/s  {:.0} MB/s",
        units::count((position.rows as f64 / seconds) as u64),
        position.bytes as f64 / 1e6 / seconds
    )
}

impl Progress for Display {
    fn update(&self, position: &Position) -> ControlFlow<()> {
        let mut current = self.current.borrow_mut();
        if current
            .as_ref()
            .is_none_or(|current| current.what != position.what)
            && let Some(before) = current.replace(Current::new(position, self.terminal))
        {
            before.end();
        }
        if let Some(current) = current.as_mut() {
            current.show(position);
        }
        if interrupt::asked() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_have_no_speed() {
        let mut position = Position::start("region");
        position.rows = 5;
        position.bytes = 400;
        assert_eq!(rates(&position, 1.5), "5 rows");
        position.rows = 1_500_000;
        position.bytes = 171_000_000;
        assert_eq!(
            rates(&position, 1.5),
            "1,500,000 rows  1,000,000 rows/s  114 MB/s"
        );
    }
}
