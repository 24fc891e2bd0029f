//! Bars per category.

use plotters::prelude::*;

use super::canvas::{Area, Drawn, Drew, Ink, PX, Side, Width, line, text_px, write_text};
use super::rows::{Rows, names};
use super::scale::Scale;
use crate::plot::lines::Point;
use crate::table::{Cell, Table};
use crate::unit::Unit;

/// Pixels of one bar.
const BAR: i32 = 16;

/// Bars for several categories, which start at 0 and carry their figures; one bar or stack of
/// bars per category and series. What has a low and a high end gets an error bar.
#[derive(Clone, Debug)]
pub struct Bars {
    pub(super) title: String,
    pub(super) series: Vec<String>,
    axis: String,
    unit: Unit,
    stacked: bool,
    most: f64,
    categories: Vec<(String, Vec<Point>)>,
}

impl Bars {
    /// Without bars yet; `axis` names what their length shows.
    pub fn new(title: impl Into<String>, axis: impl Into<String>, unit: Unit) -> Bars {
        Bars {
            title: title.into(),
            series: Vec::new(),
            axis: axis.into(),
            unit,
            stacked: false,
            most: 0.0,
            categories: Vec::new(),
        }
    }

    /// What the bars of each category stand for, in their order.
    pub fn series<I>(mut self, names: I) -> Bars
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.series = names.into_iter().map(Into::into).collect();
        self
    }

    /// Puts the bars of a category behind each other: parts of a whole.
    pub fn stacked(mut self) -> Bars {
        self.stacked = true;
        self
    }

    /// Makes the axis reach at least this value: 1 for shares that are to be compared with all.
    pub fn up_to(mut self, most: f64) -> Bars {
        self.most = most;
        self
    }

    /// Adds a category with one value per series. Negative values are drawn as 0.
    pub fn category<V: Into<Point>>(
        &mut self,
        name: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) {
        self.categories
            .push((name.into(), values.into_iter().map(Into::into).collect()));
    }

    /// The greatest end of any bar.
    fn greatest(&self) -> f64 {
        let ends = self.categories.iter().map(|(_, values)| {
            if self.stacked {
                total(values)
            } else {
                values
                    .iter()
                    .map(|point| finite(point.high))
                    .fold(0.0, f64::max)
            }
        });
        ends.fold(self.most, f64::max)
    }

    pub(super) fn draw(&self, width: Width) -> Drawn {
        let deep = self
            .categories
            .iter()
            .map(|(_, values)| values.len())
            .max()
            .unwrap_or(1)
            .max(1);
        let labels = self.categories.iter().flat_map(|(_, values)| {
            let all = values.iter().map(|point| self.unit.show(point.y));
            all.chain([self.unit.show(total(values))])
        });
        let greatest = self.greatest();
        let rows = Rows {
            width,
            names: names(&self.categories),
            row: if self.stacked { BAR } else { BAR * deep as i32 },
            axis: &self.axis,
            unit: self.unit,
            range: (0.0, if greatest > 0.0 { greatest } else { 1.0 }),
            right: labels.map(|label| text_px(&label)).max().unwrap_or(0) + 10,
        };
        rows.draw(|area, row, scale, top| {
            let values = &self.categories[row].1;
            if self.stacked {
                self.stack(area, scale, top, values)
            } else {
                self.group(area, scale, top, values)
            }
        })
    }

    fn stack(&self, area: &Area<'_>, scale: &Scale, top: i32, values: &[Point]) -> Drew {
        let mut from = 0.0;
        for (series, point) in values.iter().enumerate() {
            let to = from + finite(point.y);
            bar(
                area,
                (scale.at(from), top),
                scale.at(to),
                Ink::Series(series),
            )?;
            from = to;
        }
        let at = (scale.at(from) + 5 * PX, top + BAR * PX / 2);
        write_text(
            area,
            &self.unit.show(total(values)),
            at,
            Side::Right,
            Ink::Text,
        )
    }

    fn group(&self, area: &Area<'_>, scale: &Scale, top: i32, values: &[Point]) -> Drew {
        for (series, point) in values.iter().enumerate() {
            let top = top + series as i32 * BAR * PX;
            bar(
                area,
                (scale.at(0.0), top),
                scale.at(finite(point.y)),
                Ink::Series(series),
            )?;
            let middle = top + BAR * PX / 2;
            let mut end = scale.at(finite(point.y));
            if point.low < point.high {
                let (low, high) = (scale.at(finite(point.low)), scale.at(finite(point.high)));
                whisker(area, low, high, middle)?;
                end = end.max(high);
            }
            write_text(
                area,
                &self.unit.show(point.y),
                (end + 5 * PX, middle),
                Side::Right,
                Ink::Text,
            )?;
        }
        Ok(())
    }

    pub(super) fn description(&self) -> String {
        let all: Vec<String> = self
            .categories
            .iter()
            .map(|(name, values)| {
                let values: Vec<String> =
                    values.iter().map(|point| self.unit.show(point.y)).collect();
                format!("{name} {}", values.join(", "))
            })
            .collect();
        let of = if self.series.is_empty() {
            String::new()
        } else {
            format!(" ({})", self.series.join(", "))
        };
        format!("{}{of}: {}.", self.axis, all.join("; "))
    }

    pub(super) fn numbers(&self) -> Table {
        let ranged = self
            .categories
            .iter()
            .any(|(_, values)| values.iter().any(|point| point.low < point.high));
        let mut header = vec![String::new()];
        for at in 0..self.series.len().max(1) {
            header.push(self.series.get(at).unwrap_or(&self.axis).clone());
            if ranged {
                header.extend(["from".to_owned(), "to".to_owned()]);
            }
        }
        let mut table = Table::new(header);
        for (name, values) in &self.categories {
            let mut row = vec![Cell::from(name.as_str())];
            for point in values {
                row.push(Cell::number(point.y, self.unit));
                if ranged {
                    row.extend([point.low, point.high].map(|end| Cell::number(end, self.unit)));
                }
            }
            table.row(row);
        }
        table
    }
}

/// The length of a stack; not a number where a part of it is not known.
fn total(values: &[Point]) -> f64 {
    let known = values.iter().all(|point| point.y.is_finite());
    let sum = values.iter().map(|point| finite(point.y)).sum();
    if known { sum } else { f64::NAN }
}

/// A length that can be drawn.
fn finite(value: f64) -> f64 {
    if value.is_finite() {
        value.max(0.0)
    } else {
        0.0
    }
}

fn bar(area: &Area<'_>, (left, top): (i32, i32), right: i32, ink: Ink) -> Drew {
    let bottom = top + (BAR - 2) * PX;
    area.draw(&Rectangle::new(
        [(left, top), (right, bottom)],
        ink.fill(1.0),
    ))?;
    Ok(())
}

/// An error bar across.
fn whisker(area: &Area<'_>, low: i32, high: i32, middle: i32) -> Drew {
    let style = Ink::Text.stroke(5);
    let half = 3 * PX;
    line(area, [(low, middle), (high, middle)], style)?;
    line(area, [(low, middle - half), (low, middle + half)], style)?;
    line(area, [(high, middle - half), (high, middle + half)], style)
}
