//! Amounts by node, as numbers and as bars.

use std::io::Write;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

use crate::failure::Failure;
use crate::units;

/// A row of a table: bytes of a process, pages of a store.
pub struct Row {
    pub name: String,
    pub count: Option<u64>,
    /// Its values, one per node.
    pub bytes: Vec<u64>,
    pub extra: Option<u64>,
}

impl Row {
    /// The sum of `rows`, as a row named `name`.
    fn sum(name: String, nodes: &[u32], rows: &[Row]) -> Row {
        let mut bytes = vec![0; nodes.len()];
        for row in rows {
            for (sum, bytes) in bytes.iter_mut().zip(&row.bytes) {
                *sum += bytes;
            }
        }
        Row {
            name,
            count: rows.iter().map(|row| row.count).sum(),
            bytes,
            extra: rows.iter().map(|row| row.extra).sum(),
        }
    }
}

/// The header and the length of a table.
pub struct Shape {
    pub what: &'static str,
    /// The header of the column of counts; no such column if `None`.
    pub count: Option<&'static str>,
    pub extra: &'static str,
    /// Formats a value.
    pub unit: fn(u64) -> String,
    /// Formats the amount that one character of a bar represents.
    pub each: fn(u64) -> String,
    /// The most rows; 0 means all.
    pub most: usize,
}

/// Most nodes that get a column each; with more of them, only the bar shows nodes.
const COLUMNS: usize = 8;

/// Characters of the longest bar.
const BAR: usize = 24;

/// Characters of the longest name.
const NAME: usize = 44;

/// Values per node as numbers and as bars, in the order given, with a sum.
pub fn write(
    out: &mut impl Write,
    shape: &Shape,
    nodes: &[u32],
    mut rows: Vec<Row>,
) -> Result<(), Failure> {
    let sum = Row::sum("total".to_owned(), nodes, &rows);
    if shape.most > 0 && rows.len() > shape.most {
        let rest = rows.split_off(shape.most);
        let name = format!("{} others", units::count(rest.len() as u64));
        rows.push(Row::sum(name, nodes, &rest));
    }
    // If there are few pages, each is one character.
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

/// Shortens a long name to its end, which says more about a path than its beginning.
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
        // Each node's part is rounded at its end, so that the length of the bar is that of the total.
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
        assert!(write(&mut text, &shape, &[0, 1], rows).is_ok());
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("3 others") && text.contains("m4") && !text.contains("m3"));
        assert!(
            text.lines()
                .any(|line| line.contains("total") && line.contains("20 B")),
            "{text}"
        );
    }
}
