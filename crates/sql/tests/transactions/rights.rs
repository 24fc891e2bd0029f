//! Rights against a model: whatever was granted, revoked, taken and given away, a statement does what the model says that
//! its role may do, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sql::{Error, Session};

use crate::Sessions;

const ROLES: [&str; 4] = ["ann", "bob", "eve", "staff"];
const TABLES: [&str; 3] = ["t", "s.u", "v"];
const PRIVILEGES: [&str; 4] = ["select", "insert", "update", "delete"];

/// What the model knows: plainly, without a thought of how it is kept.
#[derive(Default)]
struct Model {
    /// (role, or public; table; privilege)
    grants: BTreeSet<(String, usize, usize)>,
    /// (member, group)
    members: BTreeSet<(usize, usize)>,
    owners: BTreeMap<usize, usize>,
    /// Roles, or public, that may use the schema `s`.
    uses: BTreeSet<String>,
}

impl Model {
    /// A role, and all that it is a member of.
    fn with(&self, role: usize) -> BTreeSet<usize> {
        let mut all = BTreeSet::from([role]);
        loop {
            let more: Vec<usize> = self
                .members
                .iter()
                .filter(|(member, group)| all.contains(member) && !all.contains(group))
                .map(|(_, group)| *group)
                .collect();
            if more.is_empty() {
                return all;
            }
            all.extend(more);
        }
    }

    fn may(&self, role: usize, table: usize, privilege: usize) -> bool {
        let with = self.with(role);
        let names = || {
            let names = with.iter().map(|at| ROLES[*at].to_string());
            names.chain(["public".to_string()])
        };
        let reached = table != 1 || names().any(|name| self.uses.contains(&name));
        let owns = self
            .owners
            .get(&table)
            .is_some_and(|own| with.contains(own));
        let granted = names().any(|name| self.grants.contains(&(name, table, privilege)));
        reached && (owns || granted)
    }
}

/// Statements that need this privilege of the table alone.
fn asking(privilege: usize, table: &str) -> String {
    match privilege {
        0 => format!("select count(*) from {table}"),
        1 => format!("insert into {table} values (7)"),
        2 => format!("update {table} set a = 8"),
        _ => format!("delete from {table}"),
    }
}

fn check(sessions: &Sessions, model: &Model, users: &[Session], log: &[String]) {
    for (at, user) in users.iter().enumerate() {
        for (table, name) in TABLES.iter().enumerate() {
            for (privilege, word) in PRIVILEGES.iter().enumerate() {
                // Views are only read.
                if table == 2 && privilege > 0 {
                    continue;
                }
                let text = asking(privilege, name);
                let done = sessions.try_run(user, &text);
                let wanted = model.may(at, table, privilege);
                let told = || format!("{}: {text}\n{}", ROLES[at], log.join(";\n"));
                match done {
                    Ok(_) => assert!(wanted, "it was done: {}", told()),
                    Err(Error::Denied { .. }) => assert!(!wanted, "it was denied: {}", told()),
                    Err(e) => panic!("{e}: {}", told()),
                }
                let asked =
                    format!("select cast(has_table_privilege('{name}', '{word}') as bigint)");
                let held = sessions.number(user, &asked) == 1;
                // The function says nothing of the schema, as in PostgreSQL.
                if table != 1 {
                    assert_eq!(held, wanted, "{asked}: {}", told());
                }
            }
        }
    }
}

#[test]
fn statements_do_what_the_model_says_that_their_roles_may() {
    let seed = std::env::var("ATOLL_SEED").ok();
    let seed = seed.and_then(|seed| seed.parse().ok()).unwrap_or(11);
    let mut random = fastrand::Rng::with_seed(seed);
    let sessions = Sessions::new(Duration::from_secs(5));
    let owner = sessions.session();
    sessions.run(
        &owner,
        "create table t (a bigint); create schema s; create table s.u (a bigint); create table hidden (a bigint);
        create view v as select a from hidden;
        create role staff; create role ann; create role bob; create role eve",
    );
    let users: Vec<Session> = ROLES
        .iter()
        .map(|name| sessions.session().of_user(name))
        .collect();
    let mut model = Model::default();
    let mut log = Vec::new();
    for _ in 0..60 {
        let role = random.usize(0..ROLES.len());
        let public = random.u8(0..6) == 0;
        let name = if public { "public" } else { ROLES[role] };
        let table = random.usize(0..TABLES.len());
        let privilege = if table == 2 { 0 } else { random.usize(0..4) };
        let (text, done): (String, Box<dyn FnOnce(&mut Model)>) = match random.u8(0..9) {
            0..=3 => (
                format!(
                    "grant {} on {} to {name}",
                    PRIVILEGES[privilege], TABLES[table]
                ),
                Box::new(move |model| {
                    model.grants.insert((name.to_string(), table, privilege));
                }),
            ),
            4 => (
                format!(
                    "revoke {} on {} from {name}",
                    PRIVILEGES[privilege], TABLES[table]
                ),
                Box::new(move |model| {
                    model.grants.remove(&(name.to_string(), table, privilege));
                }),
            ),
            5 => {
                let member = random.usize(0..3);
                let grants = random.bool();
                (
                    if grants {
                        format!("grant staff to {}", ROLES[member])
                    } else {
                        format!("revoke staff from {}", ROLES[member])
                    },
                    Box::new(move |model| {
                        if grants {
                            model.members.insert((member, 3))
                        } else {
                            model.members.remove(&(member, 3))
                        };
                    }),
                )
            }
            6 => (
                format!("alter table {} owner to {}", TABLES[table % 2], ROLES[role]),
                Box::new(move |model| {
                    model.owners.insert(table % 2, role);
                }),
            ),
            7 => (
                format!("grant usage on schema s to {name}"),
                Box::new(move |model| {
                    model.uses.insert(name.to_string());
                }),
            ),
            _ => (
                format!("revoke usage on schema s from {name}"),
                Box::new(move |model| {
                    model.uses.remove(name);
                }),
            ),
        };
        // Half of what is done is undone, and then it was not.
        if random.u8(0..4) == 0 {
            sessions.run(&owner, &format!("begin; {text}; rollback"));
        } else {
            sessions.run(&owner, &text);
            done(&mut model);
            log.push(text);
        }
        check(&sessions, &model, &users, &log);
    }
}

#[test]
fn whoever_is_no_superuser_any_more_is_none_in_the_middle_of_a_transaction() {
    let sessions = Sessions::new(Duration::from_secs(5));
    let owner = sessions.session();
    sessions.run(
        &owner,
        "create table t (a bigint); create role ann superuser; create role bob",
    );
    let (ann, bob) = (
        sessions.session().of_user("ann"),
        sessions.session().of_user("bob"),
    );
    sessions.run(&ann, "begin; select * from t");
    sessions.run(&owner, "alter role ann nosuperuser");
    let denied = sessions.try_run(&ann, "select * from t");
    assert!(matches!(denied, Err(Error::Denied { .. })), "{denied:?}");
    sessions.run(&ann, "rollback");
    // What a group has is lost with it, also where its role was taken.
    sessions.run(&owner, "grant select on t to ann; grant ann to bob");
    sessions.run(&bob, "set role ann; select * from t");
    sessions.run(&owner, "revoke ann from bob");
    let denied = sessions.try_run(&bob, "select * from t");
    assert!(matches!(denied, Err(Error::Denied { .. })), "{denied:?}");
    sessions.run(&bob, "reset role");
    // Programs of other languages have no grants.
    let program = sessions
        .workers
        .handle()
        .block_on(bob.program(|_| async { Ok::<_, Error>(sql::Program::Show(vec!["x".into()])) }));
    assert!(matches!(program, Err(Error::Denied { .. })), "{program:?}");
}
