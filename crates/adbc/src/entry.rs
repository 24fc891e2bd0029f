//! The functions by which programs load the driver.

use std::ffi::{c_int, c_void};
use std::ptr;

use adbc_core::constants::{ADBC_STATUS_OK, ADBC_VERSION_1_1_0};
use adbc_core::error::{AdbcStatusCode, Error, Status};
use adbc_ffi::{FFI_AdbcDriver, FFI_AdbcError, FFI_AdbcStatement, FFIDriver, export_error};
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow::ffi_stream::FFI_ArrowArrayStream;

use crate::driver::Driver;
use crate::error::{invalid, missing};
use crate::guard::caught;
use crate::stream;

/// Fills in the functions of the driver: `driver` points to a `struct AdbcDriver` of version 1.1.0 of ADBC, and `version` is
/// `ADBC_VERSION_1_1_0`.
///
/// # Safety
///
/// `driver` points to such a struct, or is null; `error` points to a `struct AdbcError`, or is null.
#[allow(non_snake_case, reason = "the name follows from that of the library")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AdbcAtollInit(
    version: c_int,
    driver: *mut c_void,
    error: *mut FFI_AdbcError,
) -> AdbcStatusCode {
    let refused = if version != ADBC_VERSION_1_1_0 {
        missing(format!(
            "the driver is one of ADBC 1.1.0 ({ADBC_VERSION_1_1_0}), and version {version} was asked for: use a newer driver manager"
        ))
    } else if driver.is_null() {
        Error::with_message_and_status("driver is null", Status::InvalidArguments)
    } else {
        let mut functions = Driver::ffi_driver();
        functions.StatementBind = Some(bind);
        functions.StatementExecuteQuery = Some(execute_query);
        functions.ErrorFromArrayStream = Some(stream::error_of);
        // SAFETY: the caller's, for this version.
        unsafe { ptr::write_unaligned(driver.cast::<FFI_AdbcDriver>(), functions) };
        return ADBC_STATUS_OK;
    };
    let status = refused.status.into();
    // SAFETY: the caller's.
    unsafe { export_error(error, refused) };
    status
}

/// [`AdbcAtollInit`] by the name that every driver has.
///
/// # Safety
///
/// Those of [`AdbcAtollInit`].
#[allow(non_snake_case, reason = "the name is that of ADBC")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AdbcDriverInit(
    version: c_int,
    driver: *mut c_void,
    error: *mut FFI_AdbcError,
) -> AdbcStatusCode {
    // SAFETY: the caller's.
    unsafe { AdbcAtollInit(version, driver, error) }
}

/// Binds a batch as `adbc_ffi` does, which would panic at rows that are NULL as a whole, and refuse all calls then.
unsafe extern "C" fn bind(
    statement: *mut FFI_AdbcStatement,
    values: *mut FFI_ArrowArray,
    schema: *mut FFI_ArrowSchema,
    error: *mut FFI_AdbcError,
) -> AdbcStatusCode {
    let Some(bind) = Driver::ffi_driver().StatementBind else {
        return Status::Internal.into();
    };
    if values.is_null() || schema.is_null() {
        // SAFETY: the caller's.
        return unsafe { bind(statement, values, schema, error) };
    }
    let taken = caught(|| {
        // SAFETY: the caller's: both are whole, and the array is handed over.
        let array = unsafe { from_ffi(FFI_ArrowArray::from_raw(values), &*schema) }?;
        if array.null_count() > 0 {
            return Err(invalid("a row that is bound is NULL as a whole"));
        }
        Ok(to_ffi(&array)?)
    });
    match taken {
        // SAFETY: the caller's, and both are whole.
        Ok((mut values, mut schema)) => unsafe { bind(statement, &mut values, &mut schema, error) },
        Err(refused) => {
            let status = refused.status.into();
            // SAFETY: the caller's.
            unsafe { export_error(error, refused) };
            status
        }
    }
}

/// Executes a statement as `adbc_ffi` does, and hands on what that does not.
unsafe extern "C" fn execute_query(
    statement: *mut FFI_AdbcStatement,
    out: *mut FFI_ArrowArrayStream,
    rows_affected: *mut i64,
    error: *mut FFI_AdbcError,
) -> AdbcStatusCode {
    let Some(execute) = Driver::ffi_driver().StatementExecuteQuery else {
        return Status::Internal.into();
    };
    drop(stream::told());
    // SAFETY: the caller's.
    let status = unsafe { execute(statement, out, rows_affected, error) };
    let told = stream::told();
    if status != ADBC_STATUS_OK || out.is_null() {
        return status;
    }
    let Some(told) = told else {
        return status;
    };
    if let Some(changed) = told.changed
        && !rows_affected.is_null()
    {
        let changed = i64::try_from(changed).unwrap_or(-1);
        // SAFETY: the caller's.
        unsafe { ptr::write_unaligned(rows_affected, changed) };
    }
    if let Some(failure) = told.failure {
        // SAFETY: the call above has written a stream there, which is taken out and put back.
        unsafe {
            let inner = ptr::read_unaligned(out);
            ptr::write_unaligned(out, stream::failing(inner, failure));
        }
    }
    status
}
