//! Functions about rights that know the tables of the statement that calls them: `has_table_privilege` and its kin,
//! `pg_has_role`, `pg_get_userbyid`.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result, plan_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// What somebody may have rights on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Thing {
    /// A table or view.
    Table,
    /// A sequence.
    Sequence,
    /// A schema.
    Schema,
    /// The database.
    Database,
    /// Whether somebody is a member of a role.
    Role,
}

/// A role or a thing as a caller names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named<'n> {
    /// By its name.
    Text(&'n str),
    /// By its OID.
    Number(i64),
}

/// What knows who may do what.
pub trait Privileged: Debug + Send + Sync {
    /// Whether a role has privileges, which a text lists; none for who runs the statement. None if there is no such thing.
    fn has(
        &self,
        kind: Thing,
        role: Option<Named<'_>>,
        thing: Named<'_>,
        privileges: &str,
    ) -> messages::Result<Option<bool>>;
    /// The name of the role with this number.
    fn role(&self, number: i64) -> Option<String>;
}

/// The functions by name: what they are about, and how many values they take without the name of a role.
const FUNCTIONS: [(&str, Option<Thing>, usize); 8] = [
    ("has_table_privilege", Some(Thing::Table), 2),
    ("has_any_column_privilege", Some(Thing::Table), 2),
    ("has_column_privilege", Some(Thing::Table), 3),
    ("has_sequence_privilege", Some(Thing::Sequence), 2),
    ("has_schema_privilege", Some(Thing::Schema), 2),
    ("has_database_privilege", Some(Thing::Database), 2),
    ("pg_has_role", Some(Thing::Role), 2),
    ("pg_get_userbyid", None, 1),
];

#[derive(Debug)]
struct Privilege {
    name: &'static str,
    about: Option<Thing>,
    values: usize,
    known: Arc<dyn Privileged>,
    signature: Signature,
}

/// The function of this name for a statement, if there is one.
pub fn named(known: &Arc<dyn Privileged>, name: &str) -> Option<ScalarUDF> {
    let (name, about, values) = FUNCTIONS.into_iter().find(|(own, ..)| *own == name)?;
    Some(ScalarUDF::from(Privilege {
        name,
        about,
        values,
        known: Arc::clone(known),
        signature: Signature::user_defined(Volatility::Stable),
    }))
}

/// Whether a function of this name asks for rights.
pub fn is_name(name: &str) -> bool {
    FUNCTIONS.iter().any(|(own, ..)| *own == name)
}

impl PartialEq for Privilege {
    fn eq(&self, other: &Privilege) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.known, &other.known)
    }
}

impl Eq for Privilege {}

impl Hash for Privilege {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Privilege {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let most = self.values + usize::from(self.about.is_some());
        if types.len() != self.values && types.len() != most {
            return plan_err!(
                "{} takes {} values, and the name of a role before them if wanted",
                self.name,
                self.values
            );
        }
        let last = types.len() - 1;
        let wanted = |(at, data_type): (usize, &DataType)| {
            let number = data_type.is_integer() && (at < last || self.about.is_none());
            if number {
                DataType::Int64
            } else {
                DataType::Utf8
            }
        };
        Ok(types.iter().enumerate().map(wanted).collect())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.about {
            Some(_) => DataType::Boolean,
            None => DataType::Utf8,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let arrays = args.args.iter().map(|arg| arg.to_array(rows));
        let arrays: Vec<ArrayRef> = arrays.collect::<Result<_>>()?;
        let found: ArrayRef = match self.about {
            None => {
                let name = |row| match value(&arrays[0], row)? {
                    Named::Number(number) => Some(
                        self.known
                            .role(number)
                            .unwrap_or_else(|| format!("unknown (OID={number})")),
                    ),
                    Named::Text(_) => None,
                };
                Arc::new((0..rows).map(name).collect::<StringArray>())
            }
            Some(kind) => {
                let held = (0..rows).map(|row| self.held(kind, &arrays, row));
                Arc::new(held.collect::<Result<BooleanArray>>()?)
            }
        };
        Ok(ColumnarValue::Array(found))
    }
}

/// A value of a row; none if it is NULL.
fn value(array: &ArrayRef, row: usize) -> Option<Named<'_>> {
    if array.is_null(row) {
        return None;
    }
    Some(match array.as_primitive_opt::<Int64Type>() {
        Some(numbers) => Named::Number(numbers.value(row)),
        None => Named::Text(array.as_string::<i32>().value(row)),
    })
}

impl Privilege {
    fn held(&self, kind: Thing, arrays: &[ArrayRef], row: usize) -> Result<Option<bool>> {
        let values: Option<Vec<Named<'_>>> = arrays.iter().map(|own| value(own, row)).collect();
        let Some(values) = values else {
            return Ok(None);
        };
        let (role, rest) = values.split_at(values.len() - self.values);
        let (Some(thing), Some(Named::Text(privileges))) = (rest.first(), rest.last()) else {
            return Ok(None);
        };
        let role = role.first().copied();
        Ok(self.known.has(kind, role, *thing, privileges)?)
    }
}
