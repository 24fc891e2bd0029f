//! The options of `atoll lab machine`, which the program `emulator` has as well.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::{Args, ValueEnum};
use topology::Machine;

use crate::count::Counting;
use crate::error::{Error, Result};
use crate::launch::{Ended, Launch, Outcome};
use crate::shape::{DEFAULT_MEMORY_MIB, Shape};

/// Run a command on an emulated NUMA machine
///
/// The command sees this system's files; what it writes is lost with the machine, but for what it
/// writes below --share. The exit status is the command's; 124 if the time limit ended it.
#[derive(Args, Debug, Clone)]
pub struct Arguments {
    /// Number of memory nodes that have cores
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4,
        conflicts_with = "machine"
    )]
    pub nodes: usize,
    /// Cores of each node
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4,
        conflicts_with = "machine"
    )]
    pub cores: usize,
    /// Hardware threads of each core
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        conflicts_with = "machine"
    )]
    pub smt: usize,
    /// A shipped machine, FILE.xml, 4x4, or an hwloc synthetic description
    #[arg(long, value_name = "SPEC")]
    pub machine: Option<String>,
    /// Additional nodes without cores
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub memory_only: usize,
    /// Memory of each node in MiB
    #[arg(long, value_name = "MIB", default_value_t = DEFAULT_MEMORY_MIB)]
    pub mem: u64,
    /// Count lines read from memory, by node of the core and node of the page: of the whole
    /// command, or of the regions that it marks
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true,
          default_missing_value = "command")]
    pub count: Option<What>,
    /// Divide the capacity of the caches that --count models
    #[arg(long, value_name = "N", default_value_t = 1, requires = "count",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub cache_scale: u64,
    /// Capacities of the modelled caches in bytes: first, second and last level
    #[arg(
        long,
        value_name = "L1,L2,LLC",
        value_parser = capacities,
        requires = "count",
        conflicts_with = "cache_scale"
    )]
    pub cache_bytes: Option<[u64; 3]>,
    /// End the machine after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 900,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: u64,
    /// A directory that the command may write to, under its own path
    #[arg(long, value_name = "DIR")]
    pub share: Option<PathBuf>,
    /// Let the kernel move pages to where they are used (AutoNUMA)
    #[arg(long)]
    pub balancing: bool,
    /// Execute each processor on a thread of its own: real races, but slower on few cores
    #[arg(long)]
    pub races: bool,
    /// Never use this system's processors to execute the machine's, even where they could
    #[arg(long)]
    pub no_kvm: bool,
    /// One JSON object on standard output; what the command prints goes to standard error
    #[arg(long)]
    pub json: bool,
    /// The command and its words
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// What `--count` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// The whole command
    Command,
    /// The regions that it marks (emulator::roi, atoll_roi.h, atoll-roi)
    Marks,
}

/// Three numbers, separated by commas.
fn capacities(text: &str) -> std::result::Result<[u64; 3], String> {
    let numbers: std::result::Result<Vec<u64>, _> = text.split(',').map(str::parse).collect();
    let numbers = numbers.ok().and_then(|numbers| numbers.try_into().ok());
    numbers.ok_or_else(|| "give three numbers, such as 32768,262144,8388608".to_owned())
}

impl Arguments {
    /// The machine that the options describe.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`], with the options to change.
    pub fn shape(&self) -> Result<Shape> {
        let grid = match self.smt {
            1 => format!("{}x{}", self.nodes, self.cores),
            threads => format!("node:{} core:{} pu:{threads}", self.nodes, self.cores),
        };
        let spec = self.machine.as_deref().unwrap_or(&grid);
        let machine = Machine::parse(spec)?;
        let mut shape = Shape::of(&machine, self.mem, self.memory_only)?;
        if let Some(bytes) = self.cache_bytes {
            shape = shape.with_cache_bytes(bytes);
        }
        Ok(shape.with_caches_scaled_down(self.cache_scale))
    }

    /// The launch that the options describe.
    ///
    /// # Errors
    ///
    /// Those of [`shape`](Arguments::shape).
    pub fn launch(&self) -> Result<Launch> {
        let mut launch = Launch::new(self.shape()?, &self.command);
        launch.share = self.share.clone();
        launch.counting = self.count.map(|what| match what {
            What::Command => Counting::Command,
            What::Marks => Counting::Marks,
        });
        launch.limit = Duration::from_secs(self.limit);
        launch.balancing = self.balancing;
        launch.races = self.races;
        launch.hardware = !self.no_kvm;
        Ok(launch)
    }

    /// Runs the command, and writes what it printed and how it went: to `out` and `err`. Returns
    /// the exit status.
    ///
    /// # Errors
    ///
    /// Those of [`Launch::run`].
    pub fn run(&self, out: &mut dyn Write, err: &mut dyn Write, stop: &AtomicBool) -> Result<i32> {
        let launch = self.launch()?;
        let outcome = if self.json {
            let mut both = std::io::stderr();
            launch.run(err, &mut both, stop)?
        } else {
            launch.run(out, err, stop)?
        };
        let failed = |source| Error::Output { source };
        if self.json {
            let json = serde_json::to_string(&outcome).map_err(|error| failed(error.into()))?;
            writeln!(out, "{json}").map_err(failed)?;
        } else {
            summary(&outcome, self, err).map_err(failed)?;
        }
        out.flush().map_err(failed)?;
        Ok(outcome.exit)
    }
}

/// A few lines for people.
fn summary(outcome: &Outcome, arguments: &Arguments, err: &mut dyn Write) -> std::io::Result<()> {
    match outcome.ended {
        Ended::Itself => {}
        Ended::Limit => writeln!(
            err,
            "atoll lab: ended by the limit of {} s (--limit)",
            arguments.limit
        )?,
        Ended::Interrupted => writeln!(err, "atoll lab: interrupted")?,
    }
    let Some(count) = &outcome.count else {
        return Ok(());
    };
    writeln!(
        err,
        "atoll lab: lines of 64 bytes read from memory (emulated)"
    )?;
    write!(err, "{:>12}", "")?;
    for node in 0..outcome.nodes {
        write!(err, "{:>14}", format!("page on {node}"))?;
    }
    writeln!(err)?;
    for (node, row) in count.total.dram.iter().enumerate() {
        write!(err, "{:>12}", format!("core on {node}"))?;
        for lines in row {
            write!(err, "{lines:>14}")?;
        }
        writeln!(err)?;
    }
    if count.regions.is_empty() {
        writeln!(
            err,
            "atoll lab: the command marked no region: nothing was counted"
        )?;
    }
    let percent =
        |ratio: Option<f64>| ratio.map_or("-".to_owned(), |r| format!("{:.2} %", r * 100.0));
    writeln!(
        err,
        "atoll lab: {} remote, last-level miss ratio {}",
        percent(count.remote_share),
        percent(count.llc_miss_ratio)
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn parse(line: &str) -> std::result::Result<Arguments, clap::Error> {
        let words = std::iter::once("machine").chain(line.split(' '));
        Line::try_parse_from(words).map(|line| line.arguments)
    }

    #[test]
    fn options_make_a_machine_and_a_launch() {
        let arguments =
            parse("--nodes 2 --cores 3 --smt 2 --mem 128 --memory-only 1 --count -- a -b");
        let arguments = arguments.unwrap();
        let shape = arguments.shape().unwrap();
        assert_eq!(
            (shape.nodes().len(), shape.cores(), shape.cpus()),
            (3, 6, 12)
        );
        let launch = arguments.launch().unwrap();
        assert_eq!(launch.command, ["a", "-b"]);
        assert_eq!(launch.counting, Some(Counting::Command));
        let sizes = parse("--mem 128 --count=marks --cache-bytes 4096,8192,16384 -- a").unwrap();
        assert_eq!(sizes.launch().unwrap().counting, Some(Counting::Marks));
        assert_eq!(sizes.shape().unwrap().caches()[2].bytes, 16384);
        let shipped = parse("--machine xeon-2630 --mem 128 --count --cache-scale 3 -- a").unwrap();
        assert_eq!(shipped.shape().unwrap().caches()[2].bytes, 5 << 20);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "--nodes 4",
            "--nodes 4 --machine 2x2 -- a",
            "--count=never -- a",
            "--cache-scale 2 -- a",
            "--count --cache-scale 0 -- a",
            "--count --cache-bytes 1,2 -- a",
            "--limit 0 -- a",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
        for line in [
            "--machine opteron -- a",
            "--nodes 1000 -- a",
            "--nodes 0 -- a",
        ] {
            assert!(parse(line).unwrap().launch().is_err(), "{line}");
        }
    }
}
