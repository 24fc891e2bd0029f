//! Fields of structs: `s.a`, `(s).a`, `struct_extract(s, 'a')`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, make_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion_common::{Result, ScalarValue, internal_err, plan_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use messages::types::type_name;
use table::{jsonb_type, map_parts};

use crate::json::get::subscripted;
use crate::lists::names::FIELD;
use crate::lists::types::{fields, plain};
use crate::maps;

/// The function of a struct and the name of a field.
pub(super) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Access {
        aliases: vec!["struct_extract".into()],
        signature: Signature::user_defined(Volatility::Immutable),
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Access {
    aliases: Vec<String>,
    signature: Signature,
}

/// The place of the field of this name, or of the only one that has it in another case.
fn place(fields: &Fields, name: &str) -> Option<usize> {
    let exact = fields.iter().position(|field| field.name() == name);
    exact.or_else(|| {
        let lower = name.to_lowercase();
        let mut alike = fields
            .iter()
            .enumerate()
            .filter(|(_, field)| field.name().to_lowercase() == lower);
        match (alike.next(), alike.next()) {
            (Some((at, _)), None) => Some(at),
            _ => None,
        }
    })
}

/// The values of field `at` of structs: NULL where the struct is.
pub fn values(structs: &ArrayRef, at: usize) -> Result<ArrayRef> {
    let own = structs.as_struct();
    let values = own.column(at);
    let Some(nulls) = own.nulls().filter(|nulls| nulls.null_count() > 0) else {
        return Ok(values.clone());
    };
    if *values.data_type() == DataType::Null {
        return Ok(values.clone());
    }
    let nulls = NullBuffer::union(Some(nulls), values.nulls());
    let data = values.to_data().into_builder().nulls(nulls).build()?;
    Ok(make_array(data))
}

impl ScalarUDFImpl for Access {
    fn name(&self) -> &str {
        FIELD
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            // `m['a']`: a key of a map is of the map's type.
            [map, name] if map_parts(map).is_some() => {
                maps::map_and_key("[]", &[map.clone(), name.clone()])
            }
            [value, name] => Ok(vec![plain(value), name.clone()]),
            _ => plan_err!("a field is taken by a struct and a name"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the type of a field follows from its name, too")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let ([own, _], [_, name]) = (args.arg_fields, args.scalar_arguments) else {
            return plan_err!("a field is taken by a struct and a name");
        };
        if let Some((_, value)) = map_parts(own.data_type()) {
            return Ok(Arc::new(Field::new("value", plain(value), true)));
        }
        let Some(name) = name.and_then(|name| name.try_as_str().flatten()) else {
            return plan_err!("the name of a field is a constant in quotes");
        };
        if *own.data_type() == jsonb_type() {
            return Ok(Arc::new(Field::new(name, jsonb_type(), true)));
        }
        let Some(all) = fields(own.data_type()) else {
            return plan_err!(
                "column notation .{name} applied to type {}, which is not a composite type",
                type_name(own.data_type())
            );
        };
        let Some(at) = place(all, name) else {
            return plan_err!(
                "column \"{name}\" not found in data type {}",
                type_name(own.data_type())
            );
        };
        Ok(Arc::new(Field::new(name, plain(all[at].data_type()), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value, ColumnarValue::Scalar(key)] = &args.args[..] else {
            return internal_err!("a field without a name");
        };
        let constant = matches!(value, ColumnarValue::Scalar(_));
        let name = key.try_as_str().flatten().unwrap_or_default();
        let rows = if constant { 1 } else { args.number_rows };
        let structs = value.to_array(rows)?;
        let (is_map, is_json) = (
            map_parts(structs.data_type()).is_some(),
            *structs.data_type() == jsonb_type(),
        );
        if is_map || is_json {
            let found = if is_map {
                maps::value(&[structs, key.to_array_of_size(rows)?], rows)?
            } else {
                let name = ScalarValue::Utf8View(Some(name.to_string()));
                subscripted(&[structs, name.to_array_of_size(rows)?], rows)?
            };
            return Ok(if constant {
                ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)
            } else {
                ColumnarValue::Array(found)
            });
        }
        let Some(at) = fields(structs.data_type()).and_then(|all| place(all, name)) else {
            return internal_err!("there is no field {name}");
        };
        let found = values(&structs, at)?;
        if constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
                &found, 0,
            )?));
        }
        Ok(ColumnarValue::Array(found))
    }
}
