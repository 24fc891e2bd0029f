//! Statements that a client has prepared, and bound.

use std::rc::Rc;

use atoll::{Account, PreparedStatement, Transfer};

use crate::client::control::Command;
use crate::client::cursor_text::CursorCommand;
use crate::client::cursors::Step;
use crate::client::sending::Sending;

/// A statement that a client has prepared.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub text: String,
    /// The memory of it, if that is much.
    pub _memory: Option<Account>,
    pub what: What,
    /// The types of its parameters.
    pub types: Vec<u32>,
}

/// What a prepared statement does.
#[derive(Debug)]
pub(crate) enum What {
    /// There is no statement in the text.
    Nothing,
    /// It is about the session.
    Session(Command),
    Engine(Box<PreparedStatement>),
    /// It is about cursors; with the query of one that is declared.
    Cursor(Box<CursorCommand>, Option<Box<PreparedStatement>>),
    Copy(Box<Transfer>),
}

/// A statement with its parameters.
pub(crate) struct Portal {
    pub prepared: Rc<Prepared>,
    pub values: Vec<Option<String>>,
    /// The memory of the values, if that is much.
    pub _memory: Option<Account>,
    /// The formats of the results, as they were asked for.
    pub results: Vec<bool>,
    pub state: State,
}

/// How far a portal is.
pub(crate) enum State {
    Bound,
    Sending(Box<Sending>),
    /// It fetches from the cursor of that name: what is left of its rows.
    Fetching(String, Step),
    /// What it was called when it was done.
    Done(String),
}
