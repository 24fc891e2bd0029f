//! Statements that were read and looked at once, to run any number of times, and those of them that a session keeps.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use parking_lot::Mutex;
use syntax::key_query::{KeyQuery, KeyValue};
use syntax::parameters::Readied;

use crate::bind::row_insert::RowInsert;
use crate::run::generic_plans::{self, GenericPlan, GenericRun};
use crate::run::kept_plans::{PlanKey, Slot};
use crate::run::origins::Origins;

/// What has been read of a statement.
#[derive(Clone, Debug)]
pub(super) enum Reading {
    Done(Arc<Readied>),
    /// Its text alone: that of a query for the row of one key, which is read when that has to be planned.
    Waits(Arc<str>),
}

/// A statement that was read and looked at once and runs any number of times: see [`Session::prepare`](crate::Session::prepare).
#[derive(Clone, Debug)]
pub struct PreparedStatement {
    pub(super) readied: Reading,
    pub(super) parameters: Vec<DataType>,
    pub(super) columns: Option<SchemaRef>,
    pub(super) origins: Origins,
    pub(super) verb: &'static str,
    /// Whether it is a query alone, which changes no table.
    pub(super) is_query: bool,
    /// What it asks for, if it is a query for the row of one key.
    pub(super) asked: Option<KeyQuery>,
    /// What it brings, if it is an insert of one row.
    pub(super) inserted: Option<RowInsert>,
    /// Where its plan is kept, if it has no parameters.
    pub(super) kept: Option<Arc<Slot>>,
    /// Its plan for any values, if it has some.
    pub(super) generic: Arc<GenericPlan>,
}

/// Most descriptions that a session keeps, and most bytes of the text of one.
const DESCRIPTIONS: usize = 32;
const LONGEST: usize = 16 << 10;

/// Statements that a session has prepared last, and what planning looked at: drivers prepare the same text again and again.
#[derive(Debug, Default)]
pub(crate) struct Described(Mutex<VecDeque<Description>>);

/// A statement that was prepared, and what it was prepared of.
#[derive(Debug)]
pub(super) struct Description {
    pub(super) text: String,
    pub(super) declared: Vec<Option<DataType>>,
    pub(super) key: PlanKey,
    pub(super) prepared: PreparedStatement,
}

impl Described {
    /// The statement, if preparing it would make the same one.
    pub(super) fn find(
        &self,
        text: &str,
        declared: &[Option<DataType>],
        key: &PlanKey,
    ) -> Option<PreparedStatement> {
        let all = self.0.lock();
        let mut all = all.iter();
        let found = all.find(|own| own.text == text && own.declared == declared && own.key.is(key));
        found.map(|own| own.prepared.clone())
    }

    /// What was looked at when this text was prepared last.
    pub(super) fn key(&self, text: &str, declared: &[Option<DataType>]) -> Option<PlanKey> {
        let all = self.0.lock();
        let found = all
            .iter()
            .find(|own| own.text == text && own.declared == declared);
        found.map(|own| own.key.clone())
    }

    /// Keeps a statement in the place of what was made of the same text, unless that is too long; the oldest goes.
    pub(super) fn keep(&self, description: Description) {
        if description.text.len() > LONGEST {
            return;
        }
        let mut all = self.0.lock();
        all.retain(|own| own.text != description.text || own.declared != description.declared);
        if all.len() >= DESCRIPTIONS {
            all.pop_front();
        }
        all.push_back(description);
    }
}

impl PreparedStatement {
    /// The types of its parameters.
    pub fn parameters(&self) -> &[DataType] {
        &self.parameters
    }

    /// The columns that it returned when it was prepared; none if it returns no rows. What it returns when it runs may
    /// have other types, if tables were changed or a parameter is another kind of number.
    pub fn columns(&self) -> Option<&SchemaRef> {
        self.columns.as_ref()
    }

    /// Which of its columns are columns of a table.
    pub fn origins(&self) -> &Origins {
        &self.origins
    }

    /// What it is called: `SELECT`, `INSERT`, `CREATE TABLE`, ...
    pub fn verb(&self) -> &'static str {
        self.verb
    }

    /// Whether it is a query that changes no table: `select`, `values`, `table`, `from`.
    pub fn is_query(&self) -> bool {
        self.is_query
    }

    /// A run with these texts for its parameters that goes by the plan for any values; none if it is planned with them.
    pub(super) fn by_generic_plan(&self, texts: &[Option<&str>]) -> Option<GenericRun> {
        let (Reading::Done(readied), Some(columns)) = (&self.readied, &self.columns) else {
            return None;
        };
        if !self.is_query || self.parameters.is_empty() || !self.generic.is_wanted() {
            return None;
        }
        let values = generic_plans::values(&self.parameters, texts)?;
        let texts = texts.iter().map(|text| text.map(str::to_owned));
        Some(GenericRun {
            generic: Arc::clone(&self.generic),
            readied: Arc::clone(readied),
            types: self.parameters.clone(),
            columns: Arc::clone(columns),
            values,
            texts: texts.collect(),
            constants: None,
        })
    }

    /// What it asks for with these texts for its parameters, if it is a query for the row of one key and each text is plainly
    /// of the type of its parameter.
    pub(super) fn asked(&self, values: &[Option<&str>]) -> Option<(&KeyQuery, Vec<KeyValue>)> {
        let asked = self.asked.as_ref()?;
        if values.len() != self.parameters.len() {
            return None;
        }
        let values = self.parameters.iter().zip(values);
        let values = values.map(|(data_type, text)| KeyValue::of_parameter(data_type, *text));
        Some((asked, values.collect::<Option<_>>()?))
    }
}
