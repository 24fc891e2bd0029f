//! Operators on the values of many cells.

use crate::data::block::Column;
use crate::data::buffer::Buffer;
use crate::error::{Error, Result};
use crate::expr::operand::{Operand, Values, both_valid, column};
use crate::expr::syntax::{BinaryOp, UnaryOp};
use crate::model::types::{DataType, Element, Scalar, with_type};

/// Which cells count: those that exist. What is computed for others may overflow.
pub(crate) type Live<'a> = Option<&'a [u8]>;

/// `op` on the values of two operands of one type, which is that of the result; comparisons give bools, and take
/// operands of two types.
///
/// # Errors
/// [`Error::Arithmetic`] where a cell that exists, and is not null, overflows or divides by zero.
pub(crate) fn binary(
    op: BinaryOp,
    a: &Operand<'_>,
    b: &Operand<'_>,
    live: Live<'_>,
) -> Result<Column> {
    let valid = both_valid(a, b);
    match op {
        BinaryOp::And | BinaryOp::Or => return Ok(logic(op, a, b)),
        _ if op.is_comparison() => return Ok(column(compare(op, a, b), valid)),
        _ => {}
    }
    let of = a.data_type();
    let mut out = Buffer::zeros(of, a.len());
    let wrong = match of {
        DataType::F32 => floats(op, a.values::<f32>(), b.values(), out.values_mut(), FLOAT32),
        DataType::F64 => floats(op, a.values::<f64>(), b.values(), out.values_mut(), FLOAT64),
        of => with_type!(of, T => integers::<T>(op, a, b, &mut out)),
    };
    check(wrong.as_deref(), valid.as_deref(), live, || (op, of))?;
    Ok(column(out, valid))
}

/// Whether a cell went wrong that counts.
fn check(
    wrong: Option<&[u8]>,
    valid: Option<&[u8]>,
    live: Live<'_>,
    what: impl Fn() -> (BinaryOp, DataType),
) -> Result<()> {
    let counts = |at: usize| {
        valid.is_none_or(|valid| valid[at] != 0) && live.is_none_or(|live| live[at] != 0)
    };
    let Some(wrong) = wrong else {
        return Ok(());
    };
    if !wrong
        .iter()
        .enumerate()
        .any(|(at, &wrong)| wrong != 0 && counts(at))
    {
        return Ok(());
    }
    let (op, of) = what();
    Err(Error::Arithmetic {
        what: match op {
            BinaryOp::Modulo => format!("% of {of}: a whole number is divided by zero"),
            _ => format!(
                "{} of {of}: a result is too large; cast to a wider type, as in int64(...) or double(...)",
                op.sign()
            ),
        },
    })
}

/// The functions that floats of one width need.
type FloatFunctions<T> = (fn(T, T) -> T, fn(T, T) -> T);

/// The rest with the sign of the divisor, as NumPy and Python have it.
const FLOAT32: FloatFunctions<f32> = (
    |a, b| {
        let rest = a % b;
        if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
            rest + b
        } else {
            rest
        }
    },
    f32::powf,
);
const FLOAT64: FloatFunctions<f64> = (
    |a, b| {
        let rest = a % b;
        if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
            rest + b
        } else {
            rest
        }
    },
    f64::powf,
);

#[allow(
    clippy::type_complexity,
    reason = "a name would say less than the operators do"
)]
fn floats<T>(
    op: BinaryOp,
    a: Values<'_, T>,
    b: Values<'_, T>,
    out: &mut [T],
    (modulo, power): FloatFunctions<T>,
) -> Option<Vec<u8>>
where
    T: Element
        + std::ops::Add<Output = T>
        + std::ops::Sub<Output = T>
        + std::ops::Mul<Output = T>
        + std::ops::Div<Output = T>,
{
    match op {
        BinaryOp::Add => zip(a, b, out, |a, b| a + b),
        BinaryOp::Subtract => zip(a, b, out, |a, b| a - b),
        BinaryOp::Multiply => zip(a, b, out, |a, b| a * b),
        BinaryOp::Modulo => zip(a, b, out, modulo),
        BinaryOp::Power => zip(a, b, out, power),
        _ => zip(a, b, out, |a, b| a / b),
    }
    None
}

/// A loop for each of the ways in which operands come, so that the compiler vectorises each.
#[inline(always)]
fn zip<T: Copy, R>(a: Values<'_, T>, b: Values<'_, T>, out: &mut [R], f: impl Fn(T, T) -> R) {
    match (a, b) {
        (Values::Each(a), Values::Each(b)) => {
            out.iter_mut()
                .zip(a.iter().zip(b))
                .for_each(|(out, (a, b))| *out = f(*a, *b));
        }
        (Values::Each(a), Values::All(b)) => {
            out.iter_mut().zip(a).for_each(|(out, a)| *out = f(*a, b));
        }
        (Values::All(a), Values::Each(b)) => {
            out.iter_mut().zip(b).for_each(|(out, b)| *out = f(a, *b));
        }
        (Values::All(a), Values::All(b)) => out.iter_mut().for_each(|out| *out = f(a, b)),
    }
}

/// Whole numbers, of which one says so that does not fit.
trait Whole: Element {
    fn add(self, other: Self) -> (Self, bool);
    fn subtract(self, other: Self) -> (Self, bool);
    fn multiply(self, other: Self) -> (Self, bool);
    /// The rest with the sign of the divisor.
    fn modulo(self, other: Self) -> (Self, bool);
}

macro_rules! wholes {
    ($($native:ty),*) => {$(
        impl Whole for $native {
            #[inline(always)]
            fn add(self, other: Self) -> (Self, bool) {
                self.overflowing_add(other)
            }

            #[inline(always)]
            fn subtract(self, other: Self) -> (Self, bool) {
                self.overflowing_sub(other)
            }

            #[inline(always)]
            fn multiply(self, other: Self) -> (Self, bool) {
                self.overflowing_mul(other)
            }

            #[inline(always)]
            fn modulo(self, other: Self) -> (Self, bool) {
                if other == 0 {
                    return (0, true);
                }
                let rest = self.wrapping_rem(other);
                let mixed = rest != 0 && (i128::from(rest) < 0) != (i128::from(other) < 0);
                (if mixed { rest.wrapping_add(other) } else { rest }, false)
            }
        }
    )*};
}

wholes!(i8, i16, i32, i64, u8, u16, u32, u64);

/// Floats never come here; without them the types would have to be listed once more.
macro_rules! no_wholes {
    ($($native:ty),*) => {$(
        impl Whole for $native {
            fn add(self, _: Self) -> (Self, bool) {
                (self, true)
            }

            fn subtract(self, _: Self) -> (Self, bool) {
                (self, true)
            }

            fn multiply(self, _: Self) -> (Self, bool) {
                (self, true)
            }

            fn modulo(self, _: Self) -> (Self, bool) {
                (self, true)
            }
        }
    )*};
}

no_wholes!(f32, f64);

/// Which results are wrong, if any is.
fn integers<T: Whole>(
    op: BinaryOp,
    a: &Operand<'_>,
    b: &Operand<'_>,
    out: &mut Buffer,
) -> Option<Vec<u8>> {
    let (a, b, out) = (a.values::<T>(), b.values::<T>(), out.values_mut::<T>());
    match op {
        BinaryOp::Add => overflowing(a, b, out, T::add),
        BinaryOp::Subtract => overflowing(a, b, out, T::subtract),
        BinaryOp::Multiply => overflowing(a, b, out, T::multiply),
        _ => overflowing(a, b, out, T::modulo),
    }
}

#[inline(always)]
fn overflowing<T: Whole>(
    a: Values<'_, T>,
    b: Values<'_, T>,
    out: &mut [T],
    f: impl Fn(T, T) -> (T, bool),
) -> Option<Vec<u8>> {
    let mut any = false;
    for (at, out) in out.iter_mut().enumerate() {
        let (value, wrong) = f(a.get(at), b.get(at));
        *out = value;
        any |= wrong;
    }
    // Seldom: which they are.
    any.then(|| {
        (0..out.len())
            .map(|at| u8::from(f(a.get(at), b.get(at)).1))
            .collect()
    })
}

/// Bools of a comparison. Values of two types are compared exactly, one by one.
fn compare(op: BinaryOp, a: &Operand<'_>, b: &Operand<'_>) -> Buffer {
    let mut out = Buffer::zeros(DataType::Bool, a.len());
    let bits = out.values_mut::<u8>();
    if a.data_type() != b.data_type() {
        for (at, bit) in bits.iter_mut().enumerate() {
            *bit = u8::from(op.holds(a.get(at).order(b.get(at))));
        }
        return out;
    }
    with_type!(a.data_type(), T => {
        let (a, b) = (a.values::<T>(), b.values::<T>());
        match op {
            BinaryOp::Eq => zip(a, b, bits, |a, b| u8::from(a == b)),
            BinaryOp::Ne => zip(a, b, bits, |a, b| u8::from(a != b)),
            BinaryOp::Lt => zip(a, b, bits, |a, b| u8::from(a < b)),
            BinaryOp::Le => zip(a, b, bits, |a, b| u8::from(a <= b)),
            BinaryOp::Gt => zip(a, b, bits, |a, b| u8::from(a > b)),
            _ => zip(a, b, bits, |a, b| u8::from(a >= b)),
        }
    });
    out
}

/// `and`, `or` of three values: false and anything is false, true or anything is true, else null with null.
fn logic(op: BinaryOp, a: &Operand<'_>, b: &Operand<'_>) -> Column {
    // A null literal has another type; as a bool it is null all the same.
    let truth = |of: &Operand<'_>, at: usize| match of.get(at) {
        Scalar::Bool(value) => Some(value),
        _ => None,
    };
    let absorbing = op == BinaryOp::Or;
    let length = a.len();
    let mut out = Buffer::zeros(DataType::Bool, length);
    if a.valid().is_none() && b.valid().is_none() {
        let (a, b, bits) = (a.values::<u8>(), b.values::<u8>(), out.values_mut::<u8>());
        match op {
            BinaryOp::Or => zip(a, b, bits, |a, b| a | b),
            _ => zip(a, b, bits, |a, b| a & b),
        }
        return Column::new(out);
    }
    let mut valid = vec![1; length];
    let bits = out.values_mut::<u8>();
    for at in 0..length {
        let result = match (truth(a, at), truth(b, at)) {
            (Some(one), _) | (_, Some(one)) if one == absorbing => Some(absorbing),
            (Some(_), Some(_)) => Some(!absorbing),
            _ => None,
        };
        bits[at] = u8::from(result == Some(true));
        valid[at] = u8::from(result.is_some());
    }
    Column::nullable(out, valid)
}

/// `op` on the values of an operand.
///
/// # Errors
/// [`Error::Arithmetic`]: the opposite of the least whole number.
pub(crate) fn unary(op: UnaryOp, a: &Operand<'_>, live: Live<'_>) -> Result<Column> {
    let valid = a.valid().map(|valid| valid.into_owned());
    let (of, length) = (a.data_type(), a.len());
    if op == UnaryOp::IsNull {
        let bits = valid.map_or_else(
            || vec![0; length],
            |valid| valid.iter().map(|&of| 1 - of).collect(),
        );
        return Ok(Column::new(Buffer::of::<u8>(DataType::Bool, &bits)));
    }
    let mut out = Buffer::zeros(of, length);
    match of {
        DataType::Bool => {
            let values = a.values::<u8>();
            let bits = out.values_mut::<u8>().iter_mut().enumerate();
            bits.for_each(|(at, bit)| *bit = 1 - values.get(at));
        }
        DataType::F32 => {
            let values = a.values::<f32>();
            let f: fn(f32) -> f32 = match op {
                UnaryOp::Negate => |a| -a,
                UnaryOp::Abs => f32::abs,
                UnaryOp::Sqrt => f32::sqrt,
                UnaryOp::Exp => f32::exp,
                UnaryOp::Log => f32::ln,
                UnaryOp::Floor => f32::floor,
                _ => f32::ceil,
            };
            let out = out.values_mut::<f32>().iter_mut().enumerate();
            out.for_each(|(at, out)| *out = f(values.get(at)));
        }
        DataType::F64 => {
            let values = a.values::<f64>();
            let f: fn(f64) -> f64 = match op {
                UnaryOp::Negate => |a| -a,
                UnaryOp::Abs => f64::abs,
                UnaryOp::Sqrt => f64::sqrt,
                UnaryOp::Exp => f64::exp,
                UnaryOp::Log => f64::ln,
                UnaryOp::Floor => f64::floor,
                _ => f64::ceil,
            };
            let out = out.values_mut::<f64>().iter_mut().enumerate();
            out.for_each(|(at, out)| *out = f(values.get(at)));
        }
        // A whole number has no part after the point.
        _ if matches!(op, UnaryOp::Floor | UnaryOp::Ceil) => return Ok(column(out_of(a), valid)),
        _ => {
            let zero = Operand::Constant {
                value: Scalar::Int(0),
                of,
                length,
            };
            if op == UnaryOp::Negate {
                return binary(BinaryOp::Subtract, &zero, a, live);
            }
            return absolute(a, &zero, live);
        }
    }
    Ok(column(out, valid))
}

/// The values of an operand, as they are.
fn out_of(a: &Operand<'_>) -> Buffer {
    let of = a.data_type();
    let mut out = Buffer::zeros(of, a.len());
    with_type!(of, T => {
        let values = a.values::<T>();
        let each = out.values_mut::<T>().iter_mut().enumerate();
        each.for_each(|(at, out)| *out = values.get(at));
    });
    out
}

fn absolute(a: &Operand<'_>, zero: &Operand<'_>, live: Live<'_>) -> Result<Column> {
    let below = compare(BinaryOp::Lt, a, zero);
    let below = below.values::<u8>();
    // Only those that are negative count.
    let counts: Vec<u8> = match live {
        None => below.to_vec(),
        Some(live) => below.iter().zip(live).map(|(a, b)| a & b).collect(),
    };
    let opposite = binary(BinaryOp::Subtract, zero, a, Some(&counts))?;
    let mut out = out_of(a);
    with_type!(a.data_type(), T => {
        let (from, to) = (opposite.values().values::<T>(), out.values_mut::<T>());
        (0..to.len()).filter(|&at| below[at] != 0).for_each(|at| to[at] = from[at]);
    });
    Ok(column(out, a.valid().map(|valid| valid.into_owned())))
}

/// The values of an operand as another type. Floats lose what is after the point.
///
/// # Errors
/// [`Error::Arithmetic`] if a value that counts does not fit.
pub(crate) fn cast(a: &Operand<'_>, to: DataType, live: Live<'_>) -> Result<Column> {
    let (from, length) = (a.data_type(), a.len());
    let valid = a.valid().map(|valid| valid.into_owned());
    let mut out = Buffer::zeros(to, length);
    if from.is_float() && !to.is_float() {
        narrow(a, to, &mut out, valid.as_deref(), live)?;
        return Ok(column(out, valid));
    }
    let (least, most) = to.bounds();
    let (low, high) = from.bounds();
    let checked = !to.is_float() && (low < least || high > most);
    let mut fits = true;
    with_type!(from, F => {
        let values = a.values::<F>();
        match to {
            DataType::F32 => {
                let out = out.values_mut::<f32>().iter_mut().enumerate();
                // By way of a double: what it rounds is rounded the same way at once.
                out.for_each(|(at, out)| *out = round32(values.get(at)));
            }
            DataType::F64 => {
                let out = out.values_mut::<f64>().iter_mut().enumerate();
                out.for_each(|(at, out)| *out = values.get(at).to_f64());
            }
            _ => with_type!(to, T => {
                let out = out.values_mut::<T>();
                for (at, out) in out.iter_mut().enumerate() {
                    let value = values.get(at).to_i128();
                    let counts = valid.as_deref().is_none_or(|valid| valid[at] != 0)
                        && live.is_none_or(|live| live[at] != 0);
                    fits &= !checked || !counts || (least..=most).contains(&value);
                    *out = <T as Truncate>::truncate(value);
                }
            }),
        }
    });
    if fits {
        Ok(column(out, valid))
    } else {
        Err(too_large(from, to))
    }
}

fn narrow(
    a: &Operand<'_>,
    to: DataType,
    out: &mut Buffer,
    valid: Option<&[u8]>,
    live: Live<'_>,
) -> Result<()> {
    let (least, most) = to.bounds();
    for at in 0..a.len() {
        let counts =
            valid.is_none_or(|valid| valid[at] != 0) && live.is_none_or(|live| live[at] != 0);
        let value = a.get(at).to_f64().unwrap_or(0.0).trunc();
        let whole = (value.abs() < 1e30).then_some(value as i128);
        match whole.filter(|whole| (least..=most).contains(whole)) {
            Some(whole) => out.set(at, Scalar::Int(whole)),
            None if counts => return Err(too_large(a.data_type(), to)),
            None => {}
        }
    }
    Ok(())
}

fn too_large(from: DataType, to: DataType) -> Error {
    Error::Arithmetic {
        what: format!("{to}(...) of {from}: {to} does not hold a value; cast to a wider type"),
    }
}

/// The nearest float of 32 bits.
#[inline(always)]
fn round32<T: Element>(value: T) -> f32 {
    if size_of::<T>() == 8 && T::is_of(DataType::F64) {
        return value.to_f64() as f32;
    }
    if T::is_of(DataType::F32) {
        return value.to_f64() as f32;
    }
    value.to_i128() as f32
}

/// The lower bits of a whole number.
trait Truncate {
    fn truncate(value: i128) -> Self;
}

macro_rules! truncates {
    ($($native:ty),*) => {$(
        impl Truncate for $native {
            #[inline(always)]
            fn truncate(value: i128) -> $native {
                value as $native
            }
        }
    )*};
}

truncates!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);

/// `a` where the condition is true, else `b`, also where it is null.
pub(crate) fn choose(condition: &Operand<'_>, a: &Operand<'_>, b: &Operand<'_>) -> Column {
    let (of, length) = (a.data_type(), a.len());
    let mut out = Buffer::zeros(of, length);
    let mut valid = vec![1; length];
    let (bits, known) = (condition.values::<u8>(), condition.valid());
    let (of_a, of_b) = (a.valid(), b.valid());
    with_type!(of, T => {
        let (left, right, out) = (a.values::<T>(), b.values::<T>(), out.values_mut::<T>());
        for at in 0..length {
            let first = bits.get(at) != 0 && known.as_ref().is_none_or(|known| known[at] != 0);
            let (value, of) = if first { (left.get(at), &of_a) } else { (right.get(at), &of_b) };
            out[at] = value;
            valid[at] = of.as_ref().map_or(1, |valid| valid[at]);
        }
    });
    Column::nullable(out, valid)
}
