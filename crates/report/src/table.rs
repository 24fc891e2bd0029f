//! Tables.

use std::fmt::Write;

use crate::html::Escaped;
use crate::unit::Unit;

/// Characters of the longest cell that is not broken into lines.
const LONG: usize = 44;

/// One cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    text: String,
    number: bool,
    strong: bool,
}

impl Cell {
    /// A figure, written in its unit.
    pub fn number(value: f64, unit: Unit) -> Cell {
        Cell {
            text: unit.show(value),
            number: true,
            strong: false,
        }
    }

    /// A figure that is written already.
    pub fn written(text: impl Into<String>) -> Cell {
        Cell {
            text: text.into(),
            number: true,
            strong: false,
        }
    }

    /// The cell, set off from its neighbours: the best of its column, say.
    pub fn strong(mut self) -> Cell {
        self.strong = true;
        self
    }

    /// What it says.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is a figure, which stands at the right.
    pub fn is_number(&self) -> bool {
        self.number
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::from(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell {
            text,
            number: false,
            strong: false,
        }
    }
}

/// A table: the first column names its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<Cell>>,
    caption: String,
}

impl Table {
    /// An empty table with these columns.
    pub fn new<I>(header: I) -> Table
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        Table {
            header: header.into_iter().map(Into::into).collect(),
            ..Table::default()
        }
    }

    /// A line below the table: what is counted, over how many runs.
    pub fn caption(mut self, caption: impl Into<String>) -> Table {
        self.caption = caption.into();
        self
    }

    /// Adds a row. One that is too short is filled with empty cells, one that is too long cut.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let mut row: Vec<Cell> = cells.into_iter().take(self.header.len()).collect();
        row.resize(self.header.len(), Cell::from(""));
        self.rows.push(row);
    }

    /// The names of the columns.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// The rows, each as long as the header.
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }

    /// Whether the column holds figures.
    pub fn is_numeric(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.any(Cell::is_number)
    }

    /// The table as text in aligned columns, for terminals; ends in a line feed.
    ///
    /// ```
    /// use report::{Cell, Table, Unit};
    /// let mut table = Table::new(["strategy", "remote"]);
    /// table.row([Cell::from("os"), Cell::number(0.5, Unit::Share)]);
    /// assert_eq!(table.text(), "strategy  remote\nos        50.0 %\n");
    /// ```
    pub fn text(&self) -> String {
        let header = self.header.iter().map(String::as_str);
        let mut lines: Vec<Vec<&str>> = vec![header.collect()];
        lines.extend(
            self.rows
                .iter()
                .map(|row| row.iter().map(Cell::as_str).collect()),
        );
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
        let widths: Vec<usize> = (0..self.header.len()).filter_map(width).collect();
        let mut out = String::new();
        for line in lines {
            let cells = line.iter().enumerate().map(|(column, cell)| {
                let width = widths[column];
                if self.is_numeric(column) {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:<width$}")
                }
            });
            out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            out.push('\n');
        }
        if !self.caption.is_empty() {
            let _ = writeln!(out, "{}", self.caption);
        }
        out
    }

    pub(super) fn html(&self, out: &mut String) {
        out.push_str("<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>");
        for (column, name) in self.header.iter().enumerate() {
            let class = self.class(column, &Cell::from(""));
            let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", Escaped(name));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for (column, cell) in row.iter().enumerate() {
                let class = self.class(column, cell);
                let (tag, scope) = if column == 0 {
                    ("th", " scope=\"row\"")
                } else {
                    ("td", "")
                };
                let _ = write!(out, "<{tag}{scope}{class}>{}</{tag}>", Escaped(&cell.text));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
        if !self.caption.is_empty() {
            let _ = writeln!(out, "<p class=\"faint\">{}</p>", Escaped(&self.caption));
        }
    }

    fn class(&self, column: usize, cell: &Cell) -> String {
        let classes = [
            (self.is_numeric(column), "number"),
            (cell.text.chars().count() > LONG, "long"),
            (cell.strong, "strong"),
        ];
        let names: Vec<&str> = classes
            .into_iter()
            .filter(|(is, _)| *is)
            .map(|(_, name)| name)
            .collect();
        if names.is_empty() {
            return String::new();
        }
        format!(" class=\"{}\"", names.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_long_as_the_header_and_escaped() {
        let mut table = Table::new(["a<b", "n"]).caption("<i>");
        table.row([Cell::from("<x>")]);
        table.row([
            Cell::from("y"),
            Cell::number(2.0, Unit::Count).strong(),
            Cell::from("z"),
        ]);
        assert!(table.rows().iter().all(|row| row.len() == 2));
        let mut html = String::new();
        table.html(&mut html);
        assert!(
            html.contains("a&lt;b") && html.contains("&lt;x&gt;") && html.contains("&lt;i&gt;")
        );
        assert!(
            html.contains("<td class=\"number strong\">2</td>"),
            "{html}"
        );
    }
}
