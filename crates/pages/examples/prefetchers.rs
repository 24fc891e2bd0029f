//! The scan of raw pages with each prefetcher, out of core and in memory.
//!
//! `cargo run -p pages --release --example prefetchers [MiB] [rounds] [folder]`
//!
//! Out of core is a pool of an eighth of the pages, read past the page cache where the file system can. All that is
//! compared takes turns; medians are shown, and how often as fast as without that is.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use pages::{Access, Fill, Options, PageFile, Prefetching, Session};

/// Bytes of a page.
const PAGE: u32 = 64 << 10;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |usual: u64| arguments.next().map_or(Ok(usual), |text| text.parse());
    let (mib, rounds) = (next(256)?, next(5)?.max(1) as usize);
    let folder = match arguments.next() {
        Some(folder) => tempfile::tempdir_in(folder)?,
        None => tempfile::tempdir()?,
    };
    let path = folder.path().join("reef.pages");
    let bytes = mib << 20;
    let file = PageFile::create(&path, PAGE, bytes / u64::from(PAGE), &Options::default())?;
    pages::alloc(&file, 2, &Fill::default(), &|| false)?;
    file.close()?;
    let mut out = std::io::stdout().lock();
    compare(&mut out, "out of core", &path, bytes / 8, true, rounds)?;
    compare(
        &mut out,
        "in memory",
        &path,
        bytes + bytes / 4,
        false,
        rounds,
    )
}

/// A pool for each way to read ahead: a prefetcher, or a fixed number of pages.
fn compare(
    out: &mut impl Write,
    name: &str,
    path: &Path,
    pool_bytes: u64,
    direct: bool,
    rounds: usize,
) -> Result<(), Box<dyn Error>> {
    let mut ways: Vec<_> = Prefetching::ALL.map(|kind| (kind, 0)).to_vec();
    ways.push((Prefetching::None, 8));
    let mut files = Vec::new();
    for &(prefetcher, _) in &ways {
        let options = Options {
            pool_bytes,
            direct,
            prefetcher,
            access: Access::Read,
            ..Options::default()
        };
        files.push(PageFile::open(path, &options)?);
    }
    let mut seconds = vec![Vec::new(); ways.len()];
    for round in 0..=rounds {
        for ((file, (_, degree)), seconds) in files.iter().zip(&ways).zip(&mut seconds) {
            let session = Session::start(file, 1, *degree)?;
            let begin = Instant::now();
            pages::scan(&session, 0)?;
            // The first fills the pools.
            if round > 0 {
                seconds.push(begin.elapsed().as_secs_f64());
            }
        }
    }
    let medians: Vec<f64> = seconds.into_iter().map(median).collect();
    for ((file, (kind, degree)), median) in files.iter().zip(&ways).zip(&medians) {
        let pool = file.pool();
        let percent = |share: Option<f64>| 100.0 * share.unwrap_or(0.0);
        writeln!(
            out,
            "{name}: {kind:<11} {degree} pages: {median:.4} s, {:.2} times as fast; accuracy {:.1} %, coverage {:.1} %, late {}, dropped {}",
            medians[0] / median,
            percent(pool.accuracy()),
            percent(pool.coverage()),
            pool.prefetch_late,
            pool.prefetch_dropped,
        )?;
    }
    Ok(())
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
