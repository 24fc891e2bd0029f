//! The fields of a type of intervals: `interval day to second`.

use arrow::datatypes::IntervalMonthDayNano;

use crate::temporal::units::Unit;

/// Which fields intervals of a type have, from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields(Option<(Unit, Unit)>);

/// Their names, in order.
const NAMES: [(&str, Unit); 6] = [
    ("year", Unit::Year),
    ("month", Unit::Month),
    ("day", Unit::Day),
    ("hour", Unit::Hour),
    ("minute", Unit::Minute),
    ("second", Unit::Second),
];

impl Fields {
    /// All that there are.
    pub(crate) const ALL: Fields = Fields(None);

    pub(crate) const MINUTE_TO_SECOND: Fields = Fields(Some((Unit::Minute, Unit::Second)));

    /// Those that `day to second` or `year` names, whatever the case; no other pairs are there.
    pub fn of(text: &str) -> Option<Fields> {
        let text = text.to_lowercase();
        let (first, last) = text.split_once(" to ").unwrap_or((&text, &text));
        let find = |name: &str| NAMES.iter().position(|(own, _)| *own == name);
        let (first, last) = (find(first)?, find(last)?);
        let split = first <= 1 && last > 1;
        if first > last || split {
            return None;
        }
        Some(Fields(Some((NAMES[first].1, NAMES[last].1))))
    }

    /// The unit of a number without one.
    pub(crate) fn last(self) -> Unit {
        self.0.map_or(Unit::Second, |(_, last)| last)
    }

    /// `interval` without what is below the last field.
    pub(crate) fn cut(self, interval: IntervalMonthDayNano) -> IntervalMonthDayNano {
        let IntervalMonthDayNano {
            months,
            days,
            nanoseconds,
        } = interval;
        let to = |unit: i64| IntervalMonthDayNano::new(months, days, nanoseconds / unit * unit);
        match self.0.map(|(_, last)| last) {
            Some(Unit::Year) => IntervalMonthDayNano::new(months / 12 * 12, 0, 0),
            Some(Unit::Month) => IntervalMonthDayNano::new(months, 0, 0),
            Some(Unit::Day) => IntervalMonthDayNano::new(months, days, 0),
            Some(Unit::Hour) => to(3_600_000_000_000),
            Some(Unit::Minute) => to(60_000_000_000),
            _ => interval,
        }
    }
}
