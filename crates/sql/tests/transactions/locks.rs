//! Advisory locks of sessions that nobody serves.

use std::time::Duration;

use crate::Sessions;

fn truth(sessions: &Sessions, session: &sql::Session, text: &str) -> bool {
    use arrow::array::AsArray;
    let answers = sessions.run(session, text);
    answers[0].batches[0].column(0).as_boolean().value(0)
}

#[test]
fn a_lock_is_waited_for_and_given_back_with_its_session() {
    let sessions = Sessions::new(Duration::from_secs(5));
    let (a, b) = (sessions.session(), sessions.session());
    sessions.run(&a, "select pg_advisory_lock(1)");
    assert!(!truth(&sessions, &b, "select pg_try_advisory_lock(1)"));
    let waits = b.clone();
    let waiting = sessions.workers.handle().spawn(async move {
        let text = "select pg_advisory_lock(1), pg_try_advisory_lock(2)";
        waits.execute(text).await.map(|answers| answers.len())
    });
    std::thread::sleep(Duration::from_millis(200));
    assert!(!waiting.is_finished());
    drop(a);
    let done = sessions.workers.handle().block_on(waiting).unwrap();
    assert_eq!(done.unwrap(), 1);
    // What was done before it had to wait was done once.
    assert!(truth(&sessions, &b, "select pg_advisory_unlock(1)"));
    assert!(!truth(&sessions, &b, "select pg_advisory_unlock(1)"));
    assert!(truth(&sessions, &b, "select pg_advisory_unlock(2)"));
    assert!(!truth(&sessions, &b, "select pg_advisory_unlock(2)"));
}

#[test]
fn a_statement_that_changes_rows_waits_too() {
    let sessions = Sessions::new(Duration::from_secs(5));
    let (a, b) = (sessions.session(), sessions.session());
    sessions.run(&a, "create table t (a int, b varchar)");
    sessions.run(&a, "select pg_advisory_lock(1)");
    let waits = b.clone();
    let waiting = sessions.workers.handle().spawn(async move {
        let text = "insert into t select x, pg_advisory_lock(x) from generate_series(1, 3) s(x)";
        waits.execute(text).await.map(|answers| answers.len())
    });
    std::thread::sleep(Duration::from_millis(200));
    assert!(!waiting.is_finished());
    sessions.run(&a, "select pg_advisory_unlock(1)");
    let done = sessions.workers.handle().block_on(waiting).unwrap();
    assert_eq!(done.unwrap(), 1);
    assert_eq!(sessions.number(&a, "select count(*) from t"), 3);
    assert_eq!(
        sessions.number(
            &a,
            "select count(*) from pg_locks where locktype = 'advisory'"
        ),
        3
    );
}
