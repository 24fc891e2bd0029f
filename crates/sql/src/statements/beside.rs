//! `update t set ... from u` and `delete from t using u ... returning u.a`: the rows of other tables beside those that are
//! written.
//!
//! The rows come from a query over all of these tables: the new values of each column, the number of the row, and, if they
//! are returned, the columns of the others. What is returned is a query over the rows of each table, which have numbers.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, UInt64Array};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::Column;
use datafusion_expr::TableSource;
use datafusion_expr::{Expr as Planned, ExprSchemable, LogicalPlan, LogicalPlanBuilder};
use sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, Expr, FromTable, Ident, Join, JoinConstraint,
    JoinOperator, ObjectName, Query, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    Statement as Sql, TableFactor, TableWithJoins, Update, UpdateTableFromKind, Value,
    WildcardAdditionalOptions,
};
use syntax::expression::written;
use syntax::names::column_name;
use syntax::returning::{NUMBER, WRITTEN, is_assigned, others, relations};
use table::{Definition, ROW_COLUMN};

use crate::error::{Error, Result};
use crate::messages::nearest::unknown_column;
use crate::messages::tags::shown;
use crate::resources::budget::{Held, footprint};
use crate::run::context::StatementContext;
use crate::run::system_columns;
use crate::scan::rows::RowTable;
use crate::scan::written_rows::{WrittenRows, with_places};
use crate::statements::assigned::fold_targets;
use crate::statements::{steps, ways};

/// The rows of one table beside those that are written.
struct Other {
    /// What the statement calls it.
    name: String,
    schema: SchemaRef,
    /// Where its columns stand behind the number of the row.
    places: Vec<usize>,
    batches: Vec<RecordBatch>,
}

/// The rows of a statement over several tables.
pub(super) struct Beside {
    /// Whether these are queries alone, of which columns are assigned.
    pub assigned: bool,
    definition: Definition,
    others: Vec<Other>,
    held: Held,
}

/// Whether an `update` takes its values from other tables or queries.
pub(super) fn is_wanted(statement: &Update) -> bool {
    statement.from.is_some()
}

fn lost() -> Error {
    Error::Defect {
        message: "a statement over several tables has no table".into(),
    }
}

impl Beside {
    /// The plan of the rows of an `update`: for each column its value, then the number of the row, then what is kept here.
    ///
    /// # Errors
    /// Those of planning it.
    pub(super) async fn update(
        context: &StatementContext,
        statement: Update,
        definition: &Definition,
        (target, returned): (&str, bool),
    ) -> Result<(Beside, LogicalPlan)> {
        let TableFactor::Table { name, alias, .. } = &statement.table.relation else {
            return Err(lost());
        };
        let own = called(name, alias.as_ref().map(|alias| &alias.name));
        for set in &statement.assignments {
            if !definition.columns.iter().any(|own| sets(set, &own.name)) {
                let name = match &set.target {
                    AssignmentTarget::ColumnName(name) => name.0.last(),
                    AssignmentTarget::Tuple(_) => None,
                };
                let name = name.and_then(|part| part.as_ident()).map(column_name);
                return Err(unknown_column(&name.unwrap_or_default(), definition));
            }
        }
        let values = definition.columns.iter().map(|column| {
            let assigned = statement
                .assignments
                .iter()
                .find(|set| sets(set, &column.name));
            match assigned {
                Some(set) => set.value.clone(),
                None => of_own(&own, &column.name),
            }
        });
        let values = values.collect();
        let from = match statement.from {
            Some(UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)) => {
                from
            }
            None => vec![],
        };
        let names = names_of(&from, returned)?;
        let assigned = from.iter().all(|table| is_assigned(&table.relation));
        let tables = arranged(statement.table.clone(), from);
        let query = over(&own, values, &names, (tables, statement.selection))?;
        let (mut beside, plan) = Beside::planned(context, query, definition, target).await?;
        beside.assigned = assigned;
        Ok((beside, plan))
    }

    /// The plan of the rows of a `delete ... using` that returns some, with the values that its rows have.
    ///
    /// # Errors
    /// Those of planning it.
    pub(super) async fn delete(
        context: &StatementContext,
        statement: Delete,
        definition: &Definition,
        target: &str,
    ) -> Result<(Beside, LogicalPlan)> {
        let (FromTable::WithFromKeyword(mut tables) | FromTable::WithoutKeyword(mut tables)) =
            statement.from;
        let own = match tables.first().map(|first| &first.relation) {
            Some(TableFactor::Table { name, alias, .. }) => {
                called(name, alias.as_ref().map(|alias| &alias.name))
            }
            _ => return Err(lost()),
        };
        let using: Vec<TableWithJoins> = statement.using.into_iter().flatten().collect();
        let names = names_of(&using, true)?;
        tables.extend(using);
        let values = definition.columns.iter();
        let values = values.map(|column| of_own(&own, &column.name)).collect();
        let query = over(&own, values, &names, (tables, statement.selection))?;
        Beside::planned(context, query, definition, target).await
    }

    async fn planned(
        context: &StatementContext,
        query: Box<Query>,
        definition: &Definition,
        target: &str,
    ) -> Result<(Beside, LogicalPlan)> {
        let plan = context.plan(Sql::Query(query), Some(target)).await?;
        let width = definition.columns.len();
        let types = definition.schema();
        let schema = Arc::clone(plan.schema());
        let mut found: Vec<Other> = Vec::new();
        let mut exprs = Vec::new();
        for (at, (table, field)) in schema.iter().enumerate() {
            let column = Planned::Column(Column::from((table, field)));
            if at < width {
                let own = column.cast_to(types.field(at).data_type(), schema.as_ref())?;
                exprs.push(own.alias(format!("__new{at}")));
                continue;
            }
            exprs.push(column.alias(format!("__other{at}")));
            let Some(table) = table.filter(|_| at > width && field.name() != ROW_COLUMN) else {
                continue;
            };
            let name = table.table().to_string();
            let place = match found.iter().position(|other| other.name == name) {
                Some(place) => place,
                None => {
                    found.push(Other {
                        name,
                        schema: Arc::new(Schema::empty()),
                        places: vec![],
                        batches: vec![],
                    });
                    found.len() - 1
                }
            };
            let own = &mut found[place];
            let field = Field::new(field.name(), field.data_type().clone(), true);
            let fields = own.schema.fields().iter().map(|f| f.as_ref().clone());
            own.schema = Arc::new(Schema::new(fields.chain([field]).collect::<Vec<_>>()));
            own.places.push(at);
        }
        let plan = LogicalPlanBuilder::from(plan).project(exprs)?.build()?;
        let beside = Beside {
            assigned: false,
            definition: definition.clone(),
            others: found,
            held: Held::of(&context.instance.budget),
        };
        Ok((beside, plan))
    }

    /// The columns of the table and the number of the row, of which the rest is kept.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(super) fn take(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let width = self.definition.columns.len();
        for other in &mut self.others {
            let columns: Vec<ArrayRef> = other
                .places
                .iter()
                .map(|at| Arc::clone(batch.column(*at)))
                .collect();
            let kept = RecordBatch::try_new(Arc::clone(&other.schema), columns)?;
            self.held
                .more(footprint(&kept))
                .map_err(|e| Error::Memory {
                    message: format!("`returning` keeps the rows of the statement in memory: {e}"),
                })?;
            other.batches.push(kept);
        }
        let own = self.definition.columns.iter();
        let own = own.map(|column| Field::new(&column.name, column.data_type.clone(), true));
        let row = Field::new(ROW_COLUMN, DataType::UInt64, false);
        let schema = Schema::new(own.chain([row]).collect::<Vec<_>>());
        let columns = batch.columns()[..=width].to_vec();
        Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
    }

    /// Gives the query of a `returning` the rows that were written, with their numbers as the last column if they have places, and
    /// those beside them, and writes out its `*`.
    ///
    /// # Errors
    /// If the rows do not fit their tables.
    pub(super) fn give(
        self,
        context: &mut StatementContext,
        query: &mut Query,
        (rows, has_places): (Vec<RecordBatch>, bool),
    ) -> Result<()> {
        let own = self.definition.schema();
        let fields = own
            .fields()
            .iter()
            .map(|f| f.as_ref().clone().with_nullable(true));
        let own: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        expand(query, &own, &self.others)?;
        let of = Some((self.definition.name.as_str(), has_places));
        let own = if has_places { with_places(&own) } else { own };
        put(context, (WRITTEN, of), &own, rows)?;
        let known: Vec<String> = self.others.iter().map(|other| other.name.clone()).collect();
        for other in self.others {
            put(
                context,
                (&other_name(&other.name), None),
                &other.schema,
                other.batches,
            )?;
        }
        // Tables without columns that anybody sees.
        for name in others(query) {
            let missing = !known.iter().any(|own| other_name(own) == name);
            if missing {
                return Err(Error::unsupported(
                    "`returning` needs columns of each table in `from` or `using`",
                ));
            }
        }
        Ok(())
    }
}

/// Gives the query of a `returning` over several tables their columns, without rows; false for others.
///
/// # Errors
/// Those of planning the statement.
pub(super) async fn describe(
    context: &mut StatementContext,
    statement: &Sql,
    definition: &Definition,
    query: &mut Query,
) -> Result<bool> {
    let name = definition.name.clone();
    let (beside, _) = match statement {
        Sql::Update(update) if is_wanted(update) => {
            let mut update = update.clone();
            ways::of_update(&mut update, definition)?;
            fold_targets(&mut update)?;
            crate::statements::default::fill_update(&mut update, definition)?;
            Beside::update(context, update, definition, (&name, true)).await?
        }
        Sql::Delete(delete) if delete.using.is_some() => {
            Beside::delete(context, delete.clone(), definition, &name).await?
        }
        _ => return Ok(false),
    };
    let has_places = match statement {
        Sql::Delete(_) => system_columns::reads_places(&*query),
        _ => system_columns::reads_written_places(query, definition),
    };
    beside.give(context, query, (vec![], has_places))?;
    Ok(true)
}

/// The rows that come first of several with one number, which is their last column.
pub(super) fn first_of_each(
    batch: &RecordBatch,
    mut is_new: impl FnMut(u64) -> bool,
    width: usize,
) -> Result<RecordBatch> {
    let ids = batch.column(width);
    let Some(ids) = ids.as_any().downcast_ref::<UInt64Array>() else {
        return Err(lost());
    };
    let new: BooleanArray = ids.values().iter().map(|id| Some(is_new(*id))).collect();
    Ok(filter_record_batch(batch, &new)?)
}

/// The name in the statement of the rows of a table beside the one that is written.
fn other_name(name: &str) -> String {
    format!("__other {name}")
}

/// Gives the query of a `returning` rows, by the name that it knows them by; and the name of their table in the catalog, and
/// whether they have places there, if they are those that are written.
fn put(
    context: &mut StatementContext,
    (name, of): (&str, Option<(&str, bool)>),
    schema: &SchemaRef,
    batches: Vec<RecordBatch>,
) -> Result<()> {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone());
    let number = Field::new(NUMBER, DataType::UInt64, false);
    let numbered: SchemaRef = Arc::new(Schema::new(fields.chain([number]).collect::<Vec<_>>()));
    let mut next = 0u64;
    let mut all = Vec::with_capacity(batches.len());
    for batch in batches {
        let end = next + batch.num_rows() as u64;
        let mut columns = batch.columns().to_vec();
        columns.push(Arc::new(UInt64Array::from_iter_values(next..end)));
        all.push(RecordBatch::try_new(Arc::clone(&numbered), columns)?);
        next = end;
    }
    let rows = RowTable::in_memory(numbered, all);
    let rows: Arc<dyn TableSource> = match of {
        Some((table, has_places)) => Arc::new(WrittenRows {
            table: table.to_owned(),
            has_places,
            rows,
        }),
        None => Arc::new(rows),
    };
    steps::put(&mut context.given, name, rows);
    Ok(())
}

/// Writes out `*` and `t.*`, which leave the numbers of rows out.
fn expand(query: &mut Query, own: &SchemaRef, others: &[Other]) -> Result<()> {
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(lost());
    };
    let first = select.from.first().and_then(|from| match &from.relation {
        TableFactor::Table { alias, .. } => alias.as_ref().map(|alias| alias.name.clone()),
        _ => None,
    });
    let first = first.ok_or_else(lost)?;
    let columns = |table: &Ident, schema: &SchemaRef| -> Vec<SelectItem> {
        let fields = schema.fields().iter();
        fields
            .map(|field| SelectItem::ExprWithAlias {
                expr: Expr::CompoundIdentifier(vec![
                    table.clone(),
                    Ident::with_quote('"', field.name()),
                ]),
                alias: Ident::with_quote('"', shown(field.name())),
            })
            .collect()
    };
    let mut items = Vec::new();
    for item in std::mem::take(&mut select.projection) {
        let plain = WildcardAdditionalOptions::default();
        match item {
            SelectItem::Wildcard(options) if same(&options, &plain) => {
                items.extend(columns(&first, own));
                for other in others {
                    let name = Ident::with_quote('"', &other.name);
                    items.extend(columns(&name, &other.schema));
                }
            }
            SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(name),
                options,
            ) if same(&options, &plain) => {
                let wanted = name
                    .0
                    .last()
                    .and_then(|part| part.as_ident())
                    .map(column_name);
                let other = others
                    .iter()
                    .find(|other| Some(&other.name) == wanted.as_ref());
                match other {
                    Some(other) => {
                        let name = Ident::with_quote('"', &other.name);
                        items.extend(columns(&name, &other.schema));
                    }
                    None => items.extend(columns(&first, own)),
                }
            }
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => {
                return Err(Error::unsupported(
                    "`returning` takes no `* exclude` or its kind beside other tables",
                ));
            }
            item => items.push(item),
        }
    }
    apart(&mut items);
    select.projection = items;
    Ok(())
}

/// Tells columns of one name apart, which people do not see.
fn apart(items: &mut [SelectItem]) {
    let mut seen: Vec<String> = Vec::new();
    for item in items {
        if let SelectItem::ExprWithAlias { alias, .. } = item {
            let name = alias.value.clone();
            let before = seen.iter().filter(|own| **own == name).count();
            if before > 0 {
                *alias = crate::messages::tags::tagged(&name, before);
            }
            seen.push(name);
        }
    }
}

/// Whether two `*` say the same beside what stands around them.
fn same(one: &WildcardAdditionalOptions, other: &WildcardAdditionalOptions) -> bool {
    one == other
}

fn sets(set: &Assignment, column: &str) -> bool {
    match &set.target {
        AssignmentTarget::ColumnName(name) => {
            let last = name.0.last().and_then(|part| part.as_ident());
            last.is_some_and(|own| own.value == column)
        }
        AssignmentTarget::Tuple(_) => false,
    }
}

/// The parts of the name by which a statement calls its table.
fn called(name: &ObjectName, alias: Option<&Ident>) -> Vec<Ident> {
    match alias {
        Some(alias) => vec![alias.clone()],
        None => name
            .0
            .iter()
            .filter_map(|part| part.as_ident().cloned())
            .collect(),
    }
}

fn of_own(own: &[Ident], column: &str) -> Expr {
    let mut parts = own.to_vec();
    parts.push(Ident::with_quote('"', column));
    Expr::CompoundIdentifier(parts)
}

/// The names of tables whose rows are returned beside.
fn names_of(from: &[TableWithJoins], returned: bool) -> Result<Vec<Ident>> {
    if returned {
        relations(from)
    } else {
        Ok(vec![])
    }
}

/// The tables of an `update`. What it assigns several columns from at once is joined so that no row is lost.
fn arranged(own: TableWithJoins, from: Vec<TableWithJoins>) -> Vec<TableWithJoins> {
    let (sets, others): (Vec<_>, Vec<_>) = from
        .into_iter()
        .partition(|table| is_assigned(&table.relation));
    if sets.is_empty() {
        return std::iter::once(own).chain(others).collect();
    }
    let join = |relation, join_operator| Join {
        relation,
        global: false,
        join_operator,
    };
    let mut all = own;
    for other in others {
        let relation = if other.joins.is_empty() {
            other.relation
        } else {
            TableFactor::NestedJoin {
                table_with_joins: Box::new(other),
                alias: None,
            }
        };
        let cross = JoinOperator::CrossJoin(JoinConstraint::None);
        all.joins.push(join(relation, cross));
    }
    for set in sets {
        let always = Expr::value(Value::Boolean(true));
        let left = JoinOperator::LeftOuter(JoinConstraint::On(always));
        all.joins.push(join(set.relation, left));
    }
    vec![all]
}

/// `select values, t.row, u.* from t, u where ...`.
fn over(
    own: &[Ident],
    values: Vec<Expr>,
    names: &[Ident],
    (tables, selection): (Vec<TableWithJoins>, Option<Expr>),
) -> Result<Box<Query>> {
    let mut query = written("select 1")?;
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(lost());
    };
    let named = values.into_iter().enumerate();
    let mut items: Vec<SelectItem> = named
        .map(|(at, expr)| SelectItem::ExprWithAlias {
            expr,
            alias: Ident::with_quote('"', format!("__value{at}")),
        })
        .collect();
    items.push(SelectItem::ExprWithAlias {
        expr: of_own(own, ROW_COLUMN),
        alias: Ident::with_quote('"', "__row"),
    });
    items.extend(names.iter().map(|name| {
        let name = ObjectName::from(vec![name.clone()]);
        SelectItem::QualifiedWildcard(
            SelectItemQualifiedWildcardKind::ObjectName(name),
            WildcardAdditionalOptions::default(),
        )
    }));
    select.projection = items;
    select.from = tables;
    select.selection = selection;
    Ok(query)
}
