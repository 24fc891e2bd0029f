//! `--wait`.

use std::time::Duration;

use clap::Args;

use crate::units::parse_seconds;

/// What to do while another process writes to the store.
#[derive(Args, Clone, Debug, Default)]
pub struct Waiting {
    /// How long to wait for another process that writes to the store, such as 10s or 5min [default: not at all]
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub wait: Option<f64>,
}

impl Waiting {
    /// The time to wait; zero if none was given.
    pub fn time(&self) -> Duration {
        self.wait.map_or(Duration::ZERO, Duration::from_secs_f64)
    }
}
