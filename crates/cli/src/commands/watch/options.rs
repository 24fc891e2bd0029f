//! The arguments of `atoll watch`.

#[cfg(feature = "lab")]
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::units;

/// `atoll watch`
#[derive(Args, Debug)]
pub struct Watch {
    /// The process
    #[arg(long, value_name = "PID")]
    pub pid: u32,
    /// Time between two looks, such as 200ms or 1s
    #[arg(long, default_value = "200ms", value_name = "TIME", value_parser = parse_interval)]
    pub interval: Duration,
    /// How long to watch, such as 10s or 5min [default: until the process ends, or Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time)]
    pub duration: Option<Duration>,
    /// Follow the processes it starts, too
    #[arg(long)]
    pub children: bool,
    /// Write a page with plots, and the raw numbers beside it
    #[cfg(feature = "lab")]
    #[arg(long, value_name = "FILE.html")]
    pub plot: Option<PathBuf>,
    /// Also tell what the machine counts: remote loads, memory traffic, energy, pressure, load of
    /// its cpus; and what it does not, and why
    #[arg(long)]
    pub counters: bool,
    /// One JSON object per look, on a line of its own, and one with the summary
    #[arg(long, conflicts_with = "json")]
    pub json_lines: bool,
    /// One JSON object at the end: the looks and the summary
    #[arg(long)]
    pub json: bool,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    match parse_time(text)? {
        time if (Duration::from_millis(10)..=Duration::from_secs(3600)).contains(&time) => Ok(time),
        _ => Err("take a time from 10ms to 1h".to_owned()),
    }
}

fn parse_time(text: &str) -> Result<Duration, String> {
    units::parse_seconds(text).map(Duration::from_secs_f64)
}
