//! Random transactions on tables with foreign keys that are looked at when they end, against a model: what each leaves, and
//! which are refused, where.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;

use crate::fixture;

/// Rows of `p`, and rows of `c` and `d` with the keys of rows of `p`, and whether those of `d` are looked at later.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    p: BTreeSet<i64>,
    c: BTreeMap<i64, Option<i64>>,
    d: BTreeMap<i64, Option<i64>>,
    c_later: bool,
    d_later: bool,
}

const TABLES: &str = "create table p (id bigint primary key);
    create table c (id bigint primary key, p bigint, constraint c_p foreign key (p) references p deferrable initially deferred);
    create table d (id bigint primary key, p bigint, constraint d_p foreign key (p) references p on update cascade deferrable)";

fn refers(rows: &BTreeMap<i64, Option<i64>>, p: &BTreeSet<i64>) -> bool {
    rows.values().flatten().all(|own| p.contains(own))
}

impl State {
    /// The state of a new transaction.
    fn begun(&self) -> State {
        State {
            c_later: true,
            d_later: false,
            ..self.clone()
        }
    }

    /// Whether all that is looked at now holds.
    fn holds(&self) -> bool {
        (self.c_later || refers(&self.c, &self.p)) && (self.d_later || refers(&self.d, &self.p))
    }

    /// Whether all holds.
    fn ends(&self) -> bool {
        refers(&self.c, &self.p) && refers(&self.d, &self.p)
    }
}

fn shown(value: Option<i64>) -> String {
    value.map_or("null".to_string(), |value| value.to_string())
}

/// A statement, and what it makes of a state; none if it is refused.
fn step(before: &State, random: &mut fastrand::Rng) -> (String, Option<State>) {
    let mut next = before.clone();
    let id = random.i64(0..8);
    let to = (random.u8(0..5) > 0).then(|| random.i64(0..8));
    let child = if random.bool() { "c" } else { "d" };
    let rows = if child == "c" {
        &mut next.c
    } else {
        &mut next.d
    };
    let mut refused = false;
    let text = match random.u8(0..9) {
        0 | 1 => {
            refused = !next.p.insert(id);
            format!("insert into p values ({id})")
        }
        2 => {
            next.p.remove(&id);
            format!("delete from p where id = {id}")
        }
        3 | 4 => {
            refused = rows.insert(id, to).is_some();
            format!("insert into {child} values ({id}, {})", shown(to))
        }
        5 => {
            if let Some(own) = rows.get_mut(&id) {
                *own = to;
            }
            format!("update {child} set p = {} where id = {id}", shown(to))
        }
        6 => {
            rows.remove(&id);
            format!("delete from {child} where id = {id}")
        }
        7 => {
            let new = random.i64(0..8);
            if next.p.remove(&id) {
                refused = !next.p.insert(new);
                for own in next.d.values_mut().flatten() {
                    if *own == id {
                        *own = new;
                    }
                }
            }
            format!("update p set id = {new} where id = {id}")
        }
        _ => {
            let later = random.bool();
            let which = random.u8(0..3);
            next.c_later = if which == 1 { next.c_later } else { later };
            next.d_later = if which == 2 { next.d_later } else { later };
            let names = ["all", "d_p", "c_p"][usize::from(which)];
            let when = if later { "deferred" } else { "immediate" };
            format!("set constraints {names} {when}")
        }
    };
    let fine = !refused && next.holds();
    (text, fine.then_some(next))
}

fn rows(answer: &sql::Answer) -> BTreeMap<i64, Option<i64>> {
    let mut rows = BTreeMap::new();
    for batch in &answer.batches {
        let ids = batch.column(0).as_primitive::<Int64Type>();
        let others = batch.column(1).as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            let other = others.is_valid(row).then(|| others.value(row));
            assert!(rows.insert(ids.value(row), other).is_none());
        }
    }
    rows
}

#[test]
fn transactions_end_as_the_model_says() {
    let folder = tempfile::tempdir().unwrap();
    let workers = fixture::workers();
    let options = (store::Options::default(), sql::Options::default());
    let path = folder.path().join("d.atoll");
    let instance = fixture::instance(&workers, &path, 256 << 20, options.0, options.1);
    let session = instance.session();
    let run = |text: &str| workers.handle().block_on(session.execute(text));
    run(TABLES).unwrap();
    let mut random = fastrand::Rng::with_seed(11);
    let mut state = State::default();
    let (mut refused, mut late, mut kept) = (0, 0, 0);
    for at in 0..150 {
        run("begin").unwrap();
        let mut now = state.begun();
        let mut saved: Option<State> = None;
        let mut texts = Vec::new();
        let mut failed = false;
        for _ in 0..random.usize(1..9) {
            if random.u8(0..6) == 0 {
                if let Some(before) = saved.take().filter(|_| random.bool()) {
                    run("rollback to s").unwrap();
                    texts.push("rollback to s".to_string());
                    now = before.clone();
                    saved = Some(before);
                } else {
                    run("savepoint s").unwrap();
                    texts.push("savepoint s".to_string());
                    saved = Some(now.clone());
                }
            }
            let (text, after) = step(&now, &mut random);
            texts.push(text.clone());
            let done = run(&text);
            match (done, after) {
                (Ok(_), Some(after)) => now = after,
                (Err(_), None) => {
                    refused += 1;
                    failed = true;
                    break;
                }
                (Ok(_), None) => panic!("{at}: {texts:?} on {state:?}: was taken"),
                (Err(e), Some(_)) => panic!("{at}: {texts:?} on {state:?}: {e}"),
            }
        }
        if failed {
            run("rollback").unwrap();
        } else {
            match (run("commit"), now.ends()) {
                (Ok(_), true) => {
                    kept += 1;
                    state = now;
                }
                (Err(e), false) => {
                    assert!(e.to_string().contains("foreign key constraint"), "{e}");
                    late += 1;
                }
                (Ok(_), false) => panic!("{at}: {texts:?} on {state:?}: was committed"),
                (Err(e), true) => panic!("{at}: {texts:?} on {state:?}: {e}"),
            }
        }
        let found = run("select id, p from c; select id, p from d; select id, id from p").unwrap();
        let p: BTreeSet<i64> = rows(&found[2]).into_keys().collect();
        let (c, d) = (rows(&found[0]), rows(&found[1]));
        assert_eq!((&c, &d, &p), (&state.c, &state.d, &state.p), "{texts:?}");
    }
    assert!(
        refused > 10 && late > 0 && kept > 20,
        "{refused} {late} {kept}"
    );
}
