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

/// What is changed; by `grants`, or taken back.
enum Step {
    /// A privilege of a table.
    Privilege {
        grants: bool,
        name: &'static str,
        table: usize,
        privilege: usize,
    },
    /// `staff` to one of the others.
    Member { grants: bool, member: usize },
    /// A table to a role.
    Owner { table: usize, role: usize },
    /// The use of the schema.
    Use { grants: bool, name: &'static str },
}

impl Step {
    fn draw(random: &mut fastrand::Rng) -> Step {
        let role = random.usize(0..ROLES.len());
        let public = random.u8(0..6) == 0;
        let name = if public { "public" } else { ROLES[role] };
        let table = random.usize(0..TABLES.len());
        let privilege = if table == 2 { 0 } else { random.usize(0..4) };
        match random.u8(0..9) {
            kind @ 0..=4 => Step::Privilege {
                grants: kind < 4,
                name,
                table,
                privilege,
            },
            5 => Step::Member {
                grants: random.bool(),
                member: random.usize(0..3),
            },
            6 => Step::Owner {
                table: table % 2,
                role,
            },
            kind => Step::Use {
                grants: kind == 7,
                name,
            },
        }
    }

    fn text(&self) -> String {
        let (verb, word) = match self {
            Step::Owner { .. } => ("alter", "to"),
            Step::Privilege { grants: true, .. }
            | Step::Member { grants: true, .. }
            | Step::Use { grants: true, .. } => ("grant", "to"),
            _ => ("revoke", "from"),
        };
        match *self {
            Step::Privilege {
                name,
                table,
                privilege,
                ..
            } => {
                let (privilege, table) = (PRIVILEGES[privilege], TABLES[table]);
                format!("{verb} {privilege} on {table} {word} {name}")
            }
            Step::Member { member, .. } => format!("{verb} staff {word} {}", ROLES[member]),
            Step::Owner { table, role } => {
                format!("alter table {} owner to {}", TABLES[table], ROLES[role])
            }
            Step::Use { name, .. } => format!("{verb} usage on schema s {word} {name}"),
        }
    }

    fn apply(&self, model: &mut Model) {
        match *self {
            Step::Privilege {
                grants,
                name,
                table,
                privilege,
            } => put(
                &mut model.grants,
                grants,
                (name.to_string(), table, privilege),
            ),
            Step::Member { grants, member } => put(&mut model.members, grants, (member, 3)),
            Step::Owner { table, role } => {
                model.owners.insert(table, role);
            }
            Step::Use { grants, name } => put(&mut model.uses, grants, name.to_string()),
        }
    }
}

fn put<T: Ord>(all: &mut BTreeSet<T>, in_it: bool, one: T) {
    if in_it {
        all.insert(one);
    } else {
        all.remove(&one);
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
        let step = Step::draw(&mut random);
        let text = step.text();
        // Half of what is done is undone, and then it was not.
        if random.u8(0..4) == 0 {
            sessions.run(&owner, &format!("begin; {text}; rollback"));
        } else {
            sessions.run(&owner, &text);
            step.apply(&mut model);
            log.push(text);
        }
        check(&sessions, &model, &users, &log);
    }
}

#[test]
fn a_role_of_the_same_name_is_another() {
    let sessions = Sessions::new(Duration::from_secs(5));
    let owner = sessions.session();
    let again = "drop role ann; create role ann superuser";
    sessions.run(&owner, "create table t (a bigint); create role ann");
    let refused = |session: &Session| {
        let denied = sessions.try_run(session, "select count(*) from t");
        assert!(matches!(denied, Err(Error::Denied { .. })), "{denied:?}");
    };
    // One that has run something is of the role that it ran it as.
    let ann = sessions.session().of_user("ann");
    sessions.run(&ann, "select 1");
    sessions.run(&owner, again);
    refused(&ann);
    // One that was told is of that from the beginning, within transactions, too.
    let told = sessions.session().of_role("ann", Some(7));
    refused(&told);
    let _ = sessions.try_run(&told, "begin");
    refused(&told);
    let fresh = sessions.session().of_user("ann");
    sessions.run(&fresh, "begin; select count(*) from t; commit");
    // A change of the role is none of who it is.
    sessions.run(&fresh, "select 1");
    sessions.run(&owner, "alter role ann password 'x' connection limit 7");
    sessions.run(&fresh, "select count(*) from t");
    // A superuser who is replaced in the middle of a transaction is none.
    sessions.run(&fresh, "begin; select count(*) from t");
    sessions.run(&owner, again);
    refused(&fresh);
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
