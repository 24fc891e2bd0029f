//! Where the pages of a store are.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use atoll::{ColumnResidency, Database, Residency};
use serde_json::json;

use super::{Row, Shape, Where, plural, table};
use crate::{Failure, out, sql, units};

/// Opens the store for reading and tells where its pages are.
pub fn run(args: &Where, path: &Path) -> Result<(), Failure> {
    let database = Database::open(path, &sql::options(&args.resources, true))?;
    let residency = database.residency(args.load)?;
    let mut out = out::stdout();
    if args.json {
        writeln!(out, "{}", to_json(path, &residency))?;
    } else {
        print(&mut out, args, path, &residency)?;
    }
    Ok(out.flush()?)
}

fn to_json(path: &Path, residency: &Residency) -> serde_json::Value {
    let column = |column: &ColumnResidency| {
        let found = column.found.as_ref().map(|found| {
            json!({ "nodes": found.keys().collect::<Vec<_>>(), "pages": found.values().collect::<Vec<_>>() })
        });
        json!({
            "table": column.table,
            "column": column.column,
            "pages": column.pages,
            "resident_pages": column.resident,
            "found": found,
        })
    };
    json!({
        "store": path.display().to_string(),
        "page_size": residency.page_size,
        "nodes": (0..residency.nodes.len()).collect::<Vec<_>>(),
        "os_nodes": residency.nodes,
        "pages": sum(&residency.columns, |column| &column.pages),
        "resident_pages": sum(&residency.columns, |column| &column.resident),
        "columns": residency.columns.iter().map(column).collect::<Vec<_>>(),
        "notes": residency.notes,
    })
}

/// Pages per node over all columns.
fn sum(columns: &[ColumnResidency], of: impl Fn(&ColumnResidency) -> &Vec<u64>) -> Vec<u64> {
    let mut sum: Vec<u64> = Vec::new();
    for pages in columns.iter().map(of) {
        sum.resize(sum.len().max(pages.len()), 0);
        for (sum, pages) in sum.iter_mut().zip(pages) {
            *sum += pages;
        }
    }
    sum
}

fn print(
    out: &mut impl Write,
    args: &Where,
    path: &Path,
    residency: &Residency,
) -> Result<(), Failure> {
    let pages: u64 = sum(&residency.columns, |column| &column.pages).iter().sum();
    writeln!(
        out,
        "{}: {} of {} in {}, at home on {}",
        path.display(),
        plural(pages as usize, "page"),
        units::bytes(residency.page_size as u64),
        plural(residency.columns.len(), "column"),
        plural(residency.nodes.len(), "node"),
    )?;
    let row = |column: &ColumnResidency| Row {
        name: format!("{}.{}", column.table, column.column),
        count: None,
        bytes: column.pages.clone(),
        extra: Some(column.resident.iter().sum()),
    };
    let mut rows: Vec<Row> = residency.columns.iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.bytes.iter().sum::<u64>()));
    let nodes: Vec<u32> = (0..residency.nodes.len() as u32).collect();
    let shape = Shape {
        what: "column",
        count: None,
        extra: "in the pool",
        unit: units::count,
        each: |pages| plural(pages as usize, "page"),
        most: args.rows,
    };
    table(out, &shape, &nodes, rows)?;
    writeln!(out, "{}", found(residency))?;
    for note in &residency.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}

/// Where the pages in the pool really are.
fn found(residency: &Residency) -> String {
    let mut nodes: BTreeMap<u32, u64> = BTreeMap::new();
    for found in residency
        .columns
        .iter()
        .filter_map(|column| column.found.as_ref())
    {
        for (node, pages) in found {
            *nodes.entry(*node).or_default() += pages;
        }
    }
    if nodes.is_empty() {
        return "no page is in the pool (--load reads them)".to_owned();
    }
    let told: Vec<String> = nodes
        .iter()
        .map(|(node, pages)| format!("{} on node {node} of the system", units::count(*pages)))
        .collect();
    format!("pages in the pool, by where they are: {}", told.join(", "))
}
