//! `atoll watch`: a process over time.

mod live;
mod moment;
mod objects;
pub mod options;
mod others;
#[cfg(feature = "lab")]
mod plot;

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use counters::{Error, Nodes, Summary, System};
use serde_json::{Value, json};

use crate::commands::watch::moment::{End, Moment};
use crate::commands::watch::options::Watch;
use crate::commands::watch::others::Others;
use crate::failure::Failure;
use crate::terminal::{interrupt, out};

/// Runs the command.
pub fn run(args: &Watch) -> Result<(), Failure> {
    #[cfg(feature = "lab")]
    if let Some(path) = &args.plot {
        report::can_write(path)?;
    }
    let machine = topology::Machine::live()?;
    let nodes = Nodes::new(&machine);
    let mut watch = counters::Watch::new(&System::real(), &nodes, args.pid, args.children)?;
    if let Some(why) = watch.without_perf() {
        eprintln!(
            "atoll: migrations are counted from /proc, which misses those of threads that live \
             shorter than an interval: {why}"
        );
    }
    let mut out = out::stdout();
    let mut writer = Writer::new(args, &mut out)?;
    let mut others = if args.counters {
        Some(Others::new(&nodes, args.pid)?)
    } else {
        None
    };
    #[cfg(feature = "lab")]
    let mut history = args.plot.as_ref().map(|_| plot::History::default());
    let begun = Instant::now();
    let mut due = Duration::ZERO;
    let end = loop {
        due += args.interval;
        if let Some(end) = sleep(begun, due, args.duration) {
            break end;
        }
        let sample = match watch.look() {
            Ok(sample) => sample,
            Err(Error::Ended { .. }) => break End::Ended,
            Err(error) => return Err(error.into()),
        };
        let moment = Moment::new(sample, watch.summary());
        #[cfg(feature = "lab")]
        if let Some(history) = &mut history {
            history.add(&moment);
        }
        if let Some(others) = &mut others {
            others.read();
        }
        writer.look(&mut out, moment)?;
        // A sample that took longer than the interval does not make the next ones come faster.
        due = due.max(begun.elapsed());
    };
    let told = tell(&mut out, writer.form, watch.summary(), others.as_ref(), end)?;
    #[cfg(feature = "lab")]
    if let (Some(path), Some(history)) = (&args.plot, &history) {
        let written = plot::write(path, machine, history, watch.summary(), &told)?;
        eprintln!(
            "wrote {} and {}",
            written.html.display(),
            written.json.display()
        );
    }
    #[cfg(not(feature = "lab"))]
    drop(told);
    // To stop when asked is no failure.
    interrupt::forget();
    Ok(())
}

/// Writes the summary; returns it as JSON.
fn tell(
    out: &mut impl Write,
    form: Form,
    summary: &Summary,
    others: Option<&Others>,
    end: End,
) -> Result<Value, Failure> {
    let mut told = objects::summary(summary, end);
    if let Some(others) = others {
        told["readings"] = json!(others.readings());
    }
    match form {
        Form::Text => {
            live::summary(out, summary, end)?;
            if let Some(others) = others {
                others.print(out)?;
            }
        }
        Form::Lines => writeln!(out, "{}", json!({ "summary": told }))?,
        Form::Object => writeln!(out, "],\"summary\":{told}}}")?,
    }
    out.flush()?;
    Ok(told)
}

/// Writes samples as they come.
struct Writer {
    form: Form,
    screen: live::Screen,
    last: Option<Moment>,
}

/// The form in which samples are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    /// One object a line.
    Lines,
    /// One object for all, written piece by piece so that samples are not kept in memory.
    Object,
}

impl Writer {
    fn new(args: &Watch, out: &mut impl Write) -> Result<Writer, Failure> {
        let form = match (args.json, args.json_lines) {
            (true, _) => Form::Object,
            (false, true) => Form::Lines,
            (false, false) => Form::Text,
        };
        if form == Form::Object {
            write!(out, "{{\"looks\":[")?;
        }
        let terminal = form == Form::Text && std::io::stdout().is_terminal();
        Ok(Writer {
            form,
            screen: live::Screen::new(terminal),
            last: None,
        })
    }

    fn look(&mut self, out: &mut impl Write, moment: Moment) -> Result<(), Failure> {
        match self.form {
            Form::Text => self.screen.show(out, self.last.as_ref(), &moment)?,
            Form::Lines => writeln!(out, "{}", objects::look(&moment))?,
            Form::Object if self.last.is_none() => write!(out, "{}", objects::look(&moment))?,
            Form::Object => write!(out, ",{}", objects::look(&moment))?,
        }
        self.last = Some(moment);
        Ok(out.flush()?)
    }
}

/// Sleeps until `due` after `begun`. Returns why watching ends, if there is no further sample. With a time limit `most`
/// the last sample is taken at its end.
fn sleep(begun: Instant, due: Duration, most: Option<Duration>) -> Option<End> {
    if most.is_some_and(|most| begun.elapsed() >= most) {
        return Some(End::Time);
    }
    let due = most.map_or(due, |most| due.min(most));
    loop {
        if interrupt::asked() {
            return Some(End::Interrupted);
        }
        let passed = begun.elapsed();
        if passed >= due {
            return None;
        }
        // Short naps, so that Ctrl-C takes effect soon.
        std::thread::sleep((due - passed).min(Duration::from_millis(50)));
    }
}
