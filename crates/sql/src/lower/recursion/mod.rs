//! `with recursive` as an external source of the engine.
//!
//! The rows that it begins with, and those of its term, are programs of the engine. A run of it goes on in [rounds](rounds) as the
//! query around it takes its rows, so that `limit` ends a recursion that would never end:
//!
//! * A term of projections and filters over the rows of the round before is computed [as it is](direct), batch by batch, which takes a
//!   hundredth of the time that a program takes for the one row that a round often has.
//! * Any other term is a program with a [working table](engine::WorkingTable). Join tables of relations that stay the same are built in the
//!   first round alone.

mod direct;
mod rounds;
mod seen;

use std::sync::Arc;

use crate::planner::Planner;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_common::Result as DataFusionResult;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_execution::TaskContext;
use datafusion_expr::{LogicalPlan, RecursiveQuery};
use engine::{Error, ExternalPart, ExternalParts, ExternalSource, Opening, Prepared, Result};
use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::{self, StreamExt};
use parking_lot::Mutex;

use crate::functions::present::Memory;
use crate::lower::call::failed;
use crate::lower::recursion::direct::Direct;
use crate::lower::recursion::rounds::{Rounds, Way};
use crate::optimize::working_table::WorkTable;

/// The number of a working table of which there is none.
const NO_TABLE: u64 = u64::MAX;

/// A recursive query.
#[derive(Debug)]
pub(super) struct Recursion {
    name: String,
    /// Its columns, in all of which the term may have NULLs.
    schema: SchemaRef,
    /// The rows that it begins with.
    first: Prepared,
    term: Term,
    /// Whether it is `union`, and no row comes twice.
    distinct: bool,
    /// What functions run with.
    task: Arc<TaskContext>,
}

/// The rows of a round.
#[derive(Debug)]
pub(super) enum Term {
    Direct(Arc<Direct>),
    /// A program, and the number of its working table.
    Program(Prepared, u64),
}

impl Recursion {
    /// The recursive query `query`, whose rows begin with those of `first`. Functions of it run with `task`.
    pub fn new(
        query: &RecursiveQuery,
        first: Prepared,
        term: Term,
        task: &Arc<TaskContext>,
    ) -> Recursion {
        Recursion {
            name: format!("recursive query {}", query.name),
            schema: nullable(query.static_term.schema().as_arrow()),
            first,
            term,
            distinct: query.is_distinct,
            task: Arc::clone(task),
        }
    }

    fn programs(&self) -> impl Iterator<Item = &Prepared> {
        let term = match &self.term {
            Term::Program(prepared, _) => Some(prepared),
            Term::Direct(_) => None,
        };
        std::iter::once(&self.first).chain(term)
    }

    fn rounds(&self, opening: &Opening<'_>) -> Result<Rounds> {
        let first = self.first.rounds(NO_TABLE, opening)?;
        let way = match &self.term {
            Term::Direct(direct) => Way::Direct(Arc::clone(direct)),
            Term::Program(term, number) => Way::Program(Box::new(term.rounds(*number, opening)?)),
        };
        Rounds::new(first, way, (&self.schema, self.distinct), opening)
    }
}

fn nullable(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter();
    let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<Field>>()))
}

impl Term {
    /// The term of a recursive query, if it is computed directly, and the number of its working table.
    ///
    /// # Errors
    /// If the query refers to itself more than once; those of the term's expressions.
    pub fn direct(planner: &Planner, query: &RecursiveQuery) -> Result<(Option<Term>, u64)> {
        let (name, term) = (query.name.as_str(), &*query.recursive_term);
        let number = match references(term, name).map_err(failed)?[..] {
            // The rules have found that it has no rows of the round before.
            [] => NO_TABLE,
            [number] => number,
            _ => {
                let message = format!(
                    "recursive reference to query \"{name}\" must not appear more than once"
                );
                let e = crate::error::Error::coded("42P19", message);
                return Err(Error::Call(Box::new(e)));
            }
        };
        let direct = Direct::of(planner, term, number).map_err(failed)?;
        let term = direct.map(|own| Term::Direct(Arc::new(own)));
        Ok((term, number))
    }
}

/// The numbers of the working tables of the recursive query `name` that `plan` reads, each as often as it does. One within it may
/// have the same name.
fn references(plan: &LogicalPlan, name: &str) -> DataFusionResult<Vec<u64>> {
    let mut found = Vec::new();
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) => {
                if let Some(table) = scan.source.downcast_ref::<WorkTable>()
                    && table.name == name
                {
                    found.push(table.working.number());
                }
            }
            LogicalPlan::RecursiveQuery(other) => {
                found.extend(references(&other.static_term, name)?);
                if other.name != name {
                    found.extend(references(&other.recursive_term, name)?);
                }
                return Ok(TreeNodeRecursion::Jump);
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

impl ExternalSource for Recursion {
    fn name(&self) -> &str {
        &self.name
    }

    fn parts(&self) -> usize {
        1
    }

    fn open(&self, opening: &Opening<'_>) -> Result<Arc<dyn ExternalParts>> {
        // One round follows on the other: the first of several readers has all.
        let rounds = match opening.share {
            (0, _) => Some(self.rounds(opening)?),
            _ => None,
        };
        let memory = Memory::beginning(self.task.session_config().options());
        Ok(Arc::new(Part {
            rounds: Mutex::new(rounds),
            memory,
        }))
    }

    fn is_lazy(&self) -> bool {
        true
    }

    fn reads_working_table(&self, number: u64) -> bool {
        let own = matches!(&self.term, Term::Program(_, own) if *own == number);
        let mut programs = self.programs();
        !own && programs.any(|program| program.reads_working_table(number))
    }

    fn explain(&self) -> Vec<String> {
        let mut lines = vec!["the rows it begins with:".to_owned()];
        let indented = |line: String| format!("  {line}");
        lines.extend(self.first.explain().into_iter().map(indented));
        lines.push("each round:".to_owned());
        match &self.term {
            Term::Direct(direct) => lines.extend(direct.explain().into_iter().map(indented)),
            Term::Program(term, _) => lines.extend(term.explain().into_iter().map(indented)),
        }
        lines
    }
}

/// The one part of a recursive query, until it is taken.
struct Part {
    rounds: Mutex<Option<Rounds>>,
    memory: Memory,
}

impl ExternalParts for Part {
    fn next(&self) -> BoxFuture<'_, Result<Option<ExternalPart>>> {
        let rounds = self.rounds.lock().take();
        let part = rounds.map(|rounds| {
            let memory = self.memory.clone();
            let mut rows = stream::try_unfold(rounds, |mut rounds| async move {
                let rows = rounds.next().await?;
                Ok(rows.map(|rows| (rows, rounds)))
            })
            .boxed();
            let rows = stream::poll_fn(move |cx| memory.during(|| rows.poll_next_unpin(cx)));
            ExternalPart {
                number: 0,
                rows: rows.boxed(),
            }
        });
        ready(Ok(part)).boxed()
    }
}
