//! `atoll load graph`

use std::io::Write;
use std::path::{Path, PathBuf};

use ::graph::{Job, LoadOptions, Loaded, Spill};
use anyhow::anyhow;
use clap::Args;
use futures::executor::block_on;

use crate::failure::Failure;
use crate::options::resources::Compute;
use crate::store::files;
use crate::store::plain::{self, Open};
use crate::terminal::phases::Phases;
use crate::terminal::{interrupt, out};
use crate::units;

/// Most bytes for sorting, whatever the limit.
const MOST_SORTING: u64 = 4 << 30;

/// `atoll load graph`
#[derive(Args, Debug)]
pub struct LoadGraph {
    /// The store; created when absent
    pub store: PathBuf,
    /// The edge list: on each line two vertex ids; plain or gzip, or - for standard input
    pub file: PathBuf,
    /// The graph's name [default: that of the file, without what follows the first dot]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Each edge leads both ways
    #[arg(long)]
    pub undirected: bool,
    /// The third column is the weight of the edge, a number
    #[arg(long)]
    pub weighted: bool,
    /// Keep edges from a vertex to itself
    #[arg(long)]
    pub loops: bool,
    /// Keep edges that come again
    #[arg(long)]
    pub repeats: bool,
    /// Put the graph in the place of one that has its name
    #[arg(long)]
    pub replace: bool,
    /// Size of the pages of a store that is created: 4KiB, 8KiB, ... 1MiB [default: 64KiB]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    pub page_size: Option<u64>,
    /// Compress the pages of the graph: about half the file, and several times the time to read a page
    #[arg(long)]
    pub compress: bool,
    #[command(flatten)]
    pub compute: Compute,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

impl LoadGraph {
    /// Runs the command.
    pub fn run(&self) -> Result<(), Failure> {
        let name = self.name()?;
        let existed = !files::absent(&self.store);
        if existed && self.page_size.is_some() {
            let store = self.store.display();
            return Err(anyhow!(
                "{store} exists: its pages have their size; leave out --page-size"
            )
            .into());
        }
        let how = Open::Create(self.page_size);
        let opened = plain::open(&self.store, &self.compute, how, self.compress)?;
        let options = LoadOptions {
            directed: !self.undirected,
            weighted: self.weighted,
            loops: self.loops,
            repeats: self.repeats,
            replace: self.replace,
            // The load takes no more than half of what is left of the limit.
            memory: MOST_SORTING,
            spill: Spill::directory(files::folder(&self.store)),
        };
        let mut phases = Phases::new();
        let (stop, _guard) = interrupt::flag();
        let job = Job::new(opened.budget.clone())
            .stopped_by(stop)
            .telling(|at| phases.show(at.phase.name(), at.done, at.total));
        let loaded = ::graph::load(&opened.store, &name, input(&self.file), &options, job);
        let loaded = block_on(loaded);
        phases.finish();
        let closed = opened.store.close();
        if loaded.is_err() && !existed {
            // A store that was made for a load that failed is empty.
            files::remove(&self.store);
        }
        let loaded = loaded?;
        closed?;
        self.tell(&name, &loaded)
    }

    fn name(&self) -> Result<String, Failure> {
        if let Some(name) = &self.name {
            return Ok(name.clone());
        }
        let file = self.file.file_name().and_then(|name| name.to_str());
        match file.and_then(|name| name.split('.').find(|part| !part.is_empty())) {
            Some(name) if name != "-" => Ok(name.to_owned()),
            _ => Err(anyhow!("the graph needs a name: give it with --name").into()),
        }
    }

    fn tell(&self, name: &str, loaded: &Loaded) -> Result<(), Failure> {
        let seconds = loaded.time.as_secs_f64();
        let mut out = out::stdout();
        if self.json {
            let object = serde_json::json!({
                "store": self.store.display().to_string(),
                "graph": name,
                "lines": loaded.lines,
                "vertices": loaded.vertices,
                "edges": loaded.edges,
                "loops_dropped": loaded.loops_dropped,
                "repeats_dropped": loaded.repeats_dropped,
                "pages": loaded.pages,
                "seconds": seconds,
            });
            writeln!(out, "{object}")?;
            return Ok(out.flush()?);
        }
        writeln!(
            out,
            "{name}: {} vertices, {} edges in {} pages, in {}",
            units::count(loaded.vertices),
            units::count(loaded.edges),
            units::count(loaded.pages),
            units::seconds(seconds)
        )?;
        if loaded.loops_dropped + loaded.repeats_dropped > 0 {
            writeln!(
                out,
                "left out: {} from a vertex to itself (--loops keeps them), {} that came again (--repeats)",
                units::count(loaded.loops_dropped),
                units::count(loaded.repeats_dropped)
            )?;
        }
        Ok(out.flush()?)
    }
}

/// The file to read: `-` is standard input.
fn input(file: &Path) -> &Path {
    if file == Path::new("-") {
        Path::new("/dev/stdin")
    } else {
        file
    }
}
