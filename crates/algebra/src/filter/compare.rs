//! Comparisons of vectors with vectors and with constants.

use crate::fill;
use crate::level::dispatched;
use crate::total::Total;

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

impl Op {
    /// Its sign in SQL.
    pub fn sign(self) -> &'static str {
        match self {
            Op::Eq => "=",
            Op::Ne => "<>",
            Op::Lt => "<",
            Op::Le => "<=",
            Op::Gt => ">",
            Op::Ge => ">=",
        }
    }

    /// The comparison with its sides exchanged: `a op b` is `b op.flipped() a`.
    pub fn flipped(self) -> Op {
        match self {
            Op::Eq | Op::Ne => self,
            Op::Lt => Op::Gt,
            Op::Le => Op::Ge,
            Op::Gt => Op::Lt,
            Op::Ge => Op::Le,
        }
    }

    /// The comparison that holds where this does not.
    pub fn negated(self) -> Op {
        match self {
            Op::Eq => Op::Ne,
            Op::Ne => Op::Eq,
            Op::Lt => Op::Ge,
            Op::Le => Op::Gt,
            Op::Gt => Op::Le,
            Op::Ge => Op::Lt,
        }
    }
}

#[inline(always)]
fn both<T: Total>(op: Op, a: &[T], b: &[T], out: &mut Vec<bool>) {
    match op {
        Op::Eq => fill::zip(a, b, out, |a, b| a.one().key() == b.one().key()),
        Op::Ne => fill::zip(a, b, out, |a, b| a.one().key() != b.one().key()),
        Op::Lt => fill::zip(a, b, out, |a, b| a.one().key() < b.one().key()),
        Op::Le => fill::zip(a, b, out, |a, b| a.one().key() <= b.one().key()),
        Op::Gt => fill::zip(a, b, out, |a, b| a.one().key() > b.one().key()),
        Op::Ge => fill::zip(a, b, out, |a, b| a.one().key() >= b.one().key()),
    }
}

#[inline(always)]
fn constant<T: Total>(op: Op, a: &[T], b: T, out: &mut Vec<bool>) {
    let b = b.one().key();
    match op {
        Op::Eq => fill::map(a, out, |a| a.one().key() == b),
        Op::Ne => fill::map(a, out, |a| a.one().key() != b),
        Op::Lt => fill::map(a, out, |a| a.one().key() < b),
        Op::Le => fill::map(a, out, |a| a.one().key() <= b),
        Op::Gt => fill::map(a, out, |a| a.one().key() > b),
        Op::Ge => fill::map(a, out, |a| a.one().key() >= b),
    }
}

dispatched! {
    /// `out[i] = a[i] op b[i]`.
    pub fn compare_i64(op: Op, a: &[i64], b: &[i64], out: &mut Vec<bool>) {
        both(op, a, b, out);
    }

    /// `out[i] = a[i] op b`.
    pub fn compare_i64_const(op: Op, a: &[i64], b: i64, out: &mut Vec<bool>) {
        constant(op, a, b, out);
    }

    /// `out[i] = a[i] op b[i]`.
    pub fn compare_i128(op: Op, a: &[i128], b: &[i128], out: &mut Vec<bool>) {
        both(op, a, b, out);
    }

    /// `out[i] = a[i] op b`.
    pub fn compare_i128_const(op: Op, a: &[i128], b: i128, out: &mut Vec<bool>) {
        constant(op, a, b, out);
    }

    /// `out[i] = a[i] op b[i]` in the order that SQL gives floats: a NaN, whatever its sign, equals itself and is
    /// greater than all numbers; zeros of both signs are equal.
    pub fn compare_f64(op: Op, a: &[f64], b: &[f64], out: &mut Vec<bool>) {
        both(op, a, b, out);
    }

    /// `out[i] = a[i] op b` in the order of [`compare_f64`].
    pub fn compare_f64_const(op: Op, a: &[f64], b: f64, out: &mut Vec<bool>) {
        constant(op, a, b, out);
    }

    /// `out[i] = a[i] op b[i]`, for codes of one dictionary.
    pub fn compare_u32(op: Op, a: &[u32], b: &[u32], out: &mut Vec<bool>) {
        both(op, a, b, out);
    }

    /// `out[i] = a[i] op b`: for a label, or with an order for labels of a sorted dictionary.
    pub fn compare_u32_const(op: Op, a: &[u32], b: u32, out: &mut Vec<bool>) {
        constant(op, a, b, out);
    }
}
