//! Arguments of functions that are arrays, structs, uuids, enums or JSON, or become so: those of functions whose arguments have one
//! type are read as one, and those of others are cast as in PostgreSQL.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result, plan_err};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::{Expr, ExprSchemable, ScalarUDF, TypeSignature};
use table::{JsonKind, is_enum, json_kind, map_parts};

use crate::functions::convert::{at_places, conversion};
use crate::functions::enums::place;
use crate::functions::lists::types::{has, is_map};
use crate::functions::unknown;
use crate::messages::types::type_name;
use crate::optimize::expressions::{compared_with, fitted, special_of};
use crate::optimize::mixed;

/// Functions whose arguments have one type.
const ALIKE: [&str; 4] = ["coalesce", "nullif", "greatest", "least"];

/// A call with its arguments as its function takes them.
///
/// # Errors
/// If they do not go together.
pub(super) fn arguments(function: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let ScalarFunction { func, args } = function;
    let is_alike = ALIKE.contains(&func.name());
    if is_alike {
        mixed::arguments(func.name(), &args, schema)?;
    }
    if let Some(args) = unknown::arguments(&func, &args, schema)? {
        return Ok(Transformed::yes(func.call(args)));
    }
    if is_alike && let Some(to) = special_of(&args, schema)? {
        return of_one_type(func, args, &to, schema).map(Transformed::yes);
    }
    let given: Option<Vec<DataType>> = args.iter().map(|arg| arg.get_type(schema).ok()).collect();
    let given = given.filter(|types| !types.is_empty());
    let own = func.signature().type_signature == TypeSignature::UserDefined;
    let wanted = given
        .filter(|_| own)
        .and_then(|given| Some((func.coerce_types(&given).ok()?, given)));
    let Some((wanted, given)) = wanted else {
        return Ok(Transformed::no(Expr::ScalarFunction(ScalarFunction {
            func,
            args,
        })));
    };
    let mut changed = false;
    let mut all = Vec::with_capacity(args.len());
    for ((arg, from), to) in args.into_iter().zip(&given).zip(&wanted) {
        let cast = if from == to {
            None
        } else {
            conversion(arg.clone(), from, to, true)?
        };
        changed |= cast.is_some();
        all.push(cast.unwrap_or(arg));
    }
    let call = Expr::ScalarFunction(ScalarFunction { func, args: all });
    Ok(if changed {
        Transformed::yes(call)
    } else {
        Transformed::no(call)
    })
}

/// A call whose arguments are all read as of type `to`.
///
/// # Errors
/// If one is of another type, or they cannot be compared where they are.
fn of_one_type(
    func: Arc<ScalarUDF>,
    args: Vec<Expr>,
    to: &DataType,
    schema: &DFSchema,
) -> Result<Expr> {
    let compares = func.name() != "coalesce";
    if compares {
        comparable(func.name(), to)?;
    }
    let by_place = compares && is_enum(to);
    let fit = if compares && !by_place {
        compared_with
    } else {
        fitted
    };
    let args = args.into_iter().map(|arg| fit(arg, to, schema));
    let args = args.collect::<Result<Vec<_>>>()?;
    if by_place {
        let args = args.into_iter().map(place).collect();
        return Ok(at_places(func.call(args), to));
    }
    Ok(Expr::ScalarFunction(ScalarFunction { func, args }))
}

/// That values of a type are compared by a function: `json` is not, and maps are not more than equal.
fn comparable(function: &str, ty: &DataType) -> Result<()> {
    let name = type_name(ty);
    let is_nullif = function == "nullif";
    let is_text = |ty: &DataType| json_kind(ty) == Some(JsonKind::Text);
    if is_text(ty) && is_nullif {
        return plan_err!("operator does not exist: {name} = {name}");
    }
    if has(ty, is_text) && is_nullif {
        return plan_err!("could not identify an equality operator for type json");
    }
    // Of the parts of maps only plain ones are compared.
    let is_deep = map_parts(ty).is_none_or(|(_, value)| has(value, is_map_or_json));
    if is_nullif && has(ty, is_map) && is_deep {
        return plan_err!("not supported: comparisons of {name}");
    }
    if has(ty, is_text) || has(ty, is_map) && !is_nullif {
        return plan_err!("could not identify a comparison function for type {name}");
    }
    Ok(())
}

fn is_map_or_json(ty: &DataType) -> bool {
    is_map(ty) || json_kind(ty).is_some()
}
