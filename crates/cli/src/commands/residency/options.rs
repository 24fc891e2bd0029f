//! The arguments of `atoll where`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use crate::options::resources::Layout;

/// `atoll where`
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("of").args(["store", "pid"]).required(true)))]
pub struct Where {
    /// A store: where its pages are at home, and those in memory are
    pub store: Option<PathBuf>,
    /// A process: where its memory is
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// Most rows that are shown; 0 shows all
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub rows: usize,
    /// Look at about so many addresses of the process instead of every page [default: every page up
    /// to 4 GiB in memory, 65536 addresses beyond]
    #[arg(long, value_name = "N", conflicts_with_all = ["store", "exact"], value_parser = clap::value_parser!(u64).range(64..=1 << 24))]
    pub sample: Option<u64>,
    /// Look at every page of the process, however large it is
    #[arg(long, conflicts_with = "store")]
    pub exact: bool,
    /// Read the store's tables into the pool first, as far as it goes
    #[arg(long, conflicts_with = "pid")]
    pub load: bool,
    #[command(flatten)]
    pub layout: Layout,
    /// One JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}
