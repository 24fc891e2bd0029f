//! MIN and MAX.

use std::fmt;
use std::sync::Arc;

use algebra::fold;
use arrow::array::{AsArray, StringViewArray};
use table::Dictionary;

use crate::error::{Error, Result};
use crate::operators::aggregate::accumulator::{
    AccumulatedValues, Accumulator, cells_of, grow, other_state, pairs, same,
};
use crate::vector::strings::Strings;
use crate::vector::value::{Kind, Values, Vector};

/// The least or the greatest number of each group.
#[derive(Debug)]
pub(crate) struct Extreme<C> {
    /// The least, rather than the greatest.
    least: bool,
    cells: Vec<C>,
    /// Whether the group has a value.
    seen: Vec<bool>,
}

/// A number that can be compared.
pub(crate) trait ExtremeCell: Copy + Default + fmt::Debug + Send + Sync + 'static {
    const KIND: Kind;

    fn zeros(groups: usize) -> Vec<Self>;

    fn add(
        least: bool,
        groups: Option<&[u32]>,
        vector: &Vector,
        cells: &mut [Self],
        seen: &mut [bool],
    ) -> Result<()>;

    fn is_less(self, other: Self) -> bool;

    fn values(cells: Vec<Self>) -> Values;

    fn of_values(values: Values) -> Option<Vec<Self>>;

    fn found<'a>(cells: &'a [Self], seen: &'a [bool]) -> AccumulatedValues<'a>;
}

fn other_values() -> Error {
    Error::internal("a minimum or maximum of another kind of values")
}

impl<C: ExtremeCell> Extreme<C> {
    /// Without groups; `least` chooses between MIN and MAX.
    pub fn new(least: bool) -> Extreme<C> {
        let (cells, seen) = (vec![], vec![]);
        Extreme { least, cells, seen }
    }
}

impl ExtremeCell for i64 {
    const KIND: Kind = Kind::Int;

    fn zeros(groups: usize) -> Vec<i64> {
        vec![0; groups]
    }

    fn add(
        least: bool,
        groups: Option<&[u32]>,
        vector: &Vector,
        cells: &mut [i64],
        seen: &mut [bool],
    ) -> Result<()> {
        let truths: Vec<i64>;
        let values = match &vector.values {
            Values::Int(values) => values,
            Values::Bool(values) => {
                truths = values.iter().map(|v| i64::from(*v)).collect();
                &truths
            }
            _ => return Err(other_values()),
        };
        let fold = if least { fold::min_i64 } else { fold::max_i64 };
        fold(groups, values, vector.valid.as_deref(), cells, seen);
        Ok(())
    }

    fn is_less(self, other: i64) -> bool {
        self < other
    }

    fn values(cells: Vec<i64>) -> Values {
        Values::Int(cells)
    }

    fn of_values(values: Values) -> Option<Vec<i64>> {
        match values {
            Values::Int(cells) => Some(cells),
            _ => None,
        }
    }

    fn found<'a>(cells: &'a [i64], seen: &'a [bool]) -> AccumulatedValues<'a> {
        AccumulatedValues::ExtremeInt(cells, seen)
    }
}

impl ExtremeCell for i128 {
    const KIND: Kind = Kind::Wide;

    fn zeros(groups: usize) -> Vec<i128> {
        vec![0; groups]
    }

    fn add(
        least: bool,
        groups: Option<&[u32]>,
        vector: &Vector,
        cells: &mut [i128],
        seen: &mut [bool],
    ) -> Result<()> {
        let Values::Wide(values) = &vector.values else {
            return Err(other_values());
        };
        let fold = if least {
            fold::min_i128
        } else {
            fold::max_i128
        };
        fold(groups, values, vector.valid.as_deref(), cells, seen);
        Ok(())
    }

    fn is_less(self, other: i128) -> bool {
        self < other
    }

    fn values(cells: Vec<i128>) -> Values {
        Values::Wide(cells)
    }

    fn of_values(values: Values) -> Option<Vec<i128>> {
        match values {
            Values::Wide(cells) => Some(cells),
            _ => None,
        }
    }

    fn found<'a>(cells: &'a [i128], seen: &'a [bool]) -> AccumulatedValues<'a> {
        AccumulatedValues::ExtremeWide(cells, seen)
    }
}

impl ExtremeCell for f64 {
    const KIND: Kind = Kind::Float;

    fn zeros(groups: usize) -> Vec<f64> {
        vec![0.0; groups]
    }

    fn add(
        least: bool,
        groups: Option<&[u32]>,
        vector: &Vector,
        cells: &mut [f64],
        seen: &mut [bool],
    ) -> Result<()> {
        let Values::Float(values) = &vector.values else {
            return Err(other_values());
        };
        let fold = if least { fold::min_f64 } else { fold::max_f64 };
        fold(groups, values, vector.valid.as_deref(), cells, seen);
        Ok(())
    }

    fn is_less(self, other: f64) -> bool {
        self.total_cmp(&other).is_lt()
    }

    fn values(cells: Vec<f64>) -> Values {
        Values::Float(cells)
    }

    fn of_values(values: Values) -> Option<Vec<f64>> {
        match values {
            Values::Float(cells) => Some(cells),
            _ => None,
        }
    }

    fn found<'a>(cells: &'a [f64], seen: &'a [bool]) -> AccumulatedValues<'a> {
        AccumulatedValues::ExtremeFloat(cells, seen)
    }
}

impl<C: ExtremeCell> Accumulator for Extreme<C> {
    fn fresh(&self) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Extreme::<C>::new(self.least)))
    }

    fn resize(&mut self, groups: usize) {
        grow(&mut self.cells, groups, C::zeros, C::default());
        grow(&mut self.seen, groups, |n| vec![false; n], false);
    }

    fn add(&mut self, groups: Option<&[u32]>, _rows: usize, arg: Option<&Vector>) -> Result<()> {
        let vector = arg.ok_or_else(other_values)?;
        C::add(self.least, groups, vector, &mut self.cells, &mut self.seen)
    }

    fn merge(&mut self, other: &dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other: &Extreme<C> = same(other)?;
        for (from, to) in pairs(from, to).filter(|(from, _)| other.seen[*from]) {
            let (own, theirs) = (self.cells[to], other.cells[from]);
            let better = if self.least {
                theirs.is_less(own)
            } else {
                own.is_less(theirs)
            };
            if better || !self.seen[to] {
                self.cells[to] = theirs;
                self.seen[to] = true;
            }
        }
        Ok(())
    }

    fn hand_over(&mut self, some: &[u32]) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Extreme {
            least: self.least,
            cells: cells_of(&self.cells, some),
            seen: cells_of(&self.seen, some),
        }))
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![C::KIND, Kind::Bool]
    }

    fn state(&self, some: &[u32]) -> Result<Vec<Vector>> {
        let cells = some.iter().map(|group| self.cells[*group as usize]);
        Ok(vec![
            Vector::new(C::values(cells.collect())),
            seen_of(&self.seen, some),
        ])
    }

    fn of_state(&self, state: Vec<Vector>) -> Result<Box<dyn Accumulator>> {
        let (values, seen) = halves(state)?;
        let cells = C::of_values(values).ok_or_else(other_state)?;
        Ok(Box::new(Extreme {
            least: self.least,
            cells,
            seen,
        }))
    }

    fn memory(&self) -> usize {
        size_of::<C>() * self.cells.capacity() + self.seen.capacity()
    }

    fn found(&self) -> AccumulatedValues<'_> {
        C::found(&self.cells, &self.seen)
    }
}

/// The least or the greatest string of each group, in byte order.
#[derive(Debug)]
pub(crate) struct ExtremeString {
    /// The least, rather than the greatest.
    least: bool,
    best: Vec<Box<[u8]>>,
    /// Bytes of all strings.
    bytes: usize,
    /// Whether the group has a value.
    seen: Vec<bool>,
}

impl ExtremeString {
    /// Without groups; `least` chooses between MIN and MAX.
    pub fn new(least: bool) -> ExtremeString {
        let (best, bytes, seen) = (vec![], 0, vec![]);
        ExtremeString {
            least,
            best,
            bytes,
            seen,
        }
    }

    fn offer(&mut self, group: usize, string: &[u8]) {
        let own = &*self.best[group];
        let better = if self.least {
            string < own
        } else {
            string > own
        };
        if better || !self.seen[group] {
            self.bytes += string.len();
            self.bytes -= own.len();
            self.best[group] = string.into();
            self.seen[group] = true;
        }
    }
}

impl Accumulator for ExtremeString {
    fn fresh(&self) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(ExtremeString::new(self.least)))
    }

    fn resize(&mut self, groups: usize) {
        self.best.resize_with(groups, Box::default);
        grow(&mut self.seen, groups, |n| vec![false; n], false);
    }

    fn add(&mut self, groups: Option<&[u32]>, rows: usize, arg: Option<&Vector>) -> Result<()> {
        let vector = arg.ok_or_else(other_values)?;
        let Values::Text(strings) = &vector.values else {
            return Err(other_values());
        };
        let array = strings.array()?;
        let views = array.as_string_view();
        for (row, group) in present(groups, rows, vector.valid.as_deref()) {
            self.offer(group, views.value(row).as_bytes());
        }
        Ok(())
    }

    fn merge(&mut self, other: &dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other: &ExtremeString = same(other)?;
        for (from, to) in pairs(from, to).filter(|(from, _)| other.seen[*from]) {
            self.offer(to, &other.best[from]);
        }
        Ok(())
    }

    fn hand_over(&mut self, some: &[u32]) -> Result<Box<dyn Accumulator>> {
        let own = some
            .iter()
            .map(|group| std::mem::take(&mut self.best[*group as usize]));
        let best: Vec<Box<[u8]>> = own.collect();
        let bytes: usize = best.iter().map(|string| string.len()).sum();
        self.bytes -= bytes;
        Ok(Box::new(ExtremeString {
            least: self.least,
            best,
            bytes,
            seen: cells_of(&self.seen, some),
        }))
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::Text, Kind::Bool]
    }

    fn state(&self, some: &[u32]) -> Result<Vec<Vector>> {
        let best = some.iter().map(|group| text(&self.best[*group as usize]));
        let array = StringViewArray::from_iter_values(best);
        let values = Values::Text(Strings::new(Arc::new(array)));
        Ok(vec![Vector::new(values), seen_of(&self.seen, some)])
    }

    fn of_state(&self, state: Vec<Vector>) -> Result<Box<dyn Accumulator>> {
        let (values, seen) = halves(state)?;
        let Values::Text(strings) = values else {
            return Err(other_state());
        };
        let array = strings.array()?;
        let best = array.as_string_view().iter();
        let best: Vec<Box<[u8]>> = best
            .map(|text| text.unwrap_or_default().as_bytes().into())
            .collect();
        Ok(Box::new(ExtremeString {
            least: self.least,
            bytes: best.iter().map(|text| text.len()).sum(),
            best,
            seen,
        }))
    }

    fn memory(&self) -> usize {
        size_of::<Box<[u8]>>() * self.best.capacity() + self.seen.capacity() + self.bytes
    }

    fn memory_of_values(&self) -> usize {
        self.bytes
    }

    fn found(&self) -> AccumulatedValues<'_> {
        AccumulatedValues::ExtremeString(&self.best, &self.seen)
    }
}

/// A string that is stored as its bytes.
pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// The least or the greatest dictionary-coded string of each group, as its code.
#[derive(Debug)]
pub(crate) struct ExtremeCode {
    /// The least, rather than the greatest.
    least: bool,
    best: Vec<u32>,
    /// Whether the group has a value.
    seen: Vec<bool>,
    labels: Arc<Dictionary>,
}

impl ExtremeCode {
    /// Without groups, for codes of these labels.
    pub fn new(least: bool, labels: Arc<Dictionary>) -> ExtremeCode {
        let (best, seen) = (vec![], vec![]);
        ExtremeCode {
            least,
            best,
            seen,
            labels,
        }
    }

    /// Offers values, as pairs of a group and a code.
    fn offer(&mut self, codes: impl Iterator<Item = (usize, u32)>) {
        let rank = self.labels.rank();
        for (group, code) in codes {
            let (own, theirs) = (self.best[group] as usize, code as usize);
            let better = self.seen[group] && {
                if self.least {
                    rank[theirs] < rank[own]
                } else {
                    rank[theirs] > rank[own]
                }
            };
            if better || !self.seen[group] {
                self.best[group] = code;
                self.seen[group] = true;
            }
        }
    }
}

impl Accumulator for ExtremeCode {
    fn fresh(&self) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(ExtremeCode::new(self.least, self.labels.clone())))
    }

    fn resize(&mut self, groups: usize) {
        grow(&mut self.best, groups, |n| vec![0; n], 0);
        grow(&mut self.seen, groups, |n| vec![false; n], false);
    }

    fn add(&mut self, groups: Option<&[u32]>, rows: usize, arg: Option<&Vector>) -> Result<()> {
        let vector = arg.ok_or_else(other_values)?;
        let Values::Code(codes) = &vector.values else {
            return Err(other_values());
        };
        let present = present(groups, rows, vector.valid.as_deref());
        self.offer(present.map(|(row, group)| (group, codes[row])));
        Ok(())
    }

    fn merge(&mut self, other: &dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other: &ExtremeCode = same(other)?;
        let seen = pairs(from, to).filter(|(from, _)| other.seen[*from]);
        self.offer(seen.map(|(from, to)| (to, other.best[from])));
        Ok(())
    }

    fn hand_over(&mut self, some: &[u32]) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(ExtremeCode {
            least: self.least,
            best: cells_of(&self.best, some),
            seen: cells_of(&self.seen, some),
            labels: self.labels.clone(),
        }))
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::Code, Kind::Bool]
    }

    fn state(&self, some: &[u32]) -> Result<Vec<Vector>> {
        let best = some.iter().map(|group| self.best[*group as usize]);
        Ok(vec![
            Vector::new(Values::Code(best.collect())),
            seen_of(&self.seen, some),
        ])
    }

    fn of_state(&self, state: Vec<Vector>) -> Result<Box<dyn Accumulator>> {
        let (values, seen) = halves(state)?;
        let Values::Code(best) = values else {
            return Err(other_state());
        };
        let (least, labels) = (self.least, self.labels.clone());
        Ok(Box::new(ExtremeCode {
            least,
            best,
            seen,
            labels,
        }))
    }

    fn memory(&self) -> usize {
        4 * self.best.capacity() + self.seen.capacity()
    }

    fn found(&self) -> AccumulatedValues<'_> {
        AccumulatedValues::ExtremeCode(&self.best, &self.seen)
    }
}

/// The rows that are not NULL, with their groups.
fn present<'a>(
    groups: Option<&'a [u32]>,
    rows: usize,
    valid: Option<&'a [bool]>,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    (0..rows)
        .filter(move |row| valid.is_none_or(|valid| valid[*row]))
        .map(move |row| (row, groups.map_or(0, |groups| groups[row] as usize)))
}

fn seen_of(seen: &[bool], some: &[u32]) -> Vector {
    let some = some.iter().map(|group| seen[*group as usize]);
    Vector::new(Values::Bool(some.collect()))
}

/// Splits a state into its values and whether each group has one.
fn halves(state: Vec<Vector>) -> Result<(Values, Vec<bool>)> {
    let mut state = state.into_iter().map(|vector| vector.values);
    match (state.next(), state.next()) {
        (Some(values), Some(Values::Bool(seen))) => Ok((values, seen)),
        _ => Err(other_state()),
    }
}
