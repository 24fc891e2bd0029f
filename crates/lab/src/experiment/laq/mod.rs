//! Queries in LAQ by block size, threads and executor, with reuse of blocks and without, each operator under the
//! machine's rooflines (L9, L10).
//!
//! The engine runs in this process: hot runs of a few milliseconds take turns with each other and with bare loops.
//! Only peak memory is measured in separate processes.

mod bare;
pub(super) mod bench;
mod figures;
pub(super) mod given;
pub(super) mod host;
mod measure;
mod page;
mod parts;
mod scope;
mod time_line;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum};
use report::Table;

use self::bench::Bench;
use self::figures::Figures;
use self::given::{Blocks, Queries, Threads};
use self::measure::{Measured, measure};
use self::scope::Scope;
pub use self::time_line::page as time_line;
use crate::desk::Desk;
use crate::error::{Error, Result};

/// The longest time until a running query notices Ctrl-C.
const LOOK: Duration = Duration::from_millis(20);

/// `laq`
#[derive(Args, Clone, Debug)]
pub struct Laq {
    /// The store, which is opened for reading
    pub store: PathBuf,
    /// Queries: numbers of TPC-H, 1..22 for all, or files in LAQ
    #[arg(long, value_name = "N|FILE,...", default_value = "6", value_parser = given::queries)]
    pub query: Queries,
    /// Rows of execution blocks, from 1Ki to 2Mi: 32Ki..2Mi (each twice the one before), or 2Ki,64Ki
    #[arg(long, value_name = "ROWS..ROWS", default_value = "32Ki..2Mi", value_parser = given::blocks)]
    pub blocks: Blocks,
    /// Numbers of threads: 1..4, or 1,2,8; N stands for all cpus. Of more than eight, the powers of two
    #[arg(long, value_name = "N..N", default_value = "1..N", value_parser = given::threads)]
    pub threads: Threads,
    /// What runs the queries
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "fused,stream,staged"
    )]
    pub executors: Vec<Executor>,
    /// Rounds, in each of which every configuration has its turn; medians are shown
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(5..=1000))]
    pub repeat: u16,
    /// Write lab-laq.html and lab-laq.json to this folder, which is made [default: the present one]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Lay pages and threads out as on this machine: what is counted by node is then of its nodes
    #[arg(long, value_name = "SPEC")]
    pub machine: Option<String>,
    /// Size of the buffer pool in MiB [default: a quarter of the free memory]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pub pool: Option<u64>,
    /// Memory that the bare loop reads, in MiB [default: four times the last caches, 64 to 512]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub bare: Option<u32>,
    /// One JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

/// What runs a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Executor {
    /// Each worker takes rows through the whole pipeline
    Fused,
    /// Operators are concurrent tasks with blocks going from one to the next
    Stream,
    /// Some tasks set blocks of a ring up, others process them
    Staged,
}

impl Laq {
    pub(super) fn run(&self, desk: &mut Desk<'_>) -> Result<()> {
        let texts = self.query.read()?;
        let folder = self.folder()?;
        let machine = self.machine.as_deref();
        let mut threads = Vec::new();
        let bench = Bench::open(
            &self.store,
            machine,
            self.pool.map(|mib| mib << 20),
            true,
            |cpus| {
                threads = self.threads.on(cpus)?;
                // Operators are measured on one thread, whatever else is asked for.
                let mut all = threads.clone();
                all.push(1);
                Ok(all)
            },
        )?;
        let scope = Scope {
            executors: self.executors(),
            blocks: self.blocks.0.clone(),
            threads,
            repeat: usize::from(self.repeat),
            field: self.bare.map(|mib| (mib as usize) << 20),
        };
        let mut subjects = Vec::with_capacity(texts.len());
        for (name, text) in &texts {
            subjects.push(bench.plan(name.clone(), text)?);
        }
        let programs: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
        let measured = watching(desk.stop, &bench.stop, || {
            let done = measure(&bench, &subjects, &scope, desk);
            if matches!(done, Err(Error::Interrupted)) {
                desk.progress(
                    "ended before the first round was whole: there is nothing to report yet",
                );
            }
            let mut measured = done?;
            if !measured.ended {
                match measured.lines(&bench, &subjects, &scope) {
                    // What was measured before is told.
                    Err(Error::Interrupted) => measured.ended = true,
                    done => done?,
                }
            }
            if !measured.ended {
                measured.processes(&scope, &self.store, &programs, desk);
            }
            Ok::<Measured, Error>(measured)
        })?;
        let figures = subjects.iter().enumerate();
        let figures: Vec<Figures> = figures
            .map(|(at, subject)| Figures::new(at, &subject.name, &scope, &measured))
            .collect();
        let page = page::Page {
            store: &self.store,
            bench: &bench,
            scope: &scope,
            measured: &measured,
            figures: &figures,
        };
        let (report, tables) = page.report(&desk.command);
        let tables: Vec<&Table> = tables.iter().collect();
        desk.finish(&folder.join("lab-laq.html"), self.json, report, &tables)?;
        if measured.ended {
            desk.progress(&format!(
                "ended early: what was measured until then, {} whole rounds of {}, is in the report",
                measured.rounds, scope.repeat
            ));
            return Err(Error::Interrupted);
        }
        Ok(())
    }

    /// The executors that were asked for, each once.
    fn executors(&self) -> Vec<engine::Executor> {
        let mut all = Vec::new();
        for executor in &self.executors {
            let own = match executor {
                Executor::Fused => engine::Executor::Fused,
                Executor::Stream => engine::Executor::Stream,
                Executor::Staged => engine::Executor::Staged,
            };
            if !all.contains(&own) {
                all.push(own);
            }
        }
        all
    }

    /// The folder of the report, made before the minutes of running and not after them.
    fn folder(&self) -> Result<PathBuf> {
        let folder = self.out.clone().unwrap_or_else(|| PathBuf::from("."));
        std::fs::create_dir_all(&folder).map_err(|source| Error::Write {
            path: folder.clone(),
            source,
        })?;
        Ok(folder)
    }
}

/// Does `work`, and raises `end` soon after `asked` becomes true.
fn watching<T>(asked: &AtomicBool, end: &engine::Stop, work: impl FnOnce() -> T) -> T {
    /// Ends the watching even if the work panics.
    struct Done<'a>(&'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                if asked.load(Ordering::Relaxed) {
                    end.stop();
                    return;
                }
                std::thread::sleep(LOOK);
            }
        });
        let _done = Done(&over);
        work()
    })
}
