//! Values by their groups.
//!
//! Numbers are put where those of their group lie behind one another, in one pass over what came. Strings stay where they are, and
//! so do values of groups of which most have none: then the rows are put in the order of their groups.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::vector::value::{Kind, Values, Vector};

/// Values that came together, and the group of each.
pub(crate) type Part = (Vec<u32>, Vector);

/// So many groups cost nothing, even if there are no values.
const FEW: usize = 1 << 16;

/// The values of each group, in the order in which they came.
#[derive(Debug)]
pub(crate) struct ByGroup {
    kind: Kind,
    values: Vector,
    places: Places,
}

/// Where the values of a group are.
#[derive(Debug)]
enum Places {
    /// Behind one another: where those of each group begin, and the end.
    Apart(Vec<usize>),
    /// Where they came.
    Among(RowsByGroup),
}

impl ByGroup {
    /// The values of `parts`, which are of `kind`, in groups that are less than `groups`.
    ///
    /// # Errors
    /// An internal error for values of another kind; those of [`Vector::runs`].
    pub fn new(parts: &[Part], kind: Kind, groups: usize) -> Result<ByGroup> {
        let rows = parts.iter().map(|(groups, _)| groups.len()).sum();
        if kind == Kind::Text || is_sparse(groups, rows) {
            let (of, values) = joined(parts, kind)?;
            let places = Places::Among(RowsByGroup::new(of, groups));
            return Ok(ByGroup {
                kind,
                values,
                places,
            });
        }
        let starts = starts(parts.iter().map(|(groups, _)| &groups[..]), groups);
        Ok(ByGroup {
            kind,
            values: apart(parts, kind, &starts, rows)?,
            places: Places::Apart(starts),
        })
    }

    /// The number of values of a group.
    pub fn count(&self, group: u32) -> usize {
        match &self.places {
            Places::Apart(starts) => run(starts, group).len(),
            Places::Among(rows) => rows.of_group(group).len(),
        }
    }

    /// The values of some groups, those of one behind those of the other.
    ///
    /// # Errors
    /// Those of [`Vector::runs`].
    pub fn values(&self, groups: &[u32]) -> Result<Vector> {
        match &self.places {
            Places::Apart(starts) => {
                let runs = groups.iter().map(|group| (0, run(starts, *group)));
                Vector::runs(self.kind, &[&self.values], &runs.collect::<Vec<_>>())
            }
            Places::Among(rows) => {
                let picks = groups.iter().flat_map(|group| rows.of_group(*group));
                self.values.at(&picks.copied().collect::<Vec<_>>())
            }
        }
    }
}

/// All values of `parts`, which are of `kind`, and the group of each.
///
/// # Errors
/// Those of [`Vector::runs`].
pub(crate) fn joined(parts: &[Part], kind: Kind) -> Result<(Vec<u32>, Vector)> {
    if parts.is_empty() {
        return Ok((vec![], Vector::new(Values::new(kind))));
    }
    let groups = parts.iter().map(|(groups, _)| &groups[..]);
    let groups = groups.collect::<Vec<_>>().concat();
    let parts: Vec<&Vector> = parts.iter().map(|(_, values)| values).collect();
    let runs = parts.iter().enumerate();
    let runs: Vec<(usize, Range<usize>)> =
        runs.map(|(part, values)| (part, 0..values.len())).collect();
    Ok((groups, Vector::runs(kind, &parts, &runs)?))
}

/// Whether there may be many more groups than rows.
fn is_sparse(groups: usize, rows: usize) -> bool {
    groups > FEW.max(2 * rows)
}

/// Where the rows of each group begin among those that are in the order of their groups, and the end.
fn starts<'p>(parts: impl Iterator<Item = &'p [u32]>, groups: usize) -> Vec<usize> {
    let mut starts = vec![0; groups + 1];
    for part in parts {
        for group in part {
            starts[*group as usize + 1] += 1;
        }
    }
    for group in 0..groups {
        starts[group + 1] += starts[group];
    }
    starts
}

/// The rows of a group.
fn run(starts: &[usize], group: u32) -> Range<usize> {
    starts[group as usize]..starts[group as usize + 1]
}

/// The values of `parts`, of which there are `rows`, those of a group from where they are to begin.
fn apart(parts: &[Part], kind: Kind, starts: &[usize], rows: usize) -> Result<Vector> {
    macro_rules! numbers {
        ($variant:ident) => {{
            let own = parts.iter().map(|(groups, part)| match &part.values {
                Values::$variant(some) => Ok((&groups[..], Cow::Borrowed(&some[..]))),
                _ => Err(Error::internal("parts of different kinds")),
            });
            let own = own.collect::<Result<Vec<_>>>()?;
            Values::$variant(scattered(&own, starts, rows))
        }};
    }
    let values = match kind {
        Kind::Int => numbers!(Int),
        Kind::Wide => numbers!(Wide),
        Kind::Float => numbers!(Float),
        Kind::Bool => numbers!(Bool),
        Kind::Code => numbers!(Code),
        Kind::Text => return Err(Error::internal("strings apart")),
    };
    let some_null = parts.iter().any(|(_, part)| part.valid.is_some());
    let valid = some_null.then(|| {
        let own = parts.iter().map(|(groups, part)| {
            let valid = match &part.valid {
                Some(valid) => Cow::Borrowed(&valid[..]),
                None => Cow::Owned(vec![true; groups.len()]),
            };
            (&groups[..], valid)
        });
        scattered(&own.collect::<Vec<_>>(), starts, rows)
    });
    Ok(Vector { values, valid })
}

/// The values of `parts`, of which there are `rows`, those of a group from where they are to begin.
fn scattered<T: Copy + Default>(
    parts: &[(&[u32], Cow<'_, [T]>)],
    starts: &[usize],
    rows: usize,
) -> Vec<T> {
    let mut next = starts.to_vec();
    let mut all = vec![T::default(); rows];
    for (groups, values) in parts {
        for (group, value) in groups.iter().zip(values.iter()) {
            let place = &mut next[*group as usize];
            all[*place] = *value;
            *place += 1;
        }
    }
    all
}

/// Rows by their groups, those of a group in their order.
#[derive(Debug)]
struct RowsByGroup {
    /// The group of each row.
    of: Vec<u32>,
    rows: Vec<u32>,
    /// Where the rows of each group begin, unless there may be many more groups than rows.
    starts: Option<Vec<usize>>,
}

impl RowsByGroup {
    fn new(of: Vec<u32>, groups: usize) -> RowsByGroup {
        let all = 0..of.len() as u32;
        if is_sparse(groups, of.len()) {
            let mut rows: Vec<u32> = all.collect();
            rows.sort_by_key(|row| of[*row as usize]);
            let starts = None;
            return RowsByGroup { of, rows, starts };
        }
        let starts = starts(std::iter::once(&of[..]), groups);
        let all: Vec<u32> = all.collect();
        let rows = scattered(&[(&of[..], Cow::Owned(all))], &starts, of.len());
        let starts = Some(starts);
        RowsByGroup { of, rows, starts }
    }

    /// The rows of a group.
    fn of_group(&self, group: u32) -> &[u32] {
        match &self.starts {
            Some(starts) => &self.rows[run(starts, group)],
            None => {
                let of = |row: &u32| self.of[*row as usize];
                let start = self.rows.partition_point(|row| of(row) < group);
                let more = self.rows[start..].partition_point(|row| of(row) == group);
                &self.rows[start..start + more]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, StringViewArray,
    };

    use super::*;
    use crate::vector::value::Type;

    #[test]
    fn rows_are_found_by_groups_few_or_many() {
        let of = vec![3, 1, 3, 0, 1, 3];
        for groups in [5, 1 << 20] {
            let sorted = RowsByGroup::new(of.clone(), groups);
            assert_eq!(sorted.of_group(3), [0, 2, 5]);
            assert_eq!(sorted.of_group(0), [3]);
            assert_eq!(sorted.of_group(1), [1, 4]);
            assert!(sorted.of_group(2).is_empty() && sorted.of_group(4).is_empty());
        }
    }

    /// Values of all kinds, most with NULLs.
    fn columns(rows: i64) -> Vec<ArrayRef> {
        let some = |nulls: i64| move |row: i64| (nulls == 0 || row % nulls != 0).then_some(row);
        let texts = (0..rows).map(|row| some(7)(row).map(|row| format!("text number {row}")));
        let wide = (0..rows).map(|row| some(5)(row).map(|row| i128::from(row) << 70));
        vec![
            Arc::new((0..rows).map(some(0)).collect::<Int64Array>()),
            Arc::new((0..rows).map(some(3)).collect::<Int64Array>()),
            Arc::new(Float64Array::from_iter(
                (0..rows).map(|row| some(4)(row).map(|row| row as f64 / 8.0)),
            )),
            Arc::new(BooleanArray::from_iter(
                (0..rows).map(|row| some(6)(row).map(|row| row % 4 == 1)),
            )),
            Arc::new(wide.collect::<Decimal128Array>()),
            Arc::new(texts.collect::<StringViewArray>()),
        ]
    }

    #[test]
    fn values_of_groups_are_those_that_came_with_them() {
        let rows = 5_000;
        let of: Vec<u32> = (0..rows as u32).map(|row| row * row % 23).collect();
        for column in columns(rows) {
            let ty = Type::of(column.data_type(), true).unwrap();
            // A part without NULLs beside those that have some.
            let mut parts = vec![(vec![2, 22], part(&column, &[1, 1], &ty))];
            let mut all = vec![(2, 1), (22, 1)];
            for own in (0..rows as u32).collect::<Vec<_>>().chunks(700) {
                let groups = own.iter().map(|row| of[*row as usize]).collect();
                parts.push((groups, part(&column, own, &ty)));
                all.extend(own.iter().map(|row| (of[*row as usize], *row)));
            }
            for groups in [24, 1 << 20] {
                let found = ByGroup::new(&parts, ty.kind, groups).unwrap();
                for some in [&[0, 1, 2, 3, 4][..], &[22, 5, 2], &[23], &[]] {
                    let wanted = some.iter().flat_map(|group| {
                        let own = all.iter().filter(move |(of, _)| of == group);
                        own.map(|(_, row)| *row)
                    });
                    let wanted: Vec<u32> = wanted.collect();
                    let count: usize = some.iter().map(|group| found.count(*group)).sum();
                    assert_eq!(count, wanted.len());
                    let own = found.values(some).unwrap().decoded(&ty).unwrap();
                    let wanted = part(&column, &wanted, &ty).decoded(&ty).unwrap();
                    assert_eq!(&own, &wanted, "{some:?} of {groups}");
                }
            }
        }
    }

    /// Some rows of a column.
    fn part(column: &ArrayRef, rows: &[u32], ty: &Type) -> Vector {
        let all = Vector::from_arrow(column, ty).unwrap();
        let mut part = all.at(rows).unwrap();
        part.valid = part.valid.filter(|valid| valid.contains(&false));
        part
    }

    #[test]
    fn no_values_are_none_of_any_group() {
        for kind in [Kind::Float, Kind::Text] {
            let none = ByGroup::new(&[], kind, 3).unwrap();
            assert_eq!(none.count(2), 0);
            assert_eq!(none.values(&[0, 2]).unwrap().len(), 0);
        }
    }
}
