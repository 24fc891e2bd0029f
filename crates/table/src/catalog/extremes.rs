//! The least and the greatest value of a column, as far as zone maps tell them.

use crate::catalog::table::Table;
use crate::format::block::Zone;

/// What is known of the least and the greatest value of a column of whole numbers without reading a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extremes {
    /// A row of the table has the one, and another or the same has the other.
    pub bounds: (i128, i128),
    /// Whether no row has a value that is less or greater.
    pub whole: bool,
}

impl Table {
    /// The extremes of a column of whole numbers. Blocks of which no row was deleted give them; none if there is no value in
    /// those, or they are of other values.
    ///
    /// Rows of the tail, and those of blocks of which some rows were deleted, may have values beyond.
    pub fn extremes(&self, column: usize) -> Option<Extremes> {
        let body = &self.body;
        let mut bounds: Option<(i128, i128)> = None;
        let mut unsure = Vec::new();
        for block in &body.blocks {
            let matrix = &block.value.columns[column];
            if matrix.nulls == block.value.rows {
                continue;
            }
            let Some(Zone::Int { min, max }) = matrix.zone else {
                return None;
            };
            // Where a zone ends as 128 bits do, there may be numbers beyond.
            if min == i128::MIN || max == i128::MAX {
                return None;
            }
            if body.deleted.contains_key(&block.key) {
                unsure.push((min, max));
            } else {
                let (least, greatest) = bounds.unwrap_or((min, max));
                bounds = Some((least.min(min), greatest.max(max)));
            }
        }
        let bounds = bounds?;
        let within = |(min, max): &(i128, i128)| bounds.0 <= *min && *max <= bounds.1;
        Some(Extremes {
            bounds,
            whole: self.chosen.is_none() && body.tail.is_empty() && unsure.iter().all(within),
        })
    }
}
