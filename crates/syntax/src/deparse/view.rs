//! The queries of views, a clause to a line as PostgreSQL lays them out.

use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Ident, JoinConstraint, JoinOperator, LimitClause, OrderByKind,
    Query, Select, SelectItem, SetExpr, Statement, TableAlias, TableFactor, TableWithJoins, Value,
};
use sqlparser::parser::Parser;

use crate::deparse::node::{Node, literal};
use crate::deparse::read::{Reading, Typed, as_it_is};
use crate::deparse::types::Type;
use crate::dialect::DIALECT;
use crate::names::{base, column_name, quoted, written};

/// The columns, with their types, of the table that a query reads by a name, as it is [written].
pub(super) type TableOf<'t> = dyn Fn(&str) -> Option<Vec<(String, Type)>> + 't;

/// The query in `text`, of a view whose columns have these names where they are not those of the query; none of what is not known
/// here.
pub fn view(text: &str, columns: &[String], tables: &TableOf<'_>) -> Option<String> {
    let query = parsed(text)?;
    let SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    let relations = relations(select, tables)?;
    let resolve = |name: &[Ident]| column_of(&relations, name);
    let reading = Reading {
        resolve: &resolve,
        typed: true,
    };
    let laying = Laying {
        reading,
        pretty: false,
    };
    laying.query(&query, select, columns)
}

/// A query that [`view`] has written, for people.
pub fn pretty_view(text: &str) -> Option<String> {
    let query = parsed(text)?;
    let SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    let reading = Reading {
        resolve: &as_it_is,
        typed: false,
    };
    let laying = Laying {
        reading,
        pretty: true,
    };
    laying.query(&query, select, &[])
}

fn parsed(text: &str) -> Option<Box<Query>> {
    let mut parsed = Parser::parse_sql(&DIALECT, text).ok()?;
    match (parsed.pop(), parsed.is_empty()) {
        (Some(Statement::Query(query)), true) => Some(query),
        _ => None,
    }
}

/// A table as a query calls it, and its columns.
type Relation = (String, Vec<(String, Type)>);

fn relations(select: &Select, tables: &TableOf<'_>) -> Option<Vec<Relation>> {
    let mut found: Vec<Relation> = Vec::new();
    for from in &select.from {
        add_relations(from, tables, &mut found)?;
    }
    Some(found)
}

/// Adds the tables of a join to those that were `found`, also those of joins in parentheses.
fn add_relations(
    from: &TableWithJoins,
    tables: &TableOf<'_>,
    found: &mut Vec<Relation>,
) -> Option<()> {
    let joined = from.joins.iter().map(|join| &join.relation);
    for factor in std::iter::once(&from.relation).chain(joined) {
        if let Some(inner) = nested(factor) {
            add_relations(inner, tables, found)?;
            continue;
        }
        let (name, alias) = plain(factor)?;
        let columns = tables(&name)?;
        let called = match alias {
            Some(alias) => column_name(alias),
            None => base(&name).to_owned(),
        };
        if found.iter().any(|(other, _)| *other == called) {
            return None;
        }
        found.push((called, columns));
    }
    Some(())
}

/// The join in parentheses that a factor is.
fn nested(factor: &TableFactor) -> Option<&TableWithJoins> {
    match factor {
        TableFactor::NestedJoin {
            table_with_joins,
            alias: None,
        } => Some(table_with_joins),
        _ => None,
    }
}

/// A table by its name alone, or by another: the name as it is written, and the other.
fn plain(factor: &TableFactor) -> Option<(String, Option<&Ident>)> {
    let TableFactor::Table {
        name,
        alias,
        args: None,
        with_hints,
        version: None,
        with_ordinality: false,
        partitions,
        sample: None,
        ..
    } = factor
    else {
        return None;
    };
    let alias = match alias {
        None => None,
        Some(TableAlias { name, columns, .. }) if columns.is_empty() => Some(name),
        Some(_) => return None,
    };
    let is_plain = with_hints.is_empty() && partitions.is_empty();
    let name = written(name).ok().filter(|_| is_plain)?;
    Some((name, alias))
}

/// A column of one of these tables, with the name of the table.
fn column_of(relations: &[Relation], name: &[Ident]) -> Option<(String, Type)> {
    let (table, column) = match name {
        [column] => (None, column),
        [table, column] => (Some(column_name(table)), column),
        _ => return None,
    };
    let column = column_name(column);
    let mut found = relations.iter().filter_map(|(called, columns)| {
        if table.as_ref().is_some_and(|table| table != called) {
            return None;
        }
        let (_, own) = columns.iter().find(|(name, _)| *name == column)?;
        Some((format!("{}.{}", quoted(called), quoted(&column)), *own))
    });
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// Lays a query out.
struct Laying<'t> {
    reading: Reading<'t>,
    pretty: bool,
}

/// An output column: what it is, and its name.
struct Output {
    node: Node,
    name: String,
}

impl Laying<'_> {
    fn query(&self, query: &Query, select: &Select, columns: &[String]) -> Option<String> {
        let is_plain = query.with.is_none()
            && query.fetch.is_none()
            && query.locks.is_empty()
            && query.for_clause.is_none()
            && query.settings.is_none()
            && query.format_clause.is_none()
            && query.pipe_operators.is_empty();
        let is_select = select.top.is_none()
            && select.into.is_none()
            && select.lateral_views.is_empty()
            && select.prewhere.is_none()
            && select.cluster_by.is_empty()
            && select.distribute_by.is_empty()
            && select.sort_by.is_empty()
            && select.named_window.is_empty()
            && select.qualify.is_none()
            && select.connect_by.is_empty();
        let outputs = self.outputs(select, columns)?;
        if !is_plain || !is_select || select.from.is_empty() {
            return None;
        }
        let items: Vec<String> = outputs.iter().map(|own| self.item(own)).collect();
        let distinct = match &select.distinct {
            None => "",
            Some(Distinct::Distinct) => "DISTINCT ",
            Some(_) => return None,
        };
        let mut text = format!(" SELECT {distinct}{}", items.join(",\n    "));
        let from: Option<Vec<String>> = select.from.iter().map(|from| self.from(from)).collect();
        text += &format!("\n   FROM {}", from?.join(",\n    "));
        if let Some(condition) = &select.selection {
            text += &format!("\n  WHERE {}", self.text(condition)?);
        }
        match &select.group_by {
            GroupByExpr::Expressions(keys, modifiers) if modifiers.is_empty() => {
                let keys = keys.iter().map(|key| self.key(key, &outputs));
                let keys = keys.collect::<Option<Vec<_>>>()?;
                if !keys.is_empty() {
                    text += &format!("\n  GROUP BY {}", keys.join(", "));
                }
            }
            _ => return None,
        }
        if let Some(condition) = &select.having {
            text += &format!("\n HAVING {}", self.text(condition)?);
        }
        text += &self.order(query, &outputs)?;
        text += &limits(query.limit_clause.as_ref())?;
        text.push(';');
        Some(text)
    }

    fn node(&self, expr: &Expr) -> Option<Typed> {
        let (node, own) = self.reading.node(expr)?;
        // PostgreSQL takes what has no type for a text.
        Some(match node {
            Node::Quoted(text) if self.reading.typed => {
                (Node::Plain(format!("{}::text", literal(&text))), Type::Text)
            }
            node => (node, own),
        })
    }

    fn text(&self, expr: &Expr) -> Option<String> {
        Some(self.node(expr)?.0.text(self.pretty))
    }

    fn outputs(&self, select: &Select, columns: &[String]) -> Option<Vec<Output>> {
        let outputs = select.projection.iter().enumerate().map(|(at, item)| {
            let (expr, name) = match item {
                SelectItem::UnnamedExpr(expr) => (expr, named(expr)),
                SelectItem::ExprWithAlias { expr, alias } => (expr, Some(column_name(alias))),
                _ => return None,
            };
            let name = columns.get(at).cloned().or(name)?;
            let (node, _) = self.node(expr)?;
            Some(Output { node, name })
        });
        outputs.collect()
    }

    fn item(&self, own: &Output) -> String {
        let text = own.node.text(self.pretty);
        let name = quoted(&own.name);
        let is_column =
            matches!(&own.node, Node::Plain(text) if text.ends_with(&format!(".{name}")));
        if is_column {
            text
        } else {
            format!("{text} AS {name}")
        }
    }

    fn from(&self, from: &TableWithJoins) -> Option<String> {
        let mut text = self.factor(&from.relation)?;
        for join in &from.joins {
            if join.global {
                return None;
            }
            let (word, on) = match &join.join_operator {
                JoinOperator::Join(JoinConstraint::On(on))
                | JoinOperator::Inner(JoinConstraint::On(on)) => ("JOIN", Some(on)),
                JoinOperator::Left(JoinConstraint::On(on))
                | JoinOperator::LeftOuter(JoinConstraint::On(on)) => ("LEFT JOIN", Some(on)),
                JoinOperator::Right(JoinConstraint::On(on))
                | JoinOperator::RightOuter(JoinConstraint::On(on)) => ("RIGHT JOIN", Some(on)),
                JoinOperator::FullOuter(JoinConstraint::On(on)) => ("FULL JOIN", Some(on)),
                JoinOperator::CrossJoin(JoinConstraint::None) => ("CROSS JOIN", None),
                _ => return None,
            };
            if self.pretty && nested(&join.relation).is_some() {
                // It would need its parentheses.
                return None;
            }
            let other = self.factor(&join.relation)?;
            text = format!("{text}\n     {word} {other}");
            if let Some(on) = on {
                let on = self.text(on)?;
                text += &if self.pretty {
                    format!(" ON {on}")
                } else {
                    format!(" ON ({on})")
                };
            }
            if !self.pretty {
                text = format!("({text})");
            }
        }
        Some(text)
    }

    fn factor(&self, factor: &TableFactor) -> Option<String> {
        if let Some(inner) = nested(factor) {
            return self.from(inner);
        }
        let TableFactor::Table { name: own, .. } = factor else {
            return None;
        };
        let (_, alias) = plain(factor)?;
        let parts = own.0.iter();
        let parts = parts.map(|part| Some(quoted(&column_name(part.as_ident()?))));
        let shown = parts.collect::<Option<Vec<_>>>()?.join(".");
        let base = own
            .0
            .last()
            .and_then(|part| part.as_ident())
            .map(column_name);
        Some(match alias.map(column_name) {
            Some(alias) if Some(&alias) != base.as_ref() => format!("{shown} {}", quoted(&alias)),
            _ => shown,
        })
    }

    /// A key of `group by` or `order by`.
    fn key(&self, key: &Expr, outputs: &[Output]) -> Option<String> {
        let by_number = match key {
            Expr::Value(value) => match &value.value {
                Value::Number(number, _) => {
                    let at = number.parse::<usize>().ok()?.checked_sub(1)?;
                    Some(outputs.get(at)?)
                }
                _ => return None,
            },
            _ => None,
        };
        let node = match by_number {
            Some(output) => output.node.clone(),
            None => match (self.node(key), key) {
                (Some((node, _)), _) => node,
                (None, Expr::Identifier(name)) => {
                    let name = column_name(name);
                    let mut outputs = outputs.iter();
                    outputs.find(|own| own.name == name)?.node.clone()
                }
                _ => return None,
            },
        };
        let text = node.text(self.pretty);
        Some(match node {
            Node::Plain(_) => text,
            Node::Call(..) => format!("({text})"),
            _ if self.pretty => format!("({text})"),
            _ => text,
        })
    }

    fn order(&self, query: &Query, outputs: &[Output]) -> Option<String> {
        let Some(order) = &query.order_by else {
            return Some(String::new());
        };
        let (OrderByKind::Expressions(keys), None) = (&order.kind, &order.interpolate) else {
            return None;
        };
        let keys = keys.iter().map(|key| {
            if key.with_fill.is_some() {
                return None;
            }
            // An output column comes first.
            let own = match &key.expr {
                Expr::Identifier(name) if self.reading.typed => {
                    let name = column_name(name);
                    let mut outputs = outputs.iter().enumerate();
                    let at = outputs.find(|(_, own)| own.name == name);
                    at.map(|(at, _)| Expr::value(Value::Number((at + 1).to_string(), false)))
                }
                _ => None,
            };
            let mut text = self.key(own.as_ref().unwrap_or(&key.expr), outputs)?;
            let falls = key.options.asc == Some(false);
            if falls {
                text += " DESC";
            }
            match key.options.nulls_first {
                Some(true) if !falls => text += " NULLS FIRST",
                Some(false) if falls => text += " NULLS LAST",
                _ => {}
            }
            Some(text)
        });
        let keys: Vec<String> = keys.collect::<Option<_>>()?;
        Some(format!("\n  ORDER BY {}", keys.join(", ")))
    }
}

/// The name that a column of this expression has without another.
fn named(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) => named(inner),
        Expr::Identifier(name) => Some(column_name(name)),
        Expr::CompoundIdentifier(parts) => parts.last().map(column_name),
        Expr::Function(function) => match function.name.0.as_slice() {
            [part] => part.as_ident().map(column_name),
            _ => None,
        },
        _ => None,
    }
}

/// `limit` and `offset`, of whole numbers alone.
fn limits(clause: Option<&LimitClause>) -> Option<String> {
    let (limit, offset) = match clause {
        None => return Some(String::new()),
        Some(LimitClause::LimitOffset {
            limit,
            offset,
            limit_by,
        }) if limit_by.is_empty() => (limit.as_ref(), offset.as_ref().map(|own| &own.value)),
        Some(_) => return None,
    };
    let mut text = String::new();
    // PostgreSQL writes the second first.
    for (word, expr) in [("OFFSET", offset), ("LIMIT", limit)] {
        match expr {
            None => {}
            Some(Expr::Value(value)) => match &value.value {
                Value::Number(number, _) if number.parse::<i32>().is_ok() => {
                    text += &format!("\n {word} {number}");
                }
                _ => return None,
            },
            Some(_) => return None,
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables `c` and `d` of `s` with the same columns.
    fn table(name: &str) -> Option<Vec<(String, Type)>> {
        let columns = [
            ("a", Type::Integer),
            ("b", Type::Bigint),
            ("v", Type::Varchar),
            ("t", Type::Text),
            ("n", Type::Numeric),
        ];
        let columns = columns.map(|(name, own)| (name.to_owned(), own));
        matches!(name, "c" | "s\u{1}d").then(|| columns.to_vec())
    }

    /// What PostgreSQL 15 gives, with `false` and with `true`.
    #[test]
    fn views_are_laid_out_as_by_postgresql() {
        for (text, columns, wanted, shown) in [
            (
                "select a, t from c where n > 0",
                &[][..],
                " SELECT c.a,\n    c.t\n   FROM c\n  WHERE (c.n > (0)::numeric);",
                " SELECT c.a,\n    c.t\n   FROM c\n  WHERE c.n > 0::numeric;",
            ),
            (
                "select c1.a, c2.t as x, 'q' as lit, count(*), sum(c1.b) as s, max(c1.v) from c c1 join c c2 on c1.a = c2.b left join c c3 on c3.a = c2.a and c3.t <> 'x' where c1.n > 0 group by c1.a, 2 having count(*) > 1 order by count(*), x desc nulls last, c1.a nulls first limit 5 offset 2",
                &[][..],
                " SELECT c1.a,\n    c2.t AS x,\n    'q'::text AS lit,\n    count(*) AS count,\n    sum(c1.b) AS s,\n    max((c1.v)::text) AS max\n   FROM ((c c1\n     JOIN c c2 ON ((c1.a = c2.b)))\n     LEFT JOIN c c3 ON (((c3.a = c2.a) AND (c3.t <> 'x'::text))))\n  WHERE (c1.n > (0)::numeric)\n  GROUP BY c1.a, c2.t\n HAVING (count(*) > 1)\n  ORDER BY (count(*)), c2.t DESC NULLS LAST, c1.a NULLS FIRST\n OFFSET 2\n LIMIT 5;",
                " SELECT c1.a,\n    c2.t AS x,\n    'q'::text AS lit,\n    count(*) AS count,\n    sum(c1.b) AS s,\n    max(c1.v::text) AS max\n   FROM c c1\n     JOIN c c2 ON c1.a = c2.b\n     LEFT JOIN c c3 ON c3.a = c2.a AND c3.t <> 'x'::text\n  WHERE c1.n > 0::numeric\n  GROUP BY c1.a, c2.t\n HAVING count(*) > 1\n  ORDER BY (count(*)), c2.t DESC NULLS LAST, c1.a NULLS FIRST\n OFFSET 2\n LIMIT 5;",
            ),
            (
                "select distinct a, b + 1 from c order by b + 1",
                &["p", "q"][..],
                " SELECT DISTINCT c.a AS p,\n    (c.b + 1) AS q\n   FROM c\n  ORDER BY (c.b + 1);",
                " SELECT DISTINCT c.a AS p,\n    c.b + 1 AS q\n   FROM c\n  ORDER BY (c.b + 1);",
            ),
            (
                "select c.a from c, s.d where c.a = d.a",
                &[][..],
                " SELECT c.a\n   FROM c,\n    s.d\n  WHERE (c.a = d.a);",
                " SELECT c.a\n   FROM c,\n    s.d\n  WHERE c.a = d.a;",
            ),
            (
                "select a as \"A b\", lower(v) from c order by 2",
                &[][..],
                " SELECT c.a AS \"A b\",\n    lower((c.v)::text) AS lower\n   FROM c\n  ORDER BY (lower((c.v)::text));",
                " SELECT c.a AS \"A b\",\n    lower(c.v::text) AS lower\n   FROM c\n  ORDER BY (lower(c.v::text));",
            ),
            (
                "select c.a from c cross join c d",
                &[][..],
                " SELECT c.a\n   FROM (c\n     CROSS JOIN c d);",
                " SELECT c.a\n   FROM c\n     CROSS JOIN c d;",
            ),
        ] {
            let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(
                view(text, &columns, &table).as_deref(),
                Some(wanted),
                "{text}"
            );
            assert_eq!(pretty_view(wanted).as_deref(), Some(shown), "{text}");
            // What is restored of a dump is written as it was.
            assert_eq!(view(wanted, &[], &table).as_deref(), Some(wanted), "{text}");
        }
        for other in [
            "select * from c",
            "select a from nothing",
            "select a from c union select 1",
            "with w as (select 1) select a from c",
            "select 1",
            "select a + 1 from c",
            "select a from c, c d",
            "select (select 1) as x from c",
        ] {
            assert_eq!(view(other, &[], &table), None, "{other}");
        }
    }
}
