//! The records of comments.

use crate::error::Result;
use crate::format::record::{damaged, encode};
use crate::schema::Comments;

/// The first byte of a record: what follows is as this version writes it. Another byte is of a later one.
const VERSION: u8 = 1;

/// The record of the comments on `name`.
///
/// # Errors
/// Of no comments that there are.
pub(crate) fn write(comments: &Comments, name: &str) -> Result<Vec<u8>> {
    Ok([&[VERSION][..], &encode(comments, name)?].concat())
}

/// The comments on `name` from their record.
///
/// # Errors
/// [`crate::Error::Damaged`] if it does not decode.
pub(crate) fn read(bytes: &[u8], name: &str) -> Result<Comments> {
    let record = bytes.strip_prefix(&[VERSION]);
    let comments = record.and_then(|record| postcard::from_bytes::<Comments>(record).ok());
    comments.ok_or_else(|| damaged(name, "the comments on it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_record_is_refused() {
        let comments = Comments {
            own: Some("a table".into()),
            columns: [("x".to_owned(), "a column".to_owned())].into(),
            keys: [("t_pkey".to_owned(), "a key".to_owned())].into(),
        };
        let bytes = write(&comments, "t").unwrap();
        assert_eq!(read(&bytes, "t").unwrap(), comments);
        let later = [&[2][..], &bytes[1..]].concat();
        for bad in [&later[..], &bytes[..5], &[]] {
            assert!(read(bad, "t").is_err());
        }
    }
}
