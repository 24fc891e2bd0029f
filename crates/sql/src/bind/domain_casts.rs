//! Casts to domains, composite types and arrays of these: a cast to the type behind, within a call of a function that tests
//! the value where there is something to test.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use catalog::search_path::SearchPath;
use datafusion_expr::ScalarUDF;
use sqlparser::ast::{CastKind, Expr, Statement as Sql, Value, VisitorMut};
use syntax::call::call;
use syntax::expression::expression;
use syntax::names::column_name;
use syntax::walk::WalkMut;
use table::Tables;

use crate::bind::composites;
use crate::error::{Error, Result};

/// The functions that casts to domains call, by their [names](function_name).
pub(crate) type DomainCasts = HashMap<String, Arc<ScalarUDF>>;

/// What stands in the text of a cast where the value goes. No column is called so.
const PLACE: &str = "\u{2}value";

/// Domains and composite types by their names in the catalog, each with the dimensions of the arrays of it that a cast is to.
pub(crate) type Cast = BTreeSet<(String, usize)>;

/// The name of the function that tests a value of a domain or a composite type, or of arrays of so many dimensions, which no
/// statement can write.
pub(crate) fn function_name(domain: &str, dimensions: usize) -> String {
    format!("\u{2}domain {dimensions} {domain}")
}

/// Puts such calls in the places of casts, and returns the domains that they are of.
///
/// # Errors
/// For casts that there are not.
pub(crate) fn take(statement: &mut Sql, tables: &Tables, path: &SearchPath) -> Result<Cast> {
    if tables.domains().is_empty() {
        return Ok(Cast::new());
    }
    let mut casts = Casts {
        tables,
        path,
        found: Cast::new(),
    };
    match statement.walk_mut(&mut casts) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(casts.found),
    }
}

struct Casts<'t> {
    tables: &'t Tables,
    path: &'t SearchPath,
    found: Cast,
}

impl VisitorMut for Casts<'_> {
    type Break = Error;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        match self.replaced(expr) {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some(call)) => {
                *expr = call;
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }
}

impl Casts<'_> {
    fn replaced(&mut self, expr: &mut Expr) -> Result<Option<Expr>> {
        let data_type = match expr {
            Expr::Cast { data_type, .. } => data_type,
            Expr::TypedString(typed) => &typed.data_type,
            _ => return Ok(None),
        };
        let Some((own, dimensions)) = composites::named(data_type, self.tables, self.path) else {
            return Ok(None);
        };
        let is_tested = composites::is_tested(own, self.tables)?;
        let value = match expr {
            Expr::Cast {
                kind: CastKind::TryCast | CastKind::SafeCast,
                ..
            } => {
                return Err(Error::unsupported(
                    "`try_cast` to a domain or a composite type is not supported: cast to the type behind it",
                ));
            }
            Expr::Cast { expr: inner, .. } => {
                let null = Expr::Value(Value::Null.with_empty_span());
                std::mem::replace(inner.as_mut(), null)
            }
            Expr::TypedString(typed) => Expr::Value(typed.value.clone()),
            _ => return Ok(None),
        };
        let behind = composites::behind(own, self.tables)?;
        let behind = composites::text(&composites::arrays_of(behind, dimensions));
        let mut cast = expression(&format!("cast(\"{PLACE}\" as {behind})"))?;
        let mut placed = Placed(&value);
        let _ = cast.walk_mut(&mut placed);
        if !is_tested {
            return Ok(Some(cast));
        }
        let call = call(&function_name(&own.name, dimensions), vec![cast]);
        self.found.insert((own.name.clone(), dimensions));
        Ok(Some(call))
    }
}

struct Placed<'e>(&'e Expr);

impl VisitorMut for Placed<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr
            && column_name(name) == PLACE
        {
            *expr = Expr::Nested(Box::new(self.0.clone()));
        }
        ControlFlow::Continue(())
    }
}
