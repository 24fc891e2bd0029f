//! The command line as typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::units::{parse_bytes, parse_rows};

/// The commit that this program was built from, with `-dirty` where files differed from it; empty where that is not known.
pub const COMMIT: &str = env!("ATOLL_COMMIT");

/// `0.1.0 (5afe76295d01)`, without the commit where it is not known.
const VERSION: &str = match COMMIT.is_empty() {
    true => env!("CARGO_PKG_VERSION"),
    false => concat!(env!("CARGO_PKG_VERSION"), " (", env!("ATOLL_COMMIT"), ")"),
};

/// An analytical database that knows where its memory is.
#[derive(Debug, Parser)]
#[command(name = "atoll", version = VERSION, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build a TPC-H store, run the 22 queries, show where their bytes came from
    Quickstart(Quickstart),
    /// Load files (Parquet, CSV, JSON, TPC-H tbl, Arrow IPC) into a table
    Import(Import),
    /// Run SQL; without a query, open a shell
    Sql(Sql),
    /// Run a program of linear algebra over the tables
    Laq(Laq),
    /// Draw the machine: nodes, caches, cores, distances, free memory
    Topology(Topology),
    /// Look into a store
    Pages(Pages),
    /// Show or change what a store keeps for those who open it
    Set(Set),
    /// Experiments, on an emulated NUMA machine where none is at hand
    Lab(Lab),
    /// Show where memory lies: of a process by mapping and thread, of a store by table and column
    Where(crate::residency::Where),
    /// Follow a process: load, migrations, page faults and memory by node
    Watch(crate::watch::Watch),
    /// Run a command, or hold a process, with its threads on the cpus that a strategy gives them
    Pin(crate::pin::Pin),
    /// Find the placement of a command's threads that is best, in few runs
    Tune(crate::tune::Tune),
    /// Give a database just the cores that it needs, on just the nodes, and say why
    Govern(Box<crate::govern::Govern>),
    /// Show nodes, cores, load, and what governors decide
    Top(crate::top::Top),
    /// Write the manual pages of all commands
    Man(crate::man::Man),
}

/// Where pages and workers lie.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Memory and machine")]
pub struct Layout {
    /// Size of the buffer pool, such as 512MiB [default: a share of the free memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub pool: Option<u64>,
    /// Lay pages and threads out as on this machine: a shipped name, FILE.xml, 4x4, or an hwloc
    /// synthetic description [default: the machine at hand]
    #[arg(long, value_name = "SPEC")]
    pub machine: Option<String>,
    /// Pin the workers and bind the pool's memory to its nodes, or leave both to the system
    #[arg(long, value_enum, default_value_t = Affinity::On)]
    pub affinity: Affinity,
}

/// What a command that works on a store may use.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Memory and machine")]
pub struct Resources {
    /// Compute threads [default: the cpus this process may use]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: Option<u32>,
    /// Most memory for pool and queries together, such as 2GiB [default: three quarters of the free memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub memory_limit: Option<u64>,
    #[command(flatten)]
    pub layout: Layout,
    /// Take workers that a statement does not use out of service, away from its pages first; auto: where there is
    /// more than one node; `explain analyze` tells
    #[arg(long, value_enum, default_value_t = Govern::Auto)]
    pub govern: Govern,
}

/// How queries run; see docs/reference/executors.md. All ways give the same answers.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Execution of queries")]
pub struct Execution {
    /// What runs queries
    #[arg(long, value_enum, default_value_t = Executor::Fused)]
    pub executor: Executor,
    /// Which pieces of a table a thread of Atoll's executors takes [default: what `atoll set` made the store keep, or
    /// shard]
    #[arg(long, value_enum)]
    pub plan: Option<Plan>,
    /// With --executor fused, stream or staged: rows handed on at once, 2Ki to 2Mi [default: 64Ki]
    #[arg(long, value_name = "ROWS", value_parser = parse_rows)]
    pub block: Option<usize>,
    /// With --executor staged: blocks in the ring [default: two for each thread and one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub ring: Option<u16>,
    /// With --executor stream: tasks of each operator, from the source on, the last number for all that follow, such
    /// as 1,2,1; with staged: setup and processing [default: one for each thread, which balances them]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub tasks: Vec<u16>,
    /// With --executor stream: blocks that a channel holds [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub queue: Option<u16>,
    /// With --executor stream: what channels are [default: ring]
    #[arg(long, value_enum)]
    pub channel: Option<Channel>,
    /// With --executor stream or staged: whether blocks are used again [default: on]
    #[arg(long, value_enum)]
    pub reuse: Option<Reuse>,
}

impl Execution {
    /// An option that was given and does nothing with the executor chosen, with the executors that it is for.
    pub fn idle(&self) -> Option<(&'static str, &'static str)> {
        use Executor::{Datafusion, Staged, Stream};
        let (stream, staged) = (self.executor == Stream, self.executor == Staged);
        let options = [
            (
                self.plan.is_some(),
                self.executor != Datafusion,
                "--plan",
                "fused, stream or staged",
            ),
            (
                self.block.is_some(),
                self.executor != Datafusion,
                "--block",
                "fused, stream or staged",
            ),
            (self.ring.is_some(), staged, "--ring", "staged"),
            (
                !self.tasks.is_empty(),
                stream || staged,
                "--tasks",
                "stream or staged",
            ),
            (self.queue.is_some(), stream, "--queue", "stream"),
            (self.channel.is_some(), stream, "--channel", "stream"),
            (
                self.reuse.is_some(),
                stream || staged,
                "--reuse",
                "stream or staged",
            ),
        ];
        let idle = options
            .into_iter()
            .find(|(given, acts, ..)| *given && !acts);
        idle.map(|(_, _, option, executors)| (option, executors))
    }
}

/// Which pieces of a table a thread takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Plan {
    /// The next one, wherever it lies
    Obliv,
    /// Those of its own node first, then those of the nearest that has any
    #[default]
    Shard,
    /// Those of its own node: each node has workers and look-up tables of its own, whose results are merged
    Distr,
}

/// What channels are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Channel {
    /// A ring with a plain lock
    #[default]
    Ring,
    /// A queue without locks
    LockFree,
}

/// Whether blocks are used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Reuse {
    /// Their last consumer gives them back
    #[default]
    On,
    /// Each is made anew
    Off,
}

/// What runs queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Executor {
    /// DataFusion's operators over Atoll's scans
    Datafusion,
    /// Atoll's own algebra, each worker taking rows through a whole pipeline; what it has not got yet, DataFusion
    /// runs
    #[default]
    Fused,
    /// The same algebra, operators as concurrent tasks with blocks of rows going from one to the next
    Stream,
    /// The same algebra, some tasks setting blocks of a ring up and others processing them
    Staged,
}

/// Who places threads and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Affinity {
    /// Atoll
    #[default]
    On,
    /// The operating system
    Off,
}

/// Whether workers are governed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Govern {
    /// On machines with more than one node
    #[default]
    Auto,
    /// Always
    On,
    /// Always, and with fewer workers where these read as much
    Throughput,
    /// Never
    Off,
}

/// What is in memory when a statement begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Cache {
    /// What the statements before have left there
    Warm,
    /// Nothing of the store: its pool is emptied, and its file dropped from the system's cache
    Cold,
    /// Nothing of any file: the system's caches are dropped as well, which needs root
    ColdSystem,
}

/// `atoll quickstart`
#[derive(Args, Debug)]
pub struct Quickstart {
    /// TPC-H scale factor: 1 is about 1 GB of raw data
    #[arg(long, default_value_t = 1.0, value_name = "SCALE", value_parser = parse_scale)]
    pub scale: f64,
    /// The store to build or to reuse [default: tpch-SCALE.atoll]
    #[arg(long, value_name = "PATH")]
    pub store: Option<PathBuf>,
    /// Timed runs of each query, after one that warms up; the median is shown
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    pub resources: Resources,
    #[command(flatten)]
    pub execution: Execution,
    /// One JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

/// What to do while another process writes to the store.
#[derive(Args, Clone, Debug, Default)]
pub struct Waiting {
    /// How long to wait for another process that writes to the store, such as 10s or 5min [default: not at all]
    #[arg(long, value_name = "TIME", value_parser = crate::units::parse_seconds)]
    pub wait: Option<f64>,
}

impl Waiting {
    /// As a duration.
    pub fn time(&self) -> std::time::Duration {
        self.wait.map_or(
            std::time::Duration::ZERO,
            std::time::Duration::from_secs_f64,
        )
    }
}

/// `atoll import`
#[derive(Args, Debug)]
pub struct Import {
    /// The store; created when absent
    pub store: PathBuf,
    /// The table
    pub table: String,
    /// Files, loaded in this order: paths, patterns such as 'data/*.csv.gz', folders of folders key=value, or - for
    /// standard input; compressed with gzip or zstd or not
    #[arg(required = true)]
    pub file: Vec<PathBuf>,
    /// `create table ...` or its list of columns, or a file that holds it [default: inferred]
    #[arg(long, value_name = "DDL|FILE")]
    pub schema: Option<String>,
    /// Columns of the primary key
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    pub primary_key: Vec<String>,
    /// A foreign key, such as "l_orderkey=orders(o_orderkey)"; may be given several times
    #[arg(long, value_name = "COLUMNS=PARENT(COLUMNS)", value_parser = parse_reference)]
    pub foreign_key: Vec<atoll::Reference>,
    /// The files' format
    #[arg(long, value_enum, default_value_t = FileFormat::Auto)]
    pub format: FileFormat,
    /// CSV: what separates two fields, one character, or \t [default: found out]
    #[arg(long, value_name = "CHAR", value_parser = parse_character)]
    pub delimiter: Option<u8>,
    /// CSV: what encloses fields that hold delimiters or line ends; '' for nothing [default: "]
    #[arg(long, value_name = "CHAR", value_parser = parse_quote)]
    pub quote: Option<Quote>,
    /// CSV: within quotes, what follows this character is nothing but itself; a doubled quote always is
    #[arg(long, value_name = "CHAR", value_parser = parse_character)]
    pub escape: Option<u8>,
    /// CSV: whether files start with a line of column names
    #[arg(long, value_enum, default_value_t = Header::Auto)]
    pub header: Header,
    /// CSV: a text that stands for NULL; may be given several times [default: an empty field]
    #[arg(long, value_name = "TEXT")]
    pub null: Vec<String>,
    /// How the files are compressed
    #[arg(long, value_enum, default_value_t = Compression::Auto)]
    pub compression: Compression,
    /// Whether folders key=value on the way to the files are columns
    #[arg(long, value_enum, default_value_t = Hive::Auto)]
    pub hive: Hive,
    /// Add the rows to the table if it exists
    #[arg(long, conflicts_with = "replace")]
    pub append: bool,
    /// Put the rows in the place of the table if it exists
    #[arg(long)]
    pub replace: bool,
    #[command(flatten)]
    pub resources: Resources,
    #[command(flatten)]
    pub waiting: Waiting,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

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
    pub results: Results,
}

/// How statements run, and what becomes of their results.
#[derive(Args, Debug)]
pub struct Results {
    /// How results are written [default: by the extension of --output, else table]
    #[arg(long, value_enum, conflicts_with = "json")]
    pub format: Option<Format>,
    /// Write results to a file, which appears when all of them are in it; .csv, .json, .arrow and .parquet tell the
    /// format
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Show how long each statement took and what it read, on standard error
    #[arg(long)]
    pub timing: bool,
    /// What is in memory when a statement begins
    #[arg(long, value_enum, default_value_t = Cache::Warm)]
    pub cache: Cache,
    /// One JSON object per statement, on a line of its own
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub resources: Resources,
    #[command(flatten)]
    pub execution: Execution,
}

/// `atoll laq`
#[derive(Args, Debug)]
pub struct Laq {
    /// The store, which is opened for reading: programs cannot write
    pub store: PathBuf,
    /// The program [default: from standard input]
    pub program: Option<String>,
    /// Read the program from a file
    #[arg(short, long, value_name = "FILE", conflicts_with = "program")]
    pub file: Option<PathBuf>,
    /// Show the program instead of running it: its matrices with their shapes, its operators, its pipelines
    #[arg(long)]
    pub explain: bool,
    /// Run the program and show, after what --explain does, how it went instead of its rows
    #[arg(long, conflicts_with = "explain")]
    pub analyze: bool,
    /// Taken for the sake of scripts that run `atoll sql` too
    #[arg(long, hide = true)]
    pub read_only: bool,
    #[command(flatten)]
    pub results: Results,
}

/// `atoll topology`
#[derive(Args, Debug)]
pub struct Topology {
    /// A shipped machine, FILE.xml, 4x4, or an hwloc synthetic description [default: this machine]
    #[arg(long, value_name = "SPEC", default_value = "live")]
    pub machine: String,
    /// One JSON object instead of a drawing
    #[arg(long)]
    pub json: bool,
}

/// `atoll pages`
#[derive(Args, Debug)]
pub struct Pages {
    /// The store
    pub store: PathBuf,
    /// What to look at
    #[arg(value_enum)]
    pub what: Look,
    #[command(flatten)]
    pub layout: Layout,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// `atoll set`
#[derive(Args, Debug)]
pub struct Set {
    /// The store
    pub store: PathBuf,
    /// Settings to change: plan=obliv, plan=shard, plan=distr; plan= for none. Without, they are shown
    #[arg(value_name = "NAME=VALUE")]
    pub settings: Vec<String>,
    #[command(flatten)]
    pub waiting: Waiting,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// `atoll lab`
#[derive(Args, Debug)]
pub struct Lab {
    /// What to do
    #[command(subcommand)]
    pub what: LabWhat,
}

/// The commands of `atoll lab`.
#[derive(Debug, Subcommand)]
pub enum LabWhat {
    /// Run a command on an emulated NUMA machine
    Machine(emulator::Arguments),
    /// Run an experiment: a table, an HTML report, the raw numbers as JSON
    #[command(flatten)]
    Experiment(lab::experiment::Experiment),
}

/// What `atoll pages` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Look {
    /// Pages by kind and encoding, sizes, pool, nodes, log
    Stat,
    /// Read and verify every page
    Check,
    /// What lies where in the file, in its order: pages with their tables and columns, or, of a store of raw pages, the
    /// ranges that are allocated
    Dump,
    /// Give up commits at the damaged end of the log, which is copied first; then check
    Repair,
}

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns
    Table,
    /// Comma-separated values with a header
    Csv,
    /// An array of objects
    Json,
    /// Arrow IPC: a stream; to a file, the file format unless its extension is .arrows
    Arrow,
    /// A Parquet file
    Parquet,
}

/// The format of files to import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileFormat {
    /// By the file's name, else by its first bytes
    Auto,
    /// Apache Parquet
    Parquet,
    /// Text with a delimiter
    Csv,
    /// TPC-H tbl
    Tbl,
    /// JSON: objects, one after the other or in one array
    Json,
    /// Arrow IPC file or stream
    Arrow,
}

/// What encloses fields of CSV files, if anything does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote(pub Option<u8>);

/// How files to import are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compression {
    /// By the file's first bytes
    Auto,
    /// Not at all
    None,
    /// gzip
    Gzip,
    /// Zstandard
    Zstd,
}

/// Whether folders are columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Hive {
    /// If all files of a pattern or folder lie in folders of the same keys
    Auto,
    /// They are
    Yes,
    /// They are not
    No,
}

/// Whether there is a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Header {
    /// There is one
    Yes,
    /// There is none
    No,
    /// If the first line looks like one
    Auto,
}

fn parse_scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if (0.001..=100_000.0).contains(&scale) => Ok(scale),
        _ => Err("take a number from 0.001 to 100000".to_owned()),
    }
}

fn parse_character(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" | b"tab" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0) => Ok(*byte),
        _ => Err("take one ASCII character, or \\t".to_owned()),
    }
}

fn parse_quote(text: &str) -> Result<Quote, String> {
    match text {
        "" => Ok(Quote(None)),
        text => parse_character(text).map(|byte| Quote(Some(byte))),
    }
}

/// `a,b=parent(x,y)`
fn parse_reference(text: &str) -> Result<atoll::Reference, String> {
    let wrong = || "write it as column[,column]=parent(column[,column])".to_owned();
    let names = |list: &str| -> Result<Vec<String>, String> {
        let names: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
        if names.iter().any(String::is_empty) {
            Err(wrong())
        } else {
            Ok(names)
        }
    };
    let (columns, parent) = text.split_once('=').ok_or_else(wrong)?;
    let (parent, of) = parent.split_once('(').ok_or_else(wrong)?;
    let of = of.trim_end().strip_suffix(')').ok_or_else(wrong)?;
    if parent.trim().is_empty() {
        return Err(wrong());
    }
    Ok(atoll::Reference {
        columns: names(columns)?,
        parent: parent.trim().to_owned(),
        parent_columns: names(of)?,
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_of_the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn references_are_read() {
        let read = parse_reference("l_partkey, l_suppkey=partsupp(ps_partkey,ps_suppkey)").unwrap();
        assert_eq!(read.columns, ["l_partkey", "l_suppkey"]);
        assert_eq!(
            (read.parent.as_str(), read.parent_columns.len()),
            ("partsupp", 2)
        );
        for wrong in ["", "a", "a=b", "a=b(", "=b(c)", "a=(c)", "a,=b(c)"] {
            assert!(parse_reference(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn delimiters_are_read() {
        assert_eq!(parse_character("\\t"), Ok(b'\t'));
        assert_eq!(parse_character("|"), Ok(b'|'));
        assert!(parse_character("||").is_err() && parse_character("\u{e4}").is_err());
        assert_eq!(
            (parse_quote(""), parse_quote("'")),
            (Ok(Quote(None)), Ok(Quote(Some(b'\''))))
        );
    }
}
