//! Functions of the places of rows in their partitions.

use crate::operators::window::shape::Shape;
use crate::vector::value::{Kind, Type, Values, Vector};

/// Whole numbers as type `ty` represents them.
pub(super) fn whole(numbers: Vec<i64>, ty: &Type) -> Vector {
    Vector::new(match ty.kind {
        Kind::Wide => Values::Wide(numbers.into_iter().map(i128::from).collect()),
        _ => Values::Int(numbers),
    })
}

/// `row_number`.
pub(super) fn row_numbers(shape: &Shape) -> Vec<i64> {
    let each = shape.partitions();
    each.flat_map(|partition| 1..=partition.rows.len() as i64)
        .collect()
}

/// `rank`.
pub(super) fn ranks(shape: &Shape) -> Vec<i64> {
    let mut out = Vec::with_capacity(shape.rows);
    for partition in shape.partitions() {
        for group in partition.groups() {
            let rank = (group.start - partition.rows.start + 1) as i64;
            out.resize(group.end, rank);
        }
    }
    out
}

/// `dense_rank`.
pub(super) fn dense_ranks(shape: &Shape) -> Vec<i64> {
    let mut out = Vec::with_capacity(shape.rows);
    for partition in shape.partitions() {
        for (rank, group) in (1..).zip(partition.groups()) {
            out.resize(group.end, rank);
        }
    }
    out
}

/// `percent_rank`.
pub(super) fn percent_ranks(shape: &Shape) -> Vector {
    let mut out = Vec::with_capacity(shape.rows);
    for partition in shape.partitions() {
        let others = (partition.rows.len() - 1).max(1) as f64;
        for group in partition.groups() {
            let before = (group.start - partition.rows.start) as f64;
            out.resize(group.end, before / others);
        }
    }
    Vector::new(Values::Float(out))
}

/// `cume_dist`.
pub(super) fn cume_dists(shape: &Shape) -> Vector {
    let mut out = Vec::with_capacity(shape.rows);
    for partition in shape.partitions() {
        let all = partition.rows.len() as f64;
        for group in partition.groups() {
            let until = (group.end - partition.rows.start) as f64;
            out.resize(group.end, until / all);
        }
    }
    Vector::new(Values::Float(out))
}

/// The bucket of the row `number` (from 1) of `rows`.
pub(super) fn ntile(number: u64, rows: u64, buckets: u64) -> u64 {
    let (size, more) = (rows / buckets.max(1), rows % buckets.max(1));
    let (before, larger) = (number.saturating_sub(1), more * (size + 1));
    if before < larger {
        before / (size + 1) + 1
    } else {
        more + (before - larger) / size.max(1) + 1
    }
}

/// `ntile`: the first buckets have a row more where the rows cannot be divided evenly.
pub(super) fn ntiles(shape: &Shape, buckets: u64) -> Vec<i64> {
    let mut out = Vec::with_capacity(shape.rows);
    for partition in shape.partitions() {
        let rows = partition.rows.len() as u64;
        let (size, more) = (rows / buckets.max(1), rows % buckets.max(1));
        let mut end = partition.rows.start;
        for bucket in 1..=buckets {
            let own = size + u64::from(bucket <= more);
            if own == 0 {
                break;
            }
            end += own as usize;
            out.resize(end, bucket as i64);
        }
    }
    out
}
