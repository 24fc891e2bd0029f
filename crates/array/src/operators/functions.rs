//! Aggregate functions, and what each is called with.

use std::fmt;

use crate::error::{Error, Result};
use crate::model::schema::{Attribute, Schema};
use crate::model::types::DataType;

/// An aggregate function. Nulls are left out; a NaN makes sum, average, least, greatest and deviation a NaN, as in NumPy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// How many cells exist, or of an attribute are not null.
    Count,
    /// The sum: an `int64`, `uint64` or double; an error where it does not fit.
    Sum,
    /// The mean, a double.
    Avg,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// The variance of a sample (divided by one less than the count), a double; null of fewer than two.
    Var,
    /// The standard deviation of a sample, a double; null of fewer than two.
    Stdev,
}

impl Function {
    /// All functions.
    pub const ALL: [Function; 7] = [
        Function::Count,
        Function::Sum,
        Function::Avg,
        Function::Min,
        Function::Max,
        Function::Var,
        Function::Stdev,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Function::Count => "count",
            Function::Sum => "sum",
            Function::Avg => "avg",
            Function::Min => "min",
            Function::Max => "max",
            Function::Var => "var",
            Function::Stdev => "stdev",
        }
    }

    /// The type of what it makes of values.
    pub(crate) fn result(self, of: DataType) -> DataType {
        match self {
            Function::Count => DataType::U64,
            Function::Sum if of.is_float() => DataType::F64,
            Function::Sum if of.is_signed() => DataType::I64,
            Function::Sum => DataType::U64,
            Function::Avg | Function::Var | Function::Stdev => DataType::F64,
            Function::Min | Function::Max => of,
        }
    }
}

/// A function of an attribute, and the name of the result.
///
/// ```
/// use array::{Aggregate, Function};
///
/// let warmest = Aggregate::new(Function::Max, "celsius").named("warmest");
/// assert_eq!(warmest.to_string(), "max(celsius) as warmest");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aggregate {
    pub(crate) function: Function,
    /// `None` counts cells.
    pub(crate) attribute: Option<String>,
    pub(crate) name: String,
}

impl Aggregate {
    /// A function of an attribute; the result is called by both, `max_celsius` for one.
    pub fn new(function: Function, attribute: &str) -> Aggregate {
        Aggregate {
            function,
            attribute: Some(attribute.to_owned()),
            name: format!("{}_{attribute}", function.name()),
        }
    }

    /// How many cells exist; the result is called `count`.
    pub fn count() -> Aggregate {
        Aggregate {
            function: Function::Count,
            attribute: None,
            name: "count".to_owned(),
        }
    }

    /// The same by another name.
    pub fn named(mut self, name: &str) -> Aggregate {
        self.name = name.to_owned();
        self
    }
}

impl fmt::Display for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = self.attribute.as_deref().unwrap_or("*");
        write!(f, "{}({of}) as {}", self.function.name(), self.name)
    }
}

/// Aggregates whose attributes are found.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    pub calls: Vec<Call>,
    pub attributes: Vec<Attribute>,
    /// A flag for each attribute of the input that is looked at.
    pub needed: Vec<bool>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub function: Function,
    /// The number of the attribute, and its type.
    pub of: Option<(usize, DataType)>,
}

impl Bound {
    /// Looks for the attributes of aggregates.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Operator`].
    pub fn new(operator: &'static str, schema: &Schema, all: &[Aggregate]) -> Result<Bound> {
        let wrong = |what: &str| {
            Err(Error::Operator {
                operator,
                what: what.to_owned(),
            })
        };
        if all.is_empty() {
            return wrong("give at least one aggregate, as in sum(x)");
        }
        let mut bound = Bound {
            calls: Vec::new(),
            attributes: Vec::new(),
            needed: vec![false; schema.attributes().len()],
        };
        for aggregate in all {
            let of = match &aggregate.attribute {
                None => None,
                Some(name) => {
                    let number = schema.attribute(name, operator)?;
                    bound.needed[number] = true;
                    Some((number, schema.attributes()[number].data_type()))
                }
            };
            let function = aggregate.function;
            let result = match of {
                None if function != Function::Count => return wrong("only count takes a *"),
                Some((_, DataType::Bool))
                    if !matches!(function, Function::Count | Function::Min | Function::Max) =>
                {
                    return wrong("a bool is no number; cast it, as in int8(...)");
                }
                None => DataType::U64,
                Some((_, of)) => function.result(of),
            };
            let attribute = Attribute::new(&aggregate.name, result);
            bound.attributes.push(if function == Function::Count {
                attribute
            } else {
                attribute.nullable()
            });
            bound.calls.push(Call { function, of });
        }
        Ok(bound)
    }
}
