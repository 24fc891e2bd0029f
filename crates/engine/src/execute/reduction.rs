//! Semi-join reduction by zone map: the rows of a join table that an instance can need under the per-node policy.
//! These are the rows whose keys lie within the zones of the blocks that the instance itself scans.
//!
//! It works if every probing pipeline scans a stored table and probes by one of its whole-number columns. Where the
//! blocks of a fact table lie on the same node as the dimension rows they refer to, the instance itself has
//! collected nearly all of these rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use table::{Morsel, Scan, Table, Zone};

use crate::execute::share::InstanceShare;
use crate::physical::program::{Operator, Pipeline, Program, Sink, Source};
use crate::vector::value::{Kind, Type, Values, Var, Vector};

/// The probes of one stage's join table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Probers {
    /// For each probe: the probing table and column, and which key of the join table it is compared with.
    scans: Vec<(Arc<Table>, usize, usize)>,
    /// Whether a group join uses the table's row numbers.
    pub group_join: bool,
}

/// For each stage, who probes its join table; `None` if some probe may need any row.
pub(crate) fn uses(program: &Program, types: &[Type]) -> Vec<Option<Probers>> {
    let mut all: Vec<Option<Probers>> = program
        .stages
        .iter()
        .map(|stage| match stage.sink {
            Sink::Table { marks: false, .. } => Some(Probers::default()),
            _ => None,
        })
        .collect();
    for stage in &program.stages {
        for pipeline in &stage.pipelines {
            pipeline.tables(&mut |table| {
                if let (Some(uses), Sink::Table { keys, .. }) =
                    (&mut all[table], &program.stages[table].sink)
                {
                    match scans(pipeline, table, keys, types) {
                        Some(some) => uses.scans.extend(some),
                        None => all[table] = None,
                    }
                }
            });
        }
        if let Sink::Fold {
            group_join: Some(by),
            ..
        } = &stage.sink
            && let Some(uses) = &mut all[by.stage]
        {
            uses.group_join = true;
        }
    }
    all
}

/// The scanned columns by which `pipeline` probes the join table of stage `table`, which has these keys; `None` if a
/// probe may need any row.
fn scans(
    pipeline: &Pipeline,
    table: usize,
    keys: &[Var],
    types: &[Type],
) -> Option<Vec<(Arc<Table>, usize, usize)>> {
    let Source::Scan(scan) = &pipeline.source else {
        return None;
    };
    let mut all = Vec::new();
    for operator in &pipeline.operators {
        let Operator::Probe(probe) = operator else {
            continue;
        };
        if probe.stage != table {
            continue;
        }
        if probe.marks {
            return None;
        }
        let sought = probe.keys.iter().zip(keys).enumerate();
        let mut found = sought.filter_map(|(place, (sought, key))| {
            let (_, column) = scan.columns.iter().find(|(var, _)| var == sought)?;
            let (sought, key) = (&types[*sought], &types[*key]);
            let whole = sought.kind == Kind::Int && sought.data == key.data;
            whole.then(|| (scan.table.clone(), *column, place))
        });
        all.push(found.next()?);
    }
    Some(all)
}

/// Ranges of keys that an instance can probe with.
#[derive(Clone, Debug)]
pub(crate) struct KeyRanges {
    /// For each probe: which key it is compared with, and ranges of values, ascending and disjoint.
    uses: Vec<(usize, Vec<(i128, i128)>)>,
}

impl Probers {
    /// The key ranges that instance `share` can probe with; `None` if they are unknown.
    pub fn reach(&self, share: &InstanceShare, nodes: usize) -> Option<KeyRanges> {
        let zones = |(table, column, place): &(Arc<Table>, usize, usize)| {
            Some((*place, zones(table, *column, share, nodes)?))
        };
        let uses = self.scans.iter().map(zones).collect::<Option<Vec<_>>>()?;
        (!uses.is_empty()).then_some(KeyRanges { uses })
    }
}

/// The ranges of values of a column in the blocks of `table` that `share` reads, by zone map.
fn zones(
    table: &Arc<Table>,
    column: usize,
    share: &InstanceShare,
    nodes: usize,
) -> Option<Vec<(i128, i128)>> {
    let scan = Scan::new(table.clone(), vec![column], false);
    let own = scan.morsels();
    let own = own.filter(|(bucket, _)| share.takes(usize::from(*bucket) % nodes));
    let zone = |(_, morsel)| match morsel {
        Morsel::Block(block) => match table.block(block).columns[column].zone {
            Some(Zone::Int { min, max }) => Some((min, max)),
            _ => None,
        },
        Morsel::Tail(_) => None,
    };
    let mut all = own.map(zone).collect::<Option<Vec<_>>>()?;
    all.sort_unstable();
    let mut joined: Vec<(i128, i128)> = Vec::with_capacity(all.len());
    for (min, max) in all {
        match joined.last_mut() {
            Some((_, last)) if *last >= min => *last = max.max(*last),
            _ => joined.push((min, max)),
        }
    }
    Some(joined)
}

impl KeyRanges {
    /// The rows of a join table with the keys `keys` that may match (ascending); `None` if these are nearly all.
    pub fn rows(&self, keys: &[&Vector], rows: usize) -> Option<Vec<u32>> {
        let mut needed = vec![false; rows];
        for (place, zones) in &self.uses {
            let key = keys.get(*place)?;
            let Values::Int(values) = &key.values else {
                return None;
            };
            // Starts with the zone of the previous row: most tables are ordered by some key.
            let mut at = 0;
            for (row, value) in values.iter().enumerate() {
                let value = i128::from(*value);
                let within = |at: usize| {
                    zones
                        .get(at)
                        .is_some_and(|(a, b)| (*a..=*b).contains(&value))
                };
                if !within(at) {
                    at = zones.partition_point(|(_, max)| *max < value);
                }
                // NULL matches nothing, but an anti join may need to know that there is one.
                let null = key.valid.as_ref().is_some_and(|valid| !valid[row]);
                needed[row] |= null || within(at);
            }
        }
        let picks: Vec<u32> = (0..rows as u32)
            .filter(|row| needed[*row as usize])
            .collect();
        (picks.len() <= rows / 4 * 3).then_some(picks)
    }
}

/// For each node, how many of the rows `picks` were collected there. `nodes` says where all rows were collected,
/// run by run.
pub(crate) fn origins(
    picks: Option<&[u32]>,
    nodes: &[(Option<usize>, usize)],
) -> BTreeMap<usize, usize> {
    let mut all = BTreeMap::new();
    let (mut first, mut rest) = (0, picks);
    for (node, rows) in nodes {
        let end = first + rows;
        let own = match &mut rest {
            None => *rows,
            Some(rest) => {
                let (own, after) = rest.split_at(rest.partition_point(|row| (*row as usize) < end));
                *rest = after;
                own.len()
            }
        };
        if let (Some(node), 1..) = (node, own) {
            *all.entry(*node).or_default() += own;
        }
        first = end;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(values: &[i64], nulls: &[usize]) -> Vector {
        let mut vector = Vector::new(Values::Int(values.to_vec()));
        if !nulls.is_empty() {
            vector.valid = Some((0..values.len()).map(|row| !nulls.contains(&row)).collect());
        }
        vector
    }

    #[test]
    fn rows_within_any_zone_and_nulls_are_needed() {
        let uses = vec![(0, vec![(10, 19), (40, 49)])];
        let reach = KeyRanges { uses };
        let values = [9, 10, 19, 20, 45, 39, 12, 50, 60, 70, 80, 90];
        let key = keys(&values, &[8]);
        assert_eq!(reach.rows(&[&key], 12), Some(vec![1, 2, 4, 6, 8]));
        // All of them: a table of its own rows is not worth it.
        let key = keys(&[10, 11, 12, 13], &[]);
        assert_eq!(reach.rows(&[&key], 4), None);
        let wide = Vector::new(Values::Wide(vec![10; 4]));
        assert_eq!(reach.rows(&[&wide], 4), None);
    }

    #[test]
    fn a_row_that_one_of_several_needs_stays() {
        let uses = vec![(0, vec![(0, 0)]), (1, vec![(7, 7)])];
        let (first, second) = (keys(&[0, 1, 2, 3], &[]), keys(&[6, 7, 8, 9], &[]));
        let reach = KeyRanges { uses };
        assert_eq!(reach.rows(&[&first, &second], 4), Some(vec![0, 1]));
    }

    #[test]
    fn rows_come_from_where_they_were_collected() {
        let nodes = [(Some(1), 3), (Some(0), 2), (Some(1), 4), (None, 1)];
        assert_eq!(origins(None, &nodes), BTreeMap::from([(0, 2), (1, 7)]));
        let picks = [0, 2, 5, 6, 9];
        assert_eq!(origins(Some(&picks), &nodes), BTreeMap::from([(1, 4)]));
        assert_eq!(origins(None, &[]), BTreeMap::new());
    }
}
