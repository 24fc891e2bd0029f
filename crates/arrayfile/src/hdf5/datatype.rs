//! Types of values in a file: which are read, and what the others are called.

use array::DataType;

use crate::hdf5::bytes::{Cursor, Parsed, damaged};

/// How deep types may lie in each other.
const MOST_DEPTH: usize = 8;

/// The type of a data set's or an attribute's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Datatype {
    /// Bytes of a value.
    pub width: usize,
    pub class: Class,
}

/// What values are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Class {
    /// Numbers, or true and false.
    Number { of: DataType, big_endian: bool },
    /// Floats of 16 bits, whose bits are read.
    Half { big_endian: bool },
    /// A text that has `width` bytes.
    Text,
    /// A text of any length, which lies in a heap.
    LongText,
    /// The address of an object.
    Reference,
    /// Lists of values, which lie in a heap.
    List(Box<Datatype>),
    /// Something that is not read, in words.
    Other(String),
}

impl Datatype {
    /// The type that values are read as, and whether their most significant byte comes first; `None` if they are no numbers.
    pub fn number(&self) -> Option<(DataType, bool)> {
        match self.class {
            Class::Number { of, big_endian } => Some((of, big_endian)),
            Class::Half { big_endian } => Some((DataType::U16, big_endian)),
            _ => None,
        }
    }

    /// Reads a type; `cursor` stands behind it afterwards only for those that have no parts.
    ///
    /// # Errors
    /// If it is cut, or of a class that there is not.
    pub fn parse(cursor: &mut Cursor<'_>) -> Parsed<Datatype> {
        parse(cursor, 0)
    }
}

fn parse(cursor: &mut Cursor<'_>, depth: usize) -> Parsed<Datatype> {
    if depth > MOST_DEPTH {
        return damaged(format!("a type has more than {MOST_DEPTH} types within"));
    }
    let first = cursor.u8()?;
    let bits = cursor.number(3)? as u32;
    let width = cursor.u32()? as usize;
    let (class, version) = (first & 15, first >> 4);
    let class = match class {
        0 => whole(cursor, bits, width)?,
        1 => float(cursor, bits, width)?,
        2 => other("times of HDF5"),
        3 => Class::Text,
        4 => other("bit fields"),
        5 => other("opaque bytes"),
        6 => other("records (a compound type)"),
        7 if bits & 15 == 0 => Class::Reference,
        7 => other("references"),
        8 => enumeration(cursor, (bits & 0xffff) as usize, version, depth)?,
        9 if bits & 15 == 1 => Class::LongText,
        9 => Class::List(Box::new(parse(cursor, depth + 1)?)),
        10 => other("arrays in each cell"),
        11 => other("complex numbers"),
        _ => return damaged(format!("has a type of class {class}, which there is not")),
    };
    Ok(Datatype { width, class })
}

fn other(what: &str) -> Class {
    Class::Other(what.to_owned())
}

fn whole(cursor: &mut Cursor<'_>, bits: u32, width: usize) -> Parsed<Class> {
    let (offset, precision) = (cursor.u16()?, usize::from(cursor.u16()?));
    let signed = bits & 8 != 0;
    let of = match (width, signed) {
        (1, true) => DataType::I8,
        (2, true) => DataType::I16,
        (4, true) => DataType::I32,
        (8, true) => DataType::I64,
        (1, false) => DataType::U8,
        (2, false) => DataType::U16,
        (4, false) => DataType::U32,
        (8, false) => DataType::U64,
        _ => return Ok(other(&format!("whole numbers of {width} bytes"))),
    };
    if offset != 0 || precision != width * 8 {
        return Ok(other(&format!(
            "whole numbers of {precision} bits in {width} bytes"
        )));
    }
    let big_endian = bits & 1 != 0;
    Ok(Class::Number { of, big_endian })
}

fn float(cursor: &mut Cursor<'_>, bits: u32, width: usize) -> Parsed<Class> {
    let (offset, precision) = (cursor.u16()?, usize::from(cursor.u16()?));
    let places = [cursor.u8()?, cursor.u8()?, cursor.u8()?, cursor.u8()?];
    let (bias, sign) = (cursor.u32()?, bits >> 8 & 0xff);
    let ieee = offset == 0 && precision == width * 8 && bits >> 4 & 3 == 2 && bits & 0x40 == 0;
    let of = match (width, places, bias, sign) {
        (4, [23, 8, 0, 23], 127, 31) if ieee => DataType::F32,
        (8, [52, 11, 0, 52], 1023, 63) if ieee => DataType::F64,
        (2, [10, 5, 0, 10], 15, 15) if ieee => {
            let big_endian = bits & 1 != 0;
            return Ok(Class::Half { big_endian });
        }
        _ => {
            return Ok(other(&format!(
                "floats of {width} bytes that are not IEEE's"
            )));
        }
    };
    let big_endian = bits & 1 != 0;
    Ok(Class::Number { of, big_endian })
}

/// Values with names: those of h5py's bool are true and false, others are the whole numbers that they are.
fn enumeration(cursor: &mut Cursor<'_>, count: usize, version: u8, depth: usize) -> Parsed<Class> {
    let base = parse(cursor, depth + 1)?;
    let Class::Number { of, big_endian } = base.class else {
        return Ok(other("named values that are no whole numbers"));
    };
    if count != 2 || base.width != 1 {
        return Ok(Class::Number { of, big_endian });
    }
    let mut names = Vec::new();
    for _ in 0..count {
        let rest = cursor.rest();
        let Some(length) = rest.iter().position(|&byte| byte == 0) else {
            return damaged("a type's name does not end");
        };
        names.push(rest[..length].to_ascii_uppercase());
        let padded = if version < 3 {
            (length + 1).next_multiple_of(8)
        } else {
            length + 1
        };
        cursor.skip(padded)?;
    }
    let values = cursor.take(2)?;
    let bool = names == [b"FALSE".to_vec(), b"TRUE".to_vec()] && values == [0, 1];
    let of = if bool { DataType::Bool } else { of };
    Ok(Class::Number { of, big_endian })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdf5::bytes::Sizes;

    fn parsed(bytes: &[u8]) -> Parsed<Datatype> {
        let sizes = Sizes {
            offset: 8,
            length: 8,
        };
        Datatype::parse(&mut Cursor::new(bytes, sizes))
    }

    #[test]
    fn numbers_are_read_and_others_named() {
        let short = parsed(&[0x10, 9, 0, 0, 2, 0, 0, 0, 0, 0, 16, 0]).unwrap();
        let number = |of, big_endian| Class::Number { of, big_endian };
        assert_eq!((short.width, short.class), (2, number(DataType::I16, true)));
        let odd = parsed(&[0x10, 0, 0, 0, 4, 0, 0, 0, 0, 0, 24, 0]).unwrap();
        assert_eq!(odd.class, other("whole numbers of 24 bits in 4 bytes"));
        let half = [
            0x11, 0x20, 15, 0, 2, 0, 0, 0, 0, 0, 16, 0, 10, 5, 0, 10, 15, 0, 0, 0,
        ];
        let big_endian = false;
        assert_eq!(parsed(&half).unwrap().class, Class::Half { big_endian });
        assert!(parsed(&[0x1c, 0, 0, 0, 4, 0, 0, 0]).is_err());
        assert!(parsed(&half[..12]).is_err());
        // Lists of lists of lists, without an end.
        let deep: Vec<u8> = [0x19, 0, 0, 0, 16, 0, 0, 0].repeat(100);
        assert!(parsed(&deep).is_err());
    }
}
