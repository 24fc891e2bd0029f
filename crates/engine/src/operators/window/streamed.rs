//! Window functions of partitions that need not fit in memory: sorted rows come in chunks, and a function needs of others either a
//! few rows before and behind a chunk, or its value at the row before it.

use crate::error::{Error, Result, missing};
use crate::logical::relation::Function;
use crate::logical::window::{
    FrameBounds, FrameEdge, FrameExclusion, FrameRow, FrameUnits, WindowFunction, WindowPart,
};
use crate::operators::aggregate::accumulator::AccumulatedValues;
use crate::operators::aggregate::result::of_sums;
use crate::operators::window::Windows;
use crate::operators::window::cells::compare_floats;
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
}

/// How the value at a row follows from that of the last row of the chunk before, if it is in the same partition, and the one that the
/// chunk alone gives.
#[derive(Clone, Copy)]
enum Carried {
    /// It is the one of the chunk.
    Alone,
    /// It is the one before, as long as the partition goes on.
    First,
    /// So many rows as the partition had before are added.
    Rows,
    /// The sum of both.
    Sum,
    /// The lesser or the greater of both.
    Extreme { least: bool },
}

/// What `function` of values of type `of` needs; `None` if that is all of its partition.
fn needs(function: &WindowFunction, of: Option<&Type>) -> Option<Needs> {
    let running = |frame: &FrameBounds| {
        let from_first = frame.start == FrameEdge::First && frame.end == FrameEdge::Current;
        from_first && frame.exclude == FrameExclusion::None
    };
    let own = match function {
        WindowFunction::RowNumber | WindowFunction::Rank => Needs::Before(Carried::Rows),
        WindowFunction::DenseRank => Needs::Before(Carried::Sum),
        WindowFunction::Shift {
            rows,
            ignore_nulls: false,
            ..
        } => Needs::Around(
            u64::try_from(*rows).unwrap_or_default(),
            u64::try_from(rows.checked_neg()?).unwrap_or_default(),
        ),
        WindowFunction::Value {
            row,
            frame,
            ignore_nulls: false,
        } if running(frame) => match row {
            FrameRow::First => Needs::Before(Carried::First),
            FrameRow::Last => Needs::Before(Carried::Alone),
            FrameRow::Nth(_) => return None,
        },
        WindowFunction::Aggregate(function, frame) if running(frame) => {
            let is_number =
                of.is_some_and(|ty| matches!(ty.kind, Kind::Int | Kind::Wide | Kind::Float));
            Needs::Before(match function {
                Function::Count => Carried::Sum,
                Function::Sum if is_number => Carried::Sum,
                Function::Min | Function::Max if is_number => Carried::Extreme {
                    least: *function == Function::Min,
                },
                _ => return None,
            })
        }
        WindowFunction::Value {
            frame,
            ignore_nulls: false,
            ..
        }
        | WindowFunction::Aggregate(_, frame) => {
            let (before, behind) = around(frame)?;
            Needs::Around(before, behind)
        }
        _ => return None,
    };
    match own {
        Needs::Around(before, behind) if before.max(behind) > MOST_AROUND => None,
        own => Some(own),
    }
}

/// How many rows before and behind a row its frame reaches; `None` if that depends on values.
fn around(frame: &FrameBounds) -> Option<(u64, u64)> {
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
    Some((before, behind))
}

/// Functions that are computed chunk by chunk.
pub(crate) struct Streamed<'w> {
    windows: &'w Windows,
    /// The functions of each part by what they need: those of rows around, and those of the row before, each with its place in the part.
    parts: Vec<Halves>,
    /// How many rows before a chunk are kept.
    pub before: usize,
    /// How many rows behind a chunk must be there, unless it is the last one.
    pub behind: usize,
    /// The keys in which all rows are equal that must be in one chunk; `None` if any rows may be the last.
    peers: Option<usize>,
}

/// The functions of a part.
struct Halves {
    around: WindowPart,
    carried: WindowPart,
    /// For each function of the part whether it is carried, how, and its place among the others of its kind.
    places: Vec<(Option<Carried>, usize)>,
    /// Rows of the last row's partition.
    rows: i64,
    /// The values of the carried functions at the last row.
    last: Vec<Option<Vector>>,
}

impl Halves {
    fn of(part: &WindowPart, windows: &Windows, reach: &mut (u64, u64)) -> Option<Halves> {
        let none = |functions| WindowPart {
            functions,
            ..part.clone()
        };
        let (mut around, mut carried, mut places) = (vec![], vec![], vec![]);
        for fold in &part.functions {
            let of = fold.arg.map(|arg| &windows.types[arg]);
            match needs(&fold.function, of)? {
                Needs::Around(before, behind) => {
                    *reach = (reach.0.max(before), reach.1.max(behind));
                    places.push((None, around.len()));
                    around.push(fold.clone());
                }
                Needs::Before(how) => {
                    places.push((Some(how), carried.len()));
                    carried.push(fold.clone());
                }
            }
        }
        Some(Halves {
            last: vec![None; carried.len()],
            around: none(around),
            carried: none(carried),
            places,
            rows: 0,
        })
    }
}

impl<'w> Streamed<'w> {
    /// `None` if a function needs all rows of a partition at once.
    pub fn of(windows: &'w Windows) -> Option<Streamed<'w>> {
        let mut reach = (1, 0);
        let mut parts = Vec::with_capacity(windows.parts.len());
        let mut peers: Option<usize> = None;
        for part in &windows.parts {
            let own = Halves::of(part, windows, &mut reach)?;
            let mut carried = own.carried.functions.iter();
            if carried.any(|fold| fold.function.needs_peers()) {
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
            windows,
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

    /// The results of all functions for the rows `from..end` of `rows`, of which those before were computed already.
    ///
    /// # Errors
    /// Those of [`Windows::compute`].
    pub fn compute(&mut self, rows: &Materialized, from: usize, end: usize) -> Result<Vec<Vector>> {
        let windows = self.windows;
        let chunk = rows.part(from..end);
        let mut all = Vec::new();
        for part in &mut self.parts {
            let mut around = windows.compute(&part.around, rows)?;
            for own in &mut around {
                *own = own.run(from..end);
            }
            let mut carried = windows.compute(&part.carried, &chunk)?;
            let keys = windows.keys(rows, &windows.order[..part.carried.partition])?;
            let same = |a: usize, b: usize| keys.iter().all(|key| key.same(a, b));
            // Rows of the partition that the row before is in.
            let mut on = 0;
            if from > 0 && from < end && same(from - 1, from) {
                on = partition_end(from, end, &same) - from;
            }
            for (how, place) in &part.places {
                let (Some(how), Some(before)) = (how, part.last.get(*place)) else {
                    continue;
                };
                let fold = &part.carried.functions[*place];
                if let (Some(before), 1..) = (before, on) {
                    let own = (&mut carried[*place], &windows.types[fold.var]);
                    follow(*how, own, before, (on, part.rows))?;
                }
            }
            if end > from {
                let last = end - from - 1;
                part.last = carried
                    .iter()
                    .map(|own| Some(own.run(last..last + 1)))
                    .collect();
                let first = first_of_last(from, end, &same);
                let more = (end - first) as i64;
                part.rows = if first == from && on > 0 {
                    part.rows + more
                } else {
                    more
                };
            }
            let mut found = Vec::with_capacity(part.places.len());
            for (how, place) in &part.places {
                let own = if how.is_some() { &carried } else { &around };
                found.push(own.get(*place).cloned().ok_or_else(missing)?);
            }
            all.extend(found);
        }
        Ok(all)
    }
}

/// Where the partition of row `from` ends, at `end` at the latest.
fn partition_end(from: usize, end: usize, same: &dyn Fn(usize, usize) -> bool) -> usize {
    let (mut low, mut high) = (from + 1, end);
    while low < high {
        let middle = low.midpoint(high);
        if same(from, middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The first of the rows `from..end` that is the same as the last of them.
fn first_of_last(from: usize, end: usize, same: &dyn Fn(usize, usize) -> bool) -> usize {
    let (mut low, mut high) = (from, end - 1);
    while low < high {
        let middle = low.midpoint(high);
        if same(middle, end - 1) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Has the first `on` values of a chunk follow the one `before` it, in a partition that had so many `rows`.
fn follow(
    how: Carried,
    (own, ty): (&mut Vector, &Type),
    before: &Vector,
    (on, rows): (usize, i64),
) -> Result<()> {
    if matches!(how, Carried::Alone) {
        return Ok(());
    }
    let is_there = |vector: &Vector, row: usize| {
        let valid = vector.valid.as_ref();
        valid.is_none_or(|valid| valid[row])
    };
    let all = own.len();
    let known = is_there(before, 0);
    if let Carried::First = how {
        // The picks of the first rows are the value before them.
        let rest = own.run(on..all);
        let first = before.at(&vec![0; on])?;
        let runs = [(0, 0..on), (1, 0..all - on)];
        *own = Vector::runs(ty.kind, &[&first, &rest], &runs)?;
        return Ok(());
    }
    if !known && !matches!(how, Carried::Rows) {
        return Ok(());
    }
    let mut valid = own.valid.take();
    let has = |valid: &Option<Vec<bool>>, row: usize| valid.as_ref().is_none_or(|own| own[row]);
    match (&mut own.values, &before.values) {
        (Values::Int(_) | Values::Wide(_), Values::Int(_) | Values::Wide(_)) => {
            let last = whole_at(&before.values, 0);
            let mut numbers = Vec::with_capacity(all);
            for row in 0..all {
                let value = whole_at(&own.values, row);
                numbers.push(match (row < on, has(&valid, row), how) {
                    (false, ..) => value,
                    (true, _, Carried::Rows) => value + i128::from(rows),
                    (true, false, _) => last,
                    (true, true, Carried::Extreme { least: true }) => value.min(last),
                    (true, true, Carried::Extreme { least: false }) => value.max(last),
                    (true, true, _) => value.checked_add(last).ok_or(Error::Overflow {
                        what: "a sum over a window".into(),
                    })?,
                });
            }
            let there: Vec<i64> = (0..all)
                .map(|row| i64::from(row < on || has(&valid, row)))
                .collect();
            let sums = AccumulatedValues::Wide(&numbers);
            *own = of_sums(Function::Sum, sums, &there, ty, 0)?;
            return Ok(());
        }
        (Values::Float(values), Values::Float(last)) => {
            let last = last[0];
            for (row, value) in values.iter_mut().enumerate().take(on) {
                *value = match (has(&valid, row), how) {
                    (false, _) => last,
                    (true, Carried::Extreme { least }) => {
                        let is_less = compare_floats(last, *value).is_lt();
                        if is_less == least { last } else { *value }
                    }
                    _ => *value + last,
                };
            }
        }
        _ => return Err(Error::internal("such values over a window")),
    }
    if let Some(valid) = &mut valid {
        valid[..on].fill(true);
    }
    own.valid = valid;
    Ok(())
}

fn whole_at(values: &Values, row: usize) -> i128 {
    match values {
        Values::Int(own) => i128::from(own[row]),
        Values::Wide(own) => own[row],
        _ => 0,
    }
}
