//! All functions, as the planner gets them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion_common::{Result, internal_err};
use datafusion_expr::{Expr, ScalarUDF, ScalarUDFImpl};

use crate::lists::names::MAKE;
use crate::own::Own;
use crate::registry::Registry;
use crate::{
    acl, aggregates, angles, as_of, between_values, binary, bytes, catalog, clock, coalesce,
    concat, convert, cut, dates, decimals, deviations, domains, enums, format, intervals, json,
    lengthened, letters, like, lists, maps, mean, measured, number_texts, numeric, own, places,
    quantiles, read_pattern, regexps, rounding, same, sizes, structs, sum, system, temporal, texts,
    truncate, unknown, widened, windows, wrapped,
};

impl Registry {
    /// DataFusion's functions, and those of this crate, some in the places of the former.
    pub fn all() -> Registry {
        let mut registry = Registry::default();
        for function in datafusion_functions::all_default_functions() {
            registry.add(function);
        }
        for function in datafusion_functions_aggregate::all_default_aggregate_functions() {
            registry.add_aggregate(function);
        }
        for function in datafusion_functions_window::all_default_window_functions() {
            registry.add_window(function);
        }
        register(&mut registry);
        registry
    }
}

/// Adds all functions of this crate, some in the place of DataFusion's, and takes away two of DataFusion's.
fn register(registry: &mut Registry) {
    // It is the same each time.
    let _ = own::READ.set(convert::convert);
    system::begin();
    let truncate = registry.scalar("date_trunc").cloned();
    let alike = ["coalesce", "nullif", "greatest", "least"];
    let alike = alike.map(|name| registry.scalar(name).cloned());
    let rounding = places::NAMES.map(|name| registry.scalar(name).cloned());
    let rounding: Vec<_> = rounding.iter().flatten().map(places::rounding).collect();
    let measured = measured::all(registry).chain(wrapped::all(registry));
    let measured: Vec<_> = measured.chain(letters::all(registry)).collect();
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
        registry.add(function);
    }
    // They are for DataFusion's own reader of files.
    for name in ["file_row_index", "input_file_name"] {
        registry.remove(name);
    }
    register_aggregates(registry);
}

fn register_aggregates(registry: &mut Registry) {
    let aggregates = aggregates::all().into_iter().chain(quantiles::all());
    let aggregates = aggregates.chain(deviations::all(registry));
    for function in aggregates.chain([sum::sum(), mean::mean(), between_values::quantile()]) {
        registry.add_aggregate(function);
    }
    for function in windows::shifts::all(registry) {
        registry.add_window(function);
    }
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
pub fn json_key(value: Expr) -> Result<Expr> {
    Ok(special(json::order::KEY)?.call(vec![value]))
}

/// A function over arrays, structs or JSON that an operator stands for.
///
/// # Errors
/// If there is none of that name: a defect.
pub fn special(name: &str) -> Result<Arc<ScalarUDF>> {
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
