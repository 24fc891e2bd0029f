//! Three-valued logic: a mask of values and one of validity, given and produced.
//!
//! What a mask holds where its validity is false does not matter; what is produced holds false
//! there, so that it may be used as a selection without its validity.

use crate::fill;
use crate::level::dispatched;

/// Validity of all rows, for the kernels that take one: `None` if every row is valid.
type Valid<'a> = Option<&'a [bool]>;

dispatched! {
    /// `a AND b`: false where one side is false, else unknown where one is unknown.
    ///
    /// Gives whether unknowns are possible; if not, `out_valid` is left empty.
    pub fn and(
        a: &[bool], a_valid: Valid<'_>, b: &[bool], b_valid: Valid<'_>,
        out: &mut Vec<bool>, out_valid: &mut Vec<bool>,
    ) -> bool {
        out_valid.clear();
        match (a_valid, b_valid) {
            (None, None) => fill::zip(a, b, out, |a, b| a & b),
            (Some(known), None) => and_known(b, a, known, out, out_valid),
            (None, Some(known)) => and_known(a, b, known, out, out_valid),
            (Some(av), Some(bv)) => {
                fill::zip4(a, av, b, bv, out, |a, av, b, bv| a & av & b & bv);
                fill::zip4(a, av, b, bv, out_valid, |a, av, b, bv| {
                    (av & bv) | (av & !a) | (bv & !b)
                });
            }
        }
        a_valid.is_some() || b_valid.is_some()
    }

    /// `a OR b`: true where one side is true, else unknown where one is unknown.
    ///
    /// Gives whether unknowns are possible; if not, `out_valid` is left empty.
    pub fn or(
        a: &[bool], a_valid: Valid<'_>, b: &[bool], b_valid: Valid<'_>,
        out: &mut Vec<bool>, out_valid: &mut Vec<bool>,
    ) -> bool {
        out_valid.clear();
        match (a_valid, b_valid) {
            (None, None) => fill::zip(a, b, out, |a, b| a | b),
            (Some(known), None) => or_known(b, a, known, out, out_valid),
            (None, Some(known)) => or_known(a, b, known, out, out_valid),
            (Some(av), Some(bv)) => {
                fill::zip4(a, av, b, bv, out, |a, av, b, bv| (a & av) | (b & bv));
                fill::zip4(a, av, b, bv, out_valid, |a, av, b, bv| {
                    (av & bv) | (a & av) | (b & bv)
                });
            }
        }
        a_valid.is_some() || b_valid.is_some()
    }

    /// `NOT a`: unknown where `a` is.
    ///
    /// Gives whether unknowns are possible; if not, `out_valid` is left empty.
    pub fn not(
        a: &[bool], a_valid: Valid<'_>, out: &mut Vec<bool>, out_valid: &mut Vec<bool>,
    ) -> bool {
        out_valid.clear();
        match a_valid {
            None => fill::map(a, out, |a| !a),
            Some(av) => {
                fill::zip(a, av, out, |a, av| !a & av);
                fill::map(av, out_valid, |av| av);
            }
        }
        a_valid.is_some()
    }

    /// Where `a` is known to be true: what a selection keeps.
    pub fn definite(a: &[bool], a_valid: Valid<'_>, out: &mut Vec<bool>) {
        match a_valid {
            None => fill::map(a, out, |a| a),
            Some(av) => definite_into(a, av, out),
        }
    }

    /// The number of rows that are kept.
    pub fn count(keep: &[bool]) -> usize {
        // Sums of bytes cannot overflow in 255 rows.
        keep.chunks(255).map(|rows| rows.iter().fold(0u8, |sum, k| sum + u8::from(*k)) as usize).sum()
    }
}

#[inline(always)]
fn definite_into(a: &[bool], av: &[bool], out: &mut Vec<bool>) {
    fill::zip(a, av, out, |a, av| a & av);
}

/// `sure AND b`, of which `sure` is known everywhere.
#[inline(always)]
fn and_known(
    sure: &[bool],
    b: &[bool],
    bv: &[bool],
    out: &mut Vec<bool>,
    out_valid: &mut Vec<bool>,
) {
    fill::zip3(sure, b, bv, out, |sure, b, bv| sure & b & bv);
    fill::zip(sure, bv, out_valid, |sure, bv| bv | !sure);
}

/// `sure OR b`, of which `sure` is known everywhere.
#[inline(always)]
fn or_known(
    sure: &[bool],
    b: &[bool],
    bv: &[bool],
    out: &mut Vec<bool>,
    out_valid: &mut Vec<bool>,
) {
    fill::zip3(sure, b, bv, out, |sure, b, bv| sure | (b & bv));
    fill::zip(sure, bv, out_valid, |sure, bv| bv | sure);
}
