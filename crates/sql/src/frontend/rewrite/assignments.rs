//! `set (a, b) = (1, 2)` assigns each column by itself.

use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, OnConflictAction, OnInsert, Statement,
};

/// Takes rows of columns and values apart, in `update` and in `on conflict do update`. A row that gets anything but a
/// row of as many values is left as it is.
pub(super) fn spread(statement: &mut Statement) {
    match statement {
        Statement::Update(update) => all(&mut update.assignments),
        Statement::Insert(insert) => {
            if let Some(OnInsert::OnConflict(conflict)) = &mut insert.on
                && let OnConflictAction::DoUpdate(update) = &mut conflict.action
            {
                all(&mut update.assignments);
            }
        }
        _ => {}
    }
}

fn all(assignments: &mut Vec<Assignment>) {
    *assignments = std::mem::take(assignments)
        .into_iter()
        .flat_map(one)
        .collect();
}

fn one(assignment: Assignment) -> Vec<Assignment> {
    let Assignment { target, value } = assignment;
    match (target, value) {
        (AssignmentTarget::Tuple(names), Expr::Tuple(values)) if names.len() == values.len() => {
            let pairs = names.into_iter().zip(values);
            pairs
                .map(|(name, value)| Assignment {
                    target: AssignmentTarget::ColumnName(name),
                    value,
                })
                .collect()
        }
        (AssignmentTarget::Tuple(mut names), value) if names.len() == 1 => {
            let target = AssignmentTarget::ColumnName(names.swap_remove(0));
            vec![Assignment { target, value }]
        }
        (target, value) => vec![Assignment { target, value }],
    }
}
