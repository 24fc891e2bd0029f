//! What is found of each group so far: one entry per group number.

use std::sync::Arc;

use algebra::fold;
use arrow::array::{AsArray, StringViewArray};
use table::Dictionary;

use crate::error::{Error, Result};
use crate::logical::relation::Function;
use crate::operators::aggregate::distinct::Distinct;
use crate::vector::value::{Kind, Type, Values, Vector};

/// The states of one function for all groups.
#[derive(Debug)]
pub(crate) struct Accumulator {
    /// If each value counts once, those that did.
    distinct: Option<Box<Distinct>>,
    function: Function,
    values: Cells,
    /// Values that were not NULL, per group; where they are needed.
    counts: Option<Vec<i64>>,
    /// For the least and the greatest: whether there was a value.
    seen: Vec<bool>,
}

#[derive(Debug)]
enum Cells {
    /// Counting only.
    None,
    Int(Vec<i64>),
    Wide(Vec<i128>),
    Float(Vec<f64>),
    Text(BestStrings),
    /// Codes, and the place of each label among all.
    Code(Vec<u32>, Arc<Dictionary>),
}

/// One text per group.
#[derive(Debug, Default)]
struct BestStrings {
    best: Vec<Box<[u8]>>,
    bytes: usize,
}

impl BestStrings {
    fn set(&mut self, group: usize, text: &[u8]) {
        self.bytes += text.len();
        self.bytes -= self.best[group].len();
        self.best[group] = text.into();
    }
}

/// Sums of values below this stay within 64 bits for as many rows as there can be.
const SMALL: i128 = 1 << 26;

impl Accumulator {
    /// For `function` of vectors of type `arg`; `empty` if a group may be without rows.
    pub fn new(function: Function, arg: Option<&Type>, empty: bool) -> Result<Accumulator> {
        if let (Some(inner), Some(ty)) = (function.of_distinct(), arg) {
            let distinct = Some(Box::new(Distinct::new(ty, empty)?));
            return Ok(Accumulator {
                distinct,
                ..Accumulator::new(inner, arg, empty)?
            });
        }
        let labels = arg.and_then(|ty| ty.labels.clone());
        let values = match (function, arg.map(|ty| ty.kind)) {
            (Function::Count, _) => Cells::None,
            (Function::Sum | Function::Avg, Some(Kind::Int)) => {
                let small = arg.is_some_and(|ty| -SMALL < ty.bounds.0 && ty.bounds.1 < SMALL);
                if small {
                    Cells::Int(vec![])
                } else {
                    Cells::Wide(vec![])
                }
            }
            (Function::Sum | Function::Avg, Some(Kind::Wide)) => Cells::Wide(vec![]),
            (_, Some(Kind::Float)) => Cells::Float(vec![]),
            (Function::Min | Function::Max, Some(Kind::Int | Kind::Bool)) => Cells::Int(vec![]),
            (Function::Min | Function::Max, Some(Kind::Text)) => {
                Cells::Text(BestStrings::default())
            }
            (Function::Min | Function::Max, Some(Kind::Code)) => {
                let labels = labels.ok_or_else(|| Error::internal("codes without labels"))?;
                Cells::Code(vec![], labels)
            }
            (Function::Min | Function::Max, Some(Kind::Wide)) => Cells::Wide(vec![]),
            _ => return Err(Error::unsupported(format!("{function:?} of such values"))),
        };
        let nullable = arg.is_some_and(|ty| ty.nullable);
        let counted = match function {
            Function::Count | Function::Avg => true,
            Function::Sum => nullable || empty,
            _ => false,
        };
        Ok(Accumulator {
            distinct: None,
            function,
            values,
            counts: counted.then(Vec::new),
            seen: vec![],
        })
    }

    /// A state of the same function without groups; of one that does not look at different values.
    pub fn fresh(&self) -> Accumulator {
        let values = match &self.values {
            Cells::None => Cells::None,
            Cells::Int(_) => Cells::Int(vec![]),
            Cells::Wide(_) => Cells::Wide(vec![]),
            Cells::Float(_) => Cells::Float(vec![]),
            Cells::Text(_) => Cells::Text(BestStrings::default()),
            Cells::Code(_, labels) => Cells::Code(vec![], labels.clone()),
        };
        Accumulator {
            distinct: None,
            function: self.function,
            values,
            counts: self.counts.as_ref().map(|_| vec![]),
            seen: vec![],
        }
    }

    /// Leaves out what the states of other functions have.
    pub fn leave(&mut self, values: bool, counts: bool) {
        if values {
            self.values = Cells::None;
        }
        if counts {
            self.counts = None;
        }
    }

    /// Bytes it takes, room for groups that have not come yet included.
    pub fn memory(&self) -> usize {
        let cells = match &self.values {
            Cells::None => 0,
            Cells::Int(cells) => 8 * cells.capacity(),
            Cells::Float(cells) => 8 * cells.capacity(),
            Cells::Wide(cells) => 16 * cells.capacity(),
            Cells::Text(texts) => 16 * texts.best.capacity(),
            Cells::Code(cells, _) => 4 * cells.capacity(),
        };
        let counts = self
            .counts
            .as_ref()
            .map_or(0, |counts| 8 * counts.capacity());
        cells + counts + self.seen.capacity() + self.besides()
    }

    /// Bytes besides those of each group.
    pub fn besides(&self) -> usize {
        let texts = match &self.values {
            Cells::Text(texts) => texts.bytes,
            _ => 0,
        };
        texts + self.distinct.as_ref().map_or(0, |own| own.memory())
    }

    fn extreme(&self) -> bool {
        matches!(self.function, Function::Min | Function::Max)
    }

    /// Makes room for `groups` groups. The first time, memory that is never touched costs nothing.
    pub fn resize(&mut self, groups: usize) {
        fn grow<T: Clone>(cells: &mut Vec<T>, groups: usize, zero: fn(usize) -> Vec<T>, value: T) {
            match cells.is_empty() {
                true => *cells = zero(groups),
                false => cells.resize(groups, value),
            }
        }
        match &mut self.values {
            Cells::None => {}
            Cells::Int(v) => grow(v, groups, |n| vec![0; n], 0),
            Cells::Wide(v) => grow(v, groups, |n| vec![0; n], 0),
            Cells::Float(v) => grow(v, groups, |n| vec![0.0; n], 0.0),
            Cells::Text(texts) => texts.best.resize_with(groups, Box::default),
            Cells::Code(v, _) => grow(v, groups, |n| vec![0; n], 0),
        }
        if let Some(counts) = &mut self.counts {
            grow(counts, groups, |n| vec![0; n], 0);
        }
        if self.extreme() {
            grow(&mut self.seen, groups, |n| vec![false; n], false);
        }
    }

    /// The kinds of the vectors that [`Accumulator::parts`] gives.
    pub fn kinds(&self) -> Vec<Kind> {
        if self.distinct.is_some() {
            return vec![];
        }
        let cell = match self.values {
            Cells::None => None,
            Cells::Int(_) => Some(Kind::Int),
            Cells::Wide(_) => Some(Kind::Wide),
            Cells::Float(_) => Some(Kind::Float),
            Cells::Text(_) => Some(Kind::Text),
            Cells::Code(..) => Some(Kind::Code),
        };
        let counts = self.counts.as_ref().map(|_| Kind::Int);
        let seen = self.extreme().then_some(Kind::Bool);
        cell.into_iter().chain(counts).chain(seen).collect()
    }

    /// What [`Accumulator::of_parts`] makes the same state of for `groups`; of different values, nothing: see
    /// [`Accumulator::distinct_values`].
    pub fn parts(&self, groups: &[u32]) -> Result<Vec<Vector>> {
        if self.distinct.is_some() {
            return Ok(vec![]);
        }
        let cell = match &self.values {
            Cells::None => None,
            Cells::Int(v) => Some(Values::Int(v.clone())),
            Cells::Wide(v) => Some(Values::Wide(v.clone())),
            Cells::Float(v) => Some(Values::Float(v.clone())),
            Cells::Code(v, _) => Some(Values::Code(v.clone())),
            Cells::Text(texts) => {
                // They came as texts.
                let text = |best: &[u8]| std::str::from_utf8(best).unwrap_or_default().to_owned();
                let texts = texts.best.iter().map(|best| text(best));
                let texts = StringViewArray::from_iter_values(texts);
                Some(Values::Text(crate::vector::strings::Strings::new(
                    Arc::new(texts),
                )))
            }
        };
        let counts = self.counts.as_ref().map(|v| Values::Int(v.clone()));
        let seen = self.extreme().then(|| Values::Bool(self.seen.clone()));
        let all = cell.into_iter().chain(counts).chain(seen);
        all.map(|values| Ok(Vector::new(values.at(groups)?)))
            .collect()
    }

    /// The state of groups numbered as the rows of `parts`, which are as many as [`Accumulator::kinds`]. It has no different
    /// values.
    pub fn of_parts(&self, parts: Vec<Vector>) -> Result<Accumulator> {
        let mut parts = parts.into_iter().map(|vector| vector.values);
        let mut next = || parts.next();
        let other = || Error::internal("a state of other parts");
        let values = match &self.values {
            _ if self.distinct.is_some() => Cells::None,
            Cells::None => Cells::None,
            own => match (own, next().ok_or_else(other)?) {
                (Cells::Int(_), Values::Int(v)) => Cells::Int(v),
                (Cells::Wide(_), Values::Wide(v)) => Cells::Wide(v),
                (Cells::Float(_), Values::Float(v)) => Cells::Float(v),
                (Cells::Code(_, labels), Values::Code(v)) => Cells::Code(v, labels.clone()),
                (Cells::Text(_), Values::Text(texts)) => {
                    let array = texts.array()?;
                    let best = array.as_string_view().iter();
                    let best: Vec<Box<[u8]>> = best
                        .map(|text| text.unwrap_or_default().as_bytes().into())
                        .collect();
                    let bytes = best.iter().map(|text| text.len()).sum();
                    Cells::Text(BestStrings { best, bytes })
                }
                _ => return Err(other()),
            },
        };
        let mut state = Accumulator {
            distinct: None,
            function: self.function,
            values,
            counts: None,
            seen: vec![],
        };
        if self.distinct.is_some() {
            return Ok(state);
        }
        if self.counts.is_some() {
            let Some(Values::Int(counts)) = next() else {
                return Err(other());
            };
            state.counts = Some(counts);
        }
        if self.extreme() {
            let Some(Values::Bool(seen)) = next() else {
                return Err(other());
            };
            state.seen = seen;
        }
        Ok(state)
    }

    /// If each value counts once: the pairs of a group and one of its values.
    pub fn distinct_values(&self) -> Result<Option<(Vec<u32>, Vector)>> {
        let all = self.distinct.as_ref().map(|distinct| distinct.all());
        all.transpose()
    }

    /// Forgets which values there were, but not what was found of them: none of them will come again.
    pub fn forget_values(&mut self) {
        if let Some(distinct) = &mut self.distinct {
            distinct.forget();
        }
    }

    /// Adds the values of some rows; `groups` absent: all to group 0.
    pub fn add(&mut self, groups: Option<&[u32]>, rows: usize, arg: Option<&Vector>) -> Result<()> {
        if let (Some(distinct), Some(vector)) = (&mut self.distinct, arg) {
            let fresh = distinct.fresh(groups, vector)?;
            let own: Option<Vec<u32>> =
                groups.map(|groups| fresh.iter().map(|row| groups[*row as usize]).collect());
            let values = Vector::new(vector.values.at(&fresh)?);
            return self.add_all(own.as_deref(), fresh.len(), Some(&values));
        }
        self.add_all(groups, rows, arg)
    }

    fn add_all(&mut self, groups: Option<&[u32]>, rows: usize, arg: Option<&Vector>) -> Result<()> {
        let valid = arg.and_then(|vector| vector.valid.as_deref());
        if let Some(counts) = &mut self.counts {
            fold::count(groups, rows, valid, counts);
        }
        let Some(vector) = arg else { return Ok(()) };
        let (least, seen) = (self.function == Function::Min, &mut self.seen);
        match (&mut self.values, &vector.values) {
            (Cells::None, _) => {}
            (Cells::Int(s), Values::Int(v)) if seen.is_empty() => {
                fold::sum_i64_small(groups, v, valid, s)
            }
            (Cells::Wide(s), Values::Int(v)) if seen.is_empty() => {
                fold::sum_i64(groups, v, valid, s)
            }
            (Cells::Wide(s), Values::Wide(v)) if seen.is_empty() => {
                fold::sum_i128(groups, v, valid, s).map_err(|_| overflow())?;
            }
            (Cells::Float(s), Values::Float(v)) if seen.is_empty() => {
                fold::sum_f64(groups, v, valid, s)
            }
            (Cells::Int(s), Values::Int(v)) if least => fold::min_i64(groups, v, valid, s, seen),
            (Cells::Int(s), Values::Int(v)) => fold::max_i64(groups, v, valid, s, seen),
            (Cells::Wide(s), Values::Wide(v)) if least => fold::min_i128(groups, v, valid, s, seen),
            (Cells::Wide(s), Values::Wide(v)) => fold::max_i128(groups, v, valid, s, seen),
            (Cells::Float(s), Values::Float(v)) if least => {
                fold::min_f64(groups, v, valid, s, seen)
            }
            (Cells::Float(s), Values::Float(v)) => fold::max_f64(groups, v, valid, s, seen),
            (Cells::Int(s), Values::Bool(v)) => {
                let v: Vec<i64> = v.iter().map(|v| i64::from(*v)).collect();
                match least {
                    true => fold::min_i64(groups, &v, valid, s, seen),
                    false => fold::max_i64(groups, &v, valid, s, seen),
                }
            }
            (Cells::Text(best), Values::Text(array)) => {
                let array = array.array()?;
                let views = array.as_string_view();
                for (row, group) in present(groups, rows, valid) {
                    let text = views.value(row).as_bytes();
                    let better = match least {
                        true => *text < *best.best[group],
                        false => *text > *best.best[group],
                    };
                    if better || !seen[group] {
                        best.set(group, text);
                        seen[group] = true;
                    }
                }
            }
            (Cells::Code(best, labels), Values::Code(codes)) => {
                let rank = labels.rank();
                let place = |code: u32| rank[code as usize];
                for (row, group) in present(groups, rows, valid) {
                    let code = codes[row];
                    let better = |best: u32| match least {
                        true => place(code) < place(best),
                        false => place(code) > place(best),
                    };
                    if !seen[group] || better(best[group]) {
                        best[group] = code;
                        seen[group] = true;
                    }
                }
            }
            _ => return Err(Error::internal("a fold of another kind of values")),
        }
        Ok(())
    }

    /// Adds the state of group `from[i]` of `other` to group `to[i]` here.
    pub fn merge(&mut self, other: &Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        if let Some(distinct) = &other.distinct {
            let (mut groups, values) = distinct.all()?;
            let mut places = vec![0; from.iter().max().map_or(0, |most| *most as usize + 1)];
            for (from, to) in from.iter().zip(to) {
                places[*from as usize] = *to;
            }
            groups
                .iter_mut()
                .for_each(|group| *group = places[*group as usize]);
            return self.add(Some(&groups), values.len(), Some(&values));
        }
        let pairs = || {
            from.iter()
                .map(|g| *g as usize)
                .zip(to.iter().map(|g| *g as usize))
        };
        if let (Some(counts), Some(more)) = (&mut self.counts, &other.counts) {
            pairs().for_each(|(from, to)| counts[to] += more[from]);
        }
        let (function, seen) = (self.function, &mut self.seen);
        macro_rules! best {
            ($mine:ident, $theirs:ident, $less:expr) => {
                for (from, to) in pairs().filter(|(from, _)| other.seen[*from]) {
                    let better = match function {
                        Function::Min => $less(&$theirs[from], &$mine[to]),
                        _ => $less(&$mine[to], &$theirs[from]),
                    };
                    if better || !seen[to] {
                        $mine[to] = $theirs[from];
                        seen[to] = true;
                    }
                }
            };
        }
        let best = matches!(function, Function::Min | Function::Max);
        match (&mut self.values, &other.values) {
            (Cells::None, _) => {}
            (Cells::Int(mine), Cells::Int(theirs)) if best => {
                best!(mine, theirs, |a: &i64, b: &i64| a < b)
            }
            (Cells::Wide(mine), Cells::Wide(theirs)) if best => {
                best!(mine, theirs, |a: &i128, b: &i128| a < b)
            }
            (Cells::Float(mine), Cells::Float(theirs)) if best => {
                best!(mine, theirs, |a: &f64, b: &f64| a.total_cmp(b).is_lt())
            }
            (Cells::Text(mine), Cells::Text(theirs)) => {
                for (from, to) in pairs().filter(|(from, _)| other.seen[*from]) {
                    let text = &*theirs.best[from];
                    let better = match function {
                        Function::Min => *text < *mine.best[to],
                        _ => *text > *mine.best[to],
                    };
                    if better || !seen[to] {
                        mine.set(to, text);
                        seen[to] = true;
                    }
                }
            }
            (Cells::Code(mine, labels), Cells::Code(theirs, _)) => {
                let rank = labels.rank();
                best!(mine, theirs, |a: &u32, b: &u32| {
                    // What was not seen is no code.
                    rank.get(*a as usize) < rank.get(*b as usize)
                })
            }
            (Cells::Int(mine), Cells::Int(theirs)) => {
                pairs().for_each(|(from, to)| mine[to] += theirs[from])
            }
            (Cells::Wide(mine), Cells::Wide(theirs)) => {
                for (from, to) in pairs() {
                    mine[to] = mine[to].checked_add(theirs[from]).ok_or_else(overflow)?;
                }
            }
            (Cells::Float(mine), Cells::Float(theirs)) => {
                pairs().for_each(|(from, to)| mine[to] += theirs[from])
            }
            _ => return Err(Error::internal("states of different kinds")),
        }
        Ok(())
    }

    /// The results of `groups`, of type `ty`, from the values and the counts of these states, which may be this one.
    pub fn finish(
        &self,
        (values, counts): (&Accumulator, &Accumulator),
        groups: &[u32],
        ty: &Type,
        arg_scale: i8,
    ) -> Result<Vector> {
        let at = || groups.iter().map(|g| *g as usize);
        let counts = counts.counts.as_ref();
        let valid = match (self.function, counts) {
            (Function::Count, Some(counts)) => {
                return Ok(Vector::new(Values::Int(at().map(|g| counts[g]).collect())));
            }
            (Function::Min | Function::Max, _) => Some(at().map(|g| self.seen[g]).collect()),
            (_, Some(counts)) => Some(at().map(|g| counts[g] > 0).collect()),
            (_, None) => None,
        };
        let valid = valid.filter(|valid: &Vec<bool>| valid.contains(&false));
        let values = match (self.function, counts) {
            (Function::Avg, Some(counts)) => values.average(&mut at(), counts, ty, arg_scale)?,
            _ => match (&values.values, ty.kind) {
                (Cells::Int(v), Kind::Int) => Values::Int(at().map(|g| v[g]).collect()),
                (Cells::Int(v), Kind::Wide) => {
                    Values::Wide(at().map(|g| i128::from(v[g])).collect())
                }
                (Cells::Wide(v), Kind::Wide) => {
                    let known = at().map(|g| v[g]);
                    Values::Wide(known.map(|v| fitting(v, ty)).collect::<Result<_>>()?)
                }
                (Cells::Wide(v), Kind::Int) => {
                    let narrow = at().map(|g| narrowed(v[g], ty));
                    Values::Int(narrow.collect::<Result<_>>()?)
                }
                (Cells::Float(v), Kind::Float) => Values::Float(at().map(|g| v[g]).collect()),
                (Cells::Int(v), Kind::Bool) => Values::Bool(at().map(|g| v[g] != 0).collect()),
                (Cells::Code(v, _), Kind::Code) => Values::Code(at().map(|g| v[g]).collect()),
                (Cells::Text(v), Kind::Text) => {
                    // They came as texts.
                    let text = |g: usize| std::str::from_utf8(&v.best[g]).unwrap_or_default();
                    let texts = StringViewArray::from_iter_values(at().map(text));
                    Values::Text(crate::vector::strings::Strings::new(Arc::new(texts)))
                }
                _ => return Err(Error::internal("a result of another kind")),
            },
        };
        Ok(Vector { values, valid })
    }

    fn average(
        &self,
        at: &mut dyn Iterator<Item = usize>,
        counts: &[i64],
        ty: &Type,
        arg_scale: i8,
    ) -> Result<Values> {
        if let Cells::Float(sums) = &self.values {
            return Ok(Values::Float(
                at.map(|g| sums[g] / counts[g] as f64).collect(),
            ));
        }
        let sum = |g: usize| match &self.values {
            Cells::Int(v) => i128::from(v[g]),
            Cells::Wide(v) => v[g],
            _ => 0,
        };
        if ty.kind == Kind::Float {
            return Ok(Values::Float(
                at.map(|g| sum(g) as f64 / counts[g] as f64).collect(),
            ));
        }
        let up = u32::try_from(ty.scale() - arg_scale)
            .map_err(|_| Error::unsupported("an average of fewer digits"))?;
        let factor = 10i128.checked_pow(up).ok_or_else(overflow)?;
        let mut all = Vec::new();
        for g in at {
            let scaled = sum(g).checked_mul(factor).ok_or_else(overflow)?;
            all.push(fitting(scaled / i128::from(counts[g].max(1)), ty)?);
        }
        Ok(match ty.kind {
            Kind::Int => {
                let narrow = all.into_iter().map(|v| narrowed(v, ty));
                Values::Int(narrow.collect::<Result<_>>()?)
            }
            _ => Values::Wide(all),
        })
    }
}

/// Rows that are not NULL and their groups.
fn present<'a>(
    groups: Option<&'a [u32]>,
    rows: usize,
    valid: Option<&'a [bool]>,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    (0..rows)
        .filter(move |row| valid.is_none_or(|valid| valid[*row]))
        .map(move |row| (row, groups.map_or(0, |groups| groups[row] as usize)))
}

/// `sum`, if the type `ty` has room for it: a decimal of 38 digits is less than 128 bits hold.
fn fitting(sum: i128, ty: &Type) -> Result<i128> {
    match (ty.bounds.0..=ty.bounds.1).contains(&sum) {
        true => Ok(sum),
        false => Err(overflow()),
    }
}

fn narrowed(sum: i128, ty: &Type) -> Result<i64> {
    i64::try_from(fitting(sum, ty)?).map_err(|_| overflow())
}

fn overflow() -> Error {
    Error::Overflow {
        what: "a sum or an average".into(),
    }
}
