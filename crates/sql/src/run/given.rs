//! What the caller of a statement gives it to read, beside what is in the database.

use std::sync::Arc;

use catalog::rights::Rights;
use catalog::settings::{MayStop, StatementSettings};
use chrono::{DateTime, Utc};

use crate::error::{Error, Result};
use crate::functions::temporal::local::Local;
use crate::functions::user;
use crate::run::context::StatementContext;
use crate::run::frames::Frames;

impl StatementContext {
    /// Gives the statement frames.
    ///
    /// # Errors
    /// If one has the name of a table, a view or an array: which of the two were meant would be a guess.
    pub(crate) fn with_frames(mut self, frames: &Frames) -> Result<StatementContext> {
        for name in frames.names() {
            if self.has(name)? {
                return Err(Error::coded(
                    "42P07",
                    format!(
                        "the frame \"{name}\" has the name of a table of the database: give it another"
                    ),
                ));
            }
        }
        self.frames = frames.clone();
        Ok(self)
    }

    /// Has `current_user` and its kin name who the statement is of; none: who runs the program.
    pub(crate) fn of_user(
        mut self,
        user: Option<&Arc<str>>,
        role: Option<&Arc<str>>,
    ) -> StatementContext {
        self.user = user.cloned();
        if let Some(user) = user {
            self.planner.functions.put(user::named(user));
        }
        if let Some(role) = role {
            self.planner.functions.put(user::taken(role));
        }
        self
    }

    /// Gives the statement what a server has been told of its session.
    pub(crate) fn with_settings(mut self, settings: StatementSettings) -> StatementContext {
        self.set_local(settings.local());
        self.settings = settings;
        self
    }

    /// Has `now()` be this instant, at which the transaction of the statement began.
    pub(crate) fn of_transaction(mut self, began: DateTime<Utc>) -> StatementContext {
        self.planner
            .execution_props_mut()
            .query_execution_start_time = Some(began);
        self
    }

    /// The instant at which the transaction of the statement began, which `now()` gives, if that is known already.
    pub(crate) fn beginning(&self) -> Option<DateTime<Utc>> {
        self.planner.execution_props().query_execution_start_time
    }

    /// How the statement reads and writes dates and times.
    pub(crate) fn local(&self) -> Local {
        Local::of(self.planner.config_options())
    }

    /// Has it read and write them so; how it did before.
    pub(crate) fn set_local(&mut self, local: Local) -> Local {
        let before = self.local();
        if local != before {
            let options = self.planner.config_mut().options_mut();
            options.extensions.insert(local);
            self.tell_options();
        }
        before
    }

    /// Has what evaluates functions know the options as they are now.
    pub(super) fn tell_options(&mut self) {
        let began = self.planner.execution_props().query_execution_start_time;
        self.planner.mark_start_execution();
        self.planner
            .execution_props_mut()
            .query_execution_start_time = began;
    }

    /// Gives the statement the rights of a role.
    pub(crate) fn with_rights(
        mut self,
        rights: Rights,
        role: Option<Arc<str>>,
    ) -> StatementContext {
        let (own, tables) = (rights.clone(), Arc::clone(&self.tables));
        self.settings.stops(MayStop(Arc::new(move |owner, ends| {
            own.check_stops(&tables, owner, ends)
        })));
        self.rights = rights;
        self.role = role;
        self
    }

    /// Whether there is a table, a view or an array of that name.
    ///
    /// # Errors
    /// Those of reading an array's definition.
    pub(crate) fn has(&self, name: &str) -> Result<bool> {
        let name = &self.own(name);
        let table = self.tables.get(name).is_some() || self.tables.view(name).is_some();
        Ok(table || self.array(name)?.is_some())
    }
}
