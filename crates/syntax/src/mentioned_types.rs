//! The types that texts which are kept name: in casts.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use messages::Result;
use sqlparser::ast::{ArrayElemTypeDef, DataType, Expr, Statement as Sql, Visitor};

use crate::names::written;
use crate::walk::Walk;
use crate::{expression, views};

/// Names of types that are not the system's, as they are [written](written).
pub type MentionedTypes = BTreeSet<String>;

struct Mentioned(MentionedTypes);

impl Visitor for Mentioned {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Cast { data_type, .. } => self.put(data_type),
            Expr::TypedString(typed) => self.put(&typed.data_type),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Mentioned {
    fn put(&mut self, data_type: &DataType) {
        match data_type {
            DataType::Custom(name, _) => self.0.extend(written(name)),
            DataType::Array(
                ArrayElemTypeDef::SquareBracket(item, _) | ArrayElemTypeDef::AngleBracket(item),
            ) => self.put(item),
            _ => {}
        }
    }
}

/// Those in the text of a view.
///
/// # Errors
/// If it is none.
pub fn of_view(text: &str) -> Result<MentionedTypes> {
    let mut found = Mentioned(MentionedTypes::new());
    let _ = Sql::Query(views::of_text(text)?.query).walk(&mut found);
    Ok(found.0)
}

/// Those in the text of an expression.
///
/// # Errors
/// If it is none.
pub fn of_expression(text: &str) -> Result<MentionedTypes> {
    let mut found = Mentioned(MentionedTypes::new());
    let _ = expression::expression(text)?.walk(&mut found);
    Ok(found.0)
}
