//! The rewrites of a syntax tree, in the order in which they must happen.

use messages::Result;
use sqlparser::ast::{Query, Statement};

use crate::flow::outcome;
use crate::rewrite::{
    as_of, assignments, calls, catalog, columns, conditions, expanded, folders, grouping,
    introspection, objects, parts, qualified, queried, row_sets, rows, samples, series, sets,
    shape,
};
use crate::walk::WalkMut;

/// Rewrites a statement; the order of its steps matters.
pub fn statement(statement: &mut Statement) -> Result<()> {
    outcome(statement.walk_mut(&mut folders::Folders))?;
    outcome(statement.walk_mut(&mut as_of::Marks))?;
    outcome(statement.walk_mut(&mut rows::Tuples))?;
    outcome(statement.walk_mut(&mut row_sets::RowSets))?;
    assignments::spread(statement)?;
    if let Statement::Query(query) = statement {
        introspection::types(query)?;
        objects::shown(query);
    }
    outcome(statement.walk_mut(&mut objects::Named))?;
    outcome(statement.walk_mut(&mut parts::Parts))?;
    outcome(statement.walk_mut(&mut catalog::Catalog))?;
    outcome(statement.walk_mut(&mut qualified::Qualified))?;
    outcome(statement.walk_mut(&mut samples::Samples))?;
    outcome(statement.walk_mut(&mut grouping::Grouping))?;
    outcome(statement.walk_mut(&mut queried::Queried))?;
    outcome(statement.walk_mut(&mut series::Alone))?;
    outcome(statement.walk_mut(&mut sets::Tables))?;
    outcome(statement.walk_mut(&mut shape::Shape))?;
    columns::name_statement(statement)?;
    outcome(statement.walk_mut(&mut expanded::Expanded))?;
    outcome(statement.walk_mut(&mut rows::Whole))?;
    outcome(statement.walk_mut(&mut calls::Calls))?;
    outcome(statement.walk_mut(&mut rows::Values::default()))?;
    outcome(statement.walk_mut(&mut conditions::Conditions))
}

/// Rewrites a query that is not part of a statement.
pub(crate) fn query(query: &mut Query) -> Result<()> {
    outcome(query.walk_mut(&mut folders::Folders))?;
    outcome(query.walk_mut(&mut as_of::Marks))?;
    outcome(query.walk_mut(&mut rows::Tuples))?;
    outcome(query.walk_mut(&mut row_sets::RowSets))?;
    objects::shown(query);
    outcome(query.walk_mut(&mut objects::Named))?;
    outcome(query.walk_mut(&mut parts::Parts))?;
    outcome(query.walk_mut(&mut catalog::Catalog))?;
    outcome(query.walk_mut(&mut qualified::Qualified))?;
    outcome(query.walk_mut(&mut samples::Samples))?;
    outcome(query.walk_mut(&mut grouping::Grouping))?;
    outcome(query.walk_mut(&mut queried::Queried))?;
    outcome(query.walk_mut(&mut series::Alone))?;
    outcome(query.walk_mut(&mut sets::Tables))?;
    outcome(query.walk_mut(&mut shape::Shape))?;
    columns::name_query(query)?;
    outcome(query.walk_mut(&mut expanded::Expanded))?;
    outcome(query.walk_mut(&mut rows::Whole))?;
    outcome(query.walk_mut(&mut calls::Calls))?;
    outcome(query.walk_mut(&mut rows::Values::default()))?;
    outcome(query.walk_mut(&mut conditions::Conditions))
}
