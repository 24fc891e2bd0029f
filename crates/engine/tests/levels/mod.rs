//! Groups that are merged to coarser ones, and variances, whose parts are merged when groups are spilled.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::Float64Array;
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use engine::{Execution, Executor, Expr, Fold, Function, Literal, Prepared, Query, Rel, Type, Var};

use crate::{check, int, prepared, rows, run, runtime, spilling, text};

/// Four functions of `value`, whose results are `vars`; or of those of finer groups, which are `from`.
fn folds(value: Var, vars: [Var; 4], from: Option<[Var; 4]>) -> Vec<Fold> {
    let functions = match from {
        None => [
            (Function::Sum, value),
            (Function::Count, value),
            (Function::Min, value),
            (Function::Avg, value),
        ],
        Some([sums, counts, least, _]) => [
            (Function::Sum, sums),
            (Function::CountTotal, counts),
            (Function::Min, least),
            (Function::AvgOfSums { counts }, sums),
        ],
    };
    let each = vars.into_iter().zip(functions);
    let each = each.map(|(var, (function, arg))| Fold {
        var,
        function,
        arg: Some(arg),
    });
    each.collect()
}

/// Groups by `k` and the text, those merged to groups by the text, and these to one: the rows of all three.
pub fn levels(many: i64) -> Arc<Prepared> {
    let mut query = Query::default();
    let rows = rows(&mut query, many, 1);
    let wide = Type::of(&DataType::Decimal128(38, 0), true).unwrap();
    let types = [
        ("sum", wide),
        ("count", int().nullable(false)),
        ("least", int()),
        ("average", Type::of(&DataType::Float64, true).unwrap()),
    ];
    let results = |query: &mut Query| types.clone().map(|(name, ty)| query.add(name, ty));
    let value = rows.v;
    let mut vars = results(&mut query);
    let mut level = Arc::new(Rel::Fold {
        folds: folds(value, vars, None),
        input: Box::new(rows.rel),
        keys: vec![rows.k, rows.t],
    });
    let mut key = rows.t;
    let mut inputs = vec![];
    for has_key in [true, true, false] {
        // The rows of the level before: for the answer, and to be merged.
        let again = |query: &mut Query| {
            let own = [query.add("t", text()), query.add("none", text())];
            let results = results(query);
            let pairs = vars.into_iter().zip(results);
            let key = has_key.then_some((key, own[0]));
            let shared = Rel::Shared {
                input: Arc::clone(&level),
                vars: key.into_iter().chain(pairs).collect(),
            };
            (shared, own, results)
        };
        let (shared, [t, none], own) = again(&mut query);
        let null = Expr::literal(Literal::Null, &DataType::Utf8View).unwrap();
        let shared = Rel::Map {
            input: Box::new(shared),
            exprs: vec![(none, null)],
        };
        let first = if has_key { t } else { none };
        inputs.push((shared, [vec![first], own.to_vec()].concat()));
        let (shared, [t, _], own) = again(&mut query);
        vars = results(&mut query);
        let by = inputs.len() == 1;
        level = Arc::new(Rel::Fold {
            input: Box::new(shared),
            keys: if by { vec![t] } else { vec![] },
            folds: folds(value, vars, Some(own)),
        });
        key = t;
    }
    let own = results(&mut query);
    let vars = [vec![query.add("t", text())], own.to_vec()].concat();
    let root = Rel::Union {
        inputs,
        vars: vars.clone(),
    };
    prepared(query, root, vars)
}

/// Groups that are merged are those of all rows: here of the values that each text has.
#[test]
fn merged_groups_are_those_of_the_rows() {
    let many = 6_000;
    let mut groups: BTreeMap<Option<i64>, Vec<i64>> = BTreeMap::new();
    for i in 0..many {
        let text = (i % 13 > 0).then(|| i * 31 % 5_000);
        let values = groups.entry(text).or_default();
        values.extend((i % 11 > 0).then_some(i % 1_000));
    }
    let line = |text: Option<i64>, values: &[i64]| {
        let text = text.map_or(String::new(), |n| format!("the text number {n}"));
        let (sum, count) = (values.iter().sum::<i64>(), values.len());
        match values.iter().min() {
            Some(least) => {
                let average = Float64Array::from(vec![sum as f64 / count as f64]);
                let options = FormatOptions::default();
                let average = ArrayFormatter::try_new(&average, &options).unwrap();
                format!("{text}|{sum}|{count}|{least}|{}", average.value(0))
            }
            None => format!("{text}||0||"),
        }
    };
    let by_text = groups.iter().map(|(text, values)| line(*text, values));
    let whole: Vec<i64> = groups.values().flatten().copied().collect();
    let mut wanted: Vec<String> = by_text.chain([line(None, &whole)]).collect();
    // Of the finest level each group has a row.
    for i in 0..many {
        let text = (i % 13 > 0).then(|| i * 31 % 5_000);
        let value: Vec<i64> = (i % 11 > 0).then_some(i % 1_000).into_iter().collect();
        wanted.push(line(text, &value));
    }
    let runtime = runtime::on("2x1", 2);
    let (found, _) = run(&levels(many), &runtime, &Execution::default()).unwrap();
    check("groups of groups", false, &wanted, found);
}

#[test]
fn variances_of_spilled_groups_are_those_of_all_values() {
    use Function::{StddevPop, StddevSamp, VarPop, VarSamp};
    let many = 6_000;
    let mut query = Query::default();
    let rows = rows(&mut query, many, 1);
    let float = Type::of(&DataType::Float64, true).unwrap();
    let value = query.add("value", float.clone());
    let cast = engine::cast(query.expr(rows.v), &DataType::Float64).unwrap();
    let of = [VarSamp, VarPop, StddevSamp, StddevPop];
    let folds: Vec<Fold> = of
        .map(|function| Fold {
            var: query.add(format!("{function:?}"), float.clone()),
            function,
            arg: Some(value),
        })
        .into();
    let vars = [
        vec![rows.t],
        folds.iter().map(|fold| fold.var).collect::<Vec<_>>(),
    ];
    let root = Rel::Fold {
        input: Box::new(Rel::Map {
            input: Box::new(rows.rel),
            exprs: vec![(value, cast)],
        }),
        keys: vec![rows.t],
        folds,
    };
    let prepared = prepared(query, root, vars.concat());
    let mut groups: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for i in 0..many {
        let text = (i % 13 > 0).then(|| format!("the text number {}", i * 31 % 5_000));
        let values = groups.entry(text.unwrap_or_default()).or_default();
        values.extend((i % 11 > 0).then_some((i % 1_000) as f64));
    }
    let near = |found: &str, wanted: Option<f64>| match (found.parse::<f64>().ok(), wanted) {
        (Some(found), Some(wanted)) => (found - wanted).abs() <= 1e-9 * wanted.abs().max(1.0),
        (found, wanted) => found == wanted,
    };
    let runtime = runtime::on("2x1", 2);
    for room in [None, Some(40)] {
        let mut execution = spilling(Executor::Fused);
        execution.max_rows_before_spill = room;
        let (found, _) = run(&prepared, &runtime, &execution).unwrap();
        assert_eq!(found.len(), groups.len());
        for row in found {
            let columns: Vec<&str> = row.split('|').collect();
            let values = &groups[columns[0]];
            let count = values.len() as f64;
            let mean = values.iter().sum::<f64>() / count;
            let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
            let samp = (count > 1.0).then(|| squares / (count - 1.0));
            let pop = (count > 0.0).then(|| squares / count);
            let wanted = [samp, pop, samp.map(f64::sqrt), pop.map(f64::sqrt)];
            for (found, wanted) in columns[1..].iter().zip(wanted) {
                assert!(near(found, wanted), "{row}: {wanted:?}, {room:?}");
            }
        }
    }
}
