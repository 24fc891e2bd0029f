//! `atoll govern`: gives a database just the cores that it needs.

mod confirm;
pub mod options;
mod replay;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use governor::{Decision, Head, Policy, Sensor, Spent};
use governor_live::{Counter, Error, Live, Metrics, Options, Status, Target, Wanted};
use serde_json::json;

use crate::commands::govern::options::{Govern, Net, NetFormat, Undo, What, usage};
use crate::failure::{Failure, one_line};
use crate::program;
use crate::terminal::{interrupt, out};

/// How often the request to end is checked while waiting.
const NAP: Duration = Duration::from_millis(20);

/// Runs the command.
pub fn run(args: &Govern) -> Result<(), Failure> {
    match &args.what {
        Some(What::Replay(args)) => replay::run(args),
        Some(What::Undo(args)) => undo(args),
        Some(What::Net(args)) => net(args),
        Some(What::Guard { record }) => {
            Ok(governor_live::guard(record, std::io::stdin()).map(drop)?)
        }
        None => govern(args),
    }
}

fn undo(args: &Undo) -> Result<(), Failure> {
    let folder = args
        .state
        .clone()
        .unwrap_or_else(governor_live::state_folder);
    let undone = governor_live::undo(&folder, args.ended)?;
    let mut out = out::stdout();
    if args.json {
        writeln!(out, "{}", json!({ "undone": undone }))?;
        return Ok(out.flush()?);
    }
    for undone in &undone {
        let how = match undone.restored {
            Some(count) => format!("{count} put back"),
            None => "its governor has put everything back".to_owned(),
        };
        writeln!(
            out,
            "{} (governor {}): {how}",
            undone.target, undone.governor
        )?;
    }
    if undone.is_empty() {
        writeln!(out, "nothing is governed, and nothing was left behind")?;
    }
    Ok(out.flush()?)
}

fn net(args: &Net) -> Result<(), Failure> {
    let net = governor::elastic_net()?;
    let text = match args.format {
        NetFormat::Toml => petri::ELASTIC.to_owned(),
        NetFormat::Dot => net.dot(None),
        NetFormat::Pnml => net.pnml(),
        NetFormat::Matrix => matrices(&net.incidence()),
    };
    let mut out = out::stdout();
    writeln!(out, "{}", text.trim_end())?;
    Ok(out.flush()?)
}

/// What transitions take and put, and the difference, each with a line that says which it is.
fn matrices(all: &petri::Incidence) -> String {
    format!(
        "Pre: what each transition takes\n{}\n\nPost: what each transition puts\n{}\n\nPost - Pre\n{all}",
        all.table(&all.pre),
        all.table(&all.post)
    )
}

/// Why governing has ended.
enum End {
    /// The target has ended.
    Target,
    /// The user asked to end, or the time was over.
    Asked,
}

fn govern(args: &Govern) -> Result<(), Failure> {
    let targets = args.targets();
    if targets.is_empty() == args.command.is_empty() {
        let why = if targets.is_empty() {
            "say what to govern: --name, --pid, --cgroup, --unit, or -- COMMAND"
        } else {
            "a command is governed alone; leave out the other targets"
        };
        return Err(usage(why));
    }
    if !args.weight.is_empty() && args.weight.len() != targets.len() {
        return Err(usage("give one --weight for each target"));
    }
    if args.throughput.is_some() && targets.len() > 1 {
        return Err(usage("--throughput is of one target"));
    }
    let mut policy = args.policy.policy(None)?;
    if args.throughput.is_some() && policy.sensor != Sensor::Throughput {
        policy = policy.thresholds_of(Sensor::Throughput);
    }
    let cpus = topology::Machine::live()?.cpus();
    if policy.min_cores > cpus {
        let least = policy.min_cores;
        eprintln!(
            "atoll: at least {least} cores are asked for; this machine has {cpus}, which it gets"
        );
    }
    governor_live::listen();
    let mut teller = Teller::new(args, &policy)?;
    if args.command.is_empty() {
        attend(args, &policy, &targets, &mut teller)
    } else {
        accompany(args, &policy, &mut teller)
    }
}

/// Governs processes that run already.
fn attend(
    args: &Govern,
    policy: &Policy,
    targets: &[Target],
    teller: &mut Teller,
) -> Result<(), Failure> {
    loop {
        confirm::confirmed(args, targets)?;
        let begun = match begin(args, policy, targets, &teller.status) {
            Err(Error::NoTarget { .. }) if args.wait => None,
            other => Some(other?),
        };
        if let Some(live) = begun
            && matches!(follow(args, live, teller, || Ok(false))?, End::Asked)
        {
            return Ok(());
        }
        if !args.wait {
            eprintln!("atoll: what was governed has ended");
            return Ok(());
        }
        let until = Instant::now() + Duration::from_secs(1);
        while Instant::now() < until {
            if ending() {
                return Ok(());
            }
            std::thread::sleep(NAP);
        }
    }
}

/// Runs a command and governs it; its exit status is ours.
fn accompany(args: &Govern, policy: &Policy, teller: &mut Teller) -> Result<(), Failure> {
    let (program, arguments) = args.command.split_first().context("there is no command")?;
    let mut command = Command::new(program);
    command.args(arguments);
    if args.json {
        command.stdout(Stdio::from(std::io::stderr()));
    }
    let child = command
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let mut run = Running(child);
    let settled = Instant::now() + args.settle;
    while Instant::now() < settled && !ending() && run.0.try_wait()?.is_none() {
        std::thread::sleep(NAP);
    }
    let pid = run.0.id();
    if !ending() && run.0.try_wait()?.is_none() {
        let governed = begin(args, policy, &[Target::Pid(pid)], &teller.status);
        match governed {
            Ok(live) => {
                let child = &mut run.0;
                follow(args, live, teller, || Ok(child.try_wait()?.is_some()))?;
            }
            Err(Error::NoTarget { .. } | Error::Process(_)) if run.0.try_wait()?.is_some() => {}
            Err(error) => return Err(error.into()),
        }
    }
    let status = run.finish()?;
    if interrupt::asked() {
        return Err(Failure::Interrupted);
    }
    if status.success() || governor_live::asked_to_end() {
        return Ok(());
    }
    Err(anyhow!("{program} ended with {status}; its own messages say why").into())
}

/// A running command, which is ended when this value is dropped.
struct Running(Child);

impl Running {
    /// Waits for the command to end; asks it to end first if this process was asked to.
    fn finish(&mut self) -> Result<ExitStatus, Failure> {
        let mut asked = false;
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            if governor_live::asked_to_end() && !asked {
                asked = true;
                self.ask();
            }
            std::thread::sleep(NAP);
        }
    }

    fn ask(&self) {
        // The terminal sends Ctrl-C to the command as well; SIGTERM has to be passed on.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            self.ask();
            let _ = self.0.wait();
        }
    }
}

fn begin(
    args: &Govern,
    policy: &Policy,
    targets: &[Target],
    status: &Arc<Mutex<Status>>,
) -> governor_live::Result<Live> {
    let sensed = policy.sensor == Sensor::Throughput;
    let counter = |target: &Target| {
        let known = match target {
            Target::Name(name) => Counter::of_name(name),
            Target::Unit(unit) => {
                Counter::of_name(unit.split(['.', '@']).next().unwrap_or_default())
            }
            Target::Pid(_) | Target::Cgroup(_) => None,
        };
        args.throughput.clone().or(known).filter(|_| sensed)
    };
    let wanted: Vec<Wanted> = targets
        .iter()
        .enumerate()
        .map(|(at, target)| Wanted {
            target: target.clone(),
            weight: args.weight.get(at).copied().unwrap_or(1.0),
            counter: counter(target),
        })
        .collect();
    let slowest = wanted.iter().filter_map(|wanted| wanted.counter.as_ref());
    let slowest = slowest.map(Counter::period).max();
    let net = args.policy.net().map_err(|failure| match failure {
        Failure::Error(error) => governor::Error::Policy {
            why: one_line(&error),
        },
        _ => governor::Error::Policy {
            why: "the net".to_owned(),
        },
    })?;
    let mut guard = program::again();
    if !guard.is_empty() {
        guard.extend(["govern".into(), "guard".into()]);
    }
    Live::begin(
        wanted,
        Options {
            policy: policy.clone(),
            net,
            period: args
                .period
                .or(slowest)
                .unwrap_or(Duration::from_millis(100)),
            dry_run: args.dry_run,
            means: args.actuator,
            migrate: args.migrate,
            exclusive: args.exclusive,
            power: args.power(),
            state: args
                .state
                .clone()
                .unwrap_or_else(governor_live::state_folder),
            sys: "/sys".into(),
            guard,
            status: status.clone(),
        },
    )
}

fn ending() -> bool {
    interrupt::asked() || governor_live::asked_to_end()
}

/// Governs until the target ends or the user asks to end.
fn follow(
    args: &Govern,
    mut live: Live,
    teller: &mut Teller,
    mut ended: impl FnMut() -> Result<bool, Failure>,
) -> Result<End, Failure> {
    if let Some(address) = args.metrics
        && !teller.serves
    {
        let metrics = Metrics::serve(address, teller.status.clone())?;
        eprintln!("atoll: metrics on http://{}/metrics", metrics.address());
        teller.serves = true;
    }
    governor_live::hurry();
    let until = args.time.map(|time| Instant::now() + time);
    let over = || ending() || until.is_some_and(|until| Instant::now() >= until);
    let end = loop {
        if over() {
            break End::Asked;
        }
        if ended()? {
            break End::Target;
        }
        let begun = Instant::now();
        match live.check() {
            Ok(decisions) => {
                for decision in &decisions {
                    teller.tell(decision)?;
                }
            }
            Err(Error::Ended { .. }) => break End::Target,
            Err(error) => {
                teller.note(&live.notes());
                return Err(error.into());
            }
        }
        teller.note(&live.notes());
        let due = Instant::now() + live.pause(begun);
        while let Some(left) = due.checked_duration_since(Instant::now()) {
            if over() || left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(NAP));
        }
    };
    teller.note(&live.notes());
    teller.spent(&live.spent())?;
    let undone = live.end()?;
    if !args.dry_run && matches!(end, End::Asked) {
        for undone in &undone {
            let count = undone.restored.unwrap_or(0);
            eprintln!("atoll: {} is as before: {count} put back", undone.target);
        }
    }
    Ok(end)
}

/// Reports decisions on standard output, and writes them to the trace.
struct Teller {
    out: out::Out,
    trace: Option<(BufWriter<File>, String)>,
    json: bool,
    all: bool,
    first: bool,
    /// The state that the metrics show, of one governor after the other.
    status: Arc<Mutex<Status>>,
    serves: bool,
}

impl Teller {
    fn new(args: &Govern, policy: &Policy) -> Result<Teller, Failure> {
        let trace = match &args.trace {
            Some(path) => {
                let name = path.display().to_string();
                let file = File::create(path).with_context(|| format!("cannot write {name}"))?;
                let mut file = BufWriter::new(file);
                let head = Head::new(&topology::Machine::live()?, policy);
                writeln!(file, "{}", serde_json::to_string(&head)?)?;
                Some((file, name))
            }
            None => None,
        };
        Ok(Teller {
            out: out::stdout(),
            trace,
            json: args.json,
            all: args.all,
            first: true,
            status: Arc::default(),
            serves: false,
        })
    }

    fn tell(&mut self, decision: &Decision) -> Result<(), Failure> {
        let line = if self.json || self.trace.is_some() {
            serde_json::to_string(decision)?
        } else {
            String::new()
        };
        if let Some((file, name)) = &mut self.trace {
            let written = writeln!(file, "{line}").and_then(|()| file.flush());
            written.with_context(|| format!("cannot write {name}"))?;
        }
        if self.json {
            writeln!(self.out, "{line}")?;
        } else if self.all || self.first || decision.changed() {
            writeln!(self.out, "{decision}")?;
        } else {
            return Ok(());
        }
        self.first = false;
        Ok(self.out.flush()?)
    }

    /// Writes the last line: what the targets have used.
    fn spent(&mut self, spent: &[Spent]) -> Result<(), Failure> {
        if self.json {
            writeln!(self.out, "{}", json!({ "spent": spent }))?;
            self.out.flush()?;
        } else {
            spent.iter().for_each(|spent| eprintln!("atoll: {spent}"));
        }
        Ok(())
    }

    fn note(&mut self, notes: &[String]) {
        for note in notes {
            eprintln!("atoll: {note}");
        }
    }
}
