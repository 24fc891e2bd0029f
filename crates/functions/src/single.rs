//! The value of the only row of a group: what a subquery that stands for a value must be.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion_common::{Result, ScalarValue, plan_err};
use datafusion_expr::expr::AggregateFunction;
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::format_state_name;
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Expr, Signature, Volatility};
use messages::Error;

/// The value of the only row, NULL if there is none. Statements cannot name the function.
///
/// # Errors
/// When it runs: if a group has a second row.
pub fn single(value: Expr) -> Expr {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
        Arc::new(AggregateUDF::from(Single {
            signature: Signature::any(1, Volatility::Immutable),
        }))
    });
    let function = Arc::clone(&FUNCTION);
    Expr::AggregateFunction(AggregateFunction::new_udf(
        function,
        vec![value],
        false,
        None,
        Vec::new(),
        None,
    ))
}

/// The value whose only row is asked for, if `e` is such an aggregate.
pub fn of_single(e: &Expr) -> Option<&Expr> {
    match e {
        Expr::Alias(alias) => of_single(&alias.expr),
        Expr::AggregateFunction(call) if call.func.inner().downcast_ref::<Single>().is_some() => {
            call.params
                .args
                .first()
                .filter(|_| call.params.filter.is_none())
        }
        _ => None,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Single {
    signature: Signature,
}

impl AggregateUDFImpl for Single {
    fn name(&self) -> &str {
        "single row"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [value] => Ok(value.clone()),
            _ => plan_err!("a subquery that stands for a value has one column"),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let field = |name, ty| Arc::new(Field::new(format_state_name(args.name, name), ty, true));
        Ok(vec![
            field("value", args.return_type().clone()),
            field("rows", DataType::Int64),
        ])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Row {
            value: ScalarValue::try_from(args.return_type())?,
            rows: 0,
        }))
    }
}

/// The row so far.
#[derive(Debug)]
struct Row {
    value: ScalarValue,
    rows: i64,
}

impl Row {
    fn take(&mut self, values: &ArrayRef, row: usize) -> Result<()> {
        if self.rows > 0 {
            return Err(Error::coded(
                "21000",
                "more than one row returned by a subquery used as an expression",
            )
            .into());
        }
        self.rows = 1;
        self.value = ScalarValue::try_from_array(values, row)?;
        Ok(())
    }
}

impl Accumulator for Row {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = &values[0];
        // The second row fails.
        for row in 0..values.len().min(2) {
            self.take(values, row)?;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.value.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.value.clone(), ScalarValue::from(self.rows)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let rows = states[1].as_primitive::<Int64Type>();
        for row in 0..rows.len() {
            if rows.value(row) > 0 {
                self.take(&states[0], row)?;
            }
        }
        Ok(())
    }
}
