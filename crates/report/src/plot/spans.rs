//! Timelines: spans of time in rows, one below the other.

use plotters::prelude::*;

use super::canvas::{Area, Drawn, Drew, Ink, PX, Width};
use super::rows::{Rows, names};
use super::scale::Scale;
use crate::table::{Cell, Table};
use crate::unit::Unit;

/// Pixels of a row.
const ROW: i32 = 9;

/// One span of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Which of the series it belongs to, from 0: its colour.
    pub series: usize,
}

/// Rows of spans: the lives of threads by the cpu they were on, states over time.
#[derive(Clone, Debug)]
pub struct Spans {
    pub(super) title: String,
    pub(super) series: Vec<String>,
    axis: String,
    unit: Unit,
    most: f64,
    rows: Vec<(String, Vec<Span>)>,
}

impl Spans {
    /// Without rows yet; `axis` names what is across.
    pub fn new(title: impl Into<String>, axis: impl Into<String>, unit: Unit) -> Spans {
        Spans {
            title: title.into(),
            series: Vec::new(),
            axis: axis.into(),
            unit,
            most: 0.0,
            rows: Vec::new(),
        }
    }

    /// What the colours stand for.
    pub fn series<I>(mut self, names: I) -> Spans
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.series = names.into_iter().map(Into::into).collect();
        self
    }

    /// Makes the axis reach at least this value.
    pub fn up_to(mut self, most: f64) -> Spans {
        self.most = most;
        self
    }

    /// Adds a row. Spans that follow each other in one colour become one.
    pub fn row(&mut self, name: impl Into<String>, spans: impl IntoIterator<Item = Span>) {
        let mut merged: Vec<Span> = Vec::new();
        let drawn = |span: &Span| span.from.is_finite() && span.to.is_finite();
        for span in spans.into_iter().filter(drawn) {
            match merged.last_mut() {
                Some(last) if last.series == span.series && last.to == span.from => {
                    last.to = span.to;
                }
                _ => merged.push(span),
            }
        }
        self.rows.push((name.into(), merged));
    }

    pub(super) fn draw(&self, width: Width) -> Drawn {
        let all = || self.rows.iter().flat_map(|(_, spans)| spans);
        let first = all().map(|span| span.from).fold(0.0, f64::min);
        let last = all().map(|span| span.to).fold(self.most, f64::max);
        let rows = Rows {
            width,
            names: names(&self.rows),
            row: ROW,
            axis: &self.axis,
            unit: self.unit,
            range: (first, if last > first { last } else { first + 1.0 }),
            right: 18,
        };
        rows.draw(|area, row, scale, top| {
            for span in &self.rows[row].1 {
                draw(area, scale, top, *span)?;
            }
            Ok(())
        })
    }

    pub(super) fn description(&self) -> String {
        let spans: usize = self.rows.iter().map(|(_, spans)| spans.len()).sum();
        format!(
            "{spans} spans in {} rows over {}: {}.",
            self.rows.len(),
            self.axis,
            self.series.join(", ")
        )
    }

    /// How much of each row each series has.
    pub(super) fn numbers(&self) -> Table {
        let header = [String::new(), "spans".to_owned()];
        let mut table = Table::new(header.into_iter().chain(self.series.iter().cloned()));
        for (name, spans) in &self.rows {
            let of = |series: usize| -> f64 {
                let own = spans.iter().filter(|span| span.series == series);
                own.map(|span| span.to - span.from).sum()
            };
            let sums = (0..self.series.len()).map(|at| Cell::number(of(at), self.unit));
            let first = [
                Cell::from(name.as_str()),
                Cell::number(spans.len() as f64, Unit::Count),
            ];
            table.row(first.into_iter().chain(sums));
        }
        table
    }
}

fn draw(area: &Area<'_>, scale: &Scale, top: i32, span: Span) -> Drew {
    let (left, right) = (scale.at(span.from), scale.at(span.to));
    // However short it is, it is seen.
    let right = right.max(left + PX);
    let corners = [(left, top), (right, top + ROW * PX)];
    area.draw(&Rectangle::new(corners, Ink::Series(span.series).fill(1.0)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: f64, to: f64, series: usize) -> Span {
        Span { from, to, series }
    }

    #[test]
    fn neighbours_of_one_colour_are_one() {
        let mut spans = Spans::new("life", "time", Unit::Seconds).series(["cpu 0", "cpu 1"]);
        spans.row(
            "a",
            [
                span(0.0, 1.0, 0),
                span(1.0, 2.0, 0),
                span(2.0, 3.0, 1),
                span(f64::NAN, 3.0, 1),
            ],
        );
        assert_eq!(spans.rows[0].1, [span(0.0, 2.0, 0), span(2.0, 3.0, 1)]);
        let numbers = spans.numbers();
        let row: Vec<&str> = numbers.rows()[0].iter().map(Cell::as_str).collect();
        assert_eq!(row, ["a", "2", "2.00 s", "1.00 s"]);
        assert!(spans.draw(Width::Wide).is_ok());
    }

    #[test]
    fn nothing_at_all_is_drawn_too() {
        let mut spans = Spans::new("life", "time", Unit::Seconds);
        assert!(spans.draw(Width::Narrow).is_ok());
        spans.row("never", []);
        assert!(spans.draw(Width::Wide).is_ok());
        assert!(spans.description().starts_with("0 spans in 1 rows"));
    }
}
