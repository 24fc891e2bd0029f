//! Functions of bytes: digests, single bytes and bits, and encodings of texts.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Int32Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion_common::DataFusionError;
use datafusion_common::{Result, plan_err};
use messages::Error;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use crate::arguments::{TEXT, is_text};
use crate::own::Own;

pub(super) fn all() -> Vec<Own> {
    let bytes = |_: &[DataType]| Ok(DataType::Binary);
    let number = |_: &[DataType]| Ok(DataType::Int32);
    vec![
        Own::new("sha224", one, bytes, |args, _| digest::<Sha224>(args)),
        Own::new("sha256", one, bytes, |args, _| digest::<Sha256>(args)),
        Own::new("sha384", one, bytes, |args, _| digest::<Sha384>(args)),
        Own::new("sha512", one, bytes, |args, _| digest::<Sha512>(args)),
        Own::new("bit_count", one, |_| Ok(DataType::Int64), bit_count),
        Own::new("get_byte", |types| placed(types, 2), number, get_byte),
        Own::new("get_bit", |types| placed(types, 2), number, get_bit),
        Own::new(
            "set_byte",
            |types| placed(types, 3),
            bytes,
            |args, rows| changed(args, rows, set_byte),
        ),
        Own::new(
            "set_bit",
            |types| placed(types, 3),
            bytes,
            |args, rows| changed(args, rows, set_bit),
        ),
        Own::new("convert_from", bytes_and_name, |_| Ok(TEXT), convert_from),
        Own::new("convert_to", text_and_name, bytes, convert_to),
    ]
}

/// Whether values are bytes, or texts that say some.
fn is_bytes(ty: &DataType) -> bool {
    ty.is_binary() || is_text(ty)
}

fn one(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [ty] if is_bytes(ty) => Ok(vec![DataType::Binary]),
        _ => plan_err!("the function takes one bytea"),
    }
}

/// Bytes, a place in them, and maybe what is to be there.
fn placed(types: &[DataType], count: usize) -> Result<Vec<DataType>> {
    let numbers = |ty: &DataType| ty.is_integer() || ty.is_null();
    match types {
        [bytes, rest @ ..]
            if types.len() == count && is_bytes(bytes) && rest.iter().all(numbers) =>
        {
            let mut taken = vec![DataType::Binary, DataType::Int64];
            taken.resize(count, DataType::Int32);
            Ok(taken)
        }
        _ => plan_err!("the function takes a bytea and whole numbers: {count} arguments"),
    }
}

fn bytes_and_name(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [bytes, name] if is_bytes(bytes) && is_text(name) => {
            Ok(vec![DataType::Binary, DataType::Utf8])
        }
        _ => plan_err!("convert_from takes a bytea and the name of an encoding"),
    }
}

fn text_and_name(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [text, name] if is_text(text) && is_text(name) => Ok(vec![DataType::Utf8; 2]),
        _ => plan_err!("convert_to takes a text and the name of an encoding"),
    }
}

fn digest<D: Digest>(args: &[ArrayRef]) -> Result<ArrayRef> {
    let bytes: &BinaryArray = args[0].as_binary();
    let found: Vec<Option<Vec<u8>>> = bytes
        .iter()
        .map(|own| own.map(|own| D::digest(own).to_vec()))
        .collect();
    Ok(binary(&found))
}

fn binary(values: &[Option<Vec<u8>>]) -> ArrayRef {
    Arc::new(values.iter().map(Option::as_deref).collect::<BinaryArray>())
}

/// How many bits are set.
fn bit_count(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let bytes: &BinaryArray = args[0].as_binary();
    let count = |own: &[u8]| own.iter().map(|byte| i64::from(byte.count_ones())).sum();
    let found: Int64Array = bytes.iter().map(|own| own.map(count)).collect();
    Ok(Arc::new(found))
}

/// A place among so many.
///
/// # Errors
/// If there is no such place.
fn within(place: i64, count: usize) -> Result<usize> {
    match usize::try_from(place) {
        Ok(at) if at < count => Ok(at),
        _ => {
            let last = count as i64 - 1;
            let message = format!("index {place} out of valid range, 0..{last}");
            Err(Error::coded("2202E", message).into())
        }
    }
}

fn get_byte(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    found(args, rows, |bytes, place| {
        Ok(i32::from(bytes[within(place, bytes.len())?]))
    })
}

/// The bit of this number: the first of a byte is its lowest.
fn get_bit(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    found(args, rows, |bytes, place| {
        let at = within(place, bytes.len() * 8)?;
        Ok(i32::from(bytes[at / 8] >> (at % 8) & 1))
    })
}

fn found(
    args: &[ArrayRef],
    rows: usize,
    of: impl Fn(&[u8], i64) -> Result<i32>,
) -> Result<ArrayRef> {
    let bytes: &BinaryArray = args[0].as_binary();
    let places = args[1].as_primitive::<Int64Type>();
    let row = |row: usize| {
        let known = bytes.is_valid(row) && places.is_valid(row);
        known
            .then(|| of(bytes.value(row), places.value(row)))
            .transpose()
    };
    let all = (0..rows).map(row);
    Ok(Arc::new(all.collect::<Result<Int32Array>>()?))
}

fn set_byte(bytes: &mut [u8], place: i64, value: i32) -> Result<()> {
    let at = within(place, bytes.len())?;
    bytes[at] = value as u8;
    Ok(())
}

fn set_bit(bytes: &mut [u8], place: i64, value: i32) -> Result<()> {
    let at = within(place, bytes.len() * 8)?;
    let bit = 1u8 << (at % 8);
    match value {
        0 => bytes[at / 8] &= !bit,
        1 => bytes[at / 8] |= bit,
        _ => return Err(Error::coded("22023", "new bit must be 0 or 1").into()),
    }
    Ok(())
}

fn changed(
    args: &[ArrayRef],
    rows: usize,
    change: fn(&mut [u8], i64, i32) -> Result<()>,
) -> Result<ArrayRef> {
    let bytes: &BinaryArray = args[0].as_binary();
    let places = args[1].as_primitive::<Int64Type>();
    let values = args[2].as_primitive::<Int32Type>();
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if bytes.is_null(row) || places.is_null(row) || values.is_null(row) {
            found.push(None);
            continue;
        }
        let mut own = bytes.value(row).to_vec();
        change(&mut own, places.value(row), values.value(row))?;
        found.push(Some(own));
    }
    Ok(binary(&found))
}

/// How texts become bytes.
#[derive(Clone, Copy, PartialEq)]
enum Encoding {
    Utf8,
    Latin1,
}

impl Encoding {
    /// The one of this name.
    ///
    /// # Errors
    /// If there is none, or it is one that is not here.
    fn named(name: &str, which: &str) -> Result<Encoding> {
        let plain = name.to_ascii_lowercase().replace(['-', '_', ' '], "");
        match plain.as_str() {
            "utf8" | "unicode" => Ok(Encoding::Utf8),
            "latin1" | "iso88591" => Ok(Encoding::Latin1),
            _ => {
                let message =
                    format!("invalid {which} encoding name \"{name}\": utf8 and latin1 are there");
                Err(Error::coded("22023", message).into())
            }
        }
    }
}

fn wrong_bytes(bytes: &[u8]) -> DataFusionError {
    let message = format!(
        "invalid byte sequence for encoding \"UTF8\": 0x{:02x}",
        bytes.first().copied().unwrap_or_default()
    );
    Error::coded("22021", message).into()
}

fn convert_from(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let bytes: &BinaryArray = args[0].as_binary();
    let names: &StringArray = args[1].as_string();
    let row = |row: usize| -> Result<Option<String>> {
        if bytes.is_null(row) || names.is_null(row) {
            return Ok(None);
        }
        let own = bytes.value(row);
        let text = match Encoding::named(names.value(row), "source")? {
            Encoding::Utf8 => std::str::from_utf8(own)
                .map_err(|e| wrong_bytes(&own[e.valid_up_to()..]))?
                .to_owned(),
            Encoding::Latin1 => own.iter().map(|byte| char::from(*byte)).collect(),
        };
        if text.contains('\0') {
            return Err(wrong_bytes(&[0]));
        }
        Ok(Some(text))
    };
    let all = (0..rows).map(row);
    Ok(Arc::new(all.collect::<Result<StringArray>>()?))
}

fn convert_to(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let texts: &StringArray = args[0].as_string();
    let names: &StringArray = args[1].as_string();
    let latin = |c: char| {
        u8::try_from(u32::from(c)).map_err(|_| {
            let message = format!(
                "character \"{c}\" in encoding \"UTF8\" has no equivalent in encoding \"LATIN1\""
            );
            DataFusionError::from(Error::coded("22P05", message))
        })
    };
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if texts.is_null(row) || names.is_null(row) {
            found.push(None);
            continue;
        }
        let text = texts.value(row);
        found.push(Some(
            match Encoding::named(names.value(row), "destination")? {
                Encoding::Utf8 => text.as_bytes().to_vec(),
                Encoding::Latin1 => text.chars().map(latin).collect::<Result<Vec<u8>>>()?,
            },
        ));
    }
    Ok(binary(&found))
}
