//! A client that says exactly what a test wants it to say.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use server::{Options, Server};

use crate::panics;

/// How long a client waits for an answer before its test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server over a new store, which ends with it.
pub struct Served {
    pub server: Option<Server>,
    pub database: atoll::Database,
    pub address: SocketAddr,
    // Last: the store is in it.
    _directory: tempfile::TempDir,
}

impl Served {
    pub fn new() -> Served {
        Served::with(|_, _| {})
    }

    /// With options that `change` has changed; it also gets the folder of the store.
    pub fn with(change: impl FnOnce(&mut Options, &Path)) -> Served {
        panics::watch();
        let directory = tempfile::tempdir().unwrap();
        let mut options = atoll::Options::default();
        options.threads = Some(2);
        options.memory_limit = Some(256 << 20);
        options.lock_timeout = Some(Duration::from_secs(5));
        let path = directory.path().join("served.atoll");
        let database = atoll::Database::create(path, &options).unwrap();
        let mut options = Options::default();
        options.listen.set_port(0);
        change(&mut options, directory.path());
        let server = Server::start(database.clone(), options).unwrap();
        Served {
            address: server.address(),
            server: Some(server),
            database,
            _directory: directory,
        }
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
        // A connection that a panic has closed looks like any other that is closed.
        if !std::thread::panicking() {
            panics::none();
        }
    }
}

/// A message of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub kind: char,
    pub body: Vec<u8>,
}

impl Told {
    /// A part of an error: `C` its code, `M` its message, `P` its place.
    pub fn part(&self, key: u8) -> String {
        let mut parts = self.body.split(|byte| *byte == 0);
        let found = parts.find(|part| part.first() == Some(&key));
        found.map_or_else(String::new, |part| {
            String::from_utf8_lossy(&part[1..]).into_owned()
        })
    }

    /// The fields of a row.
    pub fn fields(&self) -> Vec<Option<Vec<u8>>> {
        let mut rest = &self.body[2..];
        let count = u16::from_be_bytes([self.body[0], self.body[1]]);
        let mut next = |length: usize| {
            let (now, then) = rest.split_at(length);
            rest = then;
            now
        };
        (0..count)
            .map(|_| {
                let length = i32::from_be_bytes(next(4).try_into().unwrap());
                (length >= 0).then(|| next(length as usize).to_vec())
            })
            .collect()
    }

    /// The fields of a row as text.
    pub fn texts(&self) -> Vec<Option<String>> {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        self.fields()
            .into_iter()
            .map(|field| field.map(text))
            .collect()
    }

    /// The text of the message up to a zero.
    pub fn text(&self) -> String {
        let text = self.body.split(|byte| *byte == 0).next().unwrap();
        String::from_utf8_lossy(text).into_owned()
    }
}

pub struct Client {
    pub socket: TcpStream,
    pub process: u32,
    pub secret: Vec<u8>,
    pub parameters: BTreeMap<String, String>,
}

/// A message: its kind, unless it is the first, and its body behind its length.
pub fn framed(kind: Option<u8>, body: &[u8]) -> Vec<u8> {
    let mut message: Vec<u8> = kind.into_iter().collect();
    message.extend((body.len() as u32 + 4).to_be_bytes());
    message.extend(body);
    message
}

pub fn startup(parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut body = 0x3_0000u32.to_be_bytes().to_vec();
    for (name, value) in parameters {
        body.extend(format!("{name}\0{value}\0").bytes());
    }
    body.push(0);
    framed(None, &body)
}

impl Client {
    /// Connects and is let in.
    pub fn connect(address: SocketAddr) -> Client {
        Client::try_connect(address, &[("user", "ann")]).unwrap()
    }

    /// Connects; the error if it is not let in.
    pub fn try_connect(address: SocketAddr, parameters: &[(&str, &str)]) -> Result<Client, Told> {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut client = Client {
            socket,
            process: 0,
            secret: Vec::new(),
            parameters: BTreeMap::new(),
        };
        client.send(&startup(parameters));
        loop {
            let told = client.receive().unwrap();
            match told.kind {
                'R' => assert_eq!(told.body, [0, 0, 0, 0]),
                'S' => {
                    let mut parts = told.body.split(|byte| *byte == 0);
                    let mut text = || String::from_utf8(parts.next().unwrap().to_vec()).unwrap();
                    let name = text();
                    client.parameters.insert(name, text());
                }
                'K' => {
                    client.process = u32::from_be_bytes(told.body[..4].try_into().unwrap());
                    client.secret = told.body[4..].to_vec();
                }
                'Z' => return Ok(client),
                'E' => return Err(told),
                other => panic!("{other}"),
            }
        }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    /// The next message; none at the end of the connection.
    pub fn receive(&mut self) -> Option<Told> {
        let mut head = [0; 5];
        self.socket.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes(head[1..].try_into().unwrap()) as usize;
        let mut body = vec![0; length - 4];
        self.socket.read_exact(&mut body).ok()?;
        Some(Told {
            kind: char::from(head[0]),
            body,
        })
    }

    /// Whether there is something to receive, at the latest after this time.
    pub fn is_answered(&self, within: Duration) -> bool {
        self.socket.set_read_timeout(Some(within)).unwrap();
        let some = self.socket.peek(&mut [0]).is_ok();
        self.socket.set_read_timeout(Some(PATIENCE)).unwrap();
        some
    }

    /// The messages up to the one that says that the next statement may come.
    pub fn answers(&mut self) -> Vec<Told> {
        let mut all = Vec::new();
        loop {
            let told = self.receive().expect("the server closed the connection");
            let ready = told.kind == 'Z';
            all.push(told);
            if ready {
                return all;
            }
        }
    }

    /// The answers to a simple query.
    pub fn ask(&mut self, text: &str) -> Vec<Told> {
        self.send(&framed(Some(b'Q'), format!("{text}\0").as_bytes()));
        self.answers()
    }

    /// The rows of a simple query, as text.
    pub fn rows(&mut self, text: &str) -> Vec<Vec<Option<String>>> {
        let all = self.ask(text);
        if let Some(error) = all.iter().find(|told| told.kind == 'E') {
            panic!("{text}: {}", error.part(b'M'));
        }
        let rows = all.iter().filter(|told| told.kind == 'D');
        rows.map(Told::texts).collect()
    }

    /// The one value of a simple query.
    pub fn value(&mut self, text: &str) -> String {
        self.rows(text)[0][0].clone().unwrap_or_default()
    }

    /// The code of the error of a simple query.
    pub fn code(&mut self, text: &str) -> String {
        let all = self.ask(text);
        let error = all.iter().find(|told| told.kind == 'E');
        error.map_or_else(String::new, |error| error.part(b'C'))
    }

    /// The tag of a simple query.
    pub fn tag(&mut self, text: &str) -> String {
        let all = self.ask(text);
        let complete = all.iter().find(|told| told.kind == 'C');
        complete.unwrap_or_else(|| panic!("{text}: {all:?}")).text()
    }
}

/// `Parse`, with numbers of types.
pub fn parse(name: &str, text: &str, types: &[u32]) -> Vec<u8> {
    let mut body = format!("{name}\0{text}\0").into_bytes();
    body.extend((types.len() as u16).to_be_bytes());
    for oid in types {
        body.extend(oid.to_be_bytes());
    }
    framed(Some(b'P'), &body)
}

/// `Bind` of values, all binary or all text, to the portal of the same name.
pub fn bind(
    portal: &str,
    statement: &str,
    binary: bool,
    values: &[Option<&[u8]>],
    results: bool,
) -> Vec<u8> {
    let mut body = format!("{portal}\0{statement}\0").into_bytes();
    body.extend([0, 1, 0, binary.into()]);
    body.extend((values.len() as u16).to_be_bytes());
    for value in values {
        match value {
            None => body.extend((-1i32).to_be_bytes()),
            Some(value) => {
                body.extend((value.len() as u32).to_be_bytes());
                body.extend(*value);
            }
        }
    }
    body.extend([0, 1, 0, results.into()]);
    framed(Some(b'B'), &body)
}

pub fn describe(kind: u8, name: &str) -> Vec<u8> {
    framed(Some(b'D'), &[&[kind], name.as_bytes(), &[0]].concat())
}

pub fn execute(portal: &str, limit: u32) -> Vec<u8> {
    framed(
        Some(b'E'),
        &[portal.as_bytes(), &[0], &limit.to_be_bytes()].concat(),
    )
}

pub fn sync() -> Vec<u8> {
    framed(Some(b'S'), &[])
}

/// The kinds of messages, as a text.
pub fn kinds(all: &[Told]) -> String {
    all.iter().map(|told| told.kind).collect()
}
