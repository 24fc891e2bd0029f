//! Panics stay within the call.
//!
//! `adbc_ffi` catches a panic, too, but refuses every call of the process after it, as it cannot know what the driver is
//! still good for. Here it is known: the database makes a panic of a statement that statement's error, and this crate's own
//! state is changed in single steps. A panic within a stream would reach C, where it ends the process.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use adbc_core::error::{Error, Result, Status};

use crate::error::with;

/// Does `work`; if it panics, that is its error.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(of_panic(panic.as_ref())))
}

fn of_panic(panic: &(dyn Any + Send)) -> Error {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned());
    let message = format!("a defect in the driver made the call fail; please report it: {text}");
    with(Status::Internal, "XX000", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error() {
        let error = caught::<()>(|| panic!("at the disco")).unwrap_err();
        assert_eq!(error.status, Status::Internal);
        assert!(error.message.ends_with("at the disco"), "{error}");
        assert_eq!(caught(|| Ok(1)), Ok(1));
    }
}
