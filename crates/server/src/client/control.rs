//! Statements that are about the session, and are answered here: `set`, `show`, `discard`, calls such as
//! `pg_backend_pid()` that clients make when they connect.

use crate::client::calls::{self, Call};
use crate::client::parts::{Part, joined, parts};

/// A statement about the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// `set [local] name = value`.
    Set {
        local: bool,
        name: String,
        value: String,
    },
    /// `set session characteristics as transaction mode, ...`: settings, and what they become.
    Modes(Vec<(&'static str, &'static str)>),
    /// `reset name`.
    Reset(String),
    /// `show name`.
    Show(String),
    /// `select function(arguments)`, and what the column is called.
    Call {
        function: String,
        arguments: Vec<String>,
        label: String,
    },
    /// `select function(arguments), ...`: calls, more than one.
    Calls(Vec<Command>),
    /// `discard all` and its like: what it is called, and whether settings and prepared statements go.
    Discard(&'static str, bool),
    /// `begin`, `commit`, `rollback`: what it becomes depends on the transaction.
    Transaction(Transaction),
    /// `savepoint`, `release` and `rollback to`, of which settings take part.
    Savepoint(Savepoint, String),
}

/// What a statement does to a savepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Savepoint {
    Set,
    Release,
    RollBackTo,
}

/// What a statement does to the transaction as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transaction {
    Begin,
    Commit,
    Rollback,
}

/// The setting that the engine has.
pub(crate) const PATH: &str = "search_path";

/// Settings that are the engine's.
const ENGINES: [&str; 3] = [PATH, "role", "session_authorization"];

/// The statement about the session that `text` is; none if it is another.
pub(crate) fn read(text: &str) -> Option<Command> {
    let mut parts = parts(text);
    if let Some(Part::Word(verb)) = parts.first()
        && matches!(verb.as_str(), "set" | "reset" | "show")
    {
        parts = joined(parts);
    }
    let word = |at: usize| match parts.get(at) {
        Some(Part::Word(word)) => word.as_str(),
        _ => "",
    };
    let ends = |at: usize| parts.len() == at;
    match word(0) {
        "set" => set(text, &parts),
        "reset" if word(1) == "session" && word(2) == "authorization" => None,
        "reset" if word(1) == "session" => Some(Command::Discard("RESET", false)),
        "reset" if word(1) == "time" => Some(Command::Reset("timezone".into())),
        // Names are looked up, and rights are, by the engine.
        "reset" | "show" if ENGINES.contains(&word(1)) => None,
        "reset" if ends(2) => Some(Command::Reset(word(1).to_string())),
        "show" => {
            let words: Vec<&str> = (1..parts.len()).map(word).collect();
            let name = words.join(" ");
            (name != "tables" && !name.is_empty()).then_some(Command::Show(name))
        }
        "discard" => Some(Command::Discard("DISCARD ALL", word(1) == "all")),
        "unlisten" => Some(Command::Discard("UNLISTEN", false)),
        "begin" => Some(Command::Transaction(Transaction::Begin)),
        "start" if word(1) == "transaction" => Some(Command::Transaction(Transaction::Begin)),
        "commit" | "end" => Some(Command::Transaction(Transaction::Commit)),
        "savepoint" if ends(2) => Some(Command::Savepoint(Savepoint::Set, word(1).into())),
        "release" if ends(2) => Some(Command::Savepoint(Savepoint::Release, word(1).into())),
        "release" if ends(3) => Some(Command::Savepoint(Savepoint::Release, word(2).into())),
        "rollback" if (1..4).any(|at| word(at) == "to") => {
            let name = word(parts.len() - 1).to_string();
            Some(Command::Savepoint(Savepoint::RollBackTo, name))
        }
        "rollback" | "abort" if !(1..4).any(|at| word(at) == "to") => {
            Some(Command::Transaction(Transaction::Rollback))
        }
        "select" => called(calls::calls(&parts)?),
        _ => None,
    }
}

/// One call, or several.
fn called(calls: Vec<Call>) -> Option<Command> {
    let each = calls.into_iter().map(|own| Command::Call {
        function: own.function,
        arguments: own.arguments,
        label: own.label,
    });
    let mut all: Vec<Command> = each.collect();
    match all.len() {
        1 => all.pop(),
        _ => Some(Command::Calls(all)),
    }
}

/// `set [session|local] name {=|to} value`, `set time zone value`, `set names value`.
fn set(text: &str, parts: &[Part<'_>]) -> Option<Command> {
    let word = |at: usize| match parts.get(at) {
        Some(Part::Word(word)) => word.as_str(),
        _ => "",
    };
    let scoped = matches!(word(1), "local" | "session");
    let at = if scoped { 2 } else { 1 };
    let local = word(1) == "local";
    // Modes of transactions are the engine's.
    if word(at) == "transaction" {
        return None;
    }
    if word(at) == "characteristics" {
        let asked = [word(at + 1), word(at + 2)] == ["as", "transaction"];
        return asked.then(|| modes(&parts[at + 3..]))?.map(Command::Modes);
    }
    let (name, value) = match (word(at), word(at + 1), parts.get(at + 1)) {
        ("time", "zone", _) => ("timezone", value_of(text, "zone", parts, at + 2)?),
        ("names", _, _) => ("client_encoding", value_of(text, "names", parts, at + 1)?),
        (name, _, Some(Part::Sign('='))) if !name.is_empty() => {
            (name, value_of(text, "=", parts, at + 2)?)
        }
        (name, "to", _) if !name.is_empty() => (name, value_of(text, " to ", parts, at + 2)?),
        _ => return None,
    };
    let name = name.to_string();
    if ENGINES.contains(&name.as_str()) {
        return None;
    }
    let is = |word: &str| value.eq_ignore_ascii_case(word);
    if is("default") || is("local") && name == "timezone" {
        return Some(Command::Reset(name));
    }
    Some(Command::Set { local, name, value })
}

/// The settings that modes of transactions are for those to come; none if that is not what the parts are.
fn modes(parts: &[Part<'_>]) -> Option<Vec<(&'static str, &'static str)>> {
    const ISOLATION: &str = "default_transaction_isolation";
    const READ_ONLY: &str = "default_transaction_read_only";
    const DEFERRABLE: &str = "default_transaction_deferrable";
    const MODES: [(&[&str], &str, &str); 8] = [
        (
            &["isolation", "level", "serializable"],
            ISOLATION,
            "serializable",
        ),
        (
            &["isolation", "level", "repeatable", "read"],
            ISOLATION,
            "repeatable read",
        ),
        (
            &["isolation", "level", "read", "committed"],
            ISOLATION,
            "read committed",
        ),
        (
            &["isolation", "level", "read", "uncommitted"],
            ISOLATION,
            "read uncommitted",
        ),
        (&["read", "only"], READ_ONLY, "on"),
        (&["read", "write"], READ_ONLY, "off"),
        (&["not", "deferrable"], DEFERRABLE, "off"),
        (&["deferrable"], DEFERRABLE, "on"),
    ];
    let mut words: Vec<&str> = Vec::new();
    for part in parts {
        match part {
            Part::Word(word) => words.push(word),
            Part::Sign(',') => {}
            _ => return None,
        }
    }
    let (mut rest, mut found) = (&words[..], Vec::new());
    while !rest.is_empty() {
        let mut all = MODES.iter();
        let (mode, setting, value) = all.find(|(mode, ..)| rest.starts_with(mode))?;
        found.push((*setting, *value));
        rest = &rest[mode.len()..];
    }
    (!found.is_empty()).then_some(found)
}

/// The value from the part `at` on, behind the first `mark`: one text, or what stands there.
fn value_of(text: &str, mark: &str, parts: &[Part<'_>], at: usize) -> Option<String> {
    if let [Part::Text(value) | Part::Word(value)] = &parts[at.min(parts.len())..] {
        return Some(value.clone());
    }
    // A list, a number with a unit or a sign, an interval.
    let lower = text.to_ascii_lowercase();
    let found = |mark: &str| lower.find(mark).map(|at| at + mark.len());
    // Other space than that may stand around the word.
    let start = found(mark).or_else(|| found(mark.trim()))?;
    let value = text.get(start..)?.trim().trim_end_matches(';').trim();
    (!value.is_empty()).then(|| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(local: bool, name: &str, value: &str) -> Option<Command> {
        Some(Command::Set {
            local,
            name: name.into(),
            value: value.into(),
        })
    }

    #[test]
    fn several_calls_are_answered_together() {
        // What asyncpg asks before it looks at types.
        let text = "\n    SELECT\n current_setting('jit') AS cur,\n set_config('jit', 'off', false) AS new\n";
        let call = |function: &str, arguments: &[&str], label: &str| Command::Call {
            function: function.into(),
            arguments: arguments.iter().map(ToString::to_string).collect(),
            label: label.into(),
        };
        let wanted = vec![
            call("current_setting", &["jit"], "cur"),
            call("set_config", &["jit", "off", "false"], "new"),
        ];
        assert_eq!(read(text), Some(Command::Calls(wanted)));
        assert_eq!(read("select set_config('a.b', 'c', false), 1"), None);
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "it is a table of cases")]
    fn statements_about_the_session_are_known() {
        let cases = [
            (
                "SET DateStyle=ISO",
                set(false, "datestyle", "ISO".to_lowercase().as_str()),
            ),
            (
                "set client_encoding to 'utf-8';",
                set(false, "client_encoding", "utf-8"),
            ),
            ("SET NAMES 'UTF8'", set(false, "client_encoding", "UTF8")),
            ("set session time zone 'UTC'", set(false, "timezone", "UTC")),
            (
                "set local statement_timeout = 500",
                set(true, "statement_timeout", "500"),
            ),
            ("set search_path = \"$user\", public", None),
            ("show search_path", None),
            ("set role ann", None),
            ("set role to ann", None),
            ("set local role = ann", None),
            ("reset role", None),
            ("set session authorization ann", None),
            ("set local session_authorization to ann", None),
            ("reset session authorization", None),
            ("show session_authorization", None),
            (
                "set time zone interval '-08:00' hour to minute",
                set(false, "timezone", "interval '-08:00' hour to minute"),
            ),
            ("set local time zone -8;", set(true, "timezone", "-8")),
            ("set timezone = -8.5", set(false, "timezone", "-8.5")),
            (
                "set time zone local",
                Some(Command::Reset("timezone".into())),
            ),
            (
                "set datestyle to iso, dmy",
                set(false, "datestyle", "iso, dmy"),
            ),
            (
                "set timezone to default",
                Some(Command::Reset("timezone".into())),
            ),
            ("set transaction isolation level serializable", None),
            (
                "set session characteristics as transaction read only, isolation level serializable",
                Some(Command::Modes(vec![
                    ("default_transaction_read_only", "on"),
                    ("default_transaction_isolation", "serializable"),
                ])),
            ),
            (
                "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE NOT DEFERRABLE",
                Some(Command::Modes(vec![
                    ("default_transaction_read_only", "off"),
                    ("default_transaction_deferrable", "off"),
                ])),
            ),
            ("set session characteristics as transaction read", None),
            (
                "show transaction isolation level",
                Some(Command::Show("transaction isolation level".into())),
            ),
            ("show tables", None),
            ("DISCARD ALL", Some(Command::Discard("DISCARD ALL", true))),
            (
                "/* hi */ begin",
                Some(Command::Transaction(Transaction::Begin)),
            ),
            (
                "rollback work to savepoint A;",
                Some(Command::Savepoint(Savepoint::RollBackTo, "a".into())),
            ),
            (
                "savepoint \"A\"",
                Some(Command::Savepoint(Savepoint::Set, "A".into())),
            ),
            (
                "release savepoint a",
                Some(Command::Savepoint(Savepoint::Release, "a".into())),
            ),
            ("END;", Some(Command::Transaction(Transaction::Commit))),
            ("select 1", None),
            ("select pg_backend_pid() from t", None),
        ];
        for (text, wanted) in cases {
            assert_eq!(read(text), wanted, "{text}");
        }
        let wanted = Command::Call {
            function: "set_config".into(),
            arguments: ["a.b", "it's", "false"].map(String::from).into(),
            label: "x".into(),
        };
        let text = "SELECT pg_catalog.set_config('a.b', 'it''s', false) AS x";
        assert_eq!(read(text), Some(wanted));
    }

    #[test]
    fn a_setting_may_be_set_for_its_own_row() {
        let wanted = Command::Call {
            function: "set_config".into(),
            arguments: ["bytea_output", "hex", "false"].map(String::from).into(),
            label: "set_config".into(),
        };
        let call = "select set_config('bytea_output','hex',false) from";
        for own in [
            "pg_show_all_settings() where name = 'bytea_output'",
            "pg_catalog.pg_settings WHERE name = 'bytea_output';",
        ] {
            assert_eq!(
                read(&format!("{call} {own}")),
                Some(wanted.clone()),
                "{own}"
            );
        }
        for other in ["pg_settings where name = 'work_mem'", "pg_settings", "t"] {
            assert_eq!(read(&format!("{call} {other}")), None, "{other}");
        }
    }

    #[test]
    fn a_session_is_stopped_by_its_number_in_the_list_of_sessions() {
        let text = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid='17'";
        let wanted = Command::Call {
            function: "pg_terminate_backend".into(),
            arguments: vec!["17".into(), calls::LISTED.into()],
            label: "pg_terminate_backend".into(),
        };
        assert_eq!(read(text), Some(wanted));
        assert_eq!(read(&text.replace("pid=", "usesysid=")), None);
        assert_eq!(read(&text.replace("='17'", ">'17'")), None);
    }

    #[test]
    fn any_text_is_read_without_harm() {
        let mut random = fastrand::Rng::with_seed(9);
        let words = [
            "set", "local", "=", "to", "'", "\"", "--", "/*", "*/", "é", "select", "(", ")", ",",
            ";", "zone", "show", "$", "\n",
        ];
        for _ in 0..50_000 {
            let text: String = (0..random.usize(0..9))
                .map(|_| words[random.usize(0..words.len())])
                .collect::<Vec<_>>()
                .join(if random.bool() { " " } else { "" });
            let _ = read(&text);
        }
    }
}
