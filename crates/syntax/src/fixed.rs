//! Texts of queries and expressions that are kept, with other names of tables and sequences in them: those that mean the
//! same whatever the [path](crate::search_path) is later, and those of what has been renamed.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use functions::sequences;
use messages::{Error, Result};
use sqlparser::ast::{
    ArrayElemTypeDef, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    Statement as Sql, TableFactor, Value, ValueWithSpan, Visitor, VisitorMut,
};
use sqlparser::tokenizer::{Location, Span};
use table::within;

use crate::names::{column_name, quoted, written};
use crate::walk::{Walk, WalkMut};
use crate::{mentioned, views};

/// The replacement for a name, which is given as [`written`] in the statement; `None` keeps the name.
pub(crate) type NameOf<'n> = dyn Fn(&str) -> Result<Option<String>> + 'n;

/// The text of a view with other names.
///
/// # Errors
/// If it is none, and those of `name_of`.
pub fn view(text: &str, name_of: &NameOf<'_>) -> Result<String> {
    let mut found = Found {
        name_of,
        scopes: Vec::new(),
        places: BTreeMap::new(),
        failed: None,
    };
    let query = Sql::Query(views::of_text(text)?.query);
    let _ = query.walk(&mut found);
    if let Some(failed) = found.failed {
        return Err(failed);
    }
    replaced(text, found.places)
}

/// `text` with other text in these places.
///
/// # Errors
/// If they lie in each other.
pub(super) fn replaced(
    text: &str,
    places: BTreeMap<Location, (Location, String)>,
) -> Result<String> {
    let mut fixed = String::with_capacity(text.len());
    let mut done = 0;
    for (start, (end, name)) in places {
        let (start, end) = (offset(text, start), offset(text, end));
        if start < done || end < start {
            return Err(Error::Defect {
                message: "names in the text of a view lie in each other".into(),
            });
        }
        fixed.push_str(&text[done..start]);
        fixed.push_str(&name);
        done = end;
    }
    fixed.push_str(&text[done..]);
    Ok(fixed)
}

/// What stands before a place in a text.
pub(super) fn before(text: &str, place: Location) -> &str {
    text.get(..offset(text, place)).unwrap_or_default()
}

/// The byte at a place in a text.
fn offset(text: &str, place: Location) -> usize {
    let lines = text.split_inclusive('\n');
    let lines = lines.take((place.line as usize).saturating_sub(1));
    let before: usize = lines.map(str::len).sum();
    let rest = text[before..].chars();
    let rest = rest.take((place.column as usize).saturating_sub(1));
    before + rest.map(char::len_utf8).sum::<usize>()
}

/// The names that are replaced, by where they begin.
struct Found<'n> {
    name_of: &'n NameOf<'n>,
    /// The names that `with` defines, of the queries around.
    scopes: Vec<Vec<String>>,
    places: BTreeMap<Location, (Location, String)>,
    failed: Option<Error>,
}

impl Found<'_> {
    fn replaced(&mut self, written: &str, span: Span, as_text: bool) -> ControlFlow<()> {
        match (self.name_of)(written) {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some(_)) if span == Span::empty() => {
                self.failed = Some(Error::Defect {
                    message: format!("the name {written} has no place in the text of a view"),
                });
                ControlFlow::Break(())
            }
            Ok(Some(name)) => {
                let name = if as_text {
                    Value::SingleQuotedString(name).to_string()
                } else {
                    name
                };
                self.places.insert(span.start, (span.end, name));
                ControlFlow::Continue(())
            }
            Err(e) => {
                self.failed = Some(e);
                ControlFlow::Break(())
            }
        }
    }

    /// That a table with its schema, before a column, keeps its name.
    fn stays(&mut self, parts: &[&Ident]) -> ControlFlow<()> {
        let [.., schema, table] = parts else {
            return ControlFlow::Continue(());
        };
        let (schema, table) = (column_name(schema), column_name(table));
        match (self.name_of)(&within(&schema, &table)) {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some(_)) => {
                self.failed = Some(Error::unsupported(format!(
                    "a view has {schema}.{table} before a column: drop the view, and create it again afterwards with the name of the table alone there"
                )));
                ControlFlow::Break(())
            }
            Err(e) => {
                self.failed = Some(e);
                ControlFlow::Break(())
            }
        }
    }

    fn is_defined(&self, name: &ObjectName) -> bool {
        let [only] = &name.0[..] else {
            return false;
        };
        let name = only.as_ident().map(column_name);
        let mut defined = self.scopes.iter().flatten();
        name.is_some_and(|name| defined.any(|own| *own == name))
    }
}

impl Visitor for Found<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.scopes.push(Vec::new());
        let Some(with) = &query.with else {
            return ControlFlow::Continue(());
        };
        for own in &with.cte_tables {
            // Those that come before are seen in it, those behind and itself only where it is recursive.
            if !with.recursive {
                own.query.walk(self)?;
            }
            if let Some(scope) = self.scopes.last_mut() {
                scope.push(column_name(&own.alias.name));
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        let TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } = factor
        else {
            return ControlFlow::Continue(());
        };
        if self.is_defined(name) {
            return ControlFlow::Continue(());
        }
        let Ok(written) = written(name) else {
            return ControlFlow::Continue(());
        };
        let span = span_of(name);
        self.replaced(&written, span, false)?;
        // What `with` defines comes before a table without its schema: that keeps it.
        let new = self.places.get(&span.start).map(|(_, new)| new);
        if new.is_some_and(|new| self.scopes.iter().flatten().any(|own| quoted(own) == *new)) {
            self.places.remove(&span.start);
            return ControlFlow::Continue(());
        }
        // Columns are called by what the table was called.
        let called = idents(name).last().map(|name| quoted(&column_name(name)));
        if let (None, Some(called)) = (alias, called)
            && let Some((_, new)) = self.places.get_mut(&span.start)
            && *new != called
            && !new.ends_with(&format!(".{called}"))
        {
            *new = format!("{new} as {called}");
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let mut items = select.projection.iter();
        items.try_for_each(|item| match item {
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                self.stays(&idents(name))
            }
            _ => ControlFlow::Continue(()),
        })
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [.., _] = &parts[..]
        {
            let parts: Vec<&Ident> = parts.iter().collect();
            return self.stays(&parts[..parts.len() - 1]);
        }
        let Expr::Function(function) = expr else {
            return ControlFlow::Continue(());
        };
        match named(function).map(|(text, span)| (sequences::relation(text), span)) {
            Some((Ok(written), span)) => self.replaced(&written, span, true),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// The parts of a name.
pub(super) fn idents(name: &ObjectName) -> Vec<&Ident> {
    name.0.iter().filter_map(ObjectNamePart::as_ident).collect()
}

/// From the first part of a name to the last.
pub(super) fn span_of(name: &ObjectName) -> Span {
    let idents = idents(name);
    let mut spans = idents.iter().map(|part| part.span);
    let Some(first) = spans.next() else {
        return Span::empty();
    };
    Span {
        start: first.start,
        end: spans.next_back().unwrap_or(first).end,
    }
}

/// Whether a function takes the text of the name of a table or sequence.
fn takes_name(function: &Function) -> bool {
    let name = function.name.0.last().and_then(ObjectNamePart::as_ident);
    name.is_some_and(|name| {
        matches!(
            column_name(name).as_str(),
            "nextval" | "currval" | "setval" | "regclass"
        )
    })
}

/// The text that names what a function asks, and where it stands.
fn named(function: &Function) -> Option<(&str, Span)> {
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    match list.args.first().filter(|_| takes_name(function))? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(ValueWithSpan {
            value: Value::SingleQuotedString(text),
            span,
        }))) => Some((text, *span)),
        _ => None,
    }
}

/// Gives sequences and types in an expression other names.
struct Renamed<'n> {
    name_of: &'n NameOf<'n>,
    type_of: &'n dyn Fn(&str) -> Option<String>,
    any: bool,
}

impl Renamed<'_> {
    fn data_type(&mut self, data_type: &mut DataType) {
        match data_type {
            DataType::Array(
                ArrayElemTypeDef::AngleBracket(item)
                | ArrayElemTypeDef::SquareBracket(item, _)
                | ArrayElemTypeDef::Parenthesis(item),
            ) => self.data_type(item),
            DataType::Custom(name, arguments) if arguments.is_empty() => {
                let shown = written(name).ok().and_then(|own| (self.type_of)(&own));
                if let Some(shown) = shown {
                    // It has its quotes.
                    *name = ObjectName::from(vec![Ident::new(shown)]);
                    self.any = true;
                }
            }
            _ => {}
        }
    }

    fn literal(&mut self, expr: &mut Expr) -> Result<()> {
        let literal = match expr {
            Expr::Cast { expr, .. } => expr.as_mut(),
            other => other,
        };
        if let Expr::Value(ValueWithSpan {
            value: Value::SingleQuotedString(text),
            ..
        }) = literal
            && let Ok(written) = sequences::relation(text)
            && let Some(name) = (self.name_of)(&written)?
        {
            *text = name;
            self.any = true;
        }
        Ok(())
    }
}

impl VisitorMut for Renamed<'_> {
    type Break = Error;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Cast { data_type, .. } = expr {
            self.data_type(data_type);
        }
        if let Expr::Function(function) = expr
            && takes_name(function)
            && let FunctionArguments::List(list) = &mut function.args
            && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(first))) = list.args.first_mut()
            && let Err(e) = self.literal(first)
        {
            return ControlFlow::Break(e);
        }
        ControlFlow::Continue(())
    }
}

/// The text of an expression that a table keeps, with other names of sequences.
///
/// # Errors
/// If it is none, and those of `name_of`.
pub fn expression(text: &str, name_of: &NameOf<'_>) -> Result<String> {
    seen(text, name_of, &|_| None)
}

/// The same with other names of types in casts, too: `type_of` gives that of one that is [`written`] so, none if it stays.
///
/// # Errors
/// As [`expression`].
pub fn seen(
    text: &str,
    name_of: &NameOf<'_>,
    type_of: &dyn Fn(&str) -> Option<String>,
) -> Result<String> {
    // Most name none.
    if !text.contains("nextval") && !text.contains("NEXTVAL") && !text.contains('\'') {
        return Ok(text.to_owned());
    }
    let mut expr = mentioned::read(text)?;
    let mut renamed = Renamed {
        name_of,
        type_of,
        any: false,
    };
    if let ControlFlow::Break(e) = expr.walk_mut(&mut renamed) {
        return Err(e);
    }
    Ok(if renamed.any {
        expr.to_string()
    } else {
        text.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(text: &str) -> String {
        let name_of = |written: &str| {
            Ok(match written {
                "t" => Some("a.t".to_owned()),
                "q" => Some("a.\"Q'\"".to_owned()),
                "b\u{1}u" => Some("c.u".to_owned()),
                _ => None,
            })
        };
        view(text, &name_of).unwrap()
    }

    #[test]
    fn names_of_tables_are_replaced_where_they_stand() {
        for (text, wanted) in [
            (
                "create view v as select t.a, 't' from t join public.t as x using (a)",
                "create view v as select t.a, 't' from a.t join public.t as x using (a)",
            ),
            (
                "create view t as\nselect é.a\n  from \"t\" as é, b . u\n where a in (select t from t)",
                "create view t as\nselect é.a\n  from a.t as é, c.u\n where a in (select t from a.t)",
            ),
            (
                "create view v as with t as (select * from t), u as (select * from t) select * from t, u",
                "create view v as with t as (select * from a.t), u as (select * from t) select * from t, u",
            ),
            (
                "create view v as with recursive t as (select 1 union all select * from t) select * from t",
                "create view v as with recursive t as (select 1 union all select * from t) select * from t",
            ),
            (
                "create view v as select nextval('q'), 'q', currval('q'::regclass), 't'::regclass",
                "create view v as select nextval('a.\"Q''\"'), 'q', currval('a.\"Q''\"'::regclass), 'a.t'::regclass",
            ),
            (
                "create view v as table t union all select a from (select * from t) as t",
                "create view v as table a.t union all select a from (select * from a.t) as t",
            ),
        ] {
            assert_eq!(fixed(text), wanted);
        }
    }

    #[test]
    fn sequences_of_defaults_are_replaced() {
        let name_of = |written: &str| Ok((written == "q").then(|| "a.q".to_owned()));
        let fixed = |text: &str| expression(text, &name_of).unwrap();
        assert_eq!(fixed("nextval('q')"), "nextval('a.q')");
        assert_eq!(
            fixed("1 + nextval('Q'::regclass)"),
            "1 + nextval('a.q'::REGCLASS)"
        );
        assert_eq!(fixed("nextval('\"Q\"') + 'q'"), "nextval('\"Q\"') + 'q'");
        assert_eq!(fixed("now()"), "now()");
    }
}
