//! Runs of variants that take turns.

use report::Sample;
use serde::Serialize;

/// One run of one variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run<T> {
    /// The variant's position.
    pub variant: usize,
    /// From 0.
    pub round: usize,
    /// What it measured.
    pub result: T,
}

/// All runs of an experiment, in the order they were made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Record<T> {
    variants: Vec<String>,
    runs: Vec<Run<T>>,
}

impl<T> Record<T> {
    /// Runs every variant once per round. Each round starts with the next variant, so that none
    /// always follows the same one. The first failure ends it.
    ///
    /// # Errors
    ///
    /// Those of `run`, which is given a variant's position and the round.
    pub fn take<E>(
        variants: Vec<String>,
        rounds: usize,
        mut run: impl FnMut(usize, usize) -> Result<T, E>,
    ) -> Result<Record<T>, E> {
        let mut runs = Vec::with_capacity(variants.len() * rounds);
        for round in 0..rounds {
            for turn in 0..variants.len() {
                let variant = (turn + round) % variants.len();
                runs.push(Run {
                    variant,
                    round,
                    result: run(variant, round)?,
                });
            }
        }
        Ok(Record { variants, runs })
    }

    /// What was compared.
    pub fn variants(&self) -> &[String] {
        &self.variants
    }

    /// All runs.
    pub fn runs(&self) -> &[Run<T>] {
        &self.runs
    }

    /// One figure of every run of a variant, by round.
    pub fn sample(&self, variant: usize, figure: impl Fn(&T) -> f64) -> Sample {
        let own = self.runs.iter().filter(|run| run.variant == variant);
        own.map(|run| figure(&run.result)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_take_turns() {
        let names = vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let mut order = String::new();
        let record = Record::take(names, 3, |variant, round| {
            order.push(char::from(b'a' + variant as u8));
            Ok::<_, ()>((10 * round + variant) as f64)
        });
        assert_eq!(order, "abcbcacab");
        let record = record.unwrap();
        assert_eq!(record.sample(2, |value| *value).values(), [2.0, 12.0, 22.0]);
        let failed = Record::take(vec!["a".to_owned()], 5, |_, round| {
            if round < 2 { Ok(()) } else { Err(round) }
        });
        assert_eq!(failed, Err(2));
    }
}
