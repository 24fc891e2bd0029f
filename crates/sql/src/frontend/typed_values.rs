//! Constants in quotes in `values` beside values that are cast to an enum: they are values of it, too.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    DataType, Expr, Query, SetExpr, Statement as Sql, Value, Values, VisitMut, VisitorMut,
};
use table::Tables;

use crate::names::written;
use crate::search_path::SearchPath;

/// Casts such constants.
pub(crate) fn cast(statement: &mut Sql, tables: &Tables, path: &SearchPath) {
    if !tables.types().is_empty() {
        let _ = VisitMut::visit(statement, &mut Typed { tables, path });
    }
}

struct Typed<'t> {
    tables: &'t Tables,
    path: &'t SearchPath,
}

impl VisitorMut for Typed<'_> {
    type Break = ();

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.body(&mut query.body);
        ControlFlow::Continue(())
    }
}

impl Typed<'_> {
    fn body(&self, body: &mut SetExpr) {
        match body {
            SetExpr::Values(values) => self.values(values),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left);
                self.body(right);
            }
            _ => {}
        }
    }

    fn values(&self, values: &mut Values) {
        let width = values.rows.first().map_or(0, |row| row.content.len());
        for at in 0..width {
            let mut items = values.rows.iter().filter_map(|row| row.content.get(at));
            let Some(known) = items.find(|item| self.is_of_enum(item)).cloned() else {
                continue;
            };
            for row in &mut values.rows {
                let Some(item) = row.content.get_mut(at).filter(|item| is_text(item)) else {
                    continue;
                };
                let mut cast = known.clone();
                if let Some(place) = operand(&mut cast) {
                    std::mem::swap(place, item);
                    *item = cast;
                }
            }
        }
    }

    fn is_of_enum(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Nested(inner) => self.is_of_enum(inner),
            Expr::Cast {
                data_type: DataType::Custom(name, _),
                ..
            } => written(name).is_ok_and(|name| {
                let name = self.path.resolve_type(self.tables, &name);
                self.tables.named_type(&name).is_some()
            }),
            _ => false,
        }
    }
}

/// What a cast is of.
fn operand(cast: &mut Expr) -> Option<&mut Expr> {
    match cast {
        Expr::Nested(inner) => operand(inner),
        Expr::Cast { expr, .. } => Some(expr),
        _ => None,
    }
}

fn is_text(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_text(inner),
        Expr::Value(value) => matches!(value.value, Value::SingleQuotedString(_)),
        _ => false,
    }
}
