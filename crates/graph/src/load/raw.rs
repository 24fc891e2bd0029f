//! The edges of a file as they were read, until all ids are known: in memory as far as they fit.

use crate::error::Result;
use crate::load::parse::Edge;
use crate::sort::spool::{Extent, Spill, Spool};

/// Least and most bytes of a chunk.
const CHUNK: std::ops::RangeInclusive<usize> = 4 << 10..=1 << 20;

/// Edges in the order of the file: two ids in a word as long as they fit, one in each after that, and the weight in
/// another.
#[derive(Debug)]
pub(crate) struct Raw {
    weighted: bool,
    wide: bool,
    /// Words of a chunk.
    words: usize,
    current: Vec<u64>,
    chunks: Vec<Chunk>,
    /// Bytes that may yet be kept in memory.
    room: usize,
    spool: Spool,
    edges: u64,
}

#[derive(Debug)]
struct Chunk {
    wide: bool,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Memory(Vec<u64>),
    Spool(Extent),
}

impl Raw {
    pub fn new(spill: &Spill, memory: u64, weighted: bool) -> Raw {
        let room = usize::try_from(memory).unwrap_or(usize::MAX);
        let bytes = (room / 4).clamp(*CHUNK.start(), *CHUNK.end());
        Raw {
            weighted,
            wide: false,
            words: bytes / 8,
            current: Vec::new(),
            chunks: Vec::new(),
            room,
            spool: Spool::new(spill),
            edges: 0,
        }
    }

    /// How many edges there are.
    pub fn len(&self) -> u64 {
        self.edges
    }

    #[inline]
    pub fn push(&mut self, edge: Edge) -> Result<()> {
        let large = (edge.from | edge.to) >> 32 != 0;
        if self.current.len() + 3 > self.words || (large && !self.wide) {
            self.seal()?;
            self.wide |= large;
        }
        if self.wide {
            self.current.extend_from_slice(&[edge.from, edge.to])
        } else {
            self.current.push(edge.from << 32 | edge.to)
        }
        if self.weighted {
            self.current.push(edge.weight.to_bits());
        }
        self.edges += 1;
        Ok(())
    }

    /// Puts the present chunk away.
    #[cold]
    fn seal(&mut self) -> Result<()> {
        let bytes = 8 * self.words;
        let place = if self.current.is_empty() {
            self.current.reserve_exact(self.words);
            return Ok(());
        } else if self.room >= bytes {
            self.room -= bytes;
            let next = Vec::with_capacity(self.words);
            Place::Memory(std::mem::replace(&mut self.current, next))
        } else {
            let extent = self.spool.write(bytemuck::cast_slice(&self.current))?;
            self.current.clear();
            Place::Spool(extent)
        };
        self.chunks.push(Chunk {
            wide: self.wide,
            place,
        });
        Ok(())
    }

    /// Gives each edge to `sink`, and tells `between` after each chunk how many it was.
    pub fn drain(
        mut self,
        mut sink: impl FnMut(u64, u64, u64) -> Result<()>,
        mut between: impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        self.seal()?;
        let (mut read, mut done) = (Vec::new(), 0);
        for chunk in std::mem::take(&mut self.chunks) {
            let words = match chunk.place {
                Place::Memory(words) => words,
                Place::Spool(extent) => {
                    read.resize(extent.bytes / 8, 0);
                    self.spool
                        .read(&extent, bytemuck::cast_slice_mut(&mut read))?;
                    std::mem::take(&mut read)
                }
            };
            let width = 1 + usize::from(chunk.wide) + usize::from(self.weighted);
            for edge in words.chunks_exact(width) {
                let (from, to) = if chunk.wide {
                    (edge[0], edge[1])
                } else {
                    (edge[0] >> 32, edge[0] & u64::from(u32::MAX))
                };
                let weight = if self.weighted { edge[width - 1] } else { 0 };
                sink(from, to, weight)?;
            }
            done += (words.len() / width) as u64;
            read = words;
            between(done)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_put_there_comes_back(
            edges in prop::collection::vec((0..9_u64, prop_oneof![9 => 0..9_u64, 1 => any::<u64>()], -1e9..1e9), 0..3000),
            weighted: bool,
            memory in 0..20_000_u64,
        ) {
            let mut raw = Raw::new(&Spill::default(), memory, weighted);
            for &(from, to, weight) in &edges {
                raw.push(Edge { from, to, weight }).unwrap();
            }
            prop_assert_eq!(raw.len(), edges.len() as u64);
            let (mut back, mut told) = (Vec::new(), 0);
            let sink = |from, to, weight| {
                back.push((from, to, f64::from_bits(weight)));
                Ok(())
            };
            raw.drain(sink, |done| { told = done; Ok(()) }).unwrap();
            let weight = |weight| if weighted { weight } else { 0.0 };
            let expected: Vec<_> = edges.iter().map(|&(a, b, w)| (a, b, weight(w))).collect();
            prop_assert_eq!(back, expected);
            prop_assert_eq!(told, edges.len() as u64);
        }
    }
}
