//! What is known of a column without reading it: for the planner.

use crate::format::block::{Block, Encoding, Zone};

/// Facts about one column of one table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnStatistics {
    /// A range that all values are in; after deletes it may be wider than need be. `None` for texts,
    /// for floats with a NaN, and while there are rows in the tail.
    pub zone: Option<Zone>,
    /// The number of NULLs in blocks. Deleted rows count, those of the tail do not.
    pub nulls: u64,
    /// An upper bound of the number of distinct values; `None` if nothing is known.
    pub distinct: Option<u64>,
}

impl ColumnStatistics {
    /// From all blocks of the table. `labels` is the size of the column's dictionary; `complete`
    /// tells that there are no rows outside the blocks.
    pub(crate) fn of<'b>(
        blocks: impl ExactSizeIterator<Item = &'b Block>,
        column: usize,
        labels: Option<u32>,
        complete: bool,
    ) -> ColumnStatistics {
        let mut nulls = 0;
        let mut zone: Option<Zone> = None;
        let mut known = complete && blocks.len() > 0;
        let mut coded = known;
        let mut rows = 0;
        for block in blocks {
            let matrix = &block.columns[column];
            rows += u64::from(block.rows - matrix.nulls);
            nulls += u64::from(matrix.nulls);
            if matrix.nulls == block.rows {
                continue;
            }
            coded &= matches!(matrix.encoding, Encoding::Code { .. });
            zone = match (zone, matrix.zone) {
                (_, None) => {
                    known = false;
                    None
                }
                (None, some) => some,
                (Some(a), Some(b)) => a.join(b),
            };
        }
        let zone = zone.filter(|_| known);
        let distinct = match zone {
            // One that ends where 128 bits do may be of numbers beyond.
            Some(Zone::Int {
                min: i128::MIN,
                max: _,
            })
            | Some(Zone::Int {
                min: _,
                max: i128::MAX,
            }) => None,
            Some(Zone::Int { min, max }) => {
                let span = u64::try_from(max.saturating_sub(min)).unwrap_or(u64::MAX);
                Some(rows.min(span.saturating_add(1)))
            }
            _ => labels.filter(|_| coded).map(|l| rows.min(l.into())),
        };
        ColumnStatistics {
            zone,
            nulls,
            distinct,
        }
    }
}
