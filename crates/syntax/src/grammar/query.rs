//! Queries: clauses, tables, joins.

use messages::{Error, Result};
use sqlparser::ast::{
    ConnectByKind, Cte, Expr, ExprWithAliasAndOrderBy, Fetch, ForClause, FunctionArg, GroupByExpr,
    GroupByWithModifier, Join, JoinConstraint, JoinOperator, LimitClause, NamedWindowDefinition,
    NamedWindowExpr, Offset, OrderBy, OrderByExpr, OrderByKind, OrderByOptions, PipeOperator,
    Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableAlias,
    TableAliasColumnDef, TableFactor, TableFunctionArgs, TableSample, TableSampleKind,
    TableSampleModifier, TableWithJoins, Values, WildcardAdditionalOptions, WindowSpec, With,
};

use crate::grammar::locks;
use crate::grammar::refuse::{none_of, refused, refused_for};
use crate::names::column_name;
use crate::{graphs, operators, readers};

/// Checks the clauses around the body of a query.
pub(super) fn check(query: &Query) -> Result<()> {
    let Query {
        with,
        body,
        order_by,
        limit_clause,
        fetch,
        locks: _,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    if let Some(with) = with {
        let With {
            with_token: _,
            recursive: _,
            cte_tables,
        } = with;
        cte_tables.iter().try_for_each(cte)?;
    }
    set_expr(body)?;
    if let Some(order_by) = order_by {
        ordered(order_by)?;
    }
    match limit_clause {
        Some(LimitClause::LimitOffset {
            limit: _,
            offset: None | Some(Offset { value: _, rows: _ }),
            limit_by,
        }) => none_of(&[(!limit_by.is_empty(), "limit by")])?,
        Some(LimitClause::OffsetCommaLimit {
            offset: _,
            limit: _,
        })
        | None => {}
    }
    if let Some(fetch) = fetch {
        return Err(fetched(fetch));
    }
    locks::check(query)?;
    match for_clause {
        Some(ForClause::Browse) => return Err(refused("for browse")),
        Some(ForClause::Json { .. }) => return Err(refused("for json")),
        Some(ForClause::Xml { .. }) => return Err(refused("for xml")),
        None => {}
    }
    none_of(&[
        (settings.is_some(), "settings"),
        (format_clause.is_some(), "format"),
    ])?;
    pipe_operators.iter().try_for_each(pipe_operator)
}

/// Why this `fetch` was not rewritten as a `limit`.
fn fetched(fetch: &Fetch) -> Error {
    let Fetch {
        with_ties,
        percent,
        quantity: _,
    } = fetch;
    match (with_ties, percent) {
        (true, _) => refused("fetch ... with ties"),
        (_, true) => refused("fetch ... percent"),
        _ => Error::coded(
            "42601",
            "`fetch` stands beside `limit`: leave one of them out",
        ),
    }
}

fn cte(cte: &Cte) -> Result<()> {
    let Cte {
        alias,
        query: _,
        from,
        // Taken out before: see `rewrite::without_materialized`.
        materialized: _,
        closing_paren_token: _,
    } = cte;
    none_of(&[(from.is_some(), "with ... from")])?;
    table_alias(alias)
}

fn set_expr(body: &SetExpr) -> Result<()> {
    match body {
        SetExpr::Select(_) | SetExpr::Query(_) => Ok(()),
        SetExpr::SetOperation {
            op: _,
            // What is not done of these is refused by the planner, by name.
            set_quantifier: _,
            left,
            right,
        } => {
            set_expr(left)?;
            set_expr(right)
        }
        SetExpr::Values(Values {
            explicit_row: _,
            value_keyword: _,
            rows: _,
        }) => Ok(()),
        SetExpr::Insert(_) => Err(refused("insert in a query")),
        SetExpr::Update(_) => Err(refused("update in a query")),
        SetExpr::Delete(_) => Err(refused("delete in a query")),
        SetExpr::Merge(_) => Err(refused("merge in a query")),
        SetExpr::Table(_) => Err(refused("table")),
    }
}

fn ordered(order_by: &OrderBy) -> Result<()> {
    let OrderBy { kind, interpolate } = order_by;
    none_of(&[(interpolate.is_some(), "interpolate")])?;
    match kind {
        OrderByKind::Expressions(exprs) => exprs.iter().try_for_each(sort_key),
        OrderByKind::All(_) => Err(refused_for(
            "order by all",
            "with `*` among the columns, name what to order by",
        )),
    }
}

/// Checks a sort key of a query, a window or an aggregate.
pub(super) fn sort_key(key: &OrderByExpr) -> Result<()> {
    let OrderByExpr {
        expr: _,
        options: OrderByOptions {
            asc: _,
            nulls_first: _,
        },
        with_fill,
    } = key;
    none_of(&[(with_fill.is_some(), "with fill")])
}

/// Checks one `select`.
#[expect(clippy::too_many_lines, reason = "each part stands here by name")]
pub(super) fn select(select: &Select) -> Result<()> {
    let Select {
        select_token: _,
        // Comments.
        optimizer_hints: _,
        distinct: _,
        select_modifiers,
        top,
        top_before_distinct: _,
        projection,
        exclude,
        into,
        from,
        lateral_views,
        prewhere,
        selection: _,
        connect_by,
        group_by,
        cluster_by,
        distribute_by,
        sort_by,
        having: _,
        named_window,
        qualify: _,
        window_before_qualify: _,
        value_table_mode,
        flavor: _,
    } = select;
    if top.is_some() {
        return Err(refused_for("top", "use `limit`"));
    }
    if into.is_some() {
        return Err(refused_for("select into", "use `create table ... as`"));
    }
    none_of(&[
        (
            select_modifiers
                .as_ref()
                .is_some_and(|modifiers| modifiers.is_any_set()),
            "a modifier after `select`",
        ),
        (exclude.is_some(), "exclude after the columns"),
        (!lateral_views.is_empty(), "lateral view"),
        (prewhere.is_some(), "prewhere"),
        (
            connect_by.iter().any(|part| match part {
                ConnectByKind::ConnectBy { .. } | ConnectByKind::StartWith { .. } => true,
            }),
            "connect by",
        ),
        (!cluster_by.is_empty(), "cluster by"),
        (!distribute_by.is_empty(), "distribute by"),
        (!sort_by.is_empty(), "sort by"),
        (value_table_mode.is_some(), "select as struct or value"),
    ])?;
    if projection.is_empty() {
        return Err(Error::unsupported(
            "a `select` without columns is not supported: name at least one, or write `*`",
        ));
    }
    projection.iter().try_for_each(select_item)?;
    let modifiers = match group_by {
        GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers) => modifiers,
    };
    if let Some(modifier) = modifiers.first() {
        let (what, instead) = match modifier {
            GroupByWithModifier::Rollup => ("with rollup", "use `group by rollup (...)`"),
            GroupByWithModifier::Cube => ("with cube", "use `group by cube (...)`"),
            GroupByWithModifier::Totals => ("with totals", "use `group by rollup (...)`"),
            GroupByWithModifier::GroupingSets(_) => (
                "grouping sets after the keys",
                "use `group by grouping sets (...)`",
            ),
        };
        return Err(refused_for(what, instead));
    }
    grouped(group_by, projection)?;
    from.iter().try_for_each(table_with_joins)?;
    named_window.iter().try_for_each(|definition| {
        let NamedWindowDefinition(_, expr) = definition;
        match expr {
            NamedWindowExpr::NamedWindow(_) => Ok(()),
            NamedWindowExpr::WindowSpec(spec) => window(spec),
        }
    })
}

/// Refuses grouping sets with one expression under two names, which the planner takes for one key.
fn grouped(group_by: &GroupByExpr, projection: &[SelectItem]) -> Result<()> {
    let GroupByExpr::Expressions(keys, _) = group_by else {
        return Ok(());
    };
    let (mut sets, mut all) = (false, Vec::new());
    for key in keys {
        match key {
            Expr::Rollup(own) | Expr::Cube(own) | Expr::GroupingSets(own) => {
                sets = true;
                all.extend(own.iter().flatten());
            }
            other => all.push(other),
        }
    }
    if !sets {
        return Ok(());
    }
    let meant = |key: &Expr| {
        let Expr::Identifier(ident) = key else {
            return key.clone();
        };
        let name = column_name(ident);
        let found = projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if column_name(alias) == name => Some(expr),
            _ => None,
        });
        found.unwrap_or(key).clone()
    };
    let meant: Vec<Expr> = all.iter().map(|key| meant(key)).collect();
    for (at, key) in all.iter().enumerate() {
        let twice = (0..at).any(|other| all[other] != *key && meant[other] == meant[at]);
        if twice {
            return Err(Error::unsupported(
                "not supported: one expression under two names among the keys of grouping sets",
            ));
        }
    }
    Ok(())
}

/// Checks the window in the parentheses after `over`. Names of other windows have been replaced already.
pub(super) fn window(spec: &WindowSpec) -> Result<()> {
    let WindowSpec {
        window_name: _,
        partition_by: _,
        order_by,
        // The planner knows all of its parts.
        window_frame: _,
    } = spec;
    order_by.iter().try_for_each(sort_key)
}

fn select_item(item: &SelectItem) -> Result<()> {
    match item {
        SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { expr: _, alias: _ } => Ok(()),
        SelectItem::ExprWithAliases { .. } => Err(refused("an alias of several names")),
        SelectItem::QualifiedWildcard(kind, options) => {
            match kind {
                SelectItemQualifiedWildcardKind::ObjectName(_) => {}
                SelectItemQualifiedWildcardKind::Expr(_) => {
                    return Err(refused("`.*` after an expression"));
                }
            }
            wildcard(options)
        }
        SelectItem::Wildcard(options) => wildcard(options),
    }
}

/// Checks what follows `*`.
pub(super) fn wildcard(options: &WildcardAdditionalOptions) -> Result<()> {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike,
        opt_exclude: _,
        opt_except: _,
        opt_replace: _,
        opt_rename,
        opt_alias,
    } = options;
    none_of(&[
        (opt_ilike.is_some(), "* ilike"),
        (opt_rename.is_some(), "* rename"),
        (opt_alias.is_some(), "an alias of `*`"),
    ])
}

/// Checks a table and what is joined to it.
pub(super) fn table_with_joins(table: &TableWithJoins) -> Result<()> {
    let TableWithJoins { relation: _, joins } = table;
    joins.iter().try_for_each(join)
}

fn join(join: &Join) -> Result<()> {
    let Join {
        relation: _,
        global,
        join_operator,
    } = join;
    none_of(&[(*global, "asof join in this place")])?;
    use JoinOperator::{
        Anti, ArrayJoin, AsOf, CrossApply, CrossJoin, FullOuter, Inner, InnerArrayJoin, Left,
        LeftAnti, LeftArrayJoin, LeftOuter, LeftSemi, OuterApply, Right, RightAnti, RightOuter,
        RightSemi, Semi, StraightJoin,
    };
    match join_operator {
        JoinOperator::Join(constraint)
        | Inner(constraint)
        | Left(constraint)
        | LeftOuter(constraint)
        | Right(constraint)
        | RightOuter(constraint)
        | FullOuter(constraint)
        | LeftSemi(constraint)
        | RightSemi(constraint)
        | LeftAnti(constraint)
        | RightAnti(constraint) => match constraint {
            JoinConstraint::On(_) | JoinConstraint::Using(_) | JoinConstraint::Natural => Ok(()),
            JoinConstraint::None => Err(Error::coded(
                "42601",
                "a `join` needs `on ...` or `using (...)`; `cross join` has neither",
            )),
        },
        CrossJoin(JoinConstraint::None) => Ok(()),
        CrossJoin(JoinConstraint::On(_) | JoinConstraint::Using(_) | JoinConstraint::Natural) => {
            Err(Error::coded(
                "42601",
                "a `cross join` has no condition: use `join`",
            ))
        }
        Semi(_) => Err(refused_for("semi join", "use `left semi join`")),
        Anti(_) => Err(refused_for("anti join", "use `left anti join`")),
        CrossApply | OuterApply => Err(refused_for("apply", "use `join lateral`")),
        AsOf {
            match_condition: _,
            constraint: _,
        } => Err(refused_for(
            "asof join ... match_condition",
            "use `asof join ... on`, with the comparison among the conditions",
        )),
        StraightJoin(_) => Err(refused_for("straight_join", "use `join`")),
        ArrayJoin | LeftArrayJoin | InnerArrayJoin => Err(refused("array join")),
    }
}

/// Checks a table, query or function in `from`.
#[expect(
    clippy::too_many_lines,
    reason = "each kind and each of its parts stands here by name"
)]
pub(super) fn table_factor(factor: &TableFactor) -> Result<()> {
    match factor {
        TableFactor::Table {
            name: _,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } => {
            sampled(sample)?;
            none_of(&[
                (!with_hints.is_empty(), "with (...) after a table"),
                (
                    version.is_some(),
                    "for system_time or another version of a table",
                ),
                (*with_ordinality, "with ordinality"),
                (!partitions.is_empty(), "partition after a table"),
                (json_path.is_some(), "a path after a table"),
                (!index_hints.is_empty(), "an index hint"),
            ])?;
            if let Some(TableFunctionArgs { args, settings }) = args {
                none_of(&[(settings.is_some(), "settings")])?;
                if !reads_files(factor) {
                    args.iter().try_for_each(table_argument)?;
                }
            }
            aliased(alias)
        }
        TableFactor::Derived {
            lateral: _,
            subquery: _,
            alias,
            sample,
        } => {
            sampled(sample)?;
            aliased(alias)
        }
        TableFactor::Function {
            lateral: _,
            name: _,
            args,
            with_ordinality,
            alias,
        } => {
            none_of(&[(*with_ordinality, "with ordinality")])?;
            args.iter().try_for_each(table_argument)?;
            aliased(alias)
        }
        TableFactor::NestedJoin {
            table_with_joins: table,
            alias,
        } => {
            table_with_joins(table)?;
            aliased(alias)
        }
        TableFactor::UNNEST {
            alias,
            array_exprs: _,
            with_offset,
            with_offset_alias,
            with_ordinality,
        } => {
            none_of(&[
                (
                    *with_offset || with_offset_alias.is_some(),
                    "unnest with offset",
                ),
                (*with_ordinality, "with ordinality"),
            ])?;
            aliased(alias)
        }
        TableFactor::TableFunction { .. } => Err(refused("table(...)")),
        TableFactor::JsonTable { .. } => Err(refused("json_table")),
        TableFactor::OpenJsonTable { .. } => Err(refused("openjson")),
        TableFactor::Pivot { .. } => Err(refused_for(
            "pivot",
            "use aggregates with `filter (where ...)`",
        )),
        TableFactor::Unpivot { .. } => Err(refused_for("unpivot", "use `union all`")),
        TableFactor::MatchRecognize { .. } => Err(refused("match_recognize")),
        TableFactor::XmlTable { .. } => Err(refused("xmltable")),
        TableFactor::SemanticView { .. } => Err(refused("semantic_view")),
    }
}

fn sampled(sample: &Option<TableSampleKind>) -> Result<()> {
    let sample = match sample {
        Some(TableSampleKind::BeforeTableAlias(sample))
        | Some(TableSampleKind::AfterTableAlias(sample)) => sample,
        None => return Ok(()),
    };
    let TableSample {
        modifier,
        name: _,
        quantity: _,
        seed: _,
        bucket: _,
        offset: _,
    } = sample.as_ref();
    let what = match modifier {
        TableSampleModifier::Sample => "sample",
        TableSampleModifier::TableSample => "tablesample",
    };
    Err(refused_for(what, "use `where random() < 0.1`"))
}

/// Whether this is a call such as `read_csv(...)` or `pagerank(...)`, whose options have names, or `afl(...)`.
pub(super) fn reads_files(factor: &TableFactor) -> bool {
    matches!(factor, TableFactor::Table { name, args: Some(_), .. } if readers::reads(name) || graphs::reads(name) || operators::reads(name))
}

/// The planner drops the names of arguments.
fn table_argument(argument: &FunctionArg) -> Result<()> {
    match argument {
        FunctionArg::Unnamed(_) => Ok(()),
        FunctionArg::Named { .. } | FunctionArg::ExprNamed { .. } => {
            Err(refused("a named argument of a table function"))
        }
    }
}

fn aliased(alias: &Option<TableAlias>) -> Result<()> {
    alias.as_ref().map_or(Ok(()), table_alias)
}

fn table_alias(alias: &TableAlias) -> Result<()> {
    let TableAlias {
        explicit: _,
        name: _,
        columns,
        at,
    } = alias;
    let typed = columns.iter().any(|column| {
        let TableAliasColumnDef { name: _, data_type } = column;
        data_type.is_some()
    });
    none_of(&[
        (typed, "a type in the columns of an alias"),
        (at.is_some(), "at in an alias"),
    ])
}

fn pipe_operator(operator: &PipeOperator) -> Result<()> {
    match operator {
        PipeOperator::Limit { expr: _, offset: _ }
        | PipeOperator::Where { expr: _ }
        | PipeOperator::As { alias: _ }
        | PipeOperator::Union {
            set_quantifier: _,
            queries: _,
        }
        | PipeOperator::Intersect {
            set_quantifier: _,
            queries: _,
        }
        | PipeOperator::Except {
            set_quantifier: _,
            queries: _,
        } => Ok(()),
        PipeOperator::OrderBy { exprs } => exprs.iter().try_for_each(sort_key),
        PipeOperator::Select { exprs } | PipeOperator::Extend { exprs } => {
            exprs.iter().try_for_each(select_item)
        }
        PipeOperator::Aggregate {
            full_table_exprs,
            group_by_expr,
        } => {
            let ordered = full_table_exprs.iter().chain(group_by_expr).any(|expr| {
                let ExprWithAliasAndOrderBy { expr: _, order_by } = expr;
                let OrderByOptions { asc, nulls_first } = order_by;
                asc.is_some() || nulls_first.is_some()
            });
            none_of(&[(ordered, "an order in `|> aggregate`")])
        }
        PipeOperator::Join(operator) => join(operator),
        PipeOperator::Set { .. } => Err(refused("|> set")),
        PipeOperator::Drop { .. } => Err(refused("|> drop")),
        PipeOperator::TableSample { .. } => Err(refused("|> tablesample")),
        PipeOperator::Rename { .. } => Err(refused("|> rename")),
        PipeOperator::Call { .. } => Err(refused("|> call")),
        PipeOperator::Pivot { .. } => Err(refused("|> pivot")),
        PipeOperator::Unpivot { .. } => Err(refused("|> unpivot")),
    }
}
