//! Quantiles, histograms and windows over cells that exist: on the plain model, and beside NumPy.

use std::collections::BTreeMap;

use array::{
    Aggregate, Attribute, Block, DataType, Dimension, Function, Plan, Region, Run, Scalar, Schema,
};

use crate::model::{Cells, column, wait};
use crate::numpy::{float, python};
use crate::plain::{Plain, folds};

impl Plain {
    fn values_of(&self, of: &str) -> impl Iterator<Item = (&Vec<u64>, Scalar)> {
        let number = self.attributes.iter().position(|name| name == of).unwrap();
        self.cells
            .iter()
            .map(move |(at, values)| (at, values[number]))
    }

    /// Folds of the cells that exist near each along a dimension.
    pub fn near(&self, along: usize, of: &str, before: usize, after: usize) -> Plain {
        let mut lines: BTreeMap<Vec<u64>, Vec<(Vec<u64>, Scalar)>> = BTreeMap::new();
        for (at, value) in self.values_of(of) {
            let mut line = at.clone();
            line.remove(along);
            lines.entry(line).or_default().push((at.clone(), value));
        }
        let mut cells = Cells::new();
        for line in lines.values_mut() {
            line.sort_by_key(|(at, _)| at[along]);
            for (number, (at, _)) in line.iter().enumerate() {
                let near = line
                    .iter()
                    .enumerate()
                    .filter(|(other, _)| *other + before >= number && *other <= number + after);
                let near: Vec<Scalar> = near.map(|(_, (_, value))| *value).collect();
                cells.insert(at.clone(), folds(&near));
            }
        }
        let names = ["n", "c", "s", "lo", "hi", "mean"].map(str::to_owned);
        Plain {
            dimensions: self.dimensions.clone(),
            attributes: names.to_vec(),
            cells,
        }
    }

    /// Quantiles for each group of cells, along a last dimension.
    pub fn quantiles(&self, kept: &[usize], of: &str, points: &[f64]) -> Plain {
        let mut groups: BTreeMap<Vec<u64>, Vec<Scalar>> = BTreeMap::new();
        if kept.is_empty() {
            groups.insert(Vec::new(), Vec::new());
        }
        for (at, value) in self.values_of(of) {
            let group = kept.iter().map(|&of| at[of]).collect();
            groups.entry(group).or_default().push(value);
        }
        let mut cells = Cells::new();
        for (group, values) in groups {
            let mut values: Vec<f64> = values.iter().filter_map(|of| of.to_f64()).collect();
            let nan = values.iter().any(|of| of.is_nan());
            values.sort_by(f64::total_cmp);
            for (number, point) in points.iter().enumerate() {
                let found = match values.len() {
                    _ if nan => Scalar::Float(f64::NAN),
                    0 => Scalar::Null,
                    count => {
                        let place = (count - 1) as f64 * point;
                        let (a, b) = (
                            values[place.floor() as usize],
                            values[place.ceil() as usize],
                        );
                        let share = place - place.floor();
                        Scalar::Float(if a == b {
                            a
                        } else {
                            a * (1.0 - share) + b * share
                        })
                    }
                };
                cells.insert([&group[..], &[number as u64]].concat(), vec![found]);
            }
        }
        let mut dimensions: Vec<_> = kept.iter().map(|&at| self.dimensions[at].clone()).collect();
        dimensions.push(("quantile".to_owned(), points.len() as u64));
        Plain {
            dimensions,
            attributes: vec![format!("quantile_{of}")],
            cells,
        }
    }

    /// How many values lie in each interval.
    pub fn histogram(&self, of: &str, bins: u64, (low, high): (f64, f64)) -> Plain {
        let edge = |at: u64| low + (high - low) / bins as f64 * at as f64;
        let cells = (0..bins).map(|bin| {
            let (from, to) = (
                edge(bin),
                if bin + 1 == bins { high } else { edge(bin + 1) },
            );
            let inside = self.values_of(of).filter_map(|(_, value)| value.to_f64());
            let last = bin + 1 == bins;
            let count = inside
                .filter(|&of| of >= from && (of < to || last && of == to))
                .count();
            let count = Scalar::Int(count as i128);
            (
                vec![bin],
                vec![Scalar::Float(from), Scalar::Float(to), count],
            )
        });
        Plain {
            dimensions: vec![("bin".to_owned(), bins)],
            attributes: ["low", "high", "count"].map(str::to_owned).to_vec(),
            cells: cells.collect(),
        }
    }
}

/// Answers lines of an operation, its numbers, and the values of an array of one or two dimensions.
const SCRIPT: &str = r#"
import sys, numpy as np
np.seterr(all="ignore")
def show(values):
    print(" ".join("nan" if np.isnan(v) else float(v).hex() for v in np.asarray(values, dtype="float64").ravel()))
for line in sys.stdin:
    op, kind, numbers, shape, values = line.rstrip("\n").split(";")
    numbers = [float(n) for n in numbers.split()]
    shape = [int(n) for n in shape.split()]
    values = [float(v) for v in values.split()]
    kind = {"float": "float32", "double": "float64"}.get(kind, kind)
    a = np.array(values).astype(kind).reshape(shape)
    f = a.astype("float64")
    if op == "quantile":
        show(np.quantile(f, numbers))
    elif op == "quantile_by":
        # One row for each coordinate of the first dimension.
        show(np.quantile(f, numbers, axis=1).T)
    elif op == "histogram":
        counts, edges = np.histogram(f[~np.isnan(f)], bins=int(numbers[0]), range=(numbers[1], numbers[2]))
        show(np.stack([edges[:-1], edges[1:], counts]))
    elif op == "histogram_all":
        counts, edges = np.histogram(f[~np.isnan(f)], bins=int(numbers[0]))
        show(np.stack([edges[:-1], edges[1:], counts]))
    else:
        before, after = int(numbers[0]), int(numbers[1])
        sums = [[f[r, max(0, c - before):c + after + 1].sum() for c in range(shape[1])] for r in range(shape[0])]
        show(sums)
"#;

/// Numbers of one type, some of them NaN: that, their shape, they, and the plan that has them.
fn numbers(random: &mut fastrand::Rng) -> (DataType, [u64; 2], Vec<Scalar>, Plan) {
    let types = [
        DataType::F64,
        DataType::F32,
        DataType::I32,
        DataType::U8,
        DataType::I64,
    ];
    let of = types[random.usize(0..types.len())];
    let shape = [random.u64(1..5), random.u64(1..9)];
    let nan = random.u8(0..4) == 0;
    let values: Vec<Scalar> = (0..shape[0] * shape[1])
        .map(|_| match of {
            DataType::F64 | DataType::F32 if nan && random.u8(0..6) == 0 => Scalar::Float(f64::NAN),
            DataType::F64 | DataType::F32 => Scalar::Float(f64::from(random.i32(-30..30)) / 8.0),
            DataType::U8 => Scalar::Int(random.i128(0..9)),
            _ => Scalar::Int(random.i128(-20..20)),
        })
        .collect();
    let dimensions = shape.iter().enumerate();
    let dimensions =
        dimensions.map(|(at, &length)| Dimension::integer(&format!("d{at}"), 0, length).chunk(2));
    let schema = Schema::new(dimensions.collect(), vec![Attribute::new("v", of)]).unwrap();
    let block = Block::new(Region::of_shape(&shape), vec![Some(column(of, &values))]).unwrap();
    let plan = Plan::of_block(&schema, block).unwrap();
    (of, shape, values, plan)
}

/// A case: the line for NumPy, and our plan; the values of all attributes, one after the other, are compared.
fn case(random: &mut fastrand::Rng) -> (String, Plan) {
    let (of, shape, values, plan) = numbers(random);
    let all = [
        ["0"].as_slice(),
        &["0.1", "0.5", "0.9"],
        &["0.25", "0.333333", "0.75", "1"],
    ];
    let points = all[random.usize(0..all.len())];
    let decimals: Vec<_> = points.iter().map(|of| of.parse().unwrap()).collect();
    let (bins, low) = (random.u64(1..12), f64::from(random.i32(-20..5)) / 4.0);
    let high = low + f64::from(random.i32(0..40)) / 4.0;
    let (before, after) = (random.u64(0..4), random.u64(0..4));
    let sum = [Aggregate::new(Function::Sum, "v")];
    let (op, numbers, plan) = match random.u8(0..5) {
        0 => (
            "quantile",
            points.join(" "),
            plan.quantile("v", &decimals, &[]),
        ),
        1 => (
            "quantile_by",
            points.join(" "),
            plan.quantile("v", &decimals, &["d0"]),
        ),
        2 => (
            "histogram",
            format!("{bins} {low} {high}"),
            plan.histogram("v", bins, Some((low, high))),
        ),
        3 => (
            "histogram_all",
            bins.to_string(),
            plan.histogram("v", bins, None),
        ),
        _ => (
            "window",
            format!("{before} {after}"),
            plan.variable_window("d1", (before, after), &sum),
        ),
    };
    let texts: Vec<String> = values
        .iter()
        .map(|of| {
            of.to_f64()
                .map_or("nan".to_owned(), |of| of.to_string().to_lowercase())
        })
        .collect();
    let line = format!(
        "{op};{of};{numbers};{} {};{}",
        shape[0],
        shape[1],
        texts.join(" ")
    );
    (line, plan)
}

#[test]
fn values_are_those_of_numpy() {
    let mut random = fastrand::Rng::with_seed(23);
    let cases: Vec<_> = (0..1200).map(|_| case(&mut random)).collect();
    let lines: String = cases.iter().map(|of| format!("{}\n", of.0)).collect();
    let Some(answer) = python("numpy", SCRIPT, &lines) else {
        return;
    };
    assert_eq!(answer.lines().count(), cases.len());
    let mut compared = 0;
    for ((question, plan), line) in cases.iter().zip(answer.lines()) {
        let result = wait(plan.run(&Run::new())).unwrap_or_else(|e| panic!("{question}: {e}"));
        let block = result.to_block().unwrap();
        let columns = block.columns().iter().flatten();
        let found = columns.flat_map(|of| (0..block.cells()).map(|at| of.get(at)));
        let found: Vec<f64> = found.map(|of| of.to_f64().unwrap_or(f64::NAN)).collect();
        let expected: Vec<f64> = line.split(' ').map(float).collect();
        assert_eq!(found.len(), expected.len(), "{question}");
        for (found, expected) in found.iter().zip(&expected) {
            let near = (found - expected).abs() <= 1e-12 * expected.abs().max(1.0);
            assert!(
                near || found.is_nan() && expected.is_nan(),
                "{question}: {found} is not {expected}"
            );
            compared += 1;
        }
    }
    assert!(compared > 5000, "{compared} values were compared");
}

#[test]
fn what_does_not_fit_is_refused() {
    let schema = Schema::new(
        vec![Dimension::integer("x", 0, 3)],
        vec![Attribute::new("v", DataType::F64)],
    );
    let schema = schema.unwrap();
    let plan = || Plan::build(&schema, array::expr::name("x"));
    let decimals = |of: &[&str]| -> Vec<_> { of.iter().map(|of| of.parse().unwrap()).collect() };
    for (plan, message) in [
        (
            plan().quantile("w", &decimals(&["0.5"]), &[]),
            "no attribute 'w'",
        ),
        (
            plan().quantile("v", &decimals(&["1.5"]), &[]),
            "from 0 to 1",
        ),
        (plan().quantile("v", &[], &[]), "from 0 to 1"),
        (
            plan().quantile("v", &decimals(&["0.5", "0.5"]), &[]),
            "not repeat",
        ),
        (
            plan().quantile("v", &decimals(&["0.5"]), &["x", "x"]),
            "given twice",
        ),
        (plan().histogram("v", 0, None), "from 1 to"),
        (
            plan().histogram("v", 3, Some((0.0, f64::NAN))),
            "no intervals",
        ),
        (
            plan().variable_window("y", (1, 1), &[Aggregate::count()]),
            "no dimension 'y'",
        ),
        (
            plan().variable_window("x", (1, 1), &[]),
            "at least one aggregate",
        ),
    ] {
        let error = plan.schema().unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    // Only known once the values are.
    let infinite = plan().apply(&[("w", array::expr::name("v") / array::expr::value(0.0))]);
    let error = wait(infinite.histogram("w", 3, None).run(&Run::new())).unwrap_err();
    assert!(error.to_string().contains("give other ends"), "{error}");
}
