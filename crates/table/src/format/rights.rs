//! The records of roles, and of whom things belong to.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Result;
use crate::format::record::{damaged, encode};
use crate::schema::Role;

/// The first byte of a record: what follows is as this version writes it. Another byte is of a later one.
const VERSION: u8 = 1;

/// The first byte of the record of a role with limits: they follow what a role without has.
const LIMITED: u8 = 2;

/// The first byte of the record of a role with a number: its limits, if it has any, and that follow what a role without has.
const NUMBERED: u8 = 3;

/// The record of a role. One without limits or a number is as versions before them wrote it.
///
/// # Errors
/// Of none that there are.
pub(crate) fn write_role(role: &Role, name: &str) -> Result<Vec<u8>> {
    if role.number == 0 && role.settings.is_empty() && role.connections.is_none() {
        return write(role, name);
    }
    let limits = encode(&(&role.settings, role.connections), name)?;
    if role.number == 0 {
        return Ok([&[LIMITED][..], &encode(role, name)?, &limits].concat());
    }
    let number = role.number.to_le_bytes();
    Ok([&[NUMBERED][..], &encode(role, name)?, &limits, &number].concat())
}

/// A role from its record. Nothing may follow.
///
/// # Errors
/// [`crate::Error::Damaged`] if it does not decode.
pub(crate) fn read_role(bytes: &[u8], name: &str) -> Result<Role> {
    type Limits = (BTreeMap<String, String>, Option<u32>);
    let (record, numbered) = match bytes.split_first() {
        Some((&LIMITED, record)) => (record, false),
        Some((&NUMBERED, record)) => (record, true),
        _ => return read(bytes, name),
    };
    let read = || {
        let (role, rest) = postcard::take_from_bytes::<Role>(record).ok()?;
        let ((settings, connections), rest) = postcard::take_from_bytes::<Limits>(rest).ok()?;
        let number = match (numbered, rest) {
            (false, []) => 0,
            (true, number) => u64::from_le_bytes(number.try_into().ok()?),
            (false, _) => return None,
        };
        Some(Role {
            settings,
            connections,
            number,
            ..role
        })
    };
    read().ok_or_else(|| damaged(name, "who may do what with it"))
}

/// The record of a role or an ACL.
///
/// # Errors
/// Of none that there are.
pub(crate) fn write<T: Serialize>(own: &T, name: &str) -> Result<Vec<u8>> {
    Ok([&[VERSION][..], &encode(own, name)?].concat())
}

/// A role or an ACL from its record. Nothing may follow: rights must not be half of what was written.
///
/// # Errors
/// [`crate::Error::Damaged`] if it does not decode.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8], name: &str) -> Result<T> {
    let record = bytes.strip_prefix(&[VERSION]);
    let read = record.and_then(|record| postcard::take_from_bytes::<T>(record).ok());
    match read {
        Some((own, [])) => Ok(own),
        _ => Err(damaged(name, "who may do what with it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Acl, Privileges, Role};

    #[test]
    fn what_is_no_record_is_refused() {
        let mut acl = Acl {
            owner: Some("ann".into()),
            ..Acl::default()
        };
        acl.grant("", Privileges::SELECT, false);
        let bytes = write(&acl, "t").unwrap();
        assert_eq!(read::<Acl>(&bytes, "t").unwrap(), acl);
        let later = [&[2][..], &bytes[1..]].concat();
        let longer = [&bytes[..], &[0]].concat();
        for bad in [&later[..], &longer, &bytes[..5], &[]] {
            assert!(read::<Acl>(bad, "t").is_err());
        }
        let role = Role {
            member_of: [("staff".to_owned(), true)].into(),
            ..Role::default()
        };
        let bytes = write_role(&role, "ann").unwrap();
        assert_eq!(bytes, write(&role, "ann").unwrap());
        assert_eq!(read_role(&bytes, "ann").unwrap(), role);
        let limited = Role {
            settings: [("memory_limit".to_owned(), "64MB".to_owned())].into(),
            connections: Some(3),
            ..role
        };
        let bytes = write_role(&limited, "ann").unwrap();
        assert_eq!(read_role(&bytes, "ann").unwrap(), limited);
        let numbered = Role {
            number: u64::MAX - 1,
            ..limited
        };
        let with_number = write_role(&numbered, "ann").unwrap();
        assert_eq!(read_role(&with_number, "ann").unwrap(), numbered);
        for bytes in [bytes, with_number] {
            for cut in 1..bytes.len() {
                assert!(read_role(&bytes[..cut], "ann").is_err(), "{cut}");
            }
            assert!(read_role(&[&bytes[..], &[0]].concat(), "ann").is_err());
        }
    }
}
