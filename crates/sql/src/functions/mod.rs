//! Functions of ours, beside DataFusion's and instead of some of them.
//!
//! Each is a name, what it takes, what it returns, and a plain function over arrays; [`Own`] makes a function of
//! DataFusion of that, which our engine calls as any other, so that all executors give the same answers.

mod aggregates;
mod casts;
mod clock;
mod dates;
mod format;
mod intervals;
mod patterns;
mod quantiles;
mod system;
mod texts;
mod truncate;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

pub(crate) use crate::functions::casts::date_to_nanoseconds;
pub(crate) use crate::functions::casts::nanoseconds_or_end;
pub(crate) use crate::functions::casts::read_timestamp;
pub(crate) use crate::functions::casts::round_half_even;
pub(crate) use crate::functions::intervals::interval_times;
pub(crate) use crate::functions::intervals::span;

/// The one time zone that timestamps with one are kept in.
pub(crate) const UTC: &str = "+00:00";

/// Makes all of them known to statements.
pub(crate) fn register(state: &mut SessionState) -> Result<()> {
    let truncate = state.scalar_functions().get("date_trunc").cloned();
    let scalars = texts::all()
        .into_iter()
        .chain(format::all())
        .chain(dates::all())
        .chain(system::all())
        .map(|own| Arc::new(ScalarUDF::from(own)))
        .chain(truncate.map(|inner| truncate::truncated(&inner)))
        .chain([clock::now()]);
    for function in scalars {
        state.register_udf(function)?;
    }
    for function in aggregates::all().into_iter().chain(quantiles::all()) {
        state.register_udaf(function)?;
    }
    Ok(())
}

/// A function of ours.
#[derive(Debug)]
pub(crate) struct Own {
    name: &'static str,
    aliases: Vec<String>,
    signature: Signature,
    /// The types that it wants arguments of the given types to have; an error that says what it takes.
    takes: fn(&[DataType]) -> Result<Vec<DataType>>,
    /// What it returns for arguments of the types that it takes.
    returns: fn(&[DataType]) -> Result<DataType>,
    run: Run,
}

/// Computes a function for arrays of one length, which is given for calls without arguments.
type Run = fn(&[ArrayRef], usize) -> Result<ArrayRef>;

impl Own {
    fn new(
        name: &'static str,
        takes: fn(&[DataType]) -> Result<Vec<DataType>>,
        returns: fn(&[DataType]) -> Result<DataType>,
        run: Run,
    ) -> Own {
        Own {
            name,
            aliases: Vec::new(),
            signature: Signature::user_defined(Volatility::Immutable),
            takes,
            returns,
            run,
        }
    }

    /// Also called `name`.
    fn or(mut self, name: &str) -> Own {
        self.aliases.push(name.to_string());
        self
    }

    /// Takes no arguments, and has one value during a statement.
    fn constant(name: &'static str, returns: fn(&[DataType]) -> Result<DataType>, run: Run) -> Own {
        Own {
            signature: Signature::nullary(Volatility::Stable),
            ..Own::new(name, |types| Ok(types.to_vec()), returns, run)
        }
    }
}

impl PartialEq for Own {
    fn eq(&self, other: &Own) -> bool {
        self.name == other.name
    }
}

impl Eq for Own {}

impl Hash for Own {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Own {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        (self.takes)(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        (self.returns)(types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args
            .args
            .iter()
            .all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let arrays: Vec<ArrayRef> = args
            .args
            .iter()
            .map(|arg| arg.to_array(rows))
            .collect::<Result<_>>()?;
        let found = (self.run)(&arrays, rows)?;
        let wanted = args.return_field.data_type();
        let found = match found.data_type() == wanted {
            true => found,
            false => cast(&found, wanted)?,
        };
        match constant {
            true => Ok(ColumnarValue::Scalar(
                datafusion::common::ScalarValue::try_from_array(&found, 0)?,
            )),
            false => Ok(ColumnarValue::Array(found)),
        }
    }
}

/// What texts are returned as.
const TEXT: DataType = DataType::Utf8View;

fn is_text(ty: &DataType) -> bool {
    matches!(
        ty,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null
    )
}

/// As many texts as `count`, each as `Utf8`.
fn texts(
    name: &str,
    types: &[DataType],
    count: std::ops::RangeInclusive<usize>,
) -> Result<Vec<DataType>> {
    if !count.contains(&types.len()) {
        return plan_err!(
            "{name} takes {} arguments, found {}",
            counted(&count),
            types.len()
        );
    }
    match types.iter().position(|ty| !is_text(ty)) {
        Some(at) => plan_err!(
            "{name} takes texts, but its argument {} is {}; cast it",
            at + 1,
            crate::types::type_name(&types[at])
        ),
        None => Ok(vec![DataType::Utf8; types.len()]),
    }
}

fn counted(count: &std::ops::RangeInclusive<usize>) -> String {
    match (count.start(), count.end()) {
        (a, b) if a == b => a.to_string(),
        (a, b) => format!("{a} to {b}"),
    }
}

/// The texts of an argument that was taken as one.
fn strings(array: &ArrayRef) -> Result<StringArray> {
    let array = cast(array, &DataType::Utf8)?;
    Ok(StringArray::from(array.to_data()))
}
