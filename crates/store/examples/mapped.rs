//! Pages read through a mapping of the file beside pages read through the pool: in order and at random, in memory and
//! after the operating system has forgotten the file.
//!
//! `cargo run -p store --release --example mapped -- [MiB [ROUNDS [DIRECTORY]]]`
//!
//! Each read sums a page's words. What is compared takes turns, each with a store that is opened anew, since the first pin
//! of a page checks it; figures are medians, and a ratio above 1 says that the mapping takes longer. Of the pools one has
//! room for all pages and one for a tenth. In memory each store was read once before.

#![expect(clippy::print_stdout, reason = "an example that prints figures")]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use futures::executor::block_on;
use io::{Access, Device, File};
use store::{Options, PageStore, PageView, PoolOptions};

type Done<T> = Result<T, Box<dyn Error>>;

/// How the file is read.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Mapped,
    Pool,
    Tenth,
}

const WAYS: [Way; 3] = [Way::Mapped, Way::Pool, Way::Tenth];

fn main() -> Done<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |usual: u64| arguments.next().map_or(Ok(usual), |text| text.parse());
    let (mib, rounds) = (number(512)?.max(1), number(5)?.max(1));
    let folder = match arguments.next() {
        Some(folder) => tempfile::tempdir_in(folder)?,
        None => tempfile::tempdir()?,
    };
    for page_size in [64 << 10, 4 << 10] {
        let path = folder.path().join(format!("{page_size}.pages"));
        let pages = u32::try_from((mib << 20) / u64::from(page_size))?;
        let order = fill(&path, page_size, pages)?;
        let mut random = order.clone();
        fastrand::Rng::with_seed(7).shuffle(&mut random);
        for (name, order) in [("in order", &order), ("at random", &random)] {
            for is_cold in [false, true] {
                let seconds = compare(&path, page_size, order, is_cold, rounds)?;
                let state = if is_cold {
                    "from the device"
                } else {
                    "in memory"
                };
                let rate = (mib << 20) as f64 / 1e9;
                let [mapped, pool, tenth] = seconds;
                println!(
                    "pages of {:2} KiB {name:9} {state:15}: mapped {:5.2} GB/s; {:5.2} times the pool's time, {:5.2} times that of a pool of a tenth",
                    page_size >> 10,
                    rate / mapped,
                    mapped / pool,
                    mapped / tenth,
                );
            }
        }
    }
    Ok(())
}

fn options(page_size: u32, way: Way, bytes: u64) -> Options {
    Options {
        page_size,
        mapped: way == Way::Mapped,
        pool: PoolOptions {
            bytes: match way {
                Way::Tenth => (bytes / 10).max(8 << 20),
                _ => bytes + bytes / 4,
            },
            ..PoolOptions::default()
        },
        ..Options::default()
    }
}

/// Makes the file; returns its pages, in order.
fn fill(path: &Path, page_size: u32, pages: u32) -> Done<Vec<u32>> {
    let store = PageStore::create(path, &options(page_size, Way::Tenth, 1 << 30))?;
    let mut random = fastrand::Rng::with_seed(1);
    let mut bytes = vec![0; page_size as usize];
    let mut all = Vec::new();
    store.reserve(u64::from(pages))?;
    for first in (0..pages).step_by(1024) {
        let mut batch = store.begin()?;
        for _ in first..pages.min(first + 1024) {
            let page = batch.alloc()?;
            bytes.fill_with(|| random.u8(..));
            batch.write(page, &bytes)?;
            all.push(page);
        }
        batch.commit()?;
    }
    store.close()?;
    all.sort_unstable();
    Ok(all)
}

/// Seconds of each way, in the order of [`WAYS`].
fn compare(
    path: &Path,
    page_size: u32,
    order: &[u32],
    is_cold: bool,
    rounds: u64,
) -> Done<[f64; 3]> {
    let bytes = u64::from(page_size) * order.len() as u64;
    let mut seconds: [Vec<f64>; 3] = Default::default();
    let mut sums = Vec::new();
    for _ in 0..rounds {
        for (way, seconds) in WAYS.into_iter().zip(&mut seconds) {
            let store = PageStore::open(path, &options(page_size, way, bytes))?;
            let view = store.view();
            if is_cold {
                File::open(path, Access::Read)?.forget()?;
            } else {
                sums.push(sum(&view, order)?);
            }
            let begun = Instant::now();
            sums.push(sum(&view, order)?);
            seconds.push(begun.elapsed().as_secs_f64());
        }
    }
    assert!(sums.iter().all(|sum| *sum == sums[0]), "all read the same");
    Ok(seconds.map(median))
}

fn sum(view: &PageView, order: &[u32]) -> Done<u64> {
    let mut sum = 0u64;
    for &page in order {
        let pin = block_on(view.pin(page))?;
        let words = pin.chunks_exact(8).filter_map(|word| word.try_into().ok());
        sum = words.map(u64::from_le_bytes).fold(sum, u64::wrapping_add);
    }
    Ok(sum)
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
