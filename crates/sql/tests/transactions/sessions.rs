//! What becomes of transactions whose sessions go away, and of what runs beside their statements.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use futures::StreamExt;
use sql::TransactionStatus;

use crate::Sessions;

/// 100,000 rows from 0 on, which fill more than a block.
const MANY: &str = "insert into t \
    select a.x + 10 * b.x + 100 * c.x + 1000 * e.x + 10000 * f.x, 'text ' || b.x \
    from d a, d b, d c, d e, d f";

fn sessions() -> Sessions {
    let sessions = Sessions::new(Duration::from_millis(20));
    let tables = "create table t (a bigint, b varchar);
        create table d (x bigint);
        insert into d values (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)";
    sessions.run(&sessions.session(), tables);
    sessions
}

#[test]
fn a_dropped_session_rolls_back_and_gives_its_turn_back() {
    let sessions = sessions();
    let (first, second) = (sessions.session(), sessions.session());
    sessions.run(
        &first,
        "begin; insert into t values (1, 'x'); savepoint s; delete from t",
    );
    let clone = first.clone();
    assert_eq!(clone.transaction(), TransactionStatus::Open);
    drop(first);
    let refused = sessions.try_run(&second, "insert into t values (2, 'y')");
    assert!(
        matches!(refused, Err(sql::Error::Conflict { .. })),
        "a clone has it still"
    );
    drop(clone);
    sessions.run(&second, "insert into t values (2, 'y')");
    assert_eq!(sessions.number(&second, "select sum(a) from t"), 2);
    let problems = sessions.instance.store().check(&|_, _| {}).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn blocks_are_read_and_undone_within_a_transaction() {
    let sessions = sessions();
    let (first, second) = (sessions.session(), sessions.session());
    sessions.run(&first, "begin");
    sessions.run(&first, MANY);
    let all = "select count(*) + sum(a) from t";
    let expected = 100_000 + 99_999 * 50_000;
    assert_eq!(sessions.number(&first, all), expected);
    assert_eq!(
        sessions.number(&first, "select count(*) from t where b = 'text 7'"),
        10_000
    );
    sessions.run(&first, "savepoint s");
    sessions.run(
        &first,
        "update t set a = a + 1, b = 'other' where a % 2 = 0",
    );
    assert_eq!(sessions.number(&first, all), expected + 50_000);
    assert_eq!(
        sessions.number(&first, "select count(distinct b) from t"),
        11
    );
    sessions.run(&first, "rollback to s");
    assert_eq!(
        sessions.number(&first, "select count(distinct b) from t"),
        10
    );
    // Other labels at the places of those that were undone.
    sessions.run(&first, "update t set b = 'third' where a < 50000");
    assert_eq!(
        sessions.number(&first, "select count(*) from t where b = 'third'"),
        50_000
    );
    assert_eq!(sessions.number(&second, "select count(*) from t"), 0);
    sessions.run(&first, "commit");
    assert_eq!(sessions.number(&second, all), expected);
    assert_eq!(
        sessions.number(&second, "select count(*) from t where b = 'third'"),
        50_000
    );
    let problems = sessions.instance.store().check(&|_, _| {}).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn what_is_rolled_back_takes_no_space() {
    let sessions = sessions();
    let session = sessions.session();
    let mut sizes = Vec::new();
    for _ in 0..5 {
        sessions.run(&session, "begin");
        sessions.run(&session, MANY);
        sessions.run(&session, "rollback; insert into t values (1, 'x')");
        sizes.push(sessions.instance.store().statistics().file_bytes);
    }
    assert_eq!(sizes[2], sizes[4], "{sizes:?}");
}

#[test]
fn a_stream_goes_on_as_its_transaction_was() {
    let sessions = sessions();
    let session = sessions.session();
    sessions.run(&session, "begin");
    sessions.run(&session, MANY);
    let handle = sessions.workers.handle().clone();
    let mut stream = handle.block_on(session.stream("select a from t")).unwrap();
    sessions.run(&session, "delete from t; rollback");
    // Somebody else writes where the rows lay that were undone, if they are not kept.
    sessions.run(&session, MANY);
    let mut rows = 0;
    while let Some(batch) = handle.block_on(stream.next()) {
        rows += batch.unwrap().num_rows();
    }
    assert_eq!(rows, 100_000);
}

#[test]
fn a_failing_stream_fails_its_transaction() {
    let sessions = sessions();
    let session = sessions.session();
    sessions.run(&session, "begin");
    sessions.run(&session, MANY);
    let handle = sessions.workers.handle().clone();
    let work = async {
        let mut stream = session.stream("select 1 / (a - 99999) from t").await?;
        while let Some(batch) = stream.next().await {
            batch?;
        }
        Ok::<_, sql::Error>(())
    };
    let error = handle.block_on(work).unwrap_err();
    assert!(matches!(error, sql::Error::Arithmetic { .. }), "{error}");
    assert_eq!(session.transaction(), TransactionStatus::Failed);
    sessions.run(&session, "rollback");
}

#[test]
fn a_cancelled_statement_fails_its_transaction() {
    let sessions = sessions();
    let session = sessions.session();
    sessions.run(
        &session,
        "begin; insert into t values (1, 'x'); savepoint s",
    );
    let handle = sessions.workers.handle().clone();
    let text = format!("{MANY}; {MANY}; {MANY}; {MANY}");
    // One that is cancelled before it has begun, or between two of its statements, has done nothing that fails.
    for attempt in 1..=20 {
        let cancelled = handle.block_on(async {
            let patience = Duration::from_millis(30 + attempt);
            tokio::time::timeout(patience, session.execute(&text)).await
        });
        assert!(cancelled.is_err(), "it takes longer than that");
        // The statement's task may take a moment to end.
        let mut patience = 0;
        while session.transaction() != TransactionStatus::Failed && patience < 200 {
            std::thread::sleep(Duration::from_millis(5));
            patience += 1;
        }
        if session.transaction() == TransactionStatus::Failed {
            break;
        }
    }
    assert_eq!(session.transaction(), TransactionStatus::Failed);
    sessions.run(&session, "rollback to s; commit");
    assert_eq!(
        sessions.number(&sessions.session(), "select sum(a) from t") % 10,
        1
    );
}

#[test]
fn rows_are_appended_to_the_transaction_of_the_session() {
    let sessions = sessions();
    let session = sessions.session();
    sessions.run(&session, "drop table t; create table t (a bigint); begin");
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10));
    let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
    let rows = futures::stream::iter([Ok(batch)]);
    let handle = sessions.workers.handle().clone();
    assert_eq!(handle.block_on(session.append("t", rows)).unwrap(), 10);
    assert_eq!(sessions.number(&session, "select count(*) from t"), 10);
    sessions.run(&session, "rollback");
    assert_eq!(sessions.number(&session, "select count(*) from t"), 0);
}

#[test]
fn whoever_writes_to_the_store_itself_has_to_wait_too() {
    let sessions = sessions();
    let session = sessions.session();
    sessions.run(&session, "begin; insert into t values (1, 'x')");
    let handle = sessions.workers.handle().clone();
    assert!(handle.block_on(sessions.instance.turn()).is_err());
    sessions.run(&session, "commit");
    let turn = handle.block_on(sessions.instance.turn()).unwrap();
    sessions.instance.store().begin().unwrap().commit().unwrap();
    drop(turn);
    sessions.run(&session, "insert into t values (2, 'y')");
}
