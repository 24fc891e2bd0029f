//! The two machines of the text: how much data, how many threads and partitions (row B10).

use std::ops::RangeInclusive;

use clap::ValueEnum;

/// A machine of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// 32 cpus on two nodes, 1 GiB of data
    Server,
    /// Four small cores, 256 MiB of data
    Board,
}

/// What is measured for a profile.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// Bytes of all pages.
    pub bytes: u64,
    /// Bytes of a page in the figures on the number of passes.
    pub first_page_size: u32,
    /// Bytes of a page in those on threads and prefetching.
    pub page_size: u32,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Numbers of partitions.
    pub partitions: Vec<usize>,
}

impl Profile {
    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Profile::Server => "server",
            Profile::Board => "board",
        }
    }

    /// Its figures, by the number after the point.
    pub(super) fn figures(self) -> RangeInclusive<u32> {
        match self {
            Profile::Server => 1..=6,
            Profile::Board => 7..=11,
        }
    }

    /// What its sizes are divided by if nothing else is said.
    pub(super) fn scale(self, quick: bool) -> u64 {
        match (self, quick) {
            (Profile::Server, false) => 4,
            (Profile::Server, true) => 16,
            (Profile::Board, false) => 1,
            (Profile::Board, true) => 4,
        }
    }

    /// What is measured on a machine with `cpus` cpus: more threads than twice these say nothing.
    pub(super) fn setup(self, scale: u64, cpus: usize) -> Setup {
        let most = (2 * cpus).max(4);
        let threads = |last: usize| {
            let all = std::iter::successors(Some(1), |threads| Some(threads * 2));
            all.take_while(|&threads| threads <= last.min(most))
                .collect()
        };
        match self {
            Profile::Server => Setup {
                bytes: (1 << 30) / scale,
                first_page_size: 64 << 10,
                page_size: 64 << 10,
                threads: threads(32),
                partitions: vec![1, 4, 16, 128],
            },
            Profile::Board => Setup {
                bytes: (256 << 20) / scale,
                first_page_size: 64 << 10,
                page_size: 4 << 10,
                threads: threads(4),
                partitions: vec![1, 2, 4, 16],
            },
        }
    }
}
