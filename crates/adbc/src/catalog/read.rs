//! Reading what there is, within the transaction of the session: by the catalogs that SQL has.

use std::collections::{BTreeMap, HashMap};

use atoll::Session;

use crate::catalog::model::{Column, Constraint, Filter, Relation, TABLE_TYPES, quoted};
use crate::catalog::texts::texts;

type Result<T> = std::result::Result<T, atoll::Error>;

const RELATIONS: &str = "select relname, relkind from pg_catalog.pg_class where relkind in ('r', 'v', 'm') and relnamespace = 'public'::regnamespace order by relname";

const COLUMNS: &str = "select table_name, column_name, ordinal_position, is_nullable, data_type, numeric_precision, numeric_scale, numeric_precision_radix, column_default, is_identity, is_generated from information_schema.columns where table_schema = 'public' order by table_name, ordinal_position";

const REMARKS: &str = "select c.relname, d.objsubid, d.description from pg_catalog.pg_description d join pg_catalog.pg_class c on d.objoid = c.oid where d.objsubid > 0";

const KEYS: &str = "select c.relname, k.conname, k.contype, k.conkey::text, p.relname, k.confkey::text from pg_catalog.pg_constraint k join pg_catalog.pg_class c on k.conrelid = c.oid left join pg_catalog.pg_class p on k.confrelid = p.oid order by c.relname, k.conname";

/// The tables and views that are asked for, by name.
///
/// # Errors
/// Those of reading the catalogs.
pub(super) fn relations(
    session: &Session,
    filter: &Filter<'_>,
    with_columns: bool,
) -> Result<Vec<Relation>> {
    let mut relations = Vec::new();
    for row in texts(session, RELATIONS)? {
        let [Some(name), Some(kind)] = <[Option<String>; 2]>::try_from(row).unwrap_or_default()
        else {
            continue;
        };
        let kind = match kind.as_str() {
            "r" => TABLE_TYPES[0],
            "v" => TABLE_TYPES[1],
            _ => TABLE_TYPES[2],
        };
        if filter.has_table(&name) && filter.has_type(kind) {
            relations.push(Relation {
                name,
                kind,
                ..Relation::default()
            });
        }
    }
    if with_columns {
        fill(session, filter, &mut relations)?;
    }
    Ok(relations)
}

/// Adds columns and keys.
fn fill(session: &Session, filter: &Filter<'_>, relations: &mut [Relation]) -> Result<()> {
    let mut columns = columns(session)?;
    let mut remarks: HashMap<(String, i32), String> = HashMap::new();
    for row in texts(session, REMARKS)? {
        if let [Some(table), Some(at), Some(text)] = row.as_slice() {
            remarks.insert((table.clone(), at.parse().unwrap_or(0)), text.clone());
        }
    }
    let names: HashMap<String, Vec<String>> = columns
        .iter()
        .map(|(table, own)| {
            let own = own.iter().map(|column| column.name.clone());
            (table.clone(), own.collect())
        })
        .collect();
    let mut keys = keys(session, &names)?;
    for relation in relations {
        let own = match columns.remove(&relation.name) {
            Some(own) => own,
            None => of_query(session, &relation.name)?,
        };
        relation.columns = own
            .into_iter()
            .filter(|column| filter.has_column(&column.name))
            .map(|column| Column {
                remarks: remarks.remove(&(relation.name.clone(), column.position)),
                ..column
            })
            .collect();
        relation.constraints = keys.remove(&relation.name).unwrap_or_default();
    }
    Ok(())
}

/// The columns of all tables.
fn columns(session: &Session) -> Result<BTreeMap<String, Vec<Column>>> {
    let mut all: BTreeMap<String, Vec<Column>> = BTreeMap::new();
    for row in texts(session, COLUMNS)? {
        let [
            Some(table),
            Some(name),
            position,
            nullable,
            type_name,
            size,
            digits,
            radix,
            default,
            identity,
            generated,
        ] = <[Option<String>; 11]>::try_from(row).unwrap_or_default()
        else {
            continue;
        };
        let is = |text: Option<String>, yes: &str| text.map(|text| text == yes);
        all.entry(table).or_default().push(Column {
            name,
            position: number(position.as_ref()).unwrap_or(0),
            remarks: None,
            type_name,
            size: number(size.as_ref()),
            digits: number(digits.as_ref()),
            radix: number(radix.as_ref()),
            nullable: is(nullable, "YES"),
            default,
            identity: is(identity, "YES"),
            generated: is(generated, "ALWAYS"),
        });
    }
    Ok(all)
}

fn number<T: std::str::FromStr>(text: Option<&String>) -> Option<T> {
    text?.parse().ok()
}

/// The columns of a view, which are those of its query.
fn of_query(session: &Session, name: &str) -> Result<Vec<Column>> {
    let rows = session.query(&format!("select * from {} limit 0", quoted(name)))?;
    let fields = rows.schema().fields().iter().enumerate();
    let column = |(at, field): (usize, &arrow::datatypes::FieldRef)| Column {
        name: field.name().clone(),
        position: at as i32 + 1,
        type_name: Some(sql::type_name(field.data_type())),
        ..Column::default()
    };
    Ok(fields.map(column).collect())
}

/// The keys and checks of all tables, whose columns have these names.
fn keys(
    session: &Session,
    names: &HashMap<String, Vec<String>>,
) -> Result<HashMap<String, Vec<Constraint>>> {
    let mut all: HashMap<String, Vec<Constraint>> = HashMap::new();
    for row in texts(session, KEYS)? {
        let [
            Some(table),
            Some(name),
            Some(kind),
            columns,
            parent,
            parent_columns,
        ] = <[Option<String>; 6]>::try_from(row).unwrap_or_default()
        else {
            continue;
        };
        let kind = match kind.as_str() {
            "p" => "PRIMARY KEY",
            "u" => "UNIQUE",
            "f" => "FOREIGN KEY",
            "c" => "CHECK",
            _ => continue,
        };
        let of = |table: &str, places: Option<String>| {
            let names = names.get(table).map_or(&[][..], |own| own);
            places_of(&places.unwrap_or_default())
                .filter_map(|at| names.get(at.checked_sub(1)?).cloned())
                .collect::<Vec<_>>()
        };
        let parent = parent.filter(|_| kind == "FOREIGN KEY");
        let constraint = Constraint {
            columns: of(&table, columns),
            parent: parent.map(|parent| {
                let columns = of(&parent, parent_columns);
                (parent, columns)
            }),
            name,
            kind,
        };
        all.entry(table).or_default().push(constraint);
    }
    Ok(all)
}

/// The numbers of `{1,2}`.
fn places_of(text: &str) -> impl Iterator<Item = usize> + '_ {
    let inner = text.trim_start_matches('{').trim_end_matches('}');
    inner
        .split(',')
        .filter_map(|number| number.trim().parse().ok())
}
