//! `set`, `show` and `reset`: what clients ask about and change when they connect.
//!
//! A setting is taken if it changes nothing of what statements answer, or asks for what is so anyway. Any other is
//! refused: a server that nods has a client believe what is not so.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::errors;
use crate::options::Options;
use crate::wire::backend::Report;

/// The version of PostgreSQL whose protocol and catalogs these are.
pub(crate) const VERSION: &str = concat!("15.0 (Atoll ", env!("CARGO_PKG_VERSION"), ")");

/// The schemas in which names are looked up, unless a client says otherwise.
pub(crate) const FIRST_PATH: &str = "\"$user\", public";

/// What a setting may be set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    /// Anything: it changes nothing here.
    Any,
    /// One of these, which say the same. The first is what it is.
    One(&'static [&'static str]),
    /// A time.
    Time,
    /// Nothing.
    Fixed,
}

/// Settings by name: whether clients are told of them when they connect, what they are at first, what they may be.
const KNOWN: &[(&str, bool, &str, Takes)] = &[
    ("application_name", true, "", Takes::Any),
    ("bytea_output", false, "hex", Takes::One(&["hex"])),
    ("check_function_bodies", false, "on", Takes::Any),
    (
        "client_encoding",
        true,
        "UTF8",
        Takes::One(&["UTF8", "utf-8", "unicode", "utf_8"]),
    ),
    ("client_min_messages", false, "notice", Takes::Any),
    (
        "datestyle",
        true,
        "ISO, MDY",
        Takes::One(&[
            "ISO, MDY", "iso", "iso,mdy", "iso, ymd", "iso,ymd", "iso, dmy", "iso,dmy",
        ]),
    ),
    (
        "default_transaction_isolation",
        false,
        "repeatable read",
        Takes::One(&["repeatable read", "read committed", "read uncommitted"]),
    ),
    (
        "default_transaction_read_only",
        true,
        "off",
        Takes::One(&["off", "false", "0"]),
    ),
    ("enable_seqscan", false, "on", Takes::Any),
    ("extra_float_digits", false, "1", Takes::Any),
    ("geqo", false, "off", Takes::Any),
    (
        "idle_in_transaction_session_timeout",
        false,
        "0",
        Takes::Time,
    ),
    ("in_hot_standby", true, "off", Takes::Fixed),
    ("integer_datetimes", true, "on", Takes::Fixed),
    ("intervalstyle", true, "postgres", Takes::One(&["postgres"])),
    ("is_superuser", true, "off", Takes::Fixed),
    ("jit", false, "off", Takes::Any),
    ("lc_collate", false, "C", Takes::Fixed),
    ("lc_ctype", false, "C.UTF-8", Takes::Fixed),
    ("lc_messages", false, "C", Takes::Any),
    ("lc_monetary", false, "C", Takes::Any),
    ("lc_numeric", false, "C", Takes::Any),
    ("lc_time", false, "C", Takes::Any),
    ("lock_timeout", false, "0", Takes::One(&["0", "0ms", "0s"])),
    ("maintenance_work_mem", false, "64MB", Takes::Any),
    ("max_identifier_length", false, "63", Takes::Fixed),
    ("max_index_keys", false, "32", Takes::Fixed),
    ("max_parallel_workers_per_gather", false, "2", Takes::Any),
    ("plan_cache_mode", false, "auto", Takes::Any),
    ("random_page_cost", false, "4", Takes::Any),
    ("row_security", false, "on", Takes::Any),
    (
        "search_path",
        false,
        FIRST_PATH,
        // The engine's, but for what a client says when it connects.
        Takes::Any,
    ),
    ("server_encoding", true, "UTF8", Takes::Fixed),
    ("server_version", true, VERSION, Takes::Fixed),
    ("server_version_num", false, "150000", Takes::Fixed),
    ("session_authorization", true, "", Takes::Fixed),
    (
        "standard_conforming_strings",
        true,
        "on",
        Takes::One(&["on", "true", "1"]),
    ),
    ("statement_timeout", false, "0", Takes::Time),
    ("synchronize_seqscans", false, "off", Takes::Any),
    ("synchronous_commit", false, "on", Takes::Any),
    (
        "timezone",
        true,
        "UTC",
        Takes::One(&[
            "UTC",
            "gmt",
            "etc/utc",
            "z",
            "zulu",
            "0",
            "+00",
            "+00:00",
            "00:00",
            "etc/gmt",
            "universal",
        ]),
    ),
    (
        "transaction_isolation",
        false,
        "repeatable read",
        Takes::Fixed,
    ),
    ("transaction_read_only", false, "off", Takes::Fixed),
    ("wal_level", false, "replica", Takes::Fixed),
    ("work_mem", false, "4MB", Takes::Any),
    ("xmloption", false, "content", Takes::Any),
];

/// As clients know them by other names, or with capitals.
const SHOWN: [(&str, &str); 3] = [
    ("datestyle", "DateStyle"),
    ("intervalstyle", "IntervalStyle"),
    ("timezone", "TimeZone"),
];

/// The settings of a session.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    first: BTreeMap<&'static str, String>,
    now: BTreeMap<&'static str, String>,
    /// What comes back at the end of the transaction.
    before: Option<BTreeMap<&'static str, String>>,
}

/// What `show` shows: names of columns, and rows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub names: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Settings {
    /// Those of a session with these options and these parameters of its client. What a client asks for that cannot be
    /// is not so, and it is told what is.
    pub(crate) fn new(options: &Options, parameters: &[(String, String)]) -> Settings {
        let millis = |time: Option<Duration>| time.unwrap_or_default().as_millis().to_string();
        let mut first: BTreeMap<_, _> = KNOWN
            .iter()
            .map(|(name, _, value, _)| (*name, (*value).to_string()))
            .collect();
        first.insert("statement_timeout", millis(options.statement_timeout));
        let idle = millis(options.idle_in_transaction_timeout);
        first.insert("idle_in_transaction_session_timeout", idle);
        let mut settings = Settings {
            now: first.clone(),
            first,
            before: None,
        };
        for (name, value) in parameters {
            match name.as_str() {
                "user" | "database" | "replication" => {}
                "options" => settings.of_options(value),
                _ => drop(settings.set(name, value)),
            }
        }
        settings.first = settings.now.clone();
        settings
    }

    /// `-c name=value`, any number of times.
    fn of_options(&mut self, options: &str) {
        let words = options.split_whitespace();
        for setting in words.filter(|word| *word != "-c") {
            let setting = setting.trim_start_matches("-c").trim_start_matches("--");
            if let Some((name, value)) = setting.split_once('=') {
                let _ = self.set(&name.replace('-', "_"), value);
            }
        }
    }

    /// What a client is told when it connects.
    pub(crate) fn reported(&self, user: &str) -> Vec<(&'static str, String)> {
        let told = KNOWN.iter().filter(|(_, told, _, _)| *told);
        told.map(|(name, _, _, _)| match *name {
            "session_authorization" => ("session_authorization", user.to_string()),
            name => (shown(name), self.now.get(name).cloned().unwrap_or_default()),
        })
        .collect()
    }

    /// How long a statement may take.
    pub(crate) fn statement_timeout(&self) -> Option<Duration> {
        self.time("statement_timeout")
    }

    /// How long a transaction may wait for its client.
    pub(crate) fn idle_timeout(&self) -> Option<Duration> {
        self.time("idle_in_transaction_session_timeout")
    }

    fn time(&self, name: &str) -> Option<Duration> {
        let millis: u64 = self.now.get(name)?.parse().ok()?;
        (millis > 0).then(|| Duration::from_millis(millis))
    }

    /// What a setting is.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let name = name.to_ascii_lowercase();
        self.now.get(name.as_str()).map(String::as_str)
    }

    /// Changes a setting; returns its name and value if clients are told of it.
    ///
    /// # Errors
    /// If there is none of that name, or it cannot be that.
    pub(crate) fn set(
        &mut self,
        name: &str,
        value: &str,
    ) -> Result<Option<(String, String)>, Report> {
        let wanted = name.to_ascii_lowercase();
        let known = KNOWN.iter().find(|(known, ..)| *known == wanted);
        let Some((name, told, _, takes)) = known else {
            let message = format!("unrecognized configuration parameter \"{name}\"");
            return Err(Report::error(errors::NO_SETTING, message));
        };
        let refused = || {
            let now = self.now.get(name).map_or("", String::as_str);
            let message = format!("\"{name}\" cannot be set to \"{value}\": it is {now}");
            Report::error(errors::BAD_SETTING, message)
        };
        let value = match takes {
            Takes::Any => value.to_string(),
            Takes::One(all) => {
                let value = value.trim();
                let one = all.iter().find(|one| one.eq_ignore_ascii_case(value));
                one.ok_or_else(refused)?;
                // Of those that say the same, what it is stays; a level is told as it was given.
                match *name {
                    "default_transaction_isolation" => value.to_string(),
                    _ => all.first().copied().unwrap_or_default().to_string(),
                }
            }
            Takes::Time => millis(value).ok_or_else(refused)?.to_string(),
            Takes::Fixed if self.get(name) == Some(value) => value.to_string(),
            Takes::Fixed => {
                let message = format!("parameter \"{name}\" cannot be changed");
                return Err(Report::error("55P02", message));
            }
        };
        self.now.insert(name, value.clone());
        Ok(told.then(|| (shown(name).to_string(), value)))
    }

    /// The engine says what a setting is.
    pub(crate) fn know(&mut self, name: &'static str, value: String) {
        self.now.insert(name, value);
    }

    /// From here on what is set lasts until the transaction ends.
    pub(crate) fn local(&mut self) {
        self.before.get_or_insert_with(|| self.now.clone());
    }

    /// The transaction has ended.
    pub(crate) fn end_transaction(&mut self) {
        if let Some(before) = self.before.take() {
            self.now = before;
        }
    }

    /// What `reset` does: one setting is what it was at first, or all are.
    ///
    /// # Errors
    /// If there is none of that name.
    pub(crate) fn reset(&mut self, name: &str) -> Result<Option<(String, String)>, Report> {
        if name.eq_ignore_ascii_case("all") {
            self.now = self.first.clone();
            return Ok(None);
        }
        let first = self.first.get(name.to_ascii_lowercase().as_str()).cloned();
        match first {
            Some(value) => self.set(name, &value),
            None => self.set(name, ""),
        }
    }

    /// What `show` shows; none if there is no such setting.
    pub(crate) fn show(&self, name: &str) -> Option<Shown> {
        if name.eq_ignore_ascii_case("all") {
            let all = self.now.iter();
            let rows =
                all.map(|(name, value)| vec![(*name).to_string(), value.clone(), String::new()]);
            let names = ["name", "setting", "description"].map(String::from);
            return Some(Shown {
                names: names.into(),
                rows: rows.collect(),
            });
        }
        let name = match name.to_ascii_lowercase().as_str() {
            "time zone" => "timezone".to_string(),
            "transaction isolation level" => "transaction_isolation".to_string(),
            other => other.to_string(),
        };
        let value = self.get(&name)?.to_string();
        Some(Shown {
            names: vec![shown(&name).to_string()],
            rows: vec![vec![value]],
        })
    }
}

/// The name of a setting as it is shown.
fn shown(name: &str) -> &str {
    let found = SHOWN.iter().find(|(plain, _)| *plain == name);
    found.map_or(name, |(_, shown)| shown)
}

/// A time in milliseconds: `500`, `2s`, `1 min`.
fn millis(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim() {
        "" | "ms" => 1,
        "s" => 1000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number
        .checked_mul(unit)
        .filter(|millis| *millis <= i32::MAX as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings::new(&Options::default(), &[])
    }

    #[test]
    fn what_is_so_may_be_set_and_what_is_not_is_refused() {
        let mut settings = settings();
        assert!(settings.set("TimeZone", "utc").is_ok());
        assert!(settings.set("client_encoding", "'LATIN1'").is_err());
        assert!(settings.set("datestyle", "German").is_err());
        assert!(settings.set("server_version", "16").is_err());
        assert!(settings.set("no_such", "1").is_err());
        assert_eq!(settings.get("timezone"), Some("UTC"));
        let told = settings.set("application_name", "x").unwrap();
        assert_eq!(told, Some(("application_name".into(), "x".into())));
    }

    #[test]
    fn times_have_units() {
        let mut settings = settings();
        assert_eq!(settings.statement_timeout(), None);
        settings.set("statement_timeout", "2s").unwrap();
        assert_eq!(settings.statement_timeout(), Some(Duration::from_secs(2)));
        settings.set("statement_timeout", "0").unwrap();
        assert_eq!(settings.statement_timeout(), None);
        assert!(settings.set("statement_timeout", "soon").is_err());
    }

    #[test]
    fn what_is_set_for_a_transaction_ends_with_it() {
        let mut settings = settings();
        settings.local();
        settings.set("statement_timeout", "1").unwrap();
        settings.end_transaction();
        assert_eq!(settings.statement_timeout(), None);
    }

    #[test]
    fn clients_set_what_they_want_when_they_connect() {
        let parameters = [
            (
                "options".to_string(),
                "-c statement_timeout=100 -cgeqo=off".to_string(),
            ),
            ("TimeZone".to_string(), "Europe/Zurich".to_string()),
        ];
        let mut settings = Settings::new(&Options::default(), &parameters);
        assert_eq!(
            settings.statement_timeout(),
            Some(Duration::from_millis(100))
        );
        assert_eq!(settings.get("timezone"), Some("UTC"));
        settings.set("statement_timeout", "5").unwrap();
        settings.reset("statement_timeout").unwrap();
        assert_eq!(
            settings.statement_timeout(),
            Some(Duration::from_millis(100))
        );
    }
}
