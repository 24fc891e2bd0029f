//! Cancelling, timeouts, clients that vanish or read slowly, too many of them.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::client::{Client, Served, Told, framed, kinds, startup};

/// A query that takes long before its first row.
const LONG: &str = "select count(*) from generate_series(1, 3000000) a(x), generate_series(1, 100000) b(y) where x * y % 7 = 3";

/// A query with more rows than sockets hold.
const WIDE: &str = "select x, repeat('reef', 20) from generate_series(1, 30000000) a(x)";

fn cancel(served: &Served, client: &Client) {
    use std::io::Write;
    let mut socket = TcpStream::connect(served.address).unwrap();
    let mut body = 80_877_102u32.to_be_bytes().to_vec();
    body.extend(client.process.to_be_bytes());
    body.extend(&client.secret);
    socket.write_all(&framed(None, &body)).unwrap();
}

fn ask(client: &mut Client, text: &str) {
    client.send(&framed(Some(b'Q'), format!("{text}\0").as_bytes()));
}

fn error(all: &[Told]) -> &Told {
    all.iter()
        .find(|told| told.kind == 'E')
        .unwrap_or_else(|| panic!("{}", kinds(all)))
}

/// Waits until the sessions of the server are `wanted`.
fn settle(served: &Served, wanted: usize) {
    let mut watcher = served.client();
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let sessions: usize = watcher
            .value("select count(*) from pg_stat_activity")
            .parse()
            .unwrap();
        if sessions == wanted + 1 {
            return;
        }
        assert!(Instant::now() < until, "{sessions} sessions");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_statement_is_cancelled_before_its_first_row_and_among_them() {
    let served = Served::new();
    let mut client = served.client();
    for text in [LONG, WIDE] {
        ask(&mut client, text);
        std::thread::sleep(Duration::from_millis(300));
        let before = Instant::now();
        cancel(&served, &client);
        let all = client.answers();
        assert_eq!(error(&all).part(b'C'), "57014");
        assert!(error(&all).part(b'M').contains("user request"));
        assert!(
            before.elapsed() < Duration::from_secs(10),
            "{:?}",
            before.elapsed()
        );
        assert_eq!(client.value("select 1"), "1");
    }
    // Too late, or with the wrong secret, it does nothing.
    cancel(&served, &client);
    client.secret = vec![0; 4];
    cancel(&served, &client);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(client.value("select 1"), "1");
}

#[test]
fn a_cancelled_statement_fails_its_transaction() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create table t (a int)");
    client.ask("begin");
    client.ask("insert into t values (1)");
    ask(&mut client, WIDE);
    // Rows are on their way.
    assert_eq!(client.receive().unwrap().kind, 'T');
    cancel(&served, &client);
    let all = client.answers();
    assert_eq!(error(&all).part(b'C'), "57014");
    assert_eq!(all.last().unwrap().body, b"E");
    assert_eq!(client.code("select 1"), "25P02");
    client.ask("rollback");
    assert_eq!(client.value("select count(*) from t"), "0");
}

#[test]
fn statements_and_idle_transactions_have_their_time() {
    let served = Served::with(|options, _| {
        options.statement_timeout = Some(Duration::from_millis(300));
    });
    let mut client = served.client();
    let all = client.ask(LONG);
    assert_eq!(error(&all).part(b'C'), "57014");
    assert!(error(&all).part(b'M').contains("statement timeout"));
    client.ask("set statement_timeout = 0");
    client.ask("set idle_in_transaction_session_timeout = '200ms'");
    client.ask("create table t (a int)");
    client.ask("begin");
    client.ask("insert into t values (1)");
    let told = client.receive().unwrap();
    assert_eq!((told.kind, told.part(b'C').as_str()), ('E', "25P03"));
    assert!(client.receive().is_none());
    // Its turn to write is free again.
    assert_eq!(
        served.client().tag("insert into t values (2)"),
        "INSERT 0 1"
    );
}

#[test]
fn a_client_that_vanishes_ends_its_statement() {
    let served = Served::new();
    let mut keeper = served.client();
    keeper.ask("create table t (a int)");
    for text in [LONG, WIDE] {
        let mut client = served.client();
        client.ask("begin");
        client.ask("insert into t values (1)");
        ask(&mut client, text);
        std::thread::sleep(Duration::from_millis(200));
        drop(client);
        settle(&served, 1);
        assert_eq!(keeper.value("select count(*) from t"), "0");
        // What it had is undone, so that others may write.
        keeper.ask("truncate t");
    }
}

#[test]
fn a_client_that_does_not_read_holds_nobody_back() {
    let served = Served::new();
    let mut slow = served.client();
    ask(&mut slow, WIDE);
    let mut other = served.client();
    std::thread::sleep(Duration::from_millis(500));
    let before = served.database.statistics().memory_used;
    for _ in 0..20 {
        assert_eq!(
            other.value("select sum(x) from generate_series(1, 1000) a(x)"),
            "500500"
        );
    }
    std::thread::sleep(Duration::from_millis(500));
    let after = served.database.statistics().memory_used;
    assert!(after < before + (64 << 20), "{before} {after}");
}

#[test]
fn there_is_room_for_so_many_and_the_others_are_told() {
    let served = Served::with(|options, _| options.max_connections = 4);
    let clients: Vec<Client> = (0..4).map(|_| served.client()).collect();
    for _ in 0..300 {
        let refused = Client::try_connect(served.address, &[("user", "ann")]);
        let refused = refused.err().expect("there is no room");
        assert_eq!(refused.part(b'C'), "53300");
        assert_eq!(refused.part(b'S'), "FATAL");
    }
    // Many at once, none of which reads: those that there are go on.
    let crowd: Vec<TcpStream> = (0..300)
        .map(|_| {
            use std::io::Write;
            let mut socket = TcpStream::connect(served.address).unwrap();
            let _ = socket.write_all(&startup(&[("user", "ann")]));
            socket
        })
        .collect();
    for mut client in clients {
        assert_eq!(client.value("select 1"), "1");
    }
    drop(crowd);
    settle(&served, 0);
}

/// The threads of this process that serve clients.
fn client_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks
        .flatten()
        .map(|task| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default());
    names.filter(|name| name.trim() == "atoll-client").count()
}

#[test]
fn many_clients_some_of_which_are_killed() {
    let served = Served::new();
    served
        .client()
        .ask("create table t (client int, number int)");
    std::thread::scope(|scope| {
        for number in 0..64 {
            let served = &served;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(number);
                for round in 0..6 {
                    let mut client = served.client();
                    match random.u8(..6) {
                        0 => ask(&mut client, LONG),
                        1 => ask(&mut client, WIDE),
                        2 => {
                            client.ask("begin");
                            client.code(&format!("insert into t values ({number}, -{round})"));
                        }
                        3 => {
                            ask(&mut client, LONG);
                            std::thread::sleep(Duration::from_millis(random.u64(..50)));
                            // One that comes before the statement has begun cancels nothing, as with PostgreSQL.
                            while !client.is_answered(Duration::from_millis(200)) {
                                cancel(served, &client);
                            }
                            let all = client.answers();
                            assert_eq!(error(&all).part(b'C'), "57014");
                        }
                        _ => {
                            let rows =
                                client.rows("select sum(x) from generate_series(1, 1000) a(x)");
                            assert_eq!(rows[0][0].as_deref(), Some("500500"));
                        }
                    }
                }
            });
        }
    });
    settle(&served, 0);
    assert_eq!(served.client().value("select count(*) from t"), "0");
    assert_eq!(
        served.client().tag("insert into t values (1, 1)"),
        "INSERT 0 1"
    );
    // Other tests of this process have clients, too, but not for ever.
    let until = Instant::now() + Duration::from_secs(30);
    while client_threads() > 40 {
        assert!(Instant::now() < until, "{} threads", client_threads());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn sleeping_takes_its_time_and_ends_when_it_is_not_wanted() {
    let served = Served::new();
    let mut client = served.client();
    let before = Instant::now();
    assert_eq!(client.value("select pg_sleep(0.3)"), "");
    assert!(before.elapsed() >= Duration::from_millis(300));
    assert_eq!(client.value("select pg_catalog.pg_sleep(0) as done"), "");
    ask(&mut client, "select pg_sleep(60)");
    std::thread::sleep(Duration::from_millis(300));
    cancel(&served, &client);
    assert_eq!(error(&client.answers()).part(b'C'), "57014");
    client.tag("set statement_timeout = 100");
    assert_eq!(client.code("select pg_sleep(60)"), "57014");
    assert!(before.elapsed() < Duration::from_secs(20));
    assert_eq!(client.value("select 1"), "1");
    client.tag("begin");
    client.code("select nothing");
    assert_eq!(client.code("select pg_sleep(0)"), "25P02");
    client.tag("rollback");
}
