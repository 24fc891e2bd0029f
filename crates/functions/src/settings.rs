//! What a session is: `current_setting`, its number, and the sessions beside it.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray};
use arrow::datatypes::{DataType, Int32Type};
use datafusion_common::{Result, ScalarValue, plan_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use messages::Error;

const NAME: &str = "current_setting";

/// Changes a setting, where a server is asked for it alone.
const SET: &str = "set_config";

/// The functions about sessions.
const OF_SESSIONS: [&str; 3] = [PROCESS, "pg_cancel_backend", "pg_terminate_backend"];

/// Returns the number of the session.
const PROCESS: &str = "pg_backend_pid";

/// What a statement knows of its session, and of those beside it.
pub trait KnownSession: Debug + Send + Sync {
    /// What the setting of this name is, whatever the case of its letters; none if there is none.
    fn setting(&self, name: &str) -> Option<String>;

    /// The number of the session.
    fn process(&self) -> u32;

    /// Asks the session of that number to end, or only its statement; false if there is none.
    ///
    /// # Errors
    /// [`Error::Denied`] if the statement may not do that.
    fn stop(&self, process: i32, ends: bool) -> messages::Result<bool>;
}

/// The function of this name for a statement of this session, if it is one of these.
pub fn named<S: KnownSession + Clone + 'static>(session: &S, name: &str) -> Option<ScalarUDF> {
    if name == NAME {
        return Some(ScalarUDF::from(CurrentSetting {
            session: Arc::new(session.clone()),
            signature: Signature::user_defined(Volatility::Stable),
        }));
    }
    if name == SET {
        return Some(ScalarUDF::from(SetConfig {
            signature: Signature::user_defined(Volatility::Volatile),
        }));
    }
    let name = OF_SESSIONS.into_iter().find(|own| *own == name)?;
    let volatility = if name == PROCESS {
        Volatility::Stable
    } else {
        Volatility::Volatile
    };
    Some(ScalarUDF::from(OfSessions {
        name,
        session: Arc::new(session.clone()),
        signature: match name {
            PROCESS => Signature::nullary(volatility),
            _ => Signature::user_defined(volatility),
        },
    }))
}

/// Whether a function of this name is about the session.
pub fn is_name(name: &str) -> bool {
    name == NAME || name == SET || OF_SESSIONS.contains(&name)
}

/// `pg_backend_pid()`, `pg_cancel_backend(n)` or `pg_terminate_backend(n)`.
#[derive(Debug)]
struct OfSessions {
    name: &'static str,
    session: Arc<dyn KnownSession>,
    signature: Signature,
}

impl PartialEq for OfSessions {
    fn eq(&self, other: &OfSessions) -> bool {
        self.name == other.name
    }
}

impl Eq for OfSessions {}

impl Hash for OfSessions {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for OfSessions {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types.len() {
            1 => Ok(vec![DataType::Int32]),
            _ => plan_err!("{} takes the number of a session", self.name),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.name {
            PROCESS => DataType::Int32,
            _ => DataType::Boolean,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(numbers) = args.args.first() else {
            let process = i32::try_from(self.session.process()).unwrap_or(i32::MAX);
            return Ok(ColumnarValue::Scalar(ScalarValue::Int32(Some(process))));
        };
        let ends = self.name == "pg_terminate_backend";
        let numbers = numbers.to_array(args.number_rows)?;
        let numbers = numbers.as_primitive::<Int32Type>();
        let stopped = numbers.iter().map(|number| -> Result<Option<bool>> {
            let stopped = number.map(|number| self.session.stop(number, ends));
            Ok(stopped.transpose()?)
        });
        let stopped = stopped.collect::<Result<BooleanArray>>()?;
        Ok(ColumnarValue::Array(Arc::new(stopped)))
    }
}

#[derive(Debug)]
struct CurrentSetting {
    session: Arc<dyn KnownSession>,
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
            match self.session.setting(names.value(row)) {
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

/// `set_config` in a query of more than such calls. A query changes nothing, so it may be asked for no row.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SetConfig {
    signature: Signature,
}

impl ScalarUDFImpl for SetConfig {
    fn name(&self) -> &str {
        SET
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types.len() {
            3 => Ok(vec![DataType::Utf8, DataType::Utf8, DataType::Boolean]),
            _ => plan_err!(
                "{SET} takes the name of a setting, its value, and whether it is for the transaction"
            ),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if args.number_rows > 0 {
            return Err(Error::unsupported(
                "set_config is called by a query of such calls alone: `select set_config('name', 'value', false)`",
            )
            .into());
        }
        Ok(ColumnarValue::Array(Arc::new(StringArray::new_null(0))))
    }
}
