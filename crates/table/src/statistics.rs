//! What is known of a column without reading it: for the planner.

use crate::block::{Encoding, Zone};
use crate::catalog::Body;

/// Facts about one column of one table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnStatistics {
    /// Covers every value (it may be wider after deletes); `None` for texts, and where a part is
    /// not known.
    pub zone: Option<Zone>,
    /// Rows that are NULL, deleted ones included, the tail apart.
    pub nulls: u64,
    /// An upper estimate of the different values.
    pub distinct: Option<u64>,
}

impl ColumnStatistics {
    pub(crate) fn of(body: &Body, column: usize) -> ColumnStatistics {
        let mut nulls = 0;
        let mut zone: Option<Zone> = None;
        let mut known = body.tail.is_empty() && !body.blocks.is_empty();
        let mut coded = known;
        let mut rows = 0;
        for block in &body.blocks {
            let matrix = &block.value.columns[column];
            rows += u64::from(block.value.rows - matrix.nulls);
            nulls += u64::from(matrix.nulls);
            if matrix.nulls == block.value.rows {
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
        let labels = body.dictionaries[column]
            .record
            .as_ref()
            .map(|r| u64::from(r.labels));
        let distinct = match zone {
            Some(Zone::Int { min, max }) => Some(
                rows.min(
                    u64::try_from(max - min)
                        .unwrap_or(u64::MAX)
                        .saturating_add(1),
                ),
            ),
            _ => labels.filter(|_| coded).map(|l| l.min(rows)),
        };
        ColumnStatistics {
            zone,
            nulls,
            distinct,
        }
    }
}
