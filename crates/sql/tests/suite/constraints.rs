//! Random statements on tables with constraints, against a model: what each leaves, and which are refused.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;

use crate::fixture;

/// Rows of `p`: the primary key, and a unique number or NULL. Rows of `c`: the primary key, and that of a row of `p`.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    p: BTreeMap<i64, Option<i64>>,
    c: BTreeMap<i64, Option<i64>>,
}

const TABLES: &str = "create table p (id bigint primary key, u bigint unique, check (u < 40));
    create table c (id bigint primary key, p bigint references p on delete cascade on update cascade)";

/// A statement, and what it makes of a state; none if it is refused.
struct Step {
    text: String,
    after: Option<State>,
}

impl State {
    /// The same if all constraints hold.
    fn checked(self) -> Option<State> {
        let numbers: Vec<i64> = self.p.values().copied().flatten().collect();
        let distinct: BTreeSet<i64> = numbers.iter().copied().collect();
        let refers = self.c.values().flatten().all(|p| self.p.contains_key(p));
        (distinct.len() == numbers.len() && numbers.iter().all(|u| *u < 40) && refers)
            .then_some(self)
    }
}

fn shown(value: Option<i64>) -> String {
    value.map_or("null".to_string(), |value| value.to_string())
}

fn number(random: &mut fastrand::Rng) -> Option<i64> {
    (random.u8(0..5) > 0).then(|| random.i64(0..43))
}

fn values(rows: &[(i64, Option<i64>)]) -> String {
    let rows: Vec<String> = rows
        .iter()
        .map(|(id, other)| format!("({id}, {})", shown(*other)))
        .collect();
    rows.join(", ")
}

/// Inserts rows into `p`.
fn insert(state: &State, random: &mut fastrand::Rng) -> Step {
    let rows: Vec<_> = (0..random.usize(1..4))
        .map(|_| (random.i64(0..30), number(random)))
        .collect();
    let mut next = state.clone();
    let text = format!("insert into p values {}", values(&rows));
    let fine = rows.iter().all(|(_, u)| u.is_none_or(|u| u < 40));
    match random.u8(0..3) {
        0 => {
            let new = rows.iter().all(|(id, u)| next.p.insert(*id, *u).is_none());
            Step {
                text,
                after: new.then_some(next).and_then(State::checked),
            }
        }
        1 => {
            for (id, u) in &rows {
                let taken = u.is_some() && next.p.values().any(|other| other == u);
                // A row that is left out keeps no other out.
                if !next.p.contains_key(id) && !taken {
                    next.p.insert(*id, *u);
                }
            }
            Step {
                text: format!("{text} on conflict do nothing"),
                after: if fine { next.checked() } else { None },
            }
        }
        _ => {
            let ids: BTreeSet<i64> = rows.iter().map(|(id, _)| *id).collect();
            let once = ids.len() == rows.len();
            next.p.extend(rows.iter().copied());
            Step {
                text: format!("{text} on conflict (id) do update set u = excluded.u"),
                after: if fine && once { next.checked() } else { None },
            }
        }
    }
}

/// Moves or deletes rows of `p`.
fn change(state: &State, random: &mut fastrand::Rng) -> Step {
    let (by, rest) = (random.i64(1..4), random.i64(0..3));
    let hit = |id: &i64| by == 1 || id % by == rest;
    let condition = match by {
        1 => String::new(),
        _ => format!(" where id % {by} = {rest}"),
    };
    let mut next = State::default();
    if random.bool() {
        let step = random.i64(-3..9);
        let moved = |id: i64| if hit(&id) { id + step } else { id };
        let mut fine = true;
        for (id, u) in &state.p {
            fine &= next.p.insert(moved(*id), *u).is_none();
        }
        for (id, p) in &state.c {
            next.c.insert(*id, p.map(moved));
        }
        return Step {
            text: format!("update p set id = id + ({step}){condition}"),
            after: if fine { next.checked() } else { None },
        };
    }
    next.p = state.p.clone();
    next.p.retain(|id, _| !hit(id));
    next.c = state.c.clone();
    next.c.retain(|_, p| p.is_none_or(|p| !hit(&p)));
    Step {
        text: format!("delete from p{condition}"),
        after: next.checked(),
    }
}

/// Writes to `c`.
fn refer(state: &State, random: &mut fastrand::Rng) -> Step {
    let (id, p) = (
        random.i64(0..20),
        (random.u8(0..5) > 0).then(|| random.i64(0..30)),
    );
    let mut next = state.clone();
    match random.u8(0..3) {
        0 => {
            let new = next.c.insert(id, p).is_none();
            Step {
                text: format!("insert into c values ({id}, {})", shown(p)),
                after: new.then_some(next).and_then(State::checked),
            }
        }
        1 => {
            if let Some(own) = next.c.get_mut(&id) {
                *own = p;
            }
            Step {
                text: format!("update c set p = {} where id = {id}", shown(p)),
                after: next.checked(),
            }
        }
        _ => {
            next.c.retain(|_, own| *own != p || p.is_none());
            Step {
                text: format!("delete from c where p = {}", shown(p)),
                after: next.checked(),
            }
        }
    }
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
fn statements_do_what_the_model_does_or_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let workers = fixture::workers();
    let options = (store::Options::default(), sql::Options::default());
    let path = folder.path().join("c.atoll");
    let instance = fixture::instance(&workers, &path, 256 << 20, options.0, options.1);
    let session = instance.session();
    let run = |text: &str| workers.handle().block_on(session.execute(text));
    run(TABLES).unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    let mut state = State::default();
    let mut refused = 0;
    let steps = 400;
    for at in 0..steps {
        let step = match random.u8(0..3) {
            0 => insert(&state, &mut random),
            1 => change(&state, &mut random),
            _ => refer(&state, &mut random),
        };
        // Some are undone.
        let undone = random.u8(0..6) == 0;
        if undone {
            run("begin; savepoint s").unwrap();
        }
        let done = run(&step.text);
        let of = format!("step {at}: {} on {state:?}", step.text);
        match (&done, &step.after) {
            (Ok(_), Some(_)) => {}
            (Err(_), None) => refused += 1,
            (Ok(_), None) => panic!("{of}: was taken"),
            (Err(e), Some(_)) => panic!("{of}: {e}"),
        }
        if undone {
            run("rollback to s; commit").unwrap();
        } else if let Some(after) = step.after {
            state = after;
        }
        let answers = run("select * from p; select * from c").unwrap();
        let found = State {
            p: rows(&answers[0]),
            c: rows(&answers[1]),
        };
        assert_eq!(found, state, "{of}");
        // By the index, too.
        let id = random.i64(0..33);
        let answers = run(&format!("select * from p where id = {id}")).unwrap();
        let own = state.p.get(&id).map(|u| (id, *u));
        assert_eq!(rows(&answers[0]), own.into_iter().collect(), "{of}: {id}");
        if let Some(u) = number(&mut random) {
            let answers = run(&format!("select id, u from p where u = {u} and id >= 0")).unwrap();
            let own = state
                .p
                .iter()
                .filter(|(id, own)| **own == Some(u) && **id >= 0);
            assert_eq!(
                rows(&answers[0]),
                own.map(|(id, u)| (*id, *u)).collect(),
                "{of}: {u}"
            );
        }
    }
    assert!(refused > steps / 20 && refused < steps * 3 / 4, "{refused}");
}
