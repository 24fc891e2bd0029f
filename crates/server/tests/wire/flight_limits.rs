//! Clients of Arrow Flight SQL that stop, wait, or may not.

use std::time::Duration;

use base64::Engine;

use crate::flight::{prepare, settle};
use crate::flight_client::{
    DATA, END, Flight, HEADERS, Pb, RESET, WINDOW, descriptor, field, frame, query, served,
    served_with,
};

/// A query that takes long before its first row.
const LONG: &str = "select count(*) from generate_series(1, 3000000) a(x), generate_series(1, 100000) b(y) where x * y % 7 = 3";

/// A query with more rows than anybody keeps.
const WIDE: &str = "select x, repeat('reef', 20) as t from generate_series(1, 30000000) a(x)";

#[test]
fn statements_are_cancelled() {
    let served = served();
    let mut flight = Flight::connect(&served);
    let info = flight
        .call("GetFlightInfo", &descriptor(&query(LONG, None)))
        .ok();
    let info = Pb(info.messages[0].clone());
    let ticket = Pb(field(&field(&info.0, 3), 1));
    let stream = flight.begin("DoGet", &[]);
    flight.message(stream, &ticket.0);
    flight.end(stream);
    settle(&served, "2");
    let mut watcher = served.client();
    let what =
        "select query from pg_stat_activity where state = 'active' and query like '%* y%7 = 3'";
    assert_eq!(watcher.value(what), LONG);
    drop(watcher);
    let body = Pb::default().bytes(1, &info.0);
    let mut other = Flight::connect(&served);
    let answer = other.act("CancelFlightInfo", &body).ok();
    assert_eq!(field(&field(&answer.messages[0], 1), 1)[0], 2, "{answer:?}");
    let answer = flight.answer(stream);
    assert_eq!((answer.status(), answer.header("sqlstate")), (1, "57014"));
    // It does not run any more.
    let answer = other.act("CancelFlightInfo", &body).ok();
    assert_eq!(field(&field(&answer.messages[0], 1), 1)[0], 3);
    settle(&served, "1");
}

#[test]
fn who_goes_away_ends_its_statement() {
    let served = served();
    for text in [LONG, WIDE] {
        // The stream ends, and the connection stays.
        let mut flight = Flight::connect(&served);
        let (ticket, _) = flight.info(&query(text, None));
        let stream = flight.begin("DoGet", &[]);
        flight.message(stream, &ticket.0);
        flight.end(stream);
        settle(&served, "2");
        flight.send(&frame(RESET, 0, stream, &8_u32.to_be_bytes()));
        settle(&served, "1");
        assert_eq!(flight.rows("select 1"), ["1"]);
        // The connection ends.
        let stream = flight.begin("DoGet", &[]);
        flight.message(stream, &ticket.0);
        flight.end(stream);
        settle(&served, "2");
        drop(flight);
        settle(&served, "1");
    }
}

#[test]
fn who_reads_slowly_holds_nobody_else_back() {
    let served = served();
    let mut flight = Flight::connect(&served);
    let (ticket, _) = flight.info(&query(WIDE, None));
    let slow = flight.begin("DoGet", &[]);
    flight.message(slow, &ticket.0);
    flight.end(slow);
    settle(&served, "2");
    std::thread::sleep(Duration::from_millis(300));
    // No more than its window was sent; the connection's others go on.
    flight.send(&frame(WINDOW, 0, 0, &1_000_000_u32.to_be_bytes()));
    assert_eq!(flight.rows("select 7"), ["7"]);
    let used = served.database.statistics().memory_used;
    assert!(used < 200 << 20, "{used}");
    drop(flight);
    settle(&served, "1");
}

#[test]
fn statements_take_no_longer_than_they_may() {
    let served = served_with(|options, _| {
        options.statement_timeout = Some(Duration::from_millis(300));
    });
    let mut flight = Flight::connect(&served);
    let answer = flight.fetch(&query(LONG, None));
    assert_eq!((answer.status(), answer.header("sqlstate")), (4, "57014"));
    let served = crate::flight_client::served();
    let mut flight = Flight::connect(&served);
    let (ticket, _) = flight.info(&query(LONG, None));
    let answer = flight.call_with("DoGet", &[("grpc-timeout", "200m")], &[ticket]);
    assert_eq!((answer.status(), answer.header("sqlstate")), (4, "57014"));
    settle(&served, "1");
}

#[test]
fn who_is_not_let_in_is_told_so() {
    let served = served_with(|options, folder| {
        let users = folder.join("users");
        server::add_user(&users, "ann", "reef").unwrap();
        server::add_user(&users, "bob", "kelp").unwrap();
        options.users = Some(users);
    });
    let basic = |text: &str| {
        let text = base64::engine::general_purpose::STANDARD.encode(text);
        ("authorization".to_string(), format!("Basic {text}"))
    };
    let mut flight = Flight::connect(&served);
    let who = query("select current_user", None);
    for wrong in ["", "ann:", "ann:kelp", "nobody:reef", "ann"] {
        flight.headers = match wrong {
            "" => Vec::new(),
            wrong => vec![basic(wrong)],
        };
        for method in [
            "GetFlightInfo",
            "DoGet",
            "DoPut",
            "DoAction",
            "Handshake",
            "ListActions",
        ] {
            let answer = flight.call(method, &descriptor(&who));
            assert_eq!(answer.status(), 16, "{wrong} {method}: {answer:?}");
        }
    }
    flight.headers = vec![("authorization".into(), "Bearer x".into())];
    assert_eq!(flight.call("GetFlightInfo", &descriptor(&who)).status(), 16);
    let mut login = |text: &str| {
        flight.headers = vec![basic(text)];
        let answer = flight.call_with("Handshake", &[], &[]).ok();
        answer.header("authorization").to_string()
    };
    let (ann, bob) = (login("ann:reef"), login("bob:kelp"));
    assert!(ann.starts_with("Bearer ") && ann != bob);
    let of = |token: &str| vec![("authorization".to_string(), token.to_string())];
    flight.headers = of(&ann);
    assert_eq!(flight.fetch(&who).ok().rows(), ["ann"]);
    // What is another's is not there.
    let id = flight.begin_transaction();
    let (handle, _, _) = prepare(&mut flight, "select 1");
    flight.headers = of(&bob);
    assert_eq!(flight.fetch(&who).ok().rows(), ["bob"]);
    assert_eq!(
        flight.update("create table t (a int)", Some(&id)).status(),
        5
    );
    let command = Pb::default()
        .bytes(1, &handle)
        .any("CommandPreparedStatementQuery");
    assert_eq!(
        flight.call("GetFlightInfo", &descriptor(&command)).status(),
        5
    );
    flight.headers = of(&ann);
    flight.end_transaction(&id, 1).ok();
    flight.act("CloseSession", &Pb::default()).ok();
    assert_eq!(flight.call("GetFlightInfo", &descriptor(&who)).status(), 16);
}

#[test]
fn addresses_that_others_reach_need_users_and_tls() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.atoll");
    let database = atoll::Database::create(path, &atoll::Options::default()).unwrap();
    let mut options = server::Options::default();
    options.listen.set_port(0);
    options.flight = Some("0.0.0.0:0".parse().unwrap());
    let refused = server::Server::start(database.clone(), options.clone());
    assert!(refused.unwrap_err().to_string().contains("--users"));
    let users = directory.path().join("users");
    server::add_user(&users, "ann", "reef").unwrap();
    options.users = Some(users);
    let refused = server::Server::start(database, options);
    assert!(refused.unwrap_err().to_string().contains("--tls"));
}

#[test]
fn a_server_that_stops_lets_statements_end() {
    let mut served = served_with(|options, _| options.grace = Duration::from_secs(60));
    let mut flight = Flight::connect(&served);
    let text = "select x, repeat('reef', 200) as t from generate_series(1, 20000) a(x)";
    let (ticket, _) = flight.info(&query(text, None));
    let stream = flight.begin("DoGet", &[]);
    flight.message(stream, &ticket.0);
    flight.end(stream);
    settle(&served, "2");
    let server = served.server.take().unwrap();
    let stopping = std::thread::spawn(move || server.stop());
    std::thread::sleep(Duration::from_millis(400));
    let answer = flight.answer(stream).ok();
    assert_eq!(answer.rows().len(), 20_000);
    stopping.join().unwrap();
    // The connection says that it goes, and goes.
    while let Some(frame) = flight.receive() {
        assert_ne!(frame.kind, DATA);
    }
}

#[test]
fn many_calls_run_on_one_connection() {
    let served = served();
    let mut flight = Flight::connect(&served);
    let (ticket, _) = flight.info(&query(
        "select sum(x) from generate_series(1, 1000) a(x)",
        None,
    ));
    let streams: Vec<u32> = (0..20)
        .map(|_| {
            let stream = flight.begin("DoGet", &[]);
            flight.message(stream, &ticket.0);
            flight.end(stream);
            stream
        })
        .collect();
    // Answers come in any order: the frames of all are read at once.
    let mut ended = Vec::new();
    let mut bytes = 0;
    while ended.len() < streams.len() {
        let frame = flight.receive().unwrap();
        match frame.kind {
            DATA => bytes += frame.body.len(),
            HEADERS if frame.flags & END != 0 => {
                ended.push(frame.stream);
            }
            _ => {}
        }
    }
    ended.sort_unstable();
    assert_eq!(ended, streams);
    assert!(bytes > 20 * 100);
}
