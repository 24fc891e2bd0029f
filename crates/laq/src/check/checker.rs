//! The state of the checker: the matrices so far, and their names in messages.

use std::collections::HashMap;

use crate::catalog::Catalog;
use crate::error::Span;
use crate::matrix::{self, Matrix};
use crate::space::Space;
use crate::term::Terms;

/// The matrices of a program, as far as it was read.
pub(crate) struct Checker<'t> {
    pub catalog: Catalog<'t>,
    pub terms: Terms,
    pub names: HashMap<String, Matrix>,
    /// The program.
    pub text: &'t str,
}

impl Checker<'_> {
    /// The program's text at `span`, shortened and quoted for a message.
    pub fn quote(&self, span: Span) -> String {
        let text = self.text.get(span.start..span.end).unwrap_or_default();
        let one: Vec<&str> = text.split_whitespace().collect();
        let one = one.join(" ");
        if one.chars().count() > 40 {
            format!("`{}...`", one.chars().take(37).collect::<String>())
        } else {
            format!("`{one}`")
        }
    }

    pub fn shape(&self, matrix: &Matrix) -> String {
        matrix.shape(&self.catalog, &self.terms)
    }

    /// `60175 columns (rows of lineitem)`
    pub fn columns(&self, space: &Space) -> String {
        let (count, names) = matrix::columns(space, &self.catalog, &self.terms);
        format!("{count} columns ({})", names.unwrap_or_default())
    }

    /// `60175 rows (labels of orders.o_orderkey)`
    pub fn rows(&self, of: &Matrix) -> String {
        let labels = Space::Labels(of.domains());
        let (count, names) = matrix::columns(&labels, &self.catalog, &self.terms);
        match names {
            Some(names) => format!("{count} rows ({names})"),
            None => "1 row".into(),
        }
    }
}
