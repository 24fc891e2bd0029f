//! Clients of Arrow Flight SQL that mean harm, or break.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use crate::client::Served;
use crate::flight_client::{
    DATA, END, Flight, GO_AWAY, HEADERS, PING, Pb, SETTINGS, address, data, descriptor, field,
    frame, query, served,
};

/// Whoever comes later is served.
fn is_well(served: &Served) {
    assert_eq!(Flight::connect(served).rows("select 41 + 1"), ["42"]);
}

/// The code with which the server goes away.
fn farewell(flight: &mut Flight) -> Option<u32> {
    while let Some(frame) = flight.receive() {
        if frame.kind == GO_AWAY {
            return Some(u32::from_be_bytes(frame.body[4..8].try_into().unwrap()));
        }
    }
    None
}

#[test]
fn tickets_that_this_server_has_not_made_are_refused() {
    let served = served();
    let mut flight = Flight::connect(&served);
    let (ticket, _) = flight.info(&query("select 1", None));
    let good = field(&ticket.0, 1);
    let mut random = fastrand::Rng::with_seed(1);
    for at in 0..400 {
        let mut bad = good.clone();
        match at % 3 {
            0 => bad.truncate(random.usize(0..bad.len())),
            1 => {
                let place = random.usize(0..bad.len());
                bad[place] = random.u8(..);
            }
            _ => bad = (0..random.usize(0..60)).map(|_| random.u8(..)).collect(),
        }
        let answer = flight.call("DoGet", &Pb::default().bytes(1, &bad));
        assert!(answer.reset.is_none(), "{bad:?}: {answer:?}");
    }
    for bad in [&b""[..], b"x", b"\x0a\x01a"] {
        let answer = flight.call("DoGet", &Pb::default().bytes(1, bad));
        assert_eq!(answer.status(), 3, "{answer:?}");
    }
    is_well(&served);
}

#[test]
fn messages_that_are_none_are_refused() {
    let served = served();
    let mut flight = Flight::connect(&served);
    for method in [
        "GetFlightInfo",
        "GetSchema",
        "DoGet",
        "DoPut",
        "DoAction",
        "PollFlightInfo",
    ] {
        for bad in [&b"\xff\xff\xff"[..], b"\x0a\xff", b"", b"\x08"] {
            let answer = flight.call(method, &Pb(bad.to_vec()));
            assert!(
                matches!(answer.status(), 3 | 12),
                "{method} {bad:?}: {answer:?}"
            );
        }
        // None at all, and the beginning of one.
        let stream = flight.begin(method, &[]);
        flight.end(stream);
        assert_eq!(flight.answer(stream).status(), 3);
        let stream = flight.begin(method, &[]);
        flight.send(&frame(DATA, END, stream, b"\0\0\0\0\x09abc"));
        assert_eq!(flight.answer(stream).status(), 3);
        // A compressed one.
        let stream = flight.begin(method, &[]);
        flight.send(&frame(DATA, END, stream, b"\x01\0\0\0\x01a"));
        assert_eq!(flight.answer(stream).status(), 12);
    }
    is_well(&served);
}

#[test]
fn huge_messages_are_refused_before_they_come() {
    let served = served();
    let mut flight = Flight::connect(&served);
    let before = served.database.statistics().memory_used;
    for length in [u32::MAX, 1 << 30, (64 << 20) + 1] {
        let stream = flight.begin("DoPut", &[]);
        let mut head = vec![0];
        head.extend(length.to_be_bytes());
        flight.send(&frame(DATA, 0, stream, &head));
        let answer = flight.answer(stream);
        assert_eq!((answer.status(), answer.header("sqlstate")), (8, "54000"));
    }
    assert!(served.database.statistics().memory_used <= before + (1 << 20));
    is_well(&served);
}

#[test]
fn rows_that_are_none_are_refused() {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use std::sync::Arc;
    let served = served();
    let mut flight = Flight::connect(&served);
    let numbers: ArrayRef = Arc::new((0..100).map(Some).collect::<Int64Array>());
    let texts: ArrayRef = Arc::new(
        (0..100)
            .map(|n| Some(n.to_string()))
            .collect::<StringArray>(),
    );
    let batch = RecordBatch::try_from_iter([("n", numbers), ("t", texts)]).unwrap();
    let options = Pb::default().number(1, 1).number(2, 2);
    let command = Pb::default().bytes(1, &options.0).bytes(2, "t");
    let command = descriptor(&command.any("CommandStatementIngest"));
    let mut random = fastrand::Rng::with_seed(2);
    let mut kept = 0;
    for _ in 0..300 {
        let mut messages = data(&[batch.clone(), batch.clone()]);
        let which = random.usize(0..messages.len());
        for _ in 0..random.usize(1..5) {
            let at = random.usize(0..messages[which].0.len());
            messages[which].0[at] = random.u8(..);
        }
        messages[0] = messages[0].clone().bytes(1, &command.0);
        let answer = flight.call_with("DoPut", &[], &messages);
        assert!(answer.reset.is_none(), "{answer:?}");
        kept += usize::from(answer.status() == 0);
    }
    // Some hit nothing but numbers.
    assert!(kept < 290, "{kept}");
    is_well(&served);
}

#[test]
fn what_is_no_http_2_ends_the_connection() {
    let served = served();
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        b"\0\0\0\x12",
        b"PRI * HTTP/1.1\r\n\r\nxxxxxxxxx",
        b"\x16\x03\x01\0\x05hello",
    ] {
        let mut socket = TcpStream::connect(address(&served)).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        socket.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        let ended = std::io::Read::read_to_end(&mut socket, &mut answer);
        assert!(ended.is_ok() || ended.unwrap_err().kind() == std::io::ErrorKind::ConnectionReset);
    }
    is_well(&served);
}

#[test]
fn frames_that_must_not_be_end_the_connection() {
    let served = served();
    let cases: [(&[u8], u32); 6] = [
        (&frame(DATA, 0, 0, b"x"), 1),
        (&frame(HEADERS, 4, 2, b"\x83"), 1),
        (&frame(HEADERS, 4, 1, b"\xff\xff\xff\xff\xff"), 9),
        (&frame(SETTINGS, 0, 0, b"xyz"), 6),
        (&frame(PING, 0, 0, b"xyz"), 6),
        (b"\x01\0\0\0\0\0\0\0\x01", 6),
    ];
    for (bytes, code) in cases {
        let mut flight = Flight::connect(&served);
        flight.send(bytes);
        assert_eq!(farewell(&mut flight), Some(code), "{bytes:?}");
    }
    is_well(&served);
}

#[test]
fn floods_end_the_connection() {
    let served = served();
    // Calls that are given up at once.
    let mut flight = Flight::connect(&served);
    let mut flood = Vec::new();
    for at in 0..40_000_u32 {
        let stream = at * 2 + 1;
        flood.extend(frame(HEADERS, 4, stream, b"\x83\x86\x84"));
        flood.extend(frame(3, 0, stream, &8_u32.to_be_bytes()));
    }
    let _ = flight.socket.write_all(&flood);
    drop(flight);
    // Pings whose answers nobody reads.
    let mut flight = Flight::connect(&served);
    let pings: Vec<u8> = (0..50_000)
        .flat_map(|_| frame(PING, 0, 0, b"12345678"))
        .collect();
    flight
        .socket
        .set_write_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    for _ in 0..40 {
        if flight.socket.write_all(&pings).is_err() {
            break;
        }
    }
    drop(flight);
    is_well(&served);
}

#[test]
fn any_bytes_are_taken_without_harm() {
    let served = served();
    let mut random = fastrand::Rng::with_seed(6);
    for _ in 0..300 {
        let mut flight = Flight::connect(&served);
        let stream = flight.begin("GetFlightInfo", &[]);
        let mut bytes = Vec::new();
        for _ in 0..random.usize(1..10) {
            let body: Vec<u8> = (0..random.usize(0..40)).map(|_| random.u8(..)).collect();
            let id = [0, stream, stream + 2][random.usize(0..3)];
            bytes.extend(frame(random.u8(0..11), random.u8(..), id, &body));
        }
        if random.bool() {
            bytes.truncate(random.usize(0..bytes.len()));
        }
        let _ = flight.socket.write_all(&bytes);
    }
    is_well(&served);
}
