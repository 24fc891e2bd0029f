//! Counting the rows of a relation.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use engine::{Execution, Fold, Function, Output, Query, Rel, Runtime, Type};

/// The number of rows of `input`, the sum of its vector `of` (0 of no rows), and what the executor told, behind
/// it the program.
pub fn counted(
    mut query: Query,
    input: Rel,
    of: usize,
    runtime: &Runtime,
    execution: &Execution,
) -> (i64, i64, String) {
    let long = Type::of(&DataType::Int64, true).unwrap();
    let vars = ["count", "sum"].map(|name| query.add(name, long.clone()));
    let functions = [(Function::Count, None), (Function::Sum, Some(of))];
    let folds = vars.into_iter().zip(functions);
    let root = Rel::Fold {
        input: Box::new(input),
        keys: vec![],
        folds: folds
            .map(|(var, (function, arg))| Fold { var, function, arg })
            .collect(),
    };
    let fields = ["count", "sum"].map(|name| Field::new(name, DataType::Int64, true));
    let output = Output {
        vars: vars.to_vec(),
        schema: Arc::new(Schema::new(fields.to_vec())),
    };
    let prepared = engine::prepare(query, root, output).unwrap();
    let program = prepared.explain().join("\n");
    let (runs, how) = (runtime.clone(), execution.clone());
    let (batches, told) = runtime
        .workers
        .block_on(async move { prepared.run_by(&runs, &how).await })
        .unwrap();
    let value = |column: usize| {
        let values = batches[0].column(column).as_primitive::<Int64Type>();
        values.iter().next().flatten().unwrap_or(0)
    };
    let told = format!("{}\n{program}", told.join("\n"));
    (value(0), value(1), told)
}
