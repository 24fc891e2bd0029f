//! Statements by HTTP.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use base64::Engine;
use serde_json::{Value, json};

use crate::client::Served;
use crate::http_client::{JSON, answer, ask, connect, request, send, served, sql};

/// A query that takes long before its first row.
const LONG: &str = "select count(*) from generate_series(1, 3000000) a(x), generate_series(1, 100000) b(y) where x * y % 7 = 3";

/// A query with more rows than sockets hold.
const WIDE: &str = "select x, repeat('reef', 20) from generate_series(1, 30000000) a(x)";

/// Waits until no statement runs.
fn settle(served: &Served) {
    let until = Instant::now() + Duration::from_secs(20);
    let mut watcher = served.client();
    while watcher.value("select count(*) from pg_stat_activity") != "1" {
        assert!(Instant::now() < until, "a session is left");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn rows_come_with_their_columns_and_types() {
    let served = served();
    let made = sql(
        &served,
        "create table fish (name varchar, legs int, weight decimal(8,2), seen date)",
    );
    assert_eq!(
        (made.status, made.json()["statement"].clone()),
        (200, json!("CREATE TABLE"))
    );
    let changed = sql(
        &served,
        "insert into fish values ('blenny', 0, 0.25, date '2026-11-25'), ('crab', 10, null, null)",
    );
    assert_eq!(changed.json()["changed"], 2);
    let told = sql(&served, "select * from fish order by name").json();
    assert_eq!(
        told["columns"][2],
        json!({ "name": "weight", "type": "decimal(8,2)" })
    );
    let rows = json!([
        ["blenny", 0, "0.25", "2026-11-25"],
        ["crab", 10, null, null]
    ]);
    assert_eq!(told["rows"], rows);
    assert!(told["seconds"].as_f64().unwrap() > 0.0);
    let none = sql(&served, "select name from fish where legs > 100").json();
    assert_eq!(
        (none["rows"].clone(), none["columns"][0]["name"].clone()),
        (json!([]), json!("name"))
    );
}

#[test]
fn values_may_be_bound_and_rows_limited() {
    let served = served();
    let body = json!({ "sql": "select $1::int + 1, $2::varchar, $3::varchar", "parameters": [41, "x'y", null] });
    assert_eq!(
        ask(&served, &body).json()["rows"],
        json!([[42, "x'y", null]])
    );
    let body = json!({ "sql": "select * from generate_series(1, 100000)", "limit": 3 });
    let told = ask(&served, &body).json();
    assert_eq!(
        (told["rows"].clone(), told["more"].clone()),
        (json!([[1], [2], [3]]), json!(true))
    );
    let body = json!({ "sql": "select * from generate_series(1, 3)", "limit": 3 });
    let told = ask(&served, &body).json();
    assert_eq!(
        (told["rows"].as_array().unwrap().len(), told["more"].clone()),
        (3, Value::Null)
    );
    let body = json!({ "sql": "select 1 where $1 = 2", "parameters": ["x"] });
    let refused = ask(&served, &body);
    assert_eq!(
        (refused.status, refused.json()["error"]["code"].clone()),
        (400, json!("22P02"))
    );
    // What changes something does so whole.
    sql(&served, "create table t (a int)");
    let body = json!({ "sql": "insert into t select x from generate_series(1, 50000) g(x) returning a", "limit": 1 });
    let told = ask(&served, &body).json();
    assert_eq!(told["rows"].as_array().unwrap().len(), 1);
    assert_eq!(told["changed"], json!(50_000));
    let count = sql(&served, "select count(*) from t").json();
    assert_eq!(count["rows"], json!([[50_000]]));
    settle(&served);
}

#[test]
fn errors_have_codes_and_places() {
    let served = served();
    let told = sql(&served, "select *\nfrom nowhere");
    assert_eq!(told.status, 400);
    let error = told.json()["error"].clone();
    assert_eq!(
        (error["code"].clone(), error["position"].clone()),
        (json!("42P01"), json!(15))
    );
    // Of the second statement: the first has been answered, and is undone.
    sql(&served, "create table t (a int)");
    let told = sql(&served, "insert into t values (1); select b from t");
    assert_eq!(told.status, 200);
    let lines = told.lines();
    assert_eq!(lines[0]["changed"], 1);
    assert_eq!(
        (
            lines[1]["error"]["code"].clone(),
            lines[1]["error"]["position"].clone()
        ),
        (json!("42703"), json!(34))
    );
    assert_eq!(
        sql(&served, "select count(*) from t").json()["rows"],
        json!([[0]])
    );
    // Among rows.
    let told = sql(
        &served,
        "select 100 / (50000 - x) from generate_series(1, 60000) a(x)",
    );
    let error = told.json()["error"].clone();
    assert_eq!(error["code"], "22012", "{error}");
}

#[test]
fn statements_of_a_request_are_one_transaction() {
    let served = served();
    let told = sql(
        &served,
        "create table t (a int); insert into t values (1), (2); select count(*) from t",
    );
    assert!(told.head.contains("application/x-ndjson"), "{}", told.head);
    assert_eq!(told.lines()[2]["rows"], json!([[2]]));
    let own = sql(
        &served,
        "begin; insert into t values (3); rollback; select count(*) from t",
    );
    assert_eq!(own.lines()[3]["rows"], json!([[2]]));
    let open = sql(&served, "begin; insert into t values (3)");
    assert_eq!(open.lines()[2]["error"]["code"], "25000");
    assert_eq!(
        sql(&served, "select count(*) from t").json()["rows"],
        json!([[2]])
    );
}

#[test]
fn a_connection_serves_one_request_after_the_other() {
    let served = served();
    let mut socket = connect(&served);
    let one = request("POST /query", &[JSON], "{\"sql\": \"select 1\"}");
    let bad = request("POST /query", &[JSON], "{\"sql\": 1}");
    socket
        .write_all(format!("{one}{bad}{one}").as_bytes())
        .unwrap();
    assert_eq!(answer(&mut socket).unwrap().json()["rows"], json!([[1]]));
    assert_eq!(answer(&mut socket).unwrap().status, 400);
    let third = request("GET /catalog", &["Connection: close"], "");
    assert_eq!(answer(&mut socket).unwrap().json()["rows"], json!([[1]]));
    socket.write_all(third.as_bytes()).unwrap();
    let catalog = answer(&mut socket).unwrap().json();
    assert!(
        catalog["functions"]
            .as_array()
            .unwrap()
            .contains(&json!("sum"))
    );
    assert!(answer(&mut socket).is_none(), "it was asked to end");
    // One that knows 1.0 gets no chunks.
    let old = "POST /query HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 19\r\n\r\n{\"sql\": \"select 7\"}";
    let told = send(&served, old);
    assert!(!told.head.contains("chunked"));
    assert_eq!(told.json()["rows"], json!([[7]]));
}

#[test]
fn what_is_no_request_is_refused() {
    let served = served();
    let long = "x".repeat(20_000);
    for (text, status) in [
        ("nonsense\r\n\r\n".to_string(), 400),
        (request("GET /nowhere", &[], ""), 404),
        (request("DELETE /query", &[], ""), 405),
        (request("GET /query", &[], ""), 405),
        (request("GET /", &[&format!("X: {long}")], ""), 431),
        (
            request("POST /query", &[JSON, "Content-Length: 99999999999"], ""),
            413,
        ),
        (
            request("POST /query", &[JSON, "Content-Length: -1"], ""),
            400,
        ),
        (
            request(
                "POST /query",
                &[JSON, "Content-Length: 1", "Content-Length: 2"],
                "",
            ),
            400,
        ),
        (
            request("POST /query", &[JSON, "Transfer-Encoding: chunked"], ""),
            501,
        ),
        (request("POST /query", &[JSON], "{"), 400),
        (request("POST /query", &[JSON], "[1]"), 400),
        (
            request(
                "POST /query",
                &[JSON],
                "{\"sql\": \"select 1\", \"extra\": 1}",
            ),
            400,
        ),
        (request("POST /query", &[JSON], "{\"sql\": \" ; \"}"), 400),
        (request("POST /query", &[JSON], &"[".repeat(1000)), 400),
        (request("POST /cancel", &[JSON], "{}"), 400),
    ] {
        let told = send(&served, &text);
        assert_eq!(told.status, status, "{text:.60}: {told:?}");
        assert!(told.json()["error"]["message"].is_string(), "{text:.60}");
    }
    assert_eq!(sql(&served, "select 1").status, 200);
}

#[test]
fn requests_that_are_cut_short_end() {
    let served = served();
    let whole = request("POST /query", &[JSON], "{\"sql\": \"select 1\"}");
    for length in 0..whole.len() {
        let mut socket = connect(&served);
        socket.write_all(&whole.as_bytes()[..length]).unwrap();
        socket.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(answer(&mut socket).is_none(), "{length}");
    }
    // Byte by byte it is one all the same.
    let mut socket = connect(&served);
    for byte in whole.as_bytes() {
        socket.write_all(&[*byte]).unwrap();
    }
    assert_eq!(answer(&mut socket).unwrap().status, 200);
    settle(&served);
}

#[test]
fn requests_that_are_changed_end() {
    let served = served();
    let whole = request(
        "POST /query",
        &[JSON],
        "{\"sql\": \"select 1\", \"limit\": 3}",
    );
    let mut random = fastrand::Rng::with_seed(11);
    for _ in 0..400 {
        let mut bytes = whole.clone().into_bytes();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
        }
        let mut socket = connect(&served);
        socket.write_all(&bytes).unwrap();
        socket.shutdown(std::net::Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        // Whatever it says: the connection ends.
        let _ = socket.read_to_end(&mut rest);
    }
    settle(&served);
    assert_eq!(sql(&served, "select 1").status, 200);
}

#[test]
fn pages_of_others_get_nothing() {
    let served = served();
    let body = "{\"sql\": \"select 1\"}";
    for (headers, status) in [
        (vec!["Content-Type: text/plain"], 415),
        (vec![], 415),
        (vec![JSON, "Origin: https://evil.example"], 403),
        (vec![JSON, "Origin: null"], 403),
        (vec![JSON, "Sec-Fetch-Site: cross-site"], 403),
        (vec![JSON, "Host: again"], 421),
        (
            vec![
                JSON,
                "Origin: http://localhost",
                "Sec-Fetch-Site: same-origin",
            ],
            200,
        ),
    ] {
        let told = send(&served, &request("POST /query", &headers, body));
        assert_eq!(told.status, status, "{headers:?}");
        assert!(!told.head.to_ascii_lowercase().contains("access-control"));
    }
    // A name that was pointed here (DNS rebinding).
    let pointed = request("GET /catalog", &[], "").replace("localhost", "evil.example");
    assert_eq!(send(&served, &pointed).status, 421);
    // The question that a browser asks first gets no permission.
    let first = request("OPTIONS /query", &["Origin: http://localhost"], "");
    assert_eq!(send(&served, &first).status, 405);
}

#[test]
fn users_name_their_passwords() {
    let served = Served::with(|options, folder| {
        let users = folder.join("users");
        server::add_user(&users, "ann", "reef").unwrap();
        options.users = Some(users);
        options.http = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    });
    let with = |given: &str| {
        let given = base64::engine::general_purpose::STANDARD.encode(given);
        let header = format!("Authorization: Basic {given}");
        send(
            &served,
            &request(
                "POST /query",
                &[JSON, &header],
                "{\"sql\": \"select usename, current_user from pg_stat_activity\"}",
            ),
        )
    };
    let told = with("ann:reef");
    assert_eq!(
        (told.status, told.json()["rows"].clone()),
        (200, json!([["ann", "ann"]]))
    );
    for given in ["ann:fish", "nobody:reef", "ann", ""] {
        let told = with(given);
        assert_eq!(told.status, 401, "{given}");
        assert!(told.head.contains("WWW-Authenticate: Basic"));
    }
    for path in ["/", "/catalog", "/machine", "/memory"] {
        let told = send(&served, &request(&format!("GET {path}"), &[], ""));
        assert_eq!(told.status, 401, "{path}");
        assert!(!told.head.contains("Content-Security-Policy"));
    }
}

#[test]
fn addresses_that_others_reach_need_users_and_tls() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.atoll");
    let database = atoll::Database::create(path, &atoll::Options::default()).unwrap();
    let mut options = server::Options::default();
    options.listen.set_port(0);
    options.http = Some(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
    let refused = server::Server::start(database.clone(), options.clone());
    assert!(refused.unwrap_err().to_string().contains("--users"));
    let users = directory.path().join("users");
    server::add_user(&users, "ann", "reef").unwrap();
    options.users = Some(users);
    let refused = server::Server::start(database, options);
    assert!(refused.unwrap_err().to_string().contains("--tls"));
}

#[test]
fn a_client_that_goes_ends_its_statement() {
    let served = served();
    for text in [LONG, WIDE] {
        let mut socket = connect(&served);
        let body = json!({ "sql": text }).to_string();
        socket
            .write_all(request("POST /query", &[JSON], &body).as_bytes())
            .unwrap();
        std::thread::sleep(Duration::from_millis(300));
        drop(socket);
        settle(&served);
    }
}

#[test]
fn a_client_that_does_not_read_holds_nobody_back() {
    let served = served();
    let mut slow = connect(&served);
    let body = json!({ "sql": WIDE }).to_string();
    slow.write_all(request("POST /query", &[JSON], &body).as_bytes())
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let before = served.database.statistics().memory_used;
    for _ in 0..10 {
        let told = sql(&served, "select sum(x) from generate_series(1, 1000) a(x)");
        assert_eq!(told.json()["rows"], json!([[500_500]]));
    }
    std::thread::sleep(Duration::from_millis(500));
    let after = served.database.statistics().memory_used;
    assert!(after < before + (64 << 20), "{before} {after}");
}

#[test]
fn statements_are_stopped_and_have_their_time() {
    let served = served();
    let told = ask(&served, &json!({ "sql": LONG, "timeout": 0.3 }));
    assert_eq!(
        (told.status, told.json()["error"]["code"].clone()),
        (504, json!("57014"))
    );
    let mut socket = connect(&served);
    let body = json!({ "sql": LONG }).to_string();
    socket
        .write_all(request("POST /query", &[JSON], &body).as_bytes())
        .unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    let process = loop {
        let machine = send(&served, &request("GET /machine", &[], "")).json();
        if let Some(session) = machine["sessions"].as_array().unwrap().first()
            && session["state"] == "active"
        {
            break session["process"].as_u64().unwrap();
        }
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(20));
    };
    let body = json!({ "process": process }).to_string();
    let stopped = send(&served, &request("POST /cancel", &[JSON], &body));
    assert_eq!(stopped.json(), json!({ "cancelled": true }));
    let told = answer(&mut socket).unwrap();
    assert_eq!(told.json()["error"]["code"], "57014");
    settle(&served);
}

#[test]
fn there_is_room_for_so_many() {
    let served = Served::with(|options, _| {
        options.http = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        options.max_connections = 1;
    });
    let _only = served.client();
    let told = sql(&served, "select 1");
    assert_eq!(
        (told.status, told.json()["error"]["code"].clone()),
        (503, json!("53300"))
    );
}

#[test]
fn a_server_that_stops_ends_its_connections() {
    let mut served = Served::with(|options, _| {
        options.http = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        options.grace = Duration::from_millis(200);
    });
    let mut idle = connect(&served);
    let mut busy = connect(&served);
    let body = json!({ "sql": LONG }).to_string();
    busy.write_all(request("POST /query", &[JSON], &body).as_bytes())
        .unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let begun = Instant::now();
    served.server.take().unwrap().stop();
    assert!(begun.elapsed() < Duration::from_secs(10));
    let told = answer(&mut busy).unwrap();
    assert_eq!(
        (told.status, told.json()["error"]["code"].clone()),
        (503, json!("57P01"))
    );
    assert!(answer(&mut idle).is_none());
}

#[test]
fn plans_and_the_machine_are_data() {
    let served = served();
    sql(
        &served,
        "create table t (a int primary key, b varchar); create table u (a int, c int)",
    );
    sql(
        &served,
        "insert into t select x, 'n' || x from generate_series(1, 20000) g(x); insert into u select x % 100, x from generate_series(1, 20000) g(x)",
    );
    let query = "select b, sum(c) from t join u on t.a = u.a group by b order by 2 desc limit 5";
    let told = sql(&served, &format!("explain (analyze, format json) {query}")).json();
    assert_eq!(told["columns"][0]["name"], "QUERY PLAN");
    let text = told["rows"][0][0].as_str().unwrap();
    let plan: Value = serde_json::from_str(text).unwrap();
    assert_eq!(plan[0]["Rows"], 5, "{text}");
    let root = &plan[0]["Plan"];
    assert_eq!(
        (root["Node Type"].clone(), root["Actual Rows"].clone()),
        (json!("top-k"), json!(5))
    );
    assert!(root["Actual Total Time"].as_f64() >= root["Own Time"].as_f64());
    assert!(text.contains("\"Relation Name\": \"u\""), "{text}");
    // What is only read.
    let other = "select relname from pg_class limit 3";
    let told = sql(&served, &format!("explain (analyze, format json) {other}")).json();
    let plan: Value = serde_json::from_str(told["rows"][0][0].as_str().unwrap()).unwrap();
    assert_eq!(
        (plan[0]["Rows"].clone(), plan[0]["Ran On"].clone()),
        (json!(3), json!("algebra"))
    );

    let catalog = send(&served, &request("GET /catalog", &[], "")).json();
    let table = catalog["tables"]
        .as_array()
        .unwrap()
        .iter()
        .find(|table| table["name"] == "t");
    let table = table.unwrap();
    assert_eq!(
        (table["rows"].clone(), table["primary_key"].clone()),
        (json!(20_000), json!(["a"]))
    );
    assert_eq!(
        table["columns"][0],
        json!({ "name": "a", "type": "integer", "nullable": false })
    );
    let machine = send(&served, &request("GET /machine", &[], "")).json();
    assert_eq!(machine["workers"]["threads"], 2);
    assert!(!machine["nodes"].as_array().unwrap().is_empty());
    assert!(machine["memory"]["limit"].as_u64().unwrap() > 0);
    let memory = send(&served, &request("GET /memory", &[], "")).json();
    assert_eq!(memory["tables"].as_array().unwrap().len(), 2, "{memory}");
    let page = send(&served, &request("GET /", &[], ""));
    assert!(page.head.contains("default-src 'none'") && page.body.starts_with(b"<!doctype html>"));
    let head = {
        let mut socket = connect(&served);
        socket
            .write_all(request("HEAD /", &["Connection: close"], "").as_bytes())
            .unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        text
    };
    assert!(head.starts_with("HTTP/1.1 200 OK") && head.ends_with("\r\n\r\n"));
}
