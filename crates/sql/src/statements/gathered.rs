//! Rows that a transaction has taken and not written yet: those of [inserts of one row](RowInsert).
//!
//! To plan such an insert, and to write its row into the tail of its table, takes many times as long as to take the row. So in
//! a transaction of several statements it is looked at alone: that it has the types of its columns, passes the checks, and
//! that no row has its keys. It is written with those that follow it, before any other statement of the transaction
//! [enters](Entered::new), before a savepoint and before the commit. Who reads finds it there, and what is undone with it is
//! dropped with it.
//!
//! A row that would have to be converted, or that is refused, is left to the insert itself: it gives the error.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use futures::stream;
use table::{Definition, KeySet, Table};

use crate::error::{Error, Result};
use crate::frontend::row_insert::{Cell, Given, RowInsert};
use crate::resources::budget::{Held, footprint};
use crate::resources::guard;
use crate::run::answer::Answer;
use crate::run::checks::Checks;
use crate::run::instance::Instance;
use crate::run::stream::AnswerStream;
use crate::search_path::Setting;
use crate::statements::entered::{Entered, Shared};
use crate::statements::gathered_columns::Columns;
use crate::statements::looked_up::caught;
use crate::statements::scope::{Look, Scope};
use crate::statements::session::Session;
use crate::statements::transaction::{OpenTransaction, clock};

/// Rows that become one batch at a time.
const TOGETHER: usize = 1024;
/// Or so many bytes of texts.
const TOGETHER_BYTES: usize = 1 << 20;
/// Most rows of a table that wait: a block of it.
const MOST_ROWS: usize = 65_536;
/// Most bytes of them.
const MOST_BYTES: u64 = 16 << 20;
/// Most tables that rows wait for.
const MOST_TABLES: usize = 8;

/// What a name meant when the first row came.
#[derive(Clone, Debug, PartialEq)]
struct Meant {
    /// The table as statements write it.
    written: String,
    /// Where names are looked up.
    path: Setting,
    /// Whose rights were looked at.
    role: Option<Arc<str>>,
}

/// Rows for a table.
#[derive(Debug)]
pub(crate) struct Gathered {
    meant: Meant,
    table: Arc<Table>,
    pub(super) checks: Checks,
    /// Whether each row is looked at by itself: the table has checks or keys.
    each: bool,
    /// The keys of the rows, for each key that holds.
    seen: Vec<KeySet>,
    /// The last rows.
    last: Columns,
    batches: Vec<RecordBatch>,
    /// All rows.
    rows: usize,
    bytes: u64,
    held: Held,
}

impl Gathered {
    fn new(meant: Meant, table: Arc<Table>, checks: Checks, held: Held) -> Gathered {
        let definition = table.definition();
        Gathered {
            meant,
            checks,
            each: !definition.checks.is_empty() || !definition.keys.is_empty(),
            seen: vec![KeySet::default(); definition.keys.len()],
            last: Columns::new(table.schema()),
            table,
            batches: Vec::new(),
            rows: 0,
            bytes: 0,
            held,
        }
    }

    pub(super) fn definition(&self) -> &Definition {
        self.table.definition()
    }

    /// Takes a row; false if it is refused, or is of a key that another has.
    ///
    /// # Errors
    /// Those of reading the index.
    async fn take(&mut self, row: Vec<Cell<'_>>) -> Result<bool> {
        if self.last.lacks(&row) || self.each && !self.passes(row.clone()).await? {
            return Ok(false);
        }
        self.last.push(row)?;
        self.rows += 1;
        Ok(true)
    }

    /// Whether a row passes the checks and has keys that no other has.
    async fn passes(&mut self, row: Vec<Cell<'_>>) -> Result<bool> {
        let mut one = Columns::new(self.table.schema());
        one.push(row)?;
        let row = table::normalise(&one.finish()?, self.table.definition());
        let row = row.map_err(Error::from);
        let Ok(row) = row.and_then(|row| self.checks.test(row)) else {
            return Ok(false);
        };
        let keys = &self.table.definition().keys;
        for (key, seen) in keys.iter().zip(&mut self.seen) {
            let values = row.project(&key.columns)?.columns().to_vec();
            let is_there = self.table.find(key, &values).await?;
            let is_new = seen.take(&values)?;
            if is_there.iter().any(Option::is_some) || is_new.contains(&Some(false)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes one batch of the last rows if they are many, and says whether there is room for more.
    ///
    /// # Errors
    /// None but those of Arrow.
    fn has_room(&mut self) -> Result<bool> {
        if self.last.rows() < TOGETHER && self.last.bytes() < TOGETHER_BYTES {
            return Ok(true);
        }
        let more = self.together()?;
        let fits = self.held.more(more).is_ok();
        self.bytes += more;
        let keys: u64 = self.seen.iter().map(KeySet::bytes).sum();
        Ok(fits && self.rows < MOST_ROWS && self.bytes + keys < MOST_BYTES)
    }

    /// Makes one batch of the last rows, and says how many bytes it takes.
    fn together(&mut self) -> Result<u64> {
        if self.last.rows() == 0 {
            return Ok(0);
        }
        let batch = self.last.finish()?;
        let bytes = footprint(&batch);
        self.batches.push(batch);
        Ok(bytes)
    }

    /// All rows, in the order in which they came.
    pub(super) fn rows(&mut self) -> Result<Vec<RecordBatch>> {
        self.together()?;
        Ok(std::mem::take(&mut self.batches))
    }
}

/// Whether rows of a table can be taken without a plan: they make no values, and refer to no others.
fn is_plain(table: &Table) -> bool {
    let definition = table.definition();
    let mut columns = definition.columns.iter();
    definition.rules.is_empty()
        && columns.all(|own| own.generated.is_none() && own.domain.is_none())
        && definition.keys.iter().all(|key| table.has_index(key))
}

/// Takes the row of an insert, with these parameters, into the transaction in progress. None if there is none, or the insert
/// is to be run as others are.
///
/// # Errors
/// If the transaction has failed; those of writing rows that came before, and of reading indexes. It has failed after any of
/// them.
pub(crate) async fn within(
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
        if entered.gathered(&meant).is_none() {
            let begun;
            (entered, begun) = begin(entered, meant.clone(), started).await?;
            if !begun {
                entered.succeed();
                return Ok(false);
            }
        }
        let mut taken = false;
        let mut room = true;
        if let Some(gathered) = entered.gathered(&meant)
            && let Some(row) = insert.cells(gathered.table.definition(), given)
        {
            taken = gathered.take(row).await?;
            room = gathered.has_room()?;
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
    fn now(scope: &Scope<'_>, written: &str) -> Meant {
        Meant {
            written: written.to_owned(),
            path: scope.session_path().setting(),
            role: scope.role(),
        }
    }
}

/// Begins to gather rows for a table, with the right to write to it; false if it is none for that.
async fn begin(mut entered: Entered, meant: Meant, started: Instant) -> Result<(Entered, bool)> {
    let full = entered
        .transaction()
        .is_some_and(|open| open.gathered.len() >= MOST_TABLES);
    let name = plain_name(&mut entered.scope(), &meant.written)?;
    let Some(name) = name.filter(|_| !full) else {
        return Ok((entered, false));
    };
    let instance = Arc::clone(entered.instance());
    let work = async move {
        let mut scope = entered.scope();
        // What it could write to is dropped: it is for the right to.
        let (_, mut context) = scope.write("INSERT", &[&name], started).await?;
        let table = context.table(&name)?;
        let checks = Checks::new(&mut context, table.definition()).await?;
        let held = Held::of(context.budget());
        let gathered = Gathered::new(meant, table, checks, held);
        drop(scope);
        entered.gather(gathered);
        Ok((entered, true))
    };
    let work = guard::polled_with_room(guard::ROOMY, work);
    instance.on_workers(work).await
}

/// The name in the catalog of a table whose rows can be gathered.
fn plain_name(scope: &mut Scope<'_>, written: &str) -> Result<Option<String>> {
    if scope.has_given() {
        return Ok(None);
    }
    let Look::Tables(tables) = scope.look()? else {
        return Ok(None);
    };
    let name = scope.path().resolve(&tables, written);
    let table = tables.get(&name).filter(|table| is_plain(table));
    let is_table = table.is_some() && tables.materialized(&name).is_none();
    Ok(is_table.then_some(name))
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
            let (writing, _) = self
                .write(instance, "INSERT", &names, Instant::now())
                .await?;
            let rows = stream::iter(rows.into_iter().map(Ok));
            let appended = writing.append(definition, &gathered.checks, rows, width);
            let (writing, _) = appended.await?;
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

    fn gather(&mut self, gathered: Gathered) {
        if let Some(open) = self.transaction() {
            open.gathered.push(gathered);
        }
    }
}
