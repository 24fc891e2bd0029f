//! What clients send. Every length is checked before it is believed; what is left over at the end of a message is an error.

use std::fmt;

/// A message that is not what the protocol says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub String);

/// What is wrong with a text whose bytes are none.
pub(crate) const NO_TEXT: &str = "invalid byte sequence for encoding \"UTF8\"";

impl Malformed {
    /// Whether a text is no UTF-8, and nothing else is known to be wrong.
    pub(crate) fn is_of_encoding(&self) -> bool {
        self.0.starts_with(NO_TEXT)
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a client says first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// It asks for TLS.
    Tls,
    /// It asks for encryption by Kerberos, which there is not.
    Gss,
    /// It asks to stop what another connection runs.
    Cancel { process: u32, secret: Vec<u8> },
    /// It wants a session. The protocol's version, and name and value of each parameter.
    Startup {
        minor: u16,
        parameters: Vec<(String, String)>,
    },
}

/// The object of a `Describe` or `Close`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Statement,
    Portal,
}

/// A message of a session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Query(String),
    Parse {
        name: String,
        text: String,
        types: Vec<u32>,
    },
    Bind(Bind),
    Describe(Target, String),
    Close(Target, String),
    Execute {
        portal: String,
        /// Most rows; 0 for all.
        limit: u32,
    },
    Flush,
    Sync,
    Terminate,
    CopyData(Vec<u8>),
    CopyDone,
    CopyFail(String),
    /// A password, or a step of SASL.
    Password(Vec<u8>),
}

impl Message {
    /// Whether the client waits for its answer only once it has sent `Sync` or `Flush`.
    pub(crate) fn is_followed(&self) -> bool {
        matches!(
            self,
            Message::Parse { .. }
                | Message::Bind(_)
                | Message::Describe(..)
                | Message::Close(..)
                | Message::Execute { .. }
        )
    }
}

/// A `Bind`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bind {
    pub portal: String,
    pub statement: String,
    /// Whether values are binary: none for all text, one for all, or one for each.
    pub formats: Vec<bool>,
    pub values: Vec<Option<Vec<u8>>>,
    /// Whether columns are wanted in binary: as `formats`.
    pub results: Vec<bool>,
}

/// The code of a request for TLS in place of a version.
const TLS: u32 = 80_877_103;
const GSS: u32 = 80_877_104;
const CANCEL: u32 = 80_877_102;

/// Takes the first message apart; `body` is what follows its length.
pub(crate) fn first(body: &[u8]) -> Result<First, Malformed> {
    let mut fields = Fields(body);
    let code = fields.number::<4>("the version")?;
    match u32::from_be_bytes(code) {
        TLS => fields.end(First::Tls),
        GSS => fields.end(First::Gss),
        CANCEL => {
            let process = u32::from_be_bytes(fields.number("the process")?);
            let secret = std::mem::take(&mut fields.0).to_vec();
            Ok(First::Cancel { process, secret })
        }
        version if version >> 16 == 3 => {
            let mut parameters = Vec::new();
            while fields.0.first().is_some_and(|byte| *byte != 0) {
                parameters.push((
                    fields.text("a parameter")?,
                    fields.text("a parameter's value")?,
                ));
            }
            fields.number::<1>("the end of the parameters")?;
            let minor = (version & 0xffff) as u16;
            fields.end(First::Startup { minor, parameters })
        }
        version => Err(Malformed(format!(
            "unsupported frontend protocol {}.{}: server supports 3.0 to 3.2",
            version >> 16,
            version & 0xffff
        ))),
    }
}

/// Takes a message of the kind `kind` apart; `body` is what follows its length.
pub(crate) fn message(kind: u8, body: Vec<u8>) -> Result<Message, Malformed> {
    match kind {
        b'd' => return Ok(Message::CopyData(body)),
        b'p' => return Ok(Message::Password(body)),
        _ => {}
    }
    let mut fields = Fields(&body);
    let message = match kind {
        b'Q' => Message::Query(fields.text("the query")?),
        b'P' => Message::Parse {
            name: fields.text("the statement's name")?,
            text: fields.text("the statement")?,
            types: fields.list("the types", |fields| {
                Ok(u32::from_be_bytes(fields.number("a type")?))
            })?,
        },
        b'B' => Message::Bind(Bind {
            portal: fields.text("the portal's name")?,
            statement: fields.text("the statement's name")?,
            formats: fields.list("the formats", Fields::format)?,
            values: fields.list("the values", Fields::value)?,
            results: fields.list("the formats of results", Fields::format)?,
        }),
        b'D' => {
            let target = fields.target()?;
            Message::Describe(target, fields.text("a name")?)
        }
        b'C' => {
            let target = fields.target()?;
            Message::Close(target, fields.text("a name")?)
        }
        b'E' => Message::Execute {
            portal: fields.text("the portal's name")?,
            limit: u32::from_be_bytes(fields.number("the number of rows")?) & (u32::MAX >> 1),
        },
        b'H' => Message::Flush,
        b'S' => Message::Sync,
        b'X' => Message::Terminate,
        b'c' => Message::CopyDone,
        b'f' => Message::CopyFail(fields.text("the reason")?),
        other => {
            return Err(Malformed(format!("invalid frontend message type {other}")));
        }
    };
    fields.end(message)
}

/// What is left of a message.
pub(crate) struct Fields<'b>(pub &'b [u8]);

impl<'b> Fields<'b> {
    fn short(what: &str) -> Malformed {
        Malformed(format!("the message ends within {what}"))
    }

    /// The next `N` bytes.
    pub(crate) fn number<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Malformed> {
        match self.0.split_first_chunk::<N>() {
            Some((number, rest)) => {
                self.0 = rest;
                Ok(*number)
            }
            None => Err(Fields::short(what)),
        }
    }

    /// The next `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize, what: &str) -> Result<&'b [u8], Malformed> {
        match self.0.split_at_checked(count) {
            Some((bytes, rest)) => {
                self.0 = rest;
                Ok(bytes)
            }
            None => Err(Fields::short(what)),
        }
    }

    /// Text up to a zero.
    pub(crate) fn text(&mut self, what: &str) -> Result<String, Malformed> {
        let end = self.0.iter().position(|byte| *byte == 0);
        let end = end.ok_or_else(|| Fields::short(what))?;
        let text = std::str::from_utf8(&self.0[..end])
            .map_err(|_| Malformed(format!("{NO_TEXT} in {what}")))?;
        self.0 = &self.0[end + 1..];
        Ok(text.to_string())
    }

    /// A count of 16 bits, and as many items.
    fn list<T>(
        &mut self,
        what: &str,
        mut item: impl FnMut(&mut Fields<'b>) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = usize::from(u16::from_be_bytes(self.number(what)?));
        // Each item has two bytes at least.
        if count > self.0.len() / 2 {
            return Err(Fields::short(what));
        }
        (0..count).map(|_| item(self)).collect()
    }

    fn format(&mut self) -> Result<bool, Malformed> {
        match u16::from_be_bytes(self.number("a format")?) {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Malformed(format!("unsupported format code: {other}"))),
        }
    }

    fn value(&mut self) -> Result<Option<Vec<u8>>, Malformed> {
        match i32::from_be_bytes(self.number("the length of a value")?) {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length)
                    .map_err(|_| Malformed(format!("a value of {length} bytes")))?;
                Ok(Some(self.bytes(length, "a value")?.to_vec()))
            }
        }
    }

    fn target(&mut self) -> Result<Target, Malformed> {
        match self.number::<1>("what is meant")? {
            [b'S'] => Ok(Target::Statement),
            [b'P'] => Ok(Target::Portal),
            [other] => Err(Malformed(format!(
                "neither a statement nor a portal: {other}"
            ))),
        }
    }

    fn end<T>(&self, message: T) -> Result<T, Malformed> {
        match self.0 {
            [] => Ok(message),
            rest => Err(Malformed(format!(
                "{} bytes after the end of the message",
                rest.len()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind() -> Vec<u8> {
        let mut body = b"p\0s\0".to_vec();
        body.extend([0, 1, 0, 1]);
        body.extend([0, 2]);
        body.extend((-1i32).to_be_bytes());
        body.extend(2i32.to_be_bytes());
        body.extend(b"ab");
        body.extend([0, 0]);
        body
    }

    #[test]
    fn messages_are_taken_apart() {
        let wanted = Message::Bind(Bind {
            portal: "p".into(),
            statement: "s".into(),
            formats: vec![true],
            values: vec![None, Some(b"ab".to_vec())],
            results: vec![],
        });
        assert_eq!(message(b'B', bind()), Ok(wanted));
        let parse = message(b'P', b"\0select 1\0\0\x01\0\0\0\x17".to_vec());
        let wanted = Message::Parse {
            name: String::new(),
            text: "select 1".into(),
            types: vec![23],
        };
        assert_eq!(parse, Ok(wanted));
        let startup = first(b"\0\x03\0\0user\0me\0\0");
        let wanted = First::Startup {
            minor: 0,
            parameters: vec![("user".into(), "me".into())],
        };
        assert_eq!(startup, Ok(wanted));
        assert_eq!(first(&TLS.to_be_bytes()), Ok(First::Tls));
    }

    #[test]
    fn every_message_that_is_cut_short_is_refused() {
        let whole = bind();
        for end in 0..whole.len() {
            assert!(message(b'B', whole[..end].to_vec()).is_err(), "{end}");
        }
        let mut longer = whole;
        longer.push(0);
        assert!(message(b'B', longer).is_err());
        assert!(message(b'Q', b"select 1".to_vec()).is_err());
        assert!(message(b'Q', b"\xff\0".to_vec()).is_err());
        assert!(message(b'?', vec![]).is_err());
        // A count that the message cannot hold takes no memory.
        assert!(message(b'P', b"\0\0\xff\xff".to_vec()).is_err());
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..200_000 {
            let mut body = bind();
            body.truncate(random.usize(..=body.len()));
            for _ in 0..random.usize(..4) {
                if !body.is_empty() {
                    let at = random.usize(..body.len());
                    body[at] = random.u8(..);
                }
            }
            let _ = message(random.u8(b'A'..=b'z'), body.clone());
            let _ = first(&body);
        }
    }
}
