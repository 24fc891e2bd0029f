//! How threads divide chunks among themselves.

use std::collections::BTreeSet;
use std::fmt;

use crate::error::{Error, Result};
use crate::site::Site;
use crate::threads::Threads;

/// What a query reads of one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// The node whose memory it lies on, as an index into the nodes of the machine.
    pub home: usize,
    /// The bytes that are read of it: all of it, or the part that the region of the query overlaps.
    pub bytes: u64,
    /// Into how many parts of about equal size it can be cut without cutting a run of cells: the length of the part
    /// along the chunk's first dimension. 0 stands for 1.
    pub slabs: u64,
}

/// A part of what is read of a chunk, for one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Position of the chunk.
    pub chunk: usize,
    /// The first byte of it.
    pub from: u64,
    /// The end, which is not included; above `from`.
    pub to: u64,
}

impl Piece {
    /// How many bytes it has.
    pub fn bytes(&self) -> u64 {
        self.to - self.from
    }
}

/// The pieces of each thread, in the order in which the threads are created. Each byte of each chunk is in one piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Division {
    pub(super) threads: Vec<Vec<Piece>>,
}

impl Division {
    /// The pieces of each thread; empty for one without work.
    pub fn threads(&self) -> &[Vec<Piece>] {
        &self.threads
    }

    /// How many threads read each of so many chunks.
    pub fn readers(&self, chunks: usize) -> Vec<usize> {
        let mut readers = vec![0; chunks];
        for pieces in &self.threads {
            let own: BTreeSet<usize> = pieces.iter().map(|piece| piece.chunk).collect();
            for chunk in own.into_iter().filter(|&chunk| chunk < chunks) {
                readers[chunk] += 1;
            }
        }
        readers
    }
}

/// How threads share the work of a query on chunks (row T4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sharing {
    /// Each thread takes whole chunks: right where chunks are many.
    Whole,
    /// Threads in groups of so many, created one after the other; each group takes a run of chunks, one after the other,
    /// and its threads share each of them (SAVIME): right where chunks are few and large.
    Groups {
        /// Threads of a group.
        of: usize,
    },
    /// Instances of equally many threads that own the chunks in turn; those of an instance share each of its
    /// chunks (SciDB).
    Instances {
        /// How many instances.
        count: usize,
    },
}

impl Sharing {
    /// Whole chunks where there are as many as threads, otherwise groups as large as it takes to give each thread work.
    pub fn fitting(threads: usize, chunks: usize) -> Sharing {
        match threads.checked_div(chunks) {
            Some(of) if of > 1 => Sharing::Groups { of },
            _ => Sharing::Whole,
        }
    }

    /// The group of each thread, as [`Threads::with_groups`] takes it.
    ///
    /// # Errors
    /// [`Error::Threads`] and [`Error::Groups`].
    pub fn groups(&self, threads: usize) -> Result<Vec<usize>> {
        let groups = match self {
            Sharing::Whole => threads,
            Sharing::Groups { of: 0 } => 0,
            Sharing::Groups { of } => threads.div_ceil(*of),
            Sharing::Instances { count } => *count,
        };
        Ok(Threads::in_groups(threads, groups)?.groups().to_vec())
    }

    /// The pieces of each of `threads` threads.
    ///
    /// # Errors
    /// As [`groups`](Sharing::groups).
    pub fn divide(&self, threads: usize, chunks: &[Chunk]) -> Result<Division> {
        let members = Threads::with_groups(self.groups(threads)?)?.by_group();
        let mut division = Division {
            threads: vec![Vec::new(); threads],
        };
        let groups = members.len();
        for (at, chunk) in chunks.iter().enumerate() {
            let group = match self {
                Sharing::Instances { .. } => at % groups,
                _ if chunks.len() < groups => at,
                _ => (at as u128 * groups as u128 / chunks.len() as u128) as usize,
            };
            let own = &members[group];
            let mut from = 0;
            for (turn, &thread) in own.iter().enumerate() {
                let to = chunk.cut(turn as u64 + 1, own.len() as u64);
                if to > from {
                    let piece = Piece {
                        chunk: at,
                        from,
                        to,
                    };
                    division.threads[thread].push(piece);
                    from = to;
                }
            }
        }
        Ok(division)
    }
}

/// `whole chunks`, `groups of 4`, `3 instances`
impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sharing::Whole => write!(f, "whole chunks"),
            Sharing::Groups { of } => write!(f, "groups of {of}"),
            Sharing::Instances { count } => write!(f, "{count} instances"),
        }
    }
}

impl Chunk {
    /// The end of the part `at` of `parts` equal ones, at the nearest place where it may be cut.
    fn cut(&self, at: u64, parts: u64) -> u64 {
        if at >= parts {
            return self.bytes;
        }
        self.nearest_cut((u128::from(self.bytes) * u128::from(at) / u128::from(parts)) as u64)
    }

    /// The place nearest to a byte where the chunk may be cut.
    pub(super) fn nearest_cut(&self, byte: u64) -> u64 {
        let (slabs, bytes) = (u128::from(self.slabs.max(1)), u128::from(self.bytes));
        if bytes == 0 {
            return 0;
        }
        let slab = (u128::from(byte.min(self.bytes)) * slabs + bytes / 2) / bytes;
        (slab * bytes / slabs) as u64
    }
}

/// Checks that each chunk lies on a node of the machine.
pub(super) fn check(site: &Site, chunks: &[Chunk]) -> Result<()> {
    let nodes = site.nodes().len();
    match chunks.iter().position(|chunk| chunk.home >= nodes) {
        Some(chunk) => Err(Error::Home {
            chunk,
            home: chunks[chunk].home,
            nodes,
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(count: usize, bytes: u64, slabs: u64) -> Vec<Chunk> {
        let home = 0;
        vec![Chunk { home, bytes, slabs }; count]
    }

    /// The chunks of each thread, and its bytes.
    fn shape(division: &Division) -> Vec<(Vec<usize>, u64)> {
        let thread = |pieces: &Vec<Piece>| {
            let chunks = pieces.iter().map(|piece| piece.chunk).collect();
            (chunks, pieces.iter().map(Piece::bytes).sum())
        };
        division.threads().iter().map(thread).collect()
    }

    #[test]
    fn the_three_ways() {
        let whole = Sharing::Whole.divide(2, &chunks(4, 10, 10)).unwrap();
        assert_eq!(shape(&whole), [(vec![0, 1], 20), (vec![2, 3], 20)]);
        let groups = Sharing::Groups { of: 2 };
        let groups = groups.divide(4, &chunks(2, 10, 10)).unwrap();
        assert_eq!(groups.readers(2), [2, 2]);
        let first = [(vec![0], 5), (vec![0], 5), (vec![1], 5), (vec![1], 5)];
        assert_eq!(shape(&groups), first);
        let own = Sharing::Instances { count: 2 };
        let own = own.divide(2, &chunks(4, 10, 10)).unwrap();
        assert_eq!(shape(&own), [(vec![0, 2], 20), (vec![1, 3], 20)]);
    }

    #[test]
    fn every_byte_is_read_once_whatever_the_numbers() {
        let ways = |threads: usize| {
            let groups = (1..=threads).map(|of| Sharing::Groups { of });
            let instances = (1..=threads).map(|count| Sharing::Instances { count });
            groups.chain(instances).chain([Sharing::Whole])
        };
        for threads in [1, 2, 5, 12] {
            for count in [0, 1, 2, 7, 12, 100] {
                for (bytes, slabs) in [
                    (0, 0),
                    (1, 5),
                    (1000, 1),
                    (1000, 3),
                    (999, 7),
                    (1 << 40, 1 << 20),
                ] {
                    let all = chunks(count, bytes, slabs);
                    for way in ways(threads) {
                        let division = way.divide(threads, &all).unwrap();
                        let mut pieces: Vec<Piece> = division.threads().concat();
                        pieces.sort_by_key(|piece| (piece.chunk, piece.from));
                        let mut ends = vec![0; count];
                        for piece in pieces {
                            assert!(piece.to > piece.from);
                            assert_eq!(
                                std::mem::replace(&mut ends[piece.chunk], piece.to),
                                piece.from
                            );
                        }
                        assert!(
                            ends.iter().all(|&end| end == bytes),
                            "{way} {threads} {count}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_chunk_without_slabs_is_not_cut() {
        let groups = Sharing::Groups { of: 4 };
        let division = groups.divide(4, &chunks(1, 1000, 1)).unwrap();
        assert_eq!(division.readers(1), [1]);
        let division = groups.divide(4, &chunks(1, 1000, 2)).unwrap();
        assert_eq!(division.readers(1), [2]);
    }

    #[test]
    fn the_fitting_way_gives_every_thread_work() {
        assert_eq!(Sharing::fitting(12, 3), Sharing::Groups { of: 4 });
        assert_eq!(Sharing::fitting(12, 12), Sharing::Whole);
        assert_eq!(Sharing::fitting(12, 0), Sharing::Whole);
        assert_eq!(Sharing::fitting(12, 7), Sharing::Whole);
        let wrong = [Sharing::Groups { of: 0 }, Sharing::Instances { count: 0 }];
        assert!(wrong.iter().all(|way| way.groups(3).is_err()));
        assert!(Sharing::Instances { count: 4 }.divide(3, &[]).is_err());
    }
}
