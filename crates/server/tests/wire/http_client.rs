//! A client of HTTP that says exactly what a test wants it to say.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Served;

pub fn served() -> Served {
    Served::with(|options, _| options.http = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))))
}

pub fn address(served: &Served) -> SocketAddr {
    served.server.as_ref().unwrap().http().unwrap()
}

pub fn connect(served: &Served) -> TcpStream {
    let socket = TcpStream::connect(address(served)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    socket
}

/// An answer: its status, its head, its body out of chunks.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.body)))
    }

    pub fn lines(&self) -> Vec<Value> {
        let text = std::str::from_utf8(&self.body).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// Reads up to and with `end`.
pub fn up_to(socket: &mut TcpStream, end: &[u8]) -> Option<Vec<u8>> {
    let mut read = Vec::new();
    while !read.ends_with(end) {
        let mut byte = [0];
        if socket.read(&mut byte).ok()? == 0 {
            return None;
        }
        read.push(byte[0]);
    }
    Some(read)
}

/// The next answer; none at the end of the connection.
pub fn answer(socket: &mut TcpStream) -> Option<Answer> {
    let head = String::from_utf8(up_to(socket, b"\r\n\r\n")?).unwrap();
    let status = head[9..12].parse().unwrap();
    let mut body = Vec::new();
    let lower = head.to_ascii_lowercase();
    if lower.contains("transfer-encoding: chunked") {
        loop {
            let length = String::from_utf8(up_to(socket, b"\r\n")?).unwrap();
            let length = usize::from_str_radix(length.trim(), 16).unwrap();
            let mut chunk = vec![0; length + 2];
            socket.read_exact(&mut chunk).ok()?;
            body.extend(&chunk[..length]);
            if length == 0 {
                break;
            }
        }
    } else if let Some(rest) = lower.split("content-length: ").nth(1) {
        let length = rest.split("\r\n").next().unwrap().parse().unwrap();
        body.resize(length, 0);
        socket.read_exact(&mut body).ok()?;
    } else {
        socket.read_to_end(&mut body).ok()?;
    }
    Some(Answer { status, head, body })
}

pub fn request(line: &str, headers: &[&str], body: &str) -> String {
    let mut text = format!("{line} HTTP/1.1\r\nHost: localhost\r\n");
    for header in headers {
        text += &format!("{header}\r\n");
    }
    if !body.is_empty() {
        text += &format!("Content-Length: {}\r\n", body.len());
    }
    format!("{text}\r\n{body}")
}

pub const JSON: &str = "Content-Type: application/json";

pub fn ask(served: &Served, body: &Value) -> Answer {
    let mut socket = connect(served);
    let text = request("POST /query", &[JSON], &body.to_string());
    socket.write_all(text.as_bytes()).unwrap();
    answer(&mut socket).unwrap()
}

pub fn sql(served: &Served, text: &str) -> Answer {
    ask(served, &json!({ "sql": text }))
}

pub fn send(served: &Served, text: &str) -> Answer {
    let mut socket = connect(served);
    socket.write_all(text.as_bytes()).unwrap();
    answer(&mut socket).unwrap_or_else(|| panic!("{text}"))
}
