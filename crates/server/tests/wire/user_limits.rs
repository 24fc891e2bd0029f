//! What an administrator lets single users have: memory, time, connections.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;

use crate::client::{Client, Served, Told};
use crate::flight_client::{Answer, Flight, Pb, descriptor, field, query};
use crate::http_client::{JSON, request, send};

/// A query that takes long before its first row.
const LONG: &str = "select count(*) from generate_series(1, 3000000) a(x), generate_series(1, 100000) b(y) where x * y % 7 = 3";

/// Texts that an aggregate keeps in memory, some ten megabytes of them.
const LARGE: &str = "select array_length(array_agg(x), 1) from (select repeat(md5(g::text), 3) as x from generate_series(1, 100000) g(g)) t";

/// A server with users of the password `reef`: Root, who is a superuser, Ann and Bob. They are connected since before there
/// were roles.
fn three() -> (Served, Client, Client, Client) {
    let served = Served::with(|options, _| {
        options.http = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        options.flight = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        options.metrics = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    });
    let connect = |user| Client::try_connect(served.address, &[("user", user)]).unwrap();
    let (root, ann, bob) = (connect("root"), connect("ann"), connect("bob"));
    let owner = served.database.session();
    for text in [
        "create role root superuser login password 'reef'",
        "create role ann login password 'reef'",
        "create role bob login password 'reef'",
    ] {
        owner.sql(text).unwrap();
    }
    (served, root, ann, bob)
}

fn error(client: &mut Client, text: &str) -> Told {
    let told = client.ask(text).into_iter().find(|told| told.kind == 'E');
    told.unwrap_or_else(|| panic!("{text} has no error"))
}

#[test]
fn memory_of_a_user_has_a_limit() {
    let (served, mut root, mut ann, mut bob) = three();
    assert_eq!(ann.value(LARGE), "100000");
    assert_eq!(
        root.tag("alter role ann set memory_limit = '4MB'"),
        "ALTER ROLE"
    );
    let refused = error(&mut ann, LARGE);
    assert_eq!(refused.part(b'C'), "53200", "{}", refused.part(b'M'));
    let message = refused.part(b'M');
    assert!(message.contains("of user \"ann\""), "{message}");
    assert_eq!(bob.value(LARGE), "100000", "others have what there is");
    // What can spill spills.
    root.tag("alter role ann set memory_limit = '16MB'");
    let sorted = "select count(*), max(n) from (select row_number() over (order by md5(x::text)) as n from generate_series(1, 150000) g(x)) s";
    assert_eq!(
        ann.rows(sorted),
        [[Some("150000".to_string()), Some("150000".to_string())]]
    );
    root.tag("alter role ann set memory_limit = '4MB'");
    assert_eq!(ann.value("select 1"), "1");
    let told = "select rolconfig::text, rolconnlimit::text from pg_roles where rolname = 'ann'";
    assert_eq!(
        root.rows(told),
        [[
            Some("{memory_limit=4MB}".to_string()),
            Some("-1".to_string())
        ]]
    );
    let text = metrics(&served);
    for line in [
        "atoll_user_memory_limit_bytes{user=\"ann\"} 4194304",
        "atoll_user_memory_used_bytes{user=\"ann\"} 0",
        "atoll_user_sessions{user=\"bob\"} 1",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    // It is one limit for all sessions of a user, at every door, and nobody lifts their own.
    for text in [
        "alter role ann set memory_limit = '1GB'",
        "alter role ann reset memory_limit",
        "alter role ann reset all",
        "alter role ann connection limit 100",
        "set memory_limit = '1GB'",
    ] {
        let code = ann.code(text);
        assert!(matches!(code.as_str(), "42501" | "55P02"), "{text}: {code}");
    }
    assert_eq!(error(&mut ann, LARGE).part(b'C'), "53200");
    root.tag("alter role ann reset memory_limit");
    assert_eq!(ann.value(LARGE), "100000");
}

fn basic(user: &str) -> String {
    format!("Basic {}", BASE64.encode(format!("{user}:reef")))
}

/// What HTTP answers.
fn http(served: &Served, user: &str, body: &serde_json::Value) -> String {
    let who = format!("Authorization: {}", basic(user));
    let text = request("POST /query", &[JSON, who.as_str()], &body.to_string());
    String::from_utf8_lossy(&send(served, &text).body).into_owned()
}

/// What Flight SQL answers to a query.
fn flight(served: &Served, user: &str, text: &str) -> Answer {
    let mut flight = Flight::connect(served);
    flight.headers = vec![("authorization".into(), basic(user))];
    let info = flight.call("GetFlightInfo", &descriptor(&query(text, None)));
    if info.status() != 0 {
        return info;
    }
    let ticket = field(&field(&info.messages[0], 3), 1);
    flight.call("DoGet", &Pb(ticket))
}

#[test]
fn time_of_a_user_has_a_limit() {
    let (served, mut root, _ann, _bob) = three();
    root.tag("alter role ann set statement_timeout = '2s'");
    let before = Instant::now();
    // A minute is more than Ann may have, and no limit is, too.
    for timeout in [json!(60), json!(0)] {
        let answer = http(&served, "ann", &json!({ "sql": LONG, "timeout": timeout }));
        assert!(answer.contains("57014"), "{answer}");
    }
    let answer = flight(&served, "ann", LONG);
    assert_eq!(answer.header("sqlstate"), "57014", "{}", answer.words());
    assert!(before.elapsed() < Duration::from_secs(20));
    let answer = http(&served, "ann", &json!({ "sql": "select 6 * 7 as n" }));
    assert!(answer.contains("42"), "{answer}");
}

#[test]
fn connections_of_a_user_have_a_limit() {
    let (served, mut root, mut ann, _bob) = three();
    let one = json!({ "sql": "select 6 * 7 as n" });
    // Ann has a session already.
    root.tag("alter role ann connection limit 1");
    let answer = http(&served, "ann", &one);
    assert!(
        answer.contains("53300") && answer.contains("role"),
        "{answer}"
    );
    let answer = flight(&served, "ann", "select 1");
    assert_eq!(answer.header("sqlstate"), "53300", "{}", answer.words());
    assert!(http(&served, "bob", &one).contains("42"));
    assert_eq!(ann.value("select 1"), "1", "who is there stays");
    root.tag("alter role ann connection limit 2");
    assert!(http(&served, "ann", &one).contains("42"));
    // Who repairs something gets in.
    root.tag("alter role root connection limit 0");
    assert!(http(&served, "root", &one).contains("42"));
    root.tag("alter role ann connection limit -1");
    let told =
        "select rolconnlimit::text from pg_roles where rolname in ('ann', 'root') order by rolname";
    assert_eq!(
        root.rows(told),
        [[Some("-1".to_string())], [Some("0".to_string())]]
    );
}

#[test]
fn limits_of_roles_are_what_they_can_be() {
    let (served, mut root, mut ann, _bob) = three();
    for (text, code) in [
        ("alter role ann set memory_limit = '1kB'", "22023"),
        ("alter role ann set memory_limit = 'much'", "22023"),
        ("alter role ann set statement_timeout = 'soon'", "22023"),
        ("alter role ann set search_path = ','", "22023"),
        ("alter role ann set work_mem = '1MB'", "0A000"),
        ("alter role ann set no_such = 1", "0A000"),
        ("alter role ann reset no_such", "0A000"),
        ("alter role nobody set memory_limit = '1GB'", "42704"),
        ("alter role all set memory_limit = '1GB'", "0A000"),
    ] {
        assert_eq!(root.code(text), code, "{text}");
    }
    // Where one's own names are looked up is one's own affair.
    assert_eq!(
        ann.tag("alter role ann set search_path = sand, public"),
        "ALTER ROLE"
    );
    assert_eq!(ann.code("alter role bob set search_path = sand"), "42501");
    assert_eq!(
        root.value("select setconfig::text from pg_db_role_setting"),
        "{\"search_path=sand, public\"}"
    );
    let body = json!({ "sql": "select current_setting('search_path') as p" });
    let answer = http(&served, "ann", &body);
    assert!(answer.contains("sand"), "{answer}");
    assert_eq!(root.tag("alter role ann reset all"), "ALTER ROLE");
    assert_eq!(root.value("select count(*) from pg_db_role_setting"), "0");
    // They are there after the store was opened again, as are roles without limits.
    root.tag("alter role bob set memory_limit = '1GB'");
    let found = served.database.logins().unwrap().settings("bob");
    assert_eq!(found, [("memory_limit".to_string(), "1GB".to_string())]);
}

fn metrics(served: &Served) -> String {
    let address = served.server.as_ref().unwrap().metrics().unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    text
}
