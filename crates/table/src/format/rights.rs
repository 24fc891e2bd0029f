//! The records of roles, and of whom things belong to.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Result;
use crate::format::record::{damaged, encode};

/// The first byte of a record: what follows is as this version writes it. Another byte is of a later one.
const VERSION: u8 = 1;

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
        assert_eq!(
            read::<Role>(&write(&role, "ann").unwrap(), "ann").unwrap(),
            role
        );
    }
}
