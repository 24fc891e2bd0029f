//! `atoll sql`: statements from the command line, a file or standard input, or a shell; on a store, or without one.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use atoll::Access;
use clap::Args;

use crate::failure::Failure;
use crate::options::results::ResultOptions;
use crate::options::waiting::Waiting;
use crate::shell;
use crate::shell::incoming::Incoming;
use crate::shell::input::{Input, Item};
use crate::statement::runner::Runner;
use crate::store::current::CurrentStore;
use crate::store::temporary::Temporary;
use crate::store::{database, files};
use crate::text;
use atoll::script;

/// `atoll sql`
#[derive(Args, Debug)]
pub struct Sql {
    /// The store. One that is not there is made with --create, or where the first statement is a `create table`. Without a
    /// store, or with `:memory:`, statements run in one that is gone when the command ends
    pub store: Option<PathBuf>,
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
    #[arg(long, conflicts_with = "read_only", requires = "store")]
    pub create: bool,
    /// Open the store for reading: several processes may do so at once
    #[arg(long, requires = "store")]
    pub read_only: bool,
    /// Most rows of a result that the shell shows; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub rows: usize,
    #[command(flatten)]
    pub waiting: Waiting,
    #[command(flatten)]
    pub results: ResultOptions,
}

/// Where statements run.
enum Place {
    /// In a store at this path.
    Store(PathBuf),
    /// In one that goes when the command ends.
    Temporary(Temporary),
}

impl Place {
    fn path(&self) -> PathBuf {
        match self {
            Place::Store(path) => path.clone(),
            Place::Temporary(temporary) => temporary.store(),
        }
    }

    fn is_temporary(&self) -> bool {
        matches!(self, Place::Temporary(_))
    }
}

/// Runs the command.
pub fn run(args: &Sql) -> Result<(), Failure> {
    let (store, text) = meant(args)?;
    let given = given(args, text)?;
    let place = match store {
        Some(path) => Place::Store(path),
        None => Place::Temporary(Temporary::new()?),
    };
    let terminal = std::io::stdin().is_terminal();
    let interactive =
        given.is_none() && terminal && std::io::stdout().is_terminal() && !args.results.json;
    let mut incoming = Incoming::default();
    let path = place.path();
    let absent = files::absent(&path);
    // A store that is there is opened before anything is read.
    let first = match &given {
        Some(items) => items.first(),
        None if interactive || !absent || place.is_temporary() => None,
        None => incoming.first()?,
    };
    let creates =
        |item: &Item| matches!(item, Item::Statement(one) if script::creates_table(&one.text));
    let makes = absent && first.is_some_and(creates);
    // What a command runs is not known yet.
    let only_reads =
        |item: &Item| matches!(item, Item::Statement(one) if script::only_reads(&one.text));
    let reads = given.as_ref().is_some_and(|all| all.iter().all(only_reads));
    let (opened, made) = open(args, &place, absent, reads, makes)?;
    let mut runner = Runner::new(opened, &args.results)?;
    runner.temporary = place.is_temporary();
    runner.origin = args.file.as_ref().map(|path| path.display().to_string());
    runner.showing = match (args.explain, args.analyze) {
        (true, _) => Some("explain"),
        (_, true) => Some("explain analyze"),
        _ => None,
    };
    let ran = match &given {
        Some(items) => shell::given(&mut runner, items),
        None if interactive => {
            runner.sink.style.most = Some(args.rows).filter(|rows| *rows > 0);
            shell::run(&mut runner)
        }
        None => shell::piped(&mut runner, incoming),
    };
    let ran = ran.and_then(|()| runner.finish());
    // A store that came into being for a table that did not holds nothing.
    let empty = made && runner.tables().is_ok_and(|tables| tables.is_empty());
    let closed = runner.close();
    if empty {
        files::remove(&path);
    }
    ran.and(closed)
}

/// The store and the statements on the command line, whose one argument may be either: what is no file and reads as a
/// statement is one.
fn meant(args: &Sql) -> anyhow::Result<(Option<PathBuf>, Option<&str>)> {
    let Some(first) = &args.store else {
        return Ok((None, None));
    };
    let second = args.query.as_deref();
    if first.as_os_str() == ":memory:" {
        return Ok((None, second));
    }
    let statement = first.to_str().filter(|text| is_statement(text));
    match (statement, second) {
        _ if !files::absent(first) => {}
        (Some(text), None) if args.file.is_none() && !args.create && !args.read_only => {
            return Ok((None, Some(text)));
        }
        (Some(text), Some(_)) => bail!(
            "{text:?} is no store: with two arguments the first is the store; put statements into one argument, with ; between them"
        ),
        _ => {}
    }
    Ok((Some(first.clone()), second))
}

/// Whether an argument reads as a statement, and not as the name of a store: several words, or a sign that names of files
/// seldom have.
fn is_statement(text: &str) -> bool {
    let text = text.trim();
    let begins = text.starts_with(|c: char| c.is_alphabetic() || c == '(')
        || text.starts_with("--")
        || text.starts_with("/*");
    let several = text.contains(|c: char| c.is_whitespace() || matches!(c, ';' | '('));
    begins && several && !text.ends_with(".atoll")
}

/// The statements and commands on the command line or in the file; none where they come from standard input.
fn given(args: &Sql, text: Option<&str>) -> anyhow::Result<Option<Vec<Item>>> {
    match (text, &args.file) {
        (Some(text), _) => Ok(Some(Input::all(text))),
        (None, Some(path)) => Ok(Some(Input::all(&text::of(path)?))),
        (None, None) => Ok(None),
    }
}

/// Opens the store; also returns whether it was made for a first statement that creates a table. A store that is there
/// is opened for writing only while a statement changes it: an open shell keeps no other process from writing.
fn open(
    args: &Sql,
    place: &Place,
    absent: bool,
    reads: bool,
    makes: bool,
) -> Result<(CurrentStore, bool), Failure> {
    let temporary = place.is_temporary();
    let read_only = !temporary && (args.read_only || (reads && !absent));
    let mut options = args.results.store(read_only)?;
    if !read_only && !temporary {
        options.access = Access::OnDemand;
    }
    let path = place.path();
    let opened =
        |database| CurrentStore::new(database, path.clone(), options.clone(), args.waiting.time());
    if temporary {
        return Ok((opened(database::open_or_create(&path, &options)?), false));
    }
    if !absent || args.read_only {
        if let Some(other) = other_file(&path) {
            return Err(other.into());
        }
        let database = database::open(&path, &options)?;
        files::tell_dropped(&database.recovery().dropped);
        return Ok((opened(database), false));
    }
    if !args.create && !makes {
        let missing = files::missing(&path);
        return Err(anyhow!("{missing} (--create makes a new one)").into());
    }
    let database = database::open_or_create(&path, &options)?;
    if std::io::stderr().is_terminal() {
        eprintln!("atoll: {} is a new store", path.display());
    }
    Ok((opened(database), !args.create))
}

/// The error for a file of another format in the place of a store.
fn other_file(path: &Path) -> Option<anyhow::Error> {
    let end = path.extension()?.to_str()?.to_lowercase();
    let read = [
        "csv", "tsv", "json", "jsonl", "ndjson", "parquet", "arrow", "arrows", "gz", "zst",
    ];
    let other = read.contains(&end.as_str()) && path.is_file() && !store::is_store(path);
    other.then(|| {
        let name = path.display();
        anyhow!(
            "{name} is a file of rows and no store; query it with: atoll sql \"select * from '{name}'\""
        )
    })
}

#[cfg(test)]
mod tests {
    use super::is_statement;

    #[test]
    fn statements_are_told_from_stores() {
        for text in [
            "select 1",
            " SELECT 1",
            "(select 1)",
            "values(1)",
            "show tables",
            "from 'x.csv'",
            "select * from 'a.atoll'",
            "-- all\nselect 1",
            "/* all */ select 1",
            "checkpoint;",
        ] {
            assert!(is_statement(text), "{text}");
        }
        for text in [
            "s.atoll",
            "s.atol",
            "my store.atoll",
            "./my store.db",
            "/tmp/a b",
            "reef",
            "",
        ] {
            assert!(!is_statement(text), "{text}");
        }
    }
}
