//! Messages of Arrow Flight and Flight SQL, as `Flight.proto` and `FlightSql.proto` of Apache Arrow have them: the parts
//! that are read or written here. What a client sends beside is passed over.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::{Enumeration, Message};

/// A message with the name of its type: what commands and actions are wrapped in.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Any {
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Handshake {
    #[prost(uint64, tag = "1")]
    pub protocol_version: u64,
    #[prost(bytes = "bytes", tag = "2")]
    pub payload: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FlightDescriptor {
    #[prost(int32, tag = "1")]
    pub kind: i32,
    #[prost(bytes = "bytes", tag = "2")]
    pub command: Bytes,
    #[prost(string, repeated, tag = "3")]
    pub path: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Ticket {
    #[prost(bytes = "bytes", tag = "1")]
    pub ticket: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FlightEndpoint {
    #[prost(message, optional, tag = "1")]
    pub ticket: Option<Ticket>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FlightInfo {
    #[prost(bytes = "bytes", tag = "1")]
    pub schema: Bytes,
    #[prost(message, optional, tag = "2")]
    pub descriptor: Option<FlightDescriptor>,
    #[prost(message, repeated, tag = "3")]
    pub endpoint: Vec<FlightEndpoint>,
    #[prost(int64, tag = "4")]
    pub total_records: i64,
    #[prost(int64, tag = "5")]
    pub total_bytes: i64,
    #[prost(bool, tag = "6")]
    pub ordered: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PollInfo {
    #[prost(message, optional, tag = "1")]
    pub info: Option<FlightInfo>,
    #[prost(double, optional, tag = "3")]
    pub progress: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SchemaResult {
    #[prost(bytes = "bytes", tag = "1")]
    pub schema: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FlightData {
    #[prost(message, optional, tag = "1")]
    pub descriptor: Option<FlightDescriptor>,
    #[prost(bytes = "bytes", tag = "2")]
    pub header: Bytes,
    #[prost(bytes = "bytes", tag = "1000")]
    pub body: Bytes,
}

/// The result of a `DoPut`, and of an action.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Outcome {
    #[prost(bytes = "bytes", tag = "1")]
    pub body: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Action {
    #[prost(string, tag = "1")]
    pub kind: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub body: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ActionType {
    #[prost(string, tag = "1")]
    pub kind: String,
    #[prost(string, tag = "2")]
    pub description: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CancelRequest {
    #[prost(message, optional, tag = "1")]
    pub info: Option<FlightInfo>,
}

/// What became of a request to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(crate) enum Cancelled {
    Unspecified = 0,
    Done = 1,
    Doing = 2,
    NotCancellable = 3,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CancelResult {
    #[prost(enumeration = "Cancelled", tag = "1")]
    pub status: i32,
}

/// A statement in a command: `CommandStatementQuery`, `CommandStatementUpdate`, and what asks to prepare one.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Text {
    #[prost(string, tag = "1")]
    pub query: String,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub transaction: Option<Bytes>,
}

/// The handle of a prepared statement or of a transaction.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Handle {
    #[prost(bytes = "bytes", tag = "1")]
    pub handle: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PreparedResult {
    #[prost(bytes = "bytes", tag = "1")]
    pub handle: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub columns: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    pub parameters: Bytes,
}

/// How a transaction or a savepoint ends: 1 to keep what was done, 2 to undo it.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct End {
    #[prost(bytes = "bytes", tag = "1")]
    pub handle: Bytes,
    #[prost(int32, tag = "2")]
    pub action: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Savepoint {
    #[prost(bytes = "bytes", tag = "1")]
    pub transaction: Bytes,
    #[prost(string, tag = "2")]
    pub name: String,
}

/// What to do where a table is not there (1: make it), and where it is (2: append, 3: replace).
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TableOptions {
    #[prost(int32, tag = "1")]
    pub if_not_exist: i32,
    #[prost(int32, tag = "2")]
    pub if_exists: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Ingest {
    #[prost(message, optional, tag = "1")]
    pub definition: Option<TableOptions>,
    #[prost(string, tag = "2")]
    pub table: String,
    #[prost(string, optional, tag = "3")]
    pub schema: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub catalog: Option<String>,
    #[prost(bool, tag = "5")]
    pub temporary: bool,
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub transaction: Option<Bytes>,
    #[prost(btree_map = "string, string", tag = "1000")]
    pub options: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct UpdateResult {
    #[prost(int64, tag = "1")]
    pub count: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetSqlInfo {
    #[prost(uint32, repeated, tag = "1")]
    pub info: Vec<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetTypes {
    #[prost(int32, optional, tag = "1")]
    pub data_type: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetSchemas {
    #[prost(string, optional, tag = "1")]
    pub catalog: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub pattern: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetTables {
    #[prost(string, optional, tag = "1")]
    pub catalog: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub schemas: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub tables: Option<String>,
    #[prost(string, repeated, tag = "4")]
    pub kinds: Vec<String>,
    #[prost(bool, tag = "5")]
    pub with_columns: bool,
}

/// A table whose keys are asked for.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TableName {
    #[prost(string, optional, tag = "1")]
    pub catalog: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub schema: Option<String>,
    #[prost(string, tag = "3")]
    pub table: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CrossReference {
    #[prost(string, optional, tag = "2")]
    pub parent_schema: Option<String>,
    #[prost(string, tag = "3")]
    pub parent: String,
    #[prost(string, optional, tag = "5")]
    pub child_schema: Option<String>,
    #[prost(string, tag = "6")]
    pub child: String,
}

/// What a ticket of this server has in it: a statement, and what its client was told of it.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Asked {
    /// By which it can be cancelled.
    #[prost(bytes = "bytes", tag = "1")]
    pub id: Bytes,
    #[prost(string, tag = "2")]
    pub text: String,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub transaction: Option<Bytes>,
    /// The prepared statement, in the place of a text.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub prepared: Option<Bytes>,
    /// A command about the catalog, in the place of a statement.
    #[prost(message, optional, tag = "5")]
    pub command: Option<Any>,
    /// The columns.
    #[prost(bytes = "bytes", tag = "6")]
    pub schema: Bytes,
    /// Whether it has run: it returns no rows.
    #[prost(bool, tag = "7")]
    pub done: bool,
}

const PREFIX: &str = "type.googleapis.com/arrow.flight.protocol.sql.";

impl Any {
    /// The name of its type, if that is one of Flight SQL.
    pub(crate) fn name(&self) -> Option<&str> {
        self.type_url.strip_prefix(PREFIX)
    }

    /// A message of the type of this name.
    pub(crate) fn of(name: &str, message: &impl Message) -> Any {
        Any {
            type_url: format!("{PREFIX}{name}"),
            value: message.encode_to_vec().into(),
        }
    }
}
