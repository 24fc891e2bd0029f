//! A scalar function as a name, the types that it takes and returns, and a plain function over arrays.

use std::hash::{Hash, Hasher};

use arrow::array::{Array, ArrayRef};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

/// A scalar function of this crate.
#[derive(Debug)]
pub(crate) struct Own {
    name: &'static str,
    aliases: Vec<String>,
    signature: Signature,
    /// The types to which arguments of the given types are cast; an error if it does not take them.
    takes: fn(&[DataType]) -> Result<Vec<DataType>>,
    /// The type that it returns for arguments of these types.
    returns: fn(&[DataType]) -> Result<DataType>,
    run: Run,
}

/// Computes a function over arrays of one length. The length is the second argument, for calls without arrays.
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
        }
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
        let found = if found.data_type() == wanted {
            found
        } else {
            cast(&found, wanted)?
        };
        if constant {
            Ok(ColumnarValue::Scalar(
                datafusion::common::ScalarValue::try_from_array(&found, 0)?,
            ))
        } else {
            Ok(ColumnarValue::Array(found))
        }
    }
}
