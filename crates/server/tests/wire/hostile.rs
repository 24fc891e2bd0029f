//! Bytes that no client sends: the server answers with an error or closes the connection, and goes on.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use crate::client::{Served, bind, describe, execute, framed, parse, startup, sync};

/// A conversation, message by message.
fn conversation() -> Vec<Vec<u8>> {
    vec![
        startup(&[("user", "ann"), ("database", "atoll")]),
        framed(Some(b'Q'), b"select 1\0"),
        parse("s", "select $1 + 1", &[20]),
        bind("", "s", true, &[Some(&7i64.to_be_bytes())], true),
        describe(b'P', ""),
        execute("", 1),
        sync(),
        framed(Some(b'Q'), b"copy t from stdin\0"),
        framed(Some(b'd'), b"1\tone\n"),
        framed(Some(b'c'), b""),
        framed(Some(b'X'), b""),
    ]
}

/// Sends `bytes`, says that nothing follows, and reads until the server closes the connection.
fn send(served: &Served, bytes: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(served.address).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    // The server may have closed it by then.
    let _ = socket.write_all(bytes);
    let _ = socket.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match socket.read(&mut piece) {
            Ok(0) => return answer,
            Ok(read) => answer.extend(&piece[..read]),
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => return answer,
            Err(e) => panic!("the server hangs: {e}"),
        }
    }
}

#[test]
fn conversations_that_are_cut_short_end() {
    let served = Served::new();
    served.client().ask("create table t (a int, b varchar)");
    let whole = conversation().concat();
    for end in 0..whole.len() {
        send(&served, &whole[..end]);
    }
    assert_eq!(served.client().value("select 1"), "1");
}

#[test]
fn conversations_that_are_changed_end_fuzzed() {
    let served = Served::new();
    served.client().ask("create table t (a int, b varchar)");
    let seed = std::env::var("ATOLL_FUZZ_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let times: usize = std::env::var("ATOLL_FUZZ_TIMES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(1);
    let mut random = fastrand::Rng::with_seed(seed.unwrap_or(17));
    for case in 0..300 * times {
        let mut messages = conversation();
        let first = usize::from(random.u8(..8) != 0);
        match random.u8(..4) {
            0 => random.shuffle(&mut messages[first..]),
            1 => messages.reverse(),
            2 => {
                let at = random.usize(first..messages.len());
                let twice = messages[at].clone();
                messages.insert(random.usize(first..messages.len()), twice);
            }
            _ => {}
        }
        let start = messages[0].len() * first;
        let mut bytes = messages.concat();
        for _ in 0..random.usize(..4) {
            let at = random.usize(start..bytes.len());
            match random.u8(..3) {
                0 => bytes[at] = random.u8(..),
                1 => bytes[at] ^= 1 << random.u8(..8),
                _ => drop(bytes.remove(at)),
            }
        }
        send(&served, &bytes);
        if case % 50 == 0 {
            assert_eq!(served.client().value("select 1"), "1", "case {case}");
        }
    }
    assert_eq!(served.client().value("select 1"), "1");
}

#[test]
fn what_is_no_message_is_told_before_the_end() {
    let served = Served::new();
    for (bytes, told) in [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "invalid length"),
        (
            framed(None, &0x2_0000u32.to_be_bytes()),
            "unsupported frontend protocol",
        ),
        (
            [startup(&[("user", "ann")]), framed(Some(b'?'), b"")].concat(),
            "invalid frontend message type",
        ),
        (
            [
                startup(&[("user", "ann")]),
                vec![b'Q', 0xff, 0xff, 0xff, 0xff],
            ]
            .concat(),
            "invalid message length",
        ),
        (
            [startup(&[("user", "ann")]), framed(Some(b'Q'), b"no end")].concat(),
            "ends within",
        ),
    ] {
        let answer = String::from_utf8_lossy(&send(&served, &bytes)).into_owned();
        assert!(answer.contains(told), "{told}: {answer}");
    }
}
