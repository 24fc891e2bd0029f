//! Running the windows of cases.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringViewArray,
};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema};
use engine::{
    Execution, Function, Key, Output, Query, Rel, Runtime, Type, Var, WindowFold, WindowFunction,
};

use crate::model::{COLUMNS, Case, Cell, Column, Row, cell};

/// The number of a row, and what the functions gave for it.
pub type Answer = (i64, Vec<Cell>);

/// The data type of a column.
pub fn data(column: Column) -> DataType {
    match column {
        Column::F => DataType::Float64,
        Column::T => DataType::Utf8View,
        _ => DataType::Int64,
    }
}

fn batch(rows: &[Row]) -> RecordBatch {
    let array = |column: Column| -> ArrayRef {
        let cells = rows.iter().map(|row| cell(row, column));
        match column {
            Column::F => Arc::new(Float64Array::from_iter(cells.map(|cell| match cell {
                Cell::Float(v) => Some(*v),
                _ => None,
            }))),
            Column::T => Arc::new(StringViewArray::from_iter(cells.map(|cell| match cell {
                Cell::Text(v) => Some(v.clone()),
                _ => None,
            }))),
            _ => Arc::new(Int64Array::from_iter(cells.map(|cell| match cell {
                Cell::Int(v) => Some(*v),
                _ => None,
            }))),
        }
    };
    let columns = COLUMNS.map(|column| (format!("{column:?}"), array(column), true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// Whether the result is a float, whatever the values are.
fn is_of_floats(function: Function) -> bool {
    matches!(
        function,
        Function::Avg
            | Function::VarSamp
            | Function::VarPop
            | Function::StddevSamp
            | Function::StddevPop
    )
}

/// The data type of a function's result.
fn result_of(function: &WindowFunction, arg: Option<Column>) -> DataType {
    match function {
        WindowFunction::PercentRank | WindowFunction::CumeDist => DataType::Float64,
        WindowFunction::Aggregate(function, _) if is_of_floats(*function) => DataType::Float64,
        WindowFunction::Aggregate(Function::Count, _) => DataType::Int64,
        _ => arg.map_or(DataType::Int64, data),
    }
}

fn ty(data: &DataType) -> Type {
    Type::of(data, true).unwrap()
}

/// Windows over the same rows, each the input of the next, and the results of all of them.
pub fn prepared_all(cases: &[&Case]) -> engine::Result<engine::Prepared> {
    let mut query = Query::default();
    let vars: Vec<Var> = COLUMNS
        .iter()
        .map(|column| query.add(format!("{column:?}"), ty(&data(*column))))
        .collect();
    let var = |column: Column| vars[column as usize];
    let mut root = Rel::Values {
        vars: vars.clone(),
        batch: batch(&cases[0].rows),
    };
    let mut out = vec![var(Column::I)];
    for case in cases {
        let functions = case.functions.iter().map(|(function, arg)| WindowFold {
            var: query.add("result", ty(&result_of(function, *arg))),
            function: function.clone(),
            arg: arg.map(var),
        });
        let functions: Vec<WindowFold> = functions.collect();
        out.extend(functions.iter().map(|fold| fold.var));
        let order = case.order.iter();
        let order = order.map(|(column, descending, nulls_first)| Key {
            var: var(*column),
            descending: *descending,
            nulls_first: *nulls_first,
        });
        root = Rel::Window {
            input: Box::new(root),
            partition: case.partition.iter().map(|column| var(*column)).collect(),
            order: order.collect(),
            functions,
        };
    }
    let fields = out.iter().map(|var| {
        let data = query.ty(*var).data.clone();
        Field::new(format!("c{var}"), data, true)
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    engine::prepare(query, root, Output { vars: out, schema })
}

/// The window of a case.
pub fn prepared(case: &Case) -> engine::Result<engine::Prepared> {
    prepared_all(&[case])
}

fn cells(array: &ArrayRef) -> Vec<Cell> {
    let cell = |row: usize| match array.data_type() {
        _ if array.is_null(row) => Cell::Null,
        DataType::Int64 => Cell::Int(array.as_primitive::<Int64Type>().value(row)),
        DataType::Float64 => Cell::Float(array.as_primitive::<Float64Type>().value(row)),
        _ => Cell::Text(array.as_string_view().value(row).into()),
    };
    (0..array.len()).map(cell).collect()
}

/// The answer: the number of each row, and the results, in the order of the numbers.
pub fn answer(
    case: &Case,
    runtime: &Runtime,
    execution: &Execution,
) -> engine::Result<Vec<Answer>> {
    answer_of(prepared(case)?, runtime, execution)
}

/// The answer of what is prepared.
pub fn answer_of(
    prepared: engine::Prepared,
    runtime: &Runtime,
    execution: &Execution,
) -> engine::Result<Vec<Answer>> {
    let (own, execution) = (runtime.clone(), execution.clone());
    let run = async move { prepared.run_by(&own, &execution).await };
    let (batches, _) = runtime.workers.block_on(run)?;
    let mut all = Vec::new();
    for batch in &batches {
        let columns: Vec<Vec<Cell>> = batch.columns().iter().map(cells).collect();
        for row in 0..batch.num_rows() {
            let Cell::Int(number) = columns[0][row] else {
                panic!("a row without a number");
            };
            let results = columns[1..].iter().map(|column| column[row].clone());
            all.push((number, results.collect()));
        }
    }
    all.sort_by_key(|(number, _)| *number);
    Ok(all)
}
