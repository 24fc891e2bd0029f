//! One run: the workload's phases under one variant, everything recorded.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use counters::{Nodes, System, Watch};
use emulator::roi;
use governor::{Mode, Power, Sensor};
use governor_live::{Counter, Live, Means, Options, Target, Wanted};

use topology::Machine;

use super::load::{Done, Ready, Task};
use super::moves::Tracing;
use super::plan::{Phase, Variant, Workload};
use super::recorder::Recorder;
use super::trial::{Setting, Told, Trial};
use crate::error::{Error, Result};

/// The running load program.
struct Load {
    child: Child,
    output: BufReader<ChildStdout>,
    ready: Ready,
    folder: Folder,
}

/// The cpus of a machine, node after node or around the nodes.
fn cpus(machine: &Machine, mode: Mode) -> Vec<u32> {
    let nodes = machine.nodes().iter();
    let nodes: Vec<Vec<u32>> = nodes
        .map(|node| {
            node.cores
                .iter()
                .flat_map(|core| core.cpus.iter().copied())
                .collect()
        })
        .collect();
    if mode != Mode::Sparse {
        return nodes.concat();
    }
    let most = nodes.iter().map(Vec::len).max().unwrap_or(0);
    let round = |at: usize| nodes.iter().filter_map(move |node| node.get(at).copied());
    (0..most).flat_map(round).collect()
}

/// A folder that is removed when dropped.
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
    fn start(
        setting: &Setting<'_>,
        workload: Workload,
        variant: Variant,
        clients: usize,
    ) -> Result<Load> {
        let folder = Folder::new()?;
        let task = Task {
            workload,
            clients,
            counter: folder.0.join("count"),
            command: setting.command.to_vec(),
            statements: setting.statements.to_vec(),
            rows: setting.rows,
            made_on: setting.made_on.clone(),
            bound: match variant {
                Variant::Bound(mode) => cpus(setting.machine, mode),
                _ => Vec::new(),
            },
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
            folder,
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

/// A run in progress.
struct Stage<'a> {
    setting: &'a Setting<'a>,
    load: Load,
    live: Live,
    watch: Watch,
    recorder: Recorder,
    zero: Instant,
    /// Seconds that a query takes alone.
    query_seconds: f64,
}

impl Stage<'_> {
    /// Runs one phase. `counted`: it is the region of interest. After the `last` phase the last window ends.
    fn phase(&mut self, phase: &Phase, counted: bool, last: bool) -> Result<Told> {
        let from = self.zero.elapsed();
        let pace = if phase.share >= 1.0 {
            0.0
        } else {
            self.query_seconds / phase.share
        };
        let (clients, which) = (phase.clients, phase.which);
        self.load.order(&format!("ask {clients} {pace} {which}"))?;
        let until = from + Duration::from_secs_f64(phase.seconds);
        let windows = self.setting.window.is_some();
        if counted {
            // What flushing writes is in a region without length, and nobody's.
            self.recorder.mark(from);
            roi::flush();
        }
        if counted || windows {
            self.recorder.mark(from);
        }
        let followed = self.recorder.follow(
            &mut self.live,
            &mut self.watch,
            (self.zero, until),
            self.setting.stop,
        );
        if counted || (windows && last) {
            roi::stop();
            let now = self.zero.elapsed().as_secs_f64();
            self.recorder.windows.push(now);
        }
        followed?;
        let done = self.load.tell()?;
        Ok(Told {
            phase: *phase,
            from: from.as_secs_f64(),
            to: self.zero.elapsed().as_secs_f64(),
            done,
        })
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
    let load = Load::start(setting, workload, variant, clients)?;
    let query_seconds = setting.query_seconds.unwrap_or(load.ready.query_seconds);
    let target = setting.server.unwrap_or(load.child.id());
    let live = begin(setting, variant, target, &load)?;
    let _own = setting
        .own
        .as_ref()
        .map(placement::apply::pin)
        .transpose()?;
    let nodes = Nodes::new(setting.machine);
    let watch = Watch::new(&System::real(), &nodes, target, true).map_err(unseen)?;
    let recorder = Recorder::new(setting);
    let tracing = setting.window.and_then(|_| Tracing::begin());
    let mut stage = Stage {
        setting,
        load,
        live,
        watch,
        recorder,
        zero: Instant::now(),
        query_seconds,
    };
    let mut told = Vec::new();
    for (at, phase) in phases.iter().enumerate() {
        let counted = setting.counted == Some(at);
        told.push(stage.phase(phase, counted, at + 1 == phases.len())?);
    }
    stage.load.order("ask 0 0 0")?;
    let seconds = stage.zero.elapsed().as_secs_f64();
    let moves = tracing.as_ref().and_then(Tracing::moves);
    let machine = stage.live.spent().first().map(|spent| spent.machine);
    stage.live.end()?;
    let all = stage.recorder.finish(variant, setting, seconds)?;
    let machine = machine.unwrap_or_default();
    let summary = stage.watch.summary();
    let queries: u64 = told.iter().map(|told| told.done.queries).sum();
    Ok(Trial {
        workload,
        variant,
        query_seconds,
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
    let counter = load.folder.0.join("count");
    let wanted = Wanted {
        target: Target::Pid(target),
        weight: 1.0,
        counter: sensed.then_some(Counter::File(counter)),
    };
    let options = Options {
        period: setting.period,
        // It reads the same, so that it costs the same.
        dry_run: variant.leaves_alone(),
        means: Means::Affinity,
        guard: match setting.server {
            Some(_) => setting.guard.to_vec(),
            // Our own program ends with us.
            None => Vec::new(),
        },
        ..Options::new(variant.policy(), load.folder.0.join("state"))?
    };
    Ok(Live::begin(vec![wanted], options)?)
}
