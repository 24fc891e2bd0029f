//! Calls with arguments that their function does not take, in PostgreSQL's words: to PostgreSQL a function of another number or
//! of other kinds of arguments is another function, which does not exist.

use arrow::datatypes::DataType;

use crate::types::standard_name;

/// What the planner says between its reason and the call.
const CALL: &str = "No function matches the given name and argument types '";

/// What it says behind the call.
const BEHIND: &str = "'. You might need to add explicit type casts";

/// How a field is written whose name is none of SQL's: such fields make the types of JSON.
const HIDDEN: &str = "\\u{1}";

/// The message for a call that the planner refuses with the message `whole`, of which `reason` is what was left for people.
/// None if it says nothing of the number and the kinds of the arguments.
pub(super) fn message(whole: &str, reason: &str) -> Option<String> {
    let (_, rest) = whole.split_once(CALL)?;
    let (call, _) = rest.split_once(BEHIND)?;
    let (name, types) = call.strip_suffix(')')?.split_once('(')?;
    if !is_about_arguments(reason) {
        return None;
    }
    let message = format!("function {name}({}) does not exist", titles(types));
    Some(match hint(name, reason) {
        Some(hint) => format!("{message}: {hint}"),
        None => message,
    })
}

/// Whether a reason says which arguments there are to be. Others say what is wrong in words of their own.
fn is_about_arguments(reason: &str) -> bool {
    let says = |words: &[&str]| words.iter().any(|word| reason.contains(word));
    says(&[" takes ", " take ", " requires ", "at least one argument"])
        && !says(&["does not exist", "not supported", "cannot be matched"])
}

/// What the reason says that the message does not.
fn hint(name: &str, reason: &str) -> Option<String> {
    let of_planner = reason
        .strip_prefix("function '")
        .and_then(|rest| rest.split_once("' "))
        .map(|(_, rest)| rest)
        .or_else(|| reason.strip_prefix("the function "));
    let by_name = || reason.strip_prefix(name)?.strip_prefix(' ');
    match of_planner.or_else(by_name) {
        Some(rest) if rest.starts_with("takes ") => Some(format!("it {rest}")),
        Some(_) => None,
        None if reason.starts_with("function ") && !reason.contains(": ") => None,
        None => Some(reason.to_owned()),
    }
}

/// PostgreSQL's names of types that the planner has listed.
fn titles(types: &str) -> String {
    let (mut depth, mut quoted, mut start) = (0_usize, false, 0);
    let mut titles = Vec::new();
    for (at, letter) in types.char_indices() {
        match letter {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth = depth.saturating_sub(1),
            ',' if !quoted && depth == 0 => {
                titles.push(read_title(&types[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    if !types.trim().is_empty() {
        titles.push(read_title(&types[start..]));
    }
    titles.join(", ")
}

/// The name of a type that the planner has written.
fn read_title(written: &str) -> String {
    let written = written.trim().replace(HIDDEN, "\u{1}");
    match written.parse::<DataType>() {
        Ok(data_type) => title(&data_type),
        Err(_) => "record".to_owned(),
    }
}

fn title(data_type: &DataType) -> String {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) => {
            format!("{}[]", title(item.data_type()))
        }
        DataType::Struct(_) if table::json_kind(data_type).is_none() => "record".to_owned(),
        other => standard_name(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_with_other_arguments_is_of_another_function() {
        for (reason, call, wanted) in [
            (
                "function 'abs' takes 1 argument, not 2",
                "abs(Utf8, Utf8View)",
                Some("function abs(text, text) does not exist: it takes 1 argument, not 2"),
            ),
            (
                "function 'abs' does not take arguments of these types",
                "abs(Timestamp(µs, \"+00:00\"), Decimal128(3, 2))",
                Some("function abs(timestamp with time zone, numeric) does not exist"),
            ),
            (
                "function 'lower' requires String, but received bigint",
                "lower(List(Int64))",
                Some("function lower(bigint[]) does not exist"),
            ),
            (
                "power takes two numbers",
                "power()",
                Some("function power() does not exist: it takes two numbers"),
            ),
            (
                "substring takes a text, and where it begins",
                "substr(Null)",
                Some(
                    "function substr(unknown) does not exist: substring takes a text, and where it begins",
                ),
            ),
            (
                "ARRAY types bigint and text cannot be matched",
                "array_append(Int64, Utf8)",
                None,
            ),
        ] {
            let whole = format!("{reason}. {CALL}{call}{BEHIND}.\n\tCandidate functions:\n");
            assert_eq!(message(&whole, reason).as_deref(), wanted);
        }
        assert_eq!(message("power takes two numbers", ""), None);
    }
}
