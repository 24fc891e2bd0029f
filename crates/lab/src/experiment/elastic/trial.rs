//! One run: the workload's phases under one variant, everything recorded.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use counters::{Nodes, System, Watch};
use governor::live::{Counter, Live, Means, Options, Target, Wanted};
use governor::{Energy, Power, Sensor};
use serde::{Deserialize, Serialize};
use topology::Machine;

use super::load::{Done, Ready, Task};
use super::moves::{Move, Tracing};
use super::plan::{Phase, Variant, Workload};
use super::recorder::Recorder;
use crate::{Error, Result, roi};

/// What a run needs.
pub struct Setting<'a> {
    /// The words that start this lab's commands.
    pub lab: &'a [OsString],
    /// What is started as guard where something else than our own program is governed.
    pub guard: &'a [OsString],
    /// This machine.
    pub machine: &'a Machine,
    /// The cpus there are to give.
    pub cpus: usize,
    /// What is governed, where it is not the clients.
    pub server: Option<u32>,
    /// A database's client, and what it is asked.
    pub command: &'a [String],
    /// See `command`.
    pub statements: &'a [String],
    /// Rows of our own columns, and the cpus on which they are made.
    pub rows: usize,
    /// See `rows`.
    pub made_on: Vec<String>,
    /// The cpus of the governor and of what records, which are not governed; none: wherever the system puts them.
    pub own: Option<placement::CpuSet>,
    /// Time between two decisions.
    pub period: Duration,
    /// Whether the machine is an emulated one: there a decision takes many times as long, and yet the period is not
    /// longer for it; and what cores do there says nothing of energy, so that none is estimated.
    pub emulated: bool,
    /// Time between two looks at threads.
    pub look: Duration,
    /// The phase that is a region of interest to the access counter.
    pub counted: Option<usize>,
    /// Regions are so long, from beginning to end, and the kernel tells moves between cpus.
    pub window: Option<Duration>,
    /// What a query takes alone; found out where it is not known yet.
    pub query_seconds: Option<f64>,
    /// Becomes true when the user wants to end.
    pub stop: &'a AtomicBool,
}

/// What became of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// The phase.
    pub phase: Phase,
    /// When it began, in seconds.
    pub from: f64,
    /// When it had ended.
    pub to: f64,
    /// What was answered in it.
    pub done: Done,
}

/// What was decided at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// In seconds.
    pub time: f64,
    /// Cores from then on; of an ungoverned run all.
    pub cores: usize,
    /// Cpus kept busy since the moment before.
    pub busy: Option<f64>,
    /// Threads that waited for one.
    pub waiting: Option<f64>,
    /// Stable, Idle, Overload, or Checks where the net did not run.
    pub place: String,
    /// Bytes of memory by node, where that was looked at.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub memory: BTreeMap<u32, f64>,
    /// Where cores came or went: the transitions and the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
}

/// A stretch of a thread's life.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Life {
    /// The thread's number.
    pub thread: u32,
    /// In seconds.
    pub from: f64,
    /// In seconds.
    pub to: f64,
    /// Where it ran.
    pub cpu: u32,
    /// Of that cpu.
    pub node: u32,
}

/// All of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// What was run.
    pub workload: Workload,
    /// Under whom.
    pub variant: Variant,
    /// What a query takes alone.
    pub query_seconds: f64,
    /// How long it took.
    pub seconds: f64,
    /// Queries answered per second.
    pub throughput: f64,
    /// Phase by phase.
    pub phases: Vec<Told>,
    /// Cores that it had, times seconds.
    pub allocated: f64,
    /// Cores that it kept busy, times seconds, from the first decision to the last; `None` where that was not read at
    /// each of them.
    pub used: Option<f64>,
    /// Decisions that were made; none where nobody decided.
    pub decisions: usize,
    /// How many of them changed something.
    pub changes: usize,
    /// Seconds from reading to the cpus' being set, of those.
    pub change_seconds: Vec<f64>,
    /// Threads that were moved to another cpu; `None` where the kernel does not say.
    pub migrations: Option<u64>,
    /// Threads that were seen on another node than the time before; `None` where none was ever seen.
    pub node_moves: Option<u64>,
    /// All moves to another cpu, where the kernel told each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moves: Option<Vec<Move>>,
    /// When each region of counted accesses began, and when the last one ended, in seconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<f64>,
    /// How often threads were given a cpu.
    pub switches: Option<u64>,
    /// Page faults that needed no disk.
    pub minor_faults: u64,
    /// By the text's method, never measured; `None` where the machine is an emulated one, or what was used is not known.
    pub energy: Option<Energy>,
    /// Joules of the whole machine meanwhile, measured, where that is counted.
    #[serde(default)]
    pub machine_joules: Option<f64>,
    /// Of the decisions that were made again from the recorded readings, those that were the same.
    pub replayed: Option<usize>,
    /// What happened when.
    pub moments: Vec<Moment>,
    /// Where threads were when.
    pub lives: Vec<Life>,
}

/// The program that asks.
struct Load {
    child: Child,
    output: BufReader<ChildStdout>,
    ready: Ready,
    _folder: Folder,
}

/// A folder that goes with its value.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new() -> Result<Folder> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("atoll-elastic-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).map_err(|source| Error::Write {
            path: path.clone(),
            source,
        })?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Load {
    fn start(setting: &Setting<'_>, workload: Workload, clients: usize) -> Result<Load> {
        let folder = Folder::new()?;
        let task = Task {
            workload,
            clients,
            counter: folder.0.join("count"),
            command: setting.command.to_vec(),
            statements: setting.statements.to_vec(),
            rows: setting.rows,
            made_on: setting.made_on.clone(),
        };
        let words = serde_json::to_string(&task).unwrap_or_default();
        let failed = |why: String| Error::Drive {
            program: "the load".to_owned(),
            why,
        };
        let (program, rest) = setting
            .lab
            .split_first()
            .ok_or_else(|| failed("nobody said how to start it".to_owned()))?;
        let mut command = Command::new(program);
        command.args(rest).arg("load").arg(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let output = child.stdout.take();
        let output = output.ok_or_else(|| failed("it has no output".to_owned()))?;
        let mut load = Load {
            child,
            output: BufReader::new(output),
            ready: Ready { query_seconds: 0.0 },
            _folder: folder,
        };
        load.ready = load.answer()?;
        Ok(load)
    }

    fn answer<T: serde::de::DeserializeOwned>(&mut self) -> Result<T> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line);
        let why = match read {
            Ok(0) => "it ended early; what it said stands above".to_owned(),
            Ok(_) => match serde_json::from_str(&line) {
                Ok(answer) => return Ok(answer),
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        };
        Err(Error::Drive {
            program: "the load".to_owned(),
            why,
        })
    }

    fn order(&mut self, line: &str) -> Result<()> {
        let written = match self.child.stdin.as_mut() {
            Some(input) => writeln!(input, "{line}").and_then(|()| input.flush()),
            None => Ok(()),
        };
        written.map_err(|error| Error::Drive {
            program: "the load".to_owned(),
            why: error.to_string(),
        })
    }

    fn tell(&mut self) -> Result<Done> {
        self.order("tell")?;
        self.answer()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // It ends with its input, and the clients of a database with it.
        drop(self.child.stdin.take());
        let until = Instant::now() + Duration::from_secs(2);
        while Instant::now() < until {
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs it.
///
/// # Errors
///
/// [`Error::Drive`] and [`Error::Governor`], and [`Error::Interrupted`].
pub fn run(
    setting: &Setting<'_>,
    workload: Workload,
    variant: Variant,
    phases: &[Phase],
) -> Result<Trial> {
    let clients = phases.iter().map(|phase| phase.clients).max().unwrap_or(1);
    let mut load = Load::start(setting, workload, clients)?;
    let query = setting.query_seconds.unwrap_or(load.ready.query_seconds);
    let target = setting.server.unwrap_or(load.child.id());
    let mut live = begin(setting, variant, target, &load)?;
    let _own = setting
        .own
        .as_ref()
        .map(placement::apply::pin)
        .transpose()?;
    let nodes = Nodes::new(setting.machine);
    let mut watch = Watch::new(&System::real(), &nodes, target, true).map_err(unseen)?;
    let mut recorder = Recorder::new(setting);
    let tracing = setting.window.and_then(|_| Tracing::begin());
    let zero = Instant::now();
    let mut told = Vec::new();
    for (at, phase) in phases.iter().enumerate() {
        let from = zero.elapsed();
        let pace = match phase.share >= 1.0 {
            true => 0.0,
            false => query / phase.share,
        };
        load.order(&format!("ask {} {pace}", phase.clients))?;
        let until = from + Duration::from_secs_f64(phase.seconds);
        let counted = setting.counted == Some(at);
        if counted {
            // What flushing writes is in a region without length, and nobody's.
            recorder.mark(from);
            roi::flush();
        }
        if counted || setting.window.is_some() {
            recorder.mark(from);
        }
        let followed = recorder.follow(&mut live, &mut watch, (zero, until), setting.stop);
        if counted || (setting.window.is_some() && at + 1 == phases.len()) {
            roi::stop();
            recorder.windows.push(zero.elapsed().as_secs_f64());
        }
        followed?;
        let done = load.tell()?;
        told.push(Told {
            phase: *phase,
            from: from.as_secs_f64(),
            to: zero.elapsed().as_secs_f64(),
            done,
        });
    }
    load.order("ask 0 0")?;
    let seconds = zero.elapsed().as_secs_f64();
    let moves = tracing.as_ref().and_then(Tracing::moves);
    let machine = live.spent().first().map(|spent| spent.machine);
    live.end()?;
    let all = recorder.finish(variant, setting, seconds)?;
    let machine = machine.unwrap_or_default();
    let summary = watch.summary();
    let queries: u64 = told.iter().map(|told| told.done.queries).sum();
    Ok(Trial {
        workload,
        variant,
        query_seconds: query,
        seconds,
        throughput: queries as f64 / seconds,
        phases: told,
        migrations: summary.migrations,
        switches: summary.switches,
        minor_faults: summary.minor_faults,
        energy: all
            .used
            .filter(|_| !setting.emulated)
            .map(|used| Power::default().energy(used, machine.link_bytes)),
        machine_joules: machine.joules,
        moves,
        ..all
    })
}

fn unseen(error: counters::Error) -> Error {
    Error::Drive {
        program: "what is governed".to_owned(),
        why: error.to_string(),
    }
}

fn begin(setting: &Setting<'_>, variant: Variant, target: u32, load: &Load) -> Result<Live> {
    let sensed = matches!(variant, Variant::Governed(_, Sensor::Throughput));
    let counter = load._folder.0.join("count");
    let wanted = Wanted {
        target: Target::Pid(target),
        weight: 1.0,
        counter: sensed.then_some(Counter::File(counter)),
    };
    let options = Options {
        policy: variant.policy(),
        net: governor::elastic_net()?,
        period: setting.period,
        // It reads the same, so that it costs the same.
        dry_run: variant == Variant::Ungoverned,
        means: Means::Affinity,
        migrate: false,
        exclusive: false,
        power: governor::Power::default(),
        state: load._folder.0.join("state"),
        status: Arc::<Mutex<_>>::default(),
        sys: "/sys".into(),
        guard: match setting.server {
            Some(_) => setting.guard.to_vec(),
            // Our own program ends with us.
            None => Vec::new(),
        },
    };
    Ok(Live::begin(vec![wanted], options)?)
}
