//! From the values of a key to the row of the parent that has them.

use std::sync::Arc;

use arrow::datatypes::DataType;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::block::{Matrix, Zone};
use crate::catalog::Table;
use crate::decode::{Rows, Tally, numbers};
use crate::error::{Error, Result};
use crate::lane::Lane;
use crate::mask::Mask;
use crate::tail::RowId;

/// A vector with a slot per possible key is used up to this many slots per row of the parent;
/// beyond, a hash map takes less memory.
const SLOTS_PER_ROW: u128 = 8;

/// No row: block rows have ids below 2^48.
const VACANT: u64 = u64::MAX;

/// The rows of a parent by its key.
#[derive(Debug)]
pub(crate) enum Lookup {
    /// The row id is key + `offset` for every key from `min` to `max`; there are no others.
    Affine { offset: i128, min: i128, max: i128 },
    /// Anything else.
    Slots(Packing, Slots),
}

/// Row ids by packed key.
#[derive(Debug)]
pub(crate) enum Slots {
    /// At the position of the key; [`VACANT`] where there is none.
    Direct(Vec<u64>),
    /// A few of many possible keys.
    Sparse(HashMap<u128, u64>),
}

/// Columns of whole numbers into one number, in a mixed radix that their ranges give.
#[derive(Debug)]
pub(crate) struct Packing {
    digits: Vec<Digit>,
    /// The greatest packed key. Invariant: packing never exceeds it, so never overflows.
    greatest: u128,
}

#[derive(Debug)]
struct Digit {
    min: i128,
    span: u128,
    stride: u128,
}

/// Keys of one block.
#[derive(Debug)]
pub(crate) struct Keys {
    /// The values, column by column.
    pub values: Vec<Vec<i128>>,
    /// Rows that are not deleted and have a NULL in none of the columns.
    pub live: Mask,
}

impl Packing {
    /// From least and greatest value of each column; `None` if packed keys can exceed 128 bits.
    fn new(ranges: &[(i128, i128)]) -> Option<Packing> {
        let (mut digits, mut greatest) = (Vec::with_capacity(ranges.len()), 0u128);
        for (position, (min, max)) in ranges.iter().enumerate() {
            let stride = match position {
                0 => 1,
                _ => greatest.checked_add(1)?,
            };
            let span = max.wrapping_sub(*min) as u128;
            greatest = span.checked_mul(stride)?.checked_add(greatest)?;
            digits.push(Digit {
                min: *min,
                span,
                stride,
            });
        }
        Some(Packing { digits, greatest })
    }

    /// The packed key of a row; `None` if a value is outside the ranges.
    fn pack(&self, columns: &[Vec<i128>], row: usize) -> Option<u128> {
        let mut packed = 0;
        for (digit, column) in self.digits.iter().zip(columns) {
            let value = column[row];
            let distance = value.wrapping_sub(digit.min) as u128;
            if value < digit.min || distance > digit.span {
                return None;
            }
            packed += distance * digit.stride;
        }
        Some(packed)
    }
}

impl Slots {
    fn new(greatest: u128, rows: u64) -> Slots {
        match usize::try_from(greatest) {
            Ok(last) if greatest < SLOTS_PER_ROW * u128::from(rows) => {
                Slots::Direct(vec![VACANT; last + 1])
            }
            _ => Slots::Sparse(HashMap::with_capacity(rows as usize)),
        }
    }

    /// Notes a row; false if its key has one already.
    fn insert(&mut self, packed: u128, id: u64) -> bool {
        match self {
            Slots::Direct(slots) => std::mem::replace(&mut slots[packed as usize], id) == VACANT,
            Slots::Sparse(map) => match map.entry(packed) {
                Entry::Occupied(_) => false,
                Entry::Vacant(entry) => {
                    entry.insert(id);
                    true
                }
            },
        }
    }

    fn get(&self, packed: u128) -> Option<u64> {
        match self {
            // A position beyond `usize` is beyond the vector, too.
            Slots::Direct(slots) => {
                let slot = slots.get(usize::try_from(packed).ok()?).copied();
                slot.filter(|id| *id != VACANT)
            }
            Slots::Sparse(map) => map.get(&packed).copied(),
        }
    }
}

impl Lookup {
    /// The rows of `parent` by the values of `columns`, which are of whole numbers; or why there
    /// can be no such lookup.
    pub(crate) async fn of(
        parent: &Arc<Table>,
        columns: &[usize],
    ) -> Result<std::result::Result<Lookup, String>> {
        let name = &parent.definition().name;
        if parent.tail_rows() > 0 {
            let rows = parent.tail_rows();
            return Ok(Err(format!(
                "'{name}' has {rows} rows in its tail, whose places are not final"
            )));
        }
        let ranges = columns.iter().map(|c| match parent.statistics(*c).zone {
            Some(Zone::Int { min, max }) => (min, max),
            // Not one value that is not NULL: nothing will be packed.
            _ => (0, 0),
        });
        let Some(packing) = Packing::new(&ranges.collect::<Vec<_>>()) else {
            return Ok(Err(format!(
                "the values of the key of '{name}' range over more than 128 bits"
            )));
        };
        let mut slots = Slots::new(packing.greatest, parent.rows());
        let mut line = Line::default();
        for block in 0..parent.blocks() {
            let keys = keys(
                &hold(parent, block, columns).await?,
                parent,
                block,
                &mut |_, _| {},
            )?;
            for row in keys.live.positions() {
                let packed = packing.pack(&keys.values, row as usize);
                let packed = packed.ok_or_else(|| Error::Damaged {
                    table: name.clone(),
                    what: "the range of a key column".to_owned(),
                })?;
                let id = RowId::Block {
                    key: parent.body.blocks[block].key,
                    row: row as u16,
                };
                if !slots.insert(packed, id.number()) {
                    let value = keys.values.iter().map(|c| c[row as usize].to_string());
                    let value = value.collect::<Vec<_>>().join(", ");
                    return Ok(Err(format!(
                        "'{name}' has the key ({value}) more than once"
                    )));
                }
                line.add(keys.values[0][row as usize], id.number());
            }
        }
        Ok(Ok(match line.close() {
            Some(affine) if columns.len() == 1 => affine,
            _ => Lookup::Slots(packing, slots),
        }))
    }

    /// The row id of the parent's row with the key of `row`.
    pub(crate) fn find(&self, columns: &[Vec<i128>], row: usize) -> Option<u64> {
        match self {
            Lookup::Affine { offset, min, max } => {
                let key = columns[0][row];
                (*min <= key && key <= *max).then(|| (key + offset) as u64)
            }
            Lookup::Slots(packing, slots) => slots.get(packing.pack(columns, row)?),
        }
    }
}

/// Whether row ids follow their keys at a constant distance, without gaps.
#[derive(Debug, Default)]
struct Line {
    rows: u64,
    offset: i128,
    min: i128,
    max: i128,
    bent: bool,
}

impl Line {
    fn add(&mut self, key: i128, id: u64) {
        if self.rows == 0 {
            (self.min, self.max) = (key, key);
            self.offset = i128::from(id).wrapping_sub(key);
        }
        self.bent |= key.checked_add(self.offset) != Some(i128::from(id));
        (self.min, self.max) = (self.min.min(key), self.max.max(key));
        self.rows += 1;
    }

    /// Keys are known to differ, so as many rows as possible keys means that there is no gap.
    fn close(self) -> Option<Lookup> {
        let gaps = self.max.checked_sub(self.min)? != i128::from(self.rows) - 1;
        let Line {
            offset, min, max, ..
        } = self;
        (!self.bent && !gaps).then_some(Lookup::Affine { offset, min, max })
    }
}

/// Whether equal stored numbers of two types mean equal values.
pub(crate) fn comparable(a: &DataType, b: &DataType) -> bool {
    use DataType::*;
    match (a, b) {
        (Decimal128(_, a), Decimal128(_, b)) => a == b,
        (Boolean | Date32 | Time32(_) | Time64(_) | Timestamp(_, _), _) => a == b,
        _ => a.is_integer() && b.is_integer(),
    }
}

/// Pins the pages of some columns of a block.
pub(crate) async fn hold<'t>(
    table: &'t Table,
    block: usize,
    columns: &[usize],
) -> Result<Vec<Lane<'t>>> {
    let block = table.block(block);
    let mut lanes = Vec::with_capacity(columns.len());
    for column in columns {
        lanes.push(hold_matrix(table, &block.columns[*column], block.rows).await?);
    }
    Ok(lanes)
}

/// Pins the pages of a matrix of `rows` rows.
pub(crate) async fn hold_matrix<'t>(
    table: &'t Table,
    matrix: &'t Matrix,
    rows: u32,
) -> Result<Lane<'t>> {
    let pool = table.snapshot().pool();
    let mut lane = Lane::new(&table.body.definition.name, pool, matrix, rows);
    let all = Mask::all(rows as usize);
    let missing = lane.missing(&all);
    if missing.len() > 1 {
        pool.prefetch(&missing);
    }
    lane.hold(&all).await?;
    Ok(lane)
}

/// Decodes what [`hold`] pinned.
pub(crate) fn keys(
    lanes: &[Lane<'_>],
    table: &Table,
    block: usize,
    tally: &mut Tally<'_>,
) -> Result<Keys> {
    let rows = table.block(block).rows as usize;
    let mut live = Mask::all(rows);
    if let Some(deleted) = table.body.deleted.get(&table.body.blocks[block].key) {
        for row in deleted.value.iter() {
            live.set(row as usize, false);
        }
    }
    let mut values = Vec::with_capacity(lanes.len());
    for lane in lanes {
        values.push(numbers::<i128>(lane, &Rows::Run(0..rows), tally)?);
        if lane.all_null() {
            live = Mask::none(rows);
        } else if let Some(valid) = lane.validity() {
            live.and_bytes(valid);
        }
    }
    Ok(Keys { values, live })
}
