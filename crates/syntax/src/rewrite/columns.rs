//! Names of output columns, as PostgreSQL gives them.
//!
//! `count(*)` is called `count`, `cast(1 as bigint)` `int8`, `1 + 1` `?column?`, and two columns may share a name. The
//! planner takes no two of one name, so names that would clash inside the plan are given a
//! [tag](messages::tags).

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use messages::tags::{shown, tagged};
use messages::{Error, Result};
use sqlparser::ast::{
    AccessExpr, ArrayElemTypeDef, CastKind, DataType, Distinct, Expr, Function, GroupByExpr, Ident,
    ObjectName, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr, Statement, TableAlias,
    TableAliasColumnDef, TableFactor, TrimWhereField, TypedString, Visitor, VisitorMut,
};

use crate::flow::{flow, outcome};
use crate::names::column_name;
use crate::rewrite::leftmost::leftmost;
use crate::rewrite::rows::{is_field, sources};
use crate::sort_names::is_name;
use crate::walk::{Walk, WalkMut};

/// Names the columns of all queries in a statement.
pub(super) fn name_statement(statement: &mut Statement) -> Result<()> {
    match statement {
        Statement::Query(query) => return name_query(query),
        // Its columns lose their tags where it is planned.
        Statement::CreateView(view) => name_sorted(&mut view.query)?,
        _ => {}
    }
    outcome(statement.walk_mut(&mut Namer))
}

/// Names the columns of a query that people see, and of those in it.
pub(super) fn name_query(query: &mut Query) -> Result<()> {
    name(query, true)?;
    outcome(query.walk_mut(&mut Namer))
}

struct Namer;

impl VisitorMut for Namer {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<Error>> {
        let ctes = query.with.iter_mut().flat_map(|with| &mut with.cte_tables);
        for cte in ctes {
            flow(name_table(&mut cte.alias, &mut cte.query))?;
        }
        flow(name(query, false))
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Error>> {
        match expr {
            // Nobody sees what their columns are called.
            Expr::Subquery(query)
            | Expr::Exists {
                subquery: query, ..
            }
            | Expr::InSubquery {
                subquery: query, ..
            } => flow(name_sorted(query)),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Box<Error>> {
        match factor {
            TableFactor::Derived {
                subquery,
                alias: Some(alias),
                ..
            } => flow(name_table(alias, subquery)),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Names the columns of a query whose names nobody sees, so that expressions of its `order by` may mean those of its input.
fn name_sorted(query: &mut Query) -> Result<()> {
    match query.body.as_mut() {
        SetExpr::Select(select) => name_select(select, query.order_by.as_mut(), (false, true)),
        _ => Ok(()),
    }
}

/// Names the columns of a query that is a table, so that expressions of its `order by` may mean [those of its
/// input](crate::sort_names): its alias has their names then.
fn name_table(alias: &mut TableAlias, query: &mut Query) -> Result<()> {
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Ok(());
    };
    let outputs = outputs(select);
    let sorted = sorted(query.order_by.as_ref());
    let is_sorted = |output: &Output| output.explicit && sorted.contains(&output.name);
    let mut names: Vec<&str> = outputs.iter().map(|output| &output.name[..]).collect();
    names.sort_unstable();
    names.dedup();
    let is_plain = outputs.len() == select.projection.len() && names.len() == outputs.len();
    if !alias.columns.is_empty() || !is_plain || !outputs.iter().any(is_sorted) {
        return Ok(());
    }
    let columns = outputs.iter().map(|output| TableAliasColumnDef {
        name: Ident::with_quote('"', &output.name),
        data_type: None,
    });
    alias.columns = columns.collect();
    name_select(select, query.order_by.as_mut(), (false, true))
}

fn name(query: &mut Query, outermost: bool) -> Result<()> {
    match query.body.as_mut() {
        SetExpr::Select(select) => {
            name_select(select, query.order_by.as_mut(), (outermost, outermost))
        }
        body => name_body(body, outermost),
    }
}

fn name_body(body: &mut SetExpr, outermost: bool) -> Result<()> {
    match body {
        SetExpr::Select(select) => name_select(select, None, (outermost, outermost)),
        SetExpr::Query(query) if outermost => name(query, true),
        SetExpr::SetOperation { left, right, .. } => {
            name_body(left, outermost)?;
            name_body(right, outermost)
        }
        _ => Ok(()),
    }
}

/// A column of a `select`, other than `*`.
struct Output {
    /// Its place among the items.
    at: usize,
    name: String,
    /// Whether the planner gives it this name on its own.
    natural: bool,
    /// Whether the statement gives it its name.
    explicit: bool,
}

fn outputs(select: &Select) -> Vec<Output> {
    let mut outputs = Vec::with_capacity(select.projection.len());
    let sources = sources(select);
    // A field of a column is called otherwise by the planner.
    let is_natural = |expr: &Expr| match expr {
        Expr::CompoundIdentifier(parts) => !is_field(parts, &sources),
        other => is_name(other),
    };
    for (at, item) in select.projection.iter().enumerate() {
        let (name, natural, explicit) = match item {
            SelectItem::UnnamedExpr(expr) => (figure(expr).name(), is_natural(expr), false),
            SelectItem::ExprWithAlias { alias, .. } => (column_name(alias), true, true),
            _ => continue,
        };
        outputs.push(Output {
            at,
            name,
            natural,
            explicit,
        });
    }
    outputs
}

/// Names the columns of a `select`: whether people see them, and whether names in expressions of `order by` are tagged.
fn name_select(
    select: &mut Select,
    order_by: Option<&mut OrderBy>,
    (outermost, tags_sorted): (bool, bool),
) -> Result<()> {
    let outputs = outputs(select);
    let star = outputs.len() < select.projection.len();
    let mut times: HashMap<&str, usize> = HashMap::new();
    for output in &outputs {
        *times.entry(&output.name).or_default() += 1;
    }
    let mentioned = mentioned(select, order_by.as_deref());
    let sorted = sorted(order_by.as_deref());
    let tags = |output: &Output| {
        let shared = times.get(output.name.as_str()).is_some_and(|n| *n > 1);
        // `*` may bring a column of any name. In inner queries the planner refuses names that are ambiguous.
        let hidden = star && outermost;
        match (output.explicit, output.natural) {
            (true, _) => {
                let free = hidden && !mentioned.contains(&output.name);
                shared || free || tags_sorted && sorted.contains(&output.name)
            }
            (false, true) => shared || hidden,
            (false, false) => shared || hidden || mentioned.contains(&output.name),
        }
    };
    let aliases: Vec<(usize, Option<Ident>)> = outputs
        .iter()
        .map(|output| {
            let alias = match (tags(output), output.natural) {
                (true, _) => Some(tagged(&output.name, output.at + 1)),
                (false, true) => None,
                (false, false) => Some(Ident::with_quote('"', &output.name)),
            };
            (output.at, alias)
        })
        .collect();
    if let Some(order_by) = order_by {
        name_keys(order_by, select, &outputs, &aliases)?;
    }
    for (at, alias) in aliases {
        if let (Some(alias), Some(item)) = (alias, select.projection.get_mut(at)) {
            rename(item, alias);
        }
    }
    Ok(())
}

fn rename(item: &mut SelectItem, alias: Ident) {
    match item {
        SelectItem::ExprWithAlias { alias: old, .. } => *old = alias,
        SelectItem::UnnamedExpr(expr) => {
            let expr = std::mem::replace(expr, Expr::Identifier(Ident::new("")));
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
        _ => {}
    }
}

/// `order by name` means the output column of that name.
fn name_keys(
    order_by: &mut OrderBy,
    select: &Select,
    outputs: &[Output],
    aliases: &[(usize, Option<Ident>)],
) -> Result<()> {
    let OrderByKind::Expressions(keys) = &mut order_by.kind else {
        return Ok(());
    };
    let distinct = matches!(select.distinct, Some(Distinct::Distinct));
    for key in keys {
        let Expr::Identifier(ident) = &mut key.expr else {
            if distinct && let Some(column) = written_as(&key.expr, select, outputs, aliases) {
                key.expr = Expr::Identifier(column);
            }
            continue;
        };
        let name = column_name(ident);
        let mut found = outputs
            .iter()
            .zip(aliases)
            .filter(|(output, _)| output.name == name);
        let Some((first, (_, Some(alias)))) = found.next() else {
            continue;
        };
        let expr = |output: &Output| match &select.projection[output.at] {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                Some(expr.to_string())
            }
            _ => None,
        };
        let others: Vec<_> = found.collect();
        if others.iter().all(|(output, _)| expr(output) == expr(first)) {
            *ident = alias.clone();
        } else if first.explicit || others.iter().any(|(output, _)| output.explicit) {
            return Err(Error::coded(
                "42702",
                format!("`order by {name}` is ambiguous: several columns have that name"),
            ));
        }
    }
    Ok(())
}

/// The output column that is written as `expr`: `select distinct` can only be ordered by output columns.
fn written_as(
    expr: &Expr,
    select: &Select,
    outputs: &[Output],
    aliases: &[(usize, Option<Ident>)],
) -> Option<Ident> {
    let same = |output: &Output| match &select.projection[output.at] {
        SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. } => {
            item == expr
        }
        _ => false,
    };
    let mut columns = outputs.iter().zip(aliases);
    let (output, (_, alias)) = columns.find(|(output, _)| same(output))?;
    let alias = alias.clone();
    Some(alias.unwrap_or_else(|| Ident::with_quote('"', &output.name)))
}

/// Names in clauses where the planner would confuse an output column with a column of a table.
fn mentioned(select: &Select, order_by: Option<&OrderBy>) -> HashSet<String> {
    let mut names = Mentioned(HashSet::new());
    let _ = select.having.walk(&mut names);
    let _ = select.qualify.walk(&mut names);
    let _ = select.distinct.walk(&mut names);
    if let GroupByExpr::Expressions(keys, _) = &select.group_by {
        for key in keys.iter().filter(|key| !is_name(key)) {
            let _ = key.walk(&mut names);
        }
    }
    names.0.extend(sorted(order_by));
    names.0
}

/// Names in the expressions of `order by`: see [`sort_names`](crate::sort_names).
fn sorted(order_by: Option<&OrderBy>) -> HashSet<String> {
    struct Sorted(HashSet<String>);
    impl Visitor for Sorted {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Identifier(ident) => _ = self.0.insert(column_name(ident)),
                // The planner would not know the column of the table from an output column of that name.
                Expr::CompoundIdentifier(parts) => self.0.extend(parts.last().map(column_name)),
                _ => {}
            }
            ControlFlow::Continue(())
        }
    }
    let mut names = Sorted(HashSet::new());
    if let Some(OrderBy {
        kind: OrderByKind::Expressions(keys),
        ..
    }) = order_by
    {
        let computed = keys.iter().map(|key| &key.expr);
        for key in computed.filter(|key| !matches!(key, Expr::Identifier(_))) {
            let _ = key.walk(&mut names);
        }
    }
    names.0
}

struct Mentioned(HashSet<String>);

impl Visitor for Mentioned {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Identifier(ident) = expr {
            self.0.insert(column_name(ident));
        }
        ControlFlow::Continue(())
    }
}

/// The name of a column, and whether another part of the expression would give a better one.
enum Figure {
    /// A column or a function.
    Name(String),
    /// A type or `case`: a name from inside the expression is better.
    Weak(String),
    None,
}

impl Figure {
    fn name(self) -> String {
        match self {
            Figure::Name(name) | Figure::Weak(name) => name,
            Figure::None => "?column?".to_string(),
        }
    }

    fn or_weak(self, name: impl Into<String>) -> Figure {
        match self {
            Figure::Name(name) => Figure::Name(name),
            Figure::Weak(_) | Figure::None => Figure::Weak(name.into()),
        }
    }
}

/// The name that PostgreSQL gives the column `expr`; its `FigureColname`.
fn figure(expr: &Expr) -> Figure {
    let named = |name: &str| Figure::Name(name.to_string());
    match expr {
        Expr::Identifier(ident) => Figure::Name(column_name(ident)),
        Expr::CompoundIdentifier(parts) => match parts.last() {
            Some(ident) => Figure::Name(column_name(ident)),
            None => Figure::None,
        },
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => figure(inner),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let fields = access_chain.iter().rev().find_map(|access| match access {
                AccessExpr::Dot(Expr::Identifier(ident)) => Some(column_name(ident)),
                _ => None,
            });
            fields.map_or_else(|| figure(root), Figure::Name)
        }
        Expr::Cast {
            expr,
            data_type,
            kind: CastKind::Cast | CastKind::DoubleColon | CastKind::TryCast | CastKind::SafeCast,
            ..
        } => figure(expr).or_weak(type_word(data_type)),
        Expr::TypedString(TypedString { data_type, .. }) => Figure::Weak(type_word(data_type)),
        Expr::Interval(_) => Figure::Weak("interval".into()),
        Expr::Case { else_result, .. } => match else_result {
            Some(last) => figure(last).or_weak("case"),
            None => Figure::Weak("case".into()),
        },
        Expr::Function(function) => called(function),
        Expr::Exists { .. } => named("exists"),
        Expr::Subquery(query) => of_query(query),
        Expr::Tuple(_) => named("row"),
        Expr::Array(_) => named("array"),
        Expr::Extract { .. } => named("extract"),
        Expr::Position { .. } => named("position"),
        Expr::Substring { shorthand, .. } => named(if *shorthand { "substr" } else { "substring" }),
        Expr::Overlay { .. } => named("overlay"),
        Expr::Ceil { .. } => named("ceil"),
        Expr::Floor { .. } => named("floor"),
        Expr::AtTimeZone { .. } => named("timezone"),
        Expr::Trim { trim_where, .. } => named(match trim_where {
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
            Some(TrimWhereField::Both) | None => "btrim",
        }),
        _ => Figure::None,
    }
}

fn called(function: &Function) -> Figure {
    let ObjectName(parts) = &function.name;
    match parts.last().and_then(|part| part.as_ident()) {
        // What an operator stands for.
        Some(ident) if ident.value.contains(' ') => Figure::None,
        Some(ident) => Figure::Name(column_name(ident)),
        None => Figure::None,
    }
}

/// The name of the only column of a query in an expression.
fn of_query(query: &Query) -> Figure {
    match leftmost(&query.body).map(|select| &select.projection[..]) {
        Some([SelectItem::UnnamedExpr(expr)]) => figure(expr),
        Some([SelectItem::ExprWithAlias { alias, .. }]) => {
            Figure::Name(shown(&column_name(alias)).to_string())
        }
        _ => Figure::None,
    }
}

/// PostgreSQL's own name of a type.
fn type_word(data_type: &DataType) -> String {
    let word = match data_type {
        DataType::Boolean | DataType::Bool => "bool",
        DataType::SmallInt(_) | DataType::Int2(_) => "int2",
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => "int4",
        DataType::BigInt(_) | DataType::Int8(_) => "int8",
        DataType::Real | DataType::Float4 => "float4",
        DataType::Float(_) | DataType::Float8 | DataType::Double(_) | DataType::DoublePrecision => {
            "float8"
        }
        DataType::Numeric(_) | DataType::Decimal(_) | DataType::Dec(_) => "numeric",
        DataType::Char(_) | DataType::Character(_) => "bpchar",
        DataType::Varchar(_)
        | DataType::CharacterVarying(_)
        | DataType::CharVarying(_)
        | DataType::Nvarchar(_) => "varchar",
        DataType::Text | DataType::String(_) => "text",
        DataType::Bytea => "bytea",
        DataType::Date => "date",
        DataType::Time(_, _) => "time",
        DataType::Timestamp(_, zone) => {
            use sqlparser::ast::TimezoneInfo::{Tz, WithTimeZone};
            match zone {
                Tz | WithTimeZone => "timestamptz",
                _ => "timestamp",
            }
        }
        DataType::Interval { .. } => "interval",
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(item, _) | ArrayElemTypeDef::AngleBracket(item),
        ) => return type_word(item),
        other => {
            let text = other.to_string().to_lowercase();
            return text
                .split(['(', ' '])
                .next()
                .unwrap_or_default()
                .to_string();
        }
    };
    word.to_string()
}
