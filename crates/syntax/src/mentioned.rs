//! The columns that an expression names which a table [keeps](crate::kept) as a text: which they are, and what
//! the text is when they or the table get other names.

use std::collections::HashSet;
use std::ops::ControlFlow;

use messages::{Error, Result};
use sqlparser::ast::{AccessExpr, Expr, Ident, Visitor, VisitorMut};
use sqlparser::tokenizer::Tokenizer;

use crate::dialect::{self, DIALECT};
use crate::distinct;
use crate::names::column_name;
use crate::rewritten::rewritten;
use crate::walk::{Walk, WalkMut};

/// The names of the columns in `text`, each once.
///
/// # Errors
/// If it is no expression.
pub fn columns(text: &str) -> Result<Vec<String>> {
    #[derive(Default)]
    struct Named {
        found: Vec<String>,
        fields: Fields,
    }

    impl Visitor for Named {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            self.fields.put(expr);
            let name = match expr {
                Expr::Identifier(_) if self.fields.has(expr) => None,
                Expr::Identifier(name) => Some(name),
                Expr::CompoundIdentifier(parts) => parts.last(),
                _ => None,
            };
            if let Some(name) = name.map(column_name)
                && !self.found.contains(&name)
            {
                self.found.push(name);
            }
            ControlFlow::Continue(())
        }
    }

    let mut named = Named::default();
    let _ = read(text)?.walk(&mut named);
    Ok(named.found)
}

/// Names of fields, as of `a` in `(s).a`, which are no columns: where they stand in the tree that is visited.
#[derive(Default)]
struct Fields(HashSet<*const Expr>);

impl Fields {
    /// Keeps those of an expression whose parts are visited next.
    fn put(&mut self, expr: &Expr) {
        if let Expr::CompoundFieldAccess { access_chain, .. } = expr {
            let names = access_chain.iter().filter_map(|access| match access {
                AccessExpr::Dot(name @ Expr::Identifier(_)) => Some(std::ptr::from_ref(name)),
                _ => None,
            });
            self.0.extend(names);
        }
    }

    fn has(&self, expr: &Expr) -> bool {
        self.0.contains(&std::ptr::from_ref(expr))
    }
}

/// `text` once the column `from` is called `to`.
///
/// # Errors
/// If it is no expression.
pub fn with_column(text: &str, from: &str, to: &str) -> Result<String> {
    let mut expr = read(text)?;
    let mut renamed = Renamed {
        from: Some(from),
        to,
        fields: Fields::default(),
    };
    let _ = expr.walk_mut(&mut renamed);
    Ok(expr.to_string())
}

/// `text` without the name of the table before those of its columns.
///
/// # Errors
/// If it is no expression.
pub fn without_table(text: &str) -> Result<String> {
    let mut expr = read(text)?;
    let mut plain = Renamed {
        from: None,
        to: "",
        fields: Fields::default(),
    };
    let _ = expr.walk_mut(&mut plain);
    Ok(expr.to_string())
}

/// Takes the names of tables away, and gives a column another name.
struct Renamed<'n> {
    from: Option<&'n str>,
    to: &'n str,
    fields: Fields,
}

impl VisitorMut for Renamed<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.fields.put(expr);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.fields.has(expr) {
            return ControlFlow::Continue(());
        }
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
        assert_eq!(columns("(value).a <= (t.v).b.a").unwrap(), ["value", "v"]);
        assert_eq!(
            with_column("(a).a < (t.a).b", "a", "c").unwrap(),
            "(\"c\").a < (\"c\").b"
        );
        assert!(columns("a +").is_err());
    }
}
