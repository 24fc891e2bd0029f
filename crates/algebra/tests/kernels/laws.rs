//! The laws of the algebra, against dense matrices.

use super::*;
use algebra::{dot, filter, fold, krao};

/// A dense matrix of integers, row by row.
#[derive(Clone, Debug, PartialEq)]
struct Dense {
    columns: usize,
    cells: Vec<Vec<i64>>,
}

impl Dense {
    /// Of a bitmap matrix: row `codes[column]` has the 1 of each column, or none has.
    fn bitmap(codes: &[u32], labels: usize) -> Dense {
        let row = |label| codes.iter().map(|c| i64::from(*c == label)).collect();
        Dense {
            columns: codes.len(),
            cells: (0..labels as u32).map(row).collect(),
        }
    }

    fn row(values: impl IntoIterator<Item = i64>) -> Dense {
        let cells = vec![values.into_iter().collect::<Vec<_>>()];
        Dense {
            columns: cells[0].len(),
            cells,
        }
    }

    fn product(&self, other: &Dense) -> Dense {
        assert_eq!(self.columns, other.cells.len());
        let cell = |row: &Vec<i64>, column| {
            row.iter()
                .zip(&other.cells)
                .map(|(a, b)| a * b[column])
                .sum()
        };
        let row = |row| (0..other.columns).map(|column| cell(row, column)).collect();
        Dense {
            columns: other.columns,
            cells: self.cells.iter().map(row).collect(),
        }
    }

    /// Khatri-Rao: the products of all pairs of rows.
    fn krao(&self, other: &Dense) -> Dense {
        let pairs = self
            .cells
            .iter()
            .flat_map(|a| other.cells.iter().map(move |b| (a, b)));
        let cells = pairs
            .map(|(a, b)| a.iter().zip(b).map(|(a, b)| a * b).collect())
            .collect();
        Dense {
            columns: self.columns,
            cells,
        }
    }

    fn hadamard(&self, other: &Dense) -> Dense {
        let row = |(a, b): (&Vec<i64>, &Vec<i64>)| a.iter().zip(b).map(|(a, b)| a * b).collect();
        Dense {
            columns: self.columns,
            cells: self.cells.iter().zip(&other.cells).map(row).collect(),
        }
    }

    fn transposed(&self) -> Dense {
        let column = |c| self.cells.iter().map(|row| row[c]).collect();
        Dense {
            columns: self.cells.len(),
            cells: (0..self.columns).map(column).collect(),
        }
    }
}

/// Labels of three dimensions; each composes with the next.
const LABELS: [usize; 3] = [3, 5, 4];

/// A matrix of `LABELS[0] x LABELS[1]`, one of `LABELS[1] x LABELS[2]`, and columns of `n` rows.
#[derive(Clone, Debug)]
struct Matrices {
    outer: Vec<u32>,
    inner: Vec<u32>,
    codes: [Vec<u32>; 3],
    keep: [Vec<bool>; 2],
    measure: Vec<i64>,
}

fn matrices() -> impl Strategy<Value = Matrices> {
    let codes = |labels: usize, n: usize| vec(0..labels as u32, n);
    (
        codes(LABELS[0], LABELS[1]),
        codes(LABELS[1], LABELS[2]),
        0usize..70,
    )
        .prop_flat_map(move |(outer, inner, n)| {
            let columns = (
                codes(LABELS[0], n),
                codes(LABELS[1], n),
                codes(LABELS[2], n),
            );
            let keep = || vec(any::<bool>(), n);
            (columns, keep(), keep(), vec(-9i64..9, n)).prop_map(
                move |((a, b, c), k, l, measure)| Matrices {
                    outer: outer.clone(),
                    inner: inner.clone(),
                    codes: [a, b, c],
                    keep: [k, l],
                    measure,
                },
            )
        })
}

/// dot: composition of a bitmap matrix with row codes.
fn compose(labels: &[u32], codes: &[u32]) -> Vec<u32> {
    let mut out = vec![];
    filter::gather(labels, codes, &mut out);
    out
}

/// krao: a dense index.
fn pair_up(a: &[u32], b: &[u32], labels: usize) -> Vec<u32> {
    let (mut index, mut out) = (vec![], vec![]);
    krao::start(a, &mut index);
    krao::combine(&mut index, b, labels as u64);
    krao::numbers(&index, &mut out);
    out
}

/// hadamard: of selections.
fn both(a: &[bool], b: &[bool]) -> Vec<bool> {
    let (mut out, mut valid) = (vec![], vec![]);
    assert!(!filter::and(a, None, b, None, &mut out, &mut valid));
    out
}

fn bits(keep: &[bool]) -> Dense {
    Dense::row(keep.iter().map(|k| i64::from(*k)))
}

properties! {
    #[test]
    fn dot_is_the_product_and_associative(m in matrices()) {
        let [_, _, c] = &m.codes;
        let (a, b) = (Dense::bitmap(&m.outer, LABELS[0]), Dense::bitmap(&m.inner, LABELS[1]));
        let rows = Dense::bitmap(c, LABELS[2]);
        let left = compose(&compose(&m.outer, &m.inner), c);
        let right = compose(&m.outer, &compose(&m.inner, c));
        prop_assert_eq!(&left, &right);
        prop_assert_eq!(Dense::bitmap(&left, LABELS[0]), a.product(&b).product(&rows));
    }

    /// A look-up by key is a dot with the transposed key column, where each key is there once.
    #[test]
    fn dot_by_key_is_a_product(m in matrices(), order in Just((0i64..12).collect::<Vec<_>>()).prop_shuffle(), probe in vec(0i64..20, 0..40)) {
        let _ = m;
        let keys = &order[..8];
        let mut table = dot::Direct::new(0, 11);
        prop_assert!(!table.set(keys, &(0..8).collect::<Vec<_>>()));
        let mut rows = vec![];
        table.find(&probe, None, &mut rows);
        let code = |keys: &[i64]| keys.iter().map(|k| *k as u32).collect::<Vec<_>>();
        let parent = Dense::bitmap(&code(keys), 20);
        let child = Dense::bitmap(&code(&probe), 20);
        prop_assert_eq!(Dense::bitmap(&rows, 8), parent.transposed().product(&child));
    }

    #[test]
    fn krao_is_khatri_rao_and_associative(m in matrices()) {
        let [a, b, c] = &m.codes;
        let dense: Vec<Dense> = (0..3).map(|i| Dense::bitmap(&m.codes[i], LABELS[i])).collect();
        let left = pair_up(&pair_up(a, b, LABELS[1]), c, LABELS[2]);
        let right = pair_up(a, &pair_up(b, c, LABELS[2]), LABELS[1] * LABELS[2]);
        prop_assert_eq!(&left, &right);
        let all = LABELS.iter().product();
        prop_assert_eq!(Dense::bitmap(&left, all), dense[0].krao(&dense[1]).krao(&dense[2]));
    }

    /// (A krao B) . C = (A . C) krao (B . C): attributes may be paired before a look-up or after.
    #[test]
    fn dot_distributes_over_krao(m in matrices(), other in vec(0u32..6, LABELS[1])) {
        let (a, b, codes) = (&m.outer, &other, &m.codes[1]);
        let before = compose(&pair_up(a, b, 6), codes);
        let after = pair_up(&compose(a, codes), &compose(b, codes), 6);
        prop_assert_eq!(&before, &after);
        let rows = Dense::bitmap(codes, LABELS[1]);
        let dense = Dense::bitmap(a, LABELS[0]).krao(&Dense::bitmap(b, 6)).product(&rows);
        prop_assert_eq!(Dense::bitmap(&before, LABELS[0] * 6), dense);
    }

    /// Predicates on labels commute with composition, and with "and".
    #[test]
    fn filter_and_hadamard_compose(m in matrices(), one in vec(any::<bool>(), LABELS[1]), two in vec(any::<bool>(), LABELS[1])) {
        let codes = &m.codes[1];
        let apply = |hits: &[bool]| {
            let mut out = vec![];
            filter::labels(codes, hits, &mut out);
            out
        };
        prop_assert_eq!(apply(&both(&one, &two)), both(&apply(&one), &apply(&two)));
        let rows = Dense::bitmap(codes, LABELS[1]);
        prop_assert_eq!(bits(&apply(&one)), bits(&one).product(&rows));
        let [k, l] = &m.keep;
        prop_assert_eq!(bits(&both(k, l)), bits(k).hadamard(&bits(l)));
        prop_assert_eq!(both(k, l), both(l, k));
        prop_assert_eq!(both(&both(k, l), &apply(&one)), both(k, &both(l, &apply(&one))));
    }

    /// A sum per label is a product with the transposed vector; selections may be taken into the
    /// vector or into the matrix.
    #[test]
    fn fold_is_a_product(m in matrices()) {
        let [a, b, _] = &m.codes;
        let groups = pair_up(a, b, LABELS[1]);
        let mut sums = vec![0i128; LABELS[0] * LABELS[1]];
        fold::sum_i64(Some(&groups), &m.measure, Some(&m.keep[0]), &mut sums);
        let index = Dense::bitmap(a, LABELS[0]).krao(&Dense::bitmap(b, LABELS[1]));
        let vector = bits(&m.keep[0]).hadamard(&Dense::row(m.measure.clone()));
        let dense = index.product(&vector.transposed());
        prop_assert_eq!(&sums, &dense.cells.iter().map(|r| i128::from(r[0])).collect::<Vec<_>>());

        // Rows that are left out first, then folded.
        let (mut rows, mut kept, mut values) = (vec![], groups.clone(), m.measure.clone());
        filter::positions(&m.keep[0], &mut rows);
        filter::compact(&mut kept, &rows);
        filter::compact(&mut values, &rows);
        let mut again = vec![0i128; sums.len()];
        fold::sum_i64(Some(&kept), &values, None, &mut again);
        prop_assert_eq!(again, sums);
    }
}
