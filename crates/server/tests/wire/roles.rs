//! Who may do what, in every door: two users, one of whom may do nothing until he is granted something.

use std::net::{Ipv4Addr, SocketAddr};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;

use crate::client::{Client, Served, bind, describe, execute, kinds, parse, sync};
use crate::flight_client::{Flight, query};
use crate::http_client::{JSON, request, send};

/// A server with a table of Ann, and Bob who may do nothing. They are connected since before there were roles.
fn two() -> (Served, Client, Client) {
    let served = Served::with(|options, _| {
        options.http = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        options.flight = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        options.files = true;
    });
    let connect = |user| Client::try_connect(served.address, &[("user", user)]).unwrap();
    let (ann, bob) = (connect("ann"), connect("bob"));
    let owner = served.database.session();
    for text in [
        "create role ann login password 'reef'",
        "create role bob login password 'sand'",
        "create role eve password 'wave'",
        "grant create on schema public to ann",
    ] {
        owner.sql(text).unwrap();
    }
    (served, ann, bob)
}

fn denied(client: &mut Client, text: &str) {
    let told = client.ask(text);
    let error = told.iter().find(|told| told.kind == 'E');
    let error = error.unwrap_or_else(|| panic!("{text}: {told:?}"));
    assert_eq!(error.part(b'C'), "42501", "{text}: {}", error.part(b'M'));
    assert!(!told.iter().any(|told| told.kind == 'D'), "{text}");
}

#[test]
fn what_is_not_granted_is_not_done() {
    let (_served, mut ann, mut bob) = two();
    assert_eq!(
        ann.tag("create table secret (a int primary key, b text)"),
        "CREATE TABLE"
    );
    ann.tag("insert into secret values (1, 'hidden')");
    ann.tag("create view shown as select a from secret");
    ann.tag("create sequence s");
    for text in [
        "select * from secret",
        "select b from secret where a = 1",
        "select a from secret limit 0",
        "explain select * from secret",
        "explain (analyze, format json) select * from secret",
        "select * from shown",
        "with x as (delete from secret returning a) select * from x",
        "copy secret to stdout",
        "copy (select * from secret) to stdout",
        "copy secret from stdin",
        "copy secret to '/tmp/never'",
        "copy (select 1) to '/tmp/never'",
        "select * from '/etc/passwd'",
        "select * from read_csv('/etc/passwd')",
        "prepare p as select nextval('s')",
        "insert into secret values (2, 'x')",
        "insert into secret select 2, 'x'",
        "update secret set b = 'x'",
        "delete from secret",
        "truncate secret",
        "drop table secret",
        "alter table secret add column c int",
        "grant select on secret to bob",
        "alter table secret owner to bob",
        "create table t (a int)",
        "create table public.t as select 1 as a",
        "create schema mine",
        "create role x",
        "alter role ann password 'mine'",
        "alter role bob superuser",
        "grant ann to bob",
        "set role ann",
        "set session authorization ann",
        "select nextval('s')",
        "select setval('s', 5)",
        "comment on table secret is 'x'",
    ] {
        // Some are not taken at all, and some begin with what is one's own to do.
        match text {
            "with x as (delete from secret returning a) select * from x"
            | "prepare p as select nextval('s')" => drop(bob.ask(text)),
            text => denied(&mut bob, text),
        }
    }
    denied(&mut bob, "execute p");
    assert_eq!(ann.value("select count(*) from secret"), "1");
    assert_eq!(ann.value("select b from secret where a = 1"), "hidden");
    // Their own password, and what everybody may.
    assert_eq!(bob.tag("alter role bob password 'new'"), "ALTER ROLE");
    assert_eq!(bob.value("select current_user"), "bob");
    assert_eq!(
        bob.value("select has_table_privilege('secret', 'select')"),
        "f"
    );
    // What runs elsewhere is nobody's business.
    let told = bob.rows("select usename, query from pg_stat_activity where usename = 'ann'");
    assert_eq!(told[0][1].as_deref(), Some("<insufficient privilege>"));
}

#[test]
fn superusers_have_sessions_of_others() {
    let (served, _ann, mut bob) = two();
    let owner = served.database.session();
    owner.sql("alter role bob superuser").unwrap();
    bob.tag("create table secret (a int)");
    assert_eq!(bob.tag("set session authorization ann"), "SET");
    denied(&mut bob, "select * from secret");
    assert_eq!(bob.value("select session_user"), "ann");
    assert_eq!(bob.value("show session_authorization"), "ann");
    denied(&mut bob, "set role bob");
    // Who has connected may be anybody, whoever the session is of.
    assert_eq!(bob.tag("set session authorization eve"), "SET");
    assert_eq!(bob.tag("discard all"), "DISCARD ALL");
    assert_eq!(bob.value("select session_user"), "bob");
    bob.tag("set session authorization ann");
    owner.sql("alter role bob nosuperuser").unwrap();
    denied(&mut bob, "select 1");
    denied(&mut bob, "set session authorization eve");
    assert_eq!(bob.tag("reset session authorization"), "RESET");
    assert_eq!(bob.value("select current_user"), "bob");
}

#[test]
fn what_was_prepared_is_looked_at_when_it_runs() {
    let (_served, mut ann, mut bob) = two();
    ann.tag("create table secret (a int primary key, b text)");
    ann.tag("insert into secret values (1, 'hidden'), (2, 'x')");
    assert_eq!(ann.tag("grant select on secret to bob"), "GRANT");
    bob.send(&parse("p", "select b from secret where a = $1", &[]));
    bob.send(&sync());
    assert_eq!(kinds(&bob.answers()), "1Z");
    bob.tag("prepare q as select b from secret");
    let run = |bob: &mut Client| {
        for message in [
            bind("", "p", false, &[Some(b"1")], false),
            describe(b'P', ""),
            execute("", 0),
            sync(),
        ] {
            bob.send(&message);
        }
        bob.answers()
    };
    assert_eq!(kinds(&run(&mut bob)), "2TDCZ");
    assert_eq!(bob.rows("execute q").len(), 2);
    // A portal that is open goes on with what it has begun.
    bob.tag("begin");
    bob.send(&parse("all", "select b from secret", &[]));
    bob.send(&bind("c", "all", false, &[], false));
    bob.send(&execute("c", 1));
    bob.send(&sync());
    assert_eq!(kinds(&bob.answers()), "12DsZ");
    bob.tag("commit");
    assert_eq!(ann.tag("revoke select on secret from bob"), "REVOKE");
    let told = run(&mut bob);
    let error = told.iter().find(|told| told.kind == 'E').unwrap();
    assert_eq!(error.part(b'C'), "42501");
    assert_eq!(error.part(b'M'), "permission denied for table secret");
    denied(&mut bob, "execute q");
    denied(&mut bob, "copy secret to stdout");
    bob.send(&bind("c", "all", false, &[], false));
    bob.send(&execute("c", 0));
    bob.send(&sync());
    assert!(kinds(&bob.answers()).contains('E'));
}

#[test]
fn only_roles_that_may_log_in_are_let_in() {
    let (served, mut ann, mut bob) = two();
    // There are roles now, and so there are passwords.
    let mut socket = std::net::TcpStream::connect(served.address).unwrap();
    std::io::Write::write_all(&mut socket, &crate::client::startup(&[("user", "ann")])).unwrap();
    let mut first = [0; 9];
    std::io::Read::read_exact(&mut socket, &mut first).unwrap();
    assert_eq!(first, *b"R\0\0\0\x17\0\0\0\x0a");
    // Who is no role any more may do nothing, not even what needs no table.
    served.database.session().sql("drop role bob").unwrap();
    denied(&mut bob, "select 1");
    assert_eq!(ann.value("select 1"), "1");
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", BASE64.encode(format!("{user}:{password}")))
}

#[test]
fn http_asks_for_the_same_rights() {
    let (served, mut ann, _bob) = two();
    ann.tag("create table secret (a int primary key, b text)");
    ann.tag("insert into secret values (1, 'hidden')");
    let ask = |who: Option<String>, sql: &str| {
        let body = json!({ "sql": sql }).to_string();
        let who = who.map(|who| format!("Authorization: {who}"));
        let mut headers = vec![JSON];
        headers.extend(who.as_deref());
        send(&served, &request("POST /query", &headers, &body))
    };
    let text =
        |answer: &crate::http_client::Answer| String::from_utf8_lossy(&answer.body).into_owned();
    assert_eq!(ask(None, "select 1").status, 401);
    assert_eq!(ask(Some(basic("ann", "sand")), "select 1").status, 401);
    assert_eq!(ask(Some(basic("eve", "wave")), "select 1").status, 401);
    assert_eq!(ask(Some(basic("nobody", "x")), "select 1").status, 401);
    let shown = ask(Some(basic("ann", "reef")), "select b from secret");
    assert!(text(&shown).contains("hidden"), "{shown:?}");
    for sql in [
        "select b from secret",
        "explain select b from secret",
        "copy secret to stdout",
    ] {
        let refused = ask(Some(basic("bob", "sand")), sql);
        assert!(!text(&refused).contains("hidden"), "{refused:?}");
        assert!(refused.status >= 400, "{sql}: {refused:?}");
    }
    let refused = ask(Some(basic("bob", "sand")), "select b from secret");
    assert!(text(&refused).contains("42501"), "{refused:?}");
    // The page shows what runs, and not what others have asked.
    let machine = |who: String| {
        let who = format!("Authorization: {who}");
        send(&served, &request("GET /machine", &[who.as_str()], ""))
    };
    ann.value("select 'for my eyes'");
    assert!(text(&machine(basic("ann", "reef"))).contains("for my eyes"));
    assert!(!text(&machine(basic("bob", "sand"))).contains("for my eyes"));
}

#[test]
fn flight_asks_for_the_same_rights() {
    let (served, mut ann, _bob) = two();
    ann.tag("create table secret (a int primary key, b text)");
    ann.tag("insert into secret values (1, 'hidden')");
    let mut flight = Flight::connect(&served);
    let mut info = |who: &str, password: &str, sql: &str| {
        let who = basic(who, password);
        let asked = crate::flight_client::descriptor(&query(sql, None));
        flight.call_with(
            "GetFlightInfo",
            &[("authorization", who.as_str())],
            &[asked],
        )
    };
    assert_eq!(info("ann", "reef", "select b from secret").status(), 0);
    // 16: not authenticated; 7: no right.
    assert_eq!(info("ann", "x", "select 1").status(), 16);
    assert_eq!(info("eve", "wave", "select 1").status(), 16);
    let refused = info("bob", "sand", "select b from secret");
    assert_eq!((refused.status(), refused.header("sqlstate")), (7, "42501"));
    let refused = info("bob", "sand", "select count(*) from secret");
    assert_eq!(refused.status(), 7, "{}", refused.words());
}

#[test]
fn who_creates_the_first_role_goes_on() {
    let served = Served::new();
    let mut client = served.client();
    assert_eq!(client.code("create role bob"), "55000");
    assert_eq!(client.code("create role ann superuser"), "55000");
    assert_eq!(
        client.tag("create role ann superuser login password 'x'"),
        "CREATE ROLE"
    );
    assert_eq!(client.tag("create table t (a int)"), "CREATE TABLE");
    assert_eq!(
        client.value("select tableowner from pg_tables where tablename = 't'"),
        "ann"
    );
    assert_eq!(client.code("alter role ann nosuperuser"), "55006");
    assert_eq!(client.code("drop role ann"), "55006");
}

/// Neither a session nor a token is of another role of the same name.
#[test]
fn a_role_of_the_same_name_is_another_at_every_door() {
    let (served, mut ann, mut bob) = two();
    ann.tag("create table secret (a int)");
    assert_eq!(bob.value("select current_user"), "bob");
    let mut flight = Flight::connect(&served);
    let mut token = |who: &str, password: &str| {
        let given = basic(who, password);
        let headers = [("authorization", given.as_str())];
        let told = flight.call_with("Handshake", &headers, &[]);
        told.ok().header("authorization").to_string()
    };
    let (of_bob, of_ann) = (token("bob", "sand"), token("ann", "reef"));
    let mut status = |token: &str, sql: &str| {
        let asked = crate::flight_client::descriptor(&query(sql, None));
        let headers = [("authorization", token)];
        flight
            .call_with("GetFlightInfo", &headers, &[asked])
            .status()
    };
    assert_eq!(
        (status(&of_bob, "select 1"), status(&of_ann, "select 1")),
        (0, 0)
    );
    let owner = served.database.session();
    owner.sql("drop role bob").unwrap();
    let again = "create role bob login superuser password 'sand'";
    owner.sql(again).unwrap();
    denied(&mut bob, "select * from secret");
    denied(&mut bob, "select 1");
    // 16: not authenticated.
    assert_eq!(status(&of_bob, "select * from secret"), 16);
    // Nor does a token outlive the password that it was given for.
    owner.sql("alter role ann password 'new'").unwrap();
    assert_eq!(status(&of_ann, "select 1"), 16);
    assert_eq!(ann.value("select 1"), "1");
}

/// Who may stop whom: superusers everybody, members of `pg_signal_backend` all but superusers, others their own.
#[test]
fn sessions_of_others_are_stopped_by_those_who_may() {
    let (served, ann, mut bob) = two();
    let owner = served.database.session();
    owner.sql("create role root login superuser").unwrap();
    let number = ann.process;
    for (function, text) in [
        (
            "pg_cancel_backend",
            "must be a member of the role whose query is being canceled or member of pg_signal_backend",
        ),
        (
            "pg_terminate_backend",
            "must be a member of the role whose process is being terminated or member of pg_signal_backend",
        ),
    ] {
        // A constant, which is answered without a worker, and what is not.
        for argument in [
            format!("{number}"),
            format!("x) from (values ({number})) v(x"),
        ] {
            let told = bob.ask(&format!("select {function}({argument})"));
            let error = told.iter().find(|told| told.kind == 'E').unwrap();
            assert_eq!(error.part(b'C'), "42501");
            assert_eq!(error.part(b'M'), text);
        }
    }
    owner.sql("grant pg_signal_backend to bob").unwrap();
    assert_eq!(
        bob.value(&format!("select pg_cancel_backend({number})")),
        "t"
    );
    assert_eq!(bob.value("select pg_cancel_backend(-1)"), "f");
    // Not even they stop a superuser.
    owner.sql("alter role ann superuser").unwrap();
    let told = bob.ask(&format!("select pg_terminate_backend({number})"));
    let error = told.iter().find(|told| told.kind == 'E').unwrap();
    assert_eq!(
        error.part(b'M'),
        "must be a superuser to terminate superuser process"
    );
    owner.sql("alter role bob superuser").unwrap();
    assert_eq!(
        bob.value(&format!("select pg_terminate_backend({number})")),
        "t"
    );
    let mut ann = ann;
    while let Some(told) = ann.receive() {
        assert_eq!(told.part(b'C'), "57P01");
    }
}

/// The doors that tell what there is tell each what is their own.
#[test]
fn tables_are_told_to_those_who_have_a_right_to_them() {
    let (served, mut ann, _bob) = two();
    ann.tag("create table secret (hidden int primary key)");
    ann.tag("insert into secret values (1)");
    let told = |path: &str, who: String| {
        let who = format!("Authorization: {who}");
        let told = send(
            &served,
            &request(&format!("GET {path}"), &[who.as_str()], ""),
        );
        String::from_utf8_lossy(&told.body).into_owned()
    };
    assert!(told("/catalog", basic("ann", "reef")).contains("secret"));
    for path in ["/catalog", "/memory"] {
        let other = told(path, basic("bob", "sand"));
        assert!(!other.contains("secret"), "{path}: {other}");
    }
    ann.tag("grant insert on secret to bob");
    assert!(told("/catalog", basic("bob", "sand")).contains("secret"));
}
