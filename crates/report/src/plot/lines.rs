//! Curves.

use plotters::prelude::*;

use super::canvas::{
    Area, Drawn, Drew, Ink, PX, Side, TEXT, Width, drawing, fitted, head, line, widest, write_text,
};
use super::rows::named;
use super::scale::Scale;
use crate::table::{Cell, Table};
use crate::unit::Unit;

/// Pixels: above the plot, for the axis' name; below; at the right.
const HEAD: i32 = 26;
const FOOT: i32 = 42;
const RIGHT: i32 = 18;
/// Curves with at most so many points show them.
const DOTTED: usize = 24;
/// Rows of the table of numbers.
const MOST_NUMBERS: usize = 40;

/// One value, with the range it varies in: equal ends where it does not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Where it is; not used by bars.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// The low end.
    pub low: f64,
    /// The high end.
    pub high: f64,
}

impl From<f64> for Point {
    fn from(y: f64) -> Point {
        Point {
            x: 0.0,
            y,
            low: y,
            high: y,
        }
    }
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Point {
        Point {
            x,
            y,
            low: y,
            high: y,
        }
    }
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    name: String,
    unit: Unit,
    log: bool,
    zero: bool,
}

impl Axis {
    /// A linear axis over the values there are.
    pub fn new(name: impl Into<String>, unit: Unit) -> Axis {
        Axis {
            name: name.into(),
            unit,
            log: false,
            zero: false,
        }
    }

    /// Steps of ten; values that are not above 0 are left out.
    pub fn log(mut self) -> Axis {
        self.log = true;
        self
    }

    /// Starts at 0.
    pub fn from_zero(mut self) -> Axis {
        self.zero = true;
        self
    }

    fn shows(&self, value: f64) -> bool {
        value.is_finite() && !(self.log && value <= 0.0)
    }

    /// Both ends, with some air.
    fn range(&self, values: impl Iterator<Item = f64>) -> (f64, f64) {
        let ends = values.filter(|value| self.shows(*value));
        let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        match (low > high, self.log) {
            (true, true) => (1.0, 10.0),
            (true, false) => (0.0, 1.0),
            (false, true) => (low / 1.1, high * 1.1),
            (false, false) => (if self.zero { low.min(0.0) } else { low }, high),
        }
    }
}

/// One curve.
#[derive(Clone, Debug)]
pub struct Line {
    pub(super) name: String,
    points: Vec<Point>,
    steps: bool,
}

impl Line {
    /// Through these points, in their order.
    pub fn new<P: Into<Point>>(
        name: impl Into<String>,
        points: impl IntoIterator<Item = P>,
    ) -> Line {
        Line {
            name: name.into(),
            points: points.into_iter().map(Into::into).collect(),
            steps: false,
        }
    }

    /// Keeps each value until the next: states over time.
    pub fn steps(mut self) -> Line {
        self.steps = true;
        self
    }
}

/// Curves over a number, with a band or error bars where points have a range.
#[derive(Clone, Debug)]
pub struct Lines {
    pub(super) title: String,
    pub(super) series: Vec<Line>,
    x: Axis,
    y: Axis,
    marks: Vec<(String, f64)>,
}

impl Lines {
    /// Without curves yet.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Lines {
        Lines {
            title: title.into(),
            series: Vec::new(),
            x,
            y,
            marks: Vec::new(),
        }
    }

    /// Adds a curve.
    pub fn line(mut self, line: Line) -> Lines {
        self.series.push(line);
        self
    }

    /// Adds a dashed line at a value of the vertical axis, with its name on it.
    pub fn mark(mut self, name: impl Into<String>, value: f64) -> Lines {
        self.marks.push((name.into(), value));
        self
    }

    pub(super) fn draw(&self, width: Width) -> Drawn {
        let high = if width == Width::Wide { 340 } else { 260 };
        let bottom = (high - FOOT) * PX;
        let y = Scale::new(self.y_range(), self.y.unit, self.y.log, (bottom, HEAD * PX));
        let rungs = y.ticks(6);
        let left = widest(rungs.iter().map(|(_, text)| text.as_str())) + 12;
        let ends = (left * PX, (width.px() - RIGHT) * PX);
        let x = Scale::new(self.x_range(), self.x.unit, self.x.log, ends);
        drawing(width.px(), high, |area| {
            head(area, &named(&self.y.name, y.unit), 1)?;
            for (at, text) in rungs {
                line(area, [(ends.0, at), (ends.1, at)], Ink::Grid.stroke(4))?;
                write_text(area, &text, (ends.0 - 6 * PX, at), Side::Left, Ink::Faint)?;
            }
            for (at, text) in x.ticks(if width == Width::Wide { 9 } else { 5 }) {
                line(
                    area,
                    [(at, bottom), (at, bottom + 4 * PX)],
                    Ink::Faint.stroke(4),
                )?;
                write_text(
                    area,
                    &text,
                    (at, bottom + 12 * PX),
                    Side::Middle,
                    Ink::Faint,
                )?;
            }
            line(
                area,
                [(ends.0, bottom), (ends.1, bottom)],
                Ink::Faint.stroke(4),
            )?;
            let foot = (high - TEXT / 2 - 3) * PX;
            write_text(
                area,
                &named(&self.x.name, x.unit),
                (ends.1, foot),
                Side::Left,
                Ink::Faint,
            )?;
            for (name, value) in &self.marks {
                mark(area, name, y.at(*value), ends)?;
            }
            for (at, curve) in self.series.iter().enumerate() {
                self.curve(area, curve, Ink::Series(at), (&x, &y))?;
            }
            Ok(())
        })
    }

    fn x_range(&self) -> (f64, f64) {
        let points = self.series.iter().flat_map(|line| &line.points);
        self.x.range(points.map(|point| point.x))
    }

    /// With air, as curves shall not touch the edges.
    fn y_range(&self) -> (f64, f64) {
        let points = self.series.iter().flat_map(|line| &line.points);
        let marks = self.marks.iter().map(|(_, value)| *value);
        let values = points
            .flat_map(|point| [point.y, point.low, point.high])
            .chain(marks);
        let (low, high) = self.y.range(values);
        if self.y.log {
            return (low, high);
        }
        let air = (high - low) * 0.05;
        (if self.y.zero { low } else { low - air }, high + air)
    }

    fn curve(&self, area: &Area<'_>, curve: &Line, ink: Ink, (x, y): (&Scale, &Scale)) -> Drew {
        let shown = |point: &&Point| self.x.shows(point.x) && self.y.shows(point.y);
        let points: Vec<&Point> = curve.points.iter().filter(shown).collect();
        if points.iter().any(|point| point.low < point.high) {
            let high = points.iter().map(|point| (x.at(point.x), y.at(point.high)));
            let low = points
                .iter()
                .rev()
                .map(|point| (x.at(point.x), y.at(point.low)));
            let around: Vec<(i32, i32)> = high.chain(low).collect();
            area.draw(&Polygon::new(around, ink.fill(0.16)))?;
        }
        let mut path: Vec<(i32, i32)> = Vec::with_capacity(points.len());
        for point in &points {
            let at = (x.at(point.x), y.at(point.y));
            if let (true, Some(before)) = (curve.steps, path.last()) {
                path.push((at.0, before.1));
            }
            path.push(at);
        }
        if points.len() > 1 {
            line(area, path, ink.stroke(8))?;
        }
        if points.len() <= DOTTED && !curve.steps {
            for point in points {
                area.draw(&Circle::new(
                    (x.at(point.x), y.at(point.y)),
                    3 * PX,
                    ink.fill(1.0),
                ))?;
            }
        }
        Ok(())
    }

    pub(super) fn description(&self) -> String {
        let all: Vec<String> = self
            .series
            .iter()
            .map(|line| {
                let ends = (line.points.first(), line.points.last());
                match ends {
                    (Some(first), Some(last)) => format!(
                        "{}: {} points from {} at {} to {} at {}",
                        line.name,
                        line.points.len(),
                        self.y.unit.show(first.y),
                        self.x.unit.show(first.x),
                        self.y.unit.show(last.y),
                        self.x.unit.show(last.x)
                    ),
                    _ => format!("{}: no points", line.name),
                }
            })
            .collect();
        let marks = self
            .marks
            .iter()
            .map(|(name, value)| format!("; {name} at {}", self.y.unit.show(*value)));
        format!(
            "{} over {}. {}{}.",
            self.y.name,
            self.x.name,
            all.join("; "),
            marks.collect::<String>()
        )
    }

    pub(super) fn numbers(&self) -> Table {
        let all: usize = self.series.iter().map(|line| line.points.len()).sum();
        let every = all.div_ceil(MOST_NUMBERS).max(1);
        let mut table = Table::new([
            "curve",
            self.x.name.as_str(),
            self.y.name.as_str(),
            "from",
            "to",
        ]);
        for line in &self.series {
            let last = line.points.len().saturating_sub(1);
            let shown = line
                .points
                .iter()
                .enumerate()
                .filter(|(at, _)| at % every == 0 || *at == last);
            for (_, point) in shown {
                let y =
                    [point.y, point.low, point.high].map(|value| Cell::number(value, self.y.unit));
                table.row(
                    [
                        Cell::from(line.name.as_str()),
                        Cell::number(point.x, self.x.unit),
                    ]
                    .into_iter()
                    .chain(y),
                );
            }
        }
        if every > 1 {
            table = table.caption(format!(
                "One of {every} points; all of them are in the file of raw numbers."
            ));
        }
        table
    }
}

/// A dashed line across, and its name above its end.
fn mark(area: &Area<'_>, name: &str, at: i32, (left, right): (i32, i32)) -> Drew {
    let mut from = left;
    while from < right {
        line(
            area,
            [(from, at), ((from + 5 * PX).min(right), at)],
            Ink::Faint.stroke(5),
        )?;
        from += 9 * PX;
    }
    let name = fitted(name, (right - left) / PX);
    write_text(area, &name, (right, at - 8 * PX), Side::Left, Ink::Faint)
}
