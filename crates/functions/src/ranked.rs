//! Which values a quantile reads of its group in ascending order, for who cannot keep the group in memory.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, TimeUnit};
use datafusion_common::{Result, plan_err};
use datafusion_physical_expr::aggregate::AggregateFunctionExpr;

use crate::between_values::{between, normal};
use crate::quantiles::{Pick, fraction};

/// Which values of a sorted group a quantile reads, for who sorts them.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// NULL gives NULL.
    fraction: Option<f64>,
    descending: bool,
    result: Between,
}

/// What a quantile is of two neighbouring values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Between {
    /// One of them.
    Neither,
    /// What lies between them on the line.
    Line,
    /// Half of their sum.
    Mean,
}

impl Places {
    /// Those of an aggregate function; `None` if it is no quantile, or one of distinct values.
    ///
    /// # Errors
    /// If the fraction is no number from 0 to 1.
    pub fn of(function: &AggregateFunctionExpr) -> Result<Option<Places>> {
        let result = match function.fun().name() {
            "percentile_cont" => Between::Line,
            "quantile_disc" => Between::Neither,
            "median" => Between::Mean,
            _ => return Ok(None),
        };
        if function.is_distinct() {
            return Ok(None);
        }
        let first = function.order_bys().first();
        Ok(Some(Places {
            fraction: match result {
                Between::Mean => Some(0.5),
                _ => fraction(&function.expressions())?,
            },
            descending: first.is_some_and(|order| order.options.descending),
            result,
        }))
    }

    /// The one or two places that are read among `count` values in ascending order; `None` if the result is NULL.
    pub fn among(self, count: usize) -> Option<(usize, usize)> {
        let last = count.checked_sub(1)?;
        if self.result == Between::Neither {
            let pick = Pick {
                fraction: self.fraction,
                descending: self.descending,
                distinct: false,
            };
            return pick.place(count).map(|place| (place, place));
        }
        let place = self.fraction? * last as f64;
        let low = (place.floor() as usize).min(last);
        let high = (place.ceil() as usize).min(last);
        Some(if self.descending {
            (last - high, last - low)
        } else {
            (low, high)
        })
    }

    /// The result for the two values at these places of `count`.
    ///
    /// # Errors
    /// For values of a type that it [is not of](Places::is_of).
    pub fn result(self, both: &ArrayRef, count: usize) -> Result<ArrayRef> {
        match (self.result, both.data_type()) {
            (Between::Neither, _) => Ok(both.slice(0, 1)),
            (Between::Mean, _) if count % 2 == 1 => Ok(both.slice(0, 1)),
            (Between::Mean, of @ DataType::Decimal128(..)) => {
                let both = both.as_primitive::<Decimal128Type>();
                let mean = both.value(0).midpoint(both.value(1));
                let mean = PrimitiveArray::<Decimal128Type>::from(vec![mean]);
                Ok(Arc::new(mean.with_data_type(of.clone())))
            }
            (kind, DataType::Float64) => {
                let both = both.as_primitive::<Float64Type>();
                let (low, high) = (both.value(0), both.value(1));
                let found = match self.fraction {
                    Some(fraction) if kind == Between::Line => {
                        between((low, high), fraction, count, self.descending)
                    }
                    _ => (low + high) / 2.0,
                };
                Ok(Arc::new(PrimitiveArray::<Float64Type>::from(vec![found])))
            }
            (_, of) => plan_err!("a quantile between two values of type {of}"),
        }
    }

    /// Whether this is had of values of a type, and Arrow's order of what [`ranked`](Places::ranked) gives is PostgreSQL's.
    pub fn is_of(self, of: &DataType) -> bool {
        match of {
            DataType::Float64 => true,
            DataType::Decimal128(..) => self.result != Between::Line,
            DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Timestamp(TimeUnit::Microsecond, _)
            | DataType::Utf8View => self.result == Between::Neither,
            _ => false,
        }
    }

    /// The values to sort: no NaN has a sign.
    pub fn ranked(self, values: &ArrayRef) -> ArrayRef {
        match values.as_primitive_opt::<Float64Type>() {
            Some(values) => Arc::new(values.unary::<_, Float64Type>(normal)),
            None => Arc::clone(values),
        }
    }
}
