//! Key filters: what a finished build side says of the rows that a scan is about to read (sideways information
//! passing).
//!
//! The pipelines that probe a join table run when it is complete. An inner or semi join drops the rows whose keys are
//! not in it, so a scan may drop them first: by its zone maps whole blocks and pages, which are then not read at all,
//! and the others by testing stored values. A filter of keys that lets most rows through is skipped after the first
//! block, by its gauge.
//!
//! A scan also takes the keys of join tables, [texts](crate::execute::text_keys), too, that others probe, where the planner found that rows without them are of
//! no use there ([predicate transfer](crate::physical::transfer)).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use algebra::dot::Keys;
use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::buffer::BooleanBuffer;
use table::{Filter, Form, Gauge, Test};

use crate::execute::query_state::QueryState;
use crate::execute::text_keys::{AmongTexts, Tested};
use crate::logical::relation::Scan;
use crate::operators::join_table::JoinTable;
use crate::physical::program::{JoinKind, Operator, Pipeline, Probe, Transfer};
use crate::vector::value::{Kind, Values, Vector, is_text};

/// Keys of up to this many rows are given as ranges if they are [`FEW_RANGES`] at most: comparing takes less than
/// looking up.
const FEW_ROWS: usize = 64;
const FEW_RANGES: usize = 4;
/// A build side's keys are looked at one by one, for their extremes, if it has at most this share of the scan's rows.
const SCANNED: usize = 4;
/// A scan takes so many filters of one column from join tables that others probe, those with the fewest rows.
const MOST_TRANSFERS: usize = 2;
/// And only from tables that have at most this many times as many rows as one that its pipeline probes by the column.
const WIDER: usize = 2;

/// A filter that a finished join table gives to a scan.
pub(crate) struct KeyFilter {
    pub filter: Filter,
    /// The column, the join table and the number of the key.
    from: Transfer,
    /// What it is, such as `scan of lineitem: l_partkey among the keys of stage 2`.
    pub shown: String,
}

impl KeyFilter {
    fn new(
        from: Transfer,
        scan: &Scan,
        (test, form): (Arc<dyn Test>, Form),
        whose: &str,
    ) -> KeyFilter {
        let schema = scan.table.schema();
        let (name, stage) = (schema.field(from.column).name(), from.stage);
        KeyFilter {
            filter: Filter {
                columns: vec![from.column],
                test,
                form,
                gauge: Some(Arc::new(Gauge::default())),
            },
            from,
            shown: format!(
                "scan of {}: {name} among the keys of stage {stage}{whose}",
                scan.alias
            ),
        }
    }

    /// A line for the report, such as `... : 12.5 % of 65536 rows passed`; `None` if the filter has tested no row.
    pub(crate) fn line(&self) -> Option<String> {
        let (tested, passed) = self.filter.gauge.as_ref()?.counts();
        let share = 100.0 * passed as f64 / tested as f64;
        let line = || format!("{}: {share:.1} % of {tested} rows passed", self.shown);
        (tested > 0).then(line)
    }
}

impl QueryState {
    /// The filters that finished join tables give to the `scan` of `pipeline`: those that it probes, and those whose
    /// keys are passed on to it.
    pub(crate) fn key_filters(&self, scan: &Scan, pipeline: &Pipeline) -> Vec<KeyFilter> {
        let mut filters = Vec::new();
        if scan.table.rows() <= algebra::VECTOR_ROWS as u64 {
            return filters;
        }
        self.probed(scan, &pipeline.operators, &mut filters);
        self.passed_on(scan, pipeline, &mut filters);
        filters
    }

    /// Adds the filters of the join tables that `operators` probe.
    fn probed(&self, scan: &Scan, operators: &[Operator], filters: &mut Vec<KeyFilter>) {
        for operator in operators {
            let Operator::Probe(probe) = operator else {
                continue;
            };
            if matches!(probe.kind, JoinKind::Outer | JoinKind::Anti) {
                if probe.marks {
                    // Rows of that build side that no row of the scan reaches are still to be told from others.
                    break;
                }
                continue;
            }
            if let Some(join_table) = &self.join_tables[probe.stage] {
                self.filters_of(probe, join_table, scan, filters);
            }
            if probe.marks {
                break;
            }
        }
    }

    /// Adds the filters of join tables whose keys are passed on to the scan.
    fn passed_on(&self, scan: &Scan, pipeline: &Pipeline, filters: &mut Vec<KeyFilter>) {
        let mut columns: BTreeMap<usize, Vec<(&JoinTable, Transfer)>> = BTreeMap::new();
        for transfer in &pipeline.transfers {
            let Some(join_table) = self.join_tables[transfer.stage].as_deref() else {
                continue;
            };
            let own = filters
                .iter()
                .filter(|own| own.from.column == transfer.column);
            let mut own = own.filter_map(|own| {
                let rows = self.join_tables[own.from.stage].as_ref()?.rows;
                Some(own.from == *transfer || join_table.rows > rows.saturating_mul(WIDER))
            });
            // A part of a table says nothing of the rows that others compare with the rest.
            let is_whole = join_table.numbers.is_none() && join_table.pass.is_none();
            if is_whole && !own.any(|is_enough| is_enough) {
                let all = columns.entry(transfer.column).or_default();
                all.push((join_table, *transfer));
            }
        }
        for mut tables in columns.into_values() {
            tables.sort_by_key(|(join_table, _)| join_table.rows);
            tables.dedup_by_key(|(_, from)| *from);
            let found = tables.into_iter().filter_map(|(join_table, from)| {
                let mut is_own = false;
                pipeline.tables(&mut |stage| is_own |= stage == from.stage);
                let whose = if is_own { "" } else { " that others probe" };
                if !is_text(scan.table.schema().field(from.column).data_type()) {
                    return key_filter(join_table, from, scan, whose);
                }
                // Who probes the table itself looks at each text anyway.
                if is_own {
                    return None;
                }
                text_filter(join_table, from, scan, whose)
            });
            filters.extend(found.take(MOST_TRANSFERS));
        }
    }

    fn filters_of(
        &self,
        probe: &Probe,
        join_table: &JoinTable,
        scan: &Scan,
        filters: &mut Vec<KeyFilter>,
    ) {
        for (place, var) in probe.keys.iter().enumerate() {
            let column = scan.columns.iter().find(|(own, _)| own == var);
            let whole = self.types[*var].kind == Kind::Int;
            let Some((_, column)) = column.filter(|_| whole) else {
                continue;
            };
            let from = Transfer {
                column: *column,
                stage: probe.stage,
                place,
            };
            filters.extend(key_filter(join_table, from, scan, ""));
        }
    }
}

/// The filter that a join table gives to a column of `scan`, if it has one. `whose` is shown behind its stage.
fn key_filter(
    join_table: &JoinTable,
    from: Transfer,
    scan: &Scan,
    whose: &str,
) -> Option<KeyFilter> {
    let form = match (few(join_table, from.place), join_table.keys()) {
        (Some(ranges), _) => Form::Ranges(ranges.into()),
        (None, Some(keys)) => Form::Keys(keys),
        (None, None) if has_many(join_table, scan) => return None,
        (None, None) => Form::Ranges(extremes(join_table, from.place)?.into()),
    };
    let test: Arc<dyn Test> = match &form {
        Form::Keys(keys) => Arc::new(AmongKeys(keys.clone())),
        Form::Ranges(ranges) => Arc::new(AmongRanges(ranges.clone())),
        _ => return None,
    };
    Some(KeyFilter::new(from, scan, (test, form), whose))
}

/// The same of a key that is a text, if the join table has few enough of them.
fn text_filter(
    join_table: &JoinTable,
    from: Transfer,
    scan: &Scan,
    whose: &str,
) -> Option<KeyFilter> {
    if has_many(join_table, scan) {
        return None;
    }
    let test = Arc::new(AmongTexts::of(join_table.key(from.place)?)?);
    let form = Form::Labels(Arc::default());
    Some(KeyFilter::new(from, scan, (test, form), whose))
}

/// Whether a join table has so many rows that it takes too long to look at each key.
fn has_many(join_table: &JoinTable, scan: &Scan) -> bool {
    join_table.rows.saturating_mul(SCANNED) as u64 > scan.table.rows()
}

/// The values that a join table has of its key number `place`, NULLs left out; `None` if they are not whole numbers.
fn values(join_table: &JoinTable, place: usize) -> Option<impl Iterator<Item = i64> + '_> {
    let Vector {
        values: Values::Int(values),
        valid,
    } = join_table.key(place)?
    else {
        return None;
    };
    let there = move |row: usize| valid.as_ref().is_none_or(|valid| valid[row]);
    let rows = values.iter().enumerate();
    Some(rows.filter_map(move |(row, value)| there(row).then_some(*value)))
}

/// The keys as few ranges, if they are.
fn few(join_table: &JoinTable, place: usize) -> Option<Vec<(i128, i128)>> {
    if join_table.rows > FEW_ROWS {
        return None;
    }
    let sorted: BTreeSet<i64> = values(join_table, place)?.collect();
    let mut ranges: Vec<(i128, i128)> = Vec::new();
    for value in sorted.into_iter().map(i128::from) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == value => *last = value,
            _ => ranges.push((value, value)),
        }
    }
    (ranges.len() <= FEW_RANGES).then_some(ranges)
}

/// The range from the least to the greatest key; none if there are only NULLs.
fn extremes(join_table: &JoinTable, place: usize) -> Option<Vec<(i128, i128)>> {
    let all = values(join_table, place)?;
    let ends = all.fold(None, |ends: Option<(i64, i64)>, value| {
        let (min, max) = ends.unwrap_or((value, value));
        Some((min.min(value), max.max(value)))
    });
    let range = ends.map(|(min, max)| (i128::from(min), i128::from(max)));
    Some(range.into_iter().collect())
}

/// A row passes if its value is a key.
#[derive(Debug)]
struct AmongKeys(Keys);

/// A row passes if its value is in one of the ranges.
#[derive(Debug)]
struct AmongRanges(Arc<[(i128, i128)]>);

/// Which of `array`'s values are hits; NULL is none.
fn hits(array: &ArrayRef, bits: BooleanBuffer) -> BooleanArray {
    BooleanArray::new(bits, array.logical_nulls())
}

impl Test for AmongKeys {
    fn evaluate(&self, columns: &[ArrayRef], _rows: usize) -> Tested {
        let mut values = Vec::with_capacity(columns[0].len());
        table::ints_of(&columns[0], &mut values)?;
        let key = |row: usize| self.0.any_within(values[row], values[row]);
        let bits = BooleanBuffer::collect_bool(values.len(), key);
        Ok(hits(&columns[0], bits))
    }
}

impl Test for AmongRanges {
    fn evaluate(&self, columns: &[ArrayRef], _rows: usize) -> Tested {
        let mut values = Vec::with_capacity(columns[0].len());
        table::wides_of(&columns[0], &mut values)?;
        let inside = |row: usize| {
            let value = values[row];
            self.0.iter().any(|(a, b)| *a <= value && value <= *b)
        };
        let bits = BooleanBuffer::collect_bool(values.len(), inside);
        Ok(hits(&columns[0], bits))
    }
}
