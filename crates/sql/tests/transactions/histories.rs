//! Random histories of three sessions against a model of snapshot isolation.

use std::collections::BTreeMap;
use std::time::Duration;

use sql::{Error, Session, TransactionStatus};

use crate::{Sessions, numbers};

/// A table: a value for each key.
type Rows = BTreeMap<i64, i64>;

const TABLES: [&str; 2] = ["t", "u"];

/// What a transaction sees and has done.
#[derive(Clone, Default)]
struct State {
    rows: [Rows; 2],
    changed: [bool; 2],
}

#[derive(Clone)]
struct Seen {
    now: State,
    /// What was committed when it began to read, and how often each table had been changed then.
    first: [Rows; 2],
    versions: [u64; 2],
}

impl Seen {
    fn of(first: [Rows; 2], versions: [u64; 2]) -> Seen {
        let now = State {
            rows: first.clone(),
            changed: [false; 2],
        };
        Seen {
            now,
            first,
            versions,
        }
    }
}

/// A transaction as the model has it.
#[derive(Default)]
struct Transaction {
    failed: bool,
    /// From its first statement on.
    seen: Option<Seen>,
    /// The states to go back to; none where there was none yet.
    savepoints: Vec<(u64, Option<State>)>,
}

/// The committed tables, and the transactions of the sessions.
#[derive(Default)]
struct Model {
    rows: [Rows; 2],
    /// How often each table was changed.
    versions: [u64; 2],
    open: [Option<Transaction>; 3],
    /// Which session has the turn.
    writer: Option<usize>,
}

/// What a statement that changes rows does.
#[derive(Clone, Copy, Debug)]
enum Change {
    Insert(i64, i64),
    /// The values of keys that leave a remainder of 3.
    Update(i64),
    /// Keys that leave a remainder of 4.
    Delete(i64),
    All,
    /// The rows of the other table, with keys so much greater.
    Copy(i64),
}

impl Change {
    fn text(self, table: usize) -> String {
        let (name, other) = (TABLES[table], TABLES[1 - table]);
        match self {
            Change::Insert(key, value) => format!("insert into {name} values ({key}, {value})"),
            Change::Update(r) => format!("update {name} set v = v + 1 where k % 3 = {r}"),
            Change::Delete(r) => format!("delete from {name} where k % 4 = {r}"),
            Change::All => format!("delete from {name}"),
            Change::Copy(by) => {
                format!("insert into {name} select k + {by}, v from {other} where k % 7 = 1")
            }
        }
    }

    fn apply(self, state: &mut State, table: usize) {
        let other = state.rows[1 - table].clone();
        let rows = &mut state.rows[table];
        let before = rows.clone();
        match self {
            Change::Insert(key, value) => drop(rows.insert(key, value)),
            Change::Update(r) => {
                let some = rows.iter_mut().filter(|(key, _)| **key % 3 == r);
                some.for_each(|(_, value)| *value += 1);
            }
            Change::Delete(r) => rows.retain(|key, _| key % 4 != r),
            Change::All => rows.clear(),
            Change::Copy(by) => {
                let some = other.iter().filter(|(key, _)| **key % 7 == 1);
                rows.extend(some.map(|(key, value)| (key + by, *value)));
            }
        }
        // That all rows go is a change of a table also where there is none.
        state.changed[table] |= *rows != before || matches!(self, Change::All);
    }
}

impl Model {
    /// What a session sees.
    fn seen(&mut self, session: usize) -> [Rows; 2] {
        let committed = Seen::of(self.rows.clone(), self.versions);
        match &mut self.open[session] {
            None => committed.first,
            Some(open) => open.seen.get_or_insert(committed).now.rows.clone(),
        }
    }

    /// Makes a change; an error if it must not be made.
    fn change(&mut self, session: usize, table: usize, change: Change) -> Result<(), ()> {
        let taken = self.writer.is_some_and(|writer| writer != session);
        let versions = self.versions;
        let rows = self.rows.clone();
        let Some(open) = &mut self.open[session] else {
            if taken {
                return Err(());
            }
            let mut state = State {
                rows,
                changed: [false; 2],
            };
            change.apply(&mut state, table);
            self.publish(state);
            return Ok(());
        };
        let seen = open.seen.as_ref();
        let newer = seen.is_some_and(|seen| seen.versions[table] != versions[table]);
        if open.failed || taken || newer {
            open.failed = true;
            return Err(());
        }
        self.writer = Some(session);
        let seen = open.seen.get_or_insert_with(|| Seen::of(rows, versions));
        change.apply(&mut seen.now, table);
        Ok(())
    }

    fn publish(&mut self, state: State) {
        for table in 0..2 {
            if state.changed[table] {
                self.rows[table] = state.rows[table].clone();
                self.versions[table] += 1;
            }
        }
    }

    fn end(&mut self, session: usize) -> Option<Transaction> {
        if self.writer == Some(session) {
            self.writer = None;
        }
        self.open[session].take()
    }

    fn commit(&mut self, session: usize) -> Result<(), ()> {
        let open = self.end(session).ok_or(())?;
        if open.failed {
            return Err(());
        }
        if let Some(seen) = open.seen {
            self.publish(seen.now);
        }
        Ok(())
    }

    fn rollback_to(&mut self, session: usize, name: u64) -> Result<(), ()> {
        let open = self.open[session].as_mut().ok_or(())?;
        let found = open
            .savepoints
            .iter()
            .rposition(|(other, _)| *other == name);
        let Some(at) = found else {
            open.failed = true;
            return Err(());
        };
        open.savepoints.truncate(at + 1);
        open.failed = false;
        // Without a state of its own it has the snapshot, if that was taken since.
        if let Some(seen) = &mut open.seen {
            seen.now = match &open.savepoints[at].1 {
                Some(state) => state.clone(),
                None => Seen::of(seen.first.clone(), seen.versions).now,
            };
        }
        Ok(())
    }

    fn savepoint(&mut self, session: usize, name: u64) -> Result<(), ()> {
        let open = self.open[session].as_mut().ok_or(())?;
        if open.failed {
            return Err(());
        }
        let state = open.seen.as_ref().map(|seen| seen.now.clone());
        open.savepoints.push((name, state));
        Ok(())
    }

    fn release(&mut self, session: usize, name: u64) -> Result<(), ()> {
        let open = self.open[session].as_mut().ok_or(())?;
        let found = open
            .savepoints
            .iter()
            .rposition(|(other, _)| *other == name);
        match found.filter(|_| !open.failed) {
            Some(at) => {
                open.savepoints.truncate(at);
                Ok(())
            }
            None => {
                open.failed = true;
                Err(())
            }
        }
    }
}

struct History {
    sessions: Sessions,
    connections: Vec<Session>,
    model: Model,
    /// What was done, for whoever has to find out why it went wrong.
    log: Vec<String>,
    random: fastrand::Rng,
    next: i64,
}

impl History {
    fn compare(&mut self, session: usize, text: &str, expected: Result<(), ()>) {
        let outcome = self.sessions.try_run(&self.connections[session], text);
        let shown = outcome.as_ref().err().map(Error::to_string);
        self.log.push(format!("{session}: {text} -> {shown:?}"));
        let log = || self.log.join("\n");
        assert_eq!(outcome.is_ok(), expected.is_ok(), "{}", log());
        if let Err(e) = outcome {
            let known = matches!(e, Error::Conflict { .. } | Error::Transaction { .. });
            assert!(known || text.contains("nothing"), "{e}: {}", log());
        }
        let status = match &self.model.open[session] {
            None => TransactionStatus::Idle,
            Some(open) if open.failed => TransactionStatus::Failed,
            Some(_) => TransactionStatus::Open,
        };
        assert_eq!(self.connections[session].transaction(), status, "{}", log());
    }

    fn look(&mut self, session: usize, table: usize) {
        let failed = |open: &Option<Transaction>| open.as_ref().is_some_and(|open| open.failed);
        let text = format!("select k, v from {} order by k", TABLES[table]);
        if failed(&self.model.open[session]) {
            self.compare(session, &text, Err(()));
            return;
        }
        let expected = &self.model.seen(session)[table];
        let answers = self.sessions.run(&self.connections[session], &text);
        self.log.push(format!("{session}: {text}"));
        let found: Rows = numbers(&answers[0])
            .iter()
            .map(|row| (row[0], row[1]))
            .collect();
        assert_eq!(&found, expected, "{}", self.log.join("\n"));
        assert_eq!(answers[0].rows(), expected.len(), "{}", self.log.join("\n"));
    }

    fn step(&mut self) {
        let session = self.random.usize(..3);
        let table = self.random.usize(..2);
        let name = self.random.u64(..3);
        match self.random.u32(..20) {
            0..=1 => {
                let expected = match &mut self.model.open[session] {
                    Some(_) => Err(()),
                    none => {
                        *none = Some(Transaction::default());
                        Ok(())
                    }
                };
                self.compare(session, "begin", expected);
            }
            2..=3 => {
                let expected = self.model.commit(session);
                self.compare(session, "commit", expected);
            }
            4 => {
                let expected = self.model.end(session).map(drop).ok_or(());
                self.compare(session, "rollback", expected);
            }
            5 => {
                let expected = self.model.savepoint(session, name);
                self.compare(session, &format!("savepoint s{name}"), expected);
            }
            6 => {
                let expected = self.model.rollback_to(session, name);
                self.compare(session, &format!("rollback to s{name}"), expected);
            }
            7 => {
                let expected = self.model.release(session, name);
                self.compare(session, &format!("release s{name}"), expected);
            }
            8 => {
                if let Some(open) = &mut self.model.open[session] {
                    open.failed = true;
                }
                self.compare(session, "select nothing from t", Err(()));
            }
            9..=12 => self.look(session, table),
            _ => {
                let key = self.next;
                self.next += 1;
                let change = match self.random.u32(..10) {
                    0..=4 => Change::Insert(key, self.random.i64(..100)),
                    5..=6 => Change::Update(self.random.i64(..3)),
                    7 => Change::Delete(self.random.i64(..4)),
                    8 => Change::Copy(10_000 * key),
                    _ => Change::All,
                };
                let expected = self.model.change(session, table, change);
                self.compare(session, &change.text(table), expected);
            }
        }
    }
}

#[test]
fn sessions_are_isolated_as_the_model_says() {
    let seeds = match std::env::var("ATOLL_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..6).collect::<Vec<u64>>(),
    };
    for seed in seeds {
        let sessions = Sessions::new(Duration::from_millis(2));
        let connections: Vec<Session> = (0..3).map(|_| sessions.session()).collect();
        for table in TABLES {
            let text = format!("create table {table} (k bigint, v bigint)");
            sessions.run(&connections[0], &text);
        }
        let mut history = History {
            sessions,
            connections,
            model: Model::default(),
            log: vec![format!("ATOLL_SEED={seed}")],
            random: fastrand::Rng::with_seed(seed),
            next: 1,
        };
        for _ in 0..150 {
            history.step();
        }
        for (session, table) in [(0, 0), (1, 1), (2, 0), (0, 1)] {
            history.look(session, table);
        }
    }
}
