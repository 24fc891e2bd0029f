//! What `adbc_ffi` does not hand on to C: how many rows a statement has written that may return some, and the status of an
//! error in the middle of a stream.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use adbc_core::constants::ADBC_ERROR_VENDOR_CODE_PRIVATE_DATA;
use adbc_core::error::AdbcStatusCode;
use adbc_ffi::FFI_AdbcError;
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow::ffi_stream::FFI_ArrowArrayStream;

use crate::rows::Failure;

/// What an execution has told beside its rows.
pub(crate) struct Told {
    /// How many rows were written.
    pub(crate) changed: Option<u64>,
    /// Where it will be told why the stream has failed.
    pub(crate) failure: Option<Failure>,
}

thread_local! {
    static LAST: RefCell<Option<Told>> = const { RefCell::new(None) };
}

/// Tells whoever called the statement on this thread by C.
pub(crate) fn announce(changed: Option<u64>, failure: Option<Failure>) {
    LAST.with(|last| *last.borrow_mut() = Some(Told { changed, failure }));
}

/// What the last execution on this thread has told; nothing the second time.
pub(crate) fn told() -> Option<Told> {
    LAST.with(|last| last.borrow_mut().take())
}

/// A stream, and why it has failed.
struct Failing {
    inner: FFI_ArrowArrayStream,
    failure: Failure,
    /// What was handed out of it: it lives as long as the stream does.
    error: Option<(FFI_AdbcError, AdbcStatusCode)>,
}

/// A stream of which [`error_of`] tells why it has failed.
pub(crate) fn failing(inner: FFI_ArrowArrayStream, failure: Failure) -> FFI_ArrowArrayStream {
    let failing = Box::new(Failing {
        inner,
        failure,
        error: None,
    });
    FFI_ArrowArrayStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release),
        private_data: Box::into_raw(failing).cast(),
    }
}

/// What a stream of [`failing`] carries; none for another stream, or one that was released.
///
/// # Safety
/// `stream` is null or points to a stream, which nobody else uses while the result is in use.
unsafe fn carried<'s>(stream: *mut FFI_ArrowArrayStream) -> Option<&'s mut Failing> {
    // SAFETY: the caller's.
    let stream = unsafe { stream.as_ref() }?;
    let own = stream.release? as *const () == release as *const ();
    if !own {
        return None;
    }
    // SAFETY: only `failing` sets this release, and the data of a stream that has one is there.
    unsafe { stream.private_data.cast::<Failing>().as_mut() }
}

unsafe extern "C" fn get_schema(
    stream: *mut FFI_ArrowArrayStream,
    out: *mut FFI_ArrowSchema,
) -> c_int {
    // SAFETY: the stream is the caller's, as the interface demands.
    match unsafe { carried(stream) } {
        Some(failing) => match failing.inner.get_schema {
            // SAFETY: the stream within is whole, and `out` is the caller's.
            Some(function) => unsafe { function(&raw mut failing.inner, out) },
            None => INVALID,
        },
        None => INVALID,
    }
}

unsafe extern "C" fn get_next(
    stream: *mut FFI_ArrowArrayStream,
    out: *mut FFI_ArrowArray,
) -> c_int {
    // SAFETY: the stream is the caller's, as the interface demands.
    match unsafe { carried(stream) } {
        Some(failing) => match failing.inner.get_next {
            // SAFETY: the stream within is whole, and `out` is the caller's.
            Some(function) => unsafe { function(&raw mut failing.inner, out) },
            None => INVALID,
        },
        None => INVALID,
    }
}

unsafe extern "C" fn get_last_error(stream: *mut FFI_ArrowArrayStream) -> *const c_char {
    // SAFETY: the stream is the caller's, as the interface demands.
    match unsafe { carried(stream) } {
        Some(failing) => match failing.inner.get_last_error {
            // SAFETY: the stream within is whole.
            Some(function) => unsafe { function(&raw mut failing.inner) },
            None => ptr::null(),
        },
        None => ptr::null(),
    }
}

unsafe extern "C" fn release(stream: *mut FFI_ArrowArrayStream) {
    // SAFETY: the stream is the caller's, as the interface demands.
    let Some(stream) = (unsafe { stream.as_mut() }) else {
        return;
    };
    let data: *mut c_void = std::mem::replace(&mut stream.private_data, ptr::null_mut());
    stream.release = None;
    if !data.is_null() {
        // SAFETY: `failing` has made it of a box, and it is taken out of the stream once.
        drop(unsafe { Box::from_raw(data.cast::<Failing>()) });
    }
}

/// `EINVAL`.
const INVALID: c_int = 22;

/// The error that has ended a stream of [`failing`], which belongs to the stream; null if it has not failed, or is another
/// stream. Its status goes to `status`.
///
/// # Safety
/// `stream` is null or points to a stream that nobody else uses meanwhile; `status` is null or can be written to.
pub(crate) unsafe extern "C" fn error_of(
    stream: *mut FFI_ArrowArrayStream,
    status: *mut AdbcStatusCode,
) -> *const FFI_AdbcError {
    // SAFETY: the caller's.
    let Some(failing) = (unsafe { carried(stream) }) else {
        return ptr::null();
    };
    if failing.error.is_none() {
        let Some(error) = failing.failure.lock().take() else {
            return ptr::null();
        };
        let code = AdbcStatusCode::from(error.status);
        let Ok(mut error) = FFI_AdbcError::try_from(error) else {
            return ptr::null();
        };
        // That it is an error of version 1.1 of ADBC.
        error.vendor_code = ADBC_ERROR_VENDOR_CODE_PRIVATE_DATA;
        failing.error = Some((error, code));
    }
    match &failing.error {
        Some((error, code)) => {
            if !status.is_null() {
                // SAFETY: the caller's.
                unsafe { ptr::write_unaligned(status, *code) };
            }
            ptr::from_ref(error)
        }
        None => ptr::null(),
    }
}
