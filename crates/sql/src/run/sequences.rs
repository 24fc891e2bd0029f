//! The sequences that a statement sees.

use std::sync::Arc;

use catalog::rights::Rights;
use catalog::search_path::SearchPath;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_expr::LogicalPlan;
use store::Store;
use syntax::names::{base, quoted, schema_of, session_of};
use table::{Position, Privileges, Sequence, Tables};

use crate::error::{Error, Result};
use crate::functions::sequences::{Numbers, calls, relation};
use crate::messages::nearest::{unknown_column, unknown_table};
use crate::resources::sequences::{Sequences, SessionNumbers};
use crate::run::context::StatementContext;

/// Sequences by the names that a statement has for them.
#[derive(Debug)]
struct Seen {
    store: Arc<Store>,
    sequences: Arc<Sequences>,
    session: Arc<SessionNumbers>,
    tables: Arc<Tables>,
    path: SearchPath,
    /// Whether the transaction of the statement only reads.
    read_only: bool,
    rights: Rights,
}

impl StatementContext {
    /// Gives the statement, which has its path, the functions over sequences. `session` is whose statement it is.
    pub(crate) fn with_numbers(
        mut self,
        session: &Arc<SessionNumbers>,
        read_only: bool,
    ) -> StatementContext {
        let of_path = |path: SearchPath, rights: Rights| -> Option<Arc<dyn Numbers>> {
            Some(Arc::new(Seen {
                store: Arc::clone(&self.instance.store),
                sequences: Arc::clone(&self.instance.sequences),
                session: Arc::clone(session),
                tables: Arc::clone(&self.tables),
                path,
                read_only,
                rights,
            }))
        };
        self.numbers = of_path(self.path.clone(), self.rights.clone());
        self.kept_numbers = of_path(SearchPath::kept(), Rights::all());
        self
    }

    /// What the functions over sequences ask in texts that are kept, such as defaults.
    pub(crate) fn numbers_of_kept(&self) -> Option<Arc<dyn Numbers>> {
        self.kept_numbers.clone()
    }

    /// Sees to it that a plan that asks sequences does so row by row in the order of its rows.
    ///
    /// # Errors
    /// None: walking a plan does not fail.
    pub(crate) fn in_order(&mut self, plan: &LogicalPlan) -> Result<()> {
        if asks(plan)? {
            let options = self.planner.config_mut().options_mut();
            options.execution.target_partitions = 1;
        }
        Ok(())
    }
}

/// Whether a plan asks sequences.
fn asks(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            found |= calls(expr)? > 0;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(found)
}

/// The sequence called `name`.
///
/// # Errors
/// If there is none, or something else has the name.
pub(crate) fn sequence<'t>(tables: &'t Tables, name: &str) -> Result<&'t Arc<Sequence>> {
    match tables.sequence(name) {
        Some(sequence) => Ok(sequence),
        None if tables.get(name).is_some() || tables.view(name).is_some() => Err(Error::coded(
            "42809",
            format!("\"{name}\" is not a sequence"),
        )),
        None => Err(Error::coded(
            "42P01",
            format!("relation \"{name}\" does not exist"),
        )),
    }
}

impl Seen {
    /// The name in the catalog of the sequence or table that a text names.
    fn name(&self, text: &str) -> Result<String> {
        Ok(self.path.resolve(&self.tables, &relation(text)?))
    }

    /// That the statement may change a sequence: a transaction that only reads changes those of its session.
    fn may(&self, what: &str, name: &str) -> Result<()> {
        if self.read_only && session_of(name).is_none() {
            return Err(Error::Transaction {
                code: "25006",
                message: format!("cannot execute {what}() in a read-only transaction"),
            });
        }
        Ok(())
    }
}

impl Seen {
    /// That a sequence may be asked: one of these privileges is enough.
    fn permits(&self, name: &str, any: &[Privileges]) -> Result<()> {
        let held = |wanted: &&Privileges| self.rights.has(&self.tables, name, **wanted);
        let wanted = any.iter().find(held).or(any.first());
        let wanted = wanted.copied().unwrap_or_default();
        self.rights.check(&self.tables, name, wanted)
    }
}

impl Numbers for Seen {
    fn next(&self, name: &str, count: usize) -> Result<Vec<i64>> {
        let name = self.name(name)?;
        let own = sequence(&self.tables, &name)?;
        self.may("nextval", &name)?;
        self.permits(&name, &[Privileges::USAGE, Privileges::UPDATE])?;
        let given = self.sequences.next(&self.store, &name, own, count)?;
        if let Some(last) = given.last() {
            self.session.got(own.number, *last);
        }
        Ok(given)
    }

    fn current(&self, name: &str) -> Result<i64> {
        let name = self.name(name)?;
        let own = sequence(&self.tables, &name)?;
        self.permits(&name, &[Privileges::USAGE, Privileges::SELECT])?;
        self.session.of(own.number).ok_or_else(|| {
            Error::coded(
                "55000",
                format!("currval of sequence \"{name}\" is not yet defined in this session"),
            )
        })
    }

    fn last(&self) -> Result<i64> {
        let newest = self.session.newest();
        let there = newest.filter(|number| {
            let mut names = self.tables.sequences().into_iter();
            names.any(|name| {
                self.tables
                    .sequence(name)
                    .is_some_and(|own| own.number == *number)
            })
        });
        let last = there.and_then(|number| self.session.of(number));
        last.ok_or_else(|| Error::coded("55000", "lastval is not yet defined in this session"))
    }

    fn set(&self, name: &str, value: i64, called: bool) -> Result<()> {
        let name = self.name(name)?;
        let own = sequence(&self.tables, &name)?;
        self.may("setval", &name)?;
        self.permits(&name, &[Privileges::UPDATE])?;
        if !(own.min..=own.max).contains(&value) {
            return Err(Error::Arithmetic {
                code: "22003",
                message: format!(
                    "setval: value {value} is out of bounds for sequence \"{name}\" ({}..{})",
                    own.min, own.max
                ),
            });
        }
        let at = Position { value, called };
        self.sequences.set(&self.store, &name, own, at)?;
        if called {
            self.session.set(own.number, value);
        }
        Ok(())
    }

    fn owned(&self, table: &str, column: &str) -> Result<Option<String>> {
        let name = self.name(table)?;
        let Some(table) = self.tables.get(&name) else {
            return Err(unknown_table(&name, &self.tables));
        };
        let definition = table.definition();
        let mut columns = definition.columns.iter();
        let Some(own) = columns.find(|own| own.name == column) else {
            return Err(unknown_column(column, definition));
        };
        let name = own.sequences.first();
        let title = |name: &String| format!("{}.{}", quoted(schema_of(name)), quoted(base(name)));
        Ok(name.map(title))
    }
}
