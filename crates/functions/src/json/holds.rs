//! Whether one value of `jsonb` equals another, or contains it.

use datafusion_common::Result;

use crate::json::cut::{self, Kind};

/// A number of `jsonb` without zeros at its end, which numbers that are equal share.
pub(super) fn digits(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

/// Whether two values in the form of `jsonb` are equal.
fn equal(a: &str, b: &str) -> Result<bool> {
    let kind = Kind::of(a);
    if kind != Kind::of(b) {
        return Ok(false);
    }
    Ok(match kind {
        Kind::Number => digits(a) == digits(b),
        Kind::Array => {
            let (a, b) = (cut::items(a), cut::items(b));
            a.len() == b.len() && every(a.into_iter().zip(b), |(a, b)| equal(a, b))?
        }
        Kind::Object => {
            let (a, b) = (cut::members(a), cut::members(b));
            let same = |((k, a), (l, b)): (_, (_, _))| Ok(k == l && equal(a, b)?);
            a.len() == b.len() && every(a.into_iter().zip(b), same)?
        }
        _ => a == b,
    })
}

fn every<T>(
    mut values: impl Iterator<Item = T>,
    mut holds: impl FnMut(T) -> Result<bool>,
) -> Result<bool> {
    values.try_fold(true, |held, value| Ok(held && holds(value)?))
}

/// Whether `a` contains `b`, both in the form of `jsonb`: at the outermost level an array contains its items, too.
pub(super) fn contains(a: &str, b: &str) -> Result<bool> {
    if Kind::of(a) == Kind::Array && Kind::of(b).is_scalar() {
        return any(&cut::items(a), |item| equal(item, b));
    }
    within(a, b)
}

fn within(a: &str, b: &str) -> Result<bool> {
    match (Kind::of(a), Kind::of(b)) {
        (Kind::Object, Kind::Object) => {
            let own = cut::members(a);
            every(cut::members(b).into_iter(), |(key, value)| {
                match own.iter().find(|(own, _)| *own == key) {
                    Some((_, found)) => within(found, value),
                    None => Ok(false),
                }
            })
        }
        (Kind::Array, Kind::Array) => {
            let own = cut::items(a);
            every(cut::items(b).into_iter(), |wanted| {
                any(&own, |item| within(item, wanted))
            })
        }
        _ => equal(a, b),
    }
}

/// Whether one of these is such.
pub(super) fn any(items: &[&str], holds: impl Fn(&str) -> Result<bool>) -> Result<bool> {
    for item in items {
        if holds(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}
