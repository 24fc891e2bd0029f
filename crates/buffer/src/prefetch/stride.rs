//! Pages at a constant distance.

use crate::page::PageId;
use crate::prefetch::prefetcher::{Outcome, Prefetcher, pages};

/// Streams that are told apart.
const STREAMS: usize = 8;
/// The longest distance between two pages of a stream.
const FAR: i64 = 1024;
/// Times that a distance must be met before pages are named.
const SURE: u32 = 2;
/// Pages named ahead, as far as the pool allows so many.
const DEGREE: u32 = 8;

/// Tells apart up to eight streams, each of pages at a constant distance from each other, forwards
/// or backwards. A page belongs to the stream that expects it, else to the one whose last page is
/// nearest, else it begins a new one in place of the one that was used longest ago.
#[derive(Debug)]
pub struct Strides {
    degree: u32,
    /// The one used last comes first.
    streams: Vec<Stream>,
}

#[derive(Debug, Clone, Copy)]
struct Stream {
    last: PageId,
    /// The distance of the last two pages; 0 before there were two.
    stride: i64,
    /// How often that distance was met, one after the other.
    met: u32,
    /// Pages named after `last`.
    named: u32,
}

impl Strides {
    /// A prefetcher that names at most `most` pages at once, at least 1.
    pub fn new(most: u32) -> Strides {
        Strides {
            degree: DEGREE.min(most).max(1),
            streams: Vec::with_capacity(STREAMS),
        }
    }

    /// The stream that a page belongs to, which is then the first.
    fn stream(&mut self, page: PageId) -> &mut Stream {
        let from = |stream: &Stream| i64::from(page) - i64::from(stream.last);
        let expected = |stream: &Stream| stream.stride != 0 && from(stream) == stream.stride;
        let at = self.streams.iter().position(expected).or_else(|| {
            let near = self.streams.iter().enumerate();
            let near = near.map(|(at, stream)| (from(stream).abs(), at));
            let nearest = near.filter(|&(distance, _)| distance <= FAR).min();
            nearest.map(|(_, at)| at)
        });
        match at {
            // Two that alternate keep their places: only what comes from far behind moves.
            Some(at) => self.streams[..=at].rotate_right(1),
            None => {
                self.streams.truncate(STREAMS - 1);
                let new = Stream {
                    last: page,
                    stride: 0,
                    met: 0,
                    named: 0,
                };
                self.streams.insert(0, new);
            }
        }
        &mut self.streams[0]
    }
}

impl Prefetcher for Strides {
    fn accessed(&mut self, page: PageId, _: Outcome, wanted: &mut Vec<PageId>) {
        let degree = self.degree;
        let stream = self.stream(page);
        let stride = i64::from(page) - i64::from(stream.last);
        if stride == 0 {
            return;
        }
        stream.last = page;
        if stride != stream.stride {
            (stream.stride, stream.met, stream.named) = (stride, 1, 0);
            return;
        }
        stream.met = stream.met.saturating_add(1);
        stream.named = stream.named.saturating_sub(1);
        if stream.met >= SURE && stream.named <= degree / 2 {
            let first = i64::from(page) + stride * i64::from(stream.named + 1);
            if let Ok(first) = PageId::try_from(first) {
                wanted.extend(pages(first, stride, degree - stream.named));
            }
            stream.named = degree;
        }
    }
}
