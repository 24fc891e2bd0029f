//! The records of types that have been created.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::format::definition::TypeRecord;
use crate::format::record::{damaged, encode};
use crate::schema::{Check, Domain, EnumType};

/// The first byte of a record: what follows is as this version writes it. Another byte is of a later one.
const VERSION: u8 = 1;
/// The letter of an enum.
const ENUM: u8 = b'e';
/// The letter of a domain.
const DOMAIN: u8 = b'd';
/// The letter of a composite type, whose record is that of a domain.
const COMPOSITE: u8 = b'c';

/// A type that has been created.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NamedType {
    Enum(EnumType),
    Domain(Domain),
}

/// A [`Domain`] as the catalog keeps it.
#[derive(Serialize, Deserialize)]
struct DomainRecord {
    name: String,
    data_type: TypeRecord,
    text: String,
    parent: Option<String>,
    not_null: bool,
    default: Option<String>,
    checks: Vec<Check>,
}

/// The record of an enum.
///
/// # Errors
/// Of none that there are.
pub(crate) fn write(own: &EnumType) -> Result<Vec<u8>> {
    Ok([&[VERSION, ENUM][..], &encode(own, &own.name)?].concat())
}

/// The record of a domain or a composite type.
///
/// # Errors
/// [`Error::Unsupported`] if values of its type cannot be stored.
pub(crate) fn write_domain(own: &Domain) -> Result<Vec<u8>> {
    let data_type = TypeRecord::of(&own.data_type).ok_or_else(|| Error::Unsupported {
        column: own.name.clone(),
        data_type: own.data_type.to_string(),
    })?;
    let record = DomainRecord {
        name: own.name.clone(),
        data_type,
        text: own.text.clone(),
        parent: own.parent.clone(),
        not_null: own.not_null,
        default: own.default.clone(),
        checks: own.checks.clone(),
    };
    let letter = if own.composite { COMPOSITE } else { DOMAIN };
    Ok([&[VERSION, letter][..], &encode(&record, &own.name)?].concat())
}

impl DomainRecord {
    fn domain(self, composite: bool) -> Option<Domain> {
        Some(Domain {
            name: self.name,
            composite,
            data_type: self.data_type.data_type()?,
            text: self.text,
            parent: self.parent,
            not_null: self.not_null,
            default: self.default,
            checks: self.checks,
        })
    }
}

/// The type `name` from its record.
///
/// # Errors
/// [`crate::Error::Damaged`] if it does not decode.
pub(crate) fn read(bytes: &[u8], name: &str) -> Result<NamedType> {
    let found = match bytes {
        [VERSION, ENUM, record @ ..] => {
            let own = postcard::from_bytes::<EnumType>(record).ok();
            let own = own.filter(|own| own.is_sound() && own.name == name);
            own.map(NamedType::Enum)
        }
        [VERSION, letter @ (DOMAIN | COMPOSITE), record @ ..] => {
            let own = postcard::from_bytes::<DomainRecord>(record).ok();
            let own = own.and_then(|own| own.domain(*letter == COMPOSITE));
            let own = own.filter(|own| own.is_sound() && own.name == name);
            own.map(NamedType::Domain)
        }
        _ => None,
    };
    found.ok_or_else(|| damaged(name, "the definition of the type"))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Fields};

    use super::*;
    use crate::schema::Label;

    #[test]
    fn what_is_no_record_is_refused() {
        let own = EnumType::new("mood", ["sad", "ok"].map(str::to_owned));
        let bytes = write(&own).unwrap();
        assert_eq!(read(&bytes, "mood").unwrap(), NamedType::Enum(own.clone()));
        assert!(read(&bytes, "other").is_err());
        let mut later = bytes.clone();
        later[0] = 2;
        for bad in [&later[..], &bytes[..4], &[], &[VERSION], &[VERSION, b'x']] {
            assert!(read(bad, "mood").is_err());
        }
        let mut twice = own.clone();
        twice.labels.push(Label {
            number: 0,
            text: "glad".into(),
        });
        assert!(read(&write(&twice).unwrap(), "mood").is_err());
    }

    #[test]
    fn domains_are_read_as_they_were_written() {
        let own = Domain {
            name: "s\u{1}positive".into(),
            composite: false,
            data_type: DataType::Decimal128(9, 2),
            text: "numeric(9,2)".into(),
            parent: Some("number".into()),
            not_null: true,
            default: Some("1".into()),
            checks: vec![Check {
                name: "positive_check".into(),
                text: "value > 0".into(),
                unchecked: false,
            }],
        };
        let bytes = write_domain(&own).unwrap();
        let found = read(&bytes, &own.name).unwrap();
        assert_eq!(found, NamedType::Domain(own.clone()));
        assert!(read(&bytes, "positive").is_err());
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end], &own.name).is_err(), "{end}");
        }
        let itself = Domain {
            parent: Some(own.name.clone()),
            ..own.clone()
        };
        assert!(read(&write_domain(&itself).unwrap(), &own.name).is_err());
    }

    #[test]
    fn composite_types_are_told_from_domains() {
        let fields = vec![Field::new("r", DataType::Float64, true)];
        let own = Domain {
            name: "s\u{1}pair".into(),
            composite: true,
            data_type: DataType::Struct(Fields::from(fields)),
            text: "STRUCT(\"r\" DOUBLE PRECISION)".into(),
            parent: None,
            not_null: false,
            default: None,
            checks: vec![],
        };
        let bytes = write_domain(&own).unwrap();
        assert_eq!(bytes[..2], [VERSION, b'c']);
        let found = read(&bytes, &own.name).unwrap();
        assert_eq!(found, NamedType::Domain(own.clone()));
        // One with a condition is none.
        let mut other = own.clone();
        other.not_null = true;
        assert!(read(&write_domain(&other).unwrap(), &own.name).is_err());
    }
}
