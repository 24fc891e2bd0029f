//! `current_user`, `session_user` and `current_role` of a session whose user has a name.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::arguments::TEXT;

/// The function that returns `name`, in the place of the one that names who runs the program.
pub fn named(name: &Arc<str>) -> Arc<ScalarUDF> {
    called(name, &["session_user", "current_role"])
}

/// The function that returns `name`, the role that a session has taken, which keeps the name of its user.
pub fn taken(role: &Arc<str>) -> Arc<ScalarUDF> {
    called(role, &["current_role"])
}

fn called(name: &Arc<str>, aliases: &[&str]) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(CurrentUser {
        name: Arc::clone(name),
        signature: Signature::nullary(Volatility::Stable),
        aliases: aliases.iter().map(ToString::to_string).collect(),
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CurrentUser {
    name: Arc<str>,
    signature: Signature,
    aliases: Vec<String>,
}

impl ScalarUDFImpl for CurrentUser {
    fn name(&self) -> &str {
        "current_user"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(TEXT)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let name = ScalarValue::Utf8(Some(self.name.to_string()));
        Ok(ColumnarValue::Scalar(
            name.cast_to(args.return_field.data_type())?,
        ))
    }
}
