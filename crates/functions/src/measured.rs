//! `length`, `octet_length` and `bit_length` of bytes, beside those of texts.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BinaryArray, Int32Array};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use messages::Error;

use crate::arguments::{accepted, is_bytea};
use crate::registry::Registry;

/// How long some bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Measure {
    Bytes,
    Bits,
    /// Bytes have no characters.
    None,
}

/// DataFusion's functions of that kind, which take bytes for texts, or refuse them.
pub(super) fn all(registry: &Registry) -> impl Iterator<Item = Arc<ScalarUDF>> {
    let all = [
        ("length", Measure::Bytes),
        ("octet_length", Measure::Bytes),
        ("bit_length", Measure::Bits),
        ("char_length", Measure::None),
        ("character_length", Measure::None),
    ];
    let all = all.map(|(name, measure)| {
        let inner = registry.scalar(name)?;
        Some(Arc::new(ScalarUDF::from(Measured {
            name,
            measure,
            inner: Arc::clone(inner),
            signature: Signature::user_defined(Volatility::Immutable),
        })))
    });
    all.into_iter().flatten()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Measured {
    name: &'static str,
    measure: Measure,
    /// That of texts.
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

impl ScalarUDFImpl for Measured {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [ty] if is_bytea(ty) && self.measure == Measure::None => Err(Error::coded(
                "42883",
                format!(
                    "function {}(bytea) does not exist: length(...) counts bytes",
                    self.name
                ),
            )
            .into()),
            [ty] if is_bytea(ty) => Ok(vec![DataType::Binary]),
            types => accepted(&self.inner, types),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [ty] if is_bytea(ty) => Ok(DataType::Int32),
            types => self.inner.inner().return_type(types),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let bits = match self.measure {
            Measure::Bits => 8,
            Measure::Bytes | Measure::None => 1,
        };
        match &args.args[..] {
            [ColumnarValue::Array(bytes)] if is_bytea(bytes.data_type()) => {
                lengths(bytes, bits).map(ColumnarValue::Array)
            }
            [ColumnarValue::Scalar(bytes)] if is_bytea(&bytes.data_type()) => {
                let one = lengths(&bytes.to_array()?, bits)?;
                ScalarValue::try_from_array(&one, 0).map(ColumnarValue::Scalar)
            }
            _ => self.inner.invoke_with_args(args),
        }
    }
}

/// How many bytes there are, of `bits` parts each.
fn lengths(bytes: &ArrayRef, bits: usize) -> Result<ArrayRef> {
    let bytes = cast(bytes, &DataType::Binary)?;
    let bytes: &BinaryArray = bytes.as_binary();
    let length = |own: &[u8]| {
        i32::try_from(own.len() * bits)
            .map_err(|_| Error::coded("22003", "integer out of range").into())
    };
    let found = bytes.iter().map(|own| own.map(length).transpose());
    Ok(Arc::new(found.collect::<Result<Int32Array>>()?))
}
