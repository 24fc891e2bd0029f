//! Arrays, structs and JSON as the parser reads them, as calls of functions.

use functions::lists;
use functions::lists::names;
use messages::{Error, Result};
use sqlparser::ast::{
    AccessExpr, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, ObjectName, OrderByKind, OrderByOptions, Query, SelectItem, SetExpr,
    Subscript, TableFactor, Value,
};

use crate::call::call;
use crate::names::column_name;
use crate::rewrite::composed;
use crate::rewrite::leftmost::leftmost;

/// Other functions that calls here stand for.
pub(super) const NAMES: [&str; 31] = [
    "aclexplode",
    "gen_random_uuid",
    "generate_subscripts",
    "json_agg",
    "json_array_elements",
    "json_array_elements_text",
    "json_each",
    "json_each_text",
    "json_object_agg",
    "json_object_keys",
    "json_populate_record",
    "json_populate_recordset",
    "json_to_record",
    "json_to_recordset",
    "jsonb_agg",
    "jsonb_array_elements",
    "jsonb_each",
    "jsonb_object_agg",
    "jsonb_path_query",
    "jsonb_path_query_tz",
    "jsonb_populate_record",
    "jsonb_populate_recordset",
    "jsonb_to_record",
    "jsonb_to_recordset",
    "pg_options_to_table",
    "pg_partition_ancestors",
    "regexp_matches",
    "regexp_split_to_table",
    "row",
    "string_to_table",
    "struct_pack",
];

fn number(value: &str) -> Expr {
    Expr::value(Value::Number(value.into(), false))
}

/// A constant in quotes.
pub(super) fn text(value: &str) -> Expr {
    Expr::value(Value::SingleQuotedString(value.into()))
}

/// `array[...]`, `a[1]`, `(s).a`, `{'a': 1}`, `array(select ...)`, `x = any(a)`.
///
/// # Errors
/// For what arrays do not have.
pub(super) fn expr(expr: &mut Expr) -> Result<Option<Expr>> {
    Ok(match expr {
        Expr::Array(array) => Some(call(names::MAKE, std::mem::take(&mut array.elem))),
        Expr::Dictionary(fields) => {
            let fields = std::mem::take(fields).into_iter();
            let args = fields.flat_map(|field| [text(&column_name(&field.key)), *field.value]);
            Some(call(names::STRUCT, args.collect()))
        }
        Expr::Map(map) => {
            let entries = std::mem::take(&mut map.entries).into_iter();
            let args = entries.flat_map(|entry| [*entry.key, *entry.value]);
            Some(call(names::MAP, args.collect()))
        }
        Expr::CompoundFieldAccess { root, access_chain } => Some(accessed(root, access_chain)?),
        Expr::AnyOp {
            left,
            compare_op,
            right,
            ..
        } if !is_query(right) => Some(compared(left, &compare_op.to_string(), right, false)?),
        Expr::AllOp {
            left,
            compare_op,
            right,
        } if !is_query(right) => Some(compared(left, &compare_op.to_string(), right, true)?),
        _ => None,
    })
}

/// `x = any(array(select ...))` as `x = any(select ...)`: what the array of the rows has is what they have.
pub(super) fn of_query(expr: &mut Expr) {
    let (Expr::AnyOp { right, .. } | Expr::AllOp { right, .. }) = expr else {
        return;
    };
    if let Some(query) = query_of_array(right) {
        **right = Expr::Subquery(Box::new(query.clone()));
    }
}

/// The query of `array(select ...)`.
pub(super) fn query_of_array(expr: &Expr) -> Option<&Query> {
    match expr {
        Expr::Nested(inner) => query_of_array(inner),
        Expr::Function(function) => match (&function.name.0[..], &function.args) {
            ([part], FunctionArguments::Subquery(query)) => {
                let name = part.as_ident().map(column_name);
                (name.as_deref() == Some("array")).then_some(query.as_ref())
            }
            _ => None,
        },
        _ => None,
    }
}

fn is_query(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_query(inner),
        Expr::Subquery(_) => true,
        _ => false,
    }
}

fn compared(left: &Expr, op: &str, right: &Expr, all: bool) -> Result<Expr> {
    let op = if op == "!=" { "<>" } else { op };
    let Some(name) = lists::called(op, all) else {
        let word = if all { "all" } else { "any" };
        return Err(Error::unsupported(format!(
            "`{op} {word}(array)` is not supported: only =, <>, <, <=, > and >= are"
        )));
    };
    Ok(call(name, vec![left.clone(), right.clone()]))
}

/// `a[1]`, `t.a[1][2]`, `a[1:2]`, `(s).a`, `a[1].b`, `s['a']`.
fn accessed(root: &Expr, chain: &[AccessExpr]) -> Result<Expr> {
    let mut names = match root {
        Expr::Identifier(ident) => vec![ident.clone()],
        Expr::CompoundIdentifier(parts) => parts.clone(),
        _ => vec![],
    };
    let begun = chain.iter().take_while(|access| match access {
        AccessExpr::Dot(Expr::Identifier(ident)) if !names.is_empty() => {
            names.push(ident.clone());
            true
        }
        _ => false,
    });
    let rest = &chain[begun.count()..];
    let mut value = match &names[..] {
        [] => root.clone(),
        [only] => Expr::Identifier(only.clone()),
        _ => Expr::CompoundIdentifier(names),
    };
    let mut bounds = Bounds::default();
    for access in rest {
        let field = match access {
            AccessExpr::Dot(Expr::Identifier(ident)) => Some(text(&column_name(ident))),
            AccessExpr::Dot(other) => {
                return Err(Error::unsupported(format!(
                    "`.{other}` behind a value is not supported"
                )));
            }
            AccessExpr::Subscript(Subscript::Index {
                index: index @ Expr::Value(constant),
            }) if matches!(constant.value, Value::SingleQuotedString(_)) => Some(index.clone()),
            AccessExpr::Subscript(subscript) => {
                bounds.add(subscript)?;
                None
            }
        };
        if let Some(name) = field {
            value = call(names::FIELD, vec![bounds.take(value), name]);
        }
    }
    Ok(bounds.take(value))
}

/// The subscripts behind a value.
#[derive(Default)]
struct Bounds {
    all: Vec<(Option<Expr>, Option<Expr>)>,
    is_slice: bool,
}

impl Bounds {
    fn add(&mut self, subscript: &Subscript) -> Result<()> {
        match subscript {
            Subscript::Index { index } => self.all.push((None, Some(index.clone()))),
            Subscript::Slice {
                lower_bound,
                upper_bound,
                stride: None,
            } => {
                self.is_slice = true;
                self.all.push((lower_bound.clone(), upper_bound.clone()));
            }
            Subscript::Slice { .. } => {
                return Err(Error::unsupported("a step in a slice is not supported"));
            }
        }
        Ok(())
    }

    /// What they take of `value`; there are none afterwards.
    fn take(&mut self, value: Expr) -> Expr {
        let Bounds { all, is_slice } = std::mem::take(self);
        if all.is_empty() {
            return value;
        }
        let mut args = vec![value];
        for (lower, upper) in all {
            if is_slice {
                args.push(lower.unwrap_or_else(|| number("1")));
                args.push(upper.unwrap_or_else(|| number("9223372036854775807")));
            } else {
                args.extend(upper);
            }
        }
        let names = [names::SUBSCRIPT, names::SLICE];
        call(names[usize::from(is_slice)], args)
    }
}

/// The functions that gather values, and those that make JSON of what `array_agg` has gathered.
const GATHER: [(&str, &str, usize); 4] = [
    ("json_agg", "json_agg of", 1),
    ("jsonb_agg", "jsonb_agg of", 1),
    ("json_object_agg", "json_object_agg of", 2),
    ("jsonb_object_agg", "jsonb_object_agg of", 2),
];

/// `json_agg(x)`, `gen_random_uuid()`, `array(select ...)`.
///
/// # Errors
/// For a query in an array that has more than one column, and for arguments that are too many.
pub(super) fn function(function: &Function) -> Result<Option<Expr>> {
    let [part] = &function.name.0[..] else {
        return Ok(None);
    };
    let Some(name) = part.as_ident().map(column_name) else {
        return Ok(None);
    };
    if name == "array"
        && let FunctionArguments::Subquery(query) = &function.args
    {
        return gathered(query).map(Some);
    }
    let FunctionArguments::List(list) = &function.args else {
        return Ok(None);
    };
    if let Some(made) = aggregated(&name, function, &list.args)? {
        return Ok(Some(made));
    }
    if name == "struct_pack" {
        return packed(&list.args).map(Some);
    }
    match (&name[..], &list.args[..]) {
        ("gen_random_uuid", []) => {
            let mut made = function.clone();
            made.name = ObjectName::from(vec![Ident::new("uuid")]);
            Ok(Some(Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(Expr::Function(made)),
                data_type: DataType::Uuid,
                array: false,
                format: None,
            }))
        }
        _ => Ok(None),
    }
}

/// `struct_pack(a := 1, b := 'x')`.
fn packed(args: &[FunctionArg]) -> Result<Expr> {
    let mut all = Vec::with_capacity(2 * args.len());
    for arg in args {
        let FunctionArg::Named {
            name,
            arg: FunctionArgExpr::Expr(value),
            ..
        } = arg
        else {
            return Err(Error::invalid(
                "struct_pack takes values with names: struct_pack(a := 1)",
            ));
        };
        all.extend([text(&column_name(name)), value.clone()]);
    }
    Ok(call(names::STRUCT, all))
}

/// `json_agg(x)`, of what `array_agg(x)` gathers.
fn aggregated(name: &str, function: &Function, args: &[FunctionArg]) -> Result<Option<Expr>> {
    let Some((_, outer, count)) = GATHER.iter().find(|(own, ..)| *own == name) else {
        return Ok(None);
    };
    if args.len() != *count {
        return Err(Error::coded(
            "42883",
            format!("function {name} does not take {} arguments", args.len()),
        ));
    }
    let of = |arg: &FunctionArg| {
        let mut inner = function.clone();
        inner.name = ObjectName::from(vec![Ident::new("array_agg")]);
        if let FunctionArguments::List(list) = &mut inner.args {
            list.args = vec![arg.clone()];
        }
        Expr::Function(inner)
    };
    Ok(Some(call(outer, args.iter().map(of).collect())))
}

/// A sort key of a query: none where it is the query's only column.
type SortKey = (Option<Expr>, OrderByOptions);

/// The sort keys of a query whose only column is `output`.
fn sort_keys(query: &Query, output: &(Expr, Option<String>)) -> Result<Vec<SortKey>> {
    let Some(OrderByKind::Expressions(all)) = query.order_by.as_ref().map(|order| &order.kind)
    else {
        return Ok(vec![]);
    };
    let free = matches!(query.body.as_ref(), SetExpr::Select(select) if select.distinct.is_none());
    let mut keys = Vec::with_capacity(all.len());
    for key in all {
        let same = match &key.expr {
            Expr::Value(value) => matches!(&value.value, Value::Number(n, _) if n == "1"),
            Expr::Identifier(ident) => output.1 == Some(column_name(ident)) || key.expr == output.0,
            other => *other == output.0,
        };
        match (same, free) {
            (true, _) => keys.push((None, key.options)),
            (false, true) => keys.push((Some(key.expr.clone()), key.options)),
            (false, false) => {
                return Err(Error::unsupported(
                    "array(select distinct ... order by ...) is not supported by other keys than its column",
                ));
            }
        }
    }
    Ok(keys)
}

/// `array(select x ... order by k)`: the values in the order of the query.
fn gathered(query: &Query) -> Result<Expr> {
    let one = || Error::coded("42601", "subquery must return only one column");
    let mut query = query.clone();
    let Some(select) = leftmost(&query.body) else {
        return Err(Error::unsupported(
            "array(values ...) is not supported: write array[...]",
        ));
    };
    let [item] = &select.projection[..] else {
        return Err(one());
    };
    let output = match item {
        SelectItem::UnnamedExpr(expr) => (expr.clone(), None),
        SelectItem::ExprWithAlias { expr, alias } => (expr.clone(), Some(column_name(alias))),
        _ => {
            return Err(Error::unsupported(
                "array(select * ...) is not supported: name its column",
            ));
        }
    };
    let keys = sort_keys(&query, &output)?;
    let mut columns = vec!["\"item\"".to_string()];
    let mut sorts = Vec::new();
    if let SetExpr::Select(select) = query.body.as_mut() {
        for (at, (key, options)) in keys.iter().enumerate() {
            let name = match key {
                Some(key) => {
                    let alias = Ident::with_quote('"', format!("key{at}"));
                    select.projection.push(SelectItem::ExprWithAlias {
                        expr: key.clone(),
                        alias: alias.clone(),
                    });
                    columns.push(alias.to_string());
                    alias.to_string()
                }
                None => columns[0].clone(),
            };
            sorts.push(format!("{name} {options}"));
        }
    } else {
        sorts.extend(
            keys.iter()
                .map(|(_, options)| format!("{} {options}", columns[0])),
        );
    }
    let order = match &sorts[..] {
        [] => String::new(),
        sorts => format!(" order by {}", sorts.join(", ")),
    };
    let text = format!(
        "select coalesce(array_agg(\"item\"{order}), \"array none\"(array_agg(\"item\"{order}))) from (select 1) as \"rows\" ({})",
        columns.join(", ")
    );
    let mut outer = composed::query(&text)?;
    if let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(from) = select.from.first_mut()
        && let TableFactor::Derived { subquery, .. } = &mut from.relation
    {
        **subquery = query;
        return Ok(Expr::Subquery(outer));
    }
    Err(Error::Defect {
        message: "a query of an array does not parse".into(),
    })
}
