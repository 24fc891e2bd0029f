//! How long imports and exports take beside a copy of the NPY file that is synced: ratios of medians of rounds that take
//! turns. `cargo run --release -p arrayfile --example throughput -- [MIB] [ROUNDS]`

use std::io::Write;
use std::path::Path;
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

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |usual: u64| arguments.next().map_or(Ok(usual), |text| text.parse());
    let (mib, rounds) = (number(256)?, number(5)?);
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name);
    let options = Options {
        pool: PoolOptions {
            bytes: 64 << 20,
            ..PoolOptions::default()
        },
        compress: false,
        ..Options::default()
    };
    let store = Store::create(at("t.atoll"), &options)?;
    let seismic = Seismic::sized(Shape::Trials, mib << 20, mib.div_ceil(4));
    block_on(make(&store, "a", &seismic, false, job()))?;
    let export = |file: &str, format: Format, packing: Packing| {
        let path = at(file);
        remove(&path);
        let options = ExportOptions {
            format: Some(format),
            packing,
            ..ExportOptions::default()
        };
        seconds(|| {
            block_on(arrayfile::export(
                &store.snapshot(),
                "a",
                &path,
                &options,
                job(),
            ))?;
            Ok(())
        })
    };
    let import = |file: &str| {
        let options = ImportOptions {
            replace: true,
            chunk: Some([1].into_iter().chain(seismic.chunk).collect()),
            ..ImportOptions::default()
        };
        let path = at(file);
        seconds(|| {
            block_on(arrayfile::import(&store, "b", &path, &options, job()))?;
            Ok(())
        })
    };
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
        let out = export("a.npy", Format::Npy, Packing::None)?;
        let copied = seconds(|| {
            std::fs::copy(at("a.npy"), at("copy"))?;
            Ok(std::fs::File::open(at("copy"))?.sync_all()?)
        })?;
        remove(&at("copy"));
        let round = [
            copied,
            out,
            import("a.npy")?,
            export("a.zarr", Format::Zarr3, Packing::None)?,
            import("a.zarr")?,
            export("b.zarr", Format::Zarr3, Packing::Usual)?,
            import("b.zarr")?,
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
