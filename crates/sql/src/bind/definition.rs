//! Table definitions from the columns and constraints of `create table`.

use arrow::datatypes::Schema;
use datafusion_expr::planner::ContextProvider;
use datafusion_sql::planner::SqlToRel;
use sqlparser::ast::{ArrayElemTypeDef, ColumnDef, DataType, Statement as Sql, TableConstraint};
use syntax::columns::{self, Values};
use syntax::constraints::{self, Constraint, What};
use syntax::lengths;
use syntax::mentioned;
use syntax::names::{base, check_new, column_name, session_of};
use syntax::parse::{Statement, parse};
use syntax::sequences::SequenceOptions;
use syntax::table_options::keys_hold;
use table::{
    Action, Check, Column, DOMAIN, Deferral, Definition, ForeignKey, Generated, Rule, Tables,
};

use crate::bind::composites;
use crate::error::{Error, Result};
use crate::messages::nearest::{unknown_column, unknown_table};
use crate::messages::types::type_name;

/// The definition that `text` declares for a table `name`: a `create table` statement, whose own name does not matter,
/// or only its list of columns and keys. `context` knows the types, `tables` are those that foreign keys may name.
///
/// # Errors
/// As [`define`], and for texts that are neither.
pub(crate) fn of_text(
    name: &str,
    text: &str,
    context: &impl ContextProvider,
    tables: &Tables,
) -> Result<Definition> {
    let text = text.trim().trim_end_matches(';');
    let whole = text
        .get(..6)
        .is_some_and(|word| word.eq_ignore_ascii_case("create"));
    let statement = match (whole, text.starts_with('(')) {
        (true, _) => text.to_owned(),
        (false, true) => format!("create table t {text}"),
        (false, false) => format!("create table t ({text})"),
    };
    let neither = || {
        Error::coded(
            "42601",
            "a schema is one `create table` with its columns, or their list",
        )
    };
    let mut statements = parse(&statement)?;
    let (Some(only), true) = (statements.pop(), statements.is_empty()) else {
        return Err(neither());
    };
    let Statement::Sql(sql) = only.statement else {
        return Err(neither());
    };
    let Sql::CreateTable(statement) = *sql else {
        return Err(neither());
    };
    if statement.query.is_some() {
        return Err(neither());
    }
    check_new(name)?;
    let defined = define(
        name,
        statement.columns,
        statement.constraints,
        keys_hold(&statement.table_options)?,
        context,
        tables,
    )?;
    if let Some(notice) = defined.notices.first() {
        return Err(Error::unsupported(notice.clone()));
    }
    let made = |column: &Column| column.expression().is_some();
    if !defined.sequences.is_empty() || defined.definition.columns.iter().any(made) {
        return Err(Error::unsupported(
            "a schema that comes with rows has no serial, identity or generated columns: `create table` first",
        ));
    }
    Ok(defined.definition)
}

/// A table that is to be created.
#[derive(Debug)]
pub(crate) struct Defined {
    pub definition: Definition,
    /// The sequences of its columns, which have no names yet.
    pub sequences: Vec<NewSequence>,
    /// What is to be told of its columns.
    pub notices: Vec<String>,
}

/// The sequence of a column that is to be created.
#[derive(Debug)]
pub(crate) struct NewSequence {
    /// The position of the column.
    pub column: usize,
    pub options: SequenceOptions,
    /// Whether an identity column always has its numbers; `None` for one that has them as its default.
    pub always: Option<bool>,
}

/// The definition of a table `name` with these columns and constraints; keys hold only if `hold`.
///
/// # Errors
/// For columns and keys that cannot be declared, and for references to tables or columns that do not exist.
pub(crate) fn define(
    name: &str,
    columns: Vec<ColumnDef>,
    constraints: Vec<TableConstraint>,
    hold: bool,
    context: &impl ContextProvider,
    tables: &Tables,
) -> Result<Defined> {
    if columns.is_empty() {
        return Err(Error::coded(
            "42P16",
            format!("table \"{name}\" needs at least one column"),
        ));
    }
    let mut columns = columns;
    let domains = domains(&mut columns, context, tables)?;
    let notices = lengths::narrow(&mut columns);
    let types = columns.iter();
    let types: Vec<(String, DataType)> = types
        .map(|column| (column_name(&column.name), column.data_type.clone()))
        .collect();
    let mut own = Vec::new();
    let (columns, values): (Vec<_>, Vec<_>) = columns
        .into_iter()
        .map(|column| columns::split(name, column, &mut own))
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .unzip();
    let schema = column_types(context, columns)?;
    let mut definition = Definition::from_schema(name, &schema)?;
    for (column, domain) in definition.columns.iter_mut().zip(domains) {
        column.domain = domain;
    }
    let mut sequences = Vec::new();
    for (at, values) in values.into_iter().enumerate() {
        let column = &mut definition.columns[at];
        match values {
            Values::Plain => {}
            Values::Default(text) => column.default = Some(text),
            Values::Stored(text) => column.generated = Some(Generated::Stored { text }),
            Values::Numbers { options, always } => {
                column.nullable = false;
                sequences.push(NewSequence {
                    column: at,
                    options: columns::of_type(options, &column.data_type)?,
                    always,
                });
            }
        }
    }
    let all = constraints.iter().map(constraints::of_table);
    let mut all: Vec<Constraint> = own.into_iter().map(Ok).chain(all).collect::<Result<_>>()?;
    // Foreign keys last, as they may refer to a key of the table itself; named ones first, so that those without do
    // not take their names.
    let refers = |constraint: &Constraint| matches!(constraint.what, What::Foreign { .. });
    all.sort_by_key(|constraint| (refers(constraint), constraint.name.is_none()));
    for mut constraint in all {
        constraint.held &= hold;
        add(&mut definition, constraint, tables)?;
    }
    definition.checks.extend(lengths::checks(&types));
    Ok(Defined {
        definition,
        sequences,
        notices,
    })
}

/// Gives columns of domains, composite types and arrays of these the types behind, and returns what they are of, by column.
fn domains(
    columns: &mut [ColumnDef],
    context: &impl ContextProvider,
    tables: &Tables,
) -> Result<Vec<Option<String>>> {
    let mut found = Vec::with_capacity(columns.len());
    let planner = context.get_type_planner();
    for column in columns {
        let (item, dimensions) = item_of(&column.data_type);
        let field = match (&planner, item) {
            (Some(planner), DataType::Custom(..)) if !columns::is_serial(item) => {
                planner.plan_type_field(item)?
            }
            _ => None,
        };
        let domain = field.and_then(|field| field.metadata().get(DOMAIN).cloned());
        let own = domain.as_ref().and_then(|domain| tables.domain(domain));
        let own = own.filter(|own| own.composite || dimensions == 0);
        if let Some(own) = own {
            let behind = composites::behind(own, tables)?;
            column.data_type = composites::arrays_of(behind, dimensions);
        }
        // The planner refuses arrays of other domains.
        found.push(own.map(|own| own.name.clone()));
    }
    Ok(found)
}

/// The type of the items of arrays, and their dimensions; of others the type itself, and none.
fn item_of(data_type: &DataType) -> (&DataType, usize) {
    match data_type {
        DataType::Array(ArrayElemTypeDef::SquareBracket(item, None)) => {
            let (item, dimensions) = item_of(item);
            (item, dimensions + 1)
        }
        other => (other, 0),
    }
}

/// Adds a constraint to a definition.
///
/// # Errors
/// If it names columns or tables that do not exist, has the name of another, or does not go with one.
#[expect(
    clippy::too_many_lines,
    reason = "each kind stands here with what it says"
)]
pub(crate) fn add(
    definition: &mut Definition,
    constraint: Constraint,
    tables: &Tables,
) -> Result<()> {
    let Constraint {
        name,
        held,
        deferral,
        unchecked,
        what,
    } = constraint;
    let table = definition.name.clone();
    if let Some(name) = name.as_ref().filter(|name| definition.has_constraint(name)) {
        return Err(Error::coded(
            "42710",
            format!("constraint \"{name}\" for relation \"{table}\" already exists"),
        ));
    }
    let named = |definition: &Definition, own: &str| {
        name.clone()
            .unwrap_or_else(|| definition.free_name(&format!("{}_{own}", base(&table))))
    };
    match what {
        What::Primary(columns) => {
            let columns = distinct(definition, &columns)?;
            let declared = !definition.primary_key.is_empty();
            if declared
                && (definition.primary_key != columns || definition.keys.iter().any(|k| k.primary))
            {
                return Err(Error::coded(
                    "42P16",
                    format!("multiple primary keys for table \"{table}\" are not allowed"),
                ));
            }
            for column in &columns {
                definition.columns[*column].nullable = false;
            }
            definition.primary_key.clone_from(&columns);
            if held {
                let name = named(definition, "pkey");
                definition.add_key(name, columns, true);
            }
        }
        What::Unique(names) => {
            let columns = distinct(definition, &names)?;
            if held {
                let name = named(definition, &format!("{}_key", names.join("_")));
                definition.add_key(name, columns, false);
            }
        }
        What::Check { text } => {
            // Called after the only column that it names, wherever it is declared.
            let own = match &mentioned::columns(&text)?[..] {
                [column] => format!("{column}_check"),
                _ => "check".to_owned(),
            };
            let name = named(definition, &own);
            definition.checks.push(Check {
                name,
                text,
                unchecked,
            });
        }
        What::Foreign {
            columns: names,
            parent,
            parent_columns,
            on_delete,
            on_update,
            delete_columns,
            full,
        } => {
            let columns = referring(definition, &names)?;
            acts_on_plain(definition, &columns, on_delete, on_update)?;
            let delete_columns = set_on_delete(definition, &names, &delete_columns)?;
            let name = named(definition, &format!("{}_fkey", names.join("_")));
            let to = (parent, parent_columns);
            let key = foreign_key(tables, definition, (&name, columns), to)?;
            let rule = Rule {
                foreign_key: definition.foreign_keys.len(),
                name,
                on_delete,
                on_update,
                delete_columns,
                full,
                deferral,
                unchecked,
            };
            refer(definition, key, rule, held, tables)?;
        }
    }
    Ok(())
}

/// That a foreign key writes to no column whose values are computed.
fn acts_on_plain(
    definition: &Definition,
    columns: &[usize],
    on_delete: Action,
    on_update: Action,
) -> Result<()> {
    let mut columns = columns.iter();
    if !columns.any(|at| definition.columns[*at].expression().is_some()) {
        return Ok(());
    }
    let event = if matches!(on_delete, Action::SetNull | Action::SetDefault) {
        "DELETE"
    } else if on_update.changes_rows() {
        "UPDATE"
    } else {
        return Ok(());
    };
    Err(Error::Syntax {
        message: format!(
            "invalid ON {event} action for foreign key constraint containing generated column"
        ),
        position: None,
    })
}

/// The places in a foreign key of the columns that it sets when what it refers to is deleted.
fn set_on_delete(definition: &Definition, of: &[String], columns: &[String]) -> Result<Vec<usize>> {
    let place = |column: &String| {
        referring(definition, std::slice::from_ref(column))?;
        let found = of.iter().position(|own| own == column);
        found.ok_or_else(|| {
            Error::coded(
                "42830",
                format!(
                    "column \"{column}\" referenced in ON DELETE SET action must be part of foreign key"
                ),
            )
        })
    };
    columns.iter().map(place).collect()
}

/// Adds a foreign key, which holds if what it refers to does.
fn refer(
    definition: &mut Definition,
    key: ForeignKey,
    rule: Rule,
    held: bool,
    tables: &Tables,
) -> Result<()> {
    let acts = rule.on_delete.changes_rows()
        || rule.on_update.changes_rows()
        || rule.full
        || rule.deferral != Deferral::Never;
    if held && refers_to_key(tables, definition, &key) {
        definition.rules.push(rule);
    } else if acts {
        return Err(Error::Constraint {
            code: "42830",
            message: format!(
                "there is no unique constraint matching given keys for referenced table \"{}\"",
                key.parent
            ),
        });
    }
    definition.foreign_keys.push(key);
    Ok(())
}

/// Whether a foreign key refers to a key that holds: one that does not is a declaration.
fn refers_to_key(tables: &Tables, own: &Definition, key: &ForeignKey) -> bool {
    let table = tables.get(&key.parent);
    let parent = match &table {
        _ if key.parent == own.name => own,
        Some(table) => table.definition(),
        None => return false,
    };
    table::referred_key(parent, key).is_some()
}

/// The positions of the columns of a key, each of which it has once.
fn distinct(definition: &Definition, names: &[String]) -> Result<Vec<usize>> {
    let columns = indices(definition, names)?;
    for (at, column) in columns.iter().enumerate() {
        if columns[..at].contains(column) {
            return Err(Error::coded(
                "42701",
                format!("column \"{}\" appears twice in a key", names[at]),
            ));
        }
    }
    Ok(columns)
}

/// The columns with the types that DataFusion's planner gives SQL's names.
fn column_types(context: &impl ContextProvider, columns: Vec<ColumnDef>) -> Result<Schema> {
    let schema = SqlToRel::new(context).build_schema(columns)?;
    for (i, field) in schema.fields().iter().enumerate() {
        if schema.fields()[..i]
            .iter()
            .any(|other| other.name() == field.name())
        {
            return Err(Error::coded(
                "42701",
                format!("column \"{}\" appears twice", field.name()),
            ));
        }
    }
    Ok(schema)
}

/// The positions of the columns of a foreign key, on either side.
fn referring(definition: &Definition, names: &[String]) -> Result<Vec<usize>> {
    let place = |name: &String| {
        let found = definition.columns.iter().position(|own| own.name == *name);
        found.ok_or_else(|| {
            Error::coded(
                "42703",
                format!("column \"{name}\" referenced in foreign key constraint does not exist"),
            )
        })
    };
    names.iter().map(place).collect()
}

fn indices(definition: &Definition, names: &[String]) -> Result<Vec<usize>> {
    names
        .iter()
        .map(
            |name| match definition.columns.iter().position(|c| c.name == *name) {
                Some(index) => Ok(index),
                None => Err(unknown_column(name, definition)),
            },
        )
        .collect()
}

/// That both tables of a foreign key are permanent, or temporary ones of the same session.
fn live_alike(child: &str, parent: &str) -> Result<()> {
    let (own, other) = (session_of(child), session_of(parent));
    if own == other {
        return Ok(());
    }
    let kind = match own {
        Some(_) => "temporary",
        None => "permanent",
    };
    Err(Error::coded(
        "42P16",
        format!("constraints on {kind} tables may reference only {kind} tables"),
    ))
}

/// A foreign key, once its parent is known to exist with as many columns of the same types.
fn foreign_key(
    tables: &Tables,
    child: &Definition,
    (name, columns): (&str, Vec<usize>),
    (parent, mut parent_columns): (String, Vec<String>),
) -> Result<ForeignKey> {
    live_alike(&child.name, &parent)?;
    let found = tables.get(&parent);
    if tables.materialized(&parent).is_some() {
        return Err(Error::coded(
            "42809",
            format!("referenced relation \"{parent}\" is not a table"),
        ));
    }
    let target = match &found {
        _ if parent == child.name => child,
        Some(table) => table.definition(),
        None => {
            return Err(unknown_table(&parent, tables));
        }
    };
    if parent_columns.is_empty() {
        if target.primary_key.is_empty() {
            return Err(Error::Constraint {
                code: "42704",
                message: format!(
                    "there is no primary key for referenced table \"{}\"",
                    base(&parent)
                ),
            });
        }
        parent_columns = target
            .primary_key
            .iter()
            .map(|i| target.columns[*i].name.clone())
            .collect();
    }
    if parent_columns.len() != columns.len() {
        return Err(Error::Constraint {
            code: "42830",
            message: "number of referencing and referenced columns for foreign key disagree"
                .to_owned(),
        });
    }
    for (column, referred) in columns.iter().zip(referring(target, &parent_columns)?) {
        let (here, there) = (&child.columns[*column], &target.columns[referred]);
        if !table::may_refer(&here.data_type, &there.data_type) {
            return Err(Error::Constraint {
                code: "42804",
                message: format!(
                    "foreign key constraint \"{name}\" cannot be implemented: Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
                    here.name,
                    there.name,
                    type_name(&here.data_type),
                    type_name(&there.data_type)
                ),
            });
        }
    }
    Ok(ForeignKey {
        columns,
        parent,
        parent_columns,
    })
}
