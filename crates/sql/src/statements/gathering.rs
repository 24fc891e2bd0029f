//! How a transaction gathers the rows of single inserts, and writes them: see [`gathered`](crate::statements::gathered).

use std::sync::Arc;
use std::time::Instant;

use futures::stream;
use syntax::depth;
use table::{Column, Deferral, Definition, Rule, Table};

use crate::bind::row_insert::RowInsert;
use crate::bind::row_values::Given;
use crate::error::Result;
use crate::functions::temporal::local::Local;
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::run::instance::Instance;
use crate::run::stream::AnswerStream;
use crate::statements::entered::{Entered, Shared};
use crate::statements::gathered::{Gathered, Meant};
use crate::statements::gathered_references::Reference;
use crate::statements::looked_up::caught;
use crate::statements::references::{self, Children, Parents};
use crate::statements::scope::Scope;
use crate::statements::session::Session;
use crate::statements::transaction::{OpenTransaction, clock};
use crate::statements::write::Writing;

/// Most tables that rows wait for.
const MOST_TABLES: usize = 8;

/// Whether rows of a table can be taken without a plan: they compute no values, and refer neither to one another nor to what
/// may come later.
fn is_plain(table: &Table) -> bool {
    let definition = table.definition();
    let mut columns = definition.columns.iter();
    let is_computed = |own: &Column| own.generated.is_some() && own.identity().is_none();
    let is_late = |rule: &Rule| {
        let parent = &definition.foreign_keys[rule.foreign_key].parent;
        *parent == definition.name || rule.deferral == Deferral::Deferred
    };
    columns.all(|own| !is_computed(own) && own.domain.is_none())
        && !definition.rules.iter().any(is_late)
        && definition.keys.iter().all(|key| table.has_index(key))
}

/// Takes the row of an insert, with these parameters, into the transaction in progress. None if there is none, or the insert
/// is to be run as others are.
///
/// # Errors
/// If the transaction has failed; those of writing rows that came before, and of reading indexes. It has failed after any of
/// them.
async fn within(
    instance: &Arc<Instance>,
    shared: Shared,
    (insert, given): (&RowInsert, Given<'_>),
    started: Instant,
) -> Result<Option<Answer>> {
    if shared.always_plans() {
        return Ok(None);
    }
    let work = async {
        let mut entered = Entered::beside_gathered(Arc::clone(instance), shared).await?;
        if !entered.is_within() {
            return Ok(false);
        }
        let meant = Meant::now(&entered.scope(), &insert.table);
        if entered.may_refer(&meant) {
            entered.succeed();
            return Ok(false);
        }
        if entered.gathered(&meant).is_none() {
            let begun;
            (entered, begun) = begin(entered, meant.clone(), started).await?;
            if !begun {
                entered.succeed();
                return Ok(false);
            }
        }
        let is_local = entered.gathered(&meant).is_some_and(|own| own.local);
        let given = Given {
            local: if is_local {
                entered.scope().local()
            } else {
                Local::PLAIN
            },
            ..given
        };
        let mut taken = false;
        let mut room = true;
        if let Some(gathered) = entered.gathered(&meant) {
            let defaults = Arc::clone(&gathered.defaults);
            if let Some(row) = insert.cells(gathered.definition(), &defaults, given) {
                taken = gathered.take(row).await?;
                room = gathered.has_room()?;
            }
        }
        if !room {
            entered = entered.write_gathered().await?;
        }
        entered.succeed();
        Ok(taken)
    };
    let taken = caught(work).await?;
    Ok(taken.then(|| Answer::changed(Some(1), &clock(instance, started))))
}

impl Meant {
    fn now(scope: &Scope<'_>, written: &Arc<str>) -> Meant {
        Meant {
            written: Arc::clone(written),
            path: scope.session_path().setting(),
            role: scope.role(),
        }
    }
}

/// Begins to gather rows for a table, with the right to write to it; false if it is none for that.
async fn begin(mut entered: Entered, meant: Meant, started: Instant) -> Result<(Entered, bool)> {
    let Some(table) = plain(&entered.scope(), &meant.written)? else {
        return Ok((entered, false));
    };
    let name = table.definition().name.clone();
    // Keys of a table that is called by two names would be looked for in one half of its rows, and rows that these may refer
    // to in none.
    let is_near = |own: &Gathered| {
        let own = &own.definition().name;
        let mut foreign = table.definition().foreign_keys.iter();
        *own == name || foreign.any(|foreign| foreign.parent == *own)
    };
    let others = entered.transaction().map(|open| &open.gathered);
    if others.is_some_and(|all| all.len() >= MOST_TABLES || all.iter().any(is_near)) {
        return Ok((entered, false));
    }
    let instance = Arc::clone(entered.instance());
    let work = async move {
        let mut scope = entered.scope();
        // What it could write to is dropped: it is for the right to.
        let (writing, mut context) = scope.write("INSERT", &[&name], started).await?;
        let table = context.table(&name)?;
        drop(scope);
        // With the turn came the newest tables: it may have been changed while others had it.
        if !is_plain(&table) {
            return Ok((entered, false));
        }
        let references = references(&context, &writing, table.definition())?;
        drop(writing);
        let Some(references) = references else {
            return Ok((entered, false));
        };
        let gathered = Gathered::new(meant, (table, references), &mut context).await?;
        entered.gather(gathered);
        Ok((entered, true))
    };
    let work = depth::polled_with_room(depth::ROOMY, work);
    instance.on_workers(work).await
}

/// What rows of a table refer to; none if they cannot be looked at one by one.
fn references(
    context: &StatementContext,
    writing: &Writing,
    definition: &Definition,
) -> Result<Option<Vec<Reference>>> {
    if definition.rules.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let tables = references::written(context, writing)?;
    Ok(Reference::all(context, &tables, definition))
}

/// The table of this name, if its rows can be gathered.
fn plain(scope: &Scope<'_>, written: &str) -> Result<Option<Arc<Table>>> {
    if scope.has_given() {
        return Ok(None);
    }
    // No snapshot is taken by this: that comes with the turn to write, which others may have until then.
    let tables = scope.tables()?;
    let name = scope.path().resolve(&tables, written);
    let table = tables.get(&name).filter(|table| is_plain(table));
    let is_table = tables.materialized(&name).is_none();
    Ok(table.filter(|_| is_table).cloned())
}

impl Session {
    /// How many rows the transaction in progress has taken and not written yet: for tests that see whether it does.
    #[doc(hidden)]
    pub fn rows_gathered(&self) -> usize {
        let open = self.shared();
        let open = open.try_lock();
        let open = open.as_ref().and_then(|open| open.as_ref());
        open.map_or(0, |open| open.gathered.iter().map(|own| own.rows).sum())
    }

    /// The answer of an insert of one row, with these parameters, whose row the transaction in progress has taken; none if the
    /// insert is to be run as others are. It is taken where this is awaited, as a row is looked up.
    pub(super) async fn gathered(
        &self,
        inserted: &RowInsert,
        given: Given<'_>,
        started: Instant,
    ) -> Result<Option<AnswerStream>> {
        let asked = (inserted, given);
        let answer = within(self.instance(), self.shared(), asked, started).await?;
        Ok(answer.map(|answer| {
            let mut answer = self.finished(answer);
            answer.verb = "INSERT";
            answer
        }))
    }
}

impl OpenTransaction {
    /// Writes the rows that were gathered.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn write_gathered(&mut self, instance: &Arc<Instance>) -> Result<()> {
        let width = instance.workers().width();
        for mut gathered in std::mem::take(&mut self.gathered) {
            let rows = gathered.rows()?;
            let definition = gathered.definition();
            let names = [definition.name.as_str()];
            let (writing, mut context) = self
                .write(instance, "INSERT", &names, Instant::now())
                .await?;
            let mut children = Children::new(definition);
            let rows = rows.into_iter().map(|rows| {
                children.take(&rows)?;
                Ok(rows)
            });
            let rows = stream::iter(rows);
            let appended = writing.append(definition, &gathered.checks, rows, width);
            let (writing, _) = appended.await?;
            let (table, parents) = (gathered.table(), Parents::default());
            let writing = references::follow(&mut context, writing, table, &children, parents);
            let writing = writing.await?;
            self.keep(writing)?;
        }
        Ok(())
    }
}

impl Entered {
    /// The rows that wait for what is meant.
    fn gathered(&mut self, meant: &Meant) -> Option<&mut Gathered> {
        let all = &mut self.transaction()?.gathered;
        all.iter_mut().find(|own| own.meant == *meant)
    }

    /// Whether the rows for what is meant may refer to others that wait: those are to be written first.
    fn may_refer(&mut self, meant: &Meant) -> bool {
        let Some(open) = self.transaction() else {
            return false;
        };
        let mut all = open.gathered.iter();
        let Some(own) = all.find(|own| own.meant == *meant) else {
            return false;
        };
        let mut names = open.gathered.iter().map(|other| &other.definition().name);
        names.any(|name| own.refers_to(name))
    }

    fn gather(&mut self, gathered: Gathered) {
        if let Some(open) = self.transaction() {
            open.gathered.push(gathered);
        }
    }
}
