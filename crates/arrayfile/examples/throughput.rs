//! How long imports and exports take beside a copy of the NPY file that is synced: ratios of medians of rounds that take
//! turns. `cargo run --release -p arrayfile --example throughput -- [MIB] [ROUNDS]`

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arrayfile::seismic::{Seismic, Shape, make};
use arrayfile::{ExportOptions, Format, ImportOptions, Job, Packing};
use futures::executor::block_on;
use memory::Budget;
use store::{Options, PoolOptions, Store};

type Failure = Box<dyn std::error::Error>;

fn job() -> Job<'static> {
    Job::new(Budget::new(1 << 30))
}

/// Seconds that something takes.
fn seconds(work: impl FnOnce() -> Result<(), Failure>) -> Result<f64, Failure> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed().as_secs_f64())
}

fn remove(path: &Path) {
    let _ = std::fs::remove_dir_all(path);
    let _ = std::fs::remove_file(path);
}

/// A store with the array that is written, and files beside it.
struct Bench {
    folder: tempfile::TempDir,
    store: Arc<Store>,
    chunk: Vec<u64>,
}

impl Bench {
    /// With an array of so many MiB, in chunks of about 4.
    fn new(mib: u64) -> Result<Bench, Failure> {
        let folder = tempfile::tempdir()?;
        let options = Options {
            pool: PoolOptions {
                bytes: 64 << 20,
                ..PoolOptions::default()
            },
            compress: false,
            ..Options::default()
        };
        let store = Store::create(folder.path().join("t.atoll"), &options)?;
        let seismic = Seismic::sized(Shape::Trials, mib << 20, mib.div_ceil(4));
        block_on(make(&store, "a", &seismic, false, job()))?;
        Ok(Bench {
            folder,
            store,
            chunk: [1].into_iter().chain(seismic.chunk).collect(),
        })
    }

    fn export(&self, file: &str, format: Format, packing: Packing) -> Result<f64, Failure> {
        let path = self.folder.path().join(file);
        remove(&path);
        let options = ExportOptions {
            format: Some(format),
            packing,
            ..ExportOptions::default()
        };
        let snapshot = self.store.snapshot();
        seconds(|| {
            block_on(arrayfile::export(&snapshot, "a", &path, &options, job()))?;
            Ok(())
        })
    }

    fn import(&self, file: &str) -> Result<f64, Failure> {
        let path = self.folder.path().join(file);
        let options = ImportOptions {
            replace: true,
            chunk: Some(self.chunk.clone()),
            ..ImportOptions::default()
        };
        seconds(|| {
            block_on(arrayfile::import(&self.store, "b", &path, &options, job()))?;
            Ok(())
        })
    }

    /// Copies a file and syncs the copy.
    fn copy(&self, file: &str) -> Result<f64, Failure> {
        let (from, to) = (
            self.folder.path().join(file),
            self.folder.path().join("copy"),
        );
        let time = seconds(|| {
            std::fs::copy(from, &to)?;
            Ok(std::fs::File::open(&to)?.sync_all()?)
        });
        remove(&to);
        time
    }
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |usual: u64| arguments.next().map_or(Ok(usual), |text| text.parse());
    let (mib, rounds) = (number(256)?, number(5)?);
    let bench = Bench::new(mib)?;
    let names = [
        "copy",
        "NPY out",
        "NPY in",
        "Zarr out",
        "Zarr in",
        "Zarr, zstd out",
        "Zarr, zstd in",
    ];
    let mut times = vec![Vec::new(); names.len()];
    for _ in 0..rounds {
        let out = bench.export("a.npy", Format::Npy, Packing::None)?;
        let round = [
            bench.copy("a.npy")?,
            out,
            bench.import("a.npy")?,
            bench.export("a.zarr", Format::Zarr3, Packing::None)?,
            bench.import("a.zarr")?,
            bench.export("b.zarr", Format::Zarr3, Packing::Usual)?,
            bench.import("b.zarr")?,
        ];
        times
            .iter_mut()
            .zip(round)
            .for_each(|(all, time)| all.push(time));
    }
    let median = |all: &mut Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let medians: Vec<f64> = times.iter_mut().map(median).collect();
    let mut out = std::io::stdout().lock();
    for (name, time) in names.iter().zip(&medians) {
        writeln!(out, "{name:<16} {:>6.2} of a copy", time / medians[0])?;
    }
    Ok(())
}
