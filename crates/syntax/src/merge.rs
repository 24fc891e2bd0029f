//! The grammar of `merge`.
//!
//! ```text
//! merge into [only] target [[as] name] using {source | (query)} [[as] name [(columns)]] on condition when ...
//! when = when matched [and condition] then {update set assignment, ... | delete | do nothing}
//!      | when not matched by source [and condition] then {update set assignment, ... | delete | do nothing}
//!      | when not matched [by target] [and condition] then {insert | do nothing}
//! and behind the clauses: returning {* | name.* | expression [[as] name]}, ...
//! insert = insert [(columns)] [overriding {system | user} value] {values (...) | default values}
//! ```

use std::ops::ControlFlow;

use messages::{Error, Result};
use sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, Ident, JoinOperator, ObjectNamePart, Query, SelectItem,
    SetExpr, TableAlias, TableFactor, Visitor, VisitorMut,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{IsOptional, Parser};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::merge_returning::{Returned, returned};
use crate::names::{column_name, written};
use crate::overriding::Overriding;
use crate::returning::{TARGET, plain_query};
use crate::walk::{Walk, WalkMut};
use crate::words::{self, is_next, need, unexpected, word};
use crate::{dialect, distinct, grammar, rewrite};

/// A `merge`.
#[derive(Clone, Debug)]
pub struct Merge {
    /// The table that it changes.
    pub target: String,
    /// What its rows are called.
    pub name: Ident,
    /// What the rows of the source are called.
    pub source: Ident,
    /// The pairs of rows, and the rows without another where a clause is for them: the columns of the target and its row
    /// id, then those of the source, and behind them [`PRESENT`] if a clause is for rows that no source has.
    pub pairs: Box<Query>,
    /// What is done with rows, the first that fits.
    pub clauses: Vec<Clause>,
    /// How many subqueries of clauses are computed with the pairs: these are the last columns, called [`subquery_name`].
    pub subqueries: usize,
    /// What is returned of each row.
    pub returning: Option<Vec<Returned>>,
}

/// The column that is true where a pair has a row of the source.
const PRESENT: &str = "__present";

/// One `when`.
#[derive(Clone, Debug)]
pub struct Clause {
    /// For which rows it is.
    pub when: When,
    /// What else must be true of them.
    pub condition: Option<Expr>,
    /// What is done with them.
    pub action: Action,
}

/// Which rows a clause is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Rows of both.
    Matched,
    /// Rows of the source alone.
    NotMatched,
    /// Rows of the target alone.
    NotMatchedBySource,
}

/// What becomes of them.
#[derive(Clone, Debug)]
pub enum Action {
    /// `do nothing`.
    Nothing,
    /// `delete`.
    Delete,
    /// `update set` these columns.
    Update(Vec<(String, Expr)>),
    /// `insert`.
    Insert {
        /// None for all.
        columns: Vec<String>,
        /// What becomes of values for identities.
        overriding: Option<Overriding>,
        /// None for `default values`.
        values: Option<Vec<Expr>>,
    },
}

/// Whether tokens begin a `merge`.
pub(super) fn begins(tokens: &[TokenWithSpan]) -> bool {
    words::leading(tokens).next().as_deref() == Some("merge")
}

/// Reads it.
///
/// # Errors
/// [`Error::Syntax`] with a place; [`Error::Unsupported`] for parts that there are not.
pub(super) fn statement(tokens: Vec<TokenWithSpan>) -> Result<Merge> {
    let mut parser = dialect::parser(tokens);
    need(&mut parser, "merge")?;
    need(&mut parser, "into")?;
    word(&mut parser, "only");
    let (target, name) = named(parser.parse_table_factor()?)?;
    let TableFactor::Table { name: table, .. } = &target else {
        return Err(grammar::refused("merge into anything but a table"));
    };
    let table = written(table)?;
    need(&mut parser, "using")?;
    let (source, own) = named(parser.parse_table_factor()?)?;
    if column_name(&own) == column_name(&name) {
        return Err(Error::coded(
            "42701",
            format!(
                "name \"{}\" specified more than once: it is used both as MERGE target table and data source",
                own.value
            ),
        ));
    }
    need(&mut parser, "on")?;
    let on = parser.parse_expr()?;
    let mut clauses = Vec::new();
    while is_next(&parser, "when") {
        clauses.push(clause(&mut parser)?);
    }
    if clauses.is_empty() {
        need(&mut parser, "when")?;
    }
    let returning = if word(&mut parser, "returning") {
        let items = parser.parse_comma_separated(Parser::parse_select_item)?;
        Some(returned(items)?)
    } else {
        None
    };
    words::end(&mut parser)?;
    reachable(&clauses)?;
    let subqueries = subqueries(&mut clauses, &name)?;
    Ok(Merge {
        target: table,
        subqueries: subqueries.len(),
        pairs: pairs(&name, (source, &own), on, (&clauses, subqueries))?,
        name,
        source: own,
        clauses,
        returning,
    })
}

/// The name of a column of the pairs that a subquery of a clause has become.
pub(crate) fn subquery_name(at: usize) -> String {
    format!("__subquery{at}")
}

/// Takes the subqueries out of clauses: they are computed with the pairs, and columns stand in their places.
///
/// # Errors
/// If one for rows that the target has not names a column of it.
fn subqueries(clauses: &mut [Clause], target: &Ident) -> Result<Vec<Expr>> {
    let mut taken = Taken::default();
    for clause in clauses {
        let before = taken.found.len();
        let mut exprs: Vec<&mut Expr> = clause.condition.iter_mut().collect();
        match &mut clause.action {
            Action::Update(assignments) => {
                exprs.extend(assignments.iter_mut().map(|(_, value)| value));
            }
            Action::Insert {
                values: Some(values),
                ..
            } => exprs.extend(values),
            _ => {}
        }
        for expr in exprs {
            let _ = expr.walk_mut(&mut taken);
        }
        let own = &taken.found[before..];
        let hidden = clause.when == When::NotMatched
            && own
                .iter()
                .any(|expr| expr.walk(&mut Names(target)).is_break());
        if hidden {
            return Err(Error::coded(
                "42P01",
                format!(
                    "invalid reference to FROM-clause entry for table \"{0}\": There is an entry for table \"{0}\", but it cannot be referenced from this part of the query.",
                    target.value
                ),
            ));
        }
    }
    Ok(taken.found)
}

#[derive(Default)]
struct Taken {
    found: Vec<Expr>,
}

impl VisitorMut for Taken {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let is_one = match expr {
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => true,
            Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } => {
                matches!(right.as_ref(), Expr::Subquery(_))
            }
            _ => false,
        };
        if is_one {
            let name = Ident::with_quote('"', subquery_name(self.found.len()));
            self.found
                .push(std::mem::replace(expr, Expr::Identifier(name)));
        }
        ControlFlow::Continue(())
    }
}

/// Looks for columns of the rows of this name.
struct Names<'n>(&'n Ident);

impl Visitor for Names<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::CompoundIdentifier(parts)
                if parts.len() == 2 && column_name(&parts[0]) == self.0.value =>
            {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// A table or a query, and what its rows are called.
fn named(factor: TableFactor) -> Result<(TableFactor, Ident)> {
    let name = match &factor {
        TableFactor::Table { name, alias, .. } => match alias {
            Some(alias) => Some(alias.name.clone()),
            None => name.0.last().and_then(ObjectNamePart::as_ident).cloned(),
        },
        TableFactor::Derived { alias, .. } => alias.as_ref().map(|alias| alias.name.clone()),
        _ => None,
    };
    match name {
        Some(name) => Ok((factor, Ident::with_quote('"', column_name(&name)))),
        None => Err(Error::coded(
            "42601",
            "`merge` takes a table, or a query with a name: write `(select ...) as s`",
        )),
    }
}

fn clause(parser: &mut Parser<'_>) -> Result<Clause> {
    need(parser, "when")?;
    let not = parser.parse_keyword(Keyword::NOT);
    need(parser, "matched")?;
    let when = match (not, not && word(parser, "by")) {
        (false, _) => When::Matched,
        (true, true) if word(parser, "source") => When::NotMatchedBySource,
        (true, by) => {
            if by {
                need(parser, "target")?;
            }
            When::NotMatched
        }
    };
    let condition = if parser.parse_keyword(Keyword::AND) {
        Some(parsed(parser)?)
    } else {
        None
    };
    need(parser, "then")?;
    let action = action(parser, when)?;
    Ok(Clause {
        when,
        condition,
        action,
    })
}

fn action(parser: &mut Parser<'_>, when: When) -> Result<Action> {
    if word(parser, "do") {
        need(parser, "nothing")?;
        return Ok(Action::Nothing);
    }
    if when == When::NotMatched {
        need(parser, "insert")?;
        return insert(parser);
    }
    if word(parser, "delete") {
        return Ok(Action::Delete);
    }
    need(parser, "update")?;
    need(parser, "set")?;
    let assignments = parser.parse_comma_separated(Parser::parse_assignment)?;
    let assignments = assignments.into_iter().map(assigned);
    let assignments: Vec<(String, Expr)> = assignments.collect::<Result<_>>()?;
    for (at, (column, _)) in assignments.iter().enumerate() {
        if assignments[..at].iter().any(|(other, _)| other == column) {
            return Err(Error::coded(
                "42601",
                format!("multiple assignments to same column \"{column}\""),
            ));
        }
    }
    Ok(Action::Update(assignments))
}

fn assigned(assignment: Assignment) -> Result<(String, Expr)> {
    let AssignmentTarget::ColumnName(name) = &assignment.target else {
        return Err(grammar::refused_for(
            "set (a, b) = ...",
            "assign each column by itself",
        ));
    };
    match &name.0[..] {
        [ObjectNamePart::Identifier(column)] => {
            Ok((column_name(column), rewritten(assignment.value)?))
        }
        _ => Err(Error::coded(
            "42703",
            format!("{name} is no column of the table"),
        )),
    }
}

/// What follows `insert`.
fn insert(parser: &mut Parser<'_>) -> Result<Action> {
    let columns = parser.parse_parenthesized_column_list(IsOptional::Optional, false)?;
    let columns = columns.iter().map(column_name).collect();
    let overriding = overriding(parser)?;
    if word(parser, "default") {
        need(parser, "values")?;
        return Ok(Action::Insert {
            columns,
            overriding,
            values: None,
        });
    }
    need(parser, "values")?;
    parser.expect_token(&Token::LParen)?;
    let values = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_token(&Token::RParen)?;
    Ok(Action::Insert {
        columns,
        overriding,
        values: Some(values.into_iter().map(rewritten).collect::<Result<_>>()?),
    })
}

fn overriding(parser: &mut Parser<'_>) -> Result<Option<Overriding>> {
    if !word(parser, "overriding") {
        return Ok(None);
    }
    let found = if word(parser, "system") {
        Overriding::System
    } else if word(parser, "user") {
        Overriding::User
    } else {
        let found = parser.peek_token();
        return Err(unexpected(parser, "SYSTEM or USER", found));
    };
    need(parser, "value")?;
    Ok(Some(found))
}

fn parsed(parser: &mut Parser<'_>) -> Result<Expr> {
    rewritten(parser.parse_expr()?)
}

/// An expression as the planner reads it.
fn rewritten(mut expr: Expr) -> Result<Expr> {
    if matches!(&expr, Expr::Identifier(name) if name.quote_style.is_none()) {
        // It may be `default`.
        return Ok(expr);
    }
    distinct::associate(&mut expr);
    let mut query = plain_query("select 1")?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = vec![SelectItem::UnnamedExpr(expr)];
    }
    rewrite::query(&mut query)?;
    grammar::check(&*query)?;
    if let SetExpr::Select(select) = query.body.as_mut()
        && let Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) =
            select.projection.pop()
    {
        return Ok(expr);
    }
    Err(lost())
}

fn lost() -> Error {
    Error::Defect {
        message: "a query of pairs does not parse".into(),
    }
}

/// That no clause stands behind one that leaves it nothing.
fn reachable(clauses: &[Clause]) -> Result<()> {
    for (at, clause) in clauses.iter().enumerate() {
        let mut before = clauses[..at].iter();
        if before.any(|other| other.when == clause.when && other.condition.is_none()) {
            return Err(Error::Syntax {
                message: "unreachable WHEN clause specified after unconditional WHEN clause".into(),
                position: None,
            });
        }
    }
    Ok(())
}

/// `select target.*, source.*, subquery, ... from target join source on condition`.
fn pairs(
    name: &Ident,
    (source, own): (TableFactor, &Ident),
    on: Expr,
    (clauses, subqueries): (&[Clause], Vec<Expr>),
) -> Result<Box<Query>> {
    let is_for = |when| clauses.iter().any(|clause| clause.when == when);
    let (inserts, alone) = (is_for(When::NotMatched), is_for(When::NotMatchedBySource));
    let join = match (inserts, alone) {
        (true, true) => "full join",
        (true, false) => "right join",
        (false, true) => "left join",
        (false, false) => "inner join",
    };
    let text = format!(
        "select {name}.*, {own}.* from {TARGET} as {name} {join} (select *, true as {PRESENT} from t) as {own} on true"
    );
    let mut query = plain_query(&text)?;
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(lost());
    };
    let joined = select
        .from
        .first_mut()
        .and_then(|from| from.joins.first_mut());
    let joined = joined.ok_or_else(lost)?;
    match &mut joined.join_operator {
        JoinOperator::Inner(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::FullOuter(constraint) => {
            use sqlparser::ast::JoinConstraint;
            *constraint = JoinConstraint::On(on);
        }
        _ => return Err(lost()),
    }
    if !alone {
        joined.relation = with_name(source, own);
    } else if let TableFactor::Derived { subquery, .. } = &mut joined.relation
        && let SetExpr::Select(inner) = subquery.body.as_mut()
        && let Some(from) = inner.from.first_mut()
    {
        from.relation = source;
    }
    distinct::associate(&mut *query);
    rewrite::query(&mut query)?;
    grammar::check(&*query)?;
    // They have been rewritten with their clauses.
    if let SetExpr::Select(select) = query.body.as_mut() {
        let items = subqueries.into_iter().enumerate();
        select
            .projection
            .extend(items.map(|(at, expr)| SelectItem::ExprWithAlias {
                expr,
                alias: Ident::with_quote('"', subquery_name(at)),
            }));
    }
    Ok(query)
}

/// The rows under this name.
fn with_name(mut factor: TableFactor, name: &Ident) -> TableFactor {
    if let TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. } = &mut factor {
        match alias {
            Some(alias) => alias.name = name.clone(),
            None => {
                *alias = Some(TableAlias {
                    explicit: true,
                    name: name.clone(),
                    columns: Vec::new(),
                    at: None,
                });
            }
        }
    }
    factor
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge_returning::ACTION;
    use crate::parse::{Statement, parse};

    fn read(text: &str) -> Result<Merge> {
        match parse(text)?.pop().map(|parsed| parsed.statement) {
            Some(Statement::Merge(merge)) => Ok(*merge),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn clauses_are_read() {
        let merge = read(
            "merge into only t as a using (values (1, 2)) as s (id, v) on a.id = s.id
             when matched and s.v is null then delete
             when matched then update set v = s.v, w = default
             when not matched by target then insert (id, v) overriding user value values (s.id, default)
             when not matched by source and a.v > 1 then do nothing",
        )
        .unwrap();
        assert_eq!((&merge.target[..], &merge.source.value[..]), ("t", "s"));
        let when: Vec<When> = merge.clauses.iter().map(|clause| clause.when).collect();
        assert_eq!(
            when,
            [
                When::Matched,
                When::Matched,
                When::NotMatched,
                When::NotMatchedBySource
            ]
        );
        assert!(merge.pairs.to_string().to_lowercase().contains("full join"));
    }

    #[test]
    fn subqueries_are_taken_out_of_clauses() {
        let merge = read(
            "merge into t using s on t.id = s.id
             when matched and exists (select 1 from u where u.a = s.a) then update set v = 1 + (select max(a) from u)
             when matched then delete returning merge_action(), t.*, s.v as w, *",
        )
        .unwrap();
        assert_eq!(merge.subqueries, 2);
        let pairs = merge.pairs.to_string();
        assert!(pairs.contains(&subquery_name(1)), "{pairs}");
        let returning = merge.returning.unwrap();
        assert!(matches!(&returning[0], Returned::Item(expr, name)
            if expr.to_string() == format!("\"{ACTION}\"") && name == "merge_action"));
        assert!(matches!(&returning[2], Returned::Item(_, name) if name == "w"));
        assert!(matches!(returning[3], Returned::All));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, named) in [
            ("merge into t using s on true", "WHEN"),
            (
                "merge into t using t on true when matched then delete",
                "more than once",
            ),
            (
                "merge into t using s on true when matched then insert values (1)",
                "UPDATE",
            ),
            (
                "merge into t using s on true when not matched then delete",
                "INSERT",
            ),
            (
                "merge into t using s on true when matched then delete when matched then do nothing",
                "unreachable",
            ),
            (
                "merge into t using s on true when matched then delete returning",
                "expected",
            ),
            (
                "merge into t using s on true when not matched then insert values ((select 1 where t.a = 1))",
                "cannot be referenced",
            ),
            (
                "merge into t using (select 1) on true when matched then delete",
                "name",
            ),
            (
                "merge into t using s on true when matched then update set a = 1, a = 2",
                "multiple assignments",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
