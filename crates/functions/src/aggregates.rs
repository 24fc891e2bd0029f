//! `mode`, `arg_max` and `arg_min`.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion_common::{Result, ScalarValue, internal_err, plan_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::format_state_name;
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

pub(super) fn all() -> Vec<Arc<AggregateUDF>> {
    let extreme = |name, wanted| {
        Arc::new(AggregateUDF::from(Extreme {
            name,
            wanted,
            signature: Signature::any(2, Volatility::Immutable),
        }))
    };
    vec![
        extreme("arg_max", Ordering::Greater),
        extreme("arg_min", Ordering::Less),
        Arc::new(AggregateUDF::from(Mode {
            signature: Signature::any(1, Volatility::Immutable),
        })),
    ]
}

/// One of these by its name.
///
/// # Errors
/// If there is none: a defect.
pub fn extreme_of(name: &str) -> Result<Arc<AggregateUDF>> {
    match all().into_iter().find(|own| own.name() == name) {
        Some(own) => Ok(own),
        None => internal_err!("there is no aggregate {name}"),
    }
}

fn named(args: &StateFieldsArgs, name: &str, data_type: DataType) -> FieldRef {
    Arc::new(Field::new(
        format_state_name(args.name, name),
        data_type,
        true,
    ))
}

/// The order of two values of one type.
pub(super) fn compared(left: &ScalarValue, right: &ScalarValue) -> Ordering {
    left.partial_cmp(right).unwrap_or(Ordering::Equal)
}

/// `arg_max(value, key)`: the value with the greatest key; `arg_min`: with the least. Rows where either is NULL do not
/// count. Of several values with that key the least is taken, so that the order of rows does not matter.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    name: &'static str,
    wanted: Ordering,
    signature: Signature,
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [value, _] => Ok(value.clone()),
            _ => plan_err!("{} takes a value and a key", self.name),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let types: Vec<DataType> = args
            .input_fields
            .iter()
            .map(|field| field.data_type().clone())
            .collect();
        Ok(["value", "key"]
            .into_iter()
            .zip(types)
            .map(|(name, ty)| named(&args, name, ty))
            .collect())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let [value, key] = args.expr_fields else {
            return plan_err!("{} takes a value and a key", self.name);
        };
        Ok(Box::new(Best {
            wanted: self.wanted,
            value: ScalarValue::try_from(value.data_type())?,
            key: ScalarValue::try_from(key.data_type())?,
        }))
    }
}

/// The best row so far; the key is NULL while there is none.
#[derive(Debug)]
struct Best {
    wanted: Ordering,
    value: ScalarValue,
    key: ScalarValue,
}

impl Accumulator for Best {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (values, keys) = (&values[0], &values[1]);
        for row in 0..keys.len() {
            if keys.is_null(row) || values.is_null(row) {
                continue;
            }
            let key = ScalarValue::try_from_array(keys, row)?;
            let order = if self.key.is_null() {
                self.wanted
            } else {
                compared(&key, &self.key)
            };
            if order != self.wanted && order != Ordering::Equal {
                continue;
            }
            let value = ScalarValue::try_from_array(values, row)?;
            if order == self.wanted || compared(&value, &self.value) == Ordering::Less {
                self.key = key;
                self.value = value;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.value.size() + self.key.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.value.clone(), self.key.clone()])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}

/// `mode(value)`: the most frequent value; of several the least, or the first in the order that is asked for.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Mode {
    signature: Signature,
}

impl AggregateUDFImpl for Mode {
    fn name(&self) -> &str {
        "mode"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [value] => Ok(value.clone()),
            _ => plan_err!("mode takes one value"),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let value = args.return_type().clone();
        let list = |ty| DataType::List(Arc::new(Field::new_list_field(ty, true)));
        Ok(vec![
            named(&args, "values", list(value)),
            named(&args, "counts", list(DataType::Int64)),
        ])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Counts {
            of: args.return_type().clone(),
            counts: HashMap::new(),
            bytes: 0,
            distinct: args.is_distinct,
            descending: args
                .order_bys
                .first()
                .is_some_and(|order| order.options.descending),
        }))
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }
}

/// How often each value occurred.
#[derive(Debug)]
struct Counts {
    of: DataType,
    counts: HashMap<ScalarValue, i64>,
    /// Memory of the values.
    bytes: usize,
    distinct: bool,
    /// Whether the greatest of the most frequent values is wanted.
    descending: bool,
}

impl Counts {
    fn add(&mut self, value: ScalarValue, times: i64) {
        let bytes = &mut self.bytes;
        let count = self.counts.entry(value).or_insert_with_key(|value| {
            *bytes += value.size() + size_of::<(ScalarValue, i64)>();
            0
        });
        *count = if self.distinct { 1 } else { *count + times };
    }
}

impl Accumulator for Counts {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = &values[0];
        for row in 0..values.len() {
            if !values.is_null(row) {
                self.add(ScalarValue::try_from_array(values, row)?, 1);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let better = |a: &(&ScalarValue, &i64), b: &(&ScalarValue, &i64)| {
            let least = || {
                if self.descending {
                    compared(a.0, b.0)
                } else {
                    compared(b.0, a.0)
                }
            };
            a.1.cmp(b.1).then_with(least)
        };
        match self.counts.iter().max_by(better) {
            Some((value, _)) => Ok(value.clone()),
            None => ScalarValue::try_from(&self.of),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (values, counts): (Vec<_>, Vec<_>) = self
            .counts
            .iter()
            .map(|(value, count)| (value.clone(), ScalarValue::Int64(Some(*count))))
            .unzip();
        Ok(vec![
            ScalarValue::List(ScalarValue::new_list_nullable(&values, &self.of)),
            ScalarValue::List(ScalarValue::new_list_nullable(&counts, &DataType::Int64)),
        ])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (values, counts) = (states[0].as_list::<i32>(), states[1].as_list::<i32>());
        for (values, counts) in values.iter().zip(counts.iter()) {
            let (Some(values), Some(counts)) = (values, counts) else {
                continue;
            };
            let counts = counts.as_primitive::<Int64Type>();
            for row in 0..values.len() {
                self.add(
                    ScalarValue::try_from_array(&values, row)?,
                    counts.value(row),
                );
            }
        }
        Ok(())
    }
}
