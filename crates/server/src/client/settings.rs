//! `set`, `show` and `reset`: what clients ask about and change when they connect.
//!
//! A setting is taken if it changes nothing of what statements answer, or asks for what is so anyway. Any other is
//! refused: a server that nods has a client believe what is not so.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::client::known::{self, Takes, shown};
use crate::errors;
use crate::limits::Limits;
use crate::options::Options;
use crate::wire::backend::Report;

type Values = BTreeMap<String, String>;

/// The settings of a session.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// What `reset` goes back to.
    first: Values,
    /// What a rollback goes back to.
    before: Values,
    /// What they are once the transaction has ended.
    after: Values,
    now: Values,
    /// The longest times that the user may set itself, in milliseconds, by the names of settings.
    most: BTreeMap<String, u64>,
    /// What they were at the savepoints of the transaction, by name.
    savepoints: Vec<(String, Values, Values)>,
}

/// What `show` shows: names of columns, and rows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub names: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Settings {
    /// Those of a session with these options, what the role of its user says, and these parameters of its client. What a client asks for that cannot be
    /// is not so, and it is told what is.
    pub(crate) fn new(
        options: &Options,
        limits: &Limits,
        parameters: &[(String, String)],
    ) -> Settings {
        let millis = |time: Option<Duration>| time.unwrap_or_default().as_millis().to_string();
        let mut first: Values = known::all()
            .map(|known| (known.name.to_string(), known.first.to_string()))
            .collect();
        first.insert(
            "statement_timeout".into(),
            millis(options.statement_timeout),
        );
        let idle = millis(options.idle_in_transaction_timeout);
        first.insert("idle_in_transaction_session_timeout".into(), idle);
        first.extend(limits.settings.iter().cloned());
        let most = limits.settings.iter();
        let most = most.filter_map(|(name, _)| Some((name.clone(), limits.most(name)?)));
        let mut settings = Settings {
            most: most.collect(),
            before: first.clone(),
            after: first.clone(),
            now: first.clone(),
            first,
            savepoints: Vec::new(),
        };
        for (name, value) in parameters {
            match name.as_str() {
                "user" | "database" | "replication" => {}
                "options" => settings.of_options(value),
                _ => drop(settings.set(name, value)),
            }
        }
        settings.end_transaction();
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
        let told = known::all().filter(|known| known.told);
        told.map(|known| match known.name {
            "session_authorization" => ("session_authorization", user.to_string()),
            name => (shown(name), self.now.get(name).cloned().unwrap_or_default()),
        })
        .collect()
    }

    /// How dates and times are read and written.
    pub(crate) fn local(&self) -> sql::Local {
        let get = |name| self.get(name).unwrap_or_default();
        sql::Local::new(get("timezone"), get("datestyle"), get("intervalstyle"))
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

    /// Whether clients want to be told of what is not an error.
    pub(crate) fn wants_warnings(&self) -> bool {
        self.get("client_min_messages") != Some("error")
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
        let (name, value) = self.checked(name, value)?;
        self.now.insert(name.clone(), value.clone());
        self.after.insert(name.clone(), value.clone());
        Ok(told(&name, value))
    }

    /// The same for the transaction in progress: what it was comes back at its end.
    ///
    /// # Errors
    /// Those of [`set`](Settings::set).
    pub(crate) fn set_local(
        &mut self,
        name: &str,
        value: &str,
    ) -> Result<Option<(String, String)>, Report> {
        let (name, value) = self.checked(name, value)?;
        self.now.insert(name.clone(), value.clone());
        Ok(told(&name, value))
    }

    /// The name of a setting, and what it becomes when it is set to `value`.
    fn checked(&self, name: &str, value: &str) -> Result<(String, String), Report> {
        let Some(known) = known::find(name) else {
            // Programs keep values of their own under names of two parts.
            let own = name.to_ascii_lowercase();
            let is_own = own.split('.').all(|part| {
                let mut letters = part.chars();
                letters
                    .next()
                    .is_some_and(|c| c.is_alphabetic() || c == '_')
                    && letters.all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'))
            });
            if own.contains('.') && is_own {
                return Ok((own, value.to_string()));
            }
            return Err(unknown(name));
        };
        let now = self.now.get(known.name).map_or("", String::as_str);
        if let Some(value) = known.value(value, now) {
            let most = self.most.get(known.name).copied();
            let longer = |most: &u64| {
                let millis: Option<u64> = value.parse().ok();
                millis.is_none_or(|millis| millis == 0 || millis > *most)
            };
            if let Some(most) = most.filter(longer) {
                let message = format!(
                    "permission denied to set parameter \"{}\" to more than {most} ms, which is what an administrator lets the role have",
                    known.name
                );
                return Err(Report::error("42501", message));
            }
            return Ok((known.name.to_string(), value));
        }
        let name = known.name;
        Err(match known.takes {
            Takes::Fixed => {
                Report::error("55P02", format!("parameter \"{name}\" cannot be changed"))
            }
            Takes::One(_) => {
                let message = format!("\"{name}\" cannot be set to \"{value}\": it is {now}");
                Report::error(errors::BAD_SETTING, message)
            }
            _ => {
                let hint = known.hint();
                let message =
                    format!("invalid value for parameter \"{name}\": \"{value}\"; {hint}");
                Report::error(errors::BAD_SETTING, message)
            }
        })
    }

    /// The transaction has ended; or one statement has that was one. Returns what clients are to be told.
    pub(crate) fn end_transaction(&mut self) -> Vec<(String, String)> {
        let told = changed(&self.now, &self.after);
        self.now.clone_from(&self.after);
        self.before.clone_from(&self.after);
        self.savepoints.clear();
        told
    }

    /// The engine says what a setting is.
    pub(crate) fn know(&mut self, name: &str, value: String) {
        for values in [&mut self.now, &mut self.after] {
            values.insert(name.to_string(), value.clone());
        }
    }

    /// `savepoint name`.
    pub(crate) fn savepoint(&mut self, name: &str) {
        let at = (name.to_string(), self.now.clone(), self.after.clone());
        self.savepoints.push(at);
    }

    /// `rollback to name`: what was set since is undone. Returns what clients are to be told.
    pub(crate) fn roll_back_to(&mut self, name: &str) -> Vec<(String, String)> {
        let mut all = self.savepoints.iter();
        let Some(at) = all.rposition(|(own, ..)| own == name) else {
            return Vec::new();
        };
        self.savepoints.truncate(at + 1);
        let (_, now, after) = self.savepoints[at].clone();
        let told = changed(&self.now, &now);
        (self.now, self.after) = (now, after);
        told
    }

    /// `release name`.
    pub(crate) fn release(&mut self, name: &str) {
        let mut all = self.savepoints.iter();
        if let Some(at) = all.rposition(|(own, ..)| own == name) {
            self.savepoints.truncate(at);
        }
    }

    /// What the transaction has set is undone when it [ends](Settings::end_transaction).
    pub(crate) fn roll_back(&mut self) {
        self.after.clone_from(&self.before);
    }

    /// What `reset` does: one setting is what it was at first, or all are. Returns what clients are to be told.
    ///
    /// # Errors
    /// If there is none of that name.
    pub(crate) fn reset(&mut self, name: &str) -> Result<Vec<(String, String)>, Report> {
        if name.eq_ignore_ascii_case("all") {
            let told = changed(&self.now, &self.first);
            self.now.clone_from(&self.first);
            self.after.clone_from(&self.first);
            return Ok(told);
        }
        let name = name.to_ascii_lowercase();
        let first = match self.first.get(&name) {
            Some(first) => first.clone(),
            None if self.now.contains_key(&name) => String::new(),
            None => return Err(unknown(&name)),
        };
        Ok(self.set(&name, &first)?.into_iter().collect())
    }

    /// All settings: their names, what they are and were at first, and what kind of values they have.
    pub(crate) fn all(&self) -> Vec<sql::Setting> {
        let all = self.now.iter().map(|(name, value)| sql::Setting {
            name: shown(name).to_string(),
            value: value.clone(),
            first: self.first.get(name).cloned().unwrap_or_default(),
            kind: known::find(name).map_or("string", known::Known::kind),
            fixed: known::find(name).is_some_and(|known| known.takes == Takes::Fixed),
        });
        all.collect()
    }

    /// What `show` shows; none if there is no such setting.
    pub(crate) fn show(&self, name: &str) -> Option<Shown> {
        if name.eq_ignore_ascii_case("all") {
            let all = self.now.iter();
            let rows = all
                .map(|(name, value)| vec![shown(name).to_string(), value.clone(), String::new()]);
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

/// What clients are told of a setting that has become `value`, if they are told of it.
fn told(name: &str, value: String) -> Option<(String, String)> {
    let known = known::find(name).filter(|known| known.told)?;
    Some((shown(known.name).to_string(), value))
}

/// What clients are told where settings change.
fn changed(from: &Values, to: &Values) -> Vec<(String, String)> {
    let differs = |(name, value): &(&String, &String)| from.get(*name) != Some(*value);
    to.iter()
        .filter(differs)
        .filter_map(|(name, value)| told(name, value.clone()))
        .collect()
}

fn unknown(name: &str) -> Report {
    let message = format!("unrecognized configuration parameter \"{name}\"");
    Report::error(errors::NO_SETTING, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings::new(&Options::default(), &Limits::default(), &[])
    }

    #[test]
    fn what_is_so_may_be_set_and_what_is_not_is_refused() {
        let mut settings = settings();
        assert!(settings.set("TimeZone", "utc").is_ok());
        assert!(settings.set("client_encoding", "'LATIN1'").is_err());
        assert!(settings.set("datestyle", "Roman").is_err());
        assert!(settings.set("timezone", "Europe/Nowhere").is_err());
        assert!(settings.set("intervalstyle", "sql_standard").is_err());
        assert!(settings.set("work_mem", "much").is_err());
        assert!(settings.set("enable_nestloop", "off").is_ok());
        assert!(settings.set("my.own", "x").is_ok());
        assert!(settings.set("my.", "x").is_err());
        assert_eq!(settings.get("MY.own"), Some("x"));
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
        settings.set("statement_timeout", "7").unwrap();
        settings.set_local("statement_timeout", "1").unwrap();
        settings.set_local("application_name", "x").unwrap();
        assert_eq!(settings.get("statement_timeout"), Some("1"));
        let told = settings.end_transaction();
        assert_eq!(told, [("application_name".to_string(), String::new())]);
        assert_eq!(settings.get("statement_timeout"), Some("7"));
        assert_eq!(settings.end_transaction(), []);
    }

    #[test]
    fn what_a_transaction_has_set_is_undone_with_it() {
        let mut settings = settings();
        settings.set("application_name", "a").unwrap();
        settings.end_transaction();
        settings.set("application_name", "b").unwrap();
        settings.savepoint("s");
        settings.set("application_name", "c").unwrap();
        let told = settings.roll_back_to("s");
        assert_eq!(told, [("application_name".to_string(), "b".to_string())]);
        assert_eq!(settings.roll_back_to("other"), []);
        settings.set("application_name", "d").unwrap();
        settings.release("s");
        assert_eq!(settings.roll_back_to("s"), []);
        settings.roll_back();
        let told = settings.end_transaction();
        assert_eq!(told, [("application_name".to_string(), "a".to_string())]);
        assert_eq!(settings.get("application_name"), Some("a"));
    }

    #[test]
    fn all_come_back_to_what_they_were_at_first() {
        let mut settings = settings();
        settings.set("application_name", "a").unwrap();
        settings.set("work_mem", "1024").unwrap();
        settings.set("my.own", "x").unwrap();
        let told = settings.reset("all").unwrap();
        assert_eq!(told, [("application_name".to_string(), String::new())]);
        assert_eq!(settings.get("work_mem"), Some("4MB"));
        assert!(settings.reset("my.own").is_err());
        assert!(settings.reset("nothing").is_err());
        let all = settings.all();
        let zone = all.iter().find(|own| own.name == "TimeZone").unwrap();
        assert_eq!((zone.value.as_str(), zone.kind), ("UTC", "string"));
    }

    #[test]
    fn what_a_role_may_have_is_not_exceeded() {
        let limits = Limits {
            settings: [("statement_timeout", "2000"), ("memory_limit", "64MB")]
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .into(),
            ..Limits::default()
        };
        let asked = [("statement_timeout".to_string(), "5s".to_string())];
        let mut settings = Settings::new(&Options::default(), &limits, &asked);
        assert_eq!(settings.get("statement_timeout"), Some("2000"));
        assert_eq!(settings.get("memory_limit"), Some("64MB"));
        assert!(settings.set("memory_limit", "1GB").is_err());
        assert!(settings.set("statement_timeout", "1s").is_ok());
        for more in ["0", "2001", "1h"] {
            let refused = settings.set("statement_timeout", more).unwrap_err();
            assert_eq!(refused.code, "42501");
            assert!(settings.set_local("statement_timeout", more).is_err());
        }
        settings.reset("all").unwrap();
        assert_eq!(settings.get("statement_timeout"), Some("2000"));
        let anybody = Limits {
            superuser: true,
            ..limits
        };
        let mut settings = Settings::new(&Options::default(), &anybody, &asked);
        assert_eq!(settings.get("statement_timeout"), Some("5000"));
        assert!(settings.set("statement_timeout", "0").is_ok());
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
        let mut settings = Settings::new(&Options::default(), &Limits::default(), &parameters);
        assert_eq!(
            settings.statement_timeout(),
            Some(Duration::from_millis(100))
        );
        assert_eq!(settings.get("timezone"), Some("Europe/Zurich"));
        settings.set("statement_timeout", "5").unwrap();
        settings.reset("statement_timeout").unwrap();
        assert_eq!(
            settings.statement_timeout(),
            Some(Duration::from_millis(100))
        );
    }
}
