//! What clients are told of an error: PostgreSQL's codes, and the place in the text.

use crate::sessions::Reason;
use crate::wire::backend::Report;

pub(crate) const NOT_SUPPORTED: &str = "0A000";
pub(crate) const PROTOCOL: &str = "08P01";
pub(crate) const CANCELLED: &str = "57014";
pub(crate) const SHUTDOWN: &str = "57P01";
pub(crate) const MEMORY: &str = "53200";
pub(crate) const TOO_MANY: &str = "53300";
pub(crate) const NO_STATEMENT: &str = "26000";
pub(crate) const NO_PORTAL: &str = "34000";
pub(crate) const BAD_TEXT: &str = "22021";
pub(crate) const BAD_VALUE: &str = "22P02";
pub(crate) const BAD_BINARY: &str = "22P03";
pub(crate) const BAD_COPY: &str = "22P04";
pub(crate) const BAD_SETTING: &str = "22023";
pub(crate) const NO_SETTING: &str = "42704";
pub(crate) const NOT_LET_IN: &str = "28P01";
pub(crate) const INTERNAL: &str = "XX000";

/// What ends a statement, or the session with it, for this reason.
pub(crate) fn of_reason(reason: Reason) -> Report {
    match reason {
        Reason::Cancelled => Report::error(CANCELLED, "canceling statement due to user request"),
        Reason::Timeout => Report::error(CANCELLED, "canceling statement due to statement timeout"),
        Reason::Idle => Report::fatal(
            "25P03",
            "terminating connection due to idle-in-transaction timeout",
        ),
        Reason::Terminated | Reason::Stopping | Reason::Vanished => Report::fatal(
            SHUTDOWN,
            "terminating connection due to administrator command",
        ),
    }
}

/// The report of an error of the statement `text`, with all there is to say in its message.
pub(crate) fn report(error: &atoll::Error, text: &str) -> Report {
    let mut report = Report::error(error.sqlstate(), error.to_string());
    if let atoll::Error::Sql(sql) = error {
        let place = sql.position().or_else(|| sql::quoted_constant(sql, text));
        report.position = place.map(|place| character(text, place));
    }
    report
}

/// The same in PostgreSQL's words, with detail and hint apart, for those who speak its protocol.
pub(crate) fn told(error: &atoll::Error, text: &str) -> Report {
    let mut report = report(error, text);
    if let atoll::Error::Sql(sql) = error {
        let told = sql.told();
        report.message = told.message.into_boxed_str();
        report.detail = told.detail.map(Into::into);
        report.hint = told.hint.map(Into::into);
        report.context = told.context.map(Into::into);
        let about = Some(told.about).filter(|about| *about != sql::About::default());
        report.about = about.map(Box::new);
    }
    report
}

/// The character at a line and a column, counted from 1 as those are.
fn character(text: &str, position: sql::Position) -> usize {
    let lines = text
        .split_inclusive('\n')
        .take(position.line.max(1) as usize - 1);
    let before: usize = lines.map(|line| line.chars().count()).sum();
    before + position.column as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_codes_and_places() {
        let error = sql::Error::UnknownColumn {
            name: "b".into(),
            candidates: vec![],
            relation: None,
            position: Some(sql::Position { line: 2, column: 3 }),
        };
        let told = told(&atoll::Error::Sql(error), "select é\n  b");
        assert_eq!((told.code, told.position), ("42703", Some(12)));
        assert_eq!(&*told.message, "column \"b\" does not exist");
        let error = sql::Error::Conflict {
            code: "40001",
            message: "could not serialize access".into(),
        };
        assert_eq!(atoll::Error::Sql(error).sqlstate(), "40001");
        assert_eq!(atoll::Error::Interrupted.sqlstate(), CANCELLED);
    }
}
