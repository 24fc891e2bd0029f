//! Results of parts of the rows of a group, from which those of all its rows follow: the coarser levels of grouping sets, groups that
//! are made before a join, and groups by distinct values.

use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::logical::relation::{Fold, Function, Query};
use crate::vector::value::{Kind, Type, Var};

/// A result for a part of the rows of a group.
#[derive(Clone, Debug)]
pub struct Part {
    /// How it is computed from rows.
    pub function: Function,
    /// The argument of the function.
    pub arg: Option<Var>,
    /// How it is computed from the same results of smaller parts.
    pub merge: Function,
    /// For messages and `explain`.
    pub name: String,
    /// Its type. A sum's holds more than all sums that fit a type of their own, and the sums on the way to one.
    pub ty: Type,
}

/// How a result follows from those of parts, by their places in a list of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged {
    /// It is the result of a part itself, merged as [`Part::merge`] says.
    Part(usize),
    /// The sum of sums, in the type that it has to have.
    Sum(usize),
    /// The average of these sums.
    Avg {
        /// The sums.
        sums: usize,
        /// Of how many values each is.
        counts: usize,
    },
}

impl Part {
    /// How the result of `fold` follows from parts, which are added to `parts` where they are not there yet: what several functions
    /// need is one part.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a function whose parts do not tell its result.
    pub fn of(fold: &Fold, query: &Query, parts: &mut Vec<Part>) -> Result<Merged> {
        let column = &query.vars[fold.var];
        let mut place = |function, arg, merge, ty| {
            let known = parts
                .iter()
                .position(|own| (own.function, own.arg) == (function, arg));
            known.unwrap_or_else(|| {
                parts.push(Part {
                    function,
                    arg,
                    merge,
                    name: column.name.clone(),
                    ty,
                });
                parts.len() - 1
            })
        };
        let mut itself = |merge| place(fold.function, fold.arg, merge, column.ty.clone());
        Ok(match (fold.function, fold.arg) {
            (Function::Count, _) => Merged::Part(itself(Function::CountTotal)),
            (Function::Min | Function::Max, Some(_)) => Merged::Part(itself(fold.function)),
            (Function::Sum, Some(arg)) => {
                let ty = sums(query.ty(arg))?;
                Merged::Sum(place(Function::Sum, Some(arg), Function::Sum, ty))
            }
            (Function::Avg, Some(arg)) => {
                let ty = sums(query.ty(arg))?;
                let sums = place(Function::Sum, Some(arg), Function::Sum, ty);
                // Without NULLs it counts rows.
                let counted = Some(arg).filter(|arg| query.ty(*arg).nullable);
                let ty = counts()?;
                let counts = place(Function::Count, counted, Function::CountTotal, ty);
                Merged::Avg { sums, counts }
            }
            (Function::OfPairs { function, .. }, _) => {
                return Err(Error::unsupported(format!("{function:?} of parts of rows")));
            }
            (function, _) => {
                return Err(Error::unsupported(format!("{function:?} of parts of rows")));
            }
        })
    }

    /// The function that computes the part from rows, with `var` for its result.
    pub fn of_rows(&self, var: Var) -> Fold {
        Fold {
            var,
            function: self.function,
            arg: self.arg,
        }
    }

    /// The function that merges the results `from` of smaller parts, with `var` for its result.
    pub fn of_parts(&self, var: Var, from: Var) -> Fold {
        Fold {
            var,
            function: self.merge,
            arg: Some(from),
        }
    }
}

impl Merged {
    /// The function that computes the result `var` from those of `parts`, which are in the vectors `from`.
    pub fn fold(&self, var: Var, parts: &[Part], from: &[Var]) -> Fold {
        let (function, arg) = match self {
            Merged::Part(place) => (parts[*place].merge, from[*place]),
            Merged::Sum(place) => (Function::Sum, from[*place]),
            Merged::Avg { sums, counts } => {
                let counts = from[*counts];
                (Function::AvgOfSums { counts }, from[*sums])
            }
        };
        Fold {
            var,
            function,
            arg: Some(arg),
        }
    }
}

/// The type of sums of parts of values of type `ty`.
fn sums(ty: &Type) -> Result<Type> {
    let data = match ty.kind {
        Kind::Float => DataType::Float64,
        Kind::Int | Kind::Wide => DataType::Decimal128(38, ty.scale()),
        Kind::Bool | Kind::Code | Kind::Text => {
            return Err(Error::unsupported("sums of such values"));
        }
    };
    Type::of(&data, true).ok_or_else(|| Error::unsupported("sums of such values"))
}

/// More rows than any table has.
const ROWS: i128 = 1 << 36;

/// Whether 128 bits hold every partial sum of numbers within `bounds`.
pub(crate) fn has_room(bounds: (i128, i128)) -> bool {
    let most = bounds.0.unsigned_abs().max(bounds.1.unsigned_abs());
    most < (1 << 127) / ROWS.unsigned_abs()
}

/// The bounds of sums of numbers within `bounds`.
pub(crate) fn within_sums(bounds: (i128, i128)) -> (i128, i128) {
    let (least, greatest) = (bounds.0.min(0), bounds.1.max(0));
    (least.saturating_mul(ROWS), greatest.saturating_mul(ROWS))
}

/// The type of counts.
pub(crate) fn counts() -> Result<Type> {
    let ty = Type::of(&DataType::Int64, false).ok_or_else(|| Error::unsupported("counts"))?;
    Ok(ty.within((0, i64::MAX.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_share_sums_and_counts() {
        let mut query = Query::default();
        let add = |query: &mut Query, nullable| {
            query.add("x", Type::of(&DataType::Int64, nullable).unwrap())
        };
        let (x, y) = (add(&mut query, false), add(&mut query, true));
        let mut parts = Vec::new();
        let mut of = |function, arg| {
            let var = add(&mut query, true);
            Part::of(&Fold { var, function, arg }, &query, &mut parts)
        };
        assert_eq!(of(Function::Sum, Some(x)).unwrap(), Merged::Sum(0));
        let average = of(Function::Avg, Some(x)).unwrap();
        assert_eq!(average, Merged::Avg { sums: 0, counts: 1 });
        assert_eq!(of(Function::Count, None).unwrap(), Merged::Part(1));
        let average = of(Function::Avg, Some(y)).unwrap();
        assert_eq!(average, Merged::Avg { sums: 2, counts: 3 });
        assert!(of(Function::CountDistinct, Some(x)).is_err());
        assert_eq!(parts.len(), 4);
        let fold = average.fold(9, &parts, &[20, 21, 22, 23]);
        assert_eq!(fold.function, Function::AvgOfSums { counts: 23 });
        assert_eq!(fold.arg, Some(22));
    }

    #[test]
    fn few_numbers_need_more_than_128_bits() {
        assert!(has_room((-(1 << 90), 1 << 90)));
        assert!(!has_room((0, 1 << 91)));
        assert!(!has_room((i128::MIN, 0)));
    }

    #[test]
    fn sums_lie_between_those_of_as_many_rows_as_there_can_be() {
        assert_eq!(within_sums((-2, 3)), (-(2 << 36), 3 << 36));
        // A sum may be of one number, so that the least one is none of the bounds.
        assert_eq!(within_sums((5, 9)), (0, 9 << 36));
        assert_eq!(within_sums((i128::MIN, -1)), (i128::MIN, 0));
    }
}
