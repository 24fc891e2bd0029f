//! The arguments of `atoll pages`.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use anyhow::anyhow;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Args, ValueEnum};
use pages::Prefetching;

use crate::commands::pages::numbers::{self, Numbers};
use crate::failure::Failure;
use crate::options::resources::Layout;
use crate::units::parse_bytes;

/// `atoll pages`
#[derive(Args, Debug)]
pub struct Pages {
    /// The store; may also stand after the action: atoll pages create STORE
    pub store: OsString,
    /// What to do
    #[arg(value_parser = Words)]
    pub action: OsString,
    #[command(flatten)]
    pub layout: Layout,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub raw: Raw,
}

/// The options of single actions, all on stores of raw pages.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Raw pages")]
pub struct Raw {
    /// Size of the pages to create: 4KiB, 8KiB, ... 1MiB [default: 64KiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub page_size: Option<u64>,
    /// Create: make room for so many pages; alloc: allocate until there are so many [default: all that there is room for]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..1 << 32))]
    pub pages: Option<u64>,
    /// Threads that run an operator: 4, 1,2,4 or 1..8 (each twice the one before) [default: 1]
    #[arg(long, value_name = "N,...", value_parser = numbers::threads)]
    pub threads: Option<Numbers>,
    /// Partitions of the pool [default: 16]
    #[arg(long, value_name = "N,...", value_parser = numbers::partitions)]
    pub partitions: Option<Numbers>,
    /// Pages that each thread prefetches; 0..8 is 0,1,2,4,8 [default: 0]
    #[arg(long, value_name = "N,...", value_parser = numbers::prefetch)]
    pub prefetch: Option<Numbers>,
    /// What watches the pages that each thread reads and loads more: none, next, stride, stream or correlation [default: none]
    #[arg(long, value_name = "NAME")]
    pub prefetcher: Option<Prefetching>,
    /// Whether the pool lies on the machine's nodes and threads are bound to cpus: on, off, or on,off [default: off]
    #[arg(long, value_enum, value_name = "MODE,...", value_delimiter = ',')]
    pub numa: Vec<Switch>,
    /// Rounds, in each of which every combination has its turn; medians are shown [default: 5, alloc 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub repeat: Option<u16>,
    /// Empty the pool before each turn, instead of filling it
    #[arg(long)]
    pub cold: bool,
    /// Scan: count integers (signed, 4 bytes) above this one [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub threshold: Option<i32>,
    /// Alloc: which random bytes [default: 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// Something that is on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// On
    On,
    /// Off
    Off,
}

/// What `atoll pages` does.
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
    /// Make a store of raw pages
    Create,
    /// Move pages from the end of the file to free space before them, and cut the file; readers go on
    Vacuum,
    /// Allocate raw pages, and fill all with random bytes
    Alloc,
    /// Count the integers of all raw pages that are above a threshold
    Scan,
    /// Count each byte value in all raw pages
    Groupby,
    /// Join the first sixteenth of the raw pages with the rest, by pairs of bytes
    Hashjoin,
}

/// Accepts any word, and says in the help which are meant: the store may stand in its place.
#[derive(Clone, Debug)]
struct Words;

impl TypedValueParser for Words {
    type Value = OsString;

    fn parse_ref(
        &self,
        _: &clap::Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<OsString, clap::Error> {
        Ok(value.to_owned())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = Look::value_variants().iter();
        Some(Box::new(values.filter_map(ValueEnum::to_possible_value)))
    }
}

/// The arguments, whichever of store and action was typed first.
#[derive(Debug)]
pub struct Asked {
    /// The store.
    pub store: PathBuf,
    /// What to do.
    pub what: Look,
    /// Pool and machine.
    pub layout: Layout,
    /// Whether to write JSON.
    pub json: bool,
    /// The options of single actions.
    pub raw: Raw,
}

impl Pages {
    /// Tells store and action apart, and refuses options that do not belong to the action.
    pub fn asked(&self) -> Result<Asked, Failure> {
        let look = |word: &OsStr| Look::from_str(word.to_str()?, false).ok();
        let (store, what) = match (look(&self.action), look(&self.store)) {
            (Some(what), _) => (&self.store, what),
            (None, Some(what)) => (&self.action, what),
            (None, None) => {
                let names = Look::value_variants().iter();
                let names: Vec<_> = names.map(|what| what.name()).collect();
                return Err(anyhow!(
                    "{:?} is nothing that can be done with a store: take {}",
                    self.action.to_string_lossy(),
                    names.join(", ")
                )
                .into());
            }
        };
        self.raw.fits(what)?;
        Ok(Asked {
            store: store.into(),
            what,
            layout: self.layout.clone(),
            json: self.json,
            raw: self.raw.clone(),
        })
    }
}

impl Look {
    /// The word for it.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

impl Raw {
    /// Refuses options that `what` has no use for.
    fn fits(&self, what: Look) -> Result<(), Failure> {
        let reads = matches!(what, Look::Scan | Look::Groupby | Look::Hashjoin);
        let runs = reads || what == Look::Alloc;
        let given = [
            ("page-size", self.page_size.is_some(), what == Look::Create),
            (
                "pages",
                self.pages.is_some(),
                matches!(what, Look::Create | Look::Alloc),
            ),
            ("threads", self.threads.is_some(), runs),
            ("partitions", self.partitions.is_some(), reads),
            ("prefetch", self.prefetch.is_some(), reads),
            ("prefetcher", self.prefetcher.is_some(), reads),
            ("numa", !self.numa.is_empty(), reads),
            ("repeat", self.repeat.is_some(), runs),
            ("cold", self.cold, reads),
            ("threshold", self.threshold.is_some(), what == Look::Scan),
            ("seed", self.seed.is_some(), what == Look::Alloc),
        ];
        for (name, given, fits) in given {
            if given && !fits {
                let what = what.name();
                return Err(anyhow!("--{name} has no effect on {what}: leave it out").into());
            }
        }
        Ok(())
    }
}
