//! The drawing of a machine.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::machine::{Cache, CacheKind, Machine, Node, Source};

/// The drawing is at most this wide.
const WIDTH: usize = 80;
/// Columns between two boxes.
const GAP: usize = 2;
/// Nodes beyond these are only counted.
const MOST_NODES: usize = 32;
/// Lines of cores per node; cores beyond these are only counted.
const MOST_LINES: usize = 12;
/// Columns of one distance.
const CELL: usize = 5;

impl Machine {
    /// The machine as a drawing of at most 80 columns: each node as a box with its cores,
    /// caches and memory, then the distances. Ends in a line feed.
    pub fn render(&self) -> String {
        render(self)
    }
}

fn render(machine: &Machine) -> String {
    let mut out = String::new();
    head(machine, &mut out);
    let shown = &machine.nodes()[..machine.nodes().len().min(MOST_NODES)];
    let columns = if shown.len() == 1 { 1 } else { 2 };
    let width = (WIDTH - GAP * (columns - 1)) / columns;
    for row in shown.chunks(columns) {
        let boxes: Vec<Vec<String>> = row.iter().map(|node| content(node, width - 4)).collect();
        beside(row, &boxes, width, &mut out);
    }
    if machine.nodes().len() > shown.len() {
        line(
            &mut out,
            format_args!("... and {} more nodes", machine.nodes().len() - shown.len()),
        );
    }
    distances(machine, &mut out);
    for note in machine.notes() {
        wrap(&mut out, &format!("note: {note}"));
    }
    out
}

/// One line, cut to the width.
fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.push_str(&cut(&text.to_string(), WIDTH));
    out.push('\n');
}

/// As many lines as needed, broken at blanks.
fn wrap(out: &mut String, text: &str) {
    let mut row = String::new();
    for word in text.split_whitespace() {
        if !row.is_empty() && row.chars().count() + 1 + word.chars().count() > WIDTH {
            line(out, format_args!("{row}"));
            row.clear();
        }
        let blank = if row.is_empty() { "" } else { " " };
        let _ = write!(row, "{blank}{word}");
    }
    line(out, format_args!("{row}"));
}

fn head(machine: &Machine, out: &mut String) {
    let from = match machine.source() {
        Source::Live => "this machine, the cpus this process may use".to_owned(),
        Source::Xml(path) => format!("from {}", path.display()),
        Source::Synthetic(_) => "synthetic".to_owned(),
        Source::Shipped(_) => "shipped description".to_owned(),
    };
    line(
        out,
        format_args!("{} ({from})", cut(machine.name(), WIDTH / 2)),
    );
    if !machine.about().is_empty() {
        line(out, format_args!("{}", machine.about()));
    }
    let (nodes, cores) = (machine.nodes().len(), machine.cores());
    let (cpus, memory) = (machine.cpus(), size(machine.memory_bytes()));
    let nodes = count(nodes, "node");
    let (cores, cpus) = (count(cores, "core"), count(cpus, "cpu"));
    line(
        out,
        format_args!("{nodes}, {cores}, {cpus}, {memory} of memory"),
    );
    out.push('\n');
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// What stands in the box of a node, in lines of at most `width`.
fn content(node: &Node, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let free = node.free_bytes.map(|free| format!(", {} free", size(free)));
    lines.push(format!(
        "memory {}{}",
        size(node.memory_bytes),
        free.unwrap_or_default()
    ));
    lines.extend(caches(node));
    if node.cores.is_empty() {
        lines.push("memory only: no cores".to_owned());
    } else {
        lines.extend(cores(node, width));
    }
    lines.iter().map(|line| cut(line, width)).collect()
}

/// One line per kind of cache: the largest level first.
fn caches(node: &Node) -> Vec<String> {
    let mut kinds: BTreeMap<_, Vec<&Cache>> = BTreeMap::new();
    for cache in &node.caches {
        let key = (
            std::cmp::Reverse(cache.level),
            cache.kind,
            std::cmp::Reverse(cache.bytes),
        );
        kinds.entry(key).or_default().push(cache);
    }
    let mut lines = Vec::new();
    for ((level, kind, bytes), same) in kinds {
        let kind = match kind {
            CacheKind::Unified => "",
            CacheKind::Data => "d",
            CacheKind::Instruction => "i",
        };
        let bytes = if bytes.0 == 0 {
            "size unknown".to_owned()
        } else {
            size(bytes.0)
        };
        let mut text = format!("L{}{kind} {bytes}", level.0);
        if same.len() > 1 {
            let _ = write!(text, " x {}", same.len());
        }
        if same.iter().any(|cache| cache.cpus.len() > node.cpus()) {
            text.push_str(" (across nodes)");
        }
        lines.push(text);
    }
    lines
}

/// The cores: `[cpu]`, or `[cpu cpu]` with SMT siblings, as many to a line as fit.
fn cores(node: &Node, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for (at, core) in node.cores.iter().enumerate() {
        let cpus: Vec<String> = core.cpus.iter().map(u32::to_string).collect();
        let text = cut(&format!("[{}]", cpus.join(" ")), width);
        let full = lines
            .last()
            .is_some_and(|line| !line.is_empty() && line.len() + 1 + text.len() > width);
        if full && lines.len() == MOST_LINES {
            lines.push(format!("... and {} more cores", node.cores.len() - at));
            break;
        }
        if full {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&text);
        }
    }
    lines
}

/// Draws one row of boxes, each as high as the highest.
fn beside(row: &[Node], boxes: &[Vec<String>], width: usize, out: &mut String) {
    let height = boxes.iter().map(Vec::len).max().unwrap_or(0);
    let gap = " ".repeat(GAP);
    let tops: Vec<String> = row
        .iter()
        .map(|node| {
            let os = if node.os_index as usize == node.index {
                String::new()
            } else {
                format!(" (numbered {})", node.os_index)
            };
            format!(
                "┌{:─<1$}┐",
                format!("─ node {}{os} ", node.index),
                width - 2
            )
        })
        .collect();
    line(out, format_args!("{}", tops.join(&gap)));
    for at in 0..height {
        let parts: Vec<String> = boxes
            .iter()
            .map(|lines| {
                format!(
                    "│ {:1$} │",
                    lines.get(at).map_or("", String::as_str),
                    width - 4
                )
            })
            .collect();
        line(out, format_args!("{}", parts.join(&gap)));
    }
    let bottoms = vec![format!("└{}┘", "─".repeat(width - 2)); row.len()];
    line(out, format_args!("{}", bottoms.join(&gap)));
}

/// The matrix where it fits, otherwise the range.
fn distances(machine: &Machine, out: &mut String) {
    let nodes = machine.nodes().len();
    if nodes < 2 {
        return;
    }
    out.push('\n');
    let pairs = (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b)));
    let remote: Vec<u32> = pairs
        .filter(|(a, b)| a != b)
        .map(|(a, b)| machine.distance(a, b))
        .collect();
    let (least, most) = (remote.iter().min().copied(), remote.iter().max().copied());
    let (least, most) = (least.unwrap_or(0), most.unwrap_or(0));
    if CELL * (nodes + 1) + 4 > WIDTH || most > 9999 {
        line(
            out,
            format_args!("distance (10 is local): {least} to {most} between nodes"),
        );
        return;
    }
    out.push_str("distance (10 is local)\n         ");
    for node in 0..nodes {
        let _ = write!(out, "{node:CELL$}");
    }
    out.push('\n');
    for a in 0..nodes {
        let _ = write!(out, "node {a:<4}");
        for b in 0..nodes {
            let _ = write!(out, "{:CELL$}", machine.distance(a, b));
        }
        out.push('\n');
    }
}

/// Bytes in the largest binary unit that keeps a whole part, one decimal where needed.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = (0..UNITS.len())
        .rev()
        .find(|unit| bytes >> (10 * unit) > 0)
        .unwrap_or(0);
    let one = 1u64 << (10 * unit);
    let (whole, tenth) = (bytes / one, u128::from(bytes % one) * 10 / u128::from(one));
    if tenth == 0 {
        format!("{whole} {}", UNITS[unit])
    } else {
        format!("{whole}.{tenth} {}", UNITS[unit])
    }
}

/// At most `width` characters, none of them a control character.
fn cut(text: &str, width: usize) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    if clean.clone().count() <= width {
        return clean.collect();
    }
    clean
        .take(width.saturating_sub(3))
        .chain("...".chars())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_wrapped_not_cut() {
        let mut machine = Machine::parse("1x1").unwrap();
        machine.notes = vec!["a reason that goes on ".repeat(9), "x".repeat(300)];
        let drawing = render(&machine);
        assert_eq!(drawing.matches("reason").count(), 9);
        assert!(drawing.lines().all(|line| line.chars().count() <= WIDTH));
    }

    #[test]
    fn sizes() {
        let table = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.5 KiB"),
            (14 << 20, "14 MiB"),
        ];
        for (bytes, text) in table {
            assert_eq!(size(bytes), text);
        }
        assert_eq!(size(u64::MAX), "15.9 EiB");
    }
}
