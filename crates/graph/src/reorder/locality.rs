//! How far apart neighbours lie.

/// What an order is worth, measured on the lists of the vertices that edges lead to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Locality {
    /// Mean difference of the numbers of the two vertices of an edge.
    pub gap: f64,
    /// Mean number of pages that hold the offsets of the neighbours of a vertex that has any: what a
    /// search from it reads next, if it has not read it before.
    pub pages: f64,
}

/// Sees the entries of the lists, each list after the other.
#[derive(Debug)]
pub(crate) struct Meter {
    /// Logarithm of the offsets on a page.
    shift: u32,
    gaps: u64,
    entries: u64,
    lists: u64,
    pages: u64,
    last: Option<(u32, u32)>,
}

impl Meter {
    pub fn new(shift: u32) -> Meter {
        Meter {
            shift,
            gaps: 0,
            entries: 0,
            lists: 0,
            pages: 0,
            last: None,
        }
    }

    #[inline]
    pub fn see(&mut self, vertex: u32, neighbour: u32) {
        self.gaps = self
            .gaps
            .saturating_add(u64::from(vertex.abs_diff(neighbour)));
        self.entries += 1;
        // Within a list neighbours rise, and so do their pages.
        let page = neighbour >> self.shift;
        if self.last != Some((vertex, page)) {
            self.lists += u64::from(self.last.is_none_or(|(last, _)| last != vertex));
            self.pages += 1;
            self.last = Some((vertex, page));
        }
    }

    pub fn locality(&self) -> Locality {
        let mean = |sum: u64, count: u64| sum as f64 / count.max(1) as f64;
        Locality {
            gap: mean(self.gaps, self.entries),
            pages: mean(self.pages, self.lists),
        }
    }
}
