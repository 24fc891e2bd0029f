//! Where the pages of a store are.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use atoll::{Holds, PartResidency, Residency, Tail};
use serde_json::{Value, json};

use crate::commands::residency::options::Where;
use crate::commands::residency::table::{self, Row, Shape};
use crate::failure::Failure;
use crate::options::resources;
use crate::store::database;
use crate::terminal::out;
use crate::units::{self, plural};

/// Opens the store for reading, and prints where its pages are.
pub fn run(args: &Where, path: &Path) -> Result<(), Failure> {
    let database = database::open(path, &resources::reading(&args.layout))?;
    let residency = database.residency(args.load)?;
    let mut out = out::stdout();
    if args.json {
        writeln!(out, "{}", to_json(path, &residency))?;
    } else {
        print(&mut out, args, path, &residency)?;
    }
    Ok(out.flush()?)
}

/// Turns a part of a table into a member of one of the lists of the JSON object; `None` if it belongs to another list.
type Listed = fn(&Holds) -> Option<Value>;

fn to_json(path: &Path, residency: &Residency) -> Value {
    let list = |listed: Listed| -> Vec<Value> {
        let object = |part: &PartResidency| {
            let mut object = listed(&part.holds)?;
            object["table"] = json!(part.table);
            object["pages"] = json!(part.pages);
            object["resident_pages"] = json!(part.resident);
            object["found"] = part.found.as_ref().map_or(Value::Null, |found| {
                json!({ "nodes": found.keys().collect::<Vec<_>>(), "pages": found.values().collect::<Vec<_>>() })
            });
            Some(object)
        };
        residency.parts.iter().filter_map(object).collect()
    };
    let tail = |tail: &Tail| json!({ "table": tail.table, "rows": tail.rows, "bytes": tail.bytes });
    json!({
        "store": path.display().to_string(),
        "page_size": residency.page_size,
        "nodes": (0..residency.nodes.len()).collect::<Vec<_>>(),
        "os_nodes": residency.nodes,
        "pages": sum(&residency.parts, |part| &part.pages),
        "resident_pages": sum(&residency.parts, |part| &part.resident),
        "columns": list(|holds| match holds {
            Holds::Column(name) => Some(json!({ "column": name })),
            _ => None,
        }),
        "dictionaries": list(|holds| match holds {
            Holds::Dictionary(name) => Some(json!({ "column": name })),
            _ => None,
        }),
        "indexes": list(|holds| match holds {
            Holds::Key(name) => Some(json!({ "key": name })),
            _ => None,
        }),
        "row_indexes": list(|holds| match holds {
            Holds::RowIndex { columns, parent } => Some(json!({ "columns": columns, "parent": parent })),
            _ => None,
        }),
        "tails": residency.tails.iter().map(tail).collect::<Vec<_>>(),
        "notes": residency.notes,
    })
}

/// Pages per node over all parts.
fn sum(parts: &[PartResidency], of: impl Fn(&PartResidency) -> &Vec<u64>) -> Vec<u64> {
    let mut sum: Vec<u64> = Vec::new();
    for pages in parts.iter().map(of) {
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
    let pages: u64 = sum(&residency.parts, |part| &part.pages).iter().sum();
    let count = |of: fn(&Holds) -> bool| {
        let parts = residency.parts.iter();
        parts.filter(|part| of(&part.holds)).count()
    };
    writeln!(
        out,
        "{}: {} of {} in {} and {}{}, at home on {}",
        path.display(),
        plural(pages as usize, "page"),
        units::bytes(residency.page_size as u64),
        plural(count(|holds| matches!(holds, Holds::Column(_))), "column"),
        match count(|holds| matches!(holds, Holds::Dictionary(_))) {
            1 => "1 dictionary".to_owned(),
            many => format!("{} dictionaries", units::count(many as u64)),
        },
        match count(|holds| matches!(holds, Holds::RowIndex { .. })) {
            0 => String::new(),
            1 => ", 1 row index of an earlier version".to_owned(),
            many => format!(
                ", {} row indexes of an earlier version",
                units::count(many as u64)
            ),
        },
        plural(residency.nodes.len(), "node"),
    )?;
    let row = |part: &PartResidency| Row {
        name: part.holds.name(&part.table),
        count: None,
        bytes: part.pages.clone(),
        extra: Some(part.resident.iter().sum()),
    };
    let mut rows: Vec<Row> = residency.parts.iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.bytes.iter().sum::<u64>()));
    let nodes: Vec<u32> = (0..residency.nodes.len() as u32).collect();
    let shape = Shape {
        what: "part",
        count: None,
        extra: "in the pool",
        unit: units::count,
        each: |pages| plural(pages as usize, "page"),
        most: args.rows,
    };
    table::write(out, &shape, &nodes, rows)?;
    for tail in &residency.tails {
        writeln!(
            out,
            "{}: {} in no block yet, {} in the catalog, on no node of their own",
            tail.table,
            plural(tail.rows as usize, "row"),
            units::bytes(tail.bytes)
        )?;
    }
    writeln!(out, "{}", found(residency))?;
    for note in &residency.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}

/// The nodes on which the pages in the pool really are, as text.
fn found(residency: &Residency) -> String {
    let mut nodes: BTreeMap<u32, u64> = BTreeMap::new();
    for found in residency
        .parts
        .iter()
        .filter_map(|part| part.found.as_ref())
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
