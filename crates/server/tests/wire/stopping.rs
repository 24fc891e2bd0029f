//! How a server stops, and its metrics.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::client::{Served, framed};

#[test]
fn running_statements_end_and_idle_clients_are_told() {
    // Seconds here where nothing else runs, and many times that where much does.
    let mut served = Served::with(|options, _| options.grace = Duration::from_secs(300));
    let mut idle = served.client();
    let mut busy = served.client();
    let text = "select sum(x % 7) from generate_series(1, 20000000) a(x)\0";
    busy.send(&framed(Some(b'Q'), text.as_bytes()));
    std::thread::sleep(Duration::from_millis(100));
    let server = served.server.take().unwrap();
    let stopping = std::thread::spawn(move || server.stop());
    let told = idle.receive().unwrap();
    assert_eq!((told.kind, told.part(b'C').as_str()), ('E', "57P01"));
    let all = busy.answers();
    assert!(all.iter().any(|told| told.kind == 'C'), "{all:?}");
    stopping.join().unwrap();
    assert!(TcpStream::connect(served.address).is_err());
}

#[test]
fn statements_that_take_longer_are_cancelled() {
    let mut served = Served::with(|options, _| options.grace = Duration::from_millis(300));
    let mut busy = served.client();
    let text = "select count(*) from generate_series(1, 3000000) a(x), generate_series(1, 100000) b(y) where x * y % 7 = 3\0";
    busy.send(&framed(Some(b'Q'), text.as_bytes()));
    std::thread::sleep(Duration::from_millis(200));
    let before = Instant::now();
    served.server.take().unwrap().stop();
    assert!(
        before.elapsed() < Duration::from_secs(8),
        "{:?}",
        before.elapsed()
    );
    let told = busy.receive().unwrap();
    assert_eq!((told.kind, told.part(b'C').as_str()), ('E', "57P01"));
}

#[test]
fn metrics_are_there_for_prometheus() {
    let served = Served::with(|options, _| {
        options.metrics = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    });
    let mut client = served.client();
    client.ask("select 1");
    let get = |path: &str| {
        let address = served.server.as_ref().unwrap().metrics().unwrap();
        let mut socket = TcpStream::connect(address).unwrap();
        write!(socket, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        text
    };
    let text = get("/metrics");
    assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
    assert!(text.contains("\natoll_sessions 1\n"), "{text}");
    assert!(text.contains("\natoll_rows_sent_total 1\n"), "{text}");
    assert!(get("/other").starts_with("HTTP/1.1 404"));
}
