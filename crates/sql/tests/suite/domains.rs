//! Random statements on columns of domains and on the domains, against a model: what each leaves, and which are refused.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;

use crate::fixture;

/// What is said of a domain: its checks by name, as least, most and a divisor that is none, whether NULL is refused, and the
/// default.
#[derive(Clone, Debug, Default, PartialEq)]
struct Kind {
    checks: BTreeMap<String, Check>,
    not_null: bool,
    default: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Check {
    Least(i64),
    Most(i64),
    Not(i64),
}

impl Check {
    fn text(self) -> String {
        match self {
            Check::Least(least) => format!("value >= {least}"),
            Check::Most(most) => format!("value <= {most}"),
            Check::Not(by) => format!("value % {by} <> 0"),
        }
    }

    fn holds(self, value: i64) -> bool {
        match self {
            Check::Least(least) => value >= least,
            Check::Most(most) => value <= most,
            Check::Not(by) => value % by != 0,
        }
    }
}

/// `d`, and `e` that was made from it; the rows of `t (id, d, e)`.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    d: Kind,
    e: Kind,
    rows: BTreeMap<i64, (Option<i64>, Option<i64>)>,
}

impl State {
    /// Whether a value is one of `d`, or of `e`.
    fn takes(&self, value: Option<i64>, child: bool) -> bool {
        let mut kinds = vec![&self.d];
        kinds.extend(child.then_some(&self.e));
        kinds.iter().all(|kind| match value {
            None => !kind.not_null,
            Some(value) => kind.checks.values().all(|check| check.holds(value)),
        })
    }

    fn checked(self) -> Option<State> {
        let mut rows = self.rows.values();
        rows.all(|(d, e)| self.takes(*d, false) && self.takes(*e, true))
            .then_some(self)
    }
}

struct Step {
    text: String,
    after: Option<State>,
}

fn shown(value: Option<i64>) -> String {
    value.map_or("null".to_owned(), |value| value.to_string())
}

fn number(random: &mut fastrand::Rng) -> Option<i64> {
    (random.u8(0..8) > 0).then(|| random.i64(-3..30))
}

/// Writes rows.
fn write(state: &State, random: &mut fastrand::Rng) -> Step {
    let mut next = state.clone();
    let (id, d, e) = (random.i64(0..25), number(random), number(random));
    let (shown_d, shown_e) = (shown(d), shown(e));
    match random.u8(0..7) {
        0 => {
            let new = next.rows.insert(id, (d, e)).is_none();
            Step {
                text: format!("insert into t values ({id}, {shown_d}, {shown_e})"),
                after: new.then_some(next).and_then(State::checked),
            }
        }
        1 => {
            let own = (state.d.default, state.e.default);
            let new = next.rows.insert(id, own).is_none();
            let text = if random.bool() {
                format!("insert into t (id) values ({id})")
            } else {
                format!("insert into t values ({id}, default, default)")
            };
            Step {
                text,
                after: new.then_some(next).and_then(State::checked),
            }
        }
        2 => {
            // What is proposed must be of the domains, also where another row is changed.
            let fits = state.takes(d, false) && state.takes(e, true);
            next.rows
                .entry(id)
                .and_modify(|own| own.0 = d)
                .or_insert((d, e));
            Step {
                text: format!(
                    "insert into t values ({id}, {shown_d}, {shown_e}) on conflict (id) do update set d = excluded.d"
                ),
                after: fits.then_some(next).and_then(State::checked),
            }
        }
        _ => rewrite(next, (id, e), random),
    }
}

/// Changes or deletes rows.
fn rewrite(mut next: State, (id, e): (i64, Option<i64>), random: &mut fastrand::Rng) -> Step {
    match random.u8(0..4) {
        0 => {
            let by = random.i64(-4..5);
            for own in next.rows.values_mut() {
                own.0 = own.0.map(|d| d + by);
            }
            Step {
                text: format!("update t set d = d + ({by})"),
                after: next.checked(),
            }
        }
        1 => {
            if let Some(own) = next.rows.get_mut(&id) {
                own.1 = e;
            }
            Step {
                text: format!(
                    "merge into t using (values ({id}, cast({} as bigint))) v (id, e) on t.id = v.id when matched then update set e = v.e",
                    shown(e)
                ),
                after: next.checked(),
            }
        }
        2 => {
            let defaults = (next.d.default, next.e.default);
            if let Some(own) = next.rows.get_mut(&id) {
                *own = defaults;
            }
            Step {
                text: format!("update t set d = default, e = default where id = {id}"),
                after: next.checked(),
            }
        }
        _ => {
            next.rows.retain(|own, _| own % 5 != id % 5);
            Step {
                text: format!("delete from t where id % 5 = {}", id % 5),
                after: Some(next),
            }
        }
    }
}

/// Says something else of a domain.
fn change(state: &State, random: &mut fastrand::Rng) -> Step {
    let mut next = state.clone();
    let child = random.bool();
    let name = if child { "e" } else { "d" };
    let kind = if child { &mut next.e } else { &mut next.d };
    let constraint = format!("c{}", random.u8(0..3));
    match random.u8(0..5) {
        0 | 1 => {
            let check = match random.u8(0..3) {
                0 => Check::Least(random.i64(-4..3)),
                1 => Check::Most(random.i64(15..35)),
                _ => Check::Not(random.i64(2..9)),
            };
            let new = !kind.checks.contains_key(&constraint);
            kind.checks.insert(constraint.clone(), check);
            Step {
                text: format!(
                    "alter domain {name} add constraint {constraint} check ({})",
                    check.text()
                ),
                after: new.then_some(next).and_then(State::checked),
            }
        }
        2 => {
            let there = kind.checks.remove(&constraint).is_some();
            Step {
                text: format!("alter domain {name} drop constraint {constraint}"),
                after: there.then_some(next),
            }
        }
        3 => {
            kind.not_null = random.bool();
            let word = if kind.not_null { "set" } else { "drop" };
            Step {
                text: format!("alter domain {name} {word} not null"),
                after: next.checked(),
            }
        }
        _ => {
            kind.default = number(random);
            let text = match kind.default {
                Some(default) => format!("alter domain {name} set default {default}"),
                None => format!("alter domain {name} drop default"),
            };
            Step {
                text,
                after: Some(next),
            }
        }
    }
}

fn rows(answer: &sql::Answer) -> BTreeMap<i64, (Option<i64>, Option<i64>)> {
    let mut rows = BTreeMap::new();
    for batch in &answer.batches {
        let of = |at: usize, row: usize| {
            let own = batch.column(at).as_primitive::<Int64Type>();
            own.is_valid(row).then(|| own.value(row))
        };
        for row in 0..batch.num_rows() {
            let id = of(0, row).unwrap();
            assert!(rows.insert(id, (of(1, row), of(2, row))).is_none());
        }
    }
    rows
}

#[test]
fn domains_hold_as_a_model_says() {
    let folder = tempfile::tempdir().unwrap();
    let workers = fixture::workers();
    let options = (store::Options::default(), sql::Options::default());
    let path = folder.path().join("d.atoll");
    let instance = fixture::instance(&workers, &path, 256 << 20, options.0, options.1);
    let session = instance.session();
    let run = |text: &str| workers.handle().block_on(session.execute(text));
    run("create domain d as bigint; create domain e as d; create table t (id bigint primary key, d d, e e)").unwrap();
    let mut random = fastrand::Rng::with_seed(11);
    let mut state = State::default();
    let mut refused = 0;
    let steps = 500;
    for at in 0..steps {
        let step = match random.u8(0..4) {
            0 => change(&state, &mut random),
            _ => write(&state, &mut random),
        };
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
        let answers = run("select * from t").unwrap();
        assert_eq!(rows(&answers[0]), state.rows, "{of}");
        // Casts hold to the same.
        let (value, child) = (number(&mut random), random.bool());
        let name = if child { "e" } else { "d" };
        let cast = run(&format!("select cast({} as {name})", shown(value)));
        assert_eq!(
            cast.is_ok(),
            state.takes(value, child),
            "{of}: {value:?} {name}"
        );
    }
    assert!(refused > steps / 20 && refused < steps * 3 / 4, "{refused}");
}
