//! A client of Arrow Flight SQL that says exactly what a test wants it to say: frames, headers and messages by hand, so
//! that nothing is tested against itself.

use std::io::{Cursor, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;

use crate::client::Served;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RESET: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GO_AWAY: u8 = 7;
pub const WINDOW: u8 = 8;

/// Nothing follows on the stream.
pub const END: u8 = 1;
const WHOLE: u8 = 4;

pub fn served() -> Served {
    served_with(|_, _| {})
}

pub fn served_with(change: impl FnOnce(&mut server::Options, &std::path::Path)) -> Served {
    Served::with(|options, folder| {
        options.flight = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        change(options, folder);
    })
}

pub fn address(served: &Served) -> SocketAddr {
    served.server.as_ref().unwrap().flight().unwrap()
}

/// A message of protocol buffers.
#[derive(Clone, Debug, Default)]
pub struct Pb(pub Vec<u8>);

impl Pb {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub fn number(mut self, field: u64, number: u64) -> Pb {
        self.varint(field << 3);
        self.varint(number);
        self
    }

    pub fn bytes(mut self, field: u64, bytes: impl AsRef<[u8]>) -> Pb {
        self.varint(field << 3 | 2);
        self.varint(bytes.as_ref().len() as u64);
        self.0.extend(bytes.as_ref());
        self
    }

    /// It is of this type of Flight SQL.
    pub fn any(&self, name: &str) -> Pb {
        let url = format!("type.googleapis.com/arrow.flight.protocol.sql.{name}");
        Pb::default().bytes(1, url).bytes(2, &self.0)
    }
}

/// The fields of a message: their numbers, and their bytes; numbers are eight of them.
pub fn fields(mut message: &[u8]) -> Vec<(u64, Vec<u8>)> {
    fn varint(from: &mut &[u8]) -> u64 {
        let mut number = 0;
        for shift in 0.. {
            let (first, rest) = from.split_first().unwrap();
            *from = rest;
            number |= u64::from(first & 0x7f) << (7 * shift);
            if first & 0x80 == 0 {
                break;
            }
        }
        number
    }
    let mut all = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        let number = varint(&mut message);
        if key & 7 == 0 {
            all.push((key >> 3, number.to_le_bytes().to_vec()));
        } else {
            assert_eq!(key & 7, 2);
            let (bytes, rest) = message.split_at(number as usize);
            message = rest;
            all.push((key >> 3, bytes.to_vec()));
        }
    }
    all
}

/// The first field of this number.
pub fn field(message: &[u8], number: u64) -> Vec<u8> {
    let all = fields(message);
    let found = all.into_iter().find(|(known, _)| *known == number);
    found.map(|(_, bytes)| bytes).unwrap_or_default()
}

/// A frame of the server.
#[derive(Clone, Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub body: Vec<u8>,
}

pub fn frame(kind: u8, flags: u8, stream: u32, body: &[u8]) -> Vec<u8> {
    let mut out = (body.len() as u32).to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(body);
    out
}

/// Headers as the server writes them.
fn unpacked(block: &[u8]) -> Vec<(String, String)> {
    let mut rest = block;
    let mut all = Vec::new();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == 0x88 {
            all.push((":status".into(), "200".into()));
            continue;
        }
        assert_eq!(*first, 0);
        let mut text = || {
            let mut length = usize::from(rest[0]);
            rest = &rest[1..];
            if length == 0x7f {
                for shift in 0.. {
                    let byte = rest[0];
                    rest = &rest[1..];
                    length += usize::from(byte & 0x7f) << (7 * shift);
                    if byte & 0x80 == 0 {
                        break;
                    }
                }
            }
            let (text, after) = rest.split_at(length);
            rest = after;
            String::from_utf8(text.to_vec()).unwrap()
        };
        let name = text();
        let value = text();
        all.push((name, value));
    }
    all
}

/// What a call has returned.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub messages: Vec<Vec<u8>>,
    pub headers: Vec<(String, String)>,
    /// The stream was ended by the server without an answer: why.
    pub reset: Option<u32>,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    /// The code of gRPC.
    pub fn status(&self) -> u32 {
        self.header("grpc-status").parse().unwrap_or(u32::MAX)
    }

    pub fn words(&self) -> &str {
        self.header("grpc-message")
    }

    pub fn ok(self) -> Answer {
        assert_eq!(self.status(), 0, "{self:?}");
        self
    }

    /// What its messages are as record batches.
    pub fn batches(&self) -> (SchemaRef, Vec<RecordBatch>) {
        let mut stream = Vec::new();
        for message in &self.messages {
            assert!(message.len() < 4 << 20, "{}", message.len());
            let header = field(message, 2);
            let padded = header.len().next_multiple_of(8);
            stream.extend(u32::MAX.to_le_bytes());
            stream.extend((padded as u32).to_le_bytes());
            stream.extend(&header);
            stream.extend(std::iter::repeat_n(0, padded - header.len()));
            stream.extend(field(message, 1000));
        }
        let reader = StreamReader::try_new(Cursor::new(stream), None).unwrap();
        (
            reader.schema(),
            reader.map(|batch| batch.unwrap()).collect(),
        )
    }

    /// The rows as texts.
    pub fn rows(&self) -> Vec<String> {
        let (_, batches) = self.batches();
        let mut all = Vec::new();
        for batch in &batches {
            for at in 0..batch.num_rows() {
                let texts = batch
                    .columns()
                    .iter()
                    .map(|column| arrow::util::display::array_value_to_string(column, at).unwrap());
                all.push(texts.collect::<Vec<_>>().join("|"));
            }
        }
        all
    }
}

/// A connection.
pub struct Flight {
    pub socket: TcpStream,
    next: u32,
    /// Headers of all calls.
    pub headers: Vec<(String, String)>,
    /// Whether it lets the server go on sending.
    pub widens: bool,
}

impl Flight {
    pub fn connect(served: &Served) -> Flight {
        let socket = TcpStream::connect(address(served)).unwrap();
        let patience = Some(Duration::from_secs(60));
        socket.set_read_timeout(patience).unwrap();
        let mut flight = Flight {
            socket,
            next: 1,
            headers: Vec::new(),
            widens: true,
        };
        flight.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        flight.send(&frame(SETTINGS, 0, 0, &[]));
        flight
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    pub fn receive(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.socket.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut body = vec![0; length];
        self.socket.read_exact(&mut body).ok()?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Some(Frame {
            kind: head[3],
            flags: head[4],
            stream,
            body,
        })
    }

    /// Begins a call; returns its stream.
    pub fn begin(&mut self, method: &str, headers: &[(&str, &str)]) -> u32 {
        let stream = self.next;
        self.next += 2;
        let mut block = vec![0x83];
        let path = format!("/arrow.flight.protocol.FlightService/{method}");
        let own = [
            (":path", path.as_str()),
            (":scheme", "http"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ];
        let all = self.headers.iter().map(|(n, v)| (n.as_str(), v.as_str()));
        for (name, value) in own.into_iter().chain(all).chain(headers.iter().copied()) {
            block.push(0);
            for text in [name, value] {
                assert!(text.len() < 127);
                block.push(text.len() as u8);
                block.extend(text.as_bytes());
            }
        }
        self.send(&frame(HEADERS, WHOLE, stream, &block));
        stream
    }

    /// Sends a message of a call.
    pub fn message(&mut self, stream: u32, message: &[u8]) {
        let mut bytes = vec![0];
        bytes.extend((message.len() as u32).to_be_bytes());
        bytes.extend(message);
        for piece in bytes.chunks(16 << 10) {
            self.send(&frame(DATA, 0, stream, piece));
        }
    }

    /// Nothing more is sent on a stream.
    pub fn end(&mut self, stream: u32) {
        self.send(&frame(DATA, END, stream, &[]));
    }

    /// What a call returns.
    pub fn answer(&mut self, stream: u32) -> Answer {
        let mut answer = Answer::default();
        let mut bytes = Vec::new();
        loop {
            let Some(frame) = self.receive() else {
                panic!("the connection has ended: {answer:?}");
            };
            if frame.kind == DATA && self.widens && !frame.body.is_empty() {
                let more = (frame.body.len() as u32).to_be_bytes();
                self.send(&super::flight_client::frame(WINDOW, 0, 0, &more));
                self.send(&super::flight_client::frame(WINDOW, 0, frame.stream, &more));
            }
            if frame.stream != stream {
                continue;
            }
            match frame.kind {
                DATA => bytes.extend(&frame.body),
                HEADERS => answer.headers.extend(unpacked(&frame.body)),
                RESET => {
                    answer.reset = Some(u32::from_be_bytes(frame.body[..].try_into().unwrap()));
                    break;
                }
                _ => {}
            }
            if matches!(frame.kind, DATA | HEADERS) && frame.flags & END != 0 {
                break;
            }
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            assert_eq!(rest[0], 0);
            let length = u32::from_be_bytes(rest[1..5].try_into().unwrap()) as usize;
            answer.messages.push(rest[5..5 + length].to_vec());
            rest = &rest[5 + length..];
        }
        answer
    }

    /// A call with one message.
    pub fn call(&mut self, method: &str, message: &Pb) -> Answer {
        self.call_with(method, &[], std::slice::from_ref(message))
    }

    pub fn call_with(&mut self, method: &str, headers: &[(&str, &str)], messages: &[Pb]) -> Answer {
        let stream = self.begin(method, headers);
        for message in messages {
            self.message(stream, &message.0);
        }
        self.end(stream);
        self.answer(stream)
    }

    /// Asks for what a command stands for: the ticket, and the schema as it was told.
    pub fn info(&mut self, command: &Pb) -> (Pb, Vec<u8>) {
        let info = self.call("GetFlightInfo", &descriptor(command)).ok();
        let ticket = field(&field(&info.messages[0], 3), 1);
        (Pb(ticket), field(&info.messages[0], 1))
    }

    /// The rows that a command stands for.
    pub fn fetch(&mut self, command: &Pb) -> Answer {
        let (ticket, _) = self.info(command);
        self.call("DoGet", &ticket)
    }

    /// The rows of a query.
    pub fn rows(&mut self, text: &str) -> Vec<String> {
        self.fetch(&query(text, None)).ok().rows()
    }

    pub fn put(&mut self, command: &Pb, batches: &[RecordBatch]) -> Answer {
        let mut messages = data(batches);
        if messages.is_empty() {
            messages.push(Pb::default());
        }
        let first = Pb(messages[0].0.clone()).bytes(1, descriptor(command).0);
        messages[0] = first;
        self.call_with("DoPut", &[], &messages)
    }

    /// Changes something; returns how many rows.
    pub fn update(&mut self, text: &str, transaction: Option<&[u8]>) -> Answer {
        let command = statement(text, transaction).any("CommandStatementUpdate");
        self.put(&command, &[])
    }

    pub fn act(&mut self, kind: &str, body: &Pb) -> Answer {
        self.call("DoAction", &Pb::default().bytes(1, kind).bytes(2, &body.0))
    }

    pub fn begin_transaction(&mut self) -> Vec<u8> {
        let body = Pb::default().any("ActionBeginTransactionRequest");
        let answer = self.act("BeginTransaction", &body).ok();
        let any = field(&answer.messages[0], 1);
        field(&field(&any, 2), 1)
    }

    pub fn end_transaction(&mut self, id: &[u8], action: u64) -> Answer {
        let body = Pb::default().bytes(1, id).number(2, action);
        self.act("EndTransaction", &body.any("ActionEndTransactionRequest"))
    }
}

/// How many rows an answer to `DoPut` says were changed.
pub fn changed(answer: &Answer) -> u64 {
    let count = field(&field(&answer.messages[0], 1), 1);
    u64::from_le_bytes(count.try_into().unwrap_or_default())
}

pub fn descriptor(command: &Pb) -> Pb {
    Pb::default().number(1, 2).bytes(2, &command.0)
}

pub fn statement(text: &str, transaction: Option<&[u8]>) -> Pb {
    let command = Pb::default().bytes(1, text);
    match transaction {
        Some(id) => command.bytes(2, id),
        None => command,
    }
}

pub fn query(text: &str, transaction: Option<&[u8]>) -> Pb {
    statement(text, transaction).any("CommandStatementQuery")
}

/// Batches as messages: their schema, and they.
pub fn data(batches: &[RecordBatch]) -> Vec<Pb> {
    let Some(first) = batches.first() else {
        return Vec::new();
    };
    let mut writer = StreamWriter::try_new(Vec::new(), &first.schema()).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    let stream = writer.into_inner().unwrap();
    let mut rest = &stream[..];
    let mut all = Vec::new();
    loop {
        let length = u32::from_le_bytes(rest[4..8].try_into().unwrap()) as usize;
        if length == 0 {
            return all;
        }
        let (header, after) = rest[8..].split_at(length);
        let body = arrow::ipc::root_as_message(header).unwrap().bodyLength() as usize;
        let (body, after) = after.split_at(body);
        all.push(Pb::default().bytes(2, header).bytes(1000, body));
        rest = after;
    }
}

/// The schema that a `FlightInfo` has.
pub fn schema_of(bytes: &[u8]) -> Schema {
    arrow::ipc::convert::try_schema_from_ipc_buffer(bytes).unwrap()
}
