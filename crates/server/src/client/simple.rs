//! `Query`: a text with any number of statements.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use atoll::{TransactionStatus, script};

use crate::client::calls;
use crate::client::control::{self, Command, Savepoint, Transaction};
use crate::client::conversation::{Conversation, Failed};
use crate::client::cursor_text;
use crate::client::sending::{Sending, Source};
use crate::errors;
use crate::weight;
use crate::wire::backend::{self, Report};

/// How long `pg_sleep` sleeps before it looks whether it is still wanted.
const NAP: Duration = Duration::from_millis(10);

impl Conversation {
    /// Runs the statements of `text`. Several are one transaction, unless one of them begins or ends one.
    pub(crate) fn query(&mut self, text: &str) -> Result<(), Failed> {
        self.portals.remove("");
        let done = self.statements(text);
        let done = match done {
            // A transaction that was begun for the statements of the text ends with it.
            Ok(()) => self.end_implicit().map_err(Failed::from),
            Err(Failed::Told(report)) => {
                self.fail(&report);
                if let Err(report) = self.end_implicit() {
                    self.fail(&report);
                }
                Ok(())
            }
            broken => broken,
        };
        match done {
            Ok(()) => {}
            Err(Failed::Told(report)) => self.fail(&report),
            broken => return broken,
        }
        self.ready();
        Ok(())
    }

    fn statements(&mut self, text: &str) -> Result<(), Failed> {
        // They are found one by one, when each is to run: a text has no copy beside it, however many there are.
        script::check_length(text).map_err(|e| self.reported(&atoll::Error::from(e), text))?;
        self.look(text);
        let mut count = 0;
        let mut plain = true;
        for one in script::statements(text) {
            count += 1;
            plain = plain && !matches!(control::read(one.text), Some(Command::Transaction(_)));
            if count > 1 && !plain {
                break;
            }
            self.wanted()?;
        }
        if count == 0 {
            backend::bare(&mut self.channel.out, b'I');
            return Ok(());
        }
        let several = count > 1;
        if several && plain {
            self.begin_implicit()?;
        }
        for one in script::statements(text) {
            self.statement(one.text).map_err(|failed| match failed {
                // The place is one in the whole text.
                Failed::Told(mut report) if several => {
                    let before = text[..one.offset].chars().count();
                    report.position = report.position.map(|at| at + before);
                    Failed::Told(report)
                }
                failed => failed,
            })?;
        }
        Ok(())
    }

    /// Runs one statement and sends what it returns.
    fn statement(&mut self, text: &str) -> Result<(), Failed> {
        let _memory = self.kept(weight::of(text))?;
        if let Some(command) = cursor_text::read(text)? {
            return self.cursor(command, text);
        }
        if let Some(command) = control::read(text)
            && let Some((source, tag)) = self.control(command, text)?
        {
            return match source {
                Some(source) => self.all_rows(source, text),
                None => {
                    backend::complete(&mut self.channel.out, &tag);
                    Ok(())
                }
            };
        }
        let transfer = sql::transfer(text).map_err(atoll::Error::from);
        if let Some(transfer) = transfer.map_err(|e| self.reported(&e, text))? {
            let tag = self.copy(&transfer, text)?;
            backend::complete(&mut self.channel.out, &tag);
            return Ok(());
        }
        let rows = self.timed(text, |it| it.session.query(text))?;
        self.notify(rows.notices());
        self.all_rows(Source::Running(Box::new(rows)), text)
    }

    /// Tells the client what it should know of what a statement has done, unless it wants to hear of worse only.
    pub(super) fn notify(&mut self, notices: &[String]) {
        let least = self.settings.get("client_min_messages");
        if matches!(least, Some("warning" | "error" | "fatal" | "panic")) {
            return;
        }
        for notice in notices {
            Report::notice(notice).write(&mut self.channel.out);
        }
    }

    /// Sends all rows of `source` with a description of its columns.
    fn all_rows(&mut self, source: Source, text: &str) -> Result<(), Failed> {
        let mut sending = Sending::new(source, &[], None)?;
        if sending.source.has_rows() {
            let schema = Arc::clone(sending.source.schema());
            let origins = sending.source.origins();
            self.describe_columns(Some((&schema, &origins, &[])));
        }
        self.rows(&mut sending, None, text)?;
        let tag = sending.source.tag(sending.sent);
        drop(sending);
        backend::complete(&mut self.channel.out, &tag);
        Ok(())
    }

    /// Does what a statement about the session asks: its rows, or what it is called. None if the engine is to run it.
    pub(crate) fn control(
        &mut self,
        command: Command,
        text: &str,
    ) -> Result<Option<(Option<Source>, String)>, Failed> {
        let done = |tag: &str| Ok(Some((None, tag.to_string())));
        match command {
            Command::Set { local, name, value } => {
                let changed = if local {
                    self.settings.set_local(&name, &value)
                } else {
                    self.settings.set(&name, &value)
                };
                self.tell(changed?);
                done("SET")
            }
            Command::Modes(modes) => {
                self.set_all(modes)?;
                done("SET")
            }
            Command::Reset(name) => {
                if name.eq_ignore_ascii_case("all") {
                    self.timed(text, |it| it.session.sql("reset search_path"))?;
                }
                let changed = self.settings.reset(&name)?;
                self.tell(changed);
                done("RESET")
            }
            Command::Show(name) => self.show(&name),
            Command::Discard(tag, all) => {
                if all {
                    if self.session.transaction() != TransactionStatus::Idle {
                        let message = "DISCARD ALL cannot run inside a transaction block";
                        return Err(Report::error("25001", message).into());
                    }
                    self.prepared.clear();
                    self.portals.clear();
                    self.cursors.clear();
                    self.show_cursors();
                    let changed = self.settings.reset("all")?;
                    self.tell(changed);
                    let forget = "deallocate all; reset search_path; reset session authorization; select pg_advisory_unlock_all()";
                    self.timed(forget, |it| it.session.sql(forget))?;
                }
                done(tag)
            }
            Command::Call {
                function,
                arguments,
                label,
            } => self
                .call((function.as_str(), &arguments[..]), label, text)
                .map(Some),
            Command::Calls(all) => self.calls(all, text).map(Some),
            Command::Transaction(what) => self.transact(what, text),
            Command::Savepoint(what, name) => {
                match what {
                    Savepoint::Set => {
                        self.settings.savepoint(&name);
                        self.cursors.savepoint(&name);
                    }
                    Savepoint::Release => {
                        self.settings.release(&name);
                        self.cursors.release(&name);
                    }
                    Savepoint::RollBackTo => {
                        self.cursors.roll_back_to(&name);
                        self.show_cursors();
                        let changed = self.settings.roll_back_to(&name);
                        self.tell(changed);
                    }
                }
                Ok(None)
            }
        }
    }

    /// Sets these to these.
    fn set_all(&mut self, settings: Vec<(&'static str, &'static str)>) -> Result<(), Failed> {
        for (name, value) in settings {
            let changed = self.settings.set(name, value)?;
            self.tell(changed);
        }
        Ok(())
    }

    /// `show name`; none if the engine is to answer it.
    fn show(&mut self, name: &str) -> Result<Option<(Option<Source>, String)>, Failed> {
        let all = name.eq_ignore_ascii_case("all");
        if all {
            let path = self.path()?;
            self.settings.know(control::PATH, path);
        }
        if all || name.to_ascii_lowercase().starts_with("transaction") {
            for (name, value) in self.session.transaction_modes() {
                self.settings.know(name, value.to_string());
            }
        }
        match self.settings.show(name) {
            Some(shown) => {
                let source = texts(&shown.names, &shown.rows)?;
                Ok(Some((Some(source), String::new())))
            }
            None if all => Ok(None),
            None => {
                let message = format!("unrecognized configuration parameter \"{name}\"");
                Err(Report::error(errors::NO_SETTING, message).into())
            }
        }
    }

    /// Where names are looked up.
    fn path(&mut self) -> Result<String, Failed> {
        let answers = self.timed("show search_path", |it| it.session.sql("show search_path"))?;
        let batch = answers.first().and_then(|answer| answer.batches.first());
        let texts = batch.and_then(|batch| batch.column(0).as_string_opt::<i32>());
        Ok(texts.map_or_else(String::new, |texts| texts.value(0).to_string()))
    }

    /// Tells the client of settings that have changed, and the engine what all are.
    pub(crate) fn tell(&mut self, changed: impl IntoIterator<Item = (String, String)>) {
        self.session.show_settings(self.settings.all());
        for (name, value) in changed {
            if name == "application_name" {
                self.client().application.lock().clone_from(&value);
            }
            backend::parameter(&mut self.channel.out, &name, &value);
        }
    }

    /// `begin`, `commit` and `rollback` where there is nothing to begin or to end, as PostgreSQL has it; none where the
    /// engine does it.
    fn transact(
        &mut self,
        what: Transaction,
        text: &str,
    ) -> Result<Option<(Option<Source>, String)>, Failed> {
        let implicit = std::mem::take(&mut self.implicit);
        let wanted = self.settings.wants_warnings();
        let mut warn = |code, message: &str| {
            if wanted {
                Report::warning(code, message).write(&mut self.channel.out);
            }
        };
        match (what, self.session.transaction()) {
            (Transaction::Begin, TransactionStatus::Idle) => Ok(None),
            (Transaction::Begin, _) => {
                if !implicit {
                    warn("25001", "there is already a transaction in progress");
                }
                Ok(Some((None, "BEGIN".into())))
            }
            (Transaction::Commit, TransactionStatus::Idle) => {
                warn("25P01", "there is no transaction in progress");
                Ok(Some((None, "COMMIT".into())))
            }
            (Transaction::Rollback, TransactionStatus::Idle) => {
                warn("25P01", "there is no transaction in progress");
                Ok(Some((None, "ROLLBACK".into())))
            }
            (Transaction::Commit, TransactionStatus::Failed) => {
                let chain = text.to_ascii_lowercase().contains("and chain");
                let instead = if chain {
                    "rollback and chain"
                } else {
                    "rollback"
                };
                self.timed(text, |it| it.session.sql(instead))?;
                self.end_settings(false);
                Ok(Some((None, "ROLLBACK".into())))
            }
            (Transaction::Rollback, _) => {
                self.timed(text, |it| it.session.sql(text))?;
                self.end_settings(false);
                Ok(Some((None, "ROLLBACK".into())))
            }
            (Transaction::Commit, _) => {
                let done = self.timed(text, |it| it.session.sql(text));
                self.end_settings(done.is_ok());
                done?;
                Ok(Some((None, "COMMIT".into())))
            }
        }
    }

    /// The answers of several such functions in one row.
    fn calls(&mut self, all: Vec<Command>, text: &str) -> Result<(Option<Source>, String), Failed> {
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        for command in all {
            let Command::Call {
                function,
                arguments,
                label,
            } = command
            else {
                continue;
            };
            let (source, _) = self.call((function.as_str(), &arguments[..]), label, text)?;
            if let Some(Source::Here(schema, batches)) = source {
                fields.extend(schema.fields().iter().cloned());
                for batch in &batches {
                    columns.extend(batch.columns().iter().cloned());
                }
            }
        }
        let source = here(Arc::new(Schema::new(fields)), columns)?;
        Ok((Some(source), String::new()))
    }

    /// The answer of a function about the session.
    fn call(
        &mut self,
        (function, arguments): (&str, &[String]),
        label: String,
        text: &str,
    ) -> Result<(Option<Source>, String), Failed> {
        let argument = |at: usize| arguments.get(at).map_or("", String::as_str);
        let value = match function {
            "pg_backend_pid" => self.client().process.to_string(),
            "pg_is_in_recovery" | "pg_is_wal_replay_paused" => "f".into(),
            "pg_sleep" => {
                self.sleep(argument(0), text)?;
                String::new()
            }
            "pg_cancel_backend" => self.ask(argument(0), false, text)?,
            "pg_terminate_backend" => self.ask(argument(0), true, text)?,
            "set_config" if argument(0).eq_ignore_ascii_case(control::PATH) => {
                let local = matches!(argument(2), "true" | "t" | "on" | "1");
                let value = argument(1).replace('\'', "''");
                let text = format!("select set_config('search_path', '{value}', {local})");
                self.timed(&text, |it| it.session.sql(&text))?;
                self.path()?
            }
            "current_setting" if argument(0).eq_ignore_ascii_case(control::PATH) => self.path()?,
            "set_config" => {
                let changed = match argument(2) {
                    "true" | "t" | "on" | "1" => {
                        self.settings.set_local(argument(0), argument(1))?
                    }
                    _ => self.settings.set(argument(0), argument(1))?,
                };
                self.tell(changed);
                self.settings
                    .get(argument(0))
                    .unwrap_or_default()
                    .to_string()
            }
            "current_setting" => match self.settings.get(argument(0)) {
                Some(value) => value.to_string(),
                // It may be missing.
                None if matches!(argument(1), "true" | "t" | "on" | "1") => {
                    return Ok((Some(nothing(&label)?), String::new()));
                }
                None => {
                    let message =
                        format!("unrecognized configuration parameter \"{}\"", argument(0));
                    return Err(Report::error(errors::NO_SETTING, message).into());
                }
            },
            other => {
                let message = format!("function {other} is not supported");
                return Err(Report::error(errors::NOT_SUPPORTED, message).into());
            }
        };
        let source = match calls::type_of(function) {
            DataType::Int32 => number(&label, self.client().process)?,
            DataType::Boolean => truth(&label, value == "t")?,
            _ => {
                let listed = argument(1) == calls::LISTED;
                let row = (!listed || value == "t").then(|| vec![value]);
                texts(&[label], row.as_slice())?
            }
        };
        Ok((Some(source), String::new()))
    }

    /// Waits, on the thread of the client and no worker, as long as the statement is wanted.
    fn sleep(&mut self, seconds: &str, text: &str) -> Result<(), Failed> {
        if self.session.transaction() == TransactionStatus::Failed {
            let message =
                "current transaction is aborted, commands ignored until end of transaction block";
            return Err(Report::error("25P02", message).into());
        }
        let seconds: f64 = seconds.parse().unwrap_or_default();
        let time = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        let until = Instant::now().checked_add(time);
        self.begin(text);
        loop {
            self.wanted()?;
            let left = until.map_or(Duration::MAX, |until| {
                until.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(NAP));
        }
    }

    /// Asks another session to stop. No worker is needed for it: all of them may run what is to be stopped.
    fn ask(&mut self, process: &str, ends: bool, text: &str) -> Result<String, Failed> {
        let asked = match process.parse() {
            Ok(process) => self.timed(text, |it| it.session.stop_session(process, ends))?,
            Err(_) => false,
        };
        Ok(if asked { "t" } else { "f" }.into())
    }
}

/// Rows of texts.
fn texts(names: &[String], rows: &[Vec<String>]) -> Result<Source, Report> {
    let fields = names
        .iter()
        .map(|name| Field::new(name, DataType::Utf8, false));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let column = |at: usize| {
        let values = rows.iter().map(|row| row.get(at).map(String::as_str));
        Arc::new(values.collect::<StringArray>()) as _
    };
    let columns = (0..names.len()).map(column).collect();
    here(schema, columns)
}

/// A row of one NULL.
fn nothing(name: &str) -> Result<Source, Report> {
    let field = Field::new(name, DataType::Utf8, true);
    let column = StringArray::new_null(1);
    here(Arc::new(Schema::new(vec![field])), vec![Arc::new(column)])
}

/// A row of one truth value.
fn truth(name: &str, value: bool) -> Result<Source, Report> {
    let field = Field::new(name, DataType::Boolean, false);
    let column = arrow::array::BooleanArray::from(vec![value]);
    here(Arc::new(Schema::new(vec![field])), vec![Arc::new(column)])
}

/// A row of one number.
fn number(name: &str, number: u32) -> Result<Source, Report> {
    let schema = Arc::new(Schema::new(vec![Field::new(name, DataType::Int32, false)]));
    let column = arrow::array::Int32Array::from(vec![number as i32]);
    here(schema, vec![Arc::new(column)])
}

fn here(schema: Arc<Schema>, columns: Vec<arrow::array::ArrayRef>) -> Result<Source, Report> {
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns)
        .map_err(|e| Report::error(errors::INTERNAL, e.to_string()))?;
    Ok(Source::Here(schema, [batch].into()))
}
