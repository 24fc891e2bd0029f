//! Scales: from values to coordinates of the drawing, and the ticks of an axis.

use plotters::coord::combinators::LogCoord;
use plotters::coord::ranged1d::Ranged;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::IntoLogRange;

use crate::unit::Unit;
use crate::unit::{doubled, power, tick};

/// One axis of a drawing.
pub(super) struct Scale {
    kind: Kind,
    /// Where its low and its high end are.
    ends: (i32, i32),
    /// What values are divided by.
    by: f64,
    range: (f64, f64),
    /// The unit that leaves.
    pub(super) unit: &'static str,
    /// Whether a logarithmic one has powers of two.
    twos: bool,
}

enum Kind {
    Linear(RangedCoordf64),
    Log(LogCoord<f64>),
}

impl Scale {
    /// From `low` to `high` between two places; what cannot be a range is made one.
    pub(super) fn new(range: (f64, f64), unit: Unit, log: bool, ends: (i32, i32)) -> Scale {
        let (low, high) = sane(range);
        let log = log && low > 0.0;
        let (by, name) = unit.axis(high.abs().max(low.abs()));
        let (low, high) = (low / by, high / by);
        let kind = if log {
            Kind::Log((low..high).log_scale().into())
        } else {
            Kind::Linear((low..high).into())
        };
        Scale {
            kind,
            ends,
            by,
            range: (low, high),
            unit: name,
            twos: unit == Unit::Doubled,
        }
    }

    /// The value's place, at the edge if it is beyond.
    pub(super) fn at(&self, value: f64) -> i32 {
        let value = (value / self.by).clamp(self.range.0, self.range.1);
        match &self.kind {
            Kind::Linear(coord) => coord.map(&value, self.ends),
            Kind::Log(coord) => coord.map(&value, self.ends),
        }
    }

    /// At most `most` ticks: where, and what they say.
    pub(super) fn ticks(&self, most: usize) -> Vec<(i32, String)> {
        let (values, show): (_, fn(f64) -> String) = match &self.kind {
            Kind::Linear(coord) => (coord.key_points(most), tick),
            Kind::Log(_) if self.twos => (self.twos(most), doubled),
            Kind::Log(_) => (self.powers(most), power),
        };
        let place = |value: f64| (self.at(value * self.by), show(value));
        values.into_iter().map(place).collect()
    }

    /// Powers of two.
    fn twos(&self, most: usize) -> Vec<f64> {
        let (low, high) = (self.range.0.log2(), self.range.1.log2());
        let every = ((high - low) / most.max(1) as f64).ceil().max(1.0) as usize;
        let powers = (low.floor() as i32..=high.ceil() as i32).map(|power| 2f64.powi(power));
        let inside = powers.filter(|value| (self.range.0..=self.range.1).contains(value));
        inside.step_by(every).collect()
    }

    /// Powers of ten; over less than two of them also their doubles and fives.
    fn powers(&self, most: usize) -> Vec<f64> {
        let (low, high) = (self.range.0.log10(), self.range.1.log10());
        let every = ((high - low) / most.max(1) as f64).ceil().max(1.0) as i32;
        let steps: &[f64] = if high - low < 2.0 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        let powers = (low.floor() as i32..=high.ceil() as i32).filter(|power| power % every == 0);
        let all = powers.flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
        all.filter(|value| (self.range.0..=self.range.1).contains(value))
            .collect()
    }
}

/// A range that is finite and not empty.
fn sane((low, high): (f64, f64)) -> (f64, f64) {
    let low = if low.is_finite() { low } else { 0.0 };
    if high.is_finite() && high > low {
        (low, high)
    } else {
        (low, low + low.abs().max(1.0) * 0.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_between_the_ends_whatever_they_are() {
        for range in [
            (0.0, 5e6),
            (1.0, 1.0),
            (f64::NAN, f64::INFINITY),
            (5.0, -5.0),
            (-3.0, 3.0),
        ] {
            for log in [false, true] {
                let scale = Scale::new(range, Unit::Count, log, (100, 900));
                for value in [0.0, 1.0, 3e6, -1e300, f64::INFINITY] {
                    let at = scale.at(value);
                    assert!((100..=900).contains(&at), "{value} in {range:?} at {at}");
                }
                assert!(
                    scale
                        .ticks(6)
                        .iter()
                        .all(|(at, _)| (100..=900).contains(at))
                );
            }
        }
    }

    #[test]
    fn ticks_are_in_the_unit_of_the_axis() {
        let scale = Scale::new((0.0, 1.0), Unit::Share, false, (0, 100));
        let ticks: Vec<String> = scale.ticks(6).into_iter().map(|(_, text)| text).collect();
        assert_eq!(ticks, ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(scale.unit, "%");
        let scale = Scale::new((1900.0, 9000.0), Unit::Doubled, true, (0, 100));
        let ticks: Vec<String> = scale.ticks(6).into_iter().map(|(_, text)| text).collect();
        assert_eq!(ticks, ["2Ki", "4Ki", "8Ki"]);
        let scale = Scale::new((1.0, 1e6), Unit::Plain, true, (0, 100));
        let ticks: Vec<(i32, String)> = scale.ticks(4);
        assert_eq!(ticks[1], (33, "100".to_owned()), "{ticks:?}");
    }
}
