//! Functions beside DataFusion's, and instead of some of them: scalar functions and aggregates.
//!
//! All are functions of DataFusion, which Atoll's own engine calls as any other, so that all executors give the same
//! answers. A scalar function is an [`Own`](own::Own): a name, types, and a plain function over arrays.
//!
//! Uses `error`, `messages` and `names`.

mod aggregates;
pub(crate) mod arguments;
pub(crate) mod bytes;
pub(crate) mod casts;
mod catalog;
mod clock;
mod dates;
pub(crate) mod descriptions;
mod format;
pub(crate) mod intervals;
mod numeric;
mod own;
mod patterns;
mod quantiles;
mod read_pattern;
pub(crate) mod sequences;
pub(crate) mod single;
pub(crate) mod sum;
mod system;
mod texts;
mod truncate;
pub(crate) mod user;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::ScalarUDF;

/// Makes all functions known to statements.
pub(crate) fn register(state: &mut SessionState) -> Result<()> {
    let truncate = state.scalar_functions().get("date_trunc").cloned();
    let scalars = texts::all()
        .into_iter()
        .chain(format::all())
        .chain(bytes::all())
        .chain(numeric::all())
        .chain(intervals::all())
        .chain(dates::all())
        .chain(read_pattern::all())
        .chain(system::all())
        .chain(catalog::all())
        .map(|own| Arc::new(ScalarUDF::from(own)))
        .chain(truncate.map(|inner| truncate::truncated(&inner)))
        .chain([clock::now()]);
    for function in scalars {
        state.register_udf(function)?;
    }
    let aggregates = aggregates::all().into_iter().chain(quantiles::all());
    for function in aggregates.chain([sum::sum()]) {
        state.register_udaf(function)?;
    }
    Ok(())
}
