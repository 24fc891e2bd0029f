//! Keys of rows as bytes: equal where the values are, and in their order. And hashes of these.
//!
//! Neither may change: hashes lie in pages, greatest keys of blocks in the catalog.

use arrow::datatypes::DataType;

/// How the values of a column stand in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Whole numbers of 64 bits: 8 bytes, the sign turned, big-endian.
    Narrow,
    /// Whole numbers of 128 bits: 16 bytes likewise.
    Wide,
    /// Floats: 8 bytes in the order of the numbers; the zeros are equal, NaN equals NaN and is greater than all others.
    Float,
    /// Texts, bytes, uuids and decimals of more than 38 digits: their bytes as they lie in pages, 0 written as 0 255, and two zeros at the end.
    Bytes,
}

impl Form {
    /// That of the values of a stored type.
    pub(crate) fn of(data_type: &DataType) -> Form {
        match data_type {
            DataType::UInt64 | DataType::Decimal128(..) => Form::Wide,
            DataType::Float32 | DataType::Float64 => Form::Float,
            DataType::Utf8View
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
            | DataType::Decimal256(..) => Form::Bytes,
            _ => Form::Narrow,
        }
    }

    /// Appends a whole number.
    pub(crate) fn push_int(self, value: i128, out: &mut Vec<u8>) {
        match self {
            Form::Wide => out.extend(((value as u128) ^ (1 << 127)).to_be_bytes()),
            _ => out.extend(((value as i64 as u64) ^ (1 << 63)).to_be_bytes()),
        }
    }
}

/// Appends a float.
pub(crate) fn push_float(value: f64, out: &mut Vec<u8>) {
    let bits = if value.is_nan() {
        f64::NAN.to_bits() & !(1 << 63)
    } else {
        (value + 0.0).to_bits()
    };
    let ordered = if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    };
    out.extend(ordered.to_be_bytes());
}

/// Appends a text.
pub(crate) fn push_bytes(text: &[u8], out: &mut Vec<u8>) {
    if text.contains(&0) {
        for byte in text {
            out.push(*byte);
            if *byte == 0 {
                out.push(255);
            }
        }
    } else {
        out.extend_from_slice(text);
    }
    out.extend([0, 0]);
}

/// The hash of a key. Keys of one whole number of 64 bits have hashes that differ.
pub(crate) fn hash(key: &[u8]) -> u64 {
    let mix = |mut h: u64| {
        h = (h ^ h >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        h = (h ^ h >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        h ^ h >> 33
    };
    if let Ok(eight) = key.try_into() {
        return mix(u64::from_le_bytes(eight));
    }
    let mut hash = key.len() as u64;
    for part in key.chunks(8) {
        let mut eight = [0; 8];
        eight[..part.len()].copy_from_slice(part);
        hash = mix(hash ^ u64::from_le_bytes(eight)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
    mix(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(value: f64) -> Vec<u8> {
        let mut out = vec![];
        push_float(value, &mut out);
        out
    }

    fn text(value: &[u8]) -> Vec<u8> {
        let mut out = vec![];
        push_bytes(value, &mut out);
        out
    }

    #[test]
    fn floats_are_in_order_and_equal_where_sql_says_so() {
        let ascending = [
            f64::NEG_INFINITY,
            -1e9,
            -f64::MIN_POSITIVE,
            0.0,
            f64::MIN_POSITIVE,
            2.5,
            f64::INFINITY,
            f64::NAN,
        ];
        assert!(ascending.windows(2).all(|w| float(w[0]) < float(w[1])));
        assert_eq!(float(0.0), float(-0.0));
        assert_eq!(float(f64::NAN), float(-f64::NAN));
    }

    #[test]
    fn texts_are_in_order_also_with_zeros_and_behind_one_another() {
        let ascending: [&[u8]; 6] = [b"", b"\0", b"\0\0", b"\0a", b"a", b"a\0"];
        assert!(ascending.windows(2).all(|w| text(w[0]) < text(w[1])));
        let pair = |a: &[u8], b: &[u8]| [text(a), text(b)].concat();
        assert_ne!(pair(b"a", b"bc"), pair(b"ab", b"c"));
        assert!(pair(b"a", b"z") < pair(b"ab", b"a"));
    }

    #[test]
    fn numbers_are_in_order() {
        for form in [Form::Narrow, Form::Wide] {
            let key = |value: i128| {
                let mut out = vec![];
                form.push_int(value, &mut out);
                out
            };
            let numbers = [i64::MIN.into(), -1, 0, 1, i64::MAX.into()];
            assert!(numbers.windows(2).all(|w| key(w[0]) < key(w[1])));
        }
    }

    /// What lies in stores must be found again: these are as the first version that had them computed them.
    #[test]
    fn hashes_stay_as_they_are() {
        assert_eq!(hash(&0_u64.to_be_bytes()), 0);
        assert_eq!(hash(&1_u64.to_le_bytes()), 0xb456_bcfc_34c2_cb2c);
        let hashes = [hash(b""), hash(b"a"), hash(b"a\0"), hash(b"123456789")];
        let mut distinct = hashes.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), hashes.len());
    }
}
