//! The columns that an `update` assigns.

use datafusion::sql::sqlparser::ast::{AssignmentTarget, ObjectName, ObjectNamePart, Update};

use crate::error::{Error, Result};
use crate::names::column_name;

/// Folds the names of assigned columns to lower case, which DataFusion does not do.
///
/// # Errors
/// If a column is assigned twice, or several at once.
pub(crate) fn fold_targets(statement: &mut Update) -> Result<()> {
    for assignment in &mut statement.assignments {
        let AssignmentTarget::ColumnName(ObjectName(parts)) = &mut assignment.target else {
            return Err(Error::unsupported(
                "`set (a, b) = ...` is not supported: assign each column by itself",
            ));
        };
        if let Some(ObjectNamePart::Identifier(ident)) = parts.last_mut() {
            ident.value = column_name(ident);
        }
    }
    let mut names: Vec<String> = statement
        .assignments
        .iter()
        .map(|a| a.target.to_string())
        .collect();
    names.sort();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::coded(
            "42601",
            format!("column {} is assigned twice", pair[0]),
        )),
        None => Ok(()),
    }
}
