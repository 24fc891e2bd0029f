//! The operators on the plain model: loops over a map of cells, one cell at a time.

use std::collections::BTreeMap;

use array::{Region, Scalar};

use crate::model::Cells;

/// An array: names and lengths of dimensions, names of attributes, and the cells that exist.
#[derive(Debug, Clone, PartialEq)]
pub struct Plain {
    pub dimensions: Vec<(String, u64)>,
    pub attributes: Vec<String>,
    pub cells: Cells,
}

impl Plain {
    pub fn shape(&self) -> Vec<u64> {
        self.dimensions.iter().map(|of| of.1).collect()
    }

    fn number(&self, name: &str) -> usize {
        self.attributes.iter().position(|of| of == name).unwrap()
    }

    fn map_cells(&self, f: impl Fn(&[u64], &[Scalar]) -> Option<(Vec<u64>, Vec<Scalar>)>) -> Cells {
        self.cells
            .iter()
            .filter_map(|(at, values)| f(at, values))
            .collect()
    }

    pub fn subarray(&self, region: &Region) -> Plain {
        let inside = |at: &[u64]| {
            at.iter()
                .zip(region.ranges())
                .all(|(at, (a, b))| a <= at && at < b)
        };
        let cells = self.map_cells(|at, values| {
            let moved = at
                .iter()
                .zip(region.ranges())
                .map(|(at, (a, _))| at.wrapping_sub(*a))
                .collect();
            inside(at).then(|| (moved, values.to_vec()))
        });
        let lengths = self.dimensions.iter().zip(region.shape());
        Plain {
            dimensions: lengths
                .map(|((name, _), length)| (name.clone(), length))
                .collect(),
            cells,
            ..self.clone()
        }
    }

    pub fn between(&self, region: &Region) -> Plain {
        let cells = self.map_cells(|at, values| {
            let inside = at
                .iter()
                .zip(region.ranges())
                .all(|(at, (a, b))| a <= at && at < b);
            inside.then(|| (at.to_vec(), values.to_vec()))
        });
        Plain {
            cells,
            ..self.clone()
        }
    }

    pub fn filter(&self, keep: impl Fn(&[u64], &[Scalar]) -> bool) -> Plain {
        let cells =
            self.map_cells(|at, values| keep(at, values).then(|| (at.to_vec(), values.to_vec())));
        Plain {
            cells,
            ..self.clone()
        }
    }

    pub fn reordered(&self, order: &[usize]) -> Plain {
        let cells = self.map_cells(|at, values| {
            Some((order.iter().map(|&of| at[of]).collect(), values.to_vec()))
        });
        Plain {
            dimensions: order
                .iter()
                .map(|&of| self.dimensions[of].clone())
                .collect(),
            cells,
            ..self.clone()
        }
    }

    /// Cells with one position, without that dimension.
    pub fn slice(&self, dimension: usize, position: u64) -> Plain {
        let cells = self.map_cells(|at, values| {
            let mut rest = at.to_vec();
            (rest.remove(dimension) == position).then(|| (rest, values.to_vec()))
        });
        let mut dimensions = self.dimensions.clone();
        dimensions.remove(dimension);
        Plain {
            dimensions,
            cells,
            ..self.clone()
        }
    }

    pub fn with_values(
        &self,
        names: &[String],
        f: impl Fn(&[u64], &[Scalar]) -> Vec<Scalar>,
    ) -> Plain {
        let cells = self.map_cells(|at, values| Some((at.to_vec(), f(at, values))));
        Plain {
            attributes: names.to_vec(),
            cells,
            ..self.clone()
        }
    }

    pub fn concat(&self, other: &Plain, along: usize) -> Plain {
        let mut both = self.clone();
        let border = self.dimensions[along].1;
        for (at, values) in &other.cells {
            let mut at = at.clone();
            at[along] += border;
            both.cells.insert(at, values.clone());
        }
        both.dimensions[along].1 += other.dimensions[along].1;
        both
    }

    /// count(*), and count, sum, min, max, avg of an attribute, for each group of cells.
    pub fn grouped(
        &self,
        dimensions: Vec<(String, u64)>,
        of: &str,
        group: impl Fn(&[u64]) -> Vec<Vec<u64>>,
    ) -> Plain {
        let number = self.number(of);
        let mut groups: BTreeMap<Vec<u64>, Vec<Scalar>> = BTreeMap::new();
        for (at, values) in &self.cells {
            for group in group(at) {
                groups.entry(group).or_default().push(values[number]);
            }
        }
        let cells = groups
            .into_iter()
            .map(|(at, values)| (at, folds(&values)))
            .collect();
        let names = ["n", "c", "s", "lo", "hi", "mean"].map(str::to_owned);
        Plain {
            dimensions,
            attributes: names.to_vec(),
            cells,
        }
    }
}

/// count(*), count, sum, min, max, avg.
pub fn folds(all: &[Scalar]) -> Vec<Scalar> {
    let some: Vec<Scalar> = all.iter().copied().filter(|of| !of.is_null()).collect();
    let floats: Vec<f64> = some.iter().filter_map(|of| of.to_f64()).collect();
    let count = |n: usize| Scalar::Int(n as i128);
    if some.is_empty() {
        return vec![
            count(all.len()),
            count(0),
            Scalar::Null,
            Scalar::Null,
            Scalar::Null,
            Scalar::Null,
        ];
    }
    let nan = floats.iter().any(|of| of.is_nan());
    let whole: Option<i128> = some.iter().try_fold(0, |sum, of| match of {
        Scalar::Int(value) => Some(sum + value),
        _ => None,
    });
    let sum = whole.map_or_else(|| Scalar::Float(floats.iter().sum()), Scalar::Int);
    let pick = |least: bool| {
        if nan {
            return Scalar::Float(f64::NAN);
        }
        let first = some[0];
        some.iter().fold(first, |best, &of| {
            let order = of.order(best).unwrap();
            if (least && order.is_lt()) || (!least && order.is_gt()) {
                of
            } else {
                best
            }
        })
    };
    let mean = sum.to_f64().unwrap() / some.len() as f64;
    vec![
        count(all.len()),
        count(some.len()),
        sum,
        pick(true),
        pick(false),
        Scalar::Float(mean),
    ]
}
