//! `asof join`, as DuckDB writes it. The parser knows another form of it, so the word becomes one that it takes before any join; then
//! the condition, or the right side where columns are named by `using`, gets a mark, which the
//! [planner](crate::optimize::as_of::written) looks for.

use std::ops::ControlFlow;

use functions::lists::names::AS_OF;
use messages::{Error, Result};
use sqlparser::ast::Expr;
use sqlparser::ast::{
    Join, JoinConstraint, JoinOperator, ObjectNamePart, Select, SetExpr, TableAlias, TableFactor,
    TableWithJoins, Value, VisitorMut,
};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::call::call;
use crate::flow::flow;
use crate::returning::plain_query;

/// The words that a join begins with.
const JOINS: [Keyword; 7] = [
    Keyword::JOIN,
    Keyword::INNER,
    Keyword::LEFT,
    Keyword::RIGHT,
    Keyword::FULL,
    Keyword::CROSS,
    Keyword::NATURAL,
];

/// The tokens with another word in place of `asof` before a join. Where a statement has that other word itself it is a name.
pub(crate) fn as_of_joins(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is = |token: &TokenWithSpan, keyword: Keyword| matches!(&token.token, Token::Word(word) if word.keyword == keyword && word.quote_style.is_none());
    let is_written = |token: &TokenWithSpan| is(token, Keyword::ASOF) || is(token, Keyword::GLOBAL);
    // The other form of it, which is refused by name.
    let is_other = tokens
        .iter()
        .any(|token| is(token, Keyword::MATCH_CONDITION));
    if is_other || !tokens.iter().any(is_written) {
        return tokens;
    }
    let whole: Vec<usize> = (0..tokens.len())
        .filter(|&at| !matches!(tokens[at].token, Token::Whitespace(_)))
        .collect();
    for place in 0..whole.len() {
        let before = place.checked_sub(1).map(|before| &tokens[whole[before]]);
        let after = whole.get(place + 1).map(|&at| &tokens[at]);
        let is_join = after.is_some_and(|token| JOINS.iter().any(|word| is(token, *word)));
        let is_name = before.is_some_and(|token| is(token, Keyword::AS));
        let at = whole[place];
        let (is_as_of, is_global) = (
            is(&tokens[at], Keyword::ASOF),
            is(&tokens[at], Keyword::GLOBAL),
        );
        if !is_join || is_name {
            continue;
        }
        if let Token::Word(word) = &mut tokens[at].token {
            if is_as_of {
                word.value = "global".into();
                word.keyword = Keyword::GLOBAL;
            } else if is_global {
                word.value = word.value.to_lowercase();
                word.quote_style = Some('"');
                word.keyword = Keyword::NoKeyword;
            }
        }
    }
    tokens
}

/// Marks the conditions of such joins.
pub(super) struct Marks;

impl VisitorMut for Marks {
    type Break = Box<Error>;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Box<Error>> {
        flow(select.from.iter_mut().try_for_each(marked))
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Box<Error>> {
        flow(match factor {
            TableFactor::NestedJoin {
                table_with_joins, ..
            } => marked(table_with_joins),
            _ => Ok(()),
        })
    }
}

fn marked(table: &mut TableWithJoins) -> Result<()> {
    for join in &mut table.joins {
        if std::mem::take(&mut join.global) {
            mark(join)?;
        }
    }
    Ok(())
}

fn mark(join: &mut Join) -> Result<()> {
    let constraint = match &mut join.join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint) => constraint,
        _ => {
            return Err(Error::unsupported(
                "not supported: an `asof join` that is not inner or left; use `asof left join`",
            ));
        }
    };
    match constraint {
        JoinConstraint::On(on) => {
            let nothing = Expr::value(Value::Null);
            let condition = std::mem::replace(on, nothing);
            *on = call(AS_OF, vec![condition]);
            Ok(())
        }
        JoinConstraint::Using(_) => in_query(&mut join.relation),
        JoinConstraint::Natural | JoinConstraint::None => Err(Error::coded(
            "42601",
            "an `asof join` needs `on ...` or `using (...)`, of which one is an inequality: `on t.symbol = q.symbol and t.time >= q.time`",
        )),
    }
}

/// Puts a table into a query of its own, with the mark in its condition.
fn in_query(relation: &mut TableFactor) -> Result<()> {
    let alias = match &*relation {
        TableFactor::Table { alias, name, .. } => {
            let called = name.0.last().and_then(ObjectNamePart::as_ident);
            let alias = alias.as_ref().map(|alias| &alias.name);
            alias.or(called).cloned()
        }
        TableFactor::Derived { alias, .. } | TableFactor::Function { alias, .. } => {
            alias.as_ref().map(|alias| alias.name.clone())
        }
        _ => None,
    };
    let name = alias.ok_or_else(|| {
        Error::unsupported(
            "not supported: `asof join ... using` with what has no name: give it one",
        )
    })?;
    let mut query = plain_query(&format!("select * from t where \"{AS_OF}\"(true)"))?;
    let alias = TableAlias {
        explicit: true,
        name,
        columns: vec![],
        at: None,
    };
    let inner = std::mem::replace(
        relation,
        TableFactor::Derived {
            lateral: false,
            subquery: plain_query("select 1")?,
            alias: Some(alias),
            sample: None,
        },
    );
    if let SetExpr::Select(select) = query.body.as_mut()
        && let Some(from) = select.from.first_mut()
    {
        from.relation = inner;
    }
    if let TableFactor::Derived { subquery, .. } = relation {
        *subquery = query;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn read(text: &str) -> String {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location();
        let tokens = as_of_joins(tokens.unwrap());
        tokens.iter().map(|token| token.token.to_string()).collect()
    }

    #[test]
    fn the_word_is_another_before_a_join() {
        assert_eq!(
            read("select asof from a asof left join b using (i) ASOF join c on true"),
            "select asof from a global left join b using (i) global join c on true"
        );
        assert_eq!(
            read("select 1 from a Global join b using (i)"),
            "select 1 from a \"global\" join b using (i)"
        );
        for plain in [
            "select * from a as asof join b on asof.i = b.i",
            "select * from a \"asof\" join b using (i)",
            "select asof, global from t",
            "select * from a asof join b match_condition (a.t >= b.t) on a.i = b.i",
        ] {
            assert_eq!(read(plain), plain);
        }
    }
}
