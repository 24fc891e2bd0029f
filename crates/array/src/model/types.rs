//! Types of attributes, and single values of them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The type of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DataType {
    /// True or false; a byte, 1 or 0.
    Bool,
    /// Whole numbers of 8 bits with a sign.
    I8,
    /// Whole numbers of 16 bits with a sign.
    I16,
    /// Whole numbers of 32 bits with a sign.
    I32,
    /// Whole numbers of 64 bits with a sign.
    I64,
    /// Whole numbers of 8 bits.
    U8,
    /// Whole numbers of 16 bits.
    U16,
    /// Whole numbers of 32 bits.
    U32,
    /// Whole numbers of 64 bits.
    U64,
    /// Floats of 32 bits.
    F32,
    /// Floats of 64 bits.
    F64,
}

impl DataType {
    /// All types.
    pub const ALL: [DataType; 11] = [
        DataType::Bool,
        DataType::I8,
        DataType::I16,
        DataType::I32,
        DataType::I64,
        DataType::U8,
        DataType::U16,
        DataType::U32,
        DataType::U64,
        DataType::F32,
        DataType::F64,
    ];

    /// Bytes of a value: a power of two, 8 at most.
    pub fn width(self) -> usize {
        match self {
            DataType::Bool | DataType::I8 | DataType::U8 => 1,
            DataType::I16 | DataType::U16 => 2,
            DataType::I32 | DataType::U32 | DataType::F32 => 4,
            DataType::I64 | DataType::U64 | DataType::F64 => 8,
        }
    }

    /// Its name in schemas and casts: `bool`, `int8` ... `int64`, `uint8` ... `uint64`, `float`, `double`.
    pub fn name(self) -> &'static str {
        match self {
            DataType::Bool => "bool",
            DataType::I8 => "int8",
            DataType::I16 => "int16",
            DataType::I32 => "int32",
            DataType::I64 => "int64",
            DataType::U8 => "uint8",
            DataType::U16 => "uint16",
            DataType::U32 => "uint32",
            DataType::U64 => "uint64",
            DataType::F32 => "float",
            DataType::F64 => "double",
        }
    }

    /// The type of this [`name`](DataType::name); also `float32` and `float64`.
    pub fn of_name(name: &str) -> Option<DataType> {
        match name {
            "float32" => Some(DataType::F32),
            "float64" => Some(DataType::F64),
            _ => DataType::ALL.into_iter().find(|of| of.name() == name),
        }
    }

    /// Whether it is a float.
    pub fn is_float(self) -> bool {
        matches!(self, DataType::F32 | DataType::F64)
    }

    /// Whether it is a whole number; a bool is none.
    pub fn is_integer(self) -> bool {
        !self.is_float() && self != DataType::Bool
    }

    /// Whether it has negative values.
    pub fn is_signed(self) -> bool {
        !matches!(
            self,
            DataType::Bool | DataType::U8 | DataType::U16 | DataType::U32 | DataType::U64
        )
    }

    /// The least and greatest whole number; of floats, those that `i128` holds.
    pub fn bounds(self) -> (i128, i128) {
        let bits = self.width() as u32 * 8;
        match self {
            DataType::Bool => (0, 1),
            DataType::F32 | DataType::F64 => (i128::MIN, i128::MAX),
            _ if self.is_signed() => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            _ => (0, (1 << bits) - 1),
        }
    }

    /// The type that holds the values of both, as NumPy promotes: two whole numbers become the narrowest whole number
    /// that holds both, or a double where none does (`int64` with `uint64`); a float beside a whole number of more than
    /// 16 bits is a double.
    pub fn promoted(self, other: DataType) -> DataType {
        let (a, b) = (self.min(other), self.max(other));
        if a == b || a == DataType::Bool {
            return b;
        }
        if b.is_float() {
            let narrow = a.is_float() || a.width() <= 2;
            return if b == DataType::F32 && narrow {
                b
            } else {
                DataType::F64
            };
        }
        let signed = a.is_signed() || b.is_signed();
        let holds = |of: &DataType| {
            let (least, most) = of.bounds();
            of.is_integer()
                && of.is_signed() == signed
                && least <= a.bounds().0.min(b.bounds().0)
                && most >= a.bounds().1.max(b.bounds().1)
        };
        DataType::ALL
            .into_iter()
            .find(holds)
            .unwrap_or(DataType::F64)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A single value. Those of `f32` are kept as the double that they are.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum Scalar {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number of any integer type.
    Int(i128),
    /// A float.
    Float(f64),
}

impl Scalar {
    /// Whether it is no value.
    pub fn is_null(self) -> bool {
        matches!(self, Scalar::Null)
    }

    /// How two values compare; `None` with a null or NaN. A bool is 0 or 1, whole numbers are compared exactly.
    pub fn order(self, other: Scalar) -> Option<std::cmp::Ordering> {
        let whole = |of: Scalar| match of {
            Scalar::Bool(value) => Some(i128::from(value)),
            Scalar::Int(value) => Some(value),
            _ => None,
        };
        match (whole(self), whole(other)) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => self.to_f64()?.partial_cmp(&other.to_f64()?),
        }
    }

    /// As a float; `None` of null. Whole numbers above 2^53 are rounded.
    pub fn to_f64(self) -> Option<f64> {
        match self {
            Scalar::Null => None,
            Scalar::Bool(value) => Some(f64::from(u8::from(value))),
            Scalar::Int(value) => Some(value as f64),
            Scalar::Float(value) => Some(value),
        }
    }

    /// The same value in `of`: `None` where that does not hold it exactly, but for floats, which are rounded.
    pub fn cast(self, of: DataType) -> Option<Scalar> {
        let whole = match self {
            Scalar::Null => return Some(Scalar::Null),
            Scalar::Bool(value) => i128::from(value),
            Scalar::Int(value) => value,
            Scalar::Float(value) if of == DataType::F64 => return Some(Scalar::Float(value)),
            Scalar::Float(value) if of == DataType::F32 => {
                return Some(Scalar::Float(f64::from(value as f32)));
            }
            Scalar::Float(value) if value.fract() == 0.0 && value.abs() < 1e38 => value as i128,
            Scalar::Float(_) => return None,
        };
        match of {
            DataType::F64 => Some(Scalar::Float(whole as f64)),
            DataType::F32 => Some(Scalar::Float(f64::from(whole as f32))),
            DataType::Bool => match whole {
                0 | 1 => Some(Scalar::Bool(whole == 1)),
                _ => None,
            },
            _ => {
                let (least, most) = of.bounds();
                (least..=most)
                    .contains(&whole)
                    .then_some(Scalar::Int(whole))
            }
        }
    }

    /// The bytes of the value in `of`, little-endian, in the lower ones of eight; null is zeros.
    pub(crate) fn to_bytes(self, of: DataType) -> Option<[u8; 8]> {
        Some(match self.cast(of)? {
            Scalar::Null => [0; 8],
            Scalar::Bool(value) => u64::from(value).to_le_bytes(),
            Scalar::Int(value) => (value as u64).to_le_bytes(),
            Scalar::Float(value) if of == DataType::F32 => {
                u64::from((value as f32).to_bits()).to_le_bytes()
            }
            Scalar::Float(value) => value.to_bits().to_le_bytes(),
        })
    }
}

impl PartialEq for Scalar {
    /// As values of a column are the same: NaN is NaN, and -0.0 is 0.0.
    fn eq(&self, other: &Scalar) -> bool {
        match (*self, *other) {
            (Scalar::Null, Scalar::Null) => true,
            (Scalar::Bool(a), Scalar::Bool(b)) => a == b,
            (Scalar::Int(a), Scalar::Int(b)) => a == b,
            (Scalar::Float(a), Scalar::Float(b)) => a == b || (a.is_nan() && b.is_nan()),
            _ => false,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Null => f.write_str("null"),
            Scalar::Bool(value) => write!(f, "{value}"),
            Scalar::Int(value) => write!(f, "{value}"),
            Scalar::Float(value) => write!(f, "{value:?}"),
        }
    }
}

impl From<bool> for Scalar {
    fn from(value: bool) -> Scalar {
        Scalar::Bool(value)
    }
}

impl From<i64> for Scalar {
    fn from(value: i64) -> Scalar {
        Scalar::Int(value.into())
    }
}

impl From<i32> for Scalar {
    fn from(value: i32) -> Scalar {
        Scalar::Int(value.into())
    }
}

impl From<f64> for Scalar {
    fn from(value: f64) -> Scalar {
        Scalar::Float(value)
    }
}

/// A Rust type of the values of a column. A bool is kept as the `u8` that it is.
pub trait Element: bytemuck::Pod + PartialOrd + Send + Sync {
    /// Whether columns of this type hold such values.
    fn is_of(of: DataType) -> bool;
    /// The value as a float.
    fn to_f64(self) -> f64;
    /// The value as a whole number; of a float the part before the point.
    fn to_i128(self) -> i128;
}

macro_rules! elements {
    ($($native:ty: $($of:ident)|+),*) => {$(
        impl Element for $native {
            fn is_of(of: DataType) -> bool {
                matches!(of, $(DataType::$of)|+)
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }

            #[inline(always)]
            fn to_i128(self) -> i128 {
                self as i128
            }
        }
    )*};
}

elements!(i8: I8, i16: I16, i32: I32, i64: I64, u8: U8 | Bool, u16: U16, u32: U32, u64: U64, f32: F32, f64: F64);

/// Runs `$body` with `$T` the Rust type of the values of `$of`.
macro_rules! with_type {
    ($of:expr, $T:ident => $body:expr) => {
        match $of {
            $crate::model::types::DataType::I8 => {
                type $T = i8;
                $body
            }
            $crate::model::types::DataType::I16 => {
                type $T = i16;
                $body
            }
            $crate::model::types::DataType::I32 => {
                type $T = i32;
                $body
            }
            $crate::model::types::DataType::I64 => {
                type $T = i64;
                $body
            }
            $crate::model::types::DataType::Bool | $crate::model::types::DataType::U8 => {
                type $T = u8;
                $body
            }
            $crate::model::types::DataType::U16 => {
                type $T = u16;
                $body
            }
            $crate::model::types::DataType::U32 => {
                type $T = u32;
                $body
            }
            $crate::model::types::DataType::U64 => {
                type $T = u64;
                $body
            }
            $crate::model::types::DataType::F32 => {
                type $T = f32;
                $body
            }
            $crate::model::types::DataType::F64 => {
                type $T = f64;
                $body
            }
        }
    };
}
pub(crate) use with_type;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_that_of_numpy() {
        use DataType::*;
        for (a, b, both) in [
            (I8, U8, I16),
            (I8, U32, I64),
            (I64, U64, F64),
            (I16, F32, F32),
            (I32, F32, F64),
            (U16, F32, F32),
            (Bool, I8, I8),
            (Bool, Bool, Bool),
            (F32, F64, F64),
            (U8, U16, U16),
        ] {
            assert_eq!(a.promoted(b), both, "{a} {b}");
            assert_eq!(b.promoted(a), both, "{b} {a}");
        }
    }

    #[test]
    fn a_cast_is_exact_or_nothing() {
        assert_eq!(Scalar::Int(300).cast(DataType::U8), None);
        assert_eq!(Scalar::Float(3.0).cast(DataType::I8), Some(Scalar::Int(3)));
        assert_eq!(Scalar::Float(3.5).cast(DataType::I8), None);
        assert_eq!(Scalar::Float(f64::NAN).cast(DataType::I64), None);
        assert_eq!(
            Scalar::Int(-1).to_bytes(DataType::I16).unwrap()[..2],
            [255, 255]
        );
    }
}
