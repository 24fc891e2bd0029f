//! Options that all experiments have.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::error::{Error, Result};

/// The options of all experiments.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Write the report to this file; the raw numbers go beside it, ending in .json
    /// [default: lab-EXPERIMENT.html]
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Less data and fewer runs: says whether it works, not how much
    #[arg(long)]
    pub quick: bool,
    /// Runs of each variant; the median is shown [default: 5, with --quick 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub runs: Option<u64>,
    /// The machine to emulate: a shipped name, FILE.xml, 4x4, or an hwloc synthetic description
    #[arg(long, value_name = "SPEC")]
    pub machine: Option<String>,
    /// Memory of each of its nodes in MiB
    #[arg(long, value_name = "MIB")]
    pub mem: Option<u64>,
    /// Divide the capacity of the caches that are modelled
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..))]
    pub cache_scale: u64,
    /// One JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

impl Options {
    /// Runs of each variant.
    pub(crate) fn runs(&self) -> usize {
        let usual = if self.quick { 2 } else { 5 };
        self.runs.map_or(usual, |runs| runs as usize)
    }

    /// Checks that the report's folder exists, before minutes of running and not after them.
    pub(crate) fn check(&self) -> Result<()> {
        self.report.as_deref().map_or(Ok(()), folder_is_there)
    }

    /// The report's file.
    pub(crate) fn report(&self, name: &str) -> PathBuf {
        self.report
            .clone()
            .unwrap_or_else(|| PathBuf::from(format!("lab-{name}.html")))
    }
}

/// Checks that the folder of a file exists.
pub(crate) fn folder_is_there(file: &Path) -> Result<()> {
    let Some(folder) = file.parent() else {
        return Ok(());
    };
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    Err(Error::Write {
        path: folder.to_owned(),
        source: std::io::ErrorKind::NotFound.into(),
    })
}
