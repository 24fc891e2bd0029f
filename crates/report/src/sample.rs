//! Repeated measurements of one figure.

use serde::Serialize;

/// Values measured one after the other; those that are not numbers count for nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Sample {
    values: Vec<f64>,
}

impl From<Vec<f64>> for Sample {
    fn from(values: Vec<f64>) -> Sample {
        Sample { values }
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Sample {
        Sample::from(Vec::from_iter(values))
    }
}

impl Sample {
    /// Adds one that was measured after the others.
    pub fn push(&mut self, value: f64) {
        self.values.push(value);
    }

    /// The values, in the order they were measured.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The middle value; NaN where there is none.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The values below which a quarter and three quarters lie; NaN where there is none.
    pub fn quartiles(&self) -> (f64, f64) {
        (self.quantile(0.25), self.quantile(0.75))
    }

    /// The least and the greatest; NaN where there is none.
    pub fn range(&self) -> (f64, f64) {
        (self.quantile(0.0), self.quantile(1.0))
    }

    /// The coefficient of variation: standard deviation (of a sample, n - 1) over mean. NaN for
    /// less than two values or a mean of 0.
    pub fn variation(&self) -> f64 {
        match self.mean() {
            0.0 => f64::NAN,
            mean => self.deviation() / mean.abs(),
        }
    }

    /// The standard deviation of a sample (n - 1); NaN for less than two values.
    pub fn deviation(&self) -> f64 {
        let (values, mean) = (self.sorted(), self.mean());
        if values.len() < 2 {
            return f64::NAN;
        }
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (squares / (values.len() as f64 - 1.0)).sqrt()
    }

    /// NaN where there is no value.
    fn mean(&self) -> f64 {
        let values = self.sorted();
        values.iter().sum::<f64>() / values.len() as f64
    }

    /// How many times `base` each value is, turn by turn, so that what slows both down at a time
    /// cancels out.
    pub fn ratio(&self, base: &Sample) -> Sample {
        let pairs = self.values.iter().zip(&base.values);
        pairs.map(|(value, base)| value / base).collect()
    }

    /// The value below which that share of the values lies, between neighbours in proportion.
    fn quantile(&self, share: f64) -> f64 {
        let values = self.sorted();
        let Some(last) = values.len().checked_sub(1) else {
            return f64::NAN;
        };
        let at = share * last as f64;
        let (low, high) = (values[at.floor() as usize], values[at.ceil() as usize]);
        low + (high - low) * at.fract()
    }

    fn sorted(&self) -> Vec<f64> {
        let numbers = self
            .values
            .iter()
            .copied()
            .filter(|value| value.is_finite());
        let mut numbers: Vec<f64> = numbers.collect();
        numbers.sort_by(f64::total_cmp);
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_sample() {
        let sample = Sample::from(vec![4.0, 1.0, 3.0, 2.0]);
        assert_eq!(sample.median(), 2.5);
        assert_eq!(sample.quartiles(), (1.75, 3.25));
        assert_eq!(sample.range(), (1.0, 4.0));
        assert!((sample.variation() - 0.5164).abs() < 1e-4);
        assert!((sample.deviation() - 1.2910).abs() < 1e-4);
        assert_eq!(sample.values()[0], 4.0, "the order is kept");
    }

    #[test]
    fn what_is_missing_is_not_a_zero() {
        let none = Sample::default();
        assert!(none.median().is_nan() && none.variation().is_nan() && none.range().0.is_nan());
        let one = Sample::from(vec![f64::NAN, 2.0, f64::INFINITY]);
        assert_eq!(one.median(), 2.0);
        assert!(one.variation().is_nan() && one.deviation().is_nan());
        let zeros = Sample::from(vec![0.0, 0.0]);
        assert!(zeros.variation().is_nan() && zeros.deviation() == 0.0);
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let slow_second_round = (Sample::from(vec![2.0, 20.0]), Sample::from(vec![1.0, 10.0]));
        let ratio = slow_second_round.0.ratio(&slow_second_round.1);
        assert_eq!((ratio.median(), ratio.variation()), (2.0, 0.0));
    }
}
