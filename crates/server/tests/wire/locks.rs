//! Advisory locks between sessions, and what `pg_locks` tells of them.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::client::{Client, Served, framed};

/// How long nobody is to be answered who waits.
const A_WHILE: Duration = Duration::from_millis(300);

fn send(client: &mut Client, text: &str) {
    client.send(&framed(Some(b'Q'), format!("{text}\0").as_bytes()));
}

/// The code of the error among the answers to what was sent; nothing if there is none.
fn outcome(client: &mut Client) -> String {
    let all = client.answers();
    let error = all.iter().find(|told| told.kind == 'E');
    error.map_or_else(String::new, |error| error.part(b'C'))
}

fn cancel(served: &Served, client: &Client) {
    let mut socket = TcpStream::connect(served.address).unwrap();
    let mut body = 80_877_102u32.to_be_bytes().to_vec();
    body.extend(client.process.to_be_bytes());
    body.extend(&client.secret);
    socket.write_all(&framed(None, &body)).unwrap();
}

#[test]
fn a_session_waits_for_the_lock_of_another() {
    let served = Served::new();
    let (mut a, mut b) = (served.client(), served.client());
    assert_eq!(a.value("select pg_advisory_lock(1)"), "");
    assert_eq!(b.value("select pg_try_advisory_lock(1)"), "f");
    assert_eq!(b.value("select pg_try_advisory_lock_shared(1)"), "f");
    assert_eq!(b.value("select pg_try_advisory_lock(0, 1)"), "t");
    assert_eq!(b.value("select pg_advisory_unlock(1)"), "f");
    assert_eq!(b.value("select pg_advisory_unlock(0, 1)"), "t");
    send(&mut b, "select pg_advisory_lock(1)");
    assert!(!b.is_answered(A_WHILE));
    // Who waits holds no worker.
    assert_eq!(
        a.value("select count(*) from generate_series(1, 1000)"),
        "1000"
    );
    let waiting = "select pid, mode, granted, waitstart is not null from pg_locks where locktype = 'advisory' order by granted";
    let shown = a.rows(waiting);
    let row = |process: u32, granted: &str, waits: &str| {
        let row = [&process.to_string(), "ExclusiveLock", granted, waits];
        row.map(|part| Some(part.to_owned())).to_vec()
    };
    assert_eq!(shown, [row(b.process, "f", "t"), row(a.process, "t", "f")]);
    let before = Instant::now();
    assert_eq!(a.value("select pg_advisory_unlock(1)"), "t");
    assert_eq!(outcome(&mut b), "");
    assert!(before.elapsed() < Duration::from_secs(2));
    assert_eq!(a.value("select pg_advisory_unlock(1)"), "f");
    // It is freed when its session ends.
    send(&mut a, "select pg_advisory_lock(1)");
    assert!(!a.is_answered(A_WHILE));
    drop(b);
    assert_eq!(outcome(&mut a), "");
    assert_eq!(a.value("select pg_advisory_unlock_all()"), "");
    assert_eq!(
        a.value("select count(*) from pg_locks where locktype = 'advisory'"),
        "0"
    );
}

#[test]
fn a_lock_is_held_as_often_as_it_was_taken() {
    let served = Served::new();
    let (mut a, mut b) = (served.client(), served.client());
    a.rows("select pg_advisory_lock(7), pg_advisory_lock(7), pg_advisory_lock_shared(7)");
    let all = "select classid, objid, objsubid, mode from pg_locks where locktype = 'advisory' order by mode";
    assert_eq!(a.rows(all).len(), 2);
    assert_eq!(a.value("select pg_advisory_unlock(7)"), "t");
    assert_eq!(b.value("select pg_try_advisory_lock_shared(7)"), "f");
    assert_eq!(a.value("select pg_advisory_unlock(7)"), "t");
    assert_eq!(b.value("select pg_try_advisory_lock_shared(7)"), "t");
    assert_eq!(b.value("select pg_try_advisory_lock(7)"), "f");
    assert_eq!(a.value("select pg_advisory_unlock_shared(7)"), "t");
    assert_eq!(b.value("select pg_try_advisory_lock(7)"), "t");
    b.rows("select pg_advisory_unlock_all()");
    // Each row takes one; the bits of the keys are shown without signs.
    b.rows("select pg_advisory_lock(x) from (values (-1), (null), (4294967298)) v(x)");
    b.rows("select pg_advisory_lock(-1, 5)");
    let shown = b.rows(
        "select classid, objid, objsubid from pg_locks where locktype = 'advisory' order by objsubid, classid",
    );
    let row = |parts: [&str; 3]| parts.map(|part| Some(part.to_owned())).to_vec();
    let wanted = [
        row(["1", "2", "1"]),
        row(["4294967295", "4294967295", "1"]),
        row(["4294967295", "5", "2"]),
    ];
    assert_eq!(shown, wanted);
    b.tag("discard all");
    assert_eq!(
        a.value("select count(*) from pg_locks where locktype = 'advisory'"),
        "0"
    );
    assert_eq!(a.code("select pg_advisory_lock(1.5)"), "42883");
}

#[test]
fn locks_of_a_transaction_end_with_it() {
    let served = Served::new();
    let (mut a, mut b) = (served.client(), served.client());
    // A statement that is a transaction itself.
    a.rows("select pg_advisory_xact_lock(3)");
    assert_eq!(b.value("select pg_try_advisory_xact_lock(3)"), "t");
    a.tag("begin");
    a.rows("select pg_advisory_xact_lock(3)");
    assert_eq!(a.value("select pg_advisory_unlock(3)"), "f");
    a.tag("savepoint s");
    a.rows("select pg_advisory_xact_lock(4), pg_advisory_lock(5)");
    assert_eq!(b.value("select pg_try_advisory_lock(4)"), "f");
    a.tag("rollback to s");
    assert_eq!(b.value("select pg_try_advisory_lock(4)"), "t");
    assert_eq!(b.value("select pg_try_advisory_lock(3)"), "f");
    a.code("select nothing");
    assert_eq!(b.value("select pg_try_advisory_lock(3)"), "f");
    send(&mut b, "select pg_advisory_lock(3)");
    assert!(!b.is_answered(A_WHILE));
    a.tag("rollback");
    assert_eq!(outcome(&mut b), "");
    // That of the session stays.
    assert_eq!(b.value("select pg_try_advisory_lock(5)"), "f");
    // What was committed is seen by who gets the lock.
    a.tag("create table t (a int)");
    a.tag("begin");
    a.rows("select pg_advisory_xact_lock(6)");
    a.tag("insert into t values (1)");
    send(&mut b, "select pg_advisory_lock(6)");
    assert!(!b.is_answered(A_WHILE));
    a.tag("commit");
    assert_eq!(outcome(&mut b), "");
    assert_eq!(b.value("select count(*) from t"), "1");
}

#[test]
fn who_waits_is_stopped() {
    let served = Served::new();
    let (mut a, mut b) = (served.client(), served.client());
    a.rows("select pg_advisory_lock(1)");
    send(&mut b, "select pg_advisory_lock(1)");
    assert!(!b.is_answered(A_WHILE));
    let before = Instant::now();
    cancel(&served, &b);
    assert_eq!(outcome(&mut b), "57014");
    assert!(
        before.elapsed() < Duration::from_secs(2),
        "{:?}",
        before.elapsed()
    );
    b.tag("set statement_timeout = 100");
    assert_eq!(b.code("select pg_advisory_lock(1)"), "57014");
    b.tag("set statement_timeout = 0");
    b.tag("set lock_timeout = '100ms'");
    assert_eq!(b.value("show lock_timeout"), "100");
    assert_eq!(b.code("select pg_advisory_lock(1)"), "55P03");
    // The turn to write is waited for no longer either.
    a.tag("create table t (a int)");
    a.tag("begin");
    a.tag("insert into t values (1)");
    assert_eq!(b.code("insert into t values (2)"), "55P03");
    // Nobody waits any more.
    let count = "select count(*) from pg_locks where not granted";
    assert_eq!(a.value(count), "0");
    // A client that goes leaves its place.
    b.tag("set lock_timeout = 0");
    send(&mut b, "select pg_advisory_lock(1)");
    assert!(!b.is_answered(A_WHILE));
    drop(b);
    let until = Instant::now() + Duration::from_secs(20);
    while a.value(count) != "0" {
        assert!(Instant::now() < until, "it still waits");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn sessions_that_would_wait_for_each_other_are_told() {
    let served = Served::new();
    let (mut a, mut b, mut c) = (served.client(), served.client(), served.client());
    a.rows("select pg_advisory_lock(1)");
    b.rows("select pg_advisory_lock(2)");
    c.rows("select pg_advisory_lock(3)");
    send(&mut a, "select pg_advisory_lock(2)");
    assert!(!a.is_answered(A_WHILE));
    send(&mut b, "select pg_advisory_lock(3)");
    assert!(!b.is_answered(A_WHILE));
    assert_eq!(c.code("select pg_advisory_lock(1)"), "40P01");
    c.rows("select pg_advisory_unlock_all()");
    assert_eq!(outcome(&mut b), "");
    b.rows("select pg_advisory_unlock_all()");
    assert_eq!(outcome(&mut a), "");
    // The turn to write is a lock among others.
    a.tag("create table t (a int)");
    b.tag("begin");
    b.rows("select pg_advisory_lock(9)");
    a.tag("begin");
    a.tag("insert into t values (1)");
    send(&mut b, "insert into t values (2)");
    assert!(!b.is_answered(A_WHILE));
    assert_eq!(a.code("select pg_advisory_lock(9)"), "40P01");
    a.tag("rollback");
    assert_eq!(outcome(&mut b), "");
}

#[test]
fn who_writes_holds_locks_of_tables() {
    let served = Served::new();
    let (mut a, mut b) = (served.client(), served.client());
    a.tag("create table t (a int)");
    a.tag("create table u (a int)");
    a.tag("begin");
    a.tag("insert into t values (1)");
    a.tag("truncate u");
    send(&mut b, "delete from t");
    assert!(!b.is_answered(A_WHILE));
    let text = "select relation::regclass::text, pid, mode, granted from pg_locks where locktype = 'relation' and pid <> pg_backend_pid() order by 1, 2, 3";
    let row = |name: &str, process: u32, mode: &str, granted: &str| {
        let row = [name, &process.to_string(), mode, granted];
        row.map(|part| Some(part.to_owned())).to_vec()
    };
    let mut c = served.client();
    let mut wanted = vec![
        row("t", a.process, "RowExclusiveLock", "t"),
        row("t", b.process, "RowExclusiveLock", "f"),
        row("u", a.process, "AccessExclusiveLock", "t"),
    ];
    wanted.sort();
    let mut shown = c.rows(text);
    shown.sort();
    assert_eq!(shown, wanted);
    a.tag("commit");
    assert_eq!(outcome(&mut b), "");
    assert_eq!(c.rows(text).len(), 0);
}
