//! Functions of distinct values in two levels of groups.
//!
//! `select region, count(distinct user), count(*), avg(width) from hits group by region` would keep a set of pairs of a region and a
//! user, which only one worker can merge of the sets of all. So rows are grouped by region and user first, with a count and a sum for
//! each pair; then these groups are grouped by region, where each user comes once: `count(distinct user)` counts those that are not
//! NULL, the counts are added up, and the average follows from sums and counts. Groups by hash are merged by all workers, and spilled
//! like any others.

use crate::logical::parts::{Merged, Part, has_room, within_sums};
use crate::logical::relation::{Fold, Function, Query, Rel};
use crate::physical::statistics::has_many_groups;
use crate::vector::key_encoding;
use crate::vector::value::{Kind, Type, Var};

/// Distinct values become groups if at least so many pairs of a group and a value are expected: about as many as all workers merge.
const MANY_PAIRS: f64 = 50_000.0;

/// If it is not known how many pairs there are: if there are at least so many rows. Few pairs of many rows cost no more as groups.
const MANY_ROWS: f64 = 200_000.0;

/// Most results that groups by distinct values have: there may be nearly as many groups as rows, and each of them keeps all.
const MOST_PARTS: usize = 8;

/// The rows to group and the functions of them: those given, or, if that pays, groups by the keys and the distinct values, and the
/// functions that merge them. The keys stay as they are.
pub(crate) fn as_groups(
    query: &mut Query,
    input: Rel,
    keys: &[Var],
    folds: Vec<Fold>,
) -> (Rel, Vec<Fold>) {
    let many = (MANY_PAIRS, MANY_ROWS);
    let levels = Levels::of(query, keys, &folds);
    let pays = |levels: &Levels| has_many_groups(query, &input, &levels.keys, many);
    match levels.filter(pays) {
        Some(levels) => levels.made(query, input, &folds),
        None => (input, folds),
    }
}

/// How the functions of an aggregate follow from finer groups.
#[derive(Debug)]
struct Levels {
    /// The keys of these: those of the aggregate, and the distinct values.
    keys: Vec<Var>,
    parts: Vec<Part>,
    /// For each function of the aggregate.
    results: Vec<Finer>,
}

/// How the result of a function follows from finer groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finer {
    /// From their results.
    Merged(Merged),
    /// By this function of a key of theirs.
    Key(Function, Var),
}

impl Levels {
    /// `None` if functions are of distinct values of several arguments or of none, or cannot be merged.
    fn of(query: &Query, keys: &[Var], folds: &[Fold]) -> Option<Levels> {
        let distinct = folds.iter();
        let mut distinct = distinct.filter(|fold| fold.function.of_distinct().is_some());
        let value = distinct.next()?.arg?;
        // A group has one value of its key.
        let is_alone = distinct.all(|fold| fold.arg == Some(value)) && !keys.contains(&value);
        if !is_alone {
            return None;
        }
        let keys: Vec<Var> = keys.iter().copied().chain([value]).collect();
        key_encoding::check(keys.iter().map(|key| query.ty(*key))).ok()?;
        let mut parts = Vec::new();
        let results = folds.iter().map(|fold| {
            if !has_parts(query, fold) {
                return None;
            }
            match fold.function.of_distinct() {
                Some(function) => Some(Finer::Key(function, value)),
                None => Part::of(fold, query, &mut parts).ok().map(Finer::Merged),
            }
        });
        let results: Vec<Finer> = results.collect::<Option<_>>()?;
        (parts.len() <= MOST_PARTS).then_some(Levels {
            keys,
            parts,
            results,
        })
    }

    /// The finer groups of `input`, and what computes the results of `folds` of them.
    fn made(self, query: &mut Query, input: Rel, folds: &[Fold]) -> (Rel, Vec<Fold>) {
        let mut vars = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let ty = narrowed(query, part);
            vars.push(query.add(format!("part of {}", part.name), ty));
        }
        let parts = self.parts.iter().zip(&vars);
        let groups = Rel::Fold {
            input: Box::new(input),
            keys: self.keys,
            folds: parts.map(|(part, var)| part.of_rows(*var)).collect(),
        };
        let folds = folds.iter().zip(&self.results);
        let folds = folds.map(|(fold, finer)| match finer {
            Finer::Merged(merged) => merged.fold(fold.var, &self.parts, &vars),
            Finer::Key(function, value) => {
                // Without NULLs it counts rows.
                let counts_rows = *function == Function::Count && !query.ty(*value).nullable;
                Fold {
                    var: fold.var,
                    function: *function,
                    arg: Some(*value).filter(|_| !counts_rows),
                }
            }
        });
        let folds = folds.collect();
        (groups, folds)
    }
}

/// Whether the result of a function is the same in two levels, and its parts are small.
fn has_parts(query: &Query, fold: &Fold) -> bool {
    let ty = fold.arg.map(|arg| query.ty(arg));
    match (fold.function, ty) {
        // Keys have one zero; but a sum of nothing but -0 is -0.
        (Function::SumDistinct | Function::AvgDistinct, Some(ty)) => ty.kind != Kind::Float,
        // The sum of a part may be out of 128 bits although that of all rows is not.
        (Function::Sum | Function::Avg, Some(ty)) => ty.kind != Kind::Wide || has_room(ty.bounds),
        // Nearly each row would keep a string of its own.
        (Function::Min | Function::Max, Some(ty)) => ty.kind != Kind::Text,
        _ => true,
    }
}

/// The type of a part's results, with what is known of sums: of short numbers they fit in 64 bits.
fn narrowed(query: &Query, part: &Part) -> Type {
    let ty = part.ty.clone();
    match (part.function, part.arg) {
        (Function::Sum, Some(arg)) => ty.within(within_sums(query.ty(arg).bounds)),
        _ => ty,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{RecordBatch, RecordBatchOptions};
    use arrow::datatypes::{DataType, Schema};

    use super::*;

    /// A relation of which nothing but the number of its rows is known.
    fn rows(count: usize) -> Rel {
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let schema = Arc::new(Schema::empty());
        Rel::Values {
            vars: vec![],
            batch: RecordBatch::try_new_with_options(schema, vec![], &options).unwrap(),
        }
    }

    /// A query with vectors of these types, and a function of each of `all` with a result of its own.
    fn query(types: &[Type], all: &[(Function, Option<Var>)]) -> (Query, Vec<Fold>) {
        let mut query = Query::default();
        for ty in types {
            query.add("column", ty.clone());
        }
        let result = Type::of(&DataType::Int64, true).unwrap();
        let folds = all.iter().map(|(function, arg)| Fold {
            var: query.add(format!("{function:?}"), result.clone()),
            function: *function,
            arg: *arg,
        });
        let folds = folds.collect();
        (query, folds)
    }

    fn of(data: &DataType, nullable: bool) -> Type {
        Type::of(data, nullable).unwrap()
    }

    /// The keys and functions of groups; `None` of another relation.
    fn groups(rel: Rel) -> Option<(Vec<Var>, Vec<Fold>)> {
        match rel {
            Rel::Fold { keys, folds, .. } => Some((keys, folds)),
            _ => None,
        }
    }

    fn functions(folds: &[Fold]) -> Vec<(Function, Option<Var>)> {
        folds.iter().map(|fold| (fold.function, fold.arg)).collect()
    }

    #[test]
    fn groups_of_values_are_merged_to_those_of_keys() {
        use Function::{Avg, AvgDistinct, Count, CountDistinct, Max, Sum, SumDistinct};
        let (long, short) = (DataType::Int64, DataType::Int16);
        let types = [of(&long, true), of(&long, true), of(&short, false)];
        let all = [
            (CountDistinct, Some(1)),
            (Avg, Some(2)),
            (Count, None),
            (SumDistinct, Some(1)),
            (Max, Some(0)),
            (AvgDistinct, Some(1)),
            (Sum, Some(2)),
            (Count, Some(1)),
        ];
        let (mut query, folds) = query(&types, &all);
        let first = query.vars.len();
        let (rel, merging) = as_groups(&mut query, rows(200_000), &[0], folds.clone());
        let (keys, parts) = groups(rel).unwrap();
        assert_eq!(keys, [0, 1]);
        let part = |place: usize| Some(first + place);
        let wanted = [
            (Sum, Some(2)),
            (Count, None),
            (Max, Some(0)),
            (Count, Some(1)),
        ];
        assert_eq!(functions(&parts), wanted);
        let vars: Vec<Var> = parts.iter().map(|fold| fold.var).collect();
        assert_eq!(vars, (first..first + 4).collect::<Vec<_>>());
        let counts = first + 1;
        let wanted = [
            (Count, Some(1)),
            (Function::AvgOfSums { counts }, part(0)),
            (Function::CountTotal, part(1)),
            (Sum, Some(1)),
            (Max, part(2)),
            (Avg, Some(1)),
            (Sum, part(0)),
            (Function::CountTotal, part(3)),
        ];
        assert_eq!(functions(&merging), wanted);
        let results = |folds: &[Fold]| folds.iter().map(|fold| fold.var).collect::<Vec<_>>();
        assert_eq!(results(&merging), results(&folds));
        // As many numbers of 16 bits as there can be have a sum of 64.
        assert_eq!(query.ty(first).kind, Kind::Int);
    }

    #[test]
    fn values_without_nulls_are_counted_as_rows() {
        let types = [of(&DataType::Utf8View, false)];
        let (mut query, folds) = query(&types, &[(Function::CountDistinct, Some(0))]);
        let (rel, merging) = as_groups(&mut query, rows(200_000), &[], folds);
        let (keys, parts) = groups(rel).unwrap();
        assert_eq!((keys, parts.len()), (vec![0], 0));
        assert_eq!(functions(&merging), [(Function::Count, None)]);
    }

    #[test]
    fn few_rows_and_few_pairs_stay() {
        let long = of(&DataType::Int64, true);
        let is_made = |types: &[Type], count: usize| {
            let (mut query, folds) = query(types, &[(Function::CountDistinct, Some(1))]);
            groups(as_groups(&mut query, rows(count), &[0], folds).0).is_some()
        };
        let within = |greatest: i128| long.clone().within((1, greatest));
        assert!(is_made(&[long.clone(), long.clone()], 200_000));
        assert!(!is_made(&[long.clone(), long.clone()], 199_999));
        assert!(is_made(&[within(100), within(1_000)], 1_000_000));
        assert!(!is_made(&[within(10), within(1_000)], 1_000_000));
    }

    #[test]
    fn what_cannot_be_merged_stays() {
        use Function::{Avg, Count, CountDistinct, Min, StddevPop, Sum, SumDistinct};
        let (long, float) = (of(&DataType::Int64, true), of(&DataType::Float64, true));
        let wide = of(&DataType::Decimal128(38, 0), true);
        let text = of(&DataType::Utf8View, true);
        let types = [long.clone(), long, float, wide, text];
        let is_made = |keys: &[Var], all: &[(Function, Option<Var>)]| {
            let (query, folds) = query(&types, all);
            Levels::of(&query, keys, &folds).is_some()
        };
        let distinct = |arg| (CountDistinct, Some(arg));
        assert!(is_made(&[0], &[distinct(1), distinct(1), (Sum, Some(2))]));
        // Without distinct values, of two arguments, and of a key.
        assert!(!is_made(&[0], &[(Count, None)]));
        assert!(!is_made(&[0], &[distinct(1), distinct(2)]));
        assert!(!is_made(&[0], &[distinct(0)]));
        // Deviations have no parts.
        assert!(!is_made(&[0], &[distinct(1), (StddevPop, Some(2))]));
        // The least string of each pair would be kept.
        assert!(!is_made(&[0], &[distinct(1), (Min, Some(4))]));
        // Both zeros are one key, NaNs another one: they are counted, but not added.
        assert!(is_made(&[0], &[distinct(2)]));
        assert!(!is_made(&[0], &[(SumDistinct, Some(2))]));
        // Sums of so many digits may be too large on their way.
        assert!(is_made(&[0], &[(SumDistinct, Some(3)), (Min, Some(3))]));
        assert!(!is_made(&[0], &[distinct(1), (Avg, Some(3))]));
    }

    #[test]
    fn each_group_keeps_few_results() {
        let many = |count: usize| {
            let types = vec![of(&DataType::Int64, true); count + 1];
            let sums = (1..=count).map(|arg| (Function::Sum, Some(arg)));
            let all: Vec<_> = sums.chain([(Function::CountDistinct, Some(0))]).collect();
            let (query, folds) = query(&types, &all);
            Levels::of(&query, &[], &folds).is_some()
        };
        assert!(many(MOST_PARTS));
        assert!(!many(MOST_PARTS + 1));
    }
}
