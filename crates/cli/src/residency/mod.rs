//! `atoll where`: where the memory of a process, or of a store, lies.

mod store;

pub use store::holder;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use counters::{Depth, Group, Look, Looker, Nodes, Process, Residency, System};
use serde_json::{Value, json};

use crate::args::Layout;
use crate::{Failure, out, units};

/// `atoll where`
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("of").args(["store", "pid"]).required(true)))]
pub struct Where {
    /// A store: where its pages are at home, and those in memory are
    pub store: Option<PathBuf>,
    /// A process: where its memory is
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// Most rows that are shown; 0 shows all
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub rows: usize,
    /// Look at about so many addresses of the process instead of every page [default: every page up
    /// to 4 GiB in memory, 65536 addresses beyond]
    #[arg(long, value_name = "N", conflicts_with_all = ["store", "exact"], value_parser = clap::value_parser!(u64).range(64..=1 << 24))]
    pub sample: Option<u64>,
    /// Look at every page of the process, however large it is
    #[arg(long, conflicts_with = "store")]
    pub exact: bool,
    /// Read the store's tables into the pool first, as far as it goes
    #[arg(long, conflicts_with = "pid")]
    pub load: bool,
    #[command(flatten)]
    pub layout: Layout,
    /// One JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub fn run(args: &Where) -> Result<(), Failure> {
    match (args.pid, &args.store) {
        (Some(pid), _) => process(args, pid),
        (None, Some(path)) => store::run(args, path),
        // The definition of the arguments asks for one of them.
        (None, None) => Ok(()),
    }
}

/// A process, with all that is shown of it.
struct Found {
    process: Process,
    residency: Residency,
    threads: Vec<Thread>,
}

/// A thread and where it ran last.
struct Thread {
    number: u32,
    name: String,
    cpu: Option<u32>,
    node: Option<u32>,
}

fn process(args: &Where, pid: u32) -> Result<(), Failure> {
    let system = System::real();
    let nodes = Nodes::new(&topology::Machine::live()?);
    let process = Process::open(&system, pid)?;
    let depth = match (args.exact, args.sample) {
        (true, _) => Depth::Walk,
        (false, Some(addresses)) => Depth::Sample(addresses),
        (false, None) => Depth::Auto,
    };
    let looker = Looker::new(&system, &nodes).depth(depth).stacks().huge();
    let residency = looker.look(&process)?;
    let mut threads = Vec::new();
    for number in process.threads()? {
        if let Some(stat) = process.thread(number)? {
            threads.push(Thread {
                number,
                name: stat.name,
                cpu: stat.cpu,
                node: stat.cpu.and_then(|cpu| nodes.of_cpu(cpu)),
            });
        }
    }
    let found = Found {
        process,
        residency,
        threads,
    };
    let names: BTreeMap<u32, &str> = found
        .threads
        .iter()
        .map(|thread| (thread.number, thread.name.as_str()))
        .collect();
    let groups = found
        .residency
        .groups(|thread| names.get(&thread).map(|name| (*name).to_owned()));
    let mut out = out::stdout();
    if args.json {
        writeln!(out, "{}", to_json(&found, &groups))?;
    } else {
        print(&mut out, args, &found, &groups)?;
    }
    Ok(out.flush()?)
}

fn to_json(found: &Found, groups: &[Group]) -> Value {
    let residency = &found.residency;
    let sampled = match residency.look {
        Look::Walked => None,
        Look::Sampled { addresses } => Some(addresses),
    };
    let stacks: BTreeMap<u32, &Vec<u64>> = groups
        .iter()
        .filter(|group| group.kind == "stack" && group.threads.len() == 1)
        .map(|group| (group.threads[0], &group.bytes))
        .collect();
    let threads: Vec<Value> = found
        .threads
        .iter()
        .map(|thread| {
            json!({
                "thread": thread.number,
                "name": thread.name,
                "cpu": thread.cpu,
                "node": thread.node,
                "stack_bytes": stacks.get(&thread.number),
            })
        })
        .collect();
    json!({
        "process": residency.process,
        "name": found.process.name(),
        "nodes": residency.nodes,
        "bytes": residency.bytes(),
        "total_bytes": residency.total(),
        "huge_bytes": residency.huge(),
        "kernel_counted_bytes": residency.counted,
        "source": if sampled.is_some() { "move_pages" } else { "numa_maps" },
        "sampled_addresses": sampled,
        "standard_error_bytes": residency.error,
        "groups": groups,
        "threads": threads,
        "notes": residency.notes,
    })
}

fn print(
    out: &mut impl Write,
    args: &Where,
    found: &Found,
    groups: &[Group],
) -> Result<(), Failure> {
    let residency = &found.residency;
    writeln!(
        out,
        "{} ({}): {}{} in memory on {}, {}",
        found.process.name(),
        residency.process,
        if residency.look == Look::Walked {
            ""
        } else {
            "about "
        },
        units::bytes(residency.total()),
        plural(residency.nodes.len(), "node"),
        plural(found.threads.len(), "thread"),
    )?;
    let rows: Vec<Row> = groups
        .iter()
        .map(|group| Row {
            name: group.name.clone(),
            count: Some(group.mappings as u64),
            bytes: group.bytes.clone(),
            extra: group.huge,
        })
        .collect();
    let shape = Shape {
        what: "what",
        count: Some("mappings"),
        extra: "huge pages",
        unit: units::bytes,
        each: units::bytes,
        most: args.rows,
    };
    table(out, &shape, &residency.nodes, rows)?;
    writeln!(out, "{}", ran(&found.threads))?;
    if let Look::Sampled { addresses } = residency.look {
        let error = residency.error.iter().copied().max().unwrap_or(0);
        writeln!(
            out,
            "estimated from {} addresses, one standard error is at most {} a node; --exact looks at every page",
            units::count(addresses as u64),
            units::bytes(error),
        )?;
    }
    for note in &residency.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}

/// Where threads ran last: `threads by node they ran on last: 6 on node 0, 2 on node 1`.
fn ran(threads: &[Thread]) -> String {
    let mut nodes: BTreeMap<Option<u32>, usize> = BTreeMap::new();
    for thread in threads {
        *nodes.entry(thread.node).or_default() += 1;
    }
    let told: Vec<String> = nodes
        .iter()
        .map(|(node, count)| match node {
            Some(node) => format!("{count} on node {node}"),
            None => format!("{count} on cpus that this process may not use"),
        })
        .collect();
    format!("threads, by where they ran last: {}", told.join(", "))
}

/// `1 node`, `2 nodes`
pub(crate) fn plural(count: usize, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {what}{s}", units::count(count as u64))
}

/// What a row of [`table`] is made of: bytes of a process, pages of a store.
struct Row {
    name: String,
    count: Option<u64>,
    /// One per node.
    bytes: Vec<u64>,
    extra: Option<u64>,
}

/// How [`table`] is headed, and how long it is.
struct Shape {
    what: &'static str,
    /// No column where there is no name.
    count: Option<&'static str>,
    extra: &'static str,
    /// How a value is shown.
    unit: fn(u64) -> String,
    /// How what a character of a bar stands for is shown.
    each: fn(u64) -> String,
    /// Rows; 0 means all.
    most: usize,
}

/// Nodes that get a column of their own; of more, the bar tells.
const COLUMNS: usize = 8;

/// Characters of the longest bar.
const BAR: usize = 24;

/// Characters of the longest name.
const NAME: usize = 44;

/// Values per node as numbers and as bars, in the order given, with a sum.
fn table(
    out: &mut impl Write,
    shape: &Shape,
    nodes: &[u32],
    mut rows: Vec<Row>,
) -> Result<(), Failure> {
    let mut sum = Row {
        name: "total".to_owned(),
        count: rows.iter().map(|row| row.count).sum(),
        bytes: vec![0; nodes.len()],
        extra: rows.iter().map(|row| row.extra).sum(),
    };
    for row in &rows {
        for (sum, bytes) in sum.bytes.iter_mut().zip(&row.bytes) {
            *sum += bytes;
        }
    }
    if shape.most > 0 && rows.len() > shape.most {
        let rest = rows.split_off(shape.most);
        let mut others = Row {
            name: format!("{} others", units::count(rest.len() as u64)),
            count: rest.iter().map(|row| row.count).sum(),
            bytes: vec![0; nodes.len()],
            extra: rest.iter().map(|row| row.extra).sum(),
        };
        for row in &rest {
            for (sum, bytes) in others.bytes.iter_mut().zip(&row.bytes) {
                *sum += bytes;
            }
        }
        rows.push(others);
    }
    // Few pages get a character each.
    let longest = rows
        .iter()
        .map(|row| row.bytes.iter().sum())
        .fold(BAR as u64, u64::max);
    let mut table = Table::new();
    table
        .load_preset(presets::UTF8_BORDERS_ONLY)
        .set_content_arrangement(ContentArrangement::Disabled);
    let mut header = vec![shape.what.to_owned()];
    header.extend(shape.count.map(str::to_owned));
    if (2..=COLUMNS).contains(&nodes.len()) {
        header.extend(nodes.iter().map(|node| format!("node {node}")));
    }
    header.extend([
        "total".to_owned(),
        shape.extra.to_owned(),
        "by node".to_owned(),
    ]);
    table.set_header(header);
    for row in rows.iter().chain([&sum]) {
        let bar = if std::ptr::eq(row, &raw const sum) {
            String::new()
        } else {
            bar(nodes, &row.bytes, longest)
        };
        table.add_row(cells(shape, nodes, row, bar));
    }
    writeln!(out, "{table}")?;
    if !rows.is_empty() {
        writeln!(
            out,
            "each character of a bar is {}{} on the node it names",
            if longest == BAR as u64 { "" } else { "about " },
            (shape.each)(longest / BAR as u64)
        )?;
    }
    Ok(())
}

fn cells(shape: &Shape, nodes: &[u32], row: &Row, bar: String) -> Vec<Cell> {
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    let mut cells = vec![Cell::new(shortened(&row.name))];
    if shape.count.is_some() {
        cells.push(right(row.count.map_or("-".to_owned(), units::count)));
    }
    if (2..=COLUMNS).contains(&nodes.len()) {
        cells.extend(row.bytes.iter().map(|bytes| right((shape.unit)(*bytes))));
    }
    cells.push(right((shape.unit)(row.bytes.iter().sum())));
    cells.push(right(row.extra.map_or("-".to_owned(), shape.unit)));
    cells.push(Cell::new(bar));
    cells
}

/// The end of a long name, which tells more of a path than its beginning.
fn shortened(name: &str) -> String {
    let name: String = name.chars().flat_map(char::escape_debug).collect();
    let length = name.chars().count();
    if length <= NAME {
        return name;
    }
    std::iter::once('…')
        .chain(name.chars().skip(length - NAME + 1))
        .collect()
}

/// A bar of up to [`BAR`] characters, each the last digit of a node's number: `00000001111`.
fn bar(nodes: &[u32], bytes: &[u64], longest: u64) -> String {
    let total: u64 = bytes.iter().sum();
    if total == 0 || longest == 0 {
        return String::new();
    }
    let scaled = |bytes: u64, to: usize, of: u64| {
        (u128::from(bytes) * to as u128).div_ceil(u128::from(of)) as usize
    };
    let length = scaled(total, BAR, longest).min(BAR);
    let mut bar = String::with_capacity(length);
    let mut before = 0;
    for (node, bytes) in nodes.iter().zip(bytes) {
        before += bytes;
        // What there is at all gets rounded by its end, so that the length is that of the total.
        let end = (u128::from(before) * length as u128 + u128::from(total) / 2) / u128::from(total);
        let digit = char::from_digit(node % 36, 36).unwrap_or('?');
        while bar.len() < end as usize {
            bar.push(digit);
        }
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!(bar(&[0, 1], &[12, 12], 24), "000000000000111111111111");
        assert_eq!(bar(&[0, 1], &[3, 9], 24), "000111111111");
        assert_eq!(bar(&[0, 12], &[0, 1], 24), "c");
        assert_eq!(bar(&[0, 1], &[2, 3], BAR as u64), "00111", "one each");
        assert_eq!(bar(&[0], &[1], 1 << 40), "0", "what there is is seen");
        assert_eq!(bar(&[0], &[0], 0), "");
        assert_eq!(bar(&[3], &[u64::MAX], u64::MAX).len(), BAR);
    }

    #[test]
    fn long_names_keep_their_end() {
        let name = format!("/{}/lib.so", "x".repeat(60));
        let short = shortened(&name);
        assert_eq!(short.chars().count(), NAME);
        assert!(short.starts_with('…') && short.ends_with("/lib.so"));
        assert_eq!(shortened("a\nb"), "a\\nb");
    }

    #[test]
    fn the_longest_table_ends_in_others() {
        let row = |bytes: u64| Row {
            name: format!("m{bytes}"),
            count: Some(1),
            bytes: vec![bytes, 1],
            extra: None,
        };
        let shape = Shape {
            what: "what",
            count: Some("mappings"),
            extra: "huge",
            unit: units::bytes,
            each: units::bytes,
            most: 2,
        };
        let mut text = Vec::new();
        let rows = (1..=5).rev().map(row).collect();
        assert!(table(&mut text, &shape, &[0, 1], rows).is_ok());
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("3 others") && text.contains("m4") && !text.contains("m3"));
        assert!(
            text.lines()
                .any(|line| line.contains("total") && line.contains("20 B")),
            "{text}"
        );
    }
}
