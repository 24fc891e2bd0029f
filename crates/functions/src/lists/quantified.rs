//! `x = any(array)`, `x < all(array)`.

use std::cmp::Ordering;
use std::hash::Hash;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue, plan_err};
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, in_list, lit,
};
use messages::types::{standard_name, type_name};
use table::{JsonKind, json_kind};

use crate::arguments::is_text;
use crate::convert::convert;
use crate::lists::compare::comparator;
use crate::lists::types::{
    dimensions, is_list, item, list_of, lists, plain, quoted_beside, range, together,
};
use crate::number_types;

/// The operators that may stand before `any` and `all` of an array, each with the names of its functions.
const OPERATORS: [(&str, Operator, &str, &str); 6] = [
    ("=", Operator::Eq, "any =", "all ="),
    ("<>", Operator::NotEq, "any <>", "all <>"),
    ("<", Operator::Lt, "any <", "all <"),
    ("<=", Operator::LtEq, "any <=", "all <="),
    (">", Operator::Gt, "any >", "all >"),
    (">=", Operator::GtEq, "any >=", "all >="),
];

/// The name of the function that compares by an operator with `all` items of an array, or any; none if there is none.
pub fn called(operator: &str, all: bool) -> Option<&'static str> {
    let known = OPERATORS.iter().find(|(text, ..)| *text == operator);
    known.map(|(_, _, any, of_all)| if all { *of_all } else { *any })
}

/// Whether a function of this name compares with the items of an array by an operator.
pub fn is_quantified(name: &str) -> bool {
    OPERATORS
        .iter()
        .any(|(_, _, any, all)| [*any, *all].contains(&name))
}

/// The functions, which take a value and an array.
pub(crate) fn quantified() -> Vec<ScalarUDF> {
    let of = |name, op, all| {
        ScalarUDF::from(Quantified {
            name,
            op,
            all,
            signature: Signature::user_defined(Volatility::Immutable),
        })
    };
    let both = OPERATORS
        .iter()
        .flat_map(|(_, op, any, all)| [of(*any, *op, false), of(*all, *op, true)]);
    both.collect()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Quantified {
    name: &'static str,
    op: Operator,
    all: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Quantified {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [value, array] = types else {
            return plan_err!("a comparison has two sides");
        };
        if is_text(array) && *array != DataType::Null {
            // A constant, which is read as an array when it runs.
            return Ok(vec![plain(value), DataType::Utf8View]);
        }
        let Some(own) = item(array).filter(|_| dimensions(array) == 1) else {
            return if is_list(array) {
                plan_err!("not supported: any and all of an array with more than one dimension")
            } else {
                plan_err!(
                    "op ANY/ALL (array) requires array on right side, found {}",
                    type_name(array)
                )
            };
        };
        let both = match value {
            DataType::Null => plain(own),
            // A constant, which is read as an item when it runs.
            value if is_text(value) && !is_text(own) => {
                return Ok(vec![DataType::Utf8View, plain(array)]);
            }
            value => match number_types::beside(value, own) {
                Some(floats) => floats,
                None => match together(&[value.clone(), own.clone()]) {
                    Ok(both) => both,
                    Err(_) => {
                        return plan_err!(
                            "operator does not exist: {} {} {}",
                            standard_name(value),
                            self.symbol(),
                            standard_name(own)
                        );
                    }
                },
            },
        };
        if json_kind(&both) == Some(JsonKind::Text) {
            let (name, symbol) = (type_name(&both), self.symbol());
            return plan_err!("operator does not exist: {name} {symbol} {name}");
        }
        Ok(vec![both.clone(), list_of(both)])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    /// `x = any('{1, 2}')` is `x in (1, 2)`, and `x <> all` is `x not in`: those look a value up instead of comparing it with
    /// each item, and scans know them.
    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let negated = match (self.op, self.all) {
            (Operator::Eq, false) => false,
            (Operator::NotEq, true) => true,
            _ => return Ok(ExprSimplifyResult::Original(args)),
        };
        let [value, Expr::Literal(array, _)] = &args[..] else {
            return Ok(ExprSimplifyResult::Original(args));
        };
        let Some(items) = literals(array, &info.get_data_type(value)?) else {
            return Ok(ExprSimplifyResult::Original(args));
        };
        let found = if items.is_empty() {
            lit(negated)
        } else {
            in_list(value.clone(), items, negated)
        };
        Ok(ExprSimplifyResult::Simplified(found))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let constant = args.args.iter().all(scalar);
        let rows = if constant { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|arg| arg.to_array(rows));
        let arrays = arrays.collect::<Result<Vec<ArrayRef>>>()?;
        let (mut values, mut items) = (arrays[0].clone(), arrays[1].clone());
        let array = item(items.data_type());
        let own = plain(array.unwrap_or(values.data_type()));
        if array.is_none() || plain(values.data_type()) != own {
            // One of them is a constant in quotes.
            let both = quoted_beside(&own);
            values = convert(&values, &both)?;
            items = convert(&items, &list_of(both))?;
        }
        let hits = self.hits(&values, &items, rows)?;
        if constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(
                hits.is_valid(0).then(|| hits.value(0)),
            )));
        }
        Ok(ColumnarValue::Array(Arc::new(hits)))
    }
}

/// The items of a constant array as constants; none if their values are not of this type, or equal in another way than those
/// of a list.
fn literals(array: &ScalarValue, of: &DataType) -> Option<Vec<Expr>> {
    let is_plain = of.is_integer()
        || matches!(
            of,
            DataType::Utf8View | DataType::Boolean | DataType::Date32 | DataType::Timestamp(..)
        );
    if !is_plain || array.is_null() {
        return None;
    }
    let array = array.to_array().ok()?;
    let array = if is_list(array.data_type()) {
        array
    } else {
        convert(&array, &list_of(quoted_beside(of))).ok()?
    };
    if plain(item(array.data_type())?) != *of {
        return None;
    }
    let own = lists(&array);
    let items = own.values();
    let literal = |at| {
        Some(Expr::Literal(
            ScalarValue::try_from_array(items, at).ok()?,
            None,
        ))
    };
    range(own, 0).map(literal).collect()
}

impl Quantified {
    /// The operator as statements write it.
    fn symbol(&self) -> &'static str {
        let own = OPERATORS.iter().find(|(_, op, ..)| *op == self.op);
        own.map_or("=", |(text, ..)| *text)
    }

    fn hits(&self, values: &ArrayRef, arrays: &ArrayRef, rows: usize) -> Result<BooleanArray> {
        let own = lists(arrays);
        let items = own.values();
        let compare = comparator(values, items)?;
        let holds = |order: Ordering| match self.op {
            Operator::Eq => order.is_eq(),
            Operator::NotEq => order.is_ne(),
            Operator::Lt => order.is_lt(),
            Operator::LtEq => order.is_le(),
            Operator::Gt => order.is_gt(),
            _ => order.is_ge(),
        };
        let of = |row: usize| {
            if own.is_null(row) {
                return None;
            }
            let mut unknown = false;
            for at in range(own, row) {
                if values.is_null(row) || items.is_null(at) {
                    unknown = true;
                } else if holds(compare(row, at)) != self.all {
                    return Some(!self.all);
                }
            }
            (!unknown).then_some(self.all)
        };
        Ok((0..rows).map(of).collect())
    }
}
