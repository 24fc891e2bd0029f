//! Functions beside DataFusion's, and instead of some of them: scalar functions and aggregates.
//!
//! All are functions of DataFusion, which Atoll's own engine calls as any other, so that all executors give the same
//! answers. A scalar function is an [`Own`](own::Own): a name, types, and a plain function over arrays.
//!
//! Uses `error`, `messages` and `names`.

pub(crate) mod acl;
pub(crate) mod advisory;
pub(crate) mod aggregates;
mod angles;
pub(crate) mod arguments;
mod as_of;
mod between_values;
mod binary;
pub(crate) mod bytes;
pub(crate) mod casts;
pub(crate) mod catalog;
mod chosen;
pub(crate) mod clock;
mod coalesce;
mod concat;
pub(crate) mod convert;
pub(crate) mod cut;
pub(crate) mod dates;
pub(crate) mod decimals;
pub(crate) mod descriptions;
mod deviations;
pub(crate) mod domains;
pub(crate) mod enums;
mod float_sums;
mod format;
pub(crate) mod intervals;
mod items;
pub(crate) mod json;
mod lengthened;
mod letters;
pub(crate) mod like;
pub(crate) mod like_parts;
pub(crate) mod lists;
pub(crate) mod maps;
mod mean;
mod measured;
mod number_pattern;
mod number_reading;
mod number_texts;
pub(crate) mod number_types;
mod number_writing;
mod numeric;
pub(crate) mod object_kinds;
pub(crate) mod objects;
pub(crate) mod one_zero;
pub(crate) mod operands;
mod own;
mod pattern_parts;
mod patterns;
mod places;
pub(crate) mod present;
pub(crate) mod privileges;
mod quantiles;
mod read_dates;
mod read_pattern;
pub(crate) mod regexps;
pub(crate) mod regular;
pub(crate) mod rounding;
pub(crate) mod same;
pub(crate) mod sequences;
pub(crate) mod settings;
pub(crate) mod single;
mod sizes;
mod span_patterns;
pub(crate) mod structs;
pub(crate) mod sum;
pub(crate) mod system;
pub(crate) mod temporal;
mod texts;
mod truncate;
pub(crate) mod unknown;
pub(crate) mod user;
pub(crate) mod uuid;
pub(crate) mod widened;
pub(crate) mod windows;
mod wrapped;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::common::{Result, internal_err};
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::{Expr, ScalarUDF, ScalarUDFImpl};

use crate::functions::lists::names::MAKE;
use crate::functions::own::Own;

/// Makes all functions known to statements.
pub(crate) fn register(state: &mut SessionState) -> Result<()> {
    // It is the same each time.
    let _ = own::READ.set(convert::convert);
    system::begin();
    let truncate = state.scalar_functions().get("date_trunc").cloned();
    let alike = ["coalesce", "nullif", "greatest", "least"];
    let alike = alike.map(|name| state.scalar_functions().get(name).cloned());
    let rounding = places::NAMES.map(|name| state.scalar_functions().get(name).cloned());
    let rounding: Vec<_> = rounding.iter().flatten().map(places::rounding).collect();
    let measured = measured::all(state).chain(wrapped::all(state));
    let measured: Vec<_> = measured.chain(letters::all(state)).collect();
    let scalars = texts::all()
        .into_iter()
        .chain(format::all())
        .chain(lengthened::all())
        .chain(cut::all())
        .chain(bytes::all())
        .chain(binary::all())
        .chain(angles::all())
        .chain(as_of::all())
        .chain(numeric::all())
        .chain([decimals::bare::function()])
        .chain(number_texts::all())
        .chain(domains::all())
        .chain(regexps::all())
        .chain(concat::all())
        .chain(intervals::all())
        .chain(dates::all())
        .chain(temporal::make::all())
        .chain(temporal::shift::all())
        .chain(read_pattern::all())
        .chain(rounding::all())
        .chain(system::all())
        .chain(catalog::all())
        .chain(acl::all())
        .chain(sizes::all())
        .chain(like::all())
        .chain(lists::all())
        .chain(json::all())
        .chain(structs::all())
        .chain(maps::all())
        .chain(windows::all())
        .chain(enums::all())
        .map(scalar)
        .chain(truncate.map(|inner| truncate::truncated(&inner)))
        .chain(
            alike
                .iter()
                .flatten()
                .map(coalesce::alike)
                .map(unknown::beside),
        )
        .chain(rounding)
        .chain(measured)
        .chain(widened::all())
        .chain([clock::now(), temporal::extract::date_part(), same::same()])
        .chain(clock::going_on())
        .chain(lists::quantified().into_iter().map(Arc::new))
        .chain(structs::named())
        .chain([lists::records::function()]);
    for function in scalars {
        state.register_udf(function)?;
    }
    // They are for DataFusion's own reader of files.
    for name in ["file_row_index", "input_file_name"] {
        state.deregister_udf(name)?;
    }
    register_aggregates(state)
}

fn register_aggregates(state: &mut SessionState) -> Result<()> {
    let aggregates = aggregates::all().into_iter().chain(quantiles::all());
    let aggregates = aggregates.chain(deviations::all(state));
    for function in aggregates.chain([sum::sum(), mean::mean(), between_values::quantile()]) {
        state.register_udaf(function)?;
    }
    for function in windows::shifts::all(state) {
        state.register_udwf(function)?;
    }
    Ok(())
}

/// A function of this crate as one of DataFusion's.
fn scalar(own: Own) -> Arc<ScalarUDF> {
    let of_items = own.name() == MAKE;
    let function = Arc::new(ScalarUDF::from(own));
    if of_items {
        unknown::beside(function)
    } else {
        function
    }
}

/// What stands for a value of `jsonb` where it is compared.
///
/// # Errors
/// None: there is the function.
pub(crate) fn json_key(value: Expr) -> Result<Expr> {
    Ok(special(json::order::KEY)?.call(vec![value]))
}

/// A function over arrays, structs or JSON that an operator stands for.
///
/// # Errors
/// If there is none of that name: a defect.
pub(crate) fn special(name: &str) -> Result<Arc<ScalarUDF>> {
    static ALL: LazyLock<HashMap<String, Arc<ScalarUDF>>> = LazyLock::new(|| {
        let all = lists::all().into_iter().chain(json::all());
        let all = all.chain(structs::all()).chain(maps::all());
        let all = all.map(scalar).chain(structs::named());
        let all = all.chain([lists::records::function()]);
        all.map(|function| (function.name().to_string(), function))
            .collect()
    });
    match ALL.get(name) {
        Some(function) => Ok(Arc::clone(function)),
        None => internal_err!("there is no function {name}"),
    }
}
