//! Cancelling, timeouts, clients that vanish or read slowly, too many of them.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::client::{Client, Served, Told, bind, execute, framed, kinds, parse, startup, sync};

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

/// Whoever has the turn to write and waits for its client gives it back.
#[test]
fn clients_that_stall_hold_nobody_up_for_ever() {
    assert!(
        server::Options::default()
            .idle_in_transaction_timeout
            .is_some()
    );
    let served = Served::with(|options, _| {
        options.idle_in_transaction_timeout = Some(Duration::from_millis(500));
    });
    let mut keeper = served.client();
    keeper.tag("create table t (a int)");
    // Rows of a copy that do not come.
    let mut stalled = served.client();
    ask(&mut stalled, "copy t from stdin");
    assert_eq!(stalled.receive().unwrap().kind, 'G');
    stalled.send(&framed(Some(b'd'), b"1\n2"));
    let told = stalled.receive().unwrap();
    assert_eq!((told.kind, told.part(b'C').as_str()), ('E', "25P03"));
    assert!(stalled.receive().is_none());
    assert_eq!(keeper.tag("insert into t values (1)"), "INSERT 0 1");
    // Rows of a transaction that are not taken.
    let mut slow = served.client();
    slow.ask("begin");
    slow.ask("insert into t values (2)");
    ask(&mut slow, WIDE);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(keeper.tag("insert into t values (3)"), "INSERT 0 1");
    settle(&served, 1);
    // A serializable transaction that only reads.
    let mut idle = served.client();
    idle.ask("begin isolation level serializable");
    idle.ask("select * from t");
    assert_eq!(keeper.tag("insert into t values (4)"), "INSERT 0 1");
    assert_eq!(idle.receive().unwrap().part(b'C'), "25P03");
    assert_eq!(keeper.value("select count(*) from t"), "3");
}

/// A text that is too long is refused before it is looked at, and one of very many statements takes no more memory than its
/// own.
#[test]
fn long_texts_take_memory_by_their_length() {
    let served = Served::new();
    let mut client = served.client();
    let all = client.ask(&"select 1;".repeat(5_000));
    assert_eq!(all.iter().filter(|told| told.kind == 'C').count(), 5_000);
    let text = format!("select 1 /* {} */", "x".repeat(65 << 20));
    let all = client.ask(&text);
    assert!(["54001", "53200"].contains(&error(&all).part(b'C').as_str()));
    assert_eq!(client.value("select 1"), "1");
}

/// Messages are counted against the memory limit, whether they are understood or not, and what is kept of them.
#[test]
fn messages_that_there_is_no_memory_for_are_refused() {
    let served = Served::new();
    let mut client = served.client();
    let before = served.database.statistics().memory_used;
    // 100 MiB, of which there are three copies until it is understood.
    let text = format!("select '{}'", "x".repeat(100 << 20));
    let all = client.ask(&text);
    assert_eq!(error(&all).part(b'C'), "53200");
    assert_eq!(client.value("select 1"), "1");
    // So is what a text is read into, which is many times itself.
    let list = format!("select {}1", "1,".repeat(2_000_000));
    assert_eq!(client.code(&list), "53200");
    // Values that are bound and not run.
    let value = vec![b'x'; 20 << 20];
    client.send(&parse("p", "select length($1::text)", &[]));
    let mut refused = 0;
    for at in 0..20 {
        client.send(&bind(&format!("c{at}"), "p", false, &[Some(&value)], false));
        client.send(&framed(Some(b'H'), &[]));
        let told = client.receive().unwrap();
        match told.kind {
            '1' => assert_eq!(client.receive().unwrap().kind, '2'),
            '2' => {}
            _ => {
                assert_eq!(told.part(b'C'), "53200", "{told:?}");
                refused += 1;
                break;
            }
        }
    }
    assert_eq!(refused, 1, "400 MiB were bound");
    client.send(&sync());
    client.answers();
    assert_eq!(client.value("select 1"), "1");
    // A line of a copy that does not end.
    client.tag("create table lines (a text)");
    ask(&mut client, "copy lines from stdin");
    assert_eq!(client.receive().unwrap().kind, 'G');
    for _ in 0..20 {
        client.send(&framed(Some(b'd'), &vec![b'x'; 10 << 20]));
    }
    client.send(&framed(Some(b'c'), &[]));
    assert_eq!(error(&client.answers()).part(b'C'), "53200");
    // What was taken is given back, once the rest of the copy was passed over.
    assert_eq!(client.value("select 1"), "1");
    let used = served.database.statistics().memory_used;
    assert!(used < before + (30 << 20), "{before} and {used} bytes");
}

/// What a statement returns is counted, too, where it waits for a client that does not take it.
#[test]
fn rows_that_are_not_taken_are_counted() {
    let served = Served::new();
    let mut client = served.client();
    client.tag("create table t (a int, b text)");
    client.tag("prepare p as select x, repeat('reef', 2000) from generate_series(1, 50000) a(x)");
    // 400 MB, of which little is there at a time.
    ask(&mut client, "execute p");
    let mut rows = 0;
    loop {
        let told = client.receive().unwrap();
        match told.kind {
            'D' => rows += 1,
            'Z' => break,
            'E' => panic!("{}", told.part(b'M')),
            _ => {}
        }
    }
    assert_eq!(rows, 50_000);
    let all = client.ask("insert into t select x, '' from generate_series(1, 50000) a(x) returning repeat(a || 'reef', 1500)");
    assert_eq!(error(&all).part(b'C'), "53200");
    assert_eq!(client.value("select count(*) from t"), "0");
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

/// What the server says of itself by this name.
fn metric(served: &Served, name: &str) -> u64 {
    use std::io::{Read, Write};
    let metrics = served.server.as_ref().unwrap().metrics().unwrap();
    let mut socket = TcpStream::connect(metrics).unwrap();
    socket.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    let mut lines = text.lines();
    let found = lines.find_map(|line| line.strip_prefix(&format!("atoll_{name} ")));
    found.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

/// What a client is in the middle of when it goes.
fn leave_in_the_middle(client: &mut Client, random: &mut fastrand::Rng, number: u64) {
    match random.u8(..8) {
        0 => ask(client, LONG),
        1 => ask(client, WIDE),
        2 => {
            client.ask("begin");
            client.code(&format!("insert into t values ({number}, -1)"));
        }
        // Rows of a copy, of which no more come.
        3 => {
            client.ask("begin");
            ask(client, "copy t from stdin");
            client.send(&framed(Some(b'd'), format!("{number}\t1\n").as_bytes()));
        }
        // A statement that writes much.
        4 => {
            client.ask("begin");
            ask(
                client,
                "insert into t select 1, x from generate_series(1, 1000000) a(x)",
            );
        }
        // One that is planned for long.
        5 => {
            let sum = vec!["1"; 400].join(" + ");
            ask(
                client,
                &format!("select {sum} from t a, t b, t c, t d, t e, t f"),
            );
        }
        // A portal in the middle of its rows, before the end of its messages.
        6 => client.send(
            &[
                parse("", WIDE, &[]),
                bind("", "", false, &[], false),
                execute("", 10),
                framed(Some(b'H'), &[]),
            ]
            .concat(),
        ),
        // A message of which the rest does not come.
        _ => client.send(&[b'Q', 0, 1, 0, 0, b's']),
    }
    std::thread::sleep(Duration::from_millis(random.u64(..30)));
}

#[test]
fn many_clients_some_of_which_are_killed() {
    let served = Served::with(|options, _| {
        options.metrics = Some("127.0.0.1:0".parse().unwrap());
    });
    served
        .client()
        .ask("create table t (client int, number int)");
    let left = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for number in 0..64 {
            let (served, left) = (&served, &left);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(number);
                for _ in 0..6 {
                    let mut client = served.client();
                    match random.u8(..6) {
                        0..3 => {
                            leave_in_the_middle(&mut client, &mut random, number);
                            left.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
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
    assert!(left.into_inner() > 100, "too few went in the middle");
    settle(&served, 0);
    assert_eq!(served.client().value("select count(*) from t"), "0");
    assert_eq!(
        served.client().tag("insert into t values (1, 1)"),
        "INSERT 0 1"
    );
    // No connection is left, nor the thread that served it, nor a statement that runs on.
    let until = Instant::now() + Duration::from_secs(30);
    while metric(&served, "connections_open") > 0 || metric(&served, "sessions_active") > 0 {
        assert!(Instant::now() < until, "something is left");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Whoever connects and says nothing keeps nobody out.
#[test]
fn silent_connections_make_place() {
    let served = Served::with(|options, _| options.max_connections = 2);
    let mut known = served.client();
    let silent: Vec<TcpStream> = (0..80)
        .map(|_| TcpStream::connect(served.address).unwrap())
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    let before = Instant::now();
    assert_eq!(served.client().value("select 1"), "1");
    assert!(
        before.elapsed() < Duration::from_secs(5),
        "{:?}",
        before.elapsed()
    );
    // Those who were let in stay.
    assert_eq!(known.value("select 1"), "1");
    drop(silent);
}

/// What is written to a file that was removed is lost when the server ends: it is told.
#[test]
fn a_file_that_is_removed_is_noticed() {
    let mut folder = std::path::PathBuf::new();
    let served = Served::with(|_, path| folder = path.to_owned());
    let mut client = served.client();
    client.tag("create table t (a int)");
    client.tag("insert into t values (1)");
    std::fs::remove_file(folder.join("served.atoll")).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let all = client.ask("insert into t values (2)");
        if let Some(error) = all.iter().find(|told| told.kind == 'E') {
            assert_eq!(error.part(b'C'), "58P01");
            assert!(error.part(b'M').contains("served.atoll"), "{error:?}");
            break;
        }
        assert!(Instant::now() < until, "nobody noticed");
        std::thread::sleep(Duration::from_millis(100));
    }
    // What there is can still be read.
    assert_eq!(client.value("select min(a) from t"), "1");
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
