//! Calls of functions about the session in a query of such calls alone, which are answered beside the engine.

use arrow::datatypes::DataType;

use crate::client::parts::Part;

/// What stands behind the number of a session that is asked to stop if there is one of it: otherwise there is no row.
pub(crate) const LISTED: &str = "from pg_stat_activity";

/// Functions whose calls are answered here.
const FUNCTIONS: [&str; 9] = [
    "pg_backend_pid",
    "pg_cancel_backend",
    "pg_terminate_backend",
    "pg_is_in_recovery",
    "pg_postmaster_start_time",
    "set_config",
    "current_setting",
    "pg_is_wal_replay_paused",
    "pg_sleep",
];

/// The type of what a function returns.
pub(super) fn type_of(function: &str) -> DataType {
    match function {
        "pg_backend_pid" => DataType::Int32,
        "pg_is_in_recovery" | "pg_is_wal_replay_paused" => DataType::Boolean,
        _ => DataType::Utf8,
    }
}

/// A call of a function with constants, and what its column is called.
#[derive(Debug)]
pub(super) struct Call {
    pub function: String,
    pub arguments: Vec<String>,
    pub label: String,
}

/// `select call, call, ...`, each as [`call`] reads it.
pub(super) fn calls(parts: &[Part<'_>]) -> Option<Vec<Call>> {
    let (verb, rest) = parts.split_first()?;
    let mut depth = 0;
    let items = rest.split(|part| {
        match part {
            Part::Sign('(') => depth += 1,
            Part::Sign(')') => depth -= 1,
            _ => {}
        }
        depth == 0 && *part == Part::Sign(',')
    });
    let each = items.map(|item| call(&[std::slice::from_ref(verb), item].concat()));
    let all = each.collect::<Option<Vec<Call>>>()?;
    let listed = |own: &Call| own.arguments.iter().any(|own| own == LISTED);
    (all.len() == 1 || !all.iter().any(listed)).then_some(all)
}

/// `select [pg_catalog.]function(constants) [[as] label]`.
fn call(parts: &[Part<'_>]) -> Option<Call> {
    let mut rest = &parts[1..];
    if let [Part::Word(schema), Part::Sign('.'), ..] = rest
        && schema == "pg_catalog"
    {
        rest = &rest[2..];
    }
    let [Part::Word(function), Part::Sign('('), after @ ..] = rest else {
        return None;
    };
    if !FUNCTIONS.contains(&function.as_str()) {
        return None;
    }
    let end = after.iter().position(|part| *part == Part::Sign(')'))?;
    let mut arguments = Vec::new();
    if function == "pg_sleep" {
        // The parts of a number with a point.
        let mut number = String::new();
        for part in &after[..end] {
            match part {
                Part::Text(text) | Part::Word(text) => number.push_str(text),
                Part::Sign(sign @ ('.' | '-')) => number.push(*sign),
                _ => return None,
            }
        }
        number.parse::<f64>().ok()?;
        return Some(Call {
            function: function.clone(),
            arguments: vec![number],
            label: label_of(function, &after[end + 1..])?,
        });
    }
    for (at, part) in after[..end].iter().enumerate() {
        match part {
            Part::Text(text) | Part::Word(text) if at % 2 == 0 => arguments.push(text.clone()),
            Part::Sign(',') if at % 2 == 1 => {}
            _ => return None,
        }
    }
    if let [
        Part::Word(from),
        Part::Word(view),
        Part::Word(which),
        Part::Word(column),
        Part::Sign('='),
        Part::Text(process) | Part::Word(process),
    ] = &after[end + 1..]
        && [from, view, which, column] == ["from", "pg_stat_activity", "where", "pid"]
        && arguments == ["pid"]
    {
        // So Superset stops what a tab of it runs.
        return Some(Call {
            function: function.clone(),
            arguments: vec![process.clone(), LISTED.to_owned()],
            label: function.clone(),
        });
    }
    let behind: &[Part<'_>] = match &after[end + 1..] {
        // So pgAdmin sets what a server may not have.
        behind if function == "set_config" && of_setting(behind, &arguments) => &[],
        behind => behind,
    };
    Some(Call {
        function: function.clone(),
        arguments,
        label: label_of(function, behind)?,
    })
}

/// Whether what stands behind a call asks for the row of the setting that it is about: `from pg_show_all_settings() where name =
/// 'setting'`, or `from pg_settings`. One that there is not is an error instead of no row.
fn of_setting(parts: &[Part<'_>], arguments: &[String]) -> bool {
    let is = |part: &Part<'_>, word: &str| matches!(part, Part::Word(own) if own == word);
    let rest = match parts {
        [from, rest @ ..] if is(from, "from") => rest,
        _ => return false,
    };
    let rest = match rest {
        [schema, Part::Sign('.'), rest @ ..] if is(schema, "pg_catalog") => rest,
        rest => rest,
    };
    let rest = match rest {
        [call, Part::Sign('('), Part::Sign(')'), rest @ ..] if is(call, "pg_show_all_settings") => {
            rest
        }
        [view, rest @ ..] if is(view, "pg_settings") => rest,
        _ => return false,
    };
    match rest {
        [when, column, Part::Sign('='), Part::Text(name)] => {
            is(when, "where") && is(column, "name") && arguments.first() == Some(name)
        }
        _ => false,
    }
}

/// What the column of a call is named, if nothing but its name follows.
fn label_of(function: &str, after: &[Part<'_>]) -> Option<String> {
    match after {
        [] => Some(function.to_owned()),
        [Part::Word(label)] => Some(label.clone()),
        [Part::Word(word), Part::Word(label)] if word == "as" => Some(label.clone()),
        _ => None,
    }
}
