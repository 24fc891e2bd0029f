//! `explain (analyze, format json)`: a plan as data, with the keys that PostgreSQL's tools know.
//!
//! A node is a stage of the engine. Times are in milliseconds. `Own Time` of a stage is wall time; `Actual Total Time` adds
//! that of the nodes below. What was not measured is left out.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use datafusion_expr::LogicalPlan;
use engine::StageOutline;
use engine::profile::Record;
use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::messages::plain;
use crate::optimize::rules;
use crate::run::answer::Answer;
use crate::run::clock::Statistics;
use crate::run::context::StatementContext;
use crate::run::native;
use crate::run::watch::{Profiled, Ran};

/// What the only column of an explanation is called, as in PostgreSQL.
pub(crate) const COLUMN: &str = "QUERY PLAN";

/// The answer whose one value is the plan of a statement as JSON; `title` says what the statement does with the rows of
/// `plan`, if it writes.
pub(crate) async fn explain(
    mut context: StatementContext,
    title: Option<String>,
    plan: &LogicalPlan,
    analyze: bool,
) -> Result<Answer> {
    let optimised = rules::logical(&context.planner, plan)?;
    let prepared = native::prepare(&context, &optimised).await?;
    context.clock.planned();
    if !analyze {
        let root = stages(&prepared.outline(), &[], None);
        return shown(&context, titled_by(title, root), None);
    }
    let profiled = native::profiled(&context, &prepared).await?;
    let rows = profiled.rows;
    shown(&context, run(&profiled), Some(rows))
}

/// What a statement did that writes and has run: `seen` is what ran its rows, of which it has changed `rows`.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn changed(
    title: String,
    seen: Option<Ran>,
    rows: u64,
    (statistics, governed): (&Statistics, Vec<String>),
) -> Result<String> {
    let root = seen.map(|ran| run(&ran.profiled(rows)));
    let root = match root {
        Some(root) => titled_by(Some(title), root),
        None => json!({ "Node Type": title }),
    };
    text(root, Some(rows), statistics.ran_on, (statistics, governed))
}

/// The node `root` below one of a statement that writes.
fn titled_by(title: Option<String>, root: Value) -> Value {
    match title {
        Some(title) => json!({ "Node Type": title, "Plans": [root] }),
        None => root,
    }
}

/// The answer of one text.
fn shown(context: &StatementContext, root: Value, rows: Option<u64>) -> Result<Answer> {
    let governed = context.instance.work.report(context.clock.started());
    let text = text(
        root,
        rows,
        "algebra",
        (&context.clock.statistics(), governed),
    )?;
    let column: ArrayRef = Arc::new(StringArray::from(vec![text]));
    Answer::of_columns(vec![(COLUMN, column)], &context.clock)
}

/// An array of one object, as PostgreSQL has it.
fn text(
    root: Value,
    rows: Option<u64>,
    ran_on: &str,
    (statistics, governed): (&Statistics, Vec<String>),
) -> Result<String> {
    let mut whole = Map::new();
    whole.insert("Plan".into(), root);
    whole.insert("Ran On".into(), ran_on.into());
    whole.insert(
        "Planning Time".into(),
        milliseconds(statistics.planning_seconds),
    );
    if let Some(rows) = rows {
        let executed = statistics.seconds - statistics.planning_seconds;
        whole.insert("Execution Time".into(), milliseconds(executed.max(0.0)));
        whole.insert("Rows".into(), rows.into());
        whole.insert("Bytes Read".into(), json!(statistics.bytes));
        if !governed.is_empty() {
            whole.insert("Governed".into(), json!(governed));
        }
    }
    let text = serde_json::to_string_pretty(&[Value::Object(whole)]);
    text.map_err(|e| crate::error::Error::Defect {
        message: e.to_string(),
    })
}

/// Milliseconds with three digits behind the point: more is not measured.
fn milliseconds(seconds: f64) -> Value {
    json!((seconds * 1e6).round() / 1e3)
}

/// A program that has run.
fn run(profiled: &Profiled) -> Value {
    stages(&profiled.stages, &profiled.records, Some(profiled.rows))
}

/// Adds nodes below `node`, and their time to its own.
fn add(node: &mut Value, below: Vec<Value>) {
    if below.is_empty() {
        return;
    }
    let time = |node: &Value| node["Actual Total Time"].as_f64();
    let more: f64 = below.iter().filter_map(time).sum();
    if let Some(own) = time(node) {
        node["Actual Total Time"] = milliseconds((own + more) / 1e3);
    }
    match &mut node["Plans"] {
        Value::Array(plans) => plans.extend(below),
        plans => *plans = Value::Array(below),
    }
}

/// The last of the stages, with those whose rows it reads below it, and so on. `rows` are those of the last one.
fn stages(outline: &[StageOutline], records: &[Record], rows: Option<u64>) -> Value {
    let mut nodes: Vec<Option<Value>> = Vec::new();
    for (number, stage) in outline.iter().enumerate() {
        let last = number + 1 == outline.len();
        let mut below = Vec::new();
        for &read in &stage.reads {
            // A stage that two read stands below the first of them.
            below.push(match nodes.get_mut(read).and_then(Option::take) {
                Some(node) => node,
                None => json!({
                    "Node Type": "again",
                    "Detail": format!("stage {read}, which stands elsewhere in this plan"),
                }),
            });
        }
        if last {
            below.extend(nodes.iter_mut().filter_map(Option::take));
        }
        let of_stage = |record: &&Record| record.stage == number;
        let records: Vec<&Record> = records.iter().filter(of_stage).collect();
        let mut node = stage_node(number, stage, &records);
        if let Some(rows) = rows.filter(|_| last) {
            node["Actual Rows"] = rows.into();
        }
        add(&mut node, below);
        nodes.push(Some(node));
    }
    nodes.pop().flatten().unwrap_or(Value::Null)
}

/// A stage, and what was measured of it.
fn stage_node(number: usize, stage: &StageOutline, records: &[&Record]) -> Value {
    let mut node = json!({
        "Node Type": stage.makes,
        "Stage": number,
        "Detail": plain::plan(&stage.sink),
        "Plan Rows": stage.expected,
    });
    let tables = stage.pipelines.iter().filter_map(|one| one.table.as_ref());
    let tables: Vec<&str> = tables.map(String::as_str).collect();
    if !tables.is_empty() {
        node["Relation Name"] = tables.join(", ").into();
    }
    let mut operators: Vec<Value> = records.iter().flat_map(|record| measured(record)).collect();
    if operators.is_empty() {
        operators = stage.pipelines.iter().flat_map(named).collect();
    }
    node["Operators"] = operators.into();
    if records.is_empty() {
        return node;
    }
    let seconds: f64 = records.iter().map(|record| record.seconds).sum();
    node["Own Time"] = milliseconds(seconds);
    node["Actual Total Time"] = milliseconds(seconds);
    node["Actual Loops"] = 1.into();
    node["Executor"] = records[0].executor.name().into();
    let kernels = records.iter().flat_map(|record| &record.kernels);
    let ends: Vec<u64> = kernels
        .filter(|kernel| kernel.last)
        .map(|kernel| kernel.rows)
        .collect();
    if !ends.is_empty() {
        let rows: u64 = ends.iter().sum();
        // An aggregate folds its rows into groups, whose number is not counted.
        let key = if stage.makes == "aggregate" {
            "Rows In"
        } else {
            "Actual Rows"
        };
        node[key] = rows.into();
    }
    node
}

/// The operators of a stage that has run.
fn measured(record: &Record) -> Vec<Value> {
    let kernels = record.kernels.iter().map(|kernel| {
        json!({
            "Name": plain::plan(&kernel.name),
            "Rows": kernel.rows,
            "Time": milliseconds(kernel.seconds),
            "Bytes": kernel.bytes,
        })
    });
    let operators = record.operators.iter().map(|operator| {
        let rows: u64 = operator.tasks.iter().map(|task| task.rows).sum();
        let busy: f64 = operator.tasks.iter().map(|task| task.busy).sum();
        json!({
            "Name": plain::plan(&operator.name),
            "Rows": rows,
            "Time": milliseconds(busy),
            "Tasks": operator.tasks.len(),
        })
    });
    kernels.chain(operators).collect()
}

/// The operators of a pipeline by their names alone.
fn named(pipeline: &engine::PipelineOutline) -> Vec<Value> {
    let filters = pipeline.filters.iter();
    let filters = filters.map(|filter| format!("filter {filter}"));
    let all = [pipeline.source.clone()].into_iter().chain(filters);
    let all = all.chain(pipeline.operators.iter().cloned());
    all.map(|name| json!({ "Name": plain::plan(&name) }))
        .collect()
}
