//! What clients are told of statements that are cancelled, or have no time left, while they commit.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::client::{Client, Served, framed};

fn cancel(address: SocketAddr, process: u32, secret: &[u8]) {
    use std::io::Write;
    let Ok(mut socket) = TcpStream::connect(address) else {
        return;
    };
    let mut body = 80_877_102u32.to_be_bytes().to_vec();
    body.extend(process.to_be_bytes());
    body.extend(secret);
    let _ = socket.write_all(&framed(None, &body));
}

/// How often each was told: done, and that it is not.
type Counts = [usize; 2];

/// Runs statements that each write one row, and compares what was told of each with what is there.
fn compared(served: &Served, client: &mut Client, times: i64, text: fn(i64) -> String) -> Counts {
    let mut looking = served.client();
    let mut counts = [0, 0];
    for row in 0..times {
        let all = client.ask(&text(row));
        let failed = all.iter().find(|told| told.kind == 'E');
        let there = looking.value(&format!("select count(*) from t where a = {row}"));
        match failed {
            None => assert_eq!(there, "1", "told that it is done: {}", text(row)),
            Some(error) => {
                assert_eq!(error.part(b'C'), "57014", "{}", error.part(b'M'));
                assert_eq!(there, "0", "told that it is not done: {}", text(row));
                while client.ask("rollback").iter().any(|told| told.kind == 'E') {}
            }
        }
        counts[usize::from(failed.is_some())] += 1;
    }
    counts
}

const TEXTS: [fn(i64) -> String; 3] = [
    |row| format!("insert into t values ({row})"),
    |row| format!("insert into t select {row} returning a"),
    |row| format!("begin; insert into t values ({row}); commit"),
];

#[test]
fn who_is_told_that_a_statement_was_cancelled_may_do_it_again() {
    let served = Served::new();
    served.client().ask("create table t (a int)");
    for text in TEXTS {
        let mut client = served.client();
        let (address, process, secret) = (served.address, client.process, client.secret.clone());
        let ended = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&ended);
        let canceller = std::thread::spawn(move || {
            let mut random = fastrand::Rng::with_seed(57014);
            while !until.load(Ordering::Acquire) {
                // Now and then long enough for a statement to end, however busy the machine is.
                let longer = random.u32(0..5);
                std::thread::sleep(Duration::from_micros(random.u64(0..3000) << longer));
                cancel(address, process, &secret);
            }
        });
        let counts = compared(&served, &mut client, 60, text);
        ended.store(true, Ordering::Release);
        canceller.join().unwrap();
        assert!(counts[0] > 0, "{counts:?}");
        served.client().ask("delete from t");
    }
}

#[test]
fn who_is_told_that_a_statement_took_too_long_may_do_it_again() {
    let served = Served::new();
    served.client().ask("create table t (a int)");
    for text in TEXTS {
        let mut client = served.client();
        client.ask("set statement_timeout = '1ms'");
        compared(&served, &mut client, 60, text);
        served.client().ask("delete from t");
    }
}
