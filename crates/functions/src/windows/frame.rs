//! What a frame of a window is, as far as it does not depend on rows.

use std::fmt::Write;

use messages::{Error, Result};

/// What distances of a frame count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Units {
    /// Rows.
    Rows,
    /// Values of the sort key.
    Range,
    /// Groups of rows whose sort keys are equal.
    Groups,
}

impl Units {
    /// How statements write it.
    pub fn word(self) -> &'static str {
        match self {
            Units::Rows => "rows",
            Units::Range => "range",
            Units::Groups => "groups",
        }
    }
}

/// Where a frame begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// With the first row of the partition.
    First,
    /// A distance before the row.
    Preceding,
    /// With the current row, or those that are equal to it, as the [units](Units) have it.
    Current,
    /// A distance behind the row.
    Following,
    /// With the last row of the partition.
    Last,
}

/// Whether the frame needs a distance at a bound.
pub fn has_offset(bound: Bound) -> bool {
    matches!(bound, Bound::Preceding | Bound::Following)
}

/// Which rows around the current one are left out of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exclude {
    /// None.
    None,
    /// The current row.
    Current,
    /// The row, and those whose sort keys are equal.
    Group,
    /// Those whose sort keys are equal, without the row itself.
    Ties,
}

/// A frame of a window.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// What its distances count.
    pub units: Units,
    /// Where it begins.
    pub start: Bound,
    /// Where it ends.
    pub end: Bound,
    /// What is left out of it.
    pub exclude: Exclude,
}

const UNITS: [Units; 3] = [Units::Rows, Units::Range, Units::Groups];

const BOUNDS: [(&str, Bound); 5] = [
    ("first", Bound::First),
    ("preceding", Bound::Preceding),
    ("current", Bound::Current),
    ("following", Bound::Following),
    ("last", Bound::Last),
];

const EXCLUDES: [(&str, Exclude); 4] = [
    ("all", Exclude::None),
    ("row", Exclude::Current),
    ("group", Exclude::Group),
    ("ties", Exclude::Ties),
];

fn word_of<T: PartialEq>(known: &[(&'static str, T)], wanted: &T) -> &'static str {
    let found = known.iter().find(|(_, own)| own == wanted);
    found.map_or("", |(word, _)| *word)
}

fn of_word<T: Copy>(known: &[(&'static str, T)], word: Option<&str>) -> Option<T> {
    let found = known.iter().find(|(own, _)| Some(*own) == word);
    found.map(|(_, value)| *value)
}

impl Frame {
    /// The frame as four words, which [`Frame::of_text`] reads.
    pub fn text(&self) -> String {
        let mut text = self.units.word().to_string();
        for bound in [self.start, self.end] {
            let _ = write!(text, " {}", word_of(&BOUNDS, &bound));
        }
        let _ = write!(text, " {}", word_of(&EXCLUDES, &self.exclude));
        text
    }

    /// The frame that such a text says.
    pub fn of_text(text: &str) -> Option<Frame> {
        let mut words = text.split(' ');
        let units = words.next()?;
        Some(Frame {
            units: UNITS.into_iter().find(|own| own.word() == units)?,
            start: of_word(&BOUNDS, words.next())?,
            end: of_word(&BOUNDS, words.next())?,
            exclude: of_word(&EXCLUDES, words.next())?,
        })
    }

    /// Checks the frame of a window with so many sort keys.
    ///
    /// # Errors
    /// For bounds that no row lies between, and for distances without a key.
    pub fn check(&self, keys: usize) -> Result<()> {
        let wrong = |what: &str| Err(Error::coded("42P20", what));
        match (self.start, self.end) {
            (Bound::Last, _) => return wrong("frame start cannot be UNBOUNDED FOLLOWING"),
            (_, Bound::First) => return wrong("frame end cannot be UNBOUNDED PRECEDING"),
            (Bound::Current, Bound::Preceding) => {
                return wrong("frame starting from current row cannot have preceding rows");
            }
            (Bound::Following, Bound::Preceding) => {
                return wrong("frame starting from following row cannot have preceding rows");
            }
            (Bound::Following, Bound::Current) => {
                return wrong("frame starting from following row cannot have preceding rows");
            }
            _ => {}
        }
        let distances = [self.start, self.end]
            .iter()
            .any(|bound| matches!(bound, Bound::Preceding | Bound::Following));
        match self.units {
            Units::Range if distances && keys != 1 => {
                wrong("RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column")
            }
            Units::Groups if keys == 0 => wrong("GROUPS mode requires an ORDER BY clause"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_are_written() {
        for units in UNITS {
            for (_, start) in BOUNDS {
                for (_, exclude) in EXCLUDES {
                    let end = Bound::Last;
                    let frame = Frame {
                        units,
                        start,
                        end,
                        exclude,
                    };
                    assert_eq!(Frame::of_text(&frame.text()), Some(frame));
                }
            }
        }
        assert_eq!(Frame::of_text("rows first"), None);
    }

    #[test]
    fn bounds_that_no_row_lies_between_are_refused() {
        let frame = |units, start, end| Frame {
            units,
            start,
            end,
            exclude: Exclude::None,
        };
        assert!(
            frame(Units::Rows, Bound::Following, Bound::Current)
                .check(1)
                .is_err()
        );
        assert!(
            frame(Units::Rows, Bound::Preceding, Bound::Preceding)
                .check(0)
                .is_ok()
        );
        assert!(
            frame(Units::Range, Bound::Preceding, Bound::Current)
                .check(2)
                .is_err()
        );
        assert!(
            frame(Units::Groups, Bound::First, Bound::Current)
                .check(0)
                .is_err()
        );
    }
}
