//! Statements that are parsed, bound and executed in messages of their own.

use std::rc::Rc;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use atoll::{PreparedStatement, TransactionStatus};
use sql::Origins;

use crate::client::calls;
use crate::client::control::{self, Command};
use crate::client::conversation::{Conversation, Failed};
use crate::client::cursor_text::{self, CursorCommand};
use crate::client::portal::{Portal, Prepared, State, What};
use crate::client::sending::{Sending, Source, formats};
use crate::errors;
use crate::values::{parameter, types};
use crate::weight;
use crate::wire::backend::{self, Report};
use crate::wire::frontend::{Bind, NO_TEXT, Target};

/// Most prepared statements, and portals, of a session.
const MOST: usize = 10_000;

impl Conversation {
    /// `Parse`.
    pub(crate) fn parse(&mut self, name: String, text: String, oids: &[u32]) -> Result<(), Failed> {
        if !name.is_empty() && self.prepared.contains_key(&name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(Report::error("42P05", message).into());
        }
        if self.prepared.len() >= MOST {
            let message = format!("a session has {MOST} prepared statements at most");
            return Err(Report::error("53400", message).into());
        }
        let declared = oids.iter().map(|oid| types::declared(*oid));
        let declared: Vec<Option<DataType>> =
            declared.collect::<Result<_, _>>().map_err(|oid| {
                let message = format!("parameters of type {oid} are not supported");
                Report::error(errors::NOT_SUPPORTED, message)
            })?;
        let memory = self.kept(text.len().saturating_add(weight::of(&text)))?;
        let what = self.what(&text, &declared)?;
        let mut types: Vec<u32> = match &what {
            What::Engine(statement) | What::Cursor(_, Some(statement)) => statement
                .parameters()
                .iter()
                .map(types::parameter)
                .collect(),
            _ => Vec::new(),
        };
        for at in types::arrays_of_oids(&text) {
            if let Some(known) = types.get_mut(at) {
                *known = types::OIDS;
            }
        }
        // A client reads its values by the types that it has declared.
        for (known, declared) in types.iter_mut().zip(oids) {
            if !matches!(*declared, 0 | types::UNKNOWN) {
                *known = *declared;
            }
        }
        let prepared = Prepared {
            text,
            _memory: memory,
            what,
            types,
        };
        self.prepared.insert(name, Rc::new(prepared));
        backend::bare(&mut self.channel.out, b'1');
        Ok(())
    }

    /// The memory of so many bytes that are kept of a message.
    pub(super) fn kept(&self, bytes: usize) -> Result<Option<atoll::Account>, Report> {
        let kept = self.channel.keep(bytes);
        kept.map_err(|why| Report::error(errors::MEMORY, why))
    }

    fn what(&mut self, text: &str, declared: &[Option<DataType>]) -> Result<What, Failed> {
        if let Some(command) = control::read(text) {
            return Ok(What::Session(command));
        }
        if let Some(command) = cursor_text::read(text)? {
            let query = match &command {
                CursorCommand::Declare(declare) => {
                    Some(Box::new(self.cursor_query(declare, declared)?))
                }
                _ => None,
            };
            return Ok(What::Cursor(Box::new(command), query));
        }
        let transfer = sql::transfer(text).map_err(atoll::Error::from);
        if let Some(transfer) = transfer.map_err(|e| self.reported(&e, text))? {
            return Ok(What::Copy(Box::new(transfer)));
        }
        let prepared = self.timed(text, |it| it.session.prepare(text, declared))?;
        self.rest();
        Ok(match prepared {
            Some(statement) => What::Engine(Box::new(statement)),
            None => What::Nothing,
        })
    }

    /// `Bind`.
    pub(crate) fn bind(&mut self, bind: Bind) -> Result<(), Failed> {
        let prepared = self.prepared(&bind.statement)?;
        let there = self.portals.contains_key(&bind.portal) || self.cursors.has(&bind.portal);
        if !bind.portal.is_empty() && there {
            let message = format!("cursor \"{}\" already exists", bind.portal);
            return Err(Report::error("42P03", message).into());
        }
        if self.portals.len() >= MOST {
            let message = format!("a session has {MOST} portals at most");
            return Err(Report::error("53400", message).into());
        }
        if bind.values.len() != prepared.types.len() {
            let message = format!(
                "bind message supplies {} parameters, but prepared statement \"{}\" requires {}",
                bind.values.len(),
                bind.statement,
                prepared.types.len()
            );
            return Err(Report::error(errors::PROTOCOL, message).into());
        }
        let bytes = bind.values.iter().flatten().map(Vec::len).sum();
        let memory = self.kept(bytes)?;
        let binary = formats(&bind.formats, bind.values.len())?;
        let mut values = Vec::with_capacity(bind.values.len());
        for (at, value) in bind.values.iter().enumerate() {
            let text = |bytes: &Vec<u8>| parameter::text(prepared.types[at], binary[at], bytes);
            let text = value.as_ref().map(text).transpose().map_err(|message| {
                let code = if message.starts_with(NO_TEXT) {
                    errors::BAD_TEXT
                } else if binary[at] {
                    errors::BAD_BINARY
                } else {
                    errors::BAD_VALUE
                };
                Report::error(code, format!("parameter ${}: {message}", at + 1))
            })?;
            values.push(text);
        }
        let portal = Portal {
            prepared,
            values,
            _memory: memory,
            results: bind.results,
            state: State::Bound,
        };
        self.portals.insert(bind.portal, portal);
        backend::bare(&mut self.channel.out, b'2');
        Ok(())
    }

    fn prepared(&self, name: &str) -> Result<Rc<Prepared>, Report> {
        self.prepared.get(name).cloned().ok_or_else(|| {
            let message = format!("prepared statement \"{name}\" does not exist");
            Report::error(errors::NO_STATEMENT, message)
        })
    }

    /// `Describe`.
    pub(crate) fn describe(&mut self, target: Target, name: &str) -> Result<(), Failed> {
        match target {
            Target::Statement => {
                let prepared = self.prepared(name)?;
                backend::parameters(&mut self.channel.out, &prepared.types);
                self.columns_of(&prepared, &[])
            }
            // Portals and cursors are of one kind.
            Target::Portal if self.cursors.has(name) => Ok(self.describe_cursor(name, None)?),
            Target::Portal => {
                let portal = self.portals.get(name).ok_or_else(|| no_portal(name))?;
                let (prepared, results) = (Rc::clone(&portal.prepared), portal.results.clone());
                self.columns_of(&prepared, &results)
            }
        }
    }

    /// Describes the columns of a statement, with the formats that a client has asked for.
    fn columns_of(&mut self, prepared: &Prepared, results: &[bool]) -> Result<(), Failed> {
        match &prepared.what {
            What::Engine(statement) => match statement.columns() {
                Some(schema) if !schema.fields().is_empty() => {
                    let schema = Arc::clone(schema);
                    let formats = formats(results, schema.fields().len())?;
                    let origins = statement.origins();
                    self.describe_columns(Some((&schema, origins, &formats)));
                }
                _ => self.describe_columns(None),
            },
            What::Cursor(command, _) => match &**command {
                CursorCommand::Fetch(fetch) if !fetch.moves && self.cursors.has(&fetch.name) => {
                    self.describe_cursor(&fetch.name, Some(results))?;
                }
                _ => self.describe_columns(None),
            },
            // What they show does not depend on when they do it.
            What::Session(
                command @ (Command::Show(_) | Command::Call { .. } | Command::Calls(_)),
            ) if !changes(command) => match self.control(command.clone(), &prepared.text)? {
                Some((Some(source), _)) => {
                    let schema = Arc::clone(source.schema());
                    let formats = formats(results, schema.fields().len())?;
                    self.describe_columns(Some((&schema, &Origins::default(), &formats)));
                }
                _ => self.describe_columns(None),
            },
            What::Session(command @ (Command::Call { .. } | Command::Calls(_))) => {
                let schema = Arc::new(arrow::datatypes::Schema::new(columns_of(command)));
                let formats = formats(results, schema.fields().len())?;
                self.describe_columns(Some((&schema, &Origins::default(), &formats)));
            }
            _ => self.describe_columns(None),
        }
        Ok(())
    }

    /// `Execute`.
    pub(crate) fn execute(&mut self, name: &str, limit: u32) -> Result<(), Failed> {
        let mut portal = self.portals.remove(name).ok_or_else(|| no_portal(name))?;
        let prepared = Rc::clone(&portal.prepared);
        if let State::Bound = portal.state {
            portal.state = self.start(&portal)?;
        } else if let State::Sending(_) | State::Fetching(..) = portal.state {
            self.begin(&prepared.text);
        }
        let next = match portal.state {
            State::Bound => State::Bound,
            State::Done(tag) => {
                match tag.as_str() {
                    "" => backend::bare(&mut self.channel.out, b'I'),
                    tag => backend::complete(&mut self.channel.out, tag),
                }
                State::Done(tag)
            }
            State::Fetching(name, step) => {
                let piece = step.at_most((limit > 0).then(|| u64::from(limit)));
                let formats = Some(portal.results.as_slice());
                let (sent, done) = self.take(&name, piece, formats, &prepared.text)?;
                let left = step.without(sent);
                if done || left.count() == Some(0) {
                    backend::complete(&mut self.channel.out, &format!("FETCH {sent}"));
                    State::Done("FETCH 0".into())
                } else {
                    backend::bare(&mut self.channel.out, b's');
                    State::Fetching(name, left)
                }
            }
            State::Sending(mut sending) => {
                let before = sending.sent;
                let limit = (limit > 0).then(|| limit.into());
                if self.rows(&mut sending, limit, &prepared.text)? {
                    let sent = sending.sent - before;
                    backend::complete(&mut self.channel.out, &sending.source.tag(sent));
                    State::Done(sending.source.tag(0))
                } else {
                    if sending.place.is_none() {
                        sending.place = Some(self.waiting()?);
                    }
                    backend::bare(&mut self.channel.out, b's');
                    State::Sending(sending)
                }
            }
        };
        portal.state = next;
        self.portals.insert(name.to_string(), portal);
        self.rest();
        Ok(())
    }

    /// Begins to run what was bound.
    fn start(&mut self, portal: &Portal) -> Result<State, Failed> {
        let prepared = Rc::clone(&portal.prepared);
        let text = prepared.text.as_str();
        match &prepared.what {
            What::Nothing => Ok(State::Done(String::new())),
            What::Session(command) => match self.control(command.clone(), text)? {
                Some((Some(source), _)) => {
                    let sending = Sending::new(source, &portal.results, None)?;
                    Ok(State::Sending(Box::new(sending)))
                }
                Some((None, tag)) => Ok(State::Done(tag)),
                None => {
                    let rows = self.timed(text, |it| it.session.query(text))?;
                    self.notify(rows.notices());
                    let sending = Sending::new(Source::Running(Box::new(rows)), &[], None)?;
                    Ok(State::Sending(Box::new(sending)))
                }
            },
            What::Cursor(command, query) => match (&**command, query) {
                (CursorCommand::Declare(declare), Some(query)) => {
                    let values: Vec<_> = portal.values.iter().map(Option::as_deref).collect();
                    self.declare(declare, query, &values, text)?;
                    Ok(State::Done("DECLARE CURSOR".into()))
                }
                (CursorCommand::Fetch(fetch), _) if !fetch.moves => {
                    let last = self.pass(fetch, text)?;
                    Ok(State::Fetching(fetch.name.clone(), last))
                }
                (CursorCommand::Fetch(fetch), _) => Ok(State::Done(self.move_cursor(fetch, text)?)),
                (CursorCommand::Close(name), _) => {
                    let tag = self.close_cursor(name.as_deref())?;
                    Ok(State::Done(tag.into()))
                }
                (CursorCommand::Declare(_), None) => Ok(State::Done(String::new())),
            },
            What::Copy(transfer) => Ok(State::Done(self.copy(transfer, text)?)),
            What::Engine(statement) => {
                self.together(statement)?;
                let values: Vec<_> = portal.values.iter().map(Option::as_deref).collect();
                let rows = self.timed(text, |it| it.session.run(statement, &values))?;
                self.notify(rows.notices());
                let told = statement.columns().map(|schema| {
                    let fields = schema.fields().iter();
                    fields.map(|field| types::oid(field.data_type())).collect()
                });
                let sending = Sending::new(Source::Running(Box::new(rows)), &portal.results, told)?;
                Ok(State::Sending(Box::new(sending)))
            }
        }
    }

    /// Statements up to the next `Sync` are one transaction. One that comes alone needs none, and a query changes nothing.
    fn together(&mut self, statement: &PreparedStatement) -> Result<(), Failed> {
        let alone = self.channel.next_kind() == Some(b'S');
        let reads = matches!(statement.verb(), "SELECT" | "EXPLAIN" | "SHOW" | "DESCRIBE")
            && statement.columns().is_some();
        if alone || reads || self.session.transaction() != TransactionStatus::Idle {
            return Ok(());
        }
        self.begin_implicit()
    }

    /// `Close`: what is not there is closed.
    pub(crate) fn close(&mut self, target: Target, name: &str) -> Result<(), Failed> {
        match target {
            Target::Statement => drop(self.prepared.remove(name)),
            Target::Portal if self.cursors.remove(name) => self.show_cursors(),
            Target::Portal => drop(self.portals.remove(name)),
        }
        backend::bare(&mut self.channel.out, b'3');
        Ok(())
    }
}

/// Whether a call does something that must not be done when it is only described.
fn changes(command: &Command) -> bool {
    if let Command::Calls(all) = command {
        return all.iter().any(changes);
    }
    let Command::Call { function, .. } = command else {
        return false;
    };
    matches!(
        function.as_str(),
        "set_config" | "pg_cancel_backend" | "pg_terminate_backend" | "pg_sleep"
    )
}

/// The columns that calls return.
fn columns_of(command: &Command) -> Vec<Field> {
    match command {
        Command::Calls(all) => all.iter().flat_map(columns_of).collect(),
        Command::Call {
            function, label, ..
        } => {
            vec![Field::new(label, calls::type_of(function), false)]
        }
        _ => Vec::new(),
    }
}

fn no_portal(name: &str) -> Report {
    Report::error(
        errors::NO_PORTAL,
        format!("portal \"{name}\" does not exist"),
    )
}
