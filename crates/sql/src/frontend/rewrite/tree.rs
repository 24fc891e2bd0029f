//! The rewrites of a syntax tree, in the order in which they must happen.

use datafusion::sql::sqlparser::ast::{Query, Statement, VisitMut};

use crate::error::Result;
use crate::frontend::flow::outcome;
use crate::frontend::rewrite::{
    assignments, calls, catalog, columns, expanded, grouping, qualified, rows, samples, series,
    sets, shape,
};

/// Rewrites a statement; the order of its steps matters.
pub(crate) fn statement(statement: &mut Statement) -> Result<()> {
    outcome(statement.visit(&mut rows::Tuples))?;
    assignments::spread(statement)?;
    outcome(statement.visit(&mut catalog::Catalog))?;
    outcome(statement.visit(&mut qualified::Qualified))?;
    outcome(statement.visit(&mut samples::Samples))?;
    outcome(statement.visit(&mut grouping::Grouping))?;
    outcome(statement.visit(&mut series::Alone))?;
    outcome(statement.visit(&mut sets::Tables))?;
    outcome(statement.visit(&mut shape::Shape))?;
    columns::name_statement(statement)?;
    outcome(statement.visit(&mut expanded::Expanded))?;
    outcome(statement.visit(&mut rows::Whole))?;
    outcome(statement.visit(&mut calls::Calls))?;
    outcome(statement.visit(&mut rows::Values::default()))
}

/// Rewrites a query that is not part of a statement.
pub(crate) fn query(query: &mut Query) -> Result<()> {
    outcome(query.visit(&mut rows::Tuples))?;
    outcome(query.visit(&mut catalog::Catalog))?;
    outcome(query.visit(&mut qualified::Qualified))?;
    outcome(query.visit(&mut samples::Samples))?;
    outcome(query.visit(&mut grouping::Grouping))?;
    outcome(query.visit(&mut series::Alone))?;
    outcome(query.visit(&mut sets::Tables))?;
    outcome(query.visit(&mut shape::Shape))?;
    columns::name_query(query)?;
    outcome(query.visit(&mut expanded::Expanded))?;
    outcome(query.visit(&mut rows::Whole))?;
    outcome(query.visit(&mut calls::Calls))?;
    outcome(query.visit(&mut rows::Values::default()))
}
