//! The program that is governed: clients that run queries of its own, or send statements to a database.
//!
//! It reads orders from its standard input. `ask CLIENTS PACE WHICH` sets the number of clients, the seconds between two
//! queries of a client, 0 for no pause, and which query it is where that is not drawn. `tell` is answered with what was done since the last time. It ends with its
//! input.

use std::hint::black_box;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use placement::CpuSet;
use serde::{Deserialize, Serialize};

use super::plan::{OWN, Workload};
use super::queries::{ALL, BELOW, Contended, Data};
use crate::error::{Error, Result};
use crate::workload::drive::{self, Driven};

/// How often the counter file is written.
const COUNT: Duration = Duration::from_millis(20);

/// The most queries whose duration is kept between two answers to `tell`.
const KEPT: usize = 1 << 20;

/// What is to be run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Which queries.
    pub workload: Workload,
    /// The most clients.
    pub clients: usize,
    /// The file with the number of answered queries.
    pub counter: PathBuf,
    /// The command of a database's client, which is started for each client; none: queries of its own.
    pub command: Vec<String>,
    /// The statements for it.
    pub statements: Vec<String>,
    /// Rows of the columns that its own queries read.
    pub rows: usize,
    /// Sets of cpus on which the columns are made, an equal part on each; a database starts and loads its table on
    /// all of them. They determine the nodes of the data; none: any cpus.
    #[serde(default)]
    pub made_on: Vec<String>,
    /// Cpus to which clients bind themselves, one to each in turn; none: they may run on all.
    #[serde(default)]
    pub bound: Vec<u32>,
}

/// Its first line, once it is ready.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    /// Seconds that a query takes if nothing else runs.
    pub query_seconds: f64,
}

/// What was done since the last `tell`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// Queries answered.
    pub queries: u64,
    /// The median duration, in seconds.
    pub median_seconds: Option<f64>,
    /// The 99th percentile of the duration, in seconds.
    pub p99_seconds: Option<f64>,
}

/// The orders of the clients.
#[derive(Clone, Copy, Debug, Default)]
struct Orders {
    clients: usize,
    pace: Duration,
    which: usize,
    /// Counts the orders.
    number: u64,
}

/// State shared by all clients.
struct Shared {
    task: Task,
    data: Data,
    contended: Contended,
    orders: Mutex<Orders>,
    changed: Condvar,
    done: AtomicU64,
    /// How many had been reported.
    told: AtomicU64,
    times: Mutex<Vec<f32>>,
    failed: AtomicBool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs until the input ends.
///
/// # Errors
///
/// [`Error::Drive`] if a client of a database cannot be started, or the input is not understood.
pub fn serve(task: Task, input: impl BufRead, output: &mut dyn Write) -> Result<()> {
    let homes = task.made_on.iter().map(|cpus| cpus.parse());
    let homes = homes.collect::<std::result::Result<Vec<CpuSet>, _>>()?;
    let home = Home::new(&homes)?;
    let mut asked = Vec::new();
    for _ in 0..if task.command.is_empty() {
        0
    } else {
        task.clients
    } {
        asked.push(client(&task)?);
    }
    let shared = Arc::new(Shared {
        data: data(&task, &homes)?,
        contended: Contended::new(),
        orders: Mutex::default(),
        changed: Condvar::new(),
        done: AtomicU64::new(0),
        told: AtomicU64::new(0),
        times: Mutex::default(),
        failed: AtomicBool::new(false),
        task,
    });
    let ready = Ready {
        query_seconds: alone(&shared, asked.first_mut())?,
    };
    home.leave(&asked)?;
    let mut asked = asked.into_iter();
    for number in 0..shared.task.clients {
        let (shared, asked) = (shared.clone(), asked.next());
        std::thread::spawn(move || Client::new(number, shared, asked).run());
    }
    {
        let shared = shared.clone();
        std::thread::spawn(move || keep(&shared));
    }
    say(output, &ready)?;
    for line in input.lines() {
        let line = line.map_err(|source| Error::Output { source })?;
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["ask", clients, pace, which] => order(&shared, [clients, pace, which])?,
            ["tell"] => say(output, &told(&shared))?,
            _ => return Err(wrong(&line)),
        }
        if shared.failed.load(Ordering::Relaxed) {
            return Err(Error::Drive {
                program: shared.task.command.first().cloned().unwrap_or_default(),
                why: "it no longer answers, or a client could not be bound to its core".to_owned(),
            });
        }
    }
    Ok(())
}

/// The columns, which lie where they are made.
fn data(task: &Task, homes: &[CpuSet]) -> Result<Data> {
    let rows = if task.command.is_empty() {
        task.rows
    } else {
        0
    };
    Data::new(rows, task.workload == Workload::Native, homes)
}

/// Keeps this process, and what it starts, on some cpus until it may run everywhere.
struct Home {
    /// The cpus from before; `None`: nothing is bound.
    all: Option<CpuSet>,
    _pinned: Option<placement::apply::Pinned>,
}

impl Home {
    fn new(homes: &[CpuSet]) -> Result<Home> {
        if homes.is_empty() {
            return Ok(Home {
                all: None,
                _pinned: None,
            });
        }
        let cpus: CpuSet = homes.iter().flat_map(CpuSet::iter).collect();
        let all = placement::apply::cpus_of(0).ok();
        Ok(Home {
            _pinned: Some(placement::apply::pin(&cpus)?),
            all,
        })
    }

    /// Lets this thread and all threads of the databases run everywhere again.
    fn leave(self, databases: &[Driven]) -> Result<()> {
        let Some(all) = &self.all else {
            return Ok(());
        };
        for database in databases {
            // Those that start meanwhile have the cpus of those that started them.
            for _ in 0..2 {
                for thread in database.look()?.threads {
                    // One that has ended needs none.
                    let _ = placement::apply::bind(thread.id.cast_signed(), all);
                }
            }
        }
        Ok(())
    }
}

fn wrong(line: &str) -> Error {
    Error::Job {
        why: format!("'{line}' is no order"),
    }
}

fn client(task: &Task) -> Result<Driven> {
    Driven::start(&drive::Task {
        command: task.command.clone(),
        ..drive::Task::default()
    })
}

fn say(output: &mut dyn Write, what: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(what).unwrap_or_default();
    let written = writeln!(output, "{text}").and_then(|()| output.flush());
    written.map_err(|source| Error::Output { source })
}

fn order(shared: &Shared, [clients, pace, which]: [&str; 3]) -> Result<()> {
    let read = (clients.parse(), pace.parse::<f64>(), which.parse());
    let (Ok(clients), Ok(pace), Ok(which)) = read else {
        return Err(wrong(&format!("ask {clients} {pace} {which}")));
    };
    let mut orders = locked(&shared.orders);
    *orders = Orders {
        clients,
        pace: Duration::try_from_secs_f64(pace).map_err(|_| wrong("ask"))?,
        which,
        number: orders.number + 1,
    };
    shared.contended.run(clients);
    shared.changed.notify_all();
    Ok(())
}

/// Measures what a query takes alone: the shortest of a few runs of each kind.
fn alone(shared: &Shared, mut asked: Option<&mut Driven>) -> Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..if asked.is_some() { 3 } else { 7 } {
        let begun = Instant::now();
        match &mut asked {
            Some(asked) => {
                for statement in &shared.task.statements {
                    asked.ask(statement)?;
                }
            }
            None if shared.task.workload == Workload::Native => {
                black_box(shared.data.q6());
            }
            None => shared.data.scan(BELOW),
        }
        least = least.min(begun.elapsed().as_secs_f64());
    }
    Ok(least / shared.task.statements.len().max(1) as f64)
}

fn told(shared: &Shared) -> Done {
    let mut times = std::mem::take(&mut *locked(&shared.times));
    times.sort_by(f32::total_cmp);
    let at = |share: f64| {
        let last = times.len().checked_sub(1)?;
        times
            .get((last as f64 * share).round() as usize)
            .map(|time| f64::from(*time))
    };
    let now = shared.count();
    Done {
        queries: now - shared.told.swap(now, Ordering::Relaxed),
        median_seconds: at(0.5),
        p99_seconds: at(0.99),
    }
}

impl Shared {
    /// Queries answered so far.
    fn count(&self) -> u64 {
        match self.task.workload {
            Workload::Lock if self.task.command.is_empty() => self.contended.count(),
            _ => self.done.load(Ordering::Relaxed),
        }
    }
}

/// Keeps the file up to date with the number of answered queries.
fn keep(shared: &Shared) {
    let path: &Path = &shared.task.counter;
    let new = path.with_extension("new");
    loop {
        let all = shared.count();
        let _ = std::fs::write(&new, format!("{all}\n")).and_then(|()| std::fs::rename(&new, path));
        std::thread::sleep(COUNT);
    }
}

/// A client.
struct Client {
    number: usize,
    shared: Arc<Shared>,
    asked: Option<Driven>,
    random: u64,
}

impl Client {
    fn new(number: usize, shared: Arc<Shared>, asked: Option<Driven>) -> Client {
        Client {
            number,
            shared,
            asked,
            // The same queries in each run.
            random: 0x9e37_79b9_7f4a_7c15 ^ (number as u64 + 1).wrapping_mul(0x2545_f491_4f6c_dd1d),
        }
    }

    fn run(mut self) {
        if self.shared.task.workload == Workload::Lock && self.asked.is_none() {
            self.shared.contended.work(self.number);
        }
        let bound = &self.shared.task.bound;
        let own = bound.get(self.number % bound.len().max(1));
        let own = own.map(|cpu| CpuSet::from_iter([*cpu]));
        // What runs elsewhere than it was to run is not what is measured.
        let Ok(_bound) = own.map(|own| placement::apply::pin(&own)).transpose() else {
            self.shared.failed.store(true, Ordering::Relaxed);
            return;
        };
        let (mut next, mut known) = (Instant::now(), 0);
        loop {
            let orders = self.wait(&mut next, &mut known);
            let begun = Instant::now();
            if self.query(orders.which).is_err() {
                self.shared.failed.store(true, Ordering::Relaxed);
                return;
            }
            self.shared.done.fetch_add(1, Ordering::Relaxed);
            let mut times = locked(&self.shared.times);
            if times.len() < KEPT {
                times.push(begun.elapsed().as_secs_f32());
            }
            drop(times);
            // One that is late asks at once, and does not make up for what it missed.
            next = (next + orders.pace).max(begun);
        }
    }

    /// Waits until it is this client's turn, by the orders in force then.
    fn wait(&self, next: &mut Instant, known: &mut u64) -> Orders {
        let mut orders = locked(&self.shared.orders);
        loop {
            if *known != orders.number {
                *known = orders.number;
                // Not all at once.
                let part = (self.number as f64 * 0.618_034).fract();
                *next = Instant::now() + orders.pace.mul_f64(part);
            }
            let left = next.saturating_duration_since(Instant::now());
            if self.number < orders.clients && left.is_zero() {
                return *orders;
            }
            let left = if self.number < orders.clients {
                left
            } else {
                Duration::from_secs(3600)
            };
            let waited = self.shared.changed.wait_timeout(orders, left);
            orders = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn query(&mut self, which: usize) -> Result<()> {
        // xorshift64
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let workload = self.shared.task.workload;
        let drawn = |many: usize| match workload {
            Workload::Mixed => self.random as usize % many,
            Workload::Stable => which % many,
            _ => 0,
        };
        if let Some(asked) = &mut self.asked {
            let which = drawn(self.shared.task.statements.len().max(1));
            if let Some(statement) = self.shared.task.statements.get(which) {
                asked.ask(statement)?;
            }
            return Ok(());
        }
        let data = &self.shared.data;
        match (workload, drawn(OWN)) {
            (Workload::Native, _) => {
                black_box(data.q6());
            }
            (Workload::Selectivity, _) => data.scan(which as u32),
            (_, 0) => data.scan(BELOW),
            (_, 1) => data.scan(ALL),
            (_, 2) => data.group(),
            _ => data.sort(self.random as usize),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(task: Task, orders: &str) -> Vec<String> {
        let mut output = Vec::new();
        serve(task, orders.as_bytes(), &mut output).unwrap();
        let text = String::from_utf8(output).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn task(workload: Workload) -> (tempfile::TempDir, Task) {
        let folder = tempfile::tempdir().unwrap();
        let task = Task {
            workload,
            clients: 2,
            counter: folder.path().join("count"),
            command: Vec::new(),
            statements: Vec::new(),
            rows: 1 << 16,
            made_on: Vec::new(),
            bound: Vec::new(),
        };
        (folder, task)
    }

    #[test]
    fn it_is_ready_and_tells() {
        let (_folder, task) = task(Workload::Mixed);
        let said = run(task, "ask 0 0 0\ntell\n");
        let ready: Ready = serde_json::from_str(&said[0]).unwrap();
        assert!(ready.query_seconds > 0.0);
        let done: Done = serde_json::from_str(&said[1]).unwrap();
        assert_eq!((done.queries, done.median_seconds), (0, None));
    }

    #[test]
    fn what_is_no_order_is_told() {
        let (_folder, task) = task(Workload::Clients);
        for order in [
            "dance",
            "ask",
            "ask 1 1",
            "ask x 1 0",
            "ask 1 -1 0",
            "ask 1 1e300 0",
            "ask 1 1 x",
        ] {
            let failed = serve(task.clone(), order.as_bytes(), &mut Vec::new());
            assert!(failed.is_err(), "{order}");
        }
    }
}
