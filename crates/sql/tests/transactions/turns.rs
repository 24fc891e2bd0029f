//! Sessions that all write at once, and a statement that is cancelled while it commits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::stream;
use sql::{Canceller, Session};

use crate::Sessions;

const SESSIONS: i64 = 4;
const ROUNDS: i64 = 15;

/// What a transaction begins with, which writes a row to `t`.
type First = fn(&Sessions, &Session, i64);

/// As drivers write a row: the statement is described in the transaction before it runs.
fn prepared(sessions: &Sessions, session: &Session, row: i64) {
    let run = async {
        let text = "insert into t values ($1, 'x')";
        let insert = session.prepare(text, &[]).await?.unwrap();
        let value = row.to_string();
        let rows = session.run(&insert, &[Some(&value)]).await?;
        assert_eq!(rows.changed(), Some(1));
        Ok::<_, sql::Error>(())
    };
    sessions.workers.handle().block_on(run).unwrap();
}

fn copied(sessions: &Sessions, session: &Session, row: i64) {
    let run = async {
        let text = "copy t (a) from stdin";
        let transfer = sql::transfer(text)?.unwrap();
        session.copy_columns(&transfer).await?;
        let texts = arrow::array::StringViewArray::from(vec![row.to_string()]);
        let batch =
            arrow::array::RecordBatch::try_from_iter([("a", std::sync::Arc::new(texts) as _)]);
        let rows = stream::iter([Ok(batch.unwrap())]);
        session.copy_in(&transfer, rows).await
    };
    assert_eq!(sessions.workers.handle().block_on(run).unwrap(), 1);
}

const FIRST: [(&str, First); 6] = [
    ("an insert of one row", |sessions, session, row| {
        sessions.run(session, &format!("insert into t values ({row}, 'x')"));
    }),
    ("a prepared insert", prepared),
    ("a copy", copied),
    ("a with that changes tables", |sessions, session, row| {
        let text = format!(
            "with n as (update s set a = a + 1 returning a) insert into t select {row}, 'x' from n"
        );
        sessions.run(session, &text);
    }),
    ("a merge", |sessions, session, row| {
        let text = format!(
            "merge into t using (select {row} as a) v on t.a = v.a when not matched then insert values (v.a, 'x')"
        );
        sessions.run(session, &text);
    }),
    ("an index that is there", |sessions, session, row| {
        let text =
            format!("create index if not exists i on t (a); insert into t select {row}, 'x'");
        sessions.run(session, &text);
    }),
];

/// A transaction whose first statement writes has the newest snapshot, whoever else writes: none has to be tried again.
#[test]
fn transactions_that_begin_with_a_write_do_not_conflict() {
    for (what, first) in FIRST {
        let sessions = Sessions::new(Duration::from_secs(60));
        let tables = "create table t (a bigint, b varchar); create table s (a bigint); insert into s values (0)";
        sessions.run(&sessions.session(), tables);
        std::thread::scope(|scope| {
            for own in 0..SESSIONS {
                let sessions = &sessions;
                scope.spawn(move || {
                    let session = sessions.session();
                    for round in 0..ROUNDS {
                        sessions.run(&session, "begin");
                        first(sessions, &session, own * ROUNDS + round);
                        sessions.run(&session, "commit");
                    }
                });
            }
        });
        let session = sessions.session();
        let all = sessions.number(&session, "select count(distinct a) from t");
        assert_eq!(all, SESSIONS * ROUNDS, "{what}");
    }
}

/// Whoever is told that a statement was cancelled may do it again: so it has written nothing, and one that has written is told
/// to have done so.
#[test]
fn what_is_told_of_a_cancelled_statement_is_what_has_become_of_it() {
    let sessions = Sessions::new(Duration::from_secs(60));
    sessions.run(&sessions.session(), "create table t (a bigint, b varchar)");
    let texts: [fn(i64) -> String; 4] = [
        |row| format!("insert into t values ({row}, 'x')"),
        |row| format!("insert into t values ({row}, 'x') returning a"),
        |row| format!("with n as (insert into t values ({row}, 'x') returning a) select a from n"),
        |row| format!("begin; insert into t values ({row}, 'x'); commit"),
    ];
    let mut told = [0, 0];
    let mut random = fastrand::Rng::with_seed(40);
    for row in 0..400 {
        let text = texts[usize::try_from(row).unwrap() % texts.len()](row);
        let session = sessions.session();
        let after = Duration::from_micros(random.u64(0..4000));
        let canceller = Canceller::default();
        let work = canceller.over(async { session.execute(&text).await });
        let done = sessions.workers.handle().block_on(async {
            let mut work = Box::pin(work);
            tokio::select! {
                biased;
                () = tokio::time::sleep(after) => {}
                done = &mut work => return Some(done.map(drop)),
            }
            if canceller.cancel() {
                drop(work);
                canceller.ended().await;
                None
            } else {
                Some(work.await.map(drop))
            }
        });
        drop(session);
        let there = sessions.number(
            &sessions.session(),
            &format!("select count(*) from t where a = {row}"),
        );
        match done {
            Some(done) => {
                done.unwrap();
                assert_eq!(there, 1, "done, and not there: {text}");
                told[0] += 1;
            }
            None => {
                assert_eq!(there, 0, "cancelled, and there: {text}");
                told[1] += 1;
            }
        }
    }
    assert!(told.iter().all(|times| *times > 10), "{told:?}");
}

/// Who cancels is told when the work has ended, not before.
#[test]
fn nothing_goes_on_after_a_statement_was_cancelled() {
    struct Ended<'a>(&'a AtomicBool);
    impl Drop for Ended<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }
    static ENDED: AtomicBool = AtomicBool::new(false);
    let sessions = Sessions::new(Duration::from_secs(60));
    let session = sessions.session();
    sessions.run(&session, "create table t (a varchar)");
    let rows = stream::unfold(Ended(&ENDED), |ended| async move {
        // As a loop that does not look up for a while.
        std::thread::sleep(Duration::from_millis(300));
        Some((Err(sql::Error::Cancelled), ended))
    });
    let canceller = Canceller::default();
    let work = canceller.over(async { session.append("t", Box::pin(rows)).await });
    sessions.workers.handle().block_on(async {
        let mut work = Box::pin(work);
        tokio::select! {
            biased;
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
            _ = &mut work => unreachable!("it sleeps"),
        }
        assert!(canceller.cancel());
        drop(work);
        canceller.ended().await;
    });
    assert!(
        ENDED.load(Ordering::Acquire),
        "its rows are still asked for"
    );
}
