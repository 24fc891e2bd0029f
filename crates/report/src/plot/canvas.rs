//! The drawing surface that all plots share: lines, text, and colours by role.

use std::fmt::Write;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::html::forbidden;

/// Series that have a colour of their own; further ones start again.
pub(crate) const SERIES: usize = 6;

/// Units of the drawing per pixel of the page: the SVG writer knows whole numbers only, and
/// curves shall not show steps.
pub(super) const PX: i32 = 4;

/// The size of text, in pixels.
pub(super) const TEXT: i32 = 12;

/// Why a plot could not be drawn.
pub(super) type Drawn = Result<Drawing, String>;
/// Inside of a drawing.
pub(super) type Drew = Result<(), Box<dyn std::error::Error + Send + Sync>>;
/// The surface.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// For which width of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    Wide,
    Narrow,
}

impl Width {
    /// In pixels.
    pub(super) fn px(self) -> i32 {
        match self {
            Width::Wide => 880,
            Width::Narrow => 344,
        }
    }
}

/// What a colour stands for. The drawing holds a number in its place; the page's style sheet has
/// the colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    Text,
    Faint,
    Grid,
    /// The page.
    Ground,
    /// From 0.
    Series(usize),
}

impl Ink {
    pub(super) fn rgb(self) -> RGBColor {
        RGBColor(1, 0, self.code())
    }

    fn code(self) -> u8 {
        match self {
            Ink::Series(at) => 1 + (at % SERIES) as u8,
            Ink::Text => 16,
            Ink::Faint => 17,
            Ink::Grid => 18,
            Ink::Ground => 19,
        }
    }

    pub(super) fn fill(self, opacity: f64) -> ShapeStyle {
        self.rgb().mix(opacity.clamp(0.0, 1.0)).filled()
    }

    /// A line so many quarters of a pixel wide.
    pub(super) fn stroke(self, quarters: u32) -> ShapeStyle {
        self.rgb().stroke_width(quarters)
    }
}

/// The rules that give the inks the colours of the page.
pub(crate) fn style_sheet() -> String {
    let mut out = String::new();
    let series = (0..SERIES).map(|at| (Ink::Series(at), format!("s{}", at + 1)));
    let named = [
        (Ink::Text, "text"),
        (Ink::Faint, "faint"),
        (Ink::Grid, "line"),
        (Ink::Ground, "ground"),
    ];
    let named = named.map(|(ink, name)| (ink, name.to_owned()));
    for (ink, name) in series.chain(named) {
        let RGBColor(red, green, blue) = ink.rgb();
        for property in ["fill", "stroke"] {
            let _ = writeln!(
                out,
                "svg [{property}=\"#{red:02X}{green:02X}{blue:02X}\"] {{ {property}: var(--{name}); }}"
            );
        }
    }
    out
}

/// A finished drawing.
#[derive(Debug)]
pub(super) struct Drawing {
    /// In units of the drawing.
    pub(super) size: (i32, i32),
    /// The elements.
    pub(super) body: String,
}

/// Draws on a surface of so many pixels.
pub(super) fn drawing(width: i32, height: i32, draw: impl FnOnce(&Area<'_>) -> Drew) -> Drawn {
    let size = (width * PX, height * PX);
    let mut text = String::new();
    {
        let backend = SVGBackend::with_string(&mut text, (size.0 as u32, size.1 as u32));
        let area = backend.into_drawing_area();
        draw(&area).map_err(|error| error.to_string())?;
        area.present().map_err(|error| error.to_string())?;
    }
    // The page writes the outer element itself.
    let inner = text.split_once('>').map_or("", |(_, rest)| rest).trim();
    let body = inner.strip_suffix("</svg>").unwrap_or(inner).to_owned();
    Ok(Drawing { size, body })
}

/// Where a text stands relative to its point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    Left,
    Middle,
    Right,
}

/// Draws a line through points in units of the drawing.
pub(super) fn line(area: &Area<'_>, points: impl Into<Vec<(i32, i32)>>, style: ShapeStyle) -> Drew {
    area.draw(&PathElement::new(points, style))?;
    Ok(())
}

/// Writes a text whose middle line is at `at`, in units of the drawing.
pub(super) fn write_text(
    area: &Area<'_>,
    text: &str,
    at: (i32, i32),
    side: Side,
    ink: Ink,
) -> Drew {
    let across = match side {
        Side::Left => HPos::Right,
        Side::Middle => HPos::Center,
        Side::Right => HPos::Left,
    };
    // The SVG writer divides by 1.24.
    let font = ("sans-serif", f64::from(TEXT * PX) * 1.24).into_font();
    let style = font.color(&ink.rgb()).pos(Pos::new(across, VPos::Center));
    area.draw(&Text::new(clean(text), at, style))?;
    Ok(())
}

/// The SVG writer escapes, but lets control characters pass.
fn clean(text: &str) -> String {
    let char = |char: char| {
        if forbidden(char) || char == '\n' {
            '\u{fffd}'
        } else {
            char
        }
    };
    text.chars().map(char).collect()
}

/// About how many pixels wide a text is.
pub(super) fn text_px(text: &str) -> i32 {
    let eighths: i32 = text
        .chars()
        .map(|char| match char {
            'i' | 'j' | 'l' | 't' | 'f' | 'r' | '.' | ',' | ':' | ' ' | '-' | '(' | ')' => 3,
            'm' | 'w' | 'M' | 'W' | '%' => 7,
            'A'..='Z' => 6,
            _ => 5,
        })
        .sum();
    eighths * TEXT / 8 + 1
}

/// About how many pixels wide the widest of these is.
pub(super) fn widest<'t>(texts: impl IntoIterator<Item = &'t str>) -> i32 {
    texts.into_iter().map(text_px).max().unwrap_or(0)
}

/// Writes what is measured above the plot, from so many pixels at the left.
pub(super) fn head(area: &Area<'_>, text: &str, left: i32) -> Drew {
    write_text(area, text, (left * PX, 9 * PX), Side::Right, Ink::Faint)
}

/// The text, cut to so many pixels.
pub(super) fn fitted(text: &str, px: i32) -> String {
    if text_px(text) <= px {
        return text.to_owned();
    }
    let mut cut = String::new();
    for char in text.chars() {
        cut.push(char);
        if text_px(&cut) + text_px("…") > px {
            cut.pop();
            break;
        }
    }
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ink_has_a_rule_and_every_rule_is_for_one_ink() {
        let sheet = style_sheet();
        for ink in [
            Ink::Text,
            Ink::Faint,
            Ink::Grid,
            Ink::Ground,
            Ink::Series(0),
            Ink::Series(5),
        ] {
            let RGBColor(red, green, blue) = ink.rgb();
            let rule = format!("svg [fill=\"#{red:02X}{green:02X}{blue:02X}\"]");
            assert_eq!(sheet.matches(&rule).count(), 1, "{ink:?}");
        }
        assert_eq!(Ink::Series(SERIES).rgb(), Ink::Series(0).rgb());
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(fitted("os", 100), "os");
        let cut = fitted(&"m".repeat(200), 100);
        assert!(cut.ends_with('…') && text_px(&cut) <= 100, "{cut}");
        assert!(!fitted("", 0).contains('m'));
    }

    #[test]
    fn text_is_escaped_and_freed_of_controls() {
        let drawing = drawing(100, 100, |area| {
            write_text(
                area,
                "</text><script>\u{0}\u{202e}",
                (0, 0),
                Side::Right,
                Ink::Text,
            )
        });
        let body = drawing.unwrap().body;
        assert!(
            !body.contains("<script") && body.contains("&lt;script&gt;"),
            "{body}"
        );
        assert!(!body.contains('\u{0}') && !body.contains('\u{202e}'));
    }
}
