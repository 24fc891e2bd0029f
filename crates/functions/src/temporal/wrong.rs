//! Why a text is no date, time or interval, with PostgreSQL's words and codes.

use datafusion_common::DataFusionError;
use messages::Error;

/// Why a text is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// It is not written like one.
    Syntax,
    /// A part of it is more than there may be: the 30th of February.
    Field,
    /// The same of a month or a day, which the order of the parts may explain.
    FieldOrOrder,
    /// A part of an interval is.
    IntervalField,
    /// A zone is farther from UTC than there are.
    Displacement,
    /// There is no such zone.
    Zone(String),
    /// The day is before the first or after the last.
    Range,
}

impl Wrong {
    /// The error for `text`, which is no value of the type of this name.
    pub(crate) fn error(self, of: &str, text: &str) -> DataFusionError {
        let (code, message) = match self {
            Wrong::Syntax => (
                "22007",
                format!("invalid input syntax for type {of}: \"{text}\""),
            ),
            Wrong::Field => (
                "22008",
                format!("date/time field value out of range: \"{text}\""),
            ),
            Wrong::FieldOrOrder => (
                "22008",
                format!(
                    "date/time field value out of range: \"{text}\": Perhaps you need a different \"datestyle\" setting."
                ),
            ),
            Wrong::IntervalField => (
                "22015",
                format!("interval field value out of range: \"{text}\""),
            ),
            Wrong::Displacement => (
                "22009",
                format!("time zone displacement out of range: \"{text}\""),
            ),
            Wrong::Zone(name) => ("22023", format!("time zone \"{name}\" not recognized")),
            Wrong::Range => {
                let of = of.split(' ').next().unwrap_or(of);
                ("22008", format!("{of} out of range: \"{text}\""))
            }
        };
        Error::coded(code, message).into()
    }
}
