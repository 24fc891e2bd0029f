//! `generate_series` of constants in `from`, as a table, and DuckDB's `range`, which leaves the end out.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::ScalarValue;
use datafusion_expr::{Expr, TableSource, TableType};

use crate::error::{Error, Result};

/// Whole numbers from the first to the last, each a step from the one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Series {
    first: i64,
    last: i64,
    step: i64,
}

impl Series {
    /// The series that a function gives for these arguments: the first number, the end, and the step if it is not one. Of a
    /// `range` of one argument the first is zero.
    ///
    /// # Errors
    /// If they are no whole numbers, or if the step is zero.
    pub(crate) fn of(name: &str, arguments: &[Expr]) -> Result<Series> {
        let unknown = || {
            Error::coded(
                "42883",
                format!("function {name} does not exist in `from` for these arguments"),
            )
        };
        let is_range = name == "range";
        if !is_range && name != "generate_series" {
            return Err(unknown());
        }
        let numbers = arguments.iter().map(|argument| match argument {
            Expr::Literal(value, _) => match value.cast_to(&DataType::Int64) {
                Ok(ScalarValue::Int64(Some(number))) => Ok(number),
                _ => Err(unknown()),
            },
            _ => Err(unknown()),
        });
        let numbers = numbers.collect::<Result<Vec<i64>>>()?;
        let (first, end, step) = match numbers[..] {
            [end] if is_range => (0, end, 1),
            [first, end] => (first, end, 1),
            [first, end, step] => (first, end, step),
            _ => return Err(unknown()),
        };
        if step == 0 {
            return Err(Error::coded("22023", "step size cannot equal zero"));
        }
        Ok(if is_range {
            Series::before(first, end, step)
        } else {
            let last = end;
            Series { first, last, step }
        })
    }

    /// The numbers before `end`.
    fn before(first: i64, end: i64, step: i64) -> Series {
        match end.checked_sub(step.signum()) {
            Some(last) => Series { first, last, step },
            // Nothing is before the least number, and nothing behind the greatest.
            None => Series {
                first: 1,
                last: 0,
                step: 1,
            },
        }
    }

    /// How many numbers there are.
    pub(crate) fn count(&self) -> u64 {
        let (first, last) = (i128::from(self.first), i128::from(self.last));
        let steps = (last - first) / i128::from(self.step);
        let away = (last - first).signum() * i128::from(self.step).signum() < 0;
        if away {
            0
        } else {
            u64::try_from(steps).map_or(u64::MAX, |steps| steps.saturating_add(1))
        }
    }

    /// The numbers from position `from` on, `count` of them at most.
    pub(crate) fn numbers(&self, from: u64, count: u64) -> impl Iterator<Item = i64> + use<> {
        let (first, step) = (i128::from(self.first), i128::from(self.step));
        let end = from.saturating_add(count).min(self.count());
        // All of them lie between two numbers of 64 bits.
        (from..end).map(move |at| (first + step * i128::from(at)) as i64)
    }
}

impl TableSource for Series {
    fn schema(&self) -> SchemaRef {
        let number = Field::new("value", DataType::Int64, false);
        Arc::new(Schema::new(vec![number]))
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_ends_where_the_next_step_would_pass_its_last() {
        let all = |first, last, step| {
            let series = Series { first, last, step };
            let all: Vec<i64> = series.numbers(0, 100).collect();
            assert_eq!(all.len() as u64, series.count().min(100));
            all
        };
        assert_eq!(all(1, 3, 1), [1, 2, 3]);
        assert_eq!(all(1, 8, 3), [1, 4, 7]);
        assert_eq!(all(3, 1, -1), [3, 2, 1]);
        assert_eq!(all(3, 3, -7), [3]);
        assert!(all(3, 1, 1).is_empty());
        assert!(all(1, 3, -1).is_empty());
        assert_eq!(all(i64::MAX - 1, i64::MAX, 1), [i64::MAX - 1, i64::MAX]);
        assert_eq!(all(i64::MIN, i64::MAX, i64::MAX).len(), 3);
        let before = |first, end, step| {
            let series = Series::before(first, end, step);
            series.numbers(0, 100).collect::<Vec<i64>>()
        };
        assert_eq!(before(0, 3, 1), [0, 1, 2]);
        assert_eq!(before(0, 4, 2), [0, 2]);
        assert_eq!(before(0, 5, 2), [0, 2, 4]);
        assert_eq!(before(3, 0, -1), [3, 2, 1]);
        assert!(before(0, 0, 1).is_empty());
        assert!(before(0, i64::MIN, 1).is_empty());
        let series = Series {
            first: 1,
            last: 10,
            step: 1,
        };
        assert_eq!(series.numbers(8, 5).collect::<Vec<_>>(), [9, 10]);
        let whole = Series {
            first: i64::MIN,
            last: i64::MAX,
            step: 1,
        };
        assert_eq!(whole.count(), u64::MAX);
    }
}
