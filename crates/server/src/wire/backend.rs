//! What clients get. Each function appends one message.

use sql::About;

/// A message under way: its length is filled in when it is complete.
fn message(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    let at = out.len();
    out.extend([0; 4]);
    body(out);
    let length = (out.len() - at) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

fn text(out: &mut Vec<u8>, text: &str) {
    // A zero would end the text.
    out.extend(text.bytes().filter(|byte| *byte != 0));
    out.push(0);
}

pub(crate) fn authentication(out: &mut Vec<u8>, code: u32, data: &[u8]) {
    message(out, b'R', |out| {
        out.extend(code.to_be_bytes());
        out.extend(data);
    });
}

pub(crate) fn parameter(out: &mut Vec<u8>, name: &str, value: &str) {
    message(out, b'S', |out| {
        text(out, name);
        text(out, value);
    });
}

pub(crate) fn key(out: &mut Vec<u8>, process: u32, secret: &[u8]) {
    message(out, b'K', |out| {
        out.extend(process.to_be_bytes());
        out.extend(secret);
    });
}

/// That the server knows version 3.0 only, and not these options.
pub(crate) fn negotiate(out: &mut Vec<u8>, options: &[&str]) {
    message(out, b'v', |out| {
        out.extend(0u32.to_be_bytes());
        out.extend((options.len() as u32).to_be_bytes());
        for option in options {
            text(out, option);
        }
    });
}

/// The state of the transaction: `I`dle, in a `T`ransaction, `E` in one that has failed.
pub(crate) fn ready(out: &mut Vec<u8>, status: u8) {
    message(out, b'Z', |out| out.push(status));
}

/// A message without a body: `1` parsed, `2` bound, `3` closed, `n` no rows, `s` suspended, `I` empty, `c` copied.
pub(crate) fn bare(out: &mut Vec<u8>, kind: u8) {
    message(out, kind, |_| {});
}

pub(crate) fn complete(out: &mut Vec<u8>, tag: &str) {
    message(out, b'C', |out| text(out, tag));
}

/// A column of a result.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub name: String,
    /// The table that it is a column of, and its place there from 1 on; 0 if it is none.
    pub table: u32,
    pub place: i16,
    pub oid: u32,
    /// Bytes of a value; -1 if they differ.
    pub size: i16,
    pub modifier: i32,
    pub binary: bool,
}

pub(crate) fn columns(out: &mut Vec<u8>, columns: &[Column]) {
    message(out, b'T', |out| {
        out.extend((columns.len() as u16).to_be_bytes());
        for column in columns {
            text(out, &column.name);
            out.extend(column.table.to_be_bytes());
            out.extend(column.place.to_be_bytes());
            out.extend(column.oid.to_be_bytes());
            out.extend(column.size.to_be_bytes());
            out.extend(column.modifier.to_be_bytes());
            out.extend(u16::from(column.binary).to_be_bytes());
        }
    });
}

pub(crate) fn parameters(out: &mut Vec<u8>, types: &[u32]) {
    message(out, b't', |out| {
        out.extend((types.len() as u16).to_be_bytes());
        for oid in types {
            out.extend(oid.to_be_bytes());
        }
    });
}

/// A row, whose fields `fields` appends.
pub(crate) fn row(out: &mut Vec<u8>, count: usize, fields: impl FnOnce(&mut Vec<u8>)) {
    message(out, b'D', |out| {
        out.extend((count as u16).to_be_bytes());
        fields(out);
    });
}

/// A field of a row: its length, and what `value` appends.
pub(crate) fn field(out: &mut Vec<u8>, value: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend([0; 4]);
    value(out);
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

pub(crate) fn null(out: &mut Vec<u8>) {
    out.extend((-1i32).to_be_bytes());
}

/// The start of a copy: `G` to the server, `H` to the client.
pub(crate) fn copying(out: &mut Vec<u8>, kind: u8, columns: usize, binary: bool) {
    message(out, kind, |out| {
        out.push(binary.into());
        out.extend((columns as u16).to_be_bytes());
        for _ in 0..columns {
            out.extend(u16::from(binary).to_be_bytes());
        }
    });
}

pub(crate) fn copied(out: &mut Vec<u8>, data: impl FnOnce(&mut Vec<u8>)) {
    message(out, b'd', data);
}

/// What is said of a statement whose columns are others than its client was told: by these very words pgx prepares it again.
pub(crate) const CHANGED: &str = "cached plan must not change result type";

/// An error, or a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub severity: &'static str,
    pub code: &'static str,
    pub message: Box<str>,
    /// More of what is wrong.
    pub detail: Option<Box<str>>,
    /// What to do.
    pub hint: Option<Box<str>>,
    /// The character in the text of the query, counted from 1.
    pub position: Option<usize>,
    /// Where in a value it is.
    pub context: Option<Box<str>>,
    /// The schema, table, column, data type and constraint that it is about, if it is about one.
    pub about: Option<Box<About>>,
}

impl Report {
    /// What ends a statement.
    pub(crate) fn error(code: &'static str, message: impl Into<String>) -> Report {
        Report {
            severity: "ERROR",
            code,
            message: message.into().into_boxed_str(),
            detail: None,
            hint: None,
            position: None,
            context: None,
            about: None,
        }
    }

    /// What ends the connection.
    pub(crate) fn fatal(code: &'static str, message: impl Into<String>) -> Report {
        Report {
            severity: "FATAL",
            ..Report::error(code, message)
        }
    }

    pub(crate) fn notice(message: impl Into<String>) -> Report {
        let mut message = message.into();
        // More of it stands behind this word, as psql shows it.
        let detail = match message.split_once("\nDETAIL: ") {
            Some((first, rest)) => {
                let (first, rest) = (first.to_owned(), rest.to_owned());
                message = first;
                Some(rest.into())
            }
            None => None,
        };
        Report {
            severity: "NOTICE",
            detail,
            ..Report::error("00000", message)
        }
    }

    pub(crate) fn warning(code: &'static str, message: impl Into<String>) -> Report {
        Report {
            severity: "WARNING",
            ..Report::error(code, message)
        }
    }

    /// Appends it.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let kind = match self.severity {
            "WARNING" | "NOTICE" => b'N',
            _ => b'E',
        };
        message(out, kind, |out| {
            let mut part = |key: u8, value: &str| {
                out.push(key);
                text(out, value);
            };
            part(b'S', self.severity);
            part(b'V', self.severity);
            part(b'C', self.code);
            part(b'M', &self.message);
            if let Some(detail) = &self.detail {
                part(b'D', detail);
            }
            if let Some(hint) = &self.hint {
                part(b'H', hint);
            }
            if let Some(position) = self.position {
                part(b'P', &position.to_string());
            }
            if let Some(context) = &self.context {
                part(b'W', context);
            }
            if let Some(about) = &self.about {
                let fields = [
                    (b's', &about.schema),
                    (b't', &about.table),
                    (b'c', &about.column),
                    (b'd', &about.data_type),
                    (b'n', &about.constraint),
                ];
                for (key, name) in fields {
                    if let Some(name) = name {
                        part(key, name);
                    }
                }
            }
            if *self.message == *CHANGED {
                // The function of PostgreSQL that says so: by it pgjdbc knows what to do.
                part(b'R', "RevalidateCachedQuery");
            }
            out.push(0);
        });
    }
}
