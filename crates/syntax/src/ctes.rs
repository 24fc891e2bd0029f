//! Common table expressions that are computed once, as PostgreSQL computes them: those that are read more than once and
//! whose rows may be others each time.
//!
//! The planner copies the plan of a common table expression to each place that reads it. [`mark`] puts what is to be
//! computed once into a subquery with a name by which [`crate::run::ctes`] finds all copies.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use messages::{Error, Result};
use sqlparser::ast::{
    Cte, Distinct, Expr, Ident, ObjectName, Query, Select, SetExpr, Statement as Sql, TableFactor,
    Visitor, VisitorMut,
};

use crate::expression::written;
use crate::flow::outcome;
use crate::names::{column_name, table_name};
use crate::walk::{Walk, WalkMut};

/// What the names of such subqueries begin with; the name of the common table expression follows.
pub const ONCE: &str = "computed once: ";

/// Functions whose values depend on the order in which rows come, where none is asked for or rows are equal in it: several
/// workers deliver them in another order each time.
const ASK_THE_ORDER: [&str; 12] = [
    "any_value",
    "array_agg",
    "first_value",
    "group_concat",
    "lag",
    "last_value",
    "lead",
    "listagg",
    "nth_value",
    "ntile",
    "row_number",
    "string_agg",
];

/// Marks the common table expressions of `statement` that are to be computed once. `is_volatile` says of the name of a
/// function whether its value may be another each time.
///
/// # Errors
/// None that a statement could cause.
pub fn mark(statement: &mut Sql, is_volatile: &dyn Fn(&str) -> bool) -> Result<()> {
    outcome(statement.walk_mut(&mut Marks {
        is_volatile,
        marked: 0,
    }))
}

struct Marks<'f> {
    is_volatile: &'f dyn Fn(&str) -> bool,
    /// How many there are so far: two queries may each have one of the same name.
    marked: usize,
}

impl VisitorMut for Marks<'_> {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<Error>> {
        match self.query(query) {
            Ok(()) => ControlFlow::Continue(()),
            Err(e) => ControlFlow::Break(Box::new(e)),
        }
    }
}

impl Marks<'_> {
    fn query(&mut self, query: &mut Query) -> Result<()> {
        let Some(with) = query.with.as_ref().filter(|with| !with.recursive) else {
            return Ok(());
        };
        check_copies(&with.cte_tables)?;
        let (mut changing, mut once) = (HashSet::new(), Vec::new());
        for cte in &with.cte_tables {
            let name = column_name(&cte.alias.name);
            let mut reads = Reads::new(self.is_volatile, &changing);
            let _ = cte.query.walk(&mut reads);
            let is_changing = reads.is_changing;
            once.push(is_changing && readers(query, &name) > 1);
            if is_changing {
                changing.insert(name);
            }
        }
        let with = query.with.iter_mut().flat_map(|with| &mut with.cte_tables);
        for (cte, _) in with.zip(once).filter(|(_, once)| *once) {
            self.wrap(cte)?;
        }
        Ok(())
    }

    /// Puts the query of `cte` into a subquery with a mark for a name.
    fn wrap(&mut self, cte: &mut Cte) -> Result<()> {
        self.marked += 1;
        let name = &cte.alias.name.value;
        let mark = match self.marked {
            1 => format!("{ONCE}{name}"),
            number => format!("{ONCE}{name}, {number}"),
        };
        let inner = std::mem::replace(&mut cte.query, written("select * from (select 1) as once")?);
        let SetExpr::Select(select) = cte.query.body.as_mut() else {
            return Ok(());
        };
        for from in &mut select.from {
            if let TableFactor::Derived {
                subquery,
                alias: Some(alias),
                ..
            } = &mut from.relation
            {
                alias.name = Ident::with_quote('"', mark);
                *subquery = inner;
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Most copies that the planner makes of the parts of a `with`. It walks through all of them: this many take a second.
const MOST_COPIES: u64 = 10_000;

/// Refuses a `with` whose parts read those before them so often that the planner would not end: twelve parts, each of which
/// reads the one before it twice, are 4,096 copies of the first.
fn check_copies(ctes: &[Cte]) -> Result<()> {
    let mut copies: HashMap<String, u64> = HashMap::new();
    for cte in ctes {
        struct Named<'c>(&'c HashMap<String, u64>, u64);
        impl Visitor for Named<'_> {
            type Break = ();

            fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
                let read = table_name(relation).ok();
                let read = read.and_then(|name| self.0.get(&name).copied());
                self.1 = self.1.saturating_add(read.unwrap_or(0));
                ControlFlow::Continue(())
            }
        }
        let mut named = Named(&copies, 1);
        let _ = cte.query.walk(&mut named);
        let all = named.1;
        if all > MOST_COPIES {
            return Err(Error::TooComplex {
                message: format!(
                    "the parts of this `with` read each other so often that \"{}\" alone has over {MOST_COPIES} of them in it: put the rows of some of them into tables",
                    cte.alias.name.value
                ),
            });
        }
        copies.insert(column_name(&cte.alias.name), all);
    }
    Ok(())
}

/// How many places of `query` read rows by `name`.
fn readers(query: &Query, name: &str) -> usize {
    struct Count<'n>(&'n str, usize);
    impl Visitor for Count<'_> {
        type Break = ();

        fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
            self.1 += usize::from(table_name(relation).is_ok_and(|read| read == self.0));
            ControlFlow::Continue(())
        }
    }
    let mut count = Count(name, 0);
    let _ = query.walk(&mut count);
    count.1
}

/// Whether a query's rows may be others each time.
struct Reads<'a> {
    is_volatile: &'a dyn Fn(&str) -> bool,
    /// The common table expressions before it whose rows may.
    changing: &'a HashSet<String>,
    is_changing: bool,
}

impl<'a> Reads<'a> {
    fn new(is_volatile: &'a dyn Fn(&str) -> bool, changing: &'a HashSet<String>) -> Reads<'a> {
        Reads {
            is_volatile,
            changing,
            is_changing: false,
        }
    }
}

impl Visitor for Reads<'_> {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        self.is_changing |= table_name(relation).is_ok_and(|name| self.changing.contains(&name));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && let Some(name) = function.name.0.last().and_then(|part| part.as_ident())
        {
            let name = column_name(name);
            self.is_changing |= (self.is_volatile)(&name) || ASK_THE_ORDER.contains(&&*name);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.is_changing |= query.limit_clause.is_some() || query.fetch.is_some();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.is_changing |= matches!(select.distinct, Some(Distinct::On(_)));
        ControlFlow::Continue(())
    }
}
