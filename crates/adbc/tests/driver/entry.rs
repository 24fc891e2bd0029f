//! The functions that C calls.

use std::ffi::{CStr, CString, c_void};
use std::ptr;
use std::sync::Arc;

use adbc_core::constants::{ADBC_STATUS_OK, ADBC_VERSION_1_0_0, ADBC_VERSION_1_1_0};
use adbc_core::error::{AdbcStatusCode, Status};
use adbc_ffi::{
    FFI_AdbcConnection, FFI_AdbcDatabase, FFI_AdbcDriver, FFI_AdbcError, FFI_AdbcStatement,
};
use arrow::array::{Array, Int64Array, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field};
use arrow::ffi::to_ffi;
use arrow::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};

/// The driver by its functions, with a database, a connection and a statement.
struct Client {
    driver: FFI_AdbcDriver,
    database: FFI_AdbcDatabase,
    connection: FFI_AdbcConnection,
    statement: FFI_AdbcStatement,
}

/// Status, SQLSTATE and message.
type Told = (AdbcStatusCode, String, String);

fn told(status: AdbcStatusCode, error: &FFI_AdbcError) -> Result<(), Told> {
    if status == ADBC_STATUS_OK {
        return Ok(());
    }
    let code = error.sqlstate.iter().map(|c| *c as u8 as char).collect();
    let message = if error.message.is_null() {
        String::new()
    } else {
        // SAFETY: the driver has set a text there.
        let text = unsafe { CStr::from_ptr(error.message) };
        text.to_string_lossy().into_owned()
    };
    Err((status, code, message))
}

macro_rules! call {
    ($client:expr, $function:ident $(, $argument:expr)*) => {{
        let mut error = FFI_AdbcError::default();
        let function = $client.driver.$function.unwrap();
        // SAFETY: the handles are those of the client, and whole.
        let status = unsafe { function($($argument,)* &raw mut error) };
        told(status, &error)
    }};
}

fn text(text: &str) -> CString {
    CString::new(text).unwrap()
}

impl Client {
    fn new() -> Client {
        let mut client = Client {
            driver: FFI_AdbcDriver::default(),
            database: FFI_AdbcDatabase::default(),
            connection: FFI_AdbcConnection::default(),
            statement: FFI_AdbcStatement::default(),
        };
        let mut error = FFI_AdbcError::default();
        let driver = (&raw mut client.driver).cast::<c_void>();
        // SAFETY: `driver` is a structure of this version.
        let status =
            unsafe { adbc::entry::AdbcAtollInit(ADBC_VERSION_1_1_0, driver, &raw mut error) };
        told(status, &error).unwrap();
        call!(client, DatabaseNew, &raw mut client.database).unwrap();
        let (key, value) = (text("atoll.threads"), text("2"));
        call!(
            client,
            DatabaseSetOption,
            &raw mut client.database,
            key.as_ptr(),
            value.as_ptr()
        )
        .unwrap();
        call!(client, DatabaseInit, &raw mut client.database).unwrap();
        call!(client, ConnectionNew, &raw mut client.connection).unwrap();
        call!(
            client,
            ConnectionInit,
            &raw mut client.connection,
            &raw mut client.database
        )
        .unwrap();
        call!(
            client,
            StatementNew,
            &raw mut client.connection,
            &raw mut client.statement
        )
        .unwrap();
        client
    }

    fn query(&mut self, query: &str) {
        let query = text(query);
        call!(
            self,
            StatementSetSqlQuery,
            &raw mut self.statement,
            query.as_ptr()
        )
        .unwrap();
    }

    /// Executes a query: its stream, and how many rows it has written.
    fn execute(&mut self, query: &str) -> Result<(FFI_ArrowArrayStream, i64), Told> {
        self.query(query);
        let (mut stream, mut rows) = (FFI_ArrowArrayStream::empty(), -7);
        call!(
            self,
            StatementExecuteQuery,
            &raw mut self.statement,
            &raw mut stream,
            &raw mut rows
        )?;
        Ok((stream, rows))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        call!(self, StatementRelease, &raw mut self.statement).unwrap();
        call!(self, ConnectionRelease, &raw mut self.connection).unwrap();
        call!(self, DatabaseRelease, &raw mut self.database).unwrap();
    }
}

fn rows(stream: FFI_ArrowArrayStream) -> usize {
    let reader = ArrowArrayStreamReader::try_new(stream).unwrap();
    reader.map(|batch| batch.unwrap().num_rows()).sum()
}

#[test]
fn other_versions_are_refused() {
    for (version, driver) in [(ADBC_VERSION_1_0_0, 1), (0, 1), (ADBC_VERSION_1_1_0, 0)] {
        let mut functions = FFI_AdbcDriver::default();
        let driver = match driver {
            0 => ptr::null_mut(),
            _ => (&raw mut functions).cast::<c_void>(),
        };
        let mut error = FFI_AdbcError::default();
        // SAFETY: nothing is written for these versions, nor to null.
        let status = unsafe { adbc::entry::AdbcDriverInit(version, driver, &raw mut error) };
        assert!(told(status, &error).is_err());
        assert!(functions.DatabaseNew.is_none());
        // SAFETY: an error may be null.
        let again = unsafe { adbc::entry::AdbcDriverInit(version, driver, ptr::null_mut()) };
        assert_eq!(again, status);
    }
}

#[test]
fn a_stream_and_the_rows_that_were_written_come_together() {
    let mut client = Client::new();
    let (stream, changed) = client.execute("create table t (a bigint)").unwrap();
    assert_eq!((rows(stream), changed), (0, -1));
    let (stream, changed) = client
        .execute("insert into t values (1), (2), (3)")
        .unwrap();
    assert_eq!((rows(stream), changed), (0, 3));
    let (stream, changed) = client
        .execute("insert into t values (4) returning a")
        .unwrap();
    assert_eq!((rows(stream), changed), (1, 1));
    let (stream, changed) = client.execute("select a from t").unwrap();
    assert_eq!((rows(stream), changed), (4, -1));
    // Without a place for them.
    client.query("delete from t where a > 2");
    call!(
        client,
        StatementExecuteQuery,
        &raw mut client.statement,
        ptr::null_mut(),
        ptr::null_mut()
    )
    .unwrap();
    let (stream, _) = client.execute("select a from t").unwrap();
    assert_eq!(rows(stream), 2);
}

#[test]
fn an_error_of_a_stream_has_status_and_sqlstate() {
    let mut client = Client::new();
    let table = "create table t as select x from generate_series(1, 600000) a(x)";
    client.execute(table).unwrap();
    let query = "select 1 / (599999 - x) from t";
    let mut stream = match client.execute(query) {
        Ok((stream, _)) => stream,
        Err((status, code, _)) => {
            // It may have come before the first batch.
            assert_eq!(
                (status, code.as_str()),
                (Status::InvalidData.into(), "22012")
            );
            return;
        }
    };
    let error_of = client.driver.ErrorFromArrayStream.unwrap();
    let mut status = ADBC_STATUS_OK;
    // SAFETY: the stream is whole.
    assert!(unsafe { error_of(&raw mut stream, &raw mut status) }.is_null());
    loop {
        let mut batch = arrow::ffi::FFI_ArrowArray::empty();
        // SAFETY: the stream is whole.
        let ended = unsafe { stream.get_next.unwrap()(&raw mut stream, &raw mut batch) };
        if ended != 0 {
            break;
        }
        assert!(
            !batch.is_released(),
            "the stream has ended without its error"
        );
    }
    for _ in 0..2 {
        // SAFETY: the stream is whole, and the error lives as long.
        let error = unsafe { error_of(&raw mut stream, &raw mut status).as_ref() }.unwrap();
        let (status, code, message) = told(status, error).unwrap_err();
        assert_eq!(
            (status, code.as_str()),
            (Status::InvalidData.into(), "22012"),
            "{message}"
        );
    }
    // Of another stream nothing is known.
    let mut other = FFI_ArrowArrayStream::empty();
    // SAFETY: a stream that was released is one, and so is none.
    unsafe {
        assert!(error_of(&raw mut other, &raw mut status).is_null());
        assert!(error_of(ptr::null_mut(), ptr::null_mut()).is_null());
    }
}

#[test]
fn what_is_wrong_does_not_end_the_driver() {
    let mut client = Client::new();
    // A row that is NULL as a whole, at which `adbc_ffi` would panic.
    let numbers = Arc::new(Int64Array::from(vec![1, 2]));
    let field = Arc::new(Field::new("a", DataType::Int64, true));
    let nulls = Some(NullBuffer::from(vec![true, false]));
    let array = StructArray::new(vec![field].into(), vec![numbers], nulls);
    let (mut values, mut schema) = to_ffi(&array.to_data()).unwrap();
    let statement = &raw mut client.statement;
    let refused = call!(
        client,
        StatementBind,
        statement,
        &raw mut values,
        &raw mut schema
    );
    assert_eq!(
        refused.unwrap_err().0,
        AdbcStatusCode::from(Status::InvalidArguments)
    );
    let refused = call!(
        client,
        StatementBind,
        statement,
        ptr::null_mut(),
        &raw mut schema
    );
    assert_eq!(
        refused.unwrap_err().0,
        AdbcStatusCode::from(Status::InvalidArguments)
    );
    // Not a row of columns.
    let (mut values, mut schema) = to_ffi(&Int64Array::from(vec![1]).to_data()).unwrap();
    assert!(
        call!(
            client,
            StatementBind,
            statement,
            &raw mut values,
            &raw mut schema
        )
        .is_err()
    );
    let (stream, _) = client.execute("select 1").unwrap();
    assert_eq!(rows(stream), 1);
}
