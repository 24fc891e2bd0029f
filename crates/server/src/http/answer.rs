//! Answers: whole ones, and those that are sent while they are made.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::refusal::Refusal;
use crate::http::request::Request;
use crate::wire::backend::Report;
use crate::wire::channel::{Broken, Channel, until_then};

/// How long a client may take to read a whole answer, or the end of one.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of a chunk.
const CHUNK: usize = 32 << 10;

/// What browsers are told about every answer.
const SAFE: &str = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n";

/// An error as clients get it.
pub(crate) fn error(report: &Report) -> Value {
    json!({ "code": report.code, "message": report.message, "position": report.position })
}

/// Sends a whole answer; the body of one to `HEAD` is only counted.
pub(crate) fn whole(
    channel: &mut Channel,
    request: Option<&Request>,
    status: &str,
    headers: &str,
    body: &[u8],
) -> Result<(), Broken> {
    let connection = match request {
        Some(request) if request.keeps() => "keep-alive",
        _ => "close",
    };
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}{SAFE}Content-Length: {}\r\nConnection: {connection}\r\n\r\n",
        body.len()
    );
    channel.out.extend(head.bytes());
    if request.is_none_or(|request| request.method != "HEAD") {
        channel.out.extend(body);
    }
    let until = Instant::now() + PATIENCE;
    channel.flush(&mut |_| until_then(until))
}

/// Sends a value.
pub(crate) fn value(
    channel: &mut Channel,
    request: Option<&Request>,
    status: &str,
    headers: &str,
    value: &Value,
) -> Result<(), Broken> {
    let headers = format!("Content-Type: application/json\r\n{headers}");
    let body = format!("{value}\n");
    whole(channel, request, status, &headers, body.as_bytes())
}

/// Sends a refusal.
pub(crate) fn refusal(
    channel: &mut Channel,
    request: Option<&Request>,
    refusal: &Refusal,
) -> Result<(), Broken> {
    let told = json!({ "error": error(&refusal.report) });
    value(channel, request, refusal.status, &refusal.headers, &told)
}

/// An answer that is sent piece by piece.
pub(crate) struct Stream {
    /// What is not framed yet.
    pub text: Vec<u8>,
    chunks: bool,
}

impl Stream {
    /// Begins one.
    pub(crate) fn begin(channel: &mut Channel, request: &Request, kind: &str) -> Stream {
        let framed = if !request.chunks {
            "Connection: close"
        } else if request.keeps() {
            "Transfer-Encoding: chunked\r\nConnection: keep-alive"
        } else {
            "Transfer-Encoding: chunked\r\nConnection: close"
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{SAFE}{framed}\r\n\r\n");
        channel.out.extend(head.bytes());
        Stream {
            text: Vec::new(),
            chunks: request.chunks,
        }
    }

    /// Hands what is much to the channel.
    pub(crate) fn frame(&mut self, channel: &mut Channel, all: bool) {
        if self.text.is_empty() || !all && self.text.len() < CHUNK {
            return;
        }
        if self.chunks {
            channel
                .out
                .extend(format!("{:x}\r\n", self.text.len()).bytes());
        }
        channel.out.append(&mut self.text);
        if self.chunks {
            channel.out.extend(b"\r\n");
        }
    }

    /// Ends it.
    pub(crate) fn end(mut self, channel: &mut Channel) -> Result<(), Broken> {
        self.frame(channel, true);
        if self.chunks {
            channel.out.extend(b"0\r\n\r\n");
        }
        let until = Instant::now() + PATIENCE;
        channel.flush(&mut |_| until_then(until))
    }
}
