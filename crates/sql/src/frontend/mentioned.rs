//! The columns that an expression names which a table [keeps](crate::frontend::kept) as a text: which they are, and what
//! the text is when they or the table get other names.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Ident, Visit, VisitMut, Visitor, VisitorMut};
use datafusion::sql::sqlparser::tokenizer::Tokenizer;

use crate::error::{Error, Result};
use crate::frontend::dialect::{self, DIALECT};
use crate::frontend::distinct;
use crate::frontend::rewritten::rewritten;
use crate::names::column_name;

/// The names of the columns in `text`, each once.
///
/// # Errors
/// If it is no expression.
pub(crate) fn columns(text: &str) -> Result<Vec<String>> {
    struct Named(Vec<String>);

    impl Visitor for Named {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            let name = match expr {
                Expr::Identifier(name) => Some(name),
                Expr::CompoundIdentifier(parts) => parts.last(),
                _ => None,
            };
            if let Some(name) = name.map(column_name)
                && !self.0.contains(&name)
            {
                self.0.push(name);
            }
            ControlFlow::Continue(())
        }
    }

    let mut named = Named(Vec::new());
    let _ = read(text)?.visit(&mut named);
    Ok(named.0)
}

/// `text` once the column `from` is called `to`.
///
/// # Errors
/// If it is no expression.
pub(crate) fn with_column(text: &str, from: &str, to: &str) -> Result<String> {
    let mut expr = read(text)?;
    let mut renamed = Renamed {
        from: Some(from),
        to,
    };
    let _ = VisitMut::visit(&mut expr, &mut renamed);
    Ok(expr.to_string())
}

/// `text` without the name of the table before those of its columns.
///
/// # Errors
/// If it is no expression.
pub(crate) fn without_table(text: &str) -> Result<String> {
    let mut expr = read(text)?;
    let mut plain = Renamed { from: None, to: "" };
    let _ = VisitMut::visit(&mut expr, &mut plain);
    Ok(expr.to_string())
}

/// Takes the names of tables away, and gives a column another name.
struct Renamed<'n> {
    from: Option<&'n str>,
    to: &'n str,
}

impl VisitorMut for Renamed<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let Some(last) = parts.pop()
        {
            *expr = Expr::Identifier(last);
        }
        if let Expr::Identifier(name) = expr
            && self.from == Some(&column_name(name))
        {
            *name = Ident::with_quote('"', self.to);
        }
        ControlFlow::Continue(())
    }
}

/// The expression as it was written.
///
/// # Errors
/// If it is none.
pub(super) fn read(text: &str) -> Result<Expr> {
    let lost = || Error::coded("42601", format!("{text}: expected one expression"));
    let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
    let tokens = rewritten(&tokens.map_err(|_| lost())?)?;
    let mut expr = dialect::parser(tokens).parse_expr()?;
    distinct::associate(&mut expr);
    Ok(expr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_named_and_renamed() {
        let text = "A + coalesce(t.\"B\", 1) > 2 AND a IS DISTINCT FROM 'a'";
        assert_eq!(columns(text).unwrap(), ["a", "B"]);
        assert_eq!(
            with_column(text, "a", "c d").unwrap(),
            "\"c d\" + coalesce(\"B\", 1) > 2 AND \"c d\" IS DISTINCT FROM ('a')"
        );
        assert_eq!(without_table("t.a * u").unwrap(), "a * u");
        assert!(columns("a +").is_err());
    }
}
