//! `atoll watch`: a process over time.

mod live;
mod others;
mod plot;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use counters::{Error, Nodes, Sample, Summary, System};
use serde_json::{Value, json};

use crate::{Failure, interrupt, out, units};

/// `atoll watch`
#[derive(Args, Debug)]
pub struct Watch {
    /// The process
    #[arg(long, value_name = "PID")]
    pub pid: u32,
    /// Time between two looks, such as 200ms or 1s
    #[arg(long, default_value = "200ms", value_name = "TIME", value_parser = parse_interval)]
    pub interval: Duration,
    /// How long to watch, such as 10s or 5min [default: until the process ends, or Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time)]
    pub duration: Option<Duration>,
    /// Follow the processes it starts, too
    #[arg(long)]
    pub children: bool,
    /// Write a page with plots, and the raw numbers beside it
    #[arg(long, value_name = "FILE.html")]
    pub plot: Option<PathBuf>,
    /// Also tell what the machine counts: remote loads, memory traffic, energy, pressure, load of
    /// its cpus; and what it does not, and why
    #[arg(long)]
    pub counters: bool,
    /// One JSON object per look, on a line of its own, and one with the summary
    #[arg(long, conflicts_with = "json")]
    pub json_lines: bool,
    /// One JSON object at the end: the looks and the summary
    #[arg(long)]
    pub json: bool,
}

/// Why watching ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Ended,
    Time,
    Interrupted,
}

/// A look, and what had happened up to it since watching began.
#[derive(Clone)]
struct Moment {
    sample: Sample,
    migrations: Option<u64>,
    switches: Option<u64>,
    minor_faults: u64,
    major_faults: u64,
}

impl Moment {
    fn new(sample: Sample, summary: &Summary) -> Moment {
        Moment {
            sample,
            migrations: summary.migrations,
            switches: summary.switches,
            minor_faults: summary.minor_faults,
            major_faults: summary.major_faults,
        }
    }
}

/// Runs the command.
pub fn run(args: &Watch) -> Result<(), Failure> {
    if let Some(path) = &args.plot {
        plot::can_write(path)?;
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
    let mut others = match args.counters {
        true => Some(others::Others::new(&nodes, args.pid)?),
        false => None,
    };
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
        if let Some(history) = &mut history {
            history.add(&moment);
        }
        if let Some(others) = &mut others {
            others.read();
        }
        writer.look(&mut out, moment)?;
        // A look that took longer than the interval does not make the next ones hurry.
        due = due.max(begun.elapsed());
    };
    let mut told = summary_json(watch.summary(), end);
    if let Some(others) = &others {
        told["readings"] = json!(others.readings());
    }
    match writer.form {
        Form::Text => {
            live::summary(&mut out, watch.summary(), end)?;
            if let Some(others) = &others {
                others.print(&mut out)?;
            }
        }
        Form::Lines => writeln!(out, "{}", json!({ "summary": told }))?,
        Form::Object => writeln!(out, "],\"summary\":{told}}}")?,
    }
    out.flush()?;
    if let (Some(path), Some(history)) = (&args.plot, &history) {
        let written = plot::write(path, machine, history, watch.summary(), &told)?;
        eprintln!(
            "wrote {} and {}",
            written.html.display(),
            written.json.display()
        );
    }
    // Asked to stop, it has: that is no failure.
    interrupt::forget();
    Ok(())
}

/// Writes looks as they come.
struct Writer {
    form: Form,
    screen: live::Screen,
    last: Option<Moment>,
}

/// How looks are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    /// An object per line.
    Lines,
    /// One object, written piece by piece so that nothing piles up.
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
            Form::Lines => writeln!(out, "{}", to_json(&moment))?,
            Form::Object if self.last.is_none() => write!(out, "{}", to_json(&moment))?,
            Form::Object => write!(out, ",{}", to_json(&moment))?,
        }
        self.last = Some(moment);
        Ok(out.flush()?)
    }
}

/// Sleeps until `due` after `begun`; says why there is no further look, where there is none. With a
/// time limit the last look is at its end.
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
        // Not to keep Ctrl-C waiting.
        std::thread::sleep((due - passed).min(Duration::from_millis(50)));
    }
}

fn to_json(moment: &Moment) -> Value {
    let sample = &moment.sample;
    let memory = sample.memory();
    let processes: Vec<Value> = sample.processes.iter().map(process_json).collect();
    json!({
        "seconds": sample.at.as_secs_f64(),
        "load": sample.load(),
        "waiting": sample.waiting(),
        "threads": sample.threads(),
        "migrations": moment.migrations,
        "switches": moment.switches,
        "minor_faults": moment.minor_faults,
        "major_faults": moment.major_faults,
        "nodes": memory.keys().collect::<Vec<_>>(),
        "memory_bytes": memory.values().collect::<Vec<_>>(),
        "processes": processes,
        "started": sample.started,
        "ended": sample.ended,
        "unfollowed": sample.unfollowed,
    })
}

fn process_json(seen: &counters::Seen) -> Value {
    let activity = &seen.activity;
    let measured = |of: &counters::Measured| {
        let why = match &of.value {
            counters::Value::Unavailable(reason) => Some(&reason.text),
            _ => None,
        };
        let mut object = json!({ "value": of.value, "source": of.source.name() });
        if let Some(why) = why {
            object["unavailable"] = json!(why);
        }
        object
    };
    let memory = match &seen.memory {
        Ok(memory) => json!({
            "nodes": memory.nodes,
            "bytes": memory.bytes,
            "source": if memory.sampled { "move_pages" } else { "numa_maps" },
            "age_seconds": memory.age.as_secs_f64(),
        }),
        Err(why) => json!({ "unavailable": why }),
    };
    json!({
        "process": activity.process,
        "name": activity.name,
        "load": measured(&activity.load),
        "waiting": measured(&activity.waiting),
        "migrations": measured(&activity.migrations),
        "switches": measured(&activity.switches),
        "minor_faults": activity.minor_faults,
        "major_faults": activity.major_faults,
        "memory": memory,
        "threads": activity.threads,
        "threads_started": activity.started,
        "threads_ended": activity.ended,
    })
}

fn summary_json(summary: &Summary, end: End) -> Value {
    let by_node = |of: &std::collections::BTreeMap<u32, u64>| json!({ "nodes": of.keys().collect::<Vec<_>>(), "bytes": of.values().collect::<Vec<_>>() });
    let seconds = &summary.seconds_by_node;
    let thread = |((process, _), thread): (&(u32, u32), &counters::ThreadSummary)| {
        let mut object = json!(thread.activity);
        object["process"] = json!(process);
        object["first_seconds"] = json!(thread.first_seconds);
        object["last_seconds"] = json!(thread.last_seconds);
        object["nodes"] = json!(thread.nodes);
        object
    };
    json!({
        "process": summary.process,
        "name": summary.name,
        "end": match end {
            End::Ended => "process ended",
            End::Time => "time",
            End::Interrupted => "interrupted",
        },
        "seconds": summary.watched.as_secs_f64(),
        "looks": summary.looks,
        "mean_load": summary.mean_load(),
        "most_load": summary.most_load,
        "most_threads": summary.most_threads,
        "threads_started": summary.threads_started,
        "threads_ended": summary.threads_ended,
        "processes": summary.processes,
        "processes_ended": summary.processes_ended,
        "migrations": summary.migrations,
        "switches": summary.switches,
        "minor_faults": summary.minor_faults,
        "major_faults": summary.major_faults,
        "cpu_seconds": {
            "nodes": seconds.keys().collect::<Vec<_>>(),
            "seconds": seconds.values().collect::<Vec<_>>(),
        },
        "first_memory": by_node(&summary.first_memory),
        "last_memory": by_node(&summary.last_memory),
        "threads": summary.threads.iter().map(thread).collect::<Vec<_>>(),
    })
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    match parse_time(text)? {
        time if (Duration::from_millis(10)..=Duration::from_secs(3600)).contains(&time) => Ok(time),
        _ => Err("take a time from 10ms to 1h".to_owned()),
    }
}

fn parse_time(text: &str) -> Result<Duration, String> {
    units::parse_seconds(text).map(Duration::from_secs_f64)
}
