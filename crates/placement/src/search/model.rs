//! A cost model: Gaussian processes over the features of placements, averaged.
//!
//! The covariance of the costs of two placements is a sum of three kernels: a linear one over the
//! families of features, its square (features that act together, such as a group on one node), and
//! one that falls with the distance (everything else). The weight of each family and the noise are
//! unknown: a fixed set of hyperparameters (*guesses*) is tried, and the predictions are averaged,
//! weighted by the marginal likelihood of the readings.

use super::features::{FAMILIES, Features};
use crate::random::Random;

/// How many guesses of the hyperparameters are tried, and how many of them are averaged.
const GUESSES: usize = 128;
const USED: usize = 16;

/// How much the parts of a process count; the constant part counts 1.
#[derive(Debug, Clone, Copy)]
struct Guess {
    families: [f64; FAMILIES],
    /// The square of the families' sum counts as much.
    square: f64,
    rest: f64,
    /// Distances are divided by this.
    reach: f64,
    noise: f64,
}

/// A guess of the hyperparameters, and the posterior that follows from the readings under it.
#[derive(Debug)]
struct Fit {
    guess: Guess,
    /// How much it counts among those used.
    weight: f64,
    /// The readings' covariance as a product of a lower triangle with itself.
    triangle: Vec<f64>,
    /// The readings, each less what the constant explains, times the inverse covariance.
    pull: Vec<f64>,
    /// The variance of one unit.
    scale: f64,
}

/// What the model expects of one candidate, under each guess.
#[derive(Debug, Clone)]
pub(crate) struct Forecast {
    pub(crate) under: Vec<Under>,
}

/// What one guess expects of a candidate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Under {
    /// How much the guess counts.
    weight: f64,
    /// The cost, in the unit of the values.
    pub(crate) mean: f64,
    /// Of the doubt about the cost.
    variance: f64,
    /// Of a reading's noise.
    noise: f64,
}

/// The best two of the placements that were run, by what one guess expects of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaders {
    /// Which is the best.
    best: usize,
    first: f64,
    /// Infinite where there is only one.
    second: f64,
}

impl Leaders {
    /// Of the candidates' numbers and means.
    pub(crate) fn new(means: impl Iterator<Item = (usize, f64)>) -> Leaders {
        let none = Leaders {
            best: usize::MAX,
            first: f64::INFINITY,
            second: f64::INFINITY,
        };
        means.fold(none, |leaders, (at, mean)| {
            if mean < leaders.first {
                Leaders {
                    best: at,
                    first: mean,
                    second: leaders.first,
                }
            } else {
                Leaders {
                    second: leaders.second.min(mean),
                    ..leaders
                }
            }
        })
    }
}

impl Forecast {
    pub(crate) fn mean(&self) -> f64 {
        self.under
            .iter()
            .map(|under| under.weight * under.mean)
            .sum()
    }

    pub(crate) fn deviation(&self) -> f64 {
        let centre = self.mean();
        let second = self
            .under
            .iter()
            .map(|under| under.weight * (under.variance + (under.mean - centre).powi(2)));
        second.sum::<f64>().sqrt()
    }

    /// What a reading of candidate `at` is expected to gain, by changing which placement is taken to be
    /// the best (the knowledge gradient, as far as it changes what is thought of this candidate): a
    /// new one may fall below the best, and another reading of the best may put it behind the second.
    /// `leaders` has those of each guess.
    pub(crate) fn improvement(&self, at: usize, leaders: &[Leaders]) -> f64 {
        let gain = |under: &Under, leaders: &Leaders| {
            let rival = if leaders.best == at {
                leaders.second
            } else {
                leaders.first
            };
            if rival.is_infinite() {
                return 0.0;
            }
            // By how much a reading will change the mean.
            let total = (under.variance + under.noise).max(f64::MIN_POSITIVE);
            let change = under.variance / total.sqrt();
            under.weight * falls_below((under.mean - rival).abs(), change, 0.0)
        };
        let each = self.under.iter().zip(leaders);
        each.map(|(under, leaders)| gain(under, leaders)).sum()
    }
}

/// The expected shortfall of a normal variable below a bound.
fn falls_below(mean: f64, deviation: f64, bound: f64) -> f64 {
    if deviation < 1e-12 {
        return (bound - mean).max(0.0);
    }
    let z = (bound - mean) / deviation;
    let density = (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt();
    deviation * (z * below(z) + density)
}

/// The standard normal distribution function, to about 1e-4: enough to rank candidates.
fn below(z: f64) -> f64 {
    (1.0 + (0.797_884_560_8 * (z + 0.044_715 * z * z * z)).tanh()) / 2.0
}

/// Inner products of one placement's features with those of each that was read, by family;
/// and the squared lengths.
#[derive(Debug, Clone, Default)]
pub(crate) struct Products {
    /// `FAMILIES` numbers per reading.
    with: Vec<f64>,
    own: f64,
}

impl Products {
    pub(crate) fn new(features: &Features) -> Products {
        Products {
            with: Vec::new(),
            own: features.iter().map(|family| dot(family, family)).sum(),
        }
    }

    /// Adds the products with the features of the next reading.
    pub(crate) fn extend(&mut self, own: &Features, read: &Features) {
        let products = own.iter().zip(read).map(|(own, read)| dot(own, read));
        self.with.extend(products);
    }

    /// The covariance with a reading of squared length `other`.
    fn covariance(&self, guess: &Guess, reading: usize, other: f64) -> f64 {
        let with = &self.with[reading * FAMILIES..][..FAMILIES];
        let linear: f64 = with
            .iter()
            .zip(&guess.families)
            .map(|(product, weight)| product * weight)
            .sum();
        let square = (self.own + other - 2.0 * with.iter().sum::<f64>()).max(0.0);
        1.0 + linear + guess.square * linear * linear + guess.rest * (-square / guess.reach).exp()
    }

    /// The variance of the placement itself.
    fn variance(&self, guess: &Guess, lengths: &[f64; FAMILIES]) -> f64 {
        let linear: f64 = lengths
            .iter()
            .zip(&guess.families)
            .map(|(length, weight)| length * weight)
            .sum();
        1.0 + linear + guess.square * linear * linear + guess.rest
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Squared lengths by family.
pub(crate) fn lengths(features: &Features) -> [f64; FAMILIES] {
    let mut lengths = [0.0; FAMILIES];
    for (length, family) in lengths.iter_mut().zip(features) {
        *length = dot(family, family);
    }
    lengths
}

/// The guesses.
#[derive(Debug)]
pub(crate) struct Model {
    guesses: Vec<Guess>,
}

/// The guesses that count, after some readings.
#[derive(Debug)]
pub(crate) struct Fitted {
    fits: Vec<Fit>,
    /// Squared lengths of the readings' features.
    lengths: Vec<f64>,
}

impl Model {
    pub(crate) fn new() -> Model {
        let mut random = Random::new(0x5ea);
        let mut pick = |from: &[f64]| from[random.index(from.len())];
        let guess = |_| {
            // Most families do not matter, but which?
            let mut families = [0.0; FAMILIES];
            for weight in &mut families {
                *weight = pick(&[0.01, 0.01, 0.05, 0.5, 1.5]);
            }
            Guess {
                families,
                reach: pick(&[4.0, 12.0, 40.0]),
                rest: pick(&[0.02, 0.1, 0.4]),
                square: pick(&[0.0, 0.06, 0.3]),
                noise: pick(&[0.0005, 0.005, 0.05, 0.2, 0.6]),
            }
        };
        Model {
            guesses: (0..GUESSES).map(guess).collect(),
        }
    }

    /// What follows from readings: `products[i]` are those of reading `i`, `values` standardised.
    pub(crate) fn fit(&self, products: &[&Products], values: &[f64]) -> Fitted {
        let lengths: Vec<f64> = products.iter().map(|products| products.own).collect();
        let fits = self
            .guesses
            .iter()
            .filter_map(|guess| fit(guess, products, &lengths, values));
        let mut fits: Vec<(f64, Fit)> = fits.collect();
        fits.sort_by(|a, b| b.0.total_cmp(&a.0));
        fits.truncate(USED);
        let best = fits.first().map_or(0.0, |fit| fit.0);
        let total: f64 = fits
            .iter()
            .map(|(evidence, _)| (evidence - best).exp())
            .sum();
        let weigh = |(evidence, mut fit): (f64, Fit)| {
            fit.weight = (evidence - best).exp() / total;
            fit
        };
        Fitted {
            fits: fits.into_iter().map(weigh).collect(),
            lengths,
        }
    }
}

/// One guess, with the logarithm of how likely it makes the readings.
fn fit(
    guess: &Guess,
    products: &[&Products],
    lengths: &[f64],
    values: &[f64],
) -> Option<(f64, Fit)> {
    let count = values.len();
    let mut triangle = vec![0.0; count * count];
    for row in 0..count {
        for column in 0..=row {
            let noise = if row == column { guess.noise } else { 0.0 };
            // A reading's products are known with those before it.
            triangle[row * count + column] =
                products[row].covariance(guess, column, lengths[column]) + noise;
        }
    }
    decompose(&mut triangle, count)?;
    let half = forward(&triangle, count, values);
    let pull = backward(&triangle, count, &half);
    // The unit is the most likely one, held near 1 as long as there is little to tell it from.
    let scale = (half.iter().map(|value| value * value).sum::<f64>() + 3.0) / (count as f64 + 3.0);
    let volume: f64 = (0..count).map(|at| triangle[at * count + at].ln()).sum();
    let evidence = -(count as f64 + 3.0) / 2.0 * scale.ln() - volume;
    let fit = Fit {
        guess: *guess,
        weight: 0.0,
        triangle,
        pull,
        scale,
    };
    Some((evidence, fit))
}

impl Fitted {
    /// What is expected of a candidate.
    pub(crate) fn forecast(&self, products: &Products, own: &[f64; FAMILIES]) -> Forecast {
        let count = self.lengths.len();
        let under = |fit: &Fit| {
            let guess = &fit.guess;
            let with = (0..count).map(|at| products.covariance(guess, at, self.lengths[at]));
            let with: Vec<f64> = with.collect();
            let mean = dot(&with, &fit.pull);
            let half = forward(&fit.triangle, count, &with);
            let variance = products.variance(guess, own) - dot(&half, &half);
            Under {
                weight: fit.weight,
                mean,
                variance: variance.max(0.0) * fit.scale,
                noise: guess.noise * fit.scale,
            }
        };
        Forecast {
            under: self.fits.iter().map(under).collect(),
        }
    }

    /// The deviation of the noise, in the unit of the values.
    pub(crate) fn noise(&self) -> f64 {
        let each = self
            .fits
            .iter()
            .map(|fit| fit.weight * fit.guess.noise * fit.scale);
        each.sum::<f64>().sqrt()
    }
}

/// Turns the lower half of a positive definite matrix into its triangle (Cholesky).
fn decompose(matrix: &mut [f64], size: usize) -> Option<()> {
    for row in 0..size {
        for column in 0..=row {
            let (a, b) = (
                &matrix[row * size..][..column],
                &matrix[column * size..][..column],
            );
            let rest = matrix[row * size + column] - dot(a, b);
            matrix[row * size + column] = if row == column {
                (rest > 1e-12).then(|| rest.sqrt())?
            } else {
                rest / matrix[column * size + column]
            };
        }
    }
    Some(())
}

/// Solves `triangle x = values`.
fn forward(triangle: &[f64], size: usize, values: &[f64]) -> Vec<f64> {
    let mut solved = Vec::with_capacity(size);
    for row in 0..size {
        let known = dot(&triangle[row * size..][..row], &solved);
        solved.push((values[row] - known) / triangle[row * size + row]);
    }
    solved
}

/// Solves `triangle transposed x = values`.
fn backward(triangle: &[f64], size: usize, values: &[f64]) -> Vec<f64> {
    let mut solved = values.to_vec();
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size)
            .map(|below| triangle[below * size + row] * solved[below])
            .sum();
        solved[row] = (solved[row] - known) / triangle[row * size + row];
    }
    solved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_is_solved() {
        let (a, size) = ([4.0, 2.0, 0.4, 2.0, 3.0, 0.1, 0.4, 0.1, 1.0], 3);
        let mut triangle = a.to_vec();
        decompose(&mut triangle, size).unwrap();
        let solved = backward(&triangle, size, &forward(&triangle, size, &[1.0, 2.0, 3.0]));
        for (row, value) in [1.0, 2.0, 3.0].iter().enumerate() {
            assert!((dot(&a[row * size..][..size], &solved) - value).abs() < 1e-12);
        }
        assert_eq!(decompose(&mut [1.0, 2.0, 2.0, 1.0], 2), None);
    }

    #[test]
    fn shortfalls() {
        // Of a standard normal variable below 0: its density there.
        assert!((falls_below(0.0, 1.0, 0.0) - 0.398_942).abs() < 1e-4);
        assert!(falls_below(5.0, 1.0, 0.0) < 1e-4);
        assert!((falls_below(-5.0, 1.0, 0.0) - 5.0).abs() < 1e-3);
        assert_eq!(falls_below(1.0, 0.0, 3.0), 2.0);
    }

    #[test]
    fn a_reading_gains_where_it_may_change_which_is_best() {
        let forecast = |mean: f64, variance: f64, noise: f64| Forecast {
            under: vec![Under {
                weight: 1.0,
                mean,
                variance,
                noise,
            }],
        };
        let leaders = [Leaders::new([(0, 0.0), (1, 5.0), (2, 0.1)].into_iter())];
        // The best, which a close second may turn out to beat; not if nothing is in doubt.
        assert!(forecast(0.0, 0.1, 0.2).improvement(0, &leaders) > 0.01);
        assert!(forecast(0.0, 0.0, 0.0).improvement(0, &leaders) < 1e-9);
        let far = [Leaders::new([(1, 5.0), (0, 0.0)].into_iter())];
        assert!(forecast(0.0, 0.1, 0.2).improvement(0, &far) < 1e-9);
        // A new one: the more the more is unknown of it, the less the more noise hides.
        let new = |variance, noise| forecast(1.0, variance, noise).improvement(7, &leaders);
        assert!(new(1.0, 0.0) > new(0.5, 0.0) && new(1.0, 0.0) > new(1.0, 1.0));
        assert!(new(1.0, 1.0) > 0.0);
        let only = [Leaders::new([(0, 0.0)].into_iter())];
        assert!(forecast(0.0, 1.0, 1.0).improvement(0, &only) < 1e-9);
    }
}
