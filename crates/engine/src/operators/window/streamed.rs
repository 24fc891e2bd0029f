//! Window functions of partitions that need not fit in memory: sorted rows come in chunks, and a function needs of others a few rows
//! before and behind a chunk, its value at the row before it, or what is told [of the whole partition](super::whole).

use std::sync::Arc;

use arrow::datatypes::DataType;

use crate::error::{Error, Result, missing};
use crate::logical::relation::Function;
use crate::logical::window::{
    FrameBounds, FrameEdge, FrameExclusion, FrameRow, FrameUnits, WindowFold, WindowFunction,
    WindowPart,
};
use crate::operators::aggregate::accumulator::AccumulatedValues;
use crate::operators::aggregate::result::of_sums;
use crate::operators::window::Windows;
use crate::operators::window::carried::{Carried, first_of_last, follow, partition_end, whole_at};
use crate::operators::window::whole::{Ahead, Computing, Share, Whole};
use crate::vector::rows::Materialized;
use crate::vector::value::{Kind, Type, Values, Vector};

/// Most rows on either side of a chunk.
const MOST_AROUND: u64 = 1 << 16;

/// What a function needs of rows that are not in the chunk.
enum Needs {
    /// So many rows before and behind it.
    Around(u64, u64),
    /// Its value at the row before.
    Before(Carried),
    /// Its value for all rows of the partition, as it is put together of those of parts.
    Total(Carried),
    /// How many rows the partition has.
    Rows(Share),
}

/// Which part of a partition a frame is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    /// From the first row to this one, or the last of its peers.
    Running,
}

/// Which part of a partition a frame of `part` is; `None` if it is another, or leaves out rows.
fn extent(frame: &FrameBounds, part: &WindowPart) -> Option<Extent> {
    if frame.start != FrameEdge::First || frame.exclude != FrameExclusion::None {
        return None;
    }
    // Without an order all rows are peers.
    let all_peers = part.order == 0 && frame.units != FrameUnits::Rows;
    match frame.end {
        FrameEdge::Last => Some(Extent::Whole),
        FrameEdge::Current if all_peers => Some(Extent::Whole),
        FrameEdge::Current => Some(Extent::Running),
        _ => None,
    }
}

/// What `function` of `part` needs, whose values are of type `of`; `None` if that is all of its partition.
fn needs(function: &WindowFunction, part: &WindowPart, of: Option<&Type>) -> Option<Needs> {
    let own = match function {
        WindowFunction::RowNumber | WindowFunction::Rank => Needs::Before(Carried::Rows),
        WindowFunction::DenseRank => Needs::Before(Carried::Sum),
        WindowFunction::PercentRank => Needs::Rows(Share::PercentRank),
        WindowFunction::CumeDist => Needs::Rows(Share::CumeDist),
        WindowFunction::Ntile(buckets) => Needs::Rows(Share::Ntile(*buckets)),
        WindowFunction::Shift {
            ignore_nulls: true, ..
        }
        | WindowFunction::Value {
            ignore_nulls: true, ..
        } => return None,
        WindowFunction::Shift { rows, .. } => Needs::Around(
            u64::try_from(*rows).unwrap_or_default(),
            u64::try_from(rows.checked_neg()?).unwrap_or_default(),
        ),
        WindowFunction::Value { row, frame, .. } => match (extent(frame, part), row) {
            (Some(_), FrameRow::First) => Needs::Before(Carried::First),
            (Some(Extent::Running), FrameRow::Last) => Needs::Before(Carried::Alone),
            (Some(Extent::Whole), FrameRow::Last) => Needs::Total(Carried::Alone),
            (Some(_), FrameRow::Nth(_)) => return None,
            (None, _) => around(frame)?,
        },
        WindowFunction::Aggregate(function, frame) => match extent(frame, part) {
            Some(Extent::Running) => Needs::Before(put_together(*function, of)?),
            Some(Extent::Whole) => Needs::Total(put_together(*function, of)?),
            None => around(frame)?,
        },
    };
    match own {
        Needs::Around(before, behind) if before.max(behind) > MOST_AROUND => None,
        own => Some(own),
    }
}

/// How the values of an aggregate for two parts of the rows are put together; `None` if they cannot be.
fn put_together(function: Function, of: Option<&Type>) -> Option<Carried> {
    let is_number = of.is_some_and(|ty| matches!(ty.kind, Kind::Int | Kind::Wide | Kind::Float));
    match function {
        Function::Count => Some(Carried::Sum),
        Function::Sum if is_number => Some(Carried::Sum),
        Function::Min | Function::Max if is_number => Some(Carried::Extreme {
            least: function == Function::Min,
        }),
        _ => None,
    }
}

/// The rows before and behind a row that its frame reaches; `None` if that depends on values.
fn around(frame: &FrameBounds) -> Option<Needs> {
    let is_plain = matches!(
        frame.exclude,
        FrameExclusion::None | FrameExclusion::Current
    );
    if frame.units != FrameUnits::Rows || !is_plain {
        return None;
    }
    let (mut before, mut behind) = (0, 0);
    for edge in [frame.start, frame.end] {
        match edge {
            FrameEdge::Preceding(rows) => before = before.max(rows),
            FrameEdge::Following(rows) => behind = behind.max(rows),
            FrameEdge::Current => {}
            _ => return None,
        }
    }
    Some(Needs::Around(before, behind))
}

/// Functions that are computed chunk by chunk.
pub(crate) struct Streamed {
    /// With types for the sums and the counts that averages are made of.
    windows: Windows,
    parts: Vec<Part>,
    /// How many rows before a chunk are kept.
    pub before: usize,
    /// How many rows behind a chunk must be there, unless it is the last one.
    pub behind: usize,
    /// The keys in which all rows are equal that must be in one chunk; `None` if any rows may be the last.
    peers: Option<usize>,
}

/// Where the values of a function are found.
enum Place {
    Around(usize),
    Carried(usize),
    Total(usize),
    Share(usize),
    /// An average of type `ty`, of values with so many digits behind the point.
    Average {
        sum: Box<Place>,
        count: Box<Place>,
        ty: Type,
        scale: i8,
    },
}

/// The functions of a part, by what they need.
struct Part {
    around: WindowPart,
    carried: WindowPart,
    how: Vec<Carried>,
    whole: Whole,
    /// For each function of the part where its values are found.
    places: Vec<Place>,
    /// Rows of the last row's partition.
    rows: i64,
    /// The values of the carried functions at the last row.
    last: Vec<Option<Vector>>,
}

impl Part {
    fn of(part: &WindowPart, types: &mut Vec<Type>, reach: &mut (u64, u64)) -> Option<Part> {
        let none = WindowPart {
            functions: vec![],
            ..part.clone()
        };
        let mut own = Part {
            around: none.clone(),
            carried: none,
            how: vec![],
            whole: Whole::default(),
            places: vec![],
            rows: 0,
            last: vec![],
        };
        for fold in &part.functions {
            let place = match &fold.function {
                WindowFunction::Aggregate(Function::Avg, frame)
                    if extent(frame, part).is_some() =>
                {
                    own.average(fold, frame, part, types, reach)?
                }
                _ => own.add(fold.clone(), part, types, reach)?,
            };
            own.places.push(place);
        }
        own.last = vec![None; own.how.len()];
        Some(own)
    }

    /// Adds a function.
    fn add(
        &mut self,
        fold: WindowFold,
        part: &WindowPart,
        types: &[Type],
        reach: &mut (u64, u64),
    ) -> Option<Place> {
        let of = fold.arg.map(|arg| &types[arg]);
        Some(match needs(&fold.function, part, of)? {
            Needs::Around(before, behind) => {
                *reach = (reach.0.max(before), reach.1.max(behind));
                self.around.functions.push(fold);
                Place::Around(self.around.functions.len() - 1)
            }
            Needs::Before(how) => {
                self.how.push(how);
                self.carried.functions.push(fold);
                Place::Carried(self.how.len() - 1)
            }
            Needs::Total(how) => Place::Total(self.whole.total(fold, how)),
            Needs::Rows(share) => Place::Share(self.whole.share(fold, share)),
        })
    }

    /// Adds the sum and the count that an average is made of.
    fn average(
        &mut self,
        fold: &WindowFold,
        frame: &FrameBounds,
        part: &WindowPart,
        types: &mut Vec<Type>,
        reach: &mut (u64, u64),
    ) -> Option<Place> {
        let of = &types[fold.arg?];
        let scale = of.scale();
        let sum = match of.kind {
            Kind::Float => Type::of(&DataType::Float64, true)?,
            Kind::Int | Kind::Wide => Type {
                kind: Kind::Wide,
                ..Type::of(&DataType::Decimal128(38, scale), true)?
            },
            _ => return None,
        };
        let mut hidden = |function, ty| {
            types.push(ty);
            let fold = WindowFold {
                function: WindowFunction::Aggregate(function, *frame),
                var: types.len() - 1,
                ..fold.clone()
            };
            self.add(fold, part, types, reach).map(Box::new)
        };
        Some(Place::Average {
            sum: hidden(Function::Sum, sum)?,
            count: hidden(Function::Count, Type::of(&DataType::Int64, false)?)?,
            ty: types[fold.var].clone(),
            scale,
        })
    }

    /// Whether rows that are peers must be in one chunk.
    fn needs_peers(&self) -> bool {
        let mut carried = self.carried.functions.iter();
        carried.any(|fold| fold.function.needs_peers()) || self.whole.needs_peers()
    }

    /// The values of the functions that follow from those of the row before.
    fn carried(&mut self, windows: &Windows, chunk: &Computing<'_>) -> Result<Vec<Vector>> {
        let own = chunk.rows.part(chunk.from..chunk.end);
        let mut found = windows.compute(&self.carried, &own)?;
        for (place, how) in self.how.iter().enumerate() {
            if let (Some(before), 1..) = (&self.last[place], chunk.on) {
                let ty = &windows.types[self.carried.functions[place].var];
                let rows = (chunk.on, chunk.before);
                follow(*how, (&mut found[place], ty), before, rows)?;
            }
        }
        if own.rows > 0 {
            let last = own.rows - 1;
            let values = found.iter().map(|own| Some(own.run(last..last + 1)));
            self.last = values.collect();
        }
        Ok(found)
    }

    /// The values of all functions.
    fn compute(
        &mut self,
        windows: &Windows,
        rows: &Materialized,
        (from, end): (usize, usize),
        ahead: &mut Ahead<'_>,
    ) -> Result<Vec<Vector>> {
        let keys = windows.keys(rows, &windows.order[..self.carried.partition])?;
        let same = |a: usize, b: usize| keys.iter().all(|key| key.same(a, b));
        let goes_on = from > 0 && from < end && same(from - 1, from);
        let chunk = Computing {
            rows,
            from,
            end,
            on: if goes_on {
                partition_end(from, end, &same) - from
            } else {
                0
            },
            before: self.rows,
            last: if from < end {
                first_of_last(from, end, &same)
            } else {
                from
            },
        };
        let mut around = windows.compute(&self.around, rows)?;
        for own in &mut around {
            *own = own.run(from..end);
        }
        let carried = self.carried(windows, &chunk)?;
        let (totals, shares) = self.whole.compute(windows, &self.carried, &chunk, ahead)?;
        if end > from {
            let is_one = goes_on && chunk.last == from;
            let before = if is_one { self.rows } else { 0 };
            self.rows = before + (end - chunk.last) as i64;
        }
        let all = [&around, &carried, &totals, &shares];
        self.places.iter().map(|place| place.values(all)).collect()
    }
}

impl Place {
    /// The values there, of those around, carried, of whole partitions and of shares.
    fn values(&self, all: [&Vec<Vector>; 4]) -> Result<Vector> {
        let (of, number) = match self {
            Place::Around(number) => (0, number),
            Place::Carried(number) => (1, number),
            Place::Total(number) => (2, number),
            Place::Share(number) => (3, number),
            Place::Average {
                sum,
                count,
                ty,
                scale,
            } => return average(&sum.values(all)?, &count.values(all)?, ty, *scale),
        };
        all[of].get(*number).cloned().ok_or_else(missing)
    }
}

/// Averages of type `ty`, of sums and counts.
fn average(sums: &Vector, counts: &Vector, ty: &Type, scale: i8) -> Result<Vector> {
    let counts: Vec<i64> = (0..counts.len())
        .map(|row| whole_at(&counts.values, row) as i64)
        .collect();
    let sums = match &sums.values {
        Values::Float(sums) => AccumulatedValues::Float(sums),
        Values::Wide(sums) => AccumulatedValues::Wide(sums),
        _ => return Err(Error::internal("an average of such sums")),
    };
    of_sums(Function::Avg, sums, &counts, ty, scale)
}

impl Streamed {
    /// `None` if a function needs all rows of a partition at once.
    pub fn of(windows: &Windows) -> Option<Streamed> {
        let mut reach = (1, 0);
        let mut parts = Vec::with_capacity(windows.parts.len());
        let mut peers: Option<usize> = None;
        let mut types = windows.types.to_vec();
        for part in &windows.parts {
            let own = Part::of(part, &mut types, &mut reach)?;
            if own.needs_peers() {
                // Without an order all rows of a partition are peers.
                let keys = part.partition + part.order;
                if part.order == 0 {
                    return None;
                }
                peers = Some(peers.map_or(keys, |all| all.min(keys)));
            }
            parts.push(own);
        }
        Some(Streamed {
            windows: Windows {
                types: types.into(),
                order: windows.order.clone(),
                parts: vec![],
                aggregates: Arc::clone(&windows.aggregates),
                budget: Arc::clone(&windows.budget),
                stop: windows.stop.clone(),
            },
            parts,
            before: usize::try_from(reach.0).ok()?,
            behind: usize::try_from(reach.1).ok()?,
            peers,
        })
    }

    /// Where the chunk may end of which `rows` has the rows from `from` on, with what was kept before it; `from` if more rows must
    /// be there.
    pub fn end(&self, rows: &Materialized, from: usize, is_last: bool) -> Result<usize> {
        if is_last {
            return Ok(rows.rows);
        }
        let end = rows.rows.saturating_sub(self.behind).max(from);
        let Some(peers) = self.peers else {
            return Ok(end);
        };
        if end == from || end == 0 {
            return Ok(from);
        }
        let keys = self.windows.keys(rows, &self.windows.order[..peers])?;
        let same = |a: usize, b: usize| keys.iter().all(|key| key.same(a, b));
        // The first of the rows that are the peers of the last one.
        Ok(first_of_last(from, end, &same))
    }

    /// The results of all functions for the rows `from..end` of `rows`, of which those before were computed already. The rows
    /// behind them can be read `ahead`.
    ///
    /// # Errors
    /// Those of [`Windows::compute`], and of reading.
    pub fn compute(
        &mut self,
        rows: &Materialized,
        (from, end): (usize, usize),
        ahead: &mut Ahead<'_>,
    ) -> Result<Vec<Vector>> {
        let mut all = Vec::new();
        for part in &mut self.parts {
            all.extend(part.compute(&self.windows, rows, (from, end), ahead)?);
        }
        Ok(all)
    }
}
