//! The frame of plots with one row per category and a number across.

use super::canvas::{
    Area, Drawing, Drew, Ink, PX, Side, TEXT, Width, drawing, fitted, line, text_px, widest,
    write_text,
};
use super::scale::Scale;
use crate::unit::Unit;

/// Pixels between two rows.
const GAP: i32 = 10;
/// Pixels for the ticks and the axis' name.
const FOOT: i32 = 42;

/// A number across, one row per category below each other.
#[derive(Debug)]
pub(super) struct Rows<'a> {
    pub(super) width: Width,
    pub(super) names: Vec<&'a str>,
    /// Pixels of each row's content.
    pub(super) row: i32,
    pub(super) axis: &'a str,
    pub(super) unit: Unit,
    /// Least and greatest value to be shown.
    pub(super) range: (f64, f64),
    /// Pixels to keep free at the right.
    pub(super) right: i32,
}

impl Rows<'_> {
    /// Draws the frame, then each row: its number, the scale across, and the top of its content
    /// in units of the drawing.
    pub(super) fn draw(
        &self,
        row: impl Fn(&Area<'_>, usize, &Scale, i32) -> Drew,
    ) -> Result<Drawing, String> {
        let left = self.left();
        let ends = (left * PX, (self.width.px() - self.right) * PX);
        let scale = Scale::new(self.range, self.unit, false, ends);
        drawing(self.width.px(), self.body() + FOOT, |area| {
            self.axis(area, &scale)?;
            for (at, name) in self.names.iter().enumerate() {
                let top = (GAP / 2 + at as i32 * (self.row + GAP)) * PX;
                let middle = top + self.row * PX / 2;
                write_text(
                    area,
                    &fitted(name, left - 8),
                    ((left - 8) * PX, middle),
                    Side::Left,
                    Ink::Text,
                )?;
                row(area, at, &scale, top)?;
            }
            // Above the rows: where they start.
            let ground = self.body() * PX;
            line(area, [(ends.0, 0), (ends.0, ground)], Ink::Faint.stroke(4))
        })
    }

    fn body(&self) -> i32 {
        self.names.len().max(1) as i32 * (self.row + GAP)
    }

    /// Pixels for the names: what they need, and not more than leaves room for the figures.
    fn left(&self) -> i32 {
        let need = widest(self.names.iter().copied());
        (need + 10).clamp(24, self.width.px() * 2 / 5)
    }

    /// Grid, ticks and the axis' name.
    fn axis(&self, area: &Area<'_>, scale: &Scale) -> Drew {
        let ticks = if self.width == Width::Wide { 8 } else { 4 };
        let ground = self.body() * PX;
        for (at, text) in scale.ticks(ticks) {
            line(area, [(at, 0), (at, ground)], Ink::Grid.stroke(4))?;
            write_text(
                area,
                &text,
                (at, ground + 10 * PX),
                Side::Middle,
                Ink::Faint,
            )?;
        }
        let name = named(self.axis, scale.unit);
        // Where it would not fit below the axis it starts further left.
        let (left, all) = (self.left(), self.width.px());
        let from = if text_px(&name) > all - left { 2 } else { left };
        let foot = (self.body() + FOOT - TEXT / 2 - 3) * PX;
        write_text(
            area,
            &fitted(&name, all - from),
            (from * PX, foot),
            Side::Right,
            Ink::Faint,
        )
    }
}

/// The names of categories, in their order.
pub(super) fn names<T>(categories: &[(String, T)]) -> Vec<&str> {
    categories.iter().map(|(name, _)| name.as_str()).collect()
}

/// An axis' name with its unit.
pub(super) fn named(axis: &str, unit: &str) -> String {
    match (axis, unit) {
        (axis, "") => axis.to_owned(),
        ("", unit) => unit.to_owned(),
        (axis, unit) => format!("{axis}, {unit}"),
    }
}
