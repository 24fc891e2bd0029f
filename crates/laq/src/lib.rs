//! LAQ: a language of linear algebra over tables (L3), and how its programs become those of the engine.
//!
//! A program is a list of single assignments and one `return`. An attribute of a table is a bitmap matrix (a row for
//! each label, a column for each record, a one where the record has the label) or, for decimals and floats, a vector
//! of values; operators combine such matrices. `docs/reference/laq.md` explains the language to its users.
//!
//! ```
//! let program: laq::Program = "
//!     cheap = filter(lineitem.l_extendedprice < 1000)
//!     total = sum(krao(cheap, lineitem.l_extendedprice))
//!     return(total)
//! ".parse()?;
//! let error = "x = sum(".parse::<laq::Program>().unwrap_err();
//! assert_eq!(error.to_string(), "line 1, column 9: expected a matrix: a name, `table.attribute`, or an operator, found the end");
//! # Ok::<(), laq::Error>(())
//! ```
//!
//! What is known of a matrix is symbolic: over the records of which table it is, the conditions under which an element
//! is not zero, the labels of its rows, and its value. Operators combine these; nothing is computed before all of a
//! program is known, so that a chain of them becomes one pipeline.

mod catalog;
mod check;
mod error;
mod lex;
mod lower;
mod matrix;
mod parse;
mod show;
mod space;
mod syntax;
mod term;
mod tpch;

use engine::Prepared;
use table::Tables;

pub use error::{Error, Fault, Result, Span};
pub use syntax::Program;
pub use tpch::TPCH;

/// A program that was checked against tables and planned.
#[derive(Debug)]
pub struct Compiled {
    /// To be run.
    pub prepared: Prepared,
    matrices: Vec<[String; 4]>,
    returned: String,
}

/// Reads the program in `text` and plans it over `tables`.
///
/// # Errors
/// [`Error::Syntax`] and [`Error::Program`] with a place in the text, [`Error::Table`] if a dictionary cannot be read,
/// [`Error::Engine`] for what the engine cannot do.
pub async fn compile(text: &str, tables: &Tables) -> Result<Compiled> {
    let program: Program = text.parse()?;
    let mut catalog = catalog::Catalog::new(tables);
    // Shapes tell how many labels there are.
    for (table, column) in program.attributes() {
        if let Some(number) = catalog.number(table)
            && let Ok(position) = catalog.definition(number).position(column)
        {
            catalog.read_dictionary(number, position).await?;
        }
    }
    let checked = check::check(&program, text, catalog);
    let mut typed = checked.map_err(|wrong| Error::Program(wrong.in_text(text)))?;
    for (table, column) in lower::columns(&typed) {
        typed.catalog.read_dictionary(table, column).await?;
    }
    let prepared = lower::lower(&typed)?;
    Ok(Compiled {
        prepared,
        matrices: typed.listing,
        returned: program.result.to_string(),
    })
}

impl Compiled {
    /// The program in readable form, a line each: its matrices with operator, type and shape, then the stages that the
    /// engine runs, with their pipelines.
    pub fn explain(&self) -> Vec<String> {
        let width = |column: usize| {
            let cells = self.matrices.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0).min(60)
        };
        let widths = [width(0), width(2), width(3)];
        let mut lines = Vec::with_capacity(self.matrices.len() + 8);
        for [name, operator, kind, shape] in &self.matrices {
            let line = format!(
                "{name:a$} : {kind:b$} {shape:c$} = {operator}",
                a = widths[0],
                b = widths[1],
                c = widths[2]
            );
            lines.push(line);
        }
        lines.push(self.returned.clone());
        lines.push(String::new());
        lines.extend(self.prepared.explain());
        lines
    }
}
