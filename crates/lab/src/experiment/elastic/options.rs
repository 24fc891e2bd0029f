//! What `elastic` is told.

use std::path::PathBuf;

use clap::Args;
use governor::{Mode, Sensor};

use super::plan::Workload;

/// `elastic`
#[derive(Args, Clone, Debug)]
pub struct Elastic {
    /// What is run: clients, mixed, step, lock, selectivity, stable, native
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        value_enum,
        default_value = "clients,mixed,step,lock"
    )]
    pub workload: Vec<Workload>,
    /// Numbers of clients that ask without a pause, a phase for each, such as 1,16,256: of clients, selectivity, stable and native
    /// [default: of clients those that become more and fewer, of the others two for each cpu]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub clients: Vec<u16>,
    /// Which core is next: dense, sparse, adaptive
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "dense,sparse,adaptive"
    )]
    pub mode: Vec<Mode>,
    /// What decides: load, throughput; the workload lock has throughput
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "load", value_parser = sensor)]
    pub sensor: Vec<Sensor>,
    /// A client of a database that reads statements, such as 'psql -X -q -A -t -d tpch'; one is
    /// started for each client [default: queries of our own]
    #[arg(long, value_name = "COMMAND", requires = "statement")]
    pub client: Option<String>,
    /// What it is asked; several for the workloads mixed and stable
    #[arg(long, value_name = "SQL", requires = "client")]
    pub statement: Vec<String>,
    /// The database's server, where the clients are not the database themselves
    #[arg(long, value_name = "N", requires = "client")]
    pub pid: Option<u32>,
    /// Time between two decisions
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(10..=10_000))]
    pub period: u64,
    /// Length of a phase in seconds; some are twice as long [default: 2, with --quick 0.7]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub phase: Option<f64>,
    /// Runs of each variant, in turn; the median is shown [default: 3, with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub runs: Option<u64>,
    /// Shorter, and once: says whether it works, not how much
    #[arg(long)]
    pub quick: bool,
    /// Write the report to this file; the raw numbers go beside it, ending in .json
    #[arg(long, value_name = "FILE.html", default_value = "lab-elastic.html")]
    pub report: PathBuf,
    /// One JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

fn sensor(name: &str) -> std::result::Result<Sensor, String> {
    match name.parse() {
        Ok(Sensor::Traffic) => {
            Err("what is run here does not count its traffic; take load or throughput".to_owned())
        }
        Ok(sensor) => Ok(sensor),
        Err(error) => Err(governor::Error::to_string(&error)),
    }
}

pub(super) fn seconds(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("take 0.1 to 3600".to_owned()),
    }
}
