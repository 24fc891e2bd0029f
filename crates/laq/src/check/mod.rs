//! Checking a program: each operator's operands must have shapes that go together.
//!
//! The [`Checker`] knows the matrices so far; [`operators`], [`outer`], [`element`] and [`answer`] are parts of it, which call each
//! other as the parts of a program hold each other.

mod answer;
mod case;
mod checker;
pub(crate) mod element;
mod operators;
mod outer;

use std::collections::HashMap;

use crate::catalog::Catalog;
use crate::check::checker::Checker;
use crate::error::{Checked, wrong};
use crate::syntax::{Name, Program};
use crate::term::Terms;

pub(crate) use crate::check::answer::Answer;

/// A program whose matrices fit.
pub(crate) struct Typed<'t> {
    pub catalog: Catalog<'t>,
    pub terms: Terms,
    pub answer: Answer,
    /// Name, operator, kind and shape of each matrix.
    pub listing: Vec<[String; 4]>,
}

/// Checks `program`, which was read from `text`.
pub(crate) fn check<'t>(
    program: &Program,
    text: &'t str,
    catalog: Catalog<'t>,
) -> Checked<Typed<'t>> {
    let mut checker = Checker {
        catalog,
        terms: Terms::default(),
        names: HashMap::new(),
        text,
    };
    let mut listing = Vec::with_capacity(program.assignments.len());
    for assignment in &program.assignments {
        let Name { text, span } = &assignment.name;
        if checker.names.contains_key(text) {
            let what = format!("`{text}` has a value already; each name gets one");
            return wrong(*span, what);
        }
        let matrix = checker.operand(&assignment.value)?;
        listing.push([
            assignment.name.to_string(),
            assignment.value.to_string(),
            matrix.kind().into(),
            checker.shape(&matrix),
        ]);
        checker.names.insert(text.clone(), matrix);
    }
    let answer = checker.answer(&program.result)?;
    Ok(Typed {
        catalog: checker.catalog,
        terms: checker.terms,
        answer,
        listing,
    })
}
