//! Statements that write, define or show.

use messages::{Error, Result};
use sqlparser::ast::{
    Assignment, AssignmentTarget, ConstraintCharacteristics, ConstraintReferenceMatchKind,
    CreateTable, DeferrableInitial, Delete, ForeignKeyConstraint, HiveDistributionStyle,
    HiveFormat, IndexColumn, Insert, KeyOrIndexDisplay, NullsDistinctOption, ObjectName,
    ObjectNamePart, ObjectType, OnInsert, OrderByExpr, OrderByOptions, PrimaryKeyConstraint, Set,
    ShowStatementOptions, SqliteOnConflict, Statement, TableObject, Truncate, TruncateTableTarget,
    UniqueConstraint, Update, UpdateTableFromKind,
};

use crate::grammar::catalog::{alter_table, create_view};
use crate::grammar::query::table_with_joins;
use crate::grammar::refuse::{none_of, refused, refused_for};
use crate::names::column_name;
use crate::overriding::overriding;
use crate::table_options::keys_hold;
use crate::ways::WAY;

/// Checks the parts of a statement outside its queries. Statements that are not supported at all are refused where they
/// would run.
pub(super) fn check(statement: &Statement) -> Result<()> {
    match statement {
        Statement::Insert(statement) => insert(statement),
        Statement::Update(statement) => update(statement),
        Statement::Delete(statement) => delete(statement),
        Statement::CreateTable(statement) => create_table(statement),
        Statement::CreateView(statement) => create_view(statement),
        Statement::AlterTable(statement) => alter_table(statement),
        Statement::Truncate(statement) => truncate(statement),
        Statement::Drop {
            object_type:
                ObjectType::Table
                | ObjectType::View
                | ObjectType::MaterializedView
                | ObjectType::Sequence
                | ObjectType::Index,
            if_exists: _,
            names: _,
            // Refused with advice where tables are dropped.
            cascade: _,
            restrict: _,
            purge,
            temporary: _,
            table,
        } => none_of(&[
            (*purge, "drop ... purge"),
            (table.is_some(), "drop ... on a table"),
        ]),
        Statement::ShowTables { .. } => show_tables(statement),
        Statement::ExplainTable {
            describe_alias: _,
            hive_format,
            has_table_keyword: _,
            table_name: _,
        } => none_of(&[(hive_format.is_some(), "describe extended or formatted")]),
        _ => transaction(statement),
    }
}

fn show_tables(statement: &Statement) -> Result<()> {
    match statement {
        Statement::ShowTables {
            terse,
            history,
            extended,
            full,
            external,
            show_options,
        } => {
            let ShowStatementOptions {
                show_in,
                starts_with,
                limit,
                limit_from,
                filter_position,
            } = show_options;
            let more = *terse
                || *history
                || *extended
                || *full
                || *external
                || show_in.is_some()
                || starts_with.is_some()
                || limit.is_some()
                || limit_from.is_some()
                || filter_position.is_some();
            if more {
                Err(refused_for(
                    "show tables with more words",
                    "query information_schema.tables",
                ))
            } else {
                Ok(())
            }
        }
        _ => Ok(()),
    }
}

/// Checks a statement about the transaction that it stands in.
fn transaction(statement: &Statement) -> Result<()> {
    match statement {
        Statement::StartTransaction {
            modes: _,
            begin: _,
            transaction: _,
            modifier,
            statements,
            exception,
            has_end_keyword,
        } => none_of(&[
            (
                modifier.is_some(),
                "begin deferred, immediate, exclusive, try or catch",
            ),
            (
                !statements.is_empty() || exception.is_some() || *has_end_keyword,
                "begin ... end blocks",
            ),
        ]),
        Statement::Commit {
            chain: _,
            end: _,
            modifier,
        } => none_of(&[(modifier.is_some(), "end try or catch")]),
        Statement::Rollback {
            chain,
            savepoint: Some(_),
        } => none_of(&[(*chain, "rollback and chain to a savepoint")]),
        Statement::Set(Set::SetTransaction {
            modes: _,
            snapshot,
            session,
        }) => none_of(&[
            (snapshot.is_some(), "set transaction snapshot"),
            (*session, "set session characteristics"),
        ]),
        _ => Ok(()),
    }
}

fn insert(statement: &Insert) -> Result<()> {
    let Insert {
        insert_token: _,
        optimizer_hints: _,
        or,
        ignore,
        into: _,
        table,
        table_alias,
        columns: _,
        overwrite,
        // None for `default values`.
        source: _,
        assignments,
        partitioned,
        after_columns,
        has_table_keyword: _,
        on,
        returning,
        output,
        replace_into,
        priority,
        insert_alias,
        settings,
        format_clause,
        multi_table_insert_type,
        multi_table_into_clauses,
        multi_table_when_clauses,
        multi_table_else_clause,
    } = statement;
    if let Some(or) = or {
        return Err(on_conflict("insert", *or));
    }
    match table {
        TableObject::TableName(_) => {}
        TableObject::TableFunction(_) | TableObject::TableQuery(_) => {
            return Err(refused("insert into anything but a table"));
        }
    }
    none_of(&[
        (*replace_into, "replace into"),
        (*ignore, "insert ignore"),
        (*overwrite, "insert overwrite"),
        (
            matches!(on, Some(OnInsert::DuplicateKeyUpdate(_))),
            "on duplicate key update",
        ),
        (returning.is_some(), "returning"),
        (output.is_some(), "output"),
        (!assignments.is_empty(), "insert ... set"),
        (
            partitioned.is_some() && overriding(statement).is_none() || !after_columns.is_empty(),
            "partition in an insert",
        ),
        (priority.is_some(), "a priority of an insert"),
        (
            insert_alias.is_some() || table_alias.is_some(),
            "an alias in an insert",
        ),
        (settings.is_some(), "settings"),
        (format_clause.is_some(), "format"),
        (
            multi_table_insert_type.is_some()
                || !multi_table_into_clauses.is_empty()
                || !multi_table_when_clauses.is_empty()
                || multi_table_else_clause.is_some(),
            "insert all or insert first",
        ),
    ])
}

fn on_conflict(verb: &str, or: SqliteOnConflict) -> Error {
    refused_for(
        &format!("{verb} or {}", or.to_string().trim_start_matches("OR ")).to_lowercase(),
        "use `insert ... on conflict do nothing`, or `do update`",
    )
}

fn update(statement: &Update) -> Result<()> {
    let Update {
        update_token: _,
        optimizer_hints: _,
        table,
        assignments,
        from,
        selection: _,
        returning,
        output,
        or,
        order_by,
        limit,
    } = statement;
    if let Some(or) = or {
        return Err(on_conflict("update", *or));
    }
    none_of(&[
        (!table.joins.is_empty(), "a join in an update"),
        (returning.is_some(), "returning"),
        (output.is_some(), "output"),
        (!order_by.is_empty(), "order by in an update"),
        (limit.is_some(), "limit in an update"),
    ])?;
    // What columns are named is looked at where they are known.
    let row = |own: &Assignment| matches!(own.target, AssignmentTarget::Tuple(_));
    if assignments.iter().any(row) {
        return Err(refused_for(
            "set (a, b) = ...",
            "assign each column by itself",
        ));
    }
    match from {
        Some(UpdateTableFromKind::BeforeSet(tables) | UpdateTableFromKind::AfterSet(tables)) => {
            tables.iter().try_for_each(table_with_joins)
        }
        None => Ok(()),
    }
}

fn last(parts: &[ObjectNamePart]) -> Option<String> {
    parts.last()?.as_ident().map(column_name)
}

/// Checks what an assignment names: a column, which may have the name of its table before it.
///
/// # Errors
/// If it names a part of a column.
pub fn assigned(name: &ObjectName, table: Option<&str>) -> Result<()> {
    if let Some(own) = last(&name.0).filter(|own| own.contains(WAY)) {
        return Err(refused_for(
            &format!("set {} = ...", own.replace(WAY, "")),
            "assign the whole column: set s = row(...)",
        ));
    }
    match name.0.split_last() {
        Some((_, before)) if !before.is_empty() && last(before).as_deref() != table => {
            Err(refused_for(
                &format!("set {name} = ..."),
                "assign the whole struct: set s = row(...)",
            ))
        }
        _ => Ok(()),
    }
}

fn delete(statement: &Delete) -> Result<()> {
    let Delete {
        delete_token: _,
        optimizer_hints: _,
        tables,
        from: _,
        using,
        selection: _,
        returning,
        output,
        order_by,
        limit,
    } = statement;
    if let Some(using) = using {
        using.iter().try_for_each(table_with_joins)?;
    }
    none_of(&[
        (!tables.is_empty(), "tables before `from` in a delete"),
        (returning.is_some(), "returning"),
        (output.is_some(), "output"),
        (!order_by.is_empty(), "order by in a delete"),
        (limit.is_some(), "limit in a delete"),
    ])
}

fn truncate(statement: &Truncate) -> Result<()> {
    let Truncate {
        table_names,
        partitions,
        table: _,
        if_exists,
        // Whether the sequences of the tables begin anew.
        identity: _,
        cascade: _,
        on_cluster,
    } = statement;
    // No table inherits from another: both mean the table.
    let each = |TruncateTableTarget {
                    name: _,
                    only: _,
                    has_asterisk: _,
                }: &TruncateTableTarget| {};
    table_names.iter().for_each(each);
    none_of(&[
        (partitions.is_some(), "truncate ... partition"),
        (*if_exists, "truncate ... if exists"),
        (on_cluster.is_some(), "on cluster"),
    ])
}

/// Checks the clauses of a `create table`. Those of other databases would change what the table is.
#[expect(clippy::too_many_lines, reason = "each part stands here by name")]
fn create_table(statement: &CreateTable) -> Result<()> {
    let CreateTable {
        or_replace: _,
        temporary,
        external,
        dynamic,
        global,
        if_not_exists: _,
        transient,
        volatile,
        iceberg,
        snapshot,
        name: _,
        columns: _,
        // Checked where they are taken apart, as are those of columns.
        constraints: _,
        hive_distribution,
        hive_formats,
        table_options,
        file_format,
        location,
        query,
        without_rowid,
        like,
        clone,
        version,
        comment,
        // Refused for tables that are not temporary where they are made.
        on_commit: _,
        on_cluster,
        primary_key,
        order_by,
        partition_by,
        cluster_by,
        clustered_by,
        inherits,
        partition_of,
        for_values,
        strict,
        copy_grants,
        enable_schema_evolution,
        change_tracking,
        data_retention_time_in_days,
        max_data_extension_time_in_days,
        default_ddl_collation,
        with_aggregation_policy,
        with_row_access_policy,
        with_storage_lifecycle_policy,
        with_tags,
        external_volume,
        base_location,
        catalog,
        catalog_sync,
        storage_serialization_policy,
        target_lag,
        warehouse,
        refresh_mode,
        initialize,
        require_user,
        diststyle,
        distkey,
        sortkey,
        backup,
    } = statement;
    let hive = hive_formats.as_ref().is_some_and(|formats| {
        let HiveFormat {
            row_format,
            serde_properties,
            storage,
            location,
        } = formats;
        row_format.is_some()
            || serde_properties.is_some()
            || storage.is_some()
            || location.is_some()
    });
    let snowflake = [
        *dynamic,
        *transient,
        *volatile,
        *iceberg,
        *snapshot,
        *strict,
        *copy_grants,
        *require_user,
        enable_schema_evolution.is_some(),
        change_tracking.is_some(),
        data_retention_time_in_days.is_some(),
        max_data_extension_time_in_days.is_some(),
        default_ddl_collation.is_some(),
        with_aggregation_policy.is_some(),
        with_row_access_policy.is_some(),
        with_storage_lifecycle_policy.is_some(),
        with_tags.is_some(),
        external_volume.is_some(),
        base_location.is_some(),
        catalog.is_some(),
        catalog_sync.is_some(),
        storage_serialization_policy.is_some(),
        target_lag.is_some(),
        warehouse.is_some(),
        refresh_mode.is_some(),
        initialize.is_some(),
        diststyle.is_some(),
        distkey.is_some(),
        sortkey.is_some(),
        backup.is_some(),
    ];
    let clauses = [
        (global.is_some() && !temporary, "global or local"),
        (*external, "external"),
        (like.is_some() || clone.is_some(), "like or clone"),
        (version.is_some(), "a version of another table"),
        (
            inherits.is_some() || partition_of.is_some() || for_values.is_some(),
            "inherits or partition of",
        ),
        (
            !matches!(hive_distribution, HiveDistributionStyle::NONE),
            "partitioned by",
        ),
        (partition_by.is_some(), "partition by"),
        (cluster_by.is_some() || clustered_by.is_some(), "cluster by"),
        (hive || file_format.is_some(), "stored as or row format"),
        (location.is_some(), "location"),
        (*without_rowid, "without rowid"),
        (comment.is_some(), "comment"),
        (on_cluster.is_some(), "on cluster"),
        (primary_key.is_some(), "primary key after the columns"),
        // What a query delivers in order is kept so.
        (
            order_by.is_some() && query.is_some(),
            "order by before a query",
        ),
        (snowflake.contains(&true), "an option of another database"),
    ];
    if let Some((_, what)) = clauses.iter().find(|(there, _)| *there) {
        return Err(Error::unsupported(format!(
            "`{what}` is not supported in `create table`"
        )));
    }
    keys_hold(table_options).map(drop)
}

/// Checks the parts of a primary key.
pub(crate) fn primary_key_parts(key: &PrimaryKeyConstraint) -> Result<()> {
    let PrimaryKeyConstraint {
        name: _,
        index_name: _,
        index_type,
        columns,
        index_options,
        characteristics,
    } = key;
    none_of(&[(
        index_type.is_some() || !index_options.is_empty(),
        "an index of a primary key",
    )])?;
    key_columns(columns)?;
    characteristic(characteristics)
}

/// Checks the parts of a unique key.
pub(crate) fn unique_parts(key: &UniqueConstraint) -> Result<()> {
    let UniqueConstraint {
        name: _,
        index_name,
        index_type_display,
        index_type,
        columns,
        index_options,
        characteristics,
        nulls_distinct,
    } = key;
    let index = index_name.is_some()
        || index_type.is_some()
        || !matches!(index_type_display, KeyOrIndexDisplay::None)
        || !index_options.is_empty();
    none_of(&[
        (index, "an index of a unique key"),
        (
            matches!(nulls_distinct, NullsDistinctOption::NotDistinct),
            "unique nulls not distinct",
        ),
    ])?;
    key_columns(columns)?;
    characteristic(characteristics)
}

fn key_columns(columns: &[IndexColumn]) -> Result<()> {
    for IndexColumn {
        column,
        operator_class,
    } in columns
    {
        let OrderByExpr {
            expr: _,
            options: OrderByOptions { asc, nulls_first },
            with_fill: _,
        } = column;
        none_of(&[(
            asc.is_some() || nulls_first.is_some() || operator_class.is_some(),
            "an order in a key",
        )])?;
    }
    Ok(())
}

/// Checks the parts of a foreign key.
pub(crate) fn foreign_key(key: &ForeignKeyConstraint) -> Result<()> {
    let ForeignKeyConstraint {
        name: _,
        index_name: _,
        columns: _,
        foreign_table: _,
        referred_columns: _,
        on_delete: _,
        on_update: _,
        match_kind,
        characteristics,
    } = key;
    if matches!(match_kind, Some(ConstraintReferenceMatchKind::Partial)) {
        return Err(Error::unsupported("MATCH PARTIAL not yet implemented"));
    }
    // When it is looked at, and `not enforced`, are read where they are used.
    let _: &Option<ConstraintCharacteristics> = characteristics;
    Ok(())
}

fn characteristic(characteristics: &Option<ConstraintCharacteristics>) -> Result<()> {
    let Some(ConstraintCharacteristics {
        deferrable,
        initially,
        // `not enforced` declares the key only.
        enforced: _,
    }) = characteristics
    else {
        return Ok(());
    };
    let deferred = matches!(initially, Some(DeferrableInitial::Deferred));
    if *deferrable == Some(true) || deferred {
        return Err(refused_for(
            "deferrable for a primary or unique key",
            "leave it out: such a key is looked at when a statement has written all of its rows",
        ));
    }
    Ok(())
}
