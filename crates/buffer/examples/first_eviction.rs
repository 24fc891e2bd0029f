//! How long the first eviction of a hot pool takes: of a million frames all of which were used since the clock came by.
//!
//! `cargo run --release -p buffer --example first_eviction -- [FRAMES [ROUNDS]]`: a pool of that many frames of 4 KiB.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use buffer::{Config, LoadError, PageId, Placement, Policy, Pool, Prefetching, Source};
use futures::executor::block_on;
use futures::future::BoxFuture;

const PAGE: usize = 4096;

/// Pages of zeros, which are there at once.
#[derive(Debug)]
struct Zeros;

impl Source for Zeros {
    fn bucket(&self, page: PageId) -> u8 {
        (page % 256) as u8
    }

    fn load<'a>(
        &'a self,
        _: PageId,
        frame: &'a mut [u8],
    ) -> BoxFuture<'a, Result<usize, LoadError>> {
        frame[..64].fill(0);
        Box::pin(async { Ok(PAGE) })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u32| arguments.next().map_or(Ok(default), |text| text.parse());
    let (frames, rounds) = (number(1 << 20)?, number(5)?);
    let mut out = std::io::stdout().lock();
    for policy in Policy::ALL {
        let config = Config {
            bytes: u64::from(frames) * PAGE as u64,
            page_size: PAGE,
            partitions_per_node: 16,
            nodes: vec![None],
            placement: Placement::default(),
            replacement: policy,
            prefetch: Prefetching::default(),
        };
        let pool = Pool::new(&config, Arc::new(Zeros), memory::Budget::new(config.bytes))?;
        let mut times = Vec::new();
        for round in 0..rounds {
            // All are used, more than once; the last page of the round before makes room again.
            for _ in 0..3 {
                for page in 0..frames {
                    drop(block_on(pool.pin(page))?);
                }
            }
            let before = pool.statistics();
            let begun = Instant::now();
            drop(block_on(pool.pin(frames + round))?);
            let took = begun.elapsed();
            let after = pool.statistics();
            assert_eq!(after.evictions - before.evictions, 1);
            times.push((took, after.looks - before.looks));
            pool.discard(frames + round)?;
        }
        times.sort_unstable();
        let (median, looks) = times[times.len() / 2];
        let most = times.last().map_or(Duration::ZERO, |(took, _)| *took);
        writeln!(
            out,
            "{policy:?}: {frames} frames, first eviction {:.1} µs in the median, {:.1} at most; {looks} frames looked at",
            median.as_secs_f64() * 1e6,
            most.as_secs_f64() * 1e6,
        )?;
    }
    Ok(())
}
