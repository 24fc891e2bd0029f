//! What clients ask of [cursors](super::cursors): `declare`, `fetch`, `move`, `close`.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::datatypes::DataType;
use atoll::{PreparedStatement, TransactionStatus};

use crate::client::conversation::{Conversation, Failed};
use crate::client::cursor_text::{CursorCommand, Declare, Fetch};
use crate::client::cursors::{AGAIN, Cursor, Place, Way, no_cursor};
use crate::client::sending::{Sending, Source, formats};
use crate::errors;
use crate::wire::backend::{self, Report};

/// Most cursors of a session.
const MOST: usize = 1_000;

impl Conversation {
    /// Does a statement about cursors that came in a simple query.
    pub(crate) fn cursor(&mut self, command: CursorCommand, text: &str) -> Result<(), Failed> {
        match command {
            CursorCommand::Declare(declare) => {
                let statement = self.cursor_query(&declare, &[])?;
                self.declare(&declare, &statement, &[], text)?;
                backend::complete(&mut self.channel.out, "DECLARE CURSOR");
            }
            CursorCommand::Fetch(fetch) if fetch.moves => {
                let tag = self.move_cursor(&fetch, text)?;
                backend::complete(&mut self.channel.out, &tag);
            }
            CursorCommand::Fetch(fetch) => {
                let count = self.pass(&fetch, text)?;
                self.describe_cursor(&fetch.name, None)?;
                let (sent, _) = self.take(&fetch.name, count, None, text)?;
                backend::complete(&mut self.channel.out, &format!("FETCH {sent}"));
            }
            CursorCommand::Close(name) => {
                let tag = self.close_cursor(name.as_deref())?;
                backend::complete(&mut self.channel.out, tag);
            }
        }
        self.rest();
        Ok(())
    }

    /// The query of a `declare`, read.
    ///
    /// # Errors
    /// Those of planning it, and if it is none.
    pub(crate) fn cursor_query(
        &mut self,
        declare: &Declare,
        declared: &[Option<DataType>],
    ) -> Result<PreparedStatement, Failed> {
        let prepared = self.timed(&declare.query, |it| {
            it.session.prepare(&declare.query, declared)
        });
        self.rest();
        let prepared = prepared.map_err(|failed| match failed {
            // The place is one in the whole text.
            Failed::Told(mut report) => {
                report.position = report.position.map(|at| at + declare.before);
                Failed::Told(report)
            }
            failed => failed,
        })?;
        match prepared {
            Some(statement) if statement.is_query() && statement.columns().is_some() => {
                Ok(statement)
            }
            _ => {
                let message = "a cursor is declared for a query, which changes nothing";
                Err(Report {
                    position: Some(declare.before + 1),
                    ..Report::error("42601", message)
                }
                .into())
            }
        }
    }

    /// `declare`: begins to run the query.
    pub(crate) fn declare(
        &mut self,
        declare: &Declare,
        statement: &PreparedStatement,
        values: &[Option<&str>],
        text: &str,
    ) -> Result<(), Failed> {
        self.not_failed()?;
        if declare.scroll == Some(true) {
            let report = Report::error(errors::NOT_SUPPORTED, "SCROLL cursors are not supported");
            return Err(Report {
                hint: Some(AGAIN.into()),
                ..report
            }
            .into());
        }
        if !declare.hold && self.session.transaction() == TransactionStatus::Idle {
            let message = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(Report::error("25P01", message).into());
        }
        let name = declare.name.as_str();
        if self.cursors.has(name) || self.portals.contains_key(name) {
            let message = format!("cursor \"{name}\" already exists");
            return Err(Report::error("42P03", message).into());
        }
        if self.cursors.all.len() >= MOST {
            let message = format!("a session has {MOST} cursors at most");
            return Err(Report::error("53400", message).into());
        }
        let rows = self.timed(text, |it| it.session.run(statement, values))?;
        self.notify(rows.notices());
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let micros = since.map_or(0, |time| time.as_micros());
        let cursor = Cursor {
            sending: Sending::new(Source::Running(Box::new(rows)), &[], None)?,
            binary: declare.binary,
            hold: declare.hold,
            kept: false,
            level: self.cursors.savepoints.len(),
            place: Place::default(),
            statement: text.trim().to_string(),
            declared: i64::try_from(micros).unwrap_or(i64::MAX),
        };
        self.cursors.all.insert(name.to_string(), cursor);
        self.show_cursors();
        Ok(())
    }

    /// `move`: what it is called when it is done.
    pub(crate) fn move_cursor(&mut self, fetch: &Fetch, text: &str) -> Result<String, Failed> {
        let moved = match self.way(fetch)? {
            Way::Stays { on_row } => u64::from(on_row),
            Way::On { skip, take } => {
                self.skip(&fetch.name, Some(skip), text)?;
                self.skip(&fetch.name, take, text)?
            }
        };
        Ok(format!("MOVE {moved}"))
    }

    /// Passes the rows before those that a `fetch` takes. Returns how many those are; none for all.
    pub(crate) fn pass(&mut self, fetch: &Fetch, text: &str) -> Result<Option<u64>, Failed> {
        match self.way(fetch)? {
            Way::Stays { .. } => Ok(Some(0)),
            Way::On { skip, take } => {
                self.skip(&fetch.name, Some(skip), text)?;
                Ok(take)
            }
        }
    }

    fn way(&self, fetch: &Fetch) -> Result<Way, Report> {
        self.not_failed()?;
        let cursor = self.cursors.all.get(&fetch.name);
        let cursor = cursor.ok_or_else(|| no_cursor(&fetch.name))?;
        cursor.place.way(fetch.direction, fetch.moves)
    }

    /// Passes so many rows, or all. Returns how many there were.
    fn skip(&mut self, name: &str, count: Option<u64>, text: &str) -> Result<u64, Failed> {
        let work = |it: &mut Conversation, cursor: &mut Cursor| {
            it.skip_rows(&mut cursor.sending, count, text)
        };
        self.advance(name, count, text, work)
    }

    /// Sends so many rows, or all, in these formats; those of the cursor if there are none. Returns how many there were, and
    /// whether there are no more.
    ///
    /// # Errors
    /// If there is no such cursor; those of its query, which ends it.
    pub(crate) fn take(
        &mut self,
        name: &str,
        count: Option<u64>,
        wanted: Option<&[bool]>,
        text: &str,
    ) -> Result<(u64, bool), Failed> {
        let mut done = false;
        let sent = self.advance(name, count, text, |it, cursor| {
            let columns = cursor.sending.source.schema().fields().len();
            let formats = match wanted {
                Some(wanted) => formats(wanted, columns)?,
                None => vec![cursor.binary; columns],
            };
            cursor.sending.set_formats(formats);
            let before = cursor.sending.sent;
            done = it.rows(&mut cursor.sending, count, text)?;
            Ok(cursor.sending.sent - before)
        })?;
        Ok((sent, done))
    }

    /// Has a cursor go on by up to `count` rows, or all. What fails ends it.
    fn advance(
        &mut self,
        name: &str,
        count: Option<u64>,
        text: &str,
        work: impl FnOnce(&mut Conversation, &mut Cursor) -> Result<u64, Failed>,
    ) -> Result<u64, Failed> {
        if count == Some(0) {
            return Ok(0);
        }
        let cursor = self.cursors.all.remove(name);
        let mut cursor = cursor.ok_or_else(|| no_cursor(name))?;
        self.begin(text);
        let gone = match work(self, &mut cursor) {
            Ok(gone) => gone,
            Err(failed) => {
                drop(cursor);
                self.show_cursors();
                return Err(failed);
            }
        };
        cursor.place.row += gone;
        cursor.place.after |= count.is_none_or(|count| gone < count);
        self.cursors.all.insert(name.to_string(), cursor);
        Ok(gone)
    }

    /// Describes the columns of a cursor, in these formats or in its own.
    ///
    /// # Errors
    /// If there is no such cursor, or another number of formats.
    pub(crate) fn describe_cursor(
        &mut self,
        name: &str,
        wanted: Option<&[bool]>,
    ) -> Result<(), Report> {
        let cursor = self.cursors.all.get(name).ok_or_else(|| no_cursor(name))?;
        let schema = Arc::clone(cursor.sending.source.schema());
        let columns = schema.fields().len();
        let formats = match wanted {
            Some(wanted) => formats(wanted, columns)?,
            None => vec![cursor.binary; columns],
        };
        self.describe_columns(Some((&schema, &formats)));
        Ok(())
    }

    /// `close name` and `close all`: what they are called. Portals of the protocol have names of the same kind.
    pub(crate) fn close_cursor(&mut self, name: Option<&str>) -> Result<&'static str, Report> {
        self.not_failed()?;
        let tag = match name {
            None => {
                self.cursors.clear();
                self.portals.clear();
                "CLOSE CURSOR ALL"
            }
            Some(name) => {
                if !self.cursors.remove(name) && self.portals.remove(name).is_none() {
                    return Err(no_cursor(name));
                }
                "CLOSE CURSOR"
            }
        };
        self.show_cursors();
        Ok(tag)
    }

    /// The transaction has ended, and with it the cursors that are not held.
    pub(crate) fn end_cursors(&mut self, committed: bool) {
        if self.cursors.end(committed) {
            self.show_cursors();
        }
    }

    /// Tells the engine which cursors there are, for `pg_cursors`.
    pub(crate) fn show_cursors(&self) {
        self.session.show_cursors(self.cursors.shown());
    }

    fn not_failed(&self) -> Result<(), Report> {
        if self.session.transaction() != TransactionStatus::Failed {
            return Ok(());
        }
        let message =
            "current transaction is aborted, commands ignored until end of transaction block";
        Err(Report::error("25P02", message))
    }
}
