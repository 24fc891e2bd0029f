//! `atoll sql`: statements from the command line, a file or standard input, or a shell.

use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::anyhow;
use atoll::Access;
use clap::Args;

use crate::failure::Failure;
use crate::options::execution;
use crate::options::results::ResultOptions;
use crate::options::waiting::Waiting;
use crate::shell;
use crate::statement::incoming::Incoming;
use crate::statement::runner::Runner;
use crate::store::current::CurrentStore;
use crate::store::{database, files};
use crate::text;
use atoll::script::{self, Statement};

/// `atoll sql`
#[derive(Args, Debug)]
pub struct Sql {
    /// The store. One that is not there is made with --create, or where the first statement is a `create table`
    pub store: PathBuf,
    /// Statements, separated by semicolons [default: a shell, or statements from standard input]
    pub query: Option<String>,
    /// Read the statements from a file
    #[arg(short, long, value_name = "FILE", conflicts_with = "query")]
    pub file: Option<PathBuf>,
    /// Show how statements run instead of running them, as `explain` does: matrices, operators, pipelines, what runs where
    #[arg(long)]
    pub explain: bool,
    /// Run the statements and show how it went instead of their rows, as `explain analyze` does
    #[arg(long, conflicts_with = "explain")]
    pub analyze: bool,
    /// Make the store if it is not there
    #[arg(long, conflicts_with = "read_only")]
    pub create: bool,
    /// Open the store for reading: several processes may do so at once
    #[arg(long)]
    pub read_only: bool,
    /// Most rows of a result that the shell shows; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub rows: usize,
    #[command(flatten)]
    pub waiting: Waiting,
    #[command(flatten)]
    pub results: ResultOptions,
}

/// Runs the command.
pub fn run(args: &Sql) -> Result<(), Failure> {
    let given = given(args)?;
    let terminal = std::io::stdin().is_terminal();
    let interactive =
        given.is_none() && terminal && std::io::stdout().is_terminal() && !args.results.json;
    let mut incoming = Incoming::default();
    let absent = files::absent(&args.store);
    // A store that is there is opened before anything is read.
    let first = match &given {
        Some(statements) => statements.first(),
        None if interactive || !absent => None,
        None => incoming.first()?,
    };
    let makes = absent && first.is_some_and(|first| script::creates_table(&first.text));
    let reads = given
        .as_ref()
        .is_some_and(|all| all.iter().all(|one| script::only_reads(&one.text)));
    let (opened, made) = open(args, absent, reads, makes)?;
    let mut runner = Runner::new(opened, &args.results)?;
    runner.origin = args.file.as_ref().map(|path| path.display().to_string());
    runner.showing = match (args.explain, args.analyze) {
        (true, _) => Some("explain"),
        (_, true) => Some("explain analyze"),
        _ => None,
    };
    let ran = match &given {
        Some(statements) => runner.all(statements),
        None if interactive => {
            runner.sink.style.most = Some(args.rows).filter(|rows| *rows > 0);
            shell::run(&mut runner)
        }
        None => runner.standard_input(incoming),
    };
    let ran = ran.and_then(|()| runner.finish());
    // A store that came into being for a table that did not holds nothing.
    let empty = made && runner.tables().is_ok_and(|tables| tables.is_empty());
    let closed = runner.close();
    if empty {
        files::remove(&args.store);
    }
    ran.and(closed)
}

/// The statements on the command line or in the file; none where they come from standard input.
fn given(args: &Sql) -> anyhow::Result<Option<Vec<Statement>>> {
    match (&args.query, &args.file) {
        (Some(text), _) => Ok(Some(script::split(text))),
        (None, Some(path)) => Ok(Some(script::split(&text::of(path)?))),
        (None, None) => Ok(None),
    }
}

/// Opens the store; also returns whether it was made for a first statement that creates a table. A store that is there
/// is opened for writing only while a statement changes it: an open shell keeps no other process from writing.
fn open(
    args: &Sql,
    absent: bool,
    reads: bool,
    makes: bool,
) -> Result<(CurrentStore, bool), Failure> {
    let (resources, execution) = (&args.results.resources, &args.results.execution);
    let read_only = args.read_only || (reads && !absent);
    let mut options = execution::options(resources, execution, read_only)?;
    if !read_only {
        options.access = Access::OnDemand;
    }
    let opened = |database| {
        CurrentStore::new(
            database,
            args.store.clone(),
            options.clone(),
            args.waiting.time(),
        )
    };
    if !absent || args.read_only {
        let database = database::open(&args.store, &options)?;
        files::tell_dropped(&database.recovery().dropped);
        return Ok((opened(database), false));
    }
    if !args.create && !makes {
        let missing = files::missing(&args.store);
        return Err(anyhow!("{missing} (--create makes a new one)").into());
    }
    let database = database::open_or_create(&args.store, &options)?;
    if std::io::stderr().is_terminal() {
        eprintln!("atoll: {} is a new store", args.store.display());
    }
    Ok((opened(database), !args.create))
}
