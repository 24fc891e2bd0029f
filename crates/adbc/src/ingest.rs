//! Bulk ingest: rows that were bound become a table, or are appended to one.

use adbc_core::constants;
use adbc_core::error::{Result, Status};
use adbc_core::options::{OptionStatement, OptionValue};
use atoll::{Frames, Session};

use crate::bound::Bound;
use crate::cancel::Execution;
use crate::catalog::{check_place, quoted};
use crate::error::{invalid, state, told, with};
use crate::option::{text, truth};

/// What a statement calls the rows.
const FRAME: &str = "the rows";

/// What becomes of a table that is there, or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Create,
    Append,
    Replace,
    CreateAppend,
}

impl Mode {
    fn of(value: &str) -> Result<Mode> {
        match value {
            constants::ADBC_INGEST_OPTION_MODE_CREATE => Ok(Mode::Create),
            constants::ADBC_INGEST_OPTION_MODE_APPEND => Ok(Mode::Append),
            constants::ADBC_INGEST_OPTION_MODE_REPLACE => Ok(Mode::Replace),
            constants::ADBC_INGEST_OPTION_MODE_CREATE_APPEND => Ok(Mode::CreateAppend),
            other => Err(invalid(format!(
                "{}: there is no mode {other:?}",
                constants::ADBC_INGEST_OPTION_MODE
            ))),
        }
    }

    fn value(self) -> &'static str {
        match self {
            Mode::Create => constants::ADBC_INGEST_OPTION_MODE_CREATE,
            Mode::Append => constants::ADBC_INGEST_OPTION_MODE_APPEND,
            Mode::Replace => constants::ADBC_INGEST_OPTION_MODE_REPLACE,
            Mode::CreateAppend => constants::ADBC_INGEST_OPTION_MODE_CREATE_APPEND,
        }
    }
}

/// Where rows go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Target {
    /// The table; none if the statement is a query.
    pub(crate) table: Option<String>,
    catalog: Option<String>,
    schema: Option<String>,
    mode: Mode,
    temporary: bool,
}

impl Target {
    /// Sets one of the options of an ingest.
    ///
    /// # Errors
    /// If its value is wrong.
    pub(crate) fn set(&mut self, key: &OptionStatement, value: &OptionValue) -> Result<()> {
        let name = key.as_ref();
        let place = |value: String| (!value.is_empty()).then_some(value);
        match key {
            OptionStatement::TargetTable => self.table = Some(text(name, value)?),
            OptionStatement::TargetCatalog => self.catalog = place(text(name, value)?),
            OptionStatement::TargetDbSchema => self.schema = place(text(name, value)?),
            OptionStatement::IngestMode => self.mode = Mode::of(&text(name, value)?)?,
            OptionStatement::Temporary => self.temporary = truth(name, value)?,
            _ => return Err(crate::option::no_option("statements", name)),
        }
        Ok(())
    }

    /// What an option is set to.
    pub(crate) fn get(&self, key: &OptionStatement) -> Option<String> {
        match key {
            OptionStatement::TargetTable => self.table.clone(),
            OptionStatement::TargetCatalog => self.catalog.clone(),
            OptionStatement::TargetDbSchema => self.schema.clone(),
            OptionStatement::IngestMode => Some(self.mode.value().to_owned()),
            OptionStatement::Temporary => Some(self.temporary.to_string()),
            _ => None,
        }
    }

    /// The statements that do it, the last of which reads the rows.
    fn statements(&self, table: &str, columns: &[String]) -> Vec<String> {
        let name = quoted(table);
        let temporary = if self.temporary { "temporary " } else { "" };
        let columns = columns.join(", ");
        let rows = format!("select {columns} from {}", quoted(FRAME));
        let insert = format!("insert into {name} ({columns}) {rows}");
        match self.mode {
            Mode::Create => vec![format!("create {temporary}table {name} as {rows}")],
            Mode::Append => vec![insert],
            Mode::Replace => vec![format!(
                "create or replace {temporary}table {name} as {rows}"
            )],
            Mode::CreateAppend => vec![
                format!("create {temporary}table if not exists {name} as {rows} limit 0"),
                insert,
            ],
        }
    }

    /// That there is a temporary table of the name to append to: without one, rows would go to a permanent table.
    fn check_temporary(&self, session: &Session, execution: &Execution, table: &str) -> Result<()> {
        let make = format!(
            "create temporary table {} as select 1 as n limit 0",
            quoted(table)
        );
        execution.run(|| session.sql("savepoint \"the ingest\""))?;
        let made = execution.run(|| session.sql(&make));
        execution.run(|| session.sql("rollback to \"the ingest\"; release \"the ingest\""))?;
        match made {
            Ok(_) => {
                let message = format!("there is no temporary table {table:?} to append to");
                Err(with(Status::NotFound, "42P01", message))
            }
            Err(error) if error.status == Status::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Does it, and returns how many rows there were.
    ///
    /// # Errors
    /// Those of the statements.
    pub(crate) fn run(
        &self,
        session: &Session,
        execution: &Execution,
        bound: Option<Bound>,
    ) -> Result<Option<u64>> {
        let table = self.table.as_deref().unwrap_or_default();
        check_place(self.catalog.as_deref(), self.schema.as_deref())?;
        if self.temporary && (self.schema.is_some() || self.catalog.is_some()) {
            return Err(invalid(
                "a temporary table has no catalog and no schema: leave these options away",
            ));
        }
        let rows = bound.ok_or_else(|| {
            state(format!(
                "bind the rows that are to go to table {table:?} first"
            ))
        })?;
        let schema = rows.schema();
        let columns: Vec<String> = schema.fields().iter().map(|f| quoted(f.name())).collect();
        if columns.is_empty() {
            return Err(invalid("the rows that are bound have no columns"));
        }
        if self.temporary && self.mode == Mode::Append {
            self.check_temporary(session, execution, table)?;
        }
        let mut statements = self.statements(table, &columns);
        let last = statements.pop().unwrap_or_default();
        for statement in statements {
            // The rows come once; what is made first has only their columns.
            let mut frames = Frames::default();
            told(
                frames
                    .add_batches(FRAME, &schema, Vec::new())
                    .map_err(atoll::Error::from),
            )?;
            let session = session.with_frames(frames);
            execution.run(|| session.query(&statement))?;
        }
        let mut frames = Frames::default();
        told(frames.add_reader(FRAME, rows).map_err(atoll::Error::from))?;
        let session = session.with_frames(frames);
        execution.run(|| session.query(&last).map(|rows| rows.changed()))
    }
}
