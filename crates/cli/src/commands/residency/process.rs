//! Where the memory of a process is.

use std::collections::BTreeMap;
use std::io::Write;

use counters::{Depth, Group, Look, Looker, Nodes, Process, Residency, System};
use serde_json::{Value, json};

use crate::commands::residency::options::Where;
use crate::commands::residency::table::{self, Row, Shape};
use crate::failure::Failure;
use crate::terminal::out;
use crate::units::{self, plural};

/// A process, with everything that is shown of it.
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

/// Reads where a process's memory is, and prints it.
pub fn run(args: &Where, pid: u32) -> Result<(), Failure> {
    let depth = match (args.exact, args.sample) {
        (true, _) => Depth::Walk,
        (false, Some(addresses)) => Depth::Sample(addresses),
        (false, None) => Depth::Auto,
    };
    let found = find(pid, depth)?;
    let groups = groups(&found);
    let mut out = out::stdout();
    if args.json {
        writeln!(out, "{}", to_json(&found, &groups))?;
    } else {
        print(&mut out, args, &found, &groups)?;
    }
    Ok(out.flush()?)
}

/// What `--json` prints of a process, of which about so many addresses are looked at.
pub fn described(pid: u32, addresses: Option<u64>) -> anyhow::Result<String> {
    let found = find(pid, addresses.map_or(Depth::Auto, Depth::Sample))?;
    Ok(to_json(&found, &groups(&found)).to_string())
}

fn find(pid: u32, depth: Depth) -> anyhow::Result<Found> {
    let system = System::real();
    let nodes = Nodes::new(&topology::Machine::live()?);
    let process = Process::open(&system, pid)?;
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
    Ok(Found {
        process,
        residency,
        threads,
    })
}

/// Memory by what it is for.
fn groups(found: &Found) -> Vec<Group> {
    let names: BTreeMap<u32, &str> = found
        .threads
        .iter()
        .map(|thread| (thread.number, thread.name.as_str()))
        .collect();
    found
        .residency
        .groups(|thread| names.get(&thread).map(|name| (*name).to_owned()))
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
    table::write(out, &shape, &residency.nodes, rows)?;
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
