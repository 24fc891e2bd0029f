//! `atoll load seismic`

use std::io::Write;
use std::path::PathBuf;

use anyhow::anyhow;
use array::Compression;
use arrayfile::Job;
use arrayfile::seismic::{Made, Seismic, Shape, make};
use clap::{Args, ValueEnum};
use futures::executor::block_on;

use crate::failure::Failure;
use crate::options::resources::Compute;
use crate::store::files;
use crate::store::plain::{self, Open};
use crate::terminal::phases::Phases;
use crate::terminal::{interrupt, out};
use crate::units;

/// `atoll load seismic`
#[derive(Args, Debug)]
pub struct LoadSeismic {
    /// The store; created when absent
    pub store: PathBuf,
    /// About how large, in GiB; may be a fraction
    #[arg(long, value_name = "GIB", default_value_t = 1.0)]
    pub gib: f64,
    /// How many chunks
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub chunks: u64,
    /// The cells of a chunk along x, y and z, such as 250,250,500, in place of --gib
    #[arg(
        long,
        value_name = "CELLS",
        value_delimiter = ',',
        conflicts_with = "gib"
    )]
    pub chunk: Option<Vec<u64>>,
    /// Four dimensions, trial, x, y and z, with a chunk for each trial, and floats; without, x, y and z, and doubles
    #[arg(long)]
    pub trials: bool,
    /// The array's name
    #[arg(long, value_name = "NAME", default_value = "seismic")]
    pub name: String,
    /// Which layers and shots
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// How the chunks are stored
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Stored::None)]
    pub compress: Stored,
    /// Put the array in the place of one that has its name
    #[arg(long)]
    pub replace: bool,
    /// Size of the pages of a store that is created: 4KiB, 8KiB, ... 1MiB [default: 64KiB]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    pub page_size: Option<u64>,
    #[command(flatten)]
    pub compute: Compute,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// How the chunks are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stored {
    /// As they are
    None,
    /// With LZ4: quick
    Lz4,
    /// With zstd at level 3: smaller
    Zstd,
}

impl LoadSeismic {
    /// Runs the command.
    pub fn run(&self) -> Result<(), Failure> {
        let seismic = self.seismic()?;
        let existed = !files::absent(&self.store);
        if existed && self.page_size.is_some() {
            let store = self.store.display();
            return Err(anyhow!(
                "{store} exists: its pages have their size; leave out --page-size"
            )
            .into());
        }
        let how = Open::Create(self.page_size);
        let opened = plain::open(&self.store, &self.compute, how, false)?;
        let mut phases = Phases::new();
        let (stop, _guard) = interrupt::flag();
        let job = Job::new(opened.budget.clone())
            .threads(opened.workers.width())
            .stopped_by(stop)
            .telling(|at| phases.show("make", at.done, at.total));
        let made = block_on(make(&opened.store, &self.name, &seismic, self.replace, job));
        phases.finish();
        let closed = opened.store.close();
        if made.is_err() && !existed {
            files::remove(&self.store);
        }
        let made = made?;
        closed?;
        self.tell(&made)
    }

    /// What is to be made.
    fn seismic(&self) -> Result<Seismic, Failure> {
        let shape = if self.trials {
            Shape::Trials
        } else {
            Shape::Volume
        };
        let bytes = self.gib * (1u64 << 30) as f64;
        if !(bytes >= 1.0 && bytes < (1u64 << 60) as f64) {
            return Err(anyhow!("--gib: take a number above 0 and below 1073741824").into());
        }
        let mut seismic = Seismic::sized(shape, bytes as u64, self.chunks);
        seismic.seed = self.seed;
        seismic.compression = match self.compress {
            Stored::None => Compression::None,
            Stored::Lz4 => Compression::Lz4,
            Stored::Zstd => Compression::Zstd(3),
        };
        if let Some(chunk) = &self.chunk {
            let three = chunk.as_slice().try_into();
            seismic.chunk =
                three.map_err(|_| anyhow!("--chunk: give three lengths, of x, y and z"))?;
        }
        Ok(seismic)
    }

    fn tell(&self, made: &Made) -> Result<(), Failure> {
        let seconds = made.time.as_secs_f64();
        let shape = made.schema.shape();
        let mut out = out::stdout();
        if self.json {
            let object = serde_json::json!({
                "store": self.store.display().to_string(),
                "array": self.name,
                "shape": shape,
                "type": made.schema.attributes()[0].data_type().name(),
                "chunk": made.schema.dimensions().iter().map(|of| of.chunk_length()).collect::<Vec<_>>(),
                "chunks": made.chunks,
                "bytes": made.bytes,
                "seconds": seconds,
            });
            writeln!(out, "{object}")?;
            return Ok(out.flush()?);
        }
        let shape: Vec<_> = shape.iter().map(u64::to_string).collect();
        writeln!(
            out,
            "{}: {} of {}, {} in {} chunks, in {}",
            self.name,
            shape.join(" x "),
            made.schema.attributes()[0].data_type(),
            units::bytes(made.bytes),
            units::count(made.chunks),
            units::seconds(seconds)
        )?;
        Ok(out.flush()?)
    }
}
