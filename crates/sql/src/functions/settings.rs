//! `current_setting`.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::error::Error;
use crate::settings::StatementSettings;

const NAME: &str = "current_setting";

/// The function of this name for a statement, if it is this one.
pub(crate) fn named(settings: &StatementSettings, name: &str) -> Option<ScalarUDF> {
    (name == NAME).then(|| {
        ScalarUDF::from(CurrentSetting {
            settings: settings.clone(),
            signature: Signature::user_defined(Volatility::Stable),
        })
    })
}

/// Whether there is a function of this name.
pub(crate) fn is_name(name: &str) -> bool {
    name == NAME
}

#[derive(Debug)]
struct CurrentSetting {
    settings: StatementSettings,
    signature: Signature,
}

impl PartialEq for CurrentSetting {
    fn eq(&self, _: &CurrentSetting) -> bool {
        // A statement has one state of its settings.
        true
    }
}

impl Eq for CurrentSetting {}

impl Hash for CurrentSetting {
    fn hash<H: Hasher>(&self, state: &mut H) {
        NAME.hash(state);
    }
}

impl ScalarUDFImpl for CurrentSetting {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types.len() {
            1 => Ok(vec![DataType::Utf8]),
            2 => Ok(vec![DataType::Utf8, DataType::Boolean]),
            _ => plan_err!("{NAME} takes the name of a setting, and whether it may be missing"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let arrays = args.args.iter().map(|arg| arg.to_array(rows));
        let arrays: Vec<ArrayRef> = arrays.collect::<Result<_>>()?;
        let names = arrays[0].as_string::<i32>();
        let value = |row: usize| -> Result<Option<String>> {
            if names.is_null(row) {
                return Ok(None);
            }
            let may_be_missing = arrays.get(1).is_some_and(|flags| {
                let flags = flags.as_boolean();
                flags.is_valid(row) && flags.value(row)
            });
            match self.settings.get(names.value(row)) {
                None if !may_be_missing => Err(Error::coded(
                    "42704",
                    format!(
                        "unrecognized configuration parameter \"{}\"",
                        names.value(row)
                    ),
                )
                .into()),
                found => Ok(found),
            }
        };
        let values = (0..rows).map(value).collect::<Result<StringArray>>()?;
        Ok(ColumnarValue::Array(Arc::new(values)))
    }
}
