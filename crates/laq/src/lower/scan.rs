//! Scans, and the conditions that they test on stored values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::{Error, Kind, Rel, Result, Scan, Type, Var};
use table::{Filter, Form, LabelHits, Zone};

use crate::check::element::{Class, class};
use crate::lower::call::{RangeTest, TextTest};
use crate::lower::filtered;
use crate::lower::lowering::{Frame, Lowering};
use crate::show;
use crate::space::{InstanceId, TermId};
use crate::syntax::Sign;
use crate::term::{Literal, Op, Term};

/// Both ends included; ascending and disjoint.
type Ranges = Vec<(i128, i128)>;

const EVERYTHING: (i128, i128) = (i128::MIN, i128::MAX);

/// More ranges than this are not tested on stored values.
const MOST_RANGES: usize = 16;

/// Share of the rows that is expected to pass a test of which nothing is known.
const DEFAULT_SHARE: f64 = 0.2;

impl Lowering<'_> {
    /// The records of a table that fulfil `conditions`, which read nothing else, with `columns`.
    pub(super) fn scan(
        &mut self,
        instance: InstanceId,
        number: usize,
        columns: BTreeSet<usize>,
        conditions: Vec<TermId>,
    ) -> Result<(Rel, Vec<(usize, Var)>)> {
        let table = Arc::clone(self.catalog.table(number));
        let mut frame = Frame::default();
        let mut vars = Vec::with_capacity(columns.len());
        for column in columns {
            let ty = self.column_type(number, column)?;
            let var = self.query.add(&table.definition().columns[column].name, ty);
            frame.columns.insert((instance, column), var);
            vars.push((column, var));
        }
        let (mut ranges, mut filters, mut rest) = (BTreeMap::new(), vec![], vec![]);
        let mut shown = Vec::new();
        for condition in conditions {
            let show = show::term(condition, self.catalog, self.terms);
            if let Some((column, own)) = self.ranges(condition) {
                let known = ranges.entry(column).or_insert(vec![EVERYTHING]);
                let both = intersect(known, &own);
                if both.len() <= MOST_RANGES {
                    *known = both;
                    shown.push(show);
                    continue;
                }
            } else if let Some((column, test)) = self.text_test(condition) {
                filters.push(Filter {
                    columns: vec![column],
                    test: Arc::new(test),
                    form: Form::Labels(Arc::new(LabelHits::default())),
                    gauge: None,
                });
                shown.push(show);
                continue;
            }
            rest.push(condition);
        }
        // The cheapest first.
        let tested = ranges.into_iter().filter(|(_, r)| r[..] != [EVERYTHING]);
        let numbers = tested.map(|(column, ranges)| {
            let ranges: Arc<[(i128, i128)]> = ranges.into();
            Filter {
                columns: vec![column],
                test: Arc::new(RangeTest(Arc::clone(&ranges))),
                form: Form::Ranges(ranges),
                gauge: None,
            }
        });
        let filters: Vec<Filter> = numbers.chain(filters).collect();
        let expected = filters
            .iter()
            .map(|filter| self.share(number, filter))
            .fold(table.rows() as f64, |rows, share| rows * share);
        let mut rel = Rel::Scan(Scan {
            alias: table.definition().name.clone(),
            columns: vars.iter().map(|(column, var)| (*var, *column)).collect(),
            parts: vec![],
            row_ids: None,
            table,
            filters,
            shown,
            expected,
        });
        for condition in rest {
            let predicate = self.expr(condition, &frame)?;
            rel = filtered(rel, predicate);
        }
        Ok((rel, vars))
    }

    fn column_type(&self, number: usize, column: usize) -> Result<Type> {
        let table = self.catalog.table(number);
        let definition = &table.definition().columns[column];
        let known = table.statistics(column);
        let nulls = known.nulls > 0 || table.tail_rows() > 0;
        let data = &definition.data_type;
        let Some(mut ty) = Type::of(data, definition.nullable && nulls) else {
            return Err(Error::Unsupported(format!("values of type {data}")));
        };
        if let Some(Zone::Int { min, max }) = known.zone {
            ty = ty.within((min, max));
        }
        if let Some(labels) = self.catalog.dictionary(number, column)
            && ty.kind == Kind::Text
        {
            ty = ty.coded(Arc::clone(labels));
        }
        Ok(ty)
    }

    /// Share of the rows that is expected to pass.
    fn share(&self, number: usize, filter: &Filter) -> f64 {
        let column = filter.columns[0];
        match &filter.form {
            Form::Ranges(ranges) => {
                let Some(Zone::Int { min, max }) =
                    self.catalog.table(number).statistics(column).zone
                else {
                    return DEFAULT_SHARE;
                };
                let width = |low: i128, high: i128| (high - low) as f64 + 1.0;
                let inside = ranges.iter().map(|(a, b)| (*a.max(&min), *b.min(&max)));
                let inside = inside.filter(|(low, high)| low <= high);
                inside.map(|(low, high)| width(low, high)).sum::<f64>() / width(min, max)
            }
            Form::Labels(hits) => match self.catalog.dictionary(number, column) {
                Some(dictionary) => hits.share(filter, dictionary).unwrap_or(DEFAULT_SHARE),
                None => DEFAULT_SHARE,
            },
            _ => DEFAULT_SHARE,
        }
    }

    /// The ranges of a column of whole numbers that `term` is equivalent to.
    fn ranges(&self, term: TermId) -> Option<(usize, Ranges)> {
        let Term::Apply(op, args) = self.terms.get(term) else {
            return None;
        };
        match (op, &args[..]) {
            (Op::Sign(Sign::Or), parts) => {
                let mut all: Option<(usize, Ranges)> = None;
                for part in parts {
                    let (column, ranges) = self.ranges(*part)?;
                    all = Some(match all {
                        None => (column, ranges),
                        Some((known, _)) if known != column => return None,
                        Some((_, known)) => (column, union([known, ranges].concat())),
                    });
                }
                all
            }
            (Op::Sign(Sign::And), parts) => {
                let mut all: Option<(usize, Ranges)> = None;
                for part in parts {
                    let (column, ranges) = self.ranges(*part)?;
                    all = Some(match all {
                        None => (column, ranges),
                        Some((known, _)) if known != column => return None,
                        Some((_, known)) => (column, intersect(&known, &ranges)),
                    });
                }
                all
            }
            (Op::Sign(sign), [column, value]) => {
                let (column, scale) = self.whole_column(*column)?;
                Some((column, compared(*sign, self.terms.literal(*value)?, scale)?))
            }
            (Op::In, [column, among @ ..]) => {
                let (column, scale) = self.whole_column(*column)?;
                let mut all = Vec::with_capacity(among.len());
                for value in among {
                    all.extend(compared(Sign::Eq, self.terms.literal(*value)?, scale)?);
                }
                Some((column, union(all)))
            }
            _ => None,
        }
    }

    /// A bare column of whole numbers, dates or times, and its digits after the point.
    fn whole_column(&self, term: TermId) -> Option<(usize, u8)> {
        let Term::Column(_, column) = self.terms.get(term) else {
            return None;
        };
        match class(self.terms.data(term)) {
            Class::Number(scale) => Some((*column, scale)),
            Class::Time => Some((*column, 0)),
            _ => None,
        }
    }

    /// The test of one text column that `term` is.
    fn text_test(&self, term: TermId) -> Option<(usize, TextTest)> {
        let Term::Apply(op, args) = self.terms.get(term) else {
            return None;
        };
        let text = |term: TermId| match self.terms.get(term) {
            Term::Column(_, column) if class(self.terms.data(term)) == Class::Text => Some(*column),
            _ => None,
        };
        let constant = |term: TermId| match self.terms.literal(term) {
            Some(Literal::Text(text)) => Some(text.clone()),
            _ => None,
        };
        match (op, &args[..]) {
            (Op::Sign(sign @ (Sign::And | Sign::Or)), parts) => {
                let parts: Option<Vec<_>> = parts.iter().map(|p| self.text_test(*p)).collect();
                let (columns, tests): (BTreeSet<usize>, Vec<_>) = parts?.into_iter().unzip();
                let [column] = columns.into_iter().collect::<Vec<_>>()[..] else {
                    return None;
                };
                let test = match sign {
                    Sign::And => TextTest::All(tests),
                    _ => TextTest::Any(tests),
                };
                Some((column, test))
            }
            (Op::Sign(sign), [column, with]) => {
                Some((text(*column)?, TextTest::Compare(*sign, constant(*with)?)))
            }
            (Op::In, [column, among @ ..]) => {
                let among: Option<Vec<_>> = among.iter().map(|one| constant(*one)).collect();
                Some((text(*column)?, TextTest::In(among?)))
            }
            (Op::Match(pattern), [column]) => {
                let pattern = super::expr::regex(pattern).ok()?;
                Some((text(*column)?, TextTest::Match(pattern)))
            }
            (Op::IsNull, [column]) => Some((text(*column)?, TextTest::Null)),
            (Op::Not, [inner]) => {
                let (column, test) = self.text_test(*inner)?;
                Some((column, TextTest::Not(Box::new(test))))
            }
            _ => None,
        }
    }
}

/// The stored numbers of a column with `scale` digits after the point that are `sign` `value`.
fn compared(sign: Sign, value: &Literal, scale: u8) -> Option<Ranges> {
    // The greatest stored number that is not above the value, and whether it is the value.
    let (floor, exact) = match value {
        Literal::Typed(value, _) => (i128::from(*value), true),
        Literal::Number(digits, own) if *own <= scale => {
            let up = 10i128.checked_pow(u32::from(scale - own))?;
            (digits.checked_mul(up)?, true)
        }
        Literal::Number(digits, own) => {
            let down = 10i128.checked_pow(u32::from(own - scale))?;
            (digits.div_euclid(down), digits.rem_euclid(down) == 0)
        }
        _ => return None,
    };
    let (below, above) = (floor.checked_sub(1)?, floor.checked_add(1)?);
    let (least, most) = EVERYTHING;
    Some(match (sign, exact) {
        (Sign::Eq, true) => vec![(floor, floor)],
        (Sign::Eq, false) => vec![],
        (Sign::Ne, true) => vec![(least, below), (above, most)],
        (Sign::Ne, false) => vec![EVERYTHING],
        (Sign::Lt, true) => vec![(least, below)],
        (Sign::Lt, false) | (Sign::Le, _) => vec![(least, floor)],
        (Sign::Gt, _) | (Sign::Ge, false) => vec![(above, most)],
        (Sign::Ge, true) => vec![(floor, most)],
        _ => return None,
    })
}

fn union(mut all: Ranges) -> Ranges {
    all.sort_unstable();
    let mut out: Ranges = Vec::with_capacity(all.len());
    for (low, high) in all {
        match out.last_mut() {
            Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
            _ => out.push((low, high)),
        }
    }
    out
}

fn intersect(a: &Ranges, b: &Ranges) -> Ranges {
    let mut out = Ranges::new();
    for (low, high) in a {
        for (from, to) in b {
            let both = (*low.max(from), *high.min(to));
            if both.0 <= both.1 {
                out.push(both);
            }
        }
    }
    union(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_with_digits_that_no_stored_number_has() {
        // Of hundredths: 0.055 lies between 5 and 6.
        let value = Literal::Number(55, 3);
        let ranges = |sign| compared(sign, &value, 2).unwrap();
        let (least, most) = EVERYTHING;
        assert_eq!(ranges(Sign::Lt), [(least, 5)]);
        assert_eq!(ranges(Sign::Le), [(least, 5)]);
        assert_eq!(ranges(Sign::Gt), [(6, most)]);
        assert_eq!(ranges(Sign::Ge), [(6, most)]);
        assert!(ranges(Sign::Eq).is_empty());
        assert_eq!(ranges(Sign::Ne), [EVERYTHING]);
        let below = Literal::Number(-55, 3);
        assert_eq!(compared(Sign::Ge, &below, 2).unwrap(), [(-5, most)]);
        assert_eq!(compared(Sign::Lt, &below, 2).unwrap(), [(least, -6)]);
    }

    #[test]
    fn ranges_that_touch_become_one() {
        assert_eq!(union(vec![(5, 6), (1, 2), (3, 3)]), [(1, 3), (5, 6)]);
        assert_eq!(
            intersect(&vec![(1, 9)], &vec![(0, 2), (5, 20)]),
            [(1, 2), (5, 9)]
        );
    }
}
