//! `information_schema`: what the database says about its tables.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use async_trait::async_trait;
use datafusion::catalog::information_schema::InformationSchemaProvider;
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProvider, MemoryCatalogProviderList,
    SchemaProvider, TableProvider,
};
use datafusion::datasource::MemTable;
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::TableType;
use table::{Column, Sequence, Tables, enum_name, is_enum};

use crate::messages::numbers::{short_name, type_number};
use crate::messages::types;
use crate::names::{CATALOG, SCHEMA, base, catalog_name, permanent, schema_of};
use crate::rights::Rights;
use crate::scan::catalog::{self, ViewColumns};
use crate::scan::provider::Provider;

/// A catalog of a snapshot's tables for DataFusion's `information_schema`.
pub(crate) fn catalogs(tables: &Arc<Tables>) -> Arc<dyn CatalogProviderList> {
    let catalog = MemoryCatalogProvider::new();
    // No call can fail: the providers are new and take what they are given.
    let mut names = vec![SCHEMA];
    names.extend(tables.schemas());
    for name in names {
        let schema = SnapshotSchema {
            name: name.to_owned(),
            tables: Arc::clone(tables),
        };
        let _ = catalog.register_schema(name, Arc::new(schema));
    }
    let catalogs = MemoryCatalogProviderList::new();
    let _ = catalogs.register_catalog(CATALOG.to_string(), Arc::new(catalog));
    Arc::new(catalogs)
}

/// The view of `information_schema` of that name, if there is one. All are DataFusion's except `columns`, where
/// DataFusion uses Arrow's names of types, `schemata`, which has those of the system here, and `sequences` and those about
/// rights and constraints, which it has not. `views` are the columns of views.
pub(crate) async fn view(
    tables: &Arc<Tables>,
    rights: &Rights,
    name: &str,
    views: &ViewColumns,
) -> DataFusionResult<Option<Arc<dyn TableProvider>>> {
    if let Some(view) = catalog::of_standard(tables, rights, name)? {
        return Ok(Some(view));
    }
    if name == "columns" {
        return Ok(Some(columns(tables, views)?));
    }
    if name == "schemata" {
        return Ok(Some(catalog::schemata(tables)?));
    }
    if name == "sequences" {
        return Ok(Some(catalog::sequences(tables)?));
    }
    let others = InformationSchemaProvider::new(catalogs(tables));
    others.table(name).await
}

/// The name of a table, the position of a column in it, counted from 1, and the column.
type Place<'t> = (String, i32, &'t Column);

/// The columns of all tables and of these views.
fn places<'t>(tables: &'t Tables, views: &'t ViewColumns) -> Vec<Place<'t>> {
    let mut names = permanent(tables.names());
    names.retain(|name| tables.materialized(name).is_none());
    names.sort_unstable();
    let of_table = |name: &str| {
        let table = tables.get(name)?;
        Some((name.to_string(), &table.definition().columns))
    };
    let of_views = views.iter().map(|(name, columns)| (name.clone(), columns));
    let mut rows = Vec::new();
    for (name, columns) in names.into_iter().filter_map(of_table).chain(of_views) {
        let columns = columns.iter().enumerate();
        rows.extend(columns.map(|(at, column)| (name.clone(), at as i32 + 1, column)));
    }
    rows
}

/// The name in the catalog of the enum that a type is, or whose arrays it is of.
fn type_of_own(data_type: &DataType) -> Option<(bool, &str)> {
    match data_type {
        DataType::List(item) => enum_name(item.data_type()).map(|name| (true, name)),
        own => enum_name(own).map(|name| (false, name)),
    }
}

/// The same of the composite type that a column is of.
fn composite_of<'t>(tables: &'t Tables, column: &Column) -> Option<(bool, &'t str)> {
    let own = tables.domain(column.domain.as_deref()?)?;
    let is_list = matches!(column.data_type, DataType::List(_));
    own.composite.then_some((is_list, own.name.as_str()))
}

/// `information_schema.columns`, of tables and of these views.
fn columns(tables: &Tables, views: &ViewColumns) -> DataFusionResult<Arc<dyn TableProvider>> {
    let rows = places(tables, views);
    let texts = |of: &dyn Fn(&Place<'_>) -> Option<String>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringArray>())
    };
    let numbers = |of: &dyn Fn(&Place<'_>) -> Option<i32>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<Int32Array>())
    };
    let digits = |column: &Column| types::digits(&column.data_type);
    let arrays = [
        ("table_catalog", texts(&|_| Some(CATALOG.into()))),
        (
            "table_schema",
            texts(&|(table, _, _)| Some(schema_of(table).to_owned())),
        ),
        (
            "table_name",
            texts(&|(table, _, _)| Some(base(table).to_owned())),
        ),
        ("column_name", texts(&|(_, _, c)| Some(c.name.clone()))),
        ("ordinal_position", numbers(&|(_, at, _)| Some(*at))),
        ("column_default", texts(&|(_, _, c)| c.default.clone())),
        ("is_nullable", texts(&|(_, _, c)| yes_or_no(c.nullable))),
        (
            "data_type",
            texts(&|(_, _, c)| Some(standard_name(tables, c))),
        ),
        ("character_maximum_length", numbers(&|_| None)),
        ("character_octet_length", numbers(&|_| None)),
        (
            "numeric_precision",
            numbers(&|(_, _, c)| digits(c).map(|d| d.precision)),
        ),
        (
            "numeric_precision_radix",
            numbers(&|(_, _, c)| digits(c).map(|d| d.radix)),
        ),
        (
            "numeric_scale",
            numbers(&|(_, _, c)| digits(c).and_then(|d| d.scale)),
        ),
        (
            "datetime_precision",
            numbers(&|(_, _, c)| match c.digits {
                Some(digits) => Some(digits.into()),
                None => types::second_digits(&c.data_type),
            }),
        ),
        ("interval_type", texts(&|_| None)),
    ];
    let arrays = arrays
        .into_iter()
        .chain(of_domains(tables, &rows))
        .chain(typed(tables, &rows))
        .chain(made(tables, &rows))
        .collect::<Vec<_>>();
    let field =
        |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
    let schema = Arc::new(Schema::new(arrays.iter().map(field).collect::<Vec<_>>()));
    let arrays = arrays.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
    Ok(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?))
}

/// What the standard calls the type of a column.
fn standard_name(tables: &Tables, column: &Column) -> String {
    let own = column.domain.as_ref().and_then(|name| tables.domain(name));
    // A domain over a domain, too.
    let made = match &column.data_type {
        DataType::List(_) => own.is_some_and(|own| own.parent.is_some()),
        data_type => {
            is_enum(data_type) || own.is_some_and(|own| own.composite || own.parent.is_some())
        }
    };
    match &column.data_type {
        _ if made => "USER-DEFINED".to_owned(),
        DataType::List(_) => "ARRAY".to_owned(),
        data_type => types::standard_name(data_type),
    }
}

/// The columns of `information_schema.columns` about domains.
fn of_domains(tables: &Tables, rows: &[Place<'_>]) -> [(&'static str, ArrayRef); 3] {
    let texts = |of: fn(&str) -> &str| -> ArrayRef {
        let domains = rows.iter().map(|(_, _, column)| {
            let own = tables.domain(column.domain.as_deref()?)?;
            (!own.composite).then_some(own.name.as_str())
        });
        Arc::new(domains.map(|name| name.map(of)).collect::<StringArray>())
    };
    [
        ("domain_catalog", texts(|_| CATALOG)),
        ("domain_schema", texts(schema_of)),
        ("domain_name", texts(base)),
    ]
}

/// The columns of `information_schema.columns` about the name of a column's type as clients know it.
fn typed(tables: &Tables, rows: &[Place<'_>]) -> [(&'static str, ArrayRef); 3] {
    let texts = |of: &dyn Fn(&Place<'_>) -> Option<String>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringArray>())
    };
    [
        ("udt_catalog", texts(&|_| Some(CATALOG.into()))),
        (
            "udt_schema",
            texts(&|(_, _, c)| {
                let name = composite_of(tables, c).or_else(|| type_of_own(&c.data_type));
                Some(
                    name.map_or("pg_catalog", |(_, name)| schema_of(name))
                        .into(),
                )
            }),
        ),
        (
            "udt_name",
            texts(&|(_, _, c)| {
                let name = composite_of(tables, c).or_else(|| type_of_own(&c.data_type));
                Some(match name {
                    Some((array, name)) => {
                        format!("{}{}", if array { "_" } else { "" }, base(name))
                    }
                    None => short_name(type_number(&c.data_type)),
                })
            }),
        ),
    ]
}

/// The columns of `information_schema.columns` about what makes the values of a column.
fn made(tables: &Tables, rows: &[Place<'_>]) -> [(&'static str, ArrayRef); 10] {
    let texts = |of: &dyn Fn(&Place<'_>) -> Option<String>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringArray>())
    };
    let of_sequence = |column: &Column, of: fn(&Sequence) -> String| {
        let (sequence, _) = column.identity()?;
        tables.sequence(sequence).map(|own| of(own))
    };
    [
        (
            "is_identity",
            texts(&|(_, _, c)| yes_or_no(c.identity().is_some())),
        ),
        (
            "identity_generation",
            texts(&|(_, _, c)| {
                c.identity()
                    .map(|(_, always)| if always { "ALWAYS" } else { "BY DEFAULT" }.into())
            }),
        ),
        (
            "identity_start",
            texts(&|(_, _, c)| of_sequence(c, |own| own.start.to_string())),
        ),
        (
            "identity_increment",
            texts(&|(_, _, c)| of_sequence(c, |own| own.increment.to_string())),
        ),
        (
            "identity_maximum",
            texts(&|(_, _, c)| of_sequence(c, |own| own.max.to_string())),
        ),
        (
            "identity_minimum",
            texts(&|(_, _, c)| of_sequence(c, |own| own.min.to_string())),
        ),
        (
            "identity_cycle",
            texts(&|(_, _, c)| {
                of_sequence(c, |own| if own.cycle { "YES" } else { "NO" }.into())
                    .or_else(|| yes_or_no(false))
            }),
        ),
        (
            "is_generated",
            texts(&|(_, _, c)| {
                let made = c.expression().is_some();
                Some(if made { "ALWAYS" } else { "NEVER" }.into())
            }),
        ),
        (
            "generation_expression",
            texts(&|(_, _, c)| c.expression().map(str::to_owned)),
        ),
        (
            "is_updatable",
            texts(&|(table, _, _)| yes_or_no(tables.view(table).is_none())),
        ),
    ]
}

fn yes_or_no(yes: bool) -> Option<String> {
    Some(if yes { "YES" } else { "NO" }.to_owned())
}

/// The tables and views of one schema.
#[derive(Debug)]
struct SnapshotSchema {
    name: String,
    tables: Arc<Tables>,
}

impl SnapshotSchema {
    /// The name in the catalog.
    fn own(&self, name: &str) -> String {
        catalog_name(&self.name, name)
    }
}

#[async_trait]
impl SchemaProvider for SnapshotSchema {
    fn table_names(&self) -> Vec<String> {
        let tables = permanent(self.tables.names()).into_iter();
        let tables = tables.filter(|name| self.tables.materialized(name).is_none());
        let names = tables.chain(permanent(self.tables.views()));
        let names = names.filter(|name| schema_of(name) == self.name);
        names.map(|name| base(name).to_owned()).collect()
    }

    async fn table(&self, name: &str) -> DataFusionResult<Option<Arc<dyn TableProvider>>> {
        Ok(self
            .tables
            .get(&self.own(name))
            .map(|table| Arc::new(Provider::new(Arc::clone(table), false)) as _))
    }

    async fn table_type(&self, name: &str) -> DataFusionResult<Option<TableType>> {
        Ok(match self.tables.view(&self.own(name)) {
            Some(_) => Some(TableType::View),
            None => self.table_exist(name).then_some(TableType::Base),
        })
    }

    fn table_exist(&self, name: &str) -> bool {
        self.tables.get(&self.own(name)).is_some()
    }
}
