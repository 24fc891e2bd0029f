//! Names against a model of schemas and paths, and schemas that go while somebody else works in them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use arrow::util::display::array_value_to_string;
use sql::{Error, Session, TransactionStatus};

use crate::Sessions;

const SCHEMAS: [&str; 4] = ["a", "b", "c", "public"];
const NAMES: [&str; 3] = ["t", "u", "v"];

/// A table, or a view of one, by way of other views.
#[derive(Clone, Debug)]
struct Relation {
    /// Which it is: it keeps that when it is moved.
    identity: u64,
    /// The number in its row.
    number: i64,
    /// What a view reads.
    reads: Option<u64>,
}

/// What there is, and the path.
#[derive(Clone, Debug, Default)]
struct State {
    schemas: BTreeSet<String>,
    relations: BTreeMap<(String, String), Relation>,
    path: Option<Vec<String>>,
    local: Option<Vec<String>>,
    made: u64,
}

impl State {
    fn exists(&self, schema: &str) -> bool {
        schema == "public" || self.schemas.contains(schema)
    }

    fn path(&self) -> Vec<String> {
        let set = self.local.clone().or_else(|| self.path.clone());
        set.unwrap_or_else(|| vec!["public".into()])
    }

    /// Where a name is found.
    fn find(&self, (schema, name): &Written) -> Option<(String, String)> {
        let there = |schema: &String| {
            let key = (schema.clone(), name.clone());
            self.relations.contains_key(&key).then_some(key)
        };
        match schema {
            Some(schema) => there(schema),
            None => self.path().iter().find_map(there),
        }
    }

    /// Where something new is made.
    fn place(&self, (schema, name): &Written) -> Option<(String, String)> {
        let schema = match schema {
            Some(schema) => self.exists(schema).then(|| schema.clone())?,
            None => self.path().into_iter().find(|own| self.exists(own))?,
        };
        Some((schema, name.clone()))
    }

    fn is_read(&self, identity: u64, but: &[u64]) -> bool {
        let mut relations = self.relations.values();
        relations.any(|own| own.reads == Some(identity) && !but.contains(&own.identity))
    }

    /// Removes these, and the views that read them.
    fn remove(&mut self, mut gone: Vec<u64>) {
        loop {
            let reads = |own: &Relation| own.reads.is_some_and(|read| gone.contains(&read));
            let mut more = self.relations.values();
            let more = more.find(|own| reads(own) && !gone.contains(&own.identity));
            match more.map(|own| own.identity) {
                Some(more) => gone.push(more),
                None => break,
            }
        }
        self.relations
            .retain(|_, own| !gone.contains(&own.identity));
    }

    fn rename(&mut self, from: &(String, String), to: (String, String)) {
        if let Some(own) = self.relations.remove(from) {
            self.relations.insert(to, own);
        }
    }
}

/// A name with or without its schema.
type Written = (Option<String>, String);

fn text((schema, name): &Written) -> String {
    match schema {
        Some(schema) => format!("{schema}.{name}"),
        None => name.clone(),
    }
}

/// A statement, and what becomes of the state; none if it fails.
#[expect(clippy::too_many_lines, reason = "each kind of statement stands here")]
fn draw(random: &mut fastrand::Rng, state: &State) -> (String, Option<State>) {
    let mut next = state.clone();
    next.made += 1;
    let schema = |random: &mut fastrand::Rng| SCHEMAS[random.usize(..4)].to_string();
    let name = |random: &mut fastrand::Rng| NAMES[random.usize(..3)].to_string();
    let written = |random: &mut fastrand::Rng| -> Written {
        (random.bool().then(|| schema(random)), name(random))
    };
    match random.usize(..16) {
        0 | 1 => {
            let own = schema(random);
            let new = !next.exists(&own) && next.schemas.insert(own.clone());
            (format!("create schema {own}"), new.then_some(next))
        }
        2 => {
            let own = schema(random);
            let cascade = random.bool();
            let within = next.relations.iter().filter(|((of, _), _)| *of == own);
            let within: Vec<u64> = within.map(|(_, own)| own.identity).collect();
            let done = next.schemas.remove(&own) && (cascade || within.is_empty());
            next.remove(within);
            let cascade = if cascade { " cascade" } else { "" };
            (format!("drop schema {own}{cascade}"), done.then_some(next))
        }
        3..=5 => {
            let own = written(random);
            let number = next.made as i64;
            let sql = format!("create table {} as select {number} as n", text(&own));
            let place = next.place(&own);
            let place = place.filter(|place| !next.relations.contains_key(place));
            let Some(place) = place else {
                return (sql, None);
            };
            let relation = Relation {
                identity: next.made,
                number,
                reads: None,
            };
            next.relations.insert(place, relation);
            (sql, Some(next))
        }
        6 | 7 => {
            let (own, read) = (written(random), written(random));
            let sql = match random.usize(..3) {
                0 => format!(
                    "create view {} as select n from {}",
                    text(&own),
                    text(&read)
                ),
                1 => format!(
                    "create view {} as with w as (select * from {}) select w.n from w",
                    text(&own),
                    text(&read)
                ),
                _ => format!(
                    "create view {} as\nselect {}.n -- é\n from {} where 1 in (select 1)",
                    text(&own),
                    read.1,
                    text(&read)
                ),
            };
            let place = next.place(&own);
            let place = place.filter(|place| !next.relations.contains_key(place));
            let (Some(place), Some(read)) = (place, next.find(&read)) else {
                return (sql, None);
            };
            let read = next.relations[&read].clone();
            let relation = Relation {
                identity: next.made,
                number: read.number,
                reads: Some(read.identity),
            };
            next.relations.insert(place, relation);
            (sql, Some(next))
        }
        8 => {
            let own = written(random);
            let cascade = random.bool();
            let kind = if random.bool() { "table" } else { "view" };
            let behind = if cascade { " cascade" } else { "" };
            let sql = format!("drop {kind} {}{behind}", text(&own));
            let Some(found) = next.find(&own) else {
                return (sql, None);
            };
            let relation = next.relations[&found].clone();
            let fits = relation.reads.is_some() == (kind == "view");
            let free = cascade || !next.is_read(relation.identity, &[]);
            next.remove(vec![relation.identity]);
            (sql, (fits && free).then_some(next))
        }
        9..=11 => {
            let count = random.usize(1..4);
            let path: Vec<String> = (0..count).map(|_| schema(random)).collect();
            let local = random.u8(..3) == 0;
            let words = if local { "set local" } else { "set" };
            let sql = format!("{words} search_path to {}", path.join(", "));
            if local {
                next.local = Some(path);
            } else {
                next.path = Some(path);
                next.local = None;
            }
            (sql, Some(next))
        }
        12 | 13 => {
            let (own, to) = (written(random), schema(random));
            let sql = format!("alter table {} set schema {to}", text(&own));
            let place = (to.clone(), own.1.clone());
            match next.find(&own) {
                Some(found) if next.exists(&to) && found.0 == to => (sql, Some(next)),
                Some(found) if next.exists(&to) && !next.relations.contains_key(&place) => {
                    next.rename(&found, place);
                    (sql, Some(next))
                }
                _ => (sql, None),
            }
        }
        14 => {
            let (own, to) = (schema(random), schema(random));
            let sql = format!("alter schema {own} rename to {to}");
            if own == "public" || !next.exists(&own) || next.exists(&to) {
                return (sql, None);
            }
            next.schemas.remove(&own);
            next.schemas.insert(to.clone());
            let within = next.relations.keys().filter(|key| key.0 == own);
            for key in within.cloned().collect::<Vec<_>>() {
                let place = (to.clone(), key.1.clone());
                next.rename(&key, place);
            }
            (sql, Some(next))
        }
        _ => {
            let (own, to) = (written(random), name(random));
            let sql = format!("alter table {} rename to {to}", text(&own));
            let Some(found) = next.find(&own) else {
                return (sql, None);
            };
            let place = (found.0.clone(), to);
            let relation = &next.relations[&found];
            if relation.reads.is_some()
                || next.is_read(relation.identity, &[])
                || next.relations.contains_key(&place)
            {
                return (sql, None);
            }
            next.rename(&found, place);
            (sql, Some(next))
        }
    }
}

/// That the session finds what the model does, under each name.
fn check(sessions: &Sessions, session: &Session, state: &State, history: &[String]) {
    for name in NAMES {
        let schemas = SCHEMAS.iter().map(|schema| Some(schema.to_string()));
        for schema in schemas.chain([None]) {
            let own = (schema, name.to_string());
            let query = match state.find(&own) {
                Some(found) => {
                    let number = state.relations[&found].number;
                    format!("select n * 1000 - {number} * 1000 from {}", text(&own))
                }
                None => format!(
                    "select case when to_regclass('{}') is null then 0 else 1 end",
                    text(&own)
                ),
            };
            let answers = sessions.try_run(session, &query);
            let ok = answers.as_ref().is_ok_and(|answers| {
                let column = answers[0].batches.first().map(|batch| batch.column(0));
                let first = |column| array_value_to_string(column, 0).unwrap();
                answers[0].rows() == 1 && column.is_some_and(|column| first(column) == "0")
            });
            assert!(
                ok,
                "{query}: {:?}\n{state:?}\nafter\n{}",
                answers.map(|answers| answers[0].batches.clone()),
                history.join(";\n")
            );
        }
    }
}

/// A history of statements of one session, in transactions with savepoints.
fn history(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let sessions = Sessions::new(Duration::from_secs(10));
    let session = sessions.session();
    let mut state = State::default();
    // What a rollback comes back to: the transaction, and its savepoints.
    let mut before: Vec<State> = Vec::new();
    let mut history = vec![format!("-- seed {seed}")];
    for _ in 0..60 {
        let failed = session.transaction() == TransactionStatus::Failed;
        let (text, next) = match (before.len(), random.usize(..12)) {
            (0, 0) => {
                before.push(state.clone());
                ("begin".to_string(), Some(state.clone()))
            }
            (1.., 0) if !failed => {
                let mut next = state.clone();
                next.local = None;
                before.clear();
                ("commit".to_string(), Some(next))
            }
            (1.., 1) => {
                let first = before.swap_remove(0);
                before.clear();
                ("rollback".to_string(), Some(first))
            }
            (1.., 2) if !failed => {
                before.push(state.clone());
                (format!("savepoint s{}", before.len()), Some(state.clone()))
            }
            (2.., 3 | 4) => {
                let to = random.usize(2..=before.len());
                before.truncate(to);
                let saved = before[to - 1].clone();
                (format!("rollback to s{to}"), Some(saved))
            }
            _ if failed => continue,
            _ => draw(&mut random, &state),
        };
        history.push(text.clone());
        let made = state.made + 1;
        let alone = before.is_empty();
        match (sessions.try_run(&session, &text), next) {
            (Ok(_), Some(next)) => state = next,
            (Err(_), None) => {}
            (got, next) => panic!(
                "{got:?} where the model has {next:?}\nafter\n{}",
                history.join(";\n")
            ),
        }
        // Numbers are given once, whatever is undone; what is local does not outlive a statement that is alone.
        state.made = state.made.max(made);
        if alone {
            state.local = None;
        }
        if session.transaction() != TransactionStatus::Failed {
            check(&sessions, &session, &state, &history);
        }
    }
}

#[test]
fn names_are_found_where_a_model_has_them() {
    let cases = if cfg!(feature = "slow") { 200 } else { 5 };
    for seed in 0..cases {
        history(seed);
    }
}

#[test]
fn nothing_comes_into_a_schema_that_goes() {
    let sessions = Sessions::new(Duration::from_secs(10));
    let (first, second) = (sessions.session(), sessions.session());
    sessions.run(&first, "create schema s; create table t (a int)");
    let conflict = |session: &Session, text: &str| {
        let error = sessions.try_run(session, text).unwrap_err();
        assert!(matches!(error, Error::Conflict { .. }), "{text}: {error}");
        sessions.run(session, "rollback");
    };
    // Dropped after the snapshot was taken.
    sessions.run(&first, "begin; select * from t");
    sessions.run(&second, "drop schema s");
    conflict(&first, "create table s.t (a int)");
    // Filled after it was taken.
    sessions.run(&second, "create schema s");
    sessions.run(&first, "begin; select * from t");
    sessions.run(&second, "create table s.t (a int)");
    conflict(&first, "drop schema s");
    sessions.run(&first, "begin; select * from t");
    sessions.run(&second, "insert into s.t values (1)");
    conflict(&first, "drop schema s cascade");
    sessions.run(&first, "begin; select * from t");
    sessions.run(&second, "alter schema s rename to r");
    conflict(&first, "create sequence s.q");
    // Two may fill one at a time.
    sessions.run(&first, "begin; select * from t");
    sessions.run(&second, "create table r.u (a int)");
    sessions.run(&first, "create table r.w (a int); commit");
    let made = "select count(*) from information_schema.tables where table_schema = 'r'";
    assert_eq!(sessions.number(&second, made), 3);
    sessions.run(&first, "drop schema r cascade");
    assert_eq!(sessions.number(&second, made), 0);
}

#[test]
fn what_was_committed_in_a_schema_is_there_when_the_store_is_opened_again() {
    let sessions = Sessions::new(Duration::from_secs(10));
    let session = sessions.session();
    sessions.run(
        &session,
        "create schema s; create schema empty; create table s.t (id serial primary key, a int references s.t);
         insert into s.t (a) values (null), (1); set search_path to s; create view v as select a from t where a > 0",
    );
    let store = std::sync::Arc::clone(sessions.instance.store());
    let tables = table::Catalog::new().tables(&store.snapshot()).unwrap();
    assert_eq!(tables.schemas(), ["empty", "s"]);
    assert_eq!(tables.names(), ["s\u{1}t"]);
    assert_eq!(tables.sequences(), ["s\u{1}t_id_seq"]);
    assert_eq!(
        tables.view("s\u{1}v"),
        Some("create view v as select a from s.t where a > 0")
    );
    // A path is of its session.
    let other = sessions.session();
    assert!(sessions.try_run(&other, "select * from v").is_err());
    assert_eq!(
        sessions.number(&other, "select a * 1000 - 1000 + count(*) over () from s.v"),
        1
    );
}
