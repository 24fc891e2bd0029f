//! A scalar function as a name, the types that it takes and returns, and a plain function over arrays.

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use arrow::array::{Array, ArrayRef};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion_common::{Result, internal_err};
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use crate::arguments::is_text;
use crate::lists::types::is_special;
use crate::present::Memory;
use crate::temporal::local::Local;

/// A scalar function of this crate.
#[derive(Debug)]
pub struct Own {
    name: &'static str,
    aliases: Vec<String>,
    signature: Signature,
    /// The types to which arguments of the given types are cast; an error if it does not take them.
    takes: fn(&[DataType]) -> Result<Vec<DataType>>,
    /// The type that it returns for arguments of these types.
    returns: fn(&[DataType]) -> Result<DataType>,
    run: Run,
    /// What a call with these arguments is simplified to, if it is.
    simplify: Option<Simplify>,
    /// Whether a constant comes as an array of one value, and not of one for each row.
    single_constants: bool,
}

/// The simpler form of a call with these arguments.
type Simplify = fn(Vec<Expr>) -> Result<ExprSimplifyResult>;

/// Computes a function over arrays of one length, but for [constants of one value](Own::with_single_constants). The length is the
/// second argument, for calls without arrays.
type Run = fn(&[ArrayRef], usize) -> Result<ArrayRef>;

impl Own {
    pub(super) fn new(
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
            simplify: None,
            single_constants: false,
        }
    }

    /// Lets the function have each argument that is a constant as an array of one value, however many rows there are.
    pub(super) fn with_single_constants(mut self) -> Own {
        self.single_constants = true;
        self
    }

    /// Adds what calls are simplified to by the optimiser.
    pub(super) fn simplified(mut self, simplify: Simplify) -> Own {
        self.simplify = Some(simplify);
        self
    }

    /// Adds `name` as another name.
    pub(super) fn or(mut self, name: &str) -> Own {
        self.aliases.push(name.to_string());
        self
    }

    /// A function without arguments that has one value during a statement.
    pub(super) fn constant(
        name: &'static str,
        returns: fn(&[DataType]) -> Result<DataType>,
        run: Run,
    ) -> Own {
        Own {
            signature: Signature::nullary(Volatility::Stable),
            ..Own::new(name, |types| Ok(types.to_vec()), returns, run)
        }
    }
}

/// What reads texts as values of another type: it knows all functions, and so is told to them.
pub(super) static READ: OnceLock<fn(&ArrayRef, &DataType) -> Result<ArrayRef>> = OnceLock::new();

/// Whether a text is read as an array, a uuid or JSON when the function runs: the planner knows no such cast.
fn is_read(given: &DataType, wanted: &DataType) -> bool {
    is_text(given) && *given != DataType::Null && is_special(wanted)
}

impl Own {
    /// The types that it takes in place of these, if it [reads](is_read) one of them.
    fn read(&self, types: &[DataType]) -> Option<Vec<DataType>> {
        if !types.iter().any(is_text) {
            return None;
        }
        let wanted = (self.takes)(types).ok()?;
        let mut pairs = types.iter().zip(&wanted);
        pairs
            .any(|(given, own)| is_read(given, own))
            .then_some(wanted)
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
        let mut wanted = (self.takes)(types)?;
        for (own, given) in wanted.iter_mut().zip(types) {
            if is_read(given, own) {
                *own = given.clone();
            }
        }
        Ok(wanted)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match self.read(types) {
            Some(wanted) => (self.returns)(&wanted),
            None => (self.returns)(types),
        }
    }

    fn simplify(&self, args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        match self.simplify {
            Some(simplify) => simplify(args),
            None => Ok(ExprSimplifyResult::Original(args)),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args
            .args
            .iter()
            .all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let local = Local::of(&args.config_options);
        let array = |arg: &ColumnarValue| match arg {
            ColumnarValue::Scalar(value) if self.single_constants => value.to_array(),
            arg => arg.to_array(rows),
        };
        let arrays = args.args.iter().map(array);
        let mut arrays = arrays.collect::<Result<Vec<ArrayRef>>>()?;
        let types: Vec<DataType> = arrays.iter().map(|a| a.data_type().clone()).collect();
        if let Some(wanted) = self.read(&types) {
            for (array, (given, own)) in arrays.iter_mut().zip(types.iter().zip(&wanted)) {
                if is_read(given, own) {
                    *array = match READ.get() {
                        Some(read) => local.within(|| read(array, own))?,
                        None => return internal_err!("texts are not read yet"),
                    };
                }
            }
        }
        let run = || local.within(|| (self.run)(&arrays, rows));
        let found = Memory::within(&args.config_options, run)?;
        let wanted = args.return_field.data_type();
        let found = if found.data_type() == wanted {
            found
        } else {
            cast(&found, wanted)?
        };
        if constant {
            Ok(ColumnarValue::Scalar(
                datafusion_common::ScalarValue::try_from_array(&found, 0)?,
            ))
        } else {
            Ok(ColumnarValue::Array(found))
        }
    }
}
