//! Heat maps of matrices.

use plotters::prelude::*;

use super::canvas::{
    Area, Drawn, Drew, Ink, PX, Side, TEXT, Width, drawing, fitted, head, text_px, widest,
    write_text,
};
use crate::table::{Cell, Table};
use crate::unit::Unit;

/// Pixels: the head with the columns' names, the greatest edge of a cell.
const HEAD: i32 = 40;
const CELL: i32 = 56;
/// Cells narrower than this carry no figure.
const READABLE: i32 = 34;

/// A matrix as squares, the darker the greater, each with its figure where there is room.
#[derive(Clone, Debug)]
pub struct Heat {
    pub(super) title: String,
    pub(super) pairs: bool,
    unit: Unit,
    row: String,
    column: String,
    rows: Vec<String>,
    columns: Vec<String>,
    values: Vec<Vec<f64>>,
}

impl Heat {
    /// One value per pair of nodes: `values[reader][page]`. The diagonal, which is local, has a
    /// colour of its own.
    pub fn nodes(title: impl Into<String>, unit: Unit, values: &[Vec<f64>]) -> Heat {
        let wide = values.iter().map(Vec::len).max().unwrap_or(0);
        Heat {
            pairs: true,
            row: "core on node".to_owned(),
            column: "page on node".to_owned(),
            rows: (0..values.len()).map(|node| node.to_string()).collect(),
            columns: (0..wide).map(|node| node.to_string()).collect(),
            ..Heat::new(title, unit, values)
        }
    }

    /// A matrix of anything; name its sides with [`Heat::rows`] and [`Heat::columns`].
    pub fn new(title: impl Into<String>, unit: Unit, values: &[Vec<f64>]) -> Heat {
        Heat {
            title: title.into(),
            pairs: false,
            unit,
            row: String::new(),
            column: String::new(),
            rows: Vec::new(),
            columns: Vec::new(),
            values: values.to_vec(),
        }
    }

    /// What the rows are, and their names.
    pub fn rows<I>(mut self, what: impl Into<String>, names: I) -> Heat
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.row = what.into();
        self.rows = names.into_iter().map(Into::into).collect();
        self
    }

    /// What the columns are, and their names.
    pub fn columns<I>(mut self, what: impl Into<String>, names: I) -> Heat
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.column = what.into();
        self.columns = names.into_iter().map(Into::into).collect();
        self
    }

    fn rows_are(&self) -> String {
        if self.row.is_empty() {
            String::new()
        } else {
            format!("rows: {}", self.row)
        }
    }

    fn wide(&self) -> usize {
        self.values.iter().map(Vec::len).max().unwrap_or(0)
    }

    pub(super) fn draw(&self) -> Drawn {
        let names = widest(self.rows.iter().map(String::as_str));
        let left = (names.max(text_px("0")) + 12).min(Width::Narrow.px() / 3);
        let room = (Width::Narrow.px() - left) / self.wide().max(1) as i32;
        let cell = room.clamp(2, CELL);
        let high = (cell * 3 / 4).max(2);
        let height = HEAD + high * self.values.len() as i32 + TEXT + 14;
        // As wide as it needs, so that several stand side by side.
        let names = text_px(&self.column).max(text_px(&self.rows_are()));
        let width = left + (cell * self.wide() as i32).max(names);
        drawing(width.min(Width::Narrow.px()), height, |area| {
            head(area, &self.column, left)?;
            let foot = HEAD + high * self.values.len() as i32 + 14;
            write_text(
                area,
                &self.rows_are(),
                (left * PX, foot * PX),
                Side::Right,
                Ink::Faint,
            )?;
            for at in 0..self.wide() {
                let x = (left + cell * at as i32 + cell / 2) * PX;
                let name = self.columns.get(at).map_or("", String::as_str);
                if let Some(name) = seldom(name, at, cell) {
                    write_text(
                        area,
                        &fitted(name, cell.max(24)),
                        (x, (HEAD - 12) * PX),
                        Side::Middle,
                        Ink::Text,
                    )?;
                }
            }
            for (at, row) in self.values.iter().enumerate() {
                let top = HEAD + high * at as i32;
                let name = self.rows.get(at).map_or("", String::as_str);
                if let Some(name) = seldom(name, at, high * 2) {
                    let middle = (top + high / 2) * PX;
                    write_text(
                        area,
                        &fitted(name, left - 8),
                        ((left - 8) * PX, middle),
                        Side::Left,
                        Ink::Text,
                    )?;
                }
                for (column, value) in row.iter().enumerate() {
                    let corner = (left + cell * column as i32, top);
                    let local = !self.pairs || at == column;
                    self.cell(area, corner, (cell, high), *value, local)?;
                }
            }
            Ok(())
        })
    }

    fn cell(
        &self,
        area: &Area<'_>,
        (x, y): (i32, i32),
        (wide, high): (i32, i32),
        value: f64,
        local: bool,
    ) -> Drew {
        let all = self
            .values
            .iter()
            .flatten()
            .copied()
            .filter(|value| value.is_finite());
        let most = all.fold(0.0, f64::max);
        let share = if most > 0.0 && value.is_finite() {
            (value / most).clamp(0.0, 1.0)
        } else {
            0.0
        };
        let opacity = 0.07 + 0.93 * share;
        let ink = Ink::Series(usize::from(!local));
        // A pixel of the page between the cells.
        let gap = if wide > 8 { PX * 3 / 2 } else { 0 };
        let corners = [
            (x * PX, y * PX),
            ((x + wide) * PX - gap, (y + high) * PX - gap),
        ];
        area.draw(&Rectangle::new(corners, ink.fill(opacity)))?;
        if wide < READABLE {
            return Ok(());
        }
        let middle = (
            (corners[0].0 + corners[1].0) / 2,
            (corners[0].1 + corners[1].1) / 2,
        );
        let text = if opacity > 0.75 {
            Ink::Ground
        } else {
            Ink::Text
        };
        write_text(
            area,
            &fitted(&short(self.unit, value, wide), wide),
            middle,
            Side::Middle,
            text,
        )
    }

    pub(super) fn description(&self) -> String {
        let rows: Vec<String> = self
            .values
            .iter()
            .enumerate()
            .map(|(at, row)| {
                let row: Vec<String> = row.iter().map(|value| self.unit.show(*value)).collect();
                format!(
                    "{}: {}",
                    self.rows.get(at).map_or("", String::as_str),
                    row.join(", ")
                )
            })
            .collect();
        format!(
            "Matrix, rows: {}, columns: {}. {}.",
            self.row,
            self.column,
            rows.join("; ")
        )
    }

    pub(super) fn numbers(&self) -> Table {
        let mut header = vec![format!("{} \\ {}", self.row, self.column)];
        header.extend((0..self.wide()).map(|at| self.columns.get(at).cloned().unwrap_or_default()));
        let mut table = Table::new(header);
        for (at, row) in self.values.iter().enumerate() {
            let name = Cell::from(self.rows.get(at).map_or("", String::as_str));
            let values = row.iter().map(|value| Cell::number(*value, self.unit));
            table.row([name].into_iter().chain(values));
        }
        table
    }
}

/// The name, unless it would run into its neighbour's.
fn seldom(name: &str, at: usize, room: i32) -> Option<&str> {
    let every = (24 / room.max(1) + 1).max(1) as usize;
    at.is_multiple_of(every).then_some(name)
}

/// The figure without blanks, and with less digits where cells are small.
fn short(unit: Unit, value: f64, wide: i32) -> String {
    match (unit, value.abs()) {
        (Unit::Count, size) if (9_999.5..999_500.0).contains(&size) => {
            format!("{:.0}k", value / 1e3)
        }
        (Unit::Count, size) if wide < 48 && (1e6..9.95e6).contains(&size) => {
            format!("{:.1}M", value / 1e6)
        }
        _ => unit.show(value).replace(' ', ""),
    }
}
