//! The distribution of values per category.

use plotters::prelude::*;

use super::canvas::{Area, Drawn, Drew, Ink, PX, Width, line};
use super::rows::{Rows, names};
use super::scale::Scale;
use crate::sample::Sample;
use crate::table::{Cell, Table};
use crate::unit::Unit;

/// Pixels of one row.
const ROW: i32 = 22;

/// Every value as a dot, with a box from the first to the third quartile and a line at the median.
#[derive(Clone, Debug)]
pub struct Spread {
    pub(super) title: String,
    axis: String,
    unit: Unit,
    from_zero: bool,
    categories: Vec<(String, Sample)>,
}

impl Spread {
    /// Without values yet; `axis` names what they are.
    pub fn new(title: impl Into<String>, axis: impl Into<String>, unit: Unit) -> Spread {
        Spread {
            title: title.into(),
            axis: axis.into(),
            unit,
            from_zero: false,
            categories: Vec::new(),
        }
    }

    /// Makes the axis start at 0.
    pub fn from_zero(mut self) -> Spread {
        self.from_zero = true;
        self
    }

    /// Adds a category.
    pub fn category(&mut self, name: impl Into<String>, values: Sample) {
        self.categories.push((name.into(), values));
    }

    fn range(&self) -> (f64, f64) {
        let all = || {
            self.categories
                .iter()
                .flat_map(|(_, values)| values.values())
                .copied()
                .filter(|value| value.is_finite())
        };
        let (low, high) = (
            all().fold(f64::INFINITY, f64::min),
            all().fold(f64::NEG_INFINITY, f64::max),
        );
        if low > high {
            return (0.0, 1.0);
        }
        let low = if self.from_zero { low.min(0.0) } else { low };
        let air = if high > low {
            (high - low) * 0.04
        } else {
            high.abs().max(1.0) * 0.1
        };
        (if self.from_zero { low } else { low - air }, high + air)
    }

    pub(super) fn draw(&self, width: Width) -> Drawn {
        let rows = Rows {
            width,
            names: names(&self.categories),
            row: ROW,
            axis: &self.axis,
            unit: self.unit,
            range: self.range(),
            right: 16,
        };
        rows.draw(|area, row, scale, top| category(area, scale, top, &self.categories[row].1))
    }

    pub(super) fn description(&self) -> String {
        let all: Vec<String> = self
            .categories
            .iter()
            .map(|(name, values)| {
                format!(
                    "{name} {} (median of {})",
                    self.unit.show(values.median()),
                    values.values().len()
                )
            })
            .collect();
        format!("{}: {}.", self.axis, all.join("; "))
    }

    pub(super) fn numbers(&self) -> Table {
        let mut table = Table::new(["", "values", "least", "median", "greatest", "variation"]);
        for (name, values) in &self.categories {
            let (least, greatest) = values.range();
            table.row([
                Cell::from(name.as_str()),
                Cell::number(values.values().len() as f64, Unit::Count),
                Cell::number(least, self.unit),
                Cell::number(values.median(), self.unit),
                Cell::number(greatest, self.unit),
                Cell::number(values.variation(), Unit::Share),
            ]);
        }
        table
    }
}

fn category(area: &Area<'_>, scale: &Scale, top: i32, values: &Sample) -> Drew {
    let (bottom, middle) = (top + ROW * PX, top + ROW * PX / 2);
    let ink = Ink::Series(0);
    if values.values().iter().any(|value| value.is_finite()) {
        let (first, third) = values.quartiles();
        let corners = [
            (scale.at(first), top + 3 * PX),
            (scale.at(third), bottom - 3 * PX),
        ];
        area.draw(&Rectangle::new(corners, ink.fill(0.18)))?;
        let median = scale.at(values.median());
        line(area, [(median, top), (median, bottom)], ink.stroke(10))?;
    }
    let finite = values.values().iter().filter(|value| value.is_finite());
    for (at, value) in finite.enumerate() {
        // Equal values shall lie beside each other: seven tracks, scattered but always the same.
        let track = ((at as u32).wrapping_mul(2_654_435_761) >> 16) % 7;
        let centre = (scale.at(*value), middle + (track as i32 - 3) * PX * 2);
        area.draw(&Circle::new(centre, 5 * PX / 2, ink.fill(0.45)))?;
    }
    Ok(())
}
