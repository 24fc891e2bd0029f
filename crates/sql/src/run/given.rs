//! What the caller of a statement gives it to read, beside what is in the database.

use crate::error::{Error, Result};
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
                return Err(Error::invalid(format!(
                    "the frame \"{name}\" has the name of a table of the database: give it another"
                )));
            }
        }
        self.frames = frames.clone();
        Ok(self)
    }

    /// Whether there is a table, a view or an array of that name.
    ///
    /// # Errors
    /// Those of reading an array's definition.
    pub(crate) fn has(&self, name: &str) -> Result<bool> {
        let table = self.tables.get(name).is_some() || self.tables.view(name).is_some();
        Ok(table || self.array(name)?.is_some())
    }
}
