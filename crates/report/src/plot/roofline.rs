//! Rooflines: how fast operators are, over how much they compute per byte, under what the machine could do.

use plotters::prelude::*;

use super::canvas::{
    Area, Drawn, Drew, Ink, PX, Side, TEXT, Width, drawing, head, line, text_px, widest, write_text,
};
use super::rows::named;
use super::scale::Scale;
use crate::table::{Cell, Table};
use crate::unit::Unit;

/// Pixels: above the plot, for the axis' name; below; at the right.
const HEAD: i32 = 26;
const FOOT: i32 = 42;
const RIGHT: i32 = 18;
/// Pixels: of a point, and of the space around a text.
const DOT: i32 = 5;
const AIR: i32 = 3;

/// Points under roofs: on the horizontal axis operations per byte, on the vertical one operations per second. A
/// roof is a bandwidth (what can be computed on what it brings) or a rate of operations.
#[derive(Clone, Debug)]
pub struct Roofline {
    pub(super) title: String,
    pub(super) series: Vec<String>,
    bandwidths: Vec<(String, f64)>,
    peaks: Vec<(String, f64)>,
    points: Vec<Dot>,
}

#[derive(Clone, Debug)]
struct Dot {
    series: usize,
    label: String,
    name: String,
    intensity: f64,
    rate: f64,
}

/// Left, top, right, bottom in units of the drawing.
type Rectangle = (i32, i32, i32, i32);

fn apart(a: Rectangle, b: Rectangle) -> bool {
    a.2 < b.0 || b.2 < a.0 || a.3 < b.1 || b.3 < a.1
}

impl Roofline {
    /// Without points yet; colours stand for these names.
    pub fn new<I>(title: impl Into<String>, series: I) -> Roofline
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        Roofline {
            title: title.into(),
            series: series.into_iter().map(Into::into).collect(),
            bandwidths: Vec::new(),
            peaks: Vec::new(),
            points: Vec::new(),
        }
    }

    /// Adds a roof: so many bytes per second.
    pub fn bandwidth(mut self, name: impl Into<String>, bytes: f64) -> Roofline {
        self.bandwidths.push((name.into(), bytes));
        self
    }

    /// Adds a roof: so many operations per second.
    pub fn peak(mut self, name: impl Into<String>, operations: f64) -> Roofline {
        self.peaks.push((name.into(), operations));
        self
    }

    /// Adds a point of a series, with a short label beside it and its name in the table of numbers. One without
    /// operations has no place and is left out.
    pub fn point(
        &mut self,
        series: usize,
        label: impl Into<String>,
        name: impl Into<String>,
        (intensity, rate): (f64, f64),
    ) {
        self.points.push(Dot {
            series,
            label: label.into(),
            name: name.into(),
            intensity,
            rate,
        });
    }

    fn shown(&self) -> impl Iterator<Item = &Dot> {
        let there = |value: f64| value.is_finite() && value > 0.0;
        let dots = self.points.iter();
        dots.filter(move |dot| there(dot.intensity) && there(dot.rate))
    }

    /// The highest rate of operations that is a roof.
    fn top(&self) -> f64 {
        let peaks = self.peaks.iter().map(|(_, rate)| *rate);
        let top = peaks.filter(|rate| rate.is_finite()).fold(0.0, f64::max);
        if top > 0.0 { top } else { 1e9 }
    }

    /// Both ends of both axes: all points, and where the roofs meet.
    fn ranges(&self) -> ((f64, f64), (f64, f64)) {
        let top = self.top();
        let roofs = self.bandwidths.iter().map(|(_, bytes)| *bytes);
        let slow = roofs
            .filter(|bytes| *bytes > 0.0)
            .fold(f64::INFINITY, f64::min);
        let ridge = if slow.is_finite() { top / slow } else { 1.0 };
        let (mut x, mut y) = ((ridge, ridge), (top, top));
        for dot in self.shown() {
            x = (x.0.min(dot.intensity), x.1.max(dot.intensity));
            y = (y.0.min(dot.rate), y.1.max(dot.rate));
        }
        ((x.0 / 2.0, x.1 * 2.0), (y.0 / 2.0, y.1 * 1.6))
    }

    pub(super) fn draw(&self, width: Width) -> Drawn {
        let high = if width == Width::Wide { 420 } else { 320 };
        let bottom = (high - FOOT) * PX;
        let (across, up) = self.ranges();
        let y = Scale::new(up, Unit::Count, true, (bottom, HEAD * PX));
        let rungs = y.ticks(6);
        let left = widest(rungs.iter().map(|(_, text)| text.as_str())) + 12;
        let ends = (left * PX, (width.px() - RIGHT) * PX);
        let x = Scale::new(across, Unit::Plain, true, ends);
        drawing(width.px(), high, |area| {
            head(area, &named("operations per second", y.unit), 1)?;
            for (at, text) in rungs {
                line(area, [(ends.0, at), (ends.1, at)], Ink::Grid.stroke(4))?;
                write_text(area, &text, (ends.0 - 6 * PX, at), Side::Left, Ink::Faint)?;
            }
            for (at, text) in x.ticks(if width == Width::Wide { 9 } else { 5 }) {
                let tick = [(at, bottom), (at, bottom + 4 * PX)];
                line(area, tick, Ink::Faint.stroke(4))?;
                let under = (at, bottom + 12 * PX);
                write_text(area, &text, under, Side::Middle, Ink::Faint)?;
            }
            line(
                area,
                [(ends.0, bottom), (ends.1, bottom)],
                Ink::Faint.stroke(4),
            )?;
            let foot = (high - TEXT / 2 - 3) * PX;
            let name = "operations per byte";
            write_text(area, name, (ends.1, foot), Side::Left, Ink::Faint)?;
            let mut taken = self.roofs(area, (&x, &y), (across, up), ends)?;
            for dot in self.shown() {
                let (at, ink) = (
                    (x.at(dot.intensity), y.at(dot.rate)),
                    Ink::Series(dot.series),
                );
                area.draw(&Circle::new(at, DOT * PX, ink.fill(0.9)))?;
                let reach = DOT * PX;
                taken.push((at.0 - reach, at.1 - reach, at.0 + reach, at.1 + reach));
            }
            for dot in self.shown() {
                label(
                    area,
                    &dot.label,
                    (x.at(dot.intensity), y.at(dot.rate)),
                    &mut taken,
                )?;
            }
            Ok(())
        })
    }

    /// Draws the roofs and their names; gives where the names stand.
    fn roofs(
        &self,
        area: &Area<'_>,
        (x, y): (&Scale, &Scale),
        (across, up): ((f64, f64), (f64, f64)),
        ends: (i32, i32),
    ) -> Result<Vec<Rectangle>, Box<dyn std::error::Error + Send + Sync>> {
        let mut names = Vec::new();
        let steepest = self.bandwidths.iter().map(|(_, bytes)| *bytes);
        let steepest = steepest.fold(0.0, f64::max);
        for (name, rate) in self.peaks.iter().filter(|(_, rate)| *rate > 0.0) {
            let from = if steepest > 0.0 {
                rate / steepest
            } else {
                across.0
            };
            let at = y.at(*rate);
            line(area, [(x.at(from), at), (ends.1, at)], Ink::Faint.stroke(6))?;
            let px = text_px(name) * PX;
            names.push((name, (ends.1 - px, at - 11 * PX)));
        }
        for (name, bytes) in self.bandwidths.iter().filter(|(_, bytes)| *bytes > 0.0) {
            let from = across.0.max(up.0 / bytes);
            let to = across.1.min(self.top() / bytes);
            let ends = [from, to].map(|at| (x.at(at), y.at(at * bytes)));
            line(area, ends, Ink::Faint.stroke(6))?;
            // On the line, at three tenths of its way.
            let on = |from: i32, to: i32| from + (to - from) * 3 / 10;
            let middle = (on(ends[0].0, ends[1].0), on(ends[0].1, ends[1].1));
            names.push((name, (middle.0 - text_px(name) * PX / 2, middle.1)));
        }
        let mut taken = Vec::new();
        for (name, (left, middle)) in names {
            let px = text_px(name) * PX;
            let left = left.clamp(ends.0, (ends.1 - px).max(ends.0));
            let half = (TEXT / 2 + AIR) * PX;
            let mut box_ = (
                left - AIR * PX,
                middle - half,
                left + px + AIR * PX,
                middle + half,
            );
            while taken.iter().any(|other| !apart(*other, box_)) {
                (box_.1, box_.3) = (box_.1 + half, box_.3 + half);
            }
            let ground = Ink::Ground.fill(1.0);
            area.draw(&plotters::element::Rectangle::new(
                [(box_.0, box_.1), (box_.2, box_.3)],
                ground,
            ))?;
            let at = (left, (box_.1 + box_.3) / 2);
            write_text(area, name, at, Side::Right, Ink::Faint)?;
            taken.push(box_);
        }
        Ok(taken)
    }

    pub(super) fn description(&self) -> String {
        let roof = |(name, _): &(String, f64)| name.clone();
        let roofs = self.bandwidths.iter().chain(&self.peaks).map(roof);
        let points = self.shown().map(|dot| {
            format!(
                "{} ({}): {} operations per second at {} per byte",
                dot.label,
                dot.name,
                Unit::Count.show(dot.rate),
                Unit::Plain.show(dot.intensity)
            )
        });
        format!(
            "Roofs: {}. {}.",
            roofs.collect::<Vec<_>>().join(", "),
            points.collect::<Vec<_>>().join("; ")
        )
    }

    pub(super) fn numbers(&self) -> Table {
        let mut table = Table::new([
            "point",
            "what it is",
            "operations per byte",
            "operations per second",
        ]);
        for dot in &self.points {
            table.row([
                Cell::from(dot.label.as_str()),
                Cell::from(dot.name.as_str()),
                Cell::number(dot.intensity, Unit::Plain),
                Cell::number(dot.rate, Unit::Count),
            ]);
        }
        for (name, rate) in self.bandwidths.iter().chain(&self.peaks) {
            table.row([
                Cell::from("roof"),
                Cell::from(name.as_str()),
                Cell::from(""),
                Cell::number(*rate, Unit::Count),
            ]);
        }
        table.caption("Of the roofs that rise, bytes per second.")
    }
}

/// Writes a label at the first side of its point where nothing stands yet.
fn label(area: &Area<'_>, text: &str, at: (i32, i32), taken: &mut Vec<Rectangle>) -> Drew {
    let (half, tall) = (text_px(text) * PX / 2, TEXT * PX / 2);
    let (beside, above) = (DOT * PX + 3 * PX + half, DOT * PX + tall + PX);
    let sides = [
        (beside, 0),
        (-beside, 0),
        (0, -above),
        (0, above),
        (beside, -above),
        (-beside, above),
        (beside, above),
        (-beside, -above),
    ];
    let place = |(dx, dy): &(i32, i32)| {
        let middle = (at.0 + dx, at.1 + dy);
        (
            middle.0 - half,
            middle.1 - tall,
            middle.0 + half,
            middle.1 + tall,
        )
    };
    let free = |side: &&(i32, i32)| taken.iter().all(|other| apart(*other, place(side)));
    let side = sides.iter().find(free).unwrap_or(&sides[0]);
    taken.push(place(side));
    let middle = (at.0 + side.0, at.1 + side.1);
    write_text(area, text, middle, Side::Middle, Ink::Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_find_a_free_side_and_roofs_hold_any_figure() {
        let mut plot = Roofline::new("t", ["filter", "fold"])
            .bandwidth("memory", 1e10)
            .bandwidth("nothing", f64::NAN)
            .peak("64 bits", 4e9)
            .peak("none", 0.0);
        for at in 0..9 {
            plot.point(at, format!("{at}"), "<filter>", (0.2, 1e9));
        }
        plot.point(0, "x", "no operations", (0.0, 0.0));
        plot.point(0, "y", "no time", (1.0, f64::INFINITY));
        for width in [Width::Wide, Width::Narrow] {
            let body = plot.draw(width).unwrap().body;
            assert_eq!(body.matches("<circle").count(), 9, "{body}");
            assert!(body.contains("memory") && body.contains("64 bits"));
        }
        assert!(Roofline::new("", [""; 0]).draw(Width::Wide).is_ok());
        assert_eq!(plot.numbers().rows().len(), 15);
    }

    #[test]
    fn boxes_that_touch_are_not_apart() {
        assert!(apart((0, 0, 1, 1), (2, 0, 3, 1)));
        assert!(!apart((0, 0, 2, 2), (2, 2, 3, 3)));
    }
}
