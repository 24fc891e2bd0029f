//! Progress of a run in phases on standard error: a bar on a terminal, a line every few seconds elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::units;

/// How often a line is written if there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Shows one phase after the other.
pub struct Phases {
    terminal: bool,
    current: Option<Phase>,
}

struct Phase {
    name: &'static str,
    begun: Instant,
    spoke: Instant,
    bar: Option<ProgressBar>,
}

impl Phases {
    /// Shows nothing before the first phase.
    pub fn new() -> Phases {
        Phases {
            terminal: std::io::stderr().is_terminal(),
            current: None,
        }
    }

    /// Shows that `done` of `total` units of a phase are done; of a total of 0 it is not known.
    pub fn show(&mut self, name: &'static str, done: u64, total: u64) {
        if self.current.as_ref().is_none_or(|phase| phase.name != name) {
            self.finish();
            self.current = Some(Phase::new(name, self.terminal));
        }
        let Some(phase) = &mut self.current else {
            return;
        };
        // What is done may be more than was thought.
        let share = done.min(total) as f64 / total.max(1) as f64;
        let left = phase.left(share);
        if let Some(bar) = &phase.bar {
            bar.set_position((1000.0 * share) as u64);
            bar.set_message(format!("{}{left}", units::count(done)));
        } else if phase.spoke.elapsed() >= LINE_EVERY {
            phase.spoke = Instant::now();
            eprintln!("{name}: {:.0} %{left}", 100.0 * share);
        }
    }

    /// Removes the bar.
    pub fn finish(&mut self) {
        if let Some(bar) = self.current.take().and_then(|phase| phase.bar) {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Phases {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Phase {
    fn new(name: &'static str, terminal: bool) -> Phase {
        let now = Instant::now();
        let bar = terminal.then(|| {
            let bar = ProgressBar::new(1000);
            let style = "{prefix:>10} {bar:24.cyan} {percent:>3} %  {msg}";
            if let Ok(style) = ProgressStyle::with_template(style) {
                bar.set_style(style);
            }
            bar.set_prefix(name);
            bar
        });
        Phase {
            name,
            begun: now,
            spoke: now,
            bar,
        }
    }

    /// How long the rest of the phase takes, where that can be told.
    fn left(&self, share: f64) -> String {
        let seconds = self.begun.elapsed().as_secs_f64();
        if share > 0.005 && seconds > 0.3 {
            let left = units::seconds((seconds / share - seconds).max(0.0));
            format!("  {left} left")
        } else {
            String::new()
        }
    }
}
