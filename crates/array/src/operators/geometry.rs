//! Which cells of a part of an array belong to which group, and going through them in row-major order.

use crate::data::region::Region;

/// How the positions along a dimension are divided into groups.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Along {
    pub start: u64,
    pub end: u64,
    /// So many cells become one, counted from position 0.
    pub cells: u64,
    /// The groups from one to the next; 0 where all positions are of one.
    pub step: usize,
}

impl Along {
    /// How many positions it has.
    pub fn length(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// How much a position adds to the number of a group.
    pub fn group(&self, position: u64) -> usize {
        let number = match self.cells {
            _ if self.step == 0 => 0,
            1 => position - self.start,
            cells => position / cells - self.start / cells,
        };
        number as usize * self.step
    }

    /// The cells of each group, in order.
    fn counts(&self) -> impl Iterator<Item = u64> + use<> {
        let (start, end, cells) = (self.start, self.end, self.cells);
        (start / cells..end.div_ceil(cells))
            .map(move |at| end.min((at + 1) * cells) - start.max(at * cells))
    }
}

/// Which cells of a part of an array belong to which group.
#[derive(Debug, Clone)]
pub(crate) struct Geometry {
    /// The dimensions outside of the rows, outermost first.
    pub outer: Vec<Along>,
    /// The row.
    pub row: Along,
    pub counts: Vec<u64>,
    /// Groups along a row.
    pub abreast: usize,
    /// Whether rows are joined with each other before the cells within them are.
    pub upright: bool,
}

impl Geometry {
    /// Of a part of an array, whose dimensions `kept` give the groups, the last of them those side by side: the number
    /// of each, and how many of its cells become one.
    pub fn new(part: &Region, kept: &[(usize, u64)]) -> Geometry {
        let along = |&(start, end): &(u64, u64)| Along {
            start,
            end,
            cells: 1,
            step: 0,
        };
        let mut all: Vec<Along> = part.ranges().iter().map(along).collect();
        let mut groups = 1;
        for &(at, cells) in kept.iter().rev() {
            all[at].cells = cells;
            all[at].step = groups;
            groups *= all[at].counts().count();
        }
        let lost = (0..part.rank()).filter(|&at| all[at].step == 0);
        let mut counts = vec![lost.map(|at| part.length(at)).product::<u64>()];
        for &(at, _) in kept {
            let of_each = counts
                .iter()
                .flat_map(|&count| all[at].counts().map(move |n| count * n));
            counts = of_each.collect();
        }
        let Some(mut row) = all.pop() else {
            return Geometry::nothing();
        };
        // The outermost dimension stays, so that it may be cut.
        while let Some(&next) = all.get(1).and_then(|_| all.last()) {
            let merged = match (next.step, row.step) {
                (0, 0) => true,
                (outer, inner) => {
                    inner > 0 && next.cells == 1 && row.cells == 1 && outer == row.length() * inner
                }
            };
            if !merged {
                break;
            }
            row = Along {
                start: 0,
                end: (next.length() * row.length()) as u64,
                ..row
            };
            all.pop();
        }
        Geometry {
            abreast: row.counts().count(),
            upright: row.cells > 1 && all.iter().any(|of| of.cells > 1),
            outer: all,
            row,
            counts,
        }
    }

    fn nothing() -> Geometry {
        let row = Along {
            start: 0,
            end: 0,
            cells: 1,
            step: 0,
        };
        Geometry {
            outer: Vec::new(),
            row,
            counts: vec![0],
            abreast: 0,
            upright: false,
        }
    }

    /// How many groups there are.
    pub fn groups(&self) -> usize {
        self.counts.len()
    }
}

/// How far the cells of a part were seen, in row-major order.
#[derive(Debug, Clone)]
pub(crate) struct Cursor {
    position: Vec<u64>,
    /// What each position adds to the number of the group, and all of them together.
    groups: Vec<usize>,
    pub group: usize,
    /// Cells of the row that were seen.
    pub offset: usize,
}

impl Cursor {
    /// Stands on the first cell.
    pub fn new(of: &Geometry) -> Cursor {
        Cursor {
            position: of.outer.iter().map(|of| of.start).collect(),
            groups: vec![0; of.outer.len()],
            group: 0,
            offset: 0,
        }
    }

    /// Goes on by cells of the row, and to the next at its end.
    #[inline(always)]
    pub fn advance(&mut self, of: &Geometry, cells: usize) {
        self.offset += cells;
        if self.offset < of.row.length() {
            return;
        }
        self.offset = 0;
        for (at, of) in of.outer.iter().enumerate().rev() {
            self.position[at] += 1;
            let around = self.position[at] == of.end;
            if around {
                self.position[at] = of.start;
            }
            let before = std::mem::replace(&mut self.groups[at], of.group(self.position[at]));
            self.group = self.group + self.groups[at] - before;
            if !around {
                break;
            }
        }
    }
}
