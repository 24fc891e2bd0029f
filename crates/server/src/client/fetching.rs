//! What clients ask of [cursors](super::cursors): `declare`, `fetch`, `move`, `close`.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::datatypes::DataType;
use atoll::{PreparedStatement, TransactionStatus};

use crate::client::conversation::{Conversation, Failed};
use crate::client::cursor_text::{CursorCommand, Declare, Fetch};
use crate::client::cursors::{Cursor, Place, Step, Way, no_cursor};
use crate::client::kept::{Keeps, Kept};
use crate::client::sending::{Sending, Source, formats};
use crate::outcome::There;
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
                let last = self.pass(&fetch, text)?;
                self.describe_cursor(&fetch.name, None)?;
                let (sent, _) = self.take(&fetch.name, last, None, text)?;
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
        let keeps = match declare.scroll {
            Some(true) => {
                let account = self.timed(text, |it| it.session.account().map(There))?;
                Keeps::All(account.0)
            }
            Some(false) => Keeps::Nothing,
            None => Keeps::Some,
        };
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let micros = since.map_or(0, |time| time.as_micros());
        let mut sending = Sending::new(Source::Running(Box::new(rows)), &[], None)?;
        sending.place = Some(self.waiting()?);
        let cursor = Cursor {
            sending,
            read: Kept::new(keeps),
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
        let way = self.way(fetch)?;
        for step in way.first {
            self.go(&fetch.name, step, false, text)?;
        }
        let moved = self.go(&fetch.name, way.last, false, text)?;
        Ok(format!("MOVE {}", moved + u64::from(way.stays)))
    }

    /// Goes to where a `fetch` begins to send rows. Returns what it sends.
    pub(crate) fn pass(&mut self, fetch: &Fetch, text: &str) -> Result<Step, Failed> {
        let way = self.way(fetch)?;
        for step in way.first {
            self.go(&fetch.name, step, false, text)?;
        }
        // Before its columns are described.
        let cursor = self.cursors.all.get(&fetch.name);
        let cursor = cursor.ok_or_else(|| no_cursor(&fetch.name))?;
        cursor.can(way.last, true)?;
        Ok(way.last)
    }

    fn way(&self, fetch: &Fetch) -> Result<Way, Report> {
        self.not_failed()?;
        let cursor = self.cursors.all.get(&fetch.name);
        let cursor = cursor.ok_or_else(|| no_cursor(&fetch.name))?;
        Ok(cursor.place.way(fetch.direction, fetch.moves))
    }

    /// Sends the rows of a step, in these formats; those of the cursor if there are none. Returns how many there were, and
    /// whether there are no more.
    ///
    /// # Errors
    /// If there is no such cursor, or if it does not go back so far; those of its query, which ends it.
    pub(crate) fn take(
        &mut self,
        name: &str,
        step: Step,
        wanted: Option<&[bool]>,
        text: &str,
    ) -> Result<(u64, bool), Failed> {
        let cursor = self.cursors.all.get_mut(name);
        let cursor = cursor.ok_or_else(|| no_cursor(name))?;
        let columns = cursor.sending.source.schema().fields().len();
        let formats = match wanted {
            Some(wanted) => formats(wanted, columns)?,
            None => vec![cursor.binary; columns],
        };
        cursor.sending.set_formats(formats);
        let sent = self.go(name, step, true, text)?;
        Ok((sent, step.count().is_none_or(|count| sent < count)))
    }

    /// Has a cursor go a step, and sends its rows or passes them. Returns how many there were. What fails on the way ends it.
    fn go(&mut self, name: &str, step: Step, sends: bool, text: &str) -> Result<u64, Failed> {
        let cursor = self.cursors.all.get(name);
        cursor.ok_or_else(|| no_cursor(name))?.can(step, sends)?;
        if step.count() == Some(0) && step != Step::Rewind {
            return Ok(0);
        }
        let cursor = self.cursors.all.remove(name);
        let mut cursor = cursor.ok_or_else(|| no_cursor(name))?;
        self.begin(text);
        let gone = match step {
            Step::On(count) => self.go_on(&mut cursor, count, sends, text),
            Step::Back(count) => self.go_back(&mut cursor, count, sends),
            Step::Rewind => {
                cursor.place = Place::default();
                Ok(0)
            }
        };
        match gone {
            Ok(gone) => {
                self.cursors.all.insert(name.to_string(), cursor);
                Ok(gone)
            }
            Err(failed) => {
                drop(cursor);
                self.show_cursors();
                Err(failed)
            }
        }
    }

    fn go_on(
        &mut self,
        cursor: &mut Cursor,
        count: Option<u64>,
        sends: bool,
        text: &str,
    ) -> Result<u64, Failed> {
        if cursor.place.after {
            return Ok(0);
        }
        let most = count.unwrap_or(u64::MAX);
        let mut gone = 0;
        while gone < most {
            let Some(rows) = cursor.read.behind(cursor.place.row, most - gone) else {
                if cursor.read.ended {
                    break;
                }
                self.wanted()?;
                match cursor.sending.source.next() {
                    None => cursor.read.ended = true,
                    Some(Err(e)) => return Err(self.reported(&e, text)),
                    Some(Ok(batch)) => cursor.read.push(batch)?,
                }
                continue;
            };
            if sends {
                self.kept_rows(&mut cursor.sending, &rows, false)?;
            }
            gone += rows.num_rows() as u64;
            cursor.place.row += rows.num_rows() as u64;
            cursor.read.passed(cursor.place.row);
        }
        cursor.place.after = count.is_none() || gone < most;
        Ok(gone)
    }

    /// Goes back over rows that are kept, which was [found](Cursor::can) to be possible.
    fn go_back(
        &mut self,
        cursor: &mut Cursor,
        count: Option<u64>,
        sends: bool,
    ) -> Result<u64, Failed> {
        let from = cursor.place.number();
        let most = count.unwrap_or(u64::MAX);
        let gone = most.min(from.saturating_sub(1));
        let mut at = from;
        while sends && at > from - gone {
            self.wanted()?;
            let left = at - (from - gone);
            let Some(rows) = cursor.read.before(at, left) else {
                break;
            };
            self.kept_rows(&mut cursor.sending, &rows, true)?;
            at -= rows.num_rows() as u64;
        }
        let to_start = count.is_none() || gone < most;
        cursor.place = Place {
            row: if to_start { 0 } else { from - gone },
            // Of no rows, it is behind the last one, too.
            after: cursor.place.after && cursor.read.rows() == 0,
        };
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
        let origins = cursor.sending.source.origins();
        self.describe_columns(Some((&schema, &origins, &formats)));
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
