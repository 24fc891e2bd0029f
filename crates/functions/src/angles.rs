//! Trigonometry in degrees, exact where an angle is a multiple of 30 or 45 degrees: as PostgreSQL does it, values are divided
//! by those at these angles.

use arrow::array::{ArrayRef, AsArray, Float64Array};
use arrow::datatypes::{DataType, Float64Type};
use datafusion_common::{Result, plan_err};
use messages::Error;

use std::sync::Arc;

use crate::arguments::is_text;
use crate::own::Own;

pub(super) fn all() -> Vec<Own> {
    let one = |name, run| Own::new(name, angle, |_| Ok(DataType::Float64), run);
    vec![
        one("sind", |args, _| each(args, sind)),
        one("cosd", |args, _| each(args, cosd)),
        one("tand", |args, _| each(args, |x| Ok(tand(x)? + 0.0))),
        one("cotd", |args, _| each(args, |x| Ok(cotd(x)? + 0.0))),
        one("asind", |args, _| each(args, asind)),
        one("acosd", |args, _| each(args, acosd)),
        one("atand", |args, _| {
            each(args, |x| Ok(x.atan() / 1f64.atan() * 45.0))
        }),
        Own::new(
            "atan2d",
            angles,
            |_| Ok(DataType::Float64),
            |args, _| {
                let y = args[0].as_primitive::<Float64Type>();
                let x = args[1].as_primitive::<Float64Type>();
                let of = |y: f64, x: f64| y.atan2(x) / 1f64.atan() * 45.0;
                let found: Float64Array = arrow::compute::binary(y, x, of)?;
                Ok(Arc::new(found))
            },
        ),
    ]
}

fn is_number(ty: &DataType) -> bool {
    ty.is_numeric() || is_text(ty)
}

fn angle(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [ty] if is_number(ty) => Ok(vec![DataType::Float64]),
        _ => plan_err!("the function takes one number"),
    }
}

fn angles(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [y, x] if is_number(y) && is_number(x) => Ok(vec![DataType::Float64; 2]),
        _ => plan_err!("atan2d takes two numbers"),
    }
}

fn each(args: &[ArrayRef], of: impl Fn(f64) -> Result<f64>) -> Result<ArrayRef> {
    let numbers = args[0].as_primitive::<Float64Type>();
    let of = |x: f64| if x.is_nan() { Ok(x) } else { of(x) };
    let found = numbers.iter().map(|number| number.map(of).transpose());
    Ok(Arc::new(found.collect::<Result<Float64Array>>()?))
}

/// From 0 to 30 degrees.
fn low_sine(x: f64) -> f64 {
    x.to_radians().sin() / 30f64.to_radians().sin() / 2.0
}

/// From 0 to 60 degrees.
fn low_cosine(x: f64) -> f64 {
    let below = |x: f64| 1.0 - x.to_radians().cos();
    1.0 - below(x) / below(60.0) / 2.0
}

/// From 0 to 90 degrees.
fn sine(x: f64) -> f64 {
    if x <= 30.0 {
        low_sine(x)
    } else {
        low_cosine(90.0 - x)
    }
}

fn cosine(x: f64) -> f64 {
    if x <= 60.0 {
        low_cosine(x)
    } else {
        low_sine(90.0 - x)
    }
}

/// An angle as one from 0 to 180 degrees, and whether it was on the other side.
fn half(x: f64) -> Result<(f64, bool)> {
    if x.is_infinite() {
        return Err(Error::coded("22003", "input is out of range").into());
    }
    let turned = x % 360.0;
    let (angle, below) = (turned.abs(), turned < 0.0);
    Ok(if angle > 180.0 {
        (360.0 - angle, !below)
    } else {
        (angle, below)
    })
}

fn signed(value: f64, negative: bool) -> f64 {
    if negative { -value } else { value }
}

fn sind(x: f64) -> Result<f64> {
    let (angle, below) = half(x)?;
    Ok(signed(sine(angle.min(180.0 - angle)), below))
}

fn cosd(x: f64) -> Result<f64> {
    let (angle, _) = half(x)?;
    Ok(signed(cosine(angle.min(180.0 - angle)), angle > 90.0))
}

fn tand(x: f64) -> Result<f64> {
    let (angle, below) = half(x)?;
    let first = angle.min(180.0 - angle);
    let unit = sine(45.0) / cosine(45.0);
    let value = sine(first) / cosine(first) / unit;
    Ok(signed(value, below != (angle > 90.0)))
}

fn cotd(x: f64) -> Result<f64> {
    let (angle, below) = half(x)?;
    let first = angle.min(180.0 - angle);
    let unit = cosine(45.0) / sine(45.0);
    let value = cosine(first) / sine(first) / unit;
    Ok(signed(value, below != (angle > 90.0)))
}

/// The angle from 0 to 90 degrees of a sine from 0 to 1.
fn angle_of_sine(x: f64) -> f64 {
    if x <= 0.5 {
        x.asin() / 0.5f64.asin() * 30.0
    } else {
        90.0 - x.acos() / 0.5f64.acos() * 60.0
    }
}

fn angle_of_cosine(x: f64) -> f64 {
    if x <= 0.5 {
        90.0 - x.asin() / 0.5f64.asin() * 30.0
    } else {
        x.acos() / 0.5f64.acos() * 60.0
    }
}

fn is_ratio(x: f64) -> Result<()> {
    if x.abs() <= 1.0 {
        return Ok(());
    }
    Err(Error::coded("22003", "input is out of range").into())
}

fn asind(x: f64) -> Result<f64> {
    is_ratio(x)?;
    Ok(signed(angle_of_sine(x.abs()), x < 0.0))
}

fn acosd(x: f64) -> Result<f64> {
    is_ratio(x)?;
    Ok(if x >= 0.0 {
        angle_of_cosine(x)
    } else {
        90.0 + angle_of_sine(-x)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_angles_are_exact() {
        for (x, sin, cos) in [
            (0.0, 0.0, 1.0),
            (30.0, 0.5, 0.75f64.sqrt()),
            (60.0, 0.75f64.sqrt(), 0.5),
            (90.0, 1.0, 0.0),
            (150.0, 0.5, -(0.75f64.sqrt())),
            (180.0, 0.0, -1.0),
            (210.0, -0.5, -(0.75f64.sqrt())),
            (270.0, -1.0, 0.0),
            (-30.0, -0.5, 0.75f64.sqrt()),
            (750.0, 0.5, 0.75f64.sqrt()),
        ] {
            assert!((sind(x).unwrap() - sin).abs() < 1e-15, "sind({x})");
            assert!((cosd(x).unwrap() - cos).abs() < 1e-15, "cosd({x})");
        }
        assert_eq!((sind(30.0).unwrap(), cosd(240.0).unwrap()), (0.5, -0.5));
        assert_eq!((tand(45.0).unwrap(), tand(135.0).unwrap()), (1.0, -1.0));
        assert_eq!((cotd(45.0).unwrap(), cotd(225.0).unwrap()), (1.0, 1.0));
        assert_eq!(tand(90.0).unwrap(), f64::INFINITY);
        for (x, angle) in [(0.5, 30.0), (-0.5, -30.0), (1.0, 90.0), (0.0, 0.0)] {
            assert_eq!(asind(x).unwrap(), angle);
            assert_eq!(acosd(x).unwrap(), 90.0 - angle);
        }
        assert!(asind(1.1).is_err() && acosd(-1.1).is_err() && sind(f64::INFINITY).is_err());
    }
}
