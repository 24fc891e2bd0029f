//! What a statement sees of the catalog, by the numbers and texts that name it: comments, and where names are looked up.

use std::collections::HashMap;
use std::sync::Arc;

use catalog::pg_catalog::{
    ViewColumns, constraints, indexes, laid_out, of_number, seen_expression, seen_view, system,
};
use catalog::rights::GIVEN;
use catalog::search_path::SearchPath;
use syntax::deparse::pretty as pretty_expression;
use syntax::names::{
    self, CATALOG, INFORMATION_SCHEMA, PG_CATALOG, PUBLIC, SCHEMA, base, catalog_name,
    constraint_of, of_schema, quoted, schema_of,
};
use table::Tables;

use crate::error::Error;
use crate::functions::descriptions::{Descriptions, Made};
use crate::functions::object_kinds::Kind;
use crate::functions::sequences::relation;
use crate::messages::numbers::{
    enum_array_number, enum_number, role_number, schema_number, table_number, type_named,
    type_title,
};

/// The tables of a statement, and where it looks names up.
#[derive(Debug)]
pub(super) struct Said {
    tables: Arc<Tables>,
    path: SearchPath,
    /// The names of the columns of views, as far as the statement asks for them.
    views: HashMap<String, Vec<String>>,
}

impl Said {
    pub(super) fn of(
        tables: &Arc<Tables>,
        path: &SearchPath,
        views: &ViewColumns,
    ) -> Arc<dyn Descriptions> {
        let names = |view: &table::Definition| {
            let columns = view.columns.iter();
            columns.map(|column| column.name.clone()).collect()
        };
        let views = views.iter();
        Arc::new(Said {
            tables: Arc::clone(tables),
            path: path.clone(),
            views: views
                .map(|(name, view)| (name.clone(), names(view)))
                .collect(),
        })
    }

    /// The name of the column at a place, from 0 on, of a table or view.
    fn column_at(&self, name: &str, place: usize) -> Option<&str> {
        match self.tables.get(name) {
            Some(table) => {
                let column = table.definition().columns.get(place)?;
                Some(&column.name)
            }
            None => self.views.get(name)?.get(place).map(String::as_str),
        }
    }

    /// The names of tables, views and sequences.
    fn names(&self) -> impl Iterator<Item = &str> {
        let tables = &self.tables;
        let names = [tables.names(), tables.views(), tables.sequences()];
        names.into_iter().flatten()
    }

    /// The names of all schemas.
    fn schema_names(&self) -> impl Iterator<Item = &str> {
        let given = [PG_CATALOG, SCHEMA, INFORMATION_SCHEMA];
        given.into_iter().chain(self.tables.schemas())
    }

    /// The names of all roles.
    fn roles(&self) -> impl Iterator<Item = &str> {
        let made = self.tables.roles().map(|(name, _)| name);
        std::iter::once(CATALOG).chain(made).chain(GIVEN)
    }

    /// The number of the table, view, sequence or index that a text names.
    fn relation(&self, text: &str) -> crate::error::Result<Option<i64>> {
        let written = relation(text)?;
        let there = |name: &String| self.names().any(|own| own == name);
        let base = table::base_of(&written);
        let name = self.path.resolve(&self.tables, &written);
        let is_system = |name: &str| table::schema_of(name) == Some(PG_CATALOG);
        let name = if is_system(&written) || is_system(&name) {
            system::has_table(base).then(|| base.to_owned())
        } else if there(&name) {
            Some(name)
        } else {
            match table::schema_of(&written) {
                None => system::has_table(base).then(|| base.to_owned()),
                Some(INFORMATION_SCHEMA) => {
                    let own = system::has_view(base);
                    own.then(|| catalog_name(INFORMATION_SCHEMA, base))
                }
                Some(_) => None,
            }
        };
        if let Some(name) = name {
            return Ok(Some(table_number(&name)));
        }
        // An index is in the schema of its table.
        let index = table::base_of(&written);
        let has = |name: &&str| {
            let definition = self.tables.get(name).map(|table| table.definition());
            definition.is_some_and(|own| {
                let mut indexes = own.indexes.iter();
                own.keys.iter().any(|own| own.name == index) || indexes.any(|own| own.name == index)
            })
        };
        let with = self.tables.names().into_iter().filter(has);
        let found = self.path.first_in(&self.tables, &written, with);
        Ok(found.map(|table| table_number(&catalog_name(schema_of(table), index))))
    }

    /// What the table, view, sequence or index with this number is called.
    fn relation_name(&self, number: i64) -> Option<String> {
        let Some(name) = self.names().find(|name| table_number(name) == number) else {
            if let Some(name) = system::table_of(number) {
                return Some(name);
            }
            if let Some(name) = of_number(&self.tables, number) {
                return Some(self.path.shown_type(&self.tables, name));
            }
            let all = indexes(&self.tables);
            let index = all.iter().find(|own| own.number() == number)?;
            let own = quoted(base(&index.full_name()));
            let seen = self.path.sees(&self.tables, index.table);
            let schema = quoted(schema_of(index.table));
            return Some(if seen { own } else { format!("{schema}.{own}") });
        };
        Some(self.path.shown(&self.tables, name))
    }

    /// The number of the type that a text names.
    fn type_number(&self, text: &str) -> Option<i64> {
        if let Some(number) = type_named(text) {
            return Some(number);
        }
        let item = text.trim().strip_suffix("[]");
        let written = relation(item.unwrap_or(text).trim()).ok()?;
        let name = self.path.resolve_type(&self.tables, &written);
        if !self.tables.has_type(&name) {
            // The arrays of a type are called as it, behind a line.
            let own = table::base_of(&written).strip_prefix('_')?;
            let own = match table::schema_of(&written) {
                Some(schema) => table::within(schema, own),
                None => own.to_owned(),
            };
            let name = self.path.resolve_type(&self.tables, &own);
            let is_domain = self.tables.domain(&name).is_some_and(|own| !own.composite);
            let there = item.is_none() && self.tables.has_type(&name) && !is_domain;
            return there.then(|| enum_array_number(&name).into());
        }
        Some(match item {
            Some(_) if self.tables.domain(&name).is_some_and(|own| !own.composite) => {
                return None;
            }
            Some(_) => enum_array_number(&name).into(),
            None => enum_number(&name).into(),
        })
    }
}

/// A name as it is in the catalog: without quotes, or in lower case.
fn exact(text: &str) -> String {
    let text = text.trim();
    let inner = text.strip_prefix('"').and_then(|own| own.strip_suffix('"'));
    inner.map_or_else(|| text.to_lowercase(), |own| own.replace("\"\"", "\""))
}

impl Descriptions for Said {
    fn of(&self, relation: i64, column: i64) -> Option<String> {
        let tables = &self.tables;
        if let Some(name) = self.names().find(|name| table_number(name) == relation) {
            let said = tables.comments(name)?;
            if column == 0 {
                return said.own.clone();
            }
            let place = usize::try_from(column.checked_sub(1)?).ok()?;
            return said.columns.get(self.column_at(name, place)?).cloned();
        }
        let mut types = tables.types().into_iter().chain(tables.domains());
        if let Some(name) = types.find(|name| i64::from(enum_number(name)) == relation) {
            return tables.comments(name)?.own.clone();
        }
        let mut said = tables.names().into_iter();
        said.find_map(|name| {
            let keys = &tables.comments(name)?.keys;
            let mut keys = keys.iter();
            let number = |key: &str| table_number(&catalog_name(schema_of(name), key));
            let found = keys.find(|(key, _)| column == 0 && number(key) == relation);
            found.map(|(_, text)| text.clone())
        })
    }

    fn of_constraint(&self, constraint: i64) -> Option<String> {
        let tables = &self.tables;
        tables.names().into_iter().find_map(|table| {
            let said = tables.comments(table)?;
            let mut own = said.keys.iter();
            let found = own.find(|(key, _)| {
                let name = constraint_of(key).map(|name| catalog_name(schema_of(table), name));
                name.is_some_and(|name| table_number(&name) == constraint)
            });
            found.map(|(_, text)| text.clone())
        })
    }

    fn of_schema(&self, schema: i64) -> Option<String> {
        let tables = &self.tables;
        let mut names = tables.schemas().into_iter().chain([SCHEMA]);
        let name = names.find(|name| schema_number(name) == schema)?;
        match tables.comments(&of_schema(name)) {
            Some(said) => said.own.clone(),
            None => (name == SCHEMA).then(|| PUBLIC.to_owned()),
        }
    }

    fn schema(&self) -> Option<String> {
        self.path.current(&self.tables).map(str::to_owned)
    }

    fn schemas(&self, implicit: bool) -> Vec<String> {
        self.path.all(&self.tables, implicit)
    }

    fn number_of(&self, kind: Kind, text: &str) -> crate::error::Result<Option<i64>> {
        Ok(match kind {
            Kind::Relation => return self.relation(text),
            Kind::Type => self.type_number(text),
            Kind::Schema => {
                let name = exact(text);
                let mut names = self.schema_names();
                names.find(|own| *own == name).map(schema_number)
            }
            Kind::Role => {
                let name = exact(text);
                let mut names = self.roles();
                names.find(|own| *own == name).map(role_number)
            }
            Kind::Operator => system::operator_number(text.trim()),
            Kind::Routine => {
                let name = text.split('(').next().unwrap_or(text).trim();
                let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
                match system::routine_numbers(name)[..] {
                    [] => None,
                    [number] => Some(number),
                    _ => {
                        let message = format!("more than one function named \"{name}\"");
                        return Err(Error::coded("42725", message));
                    }
                }
            }
        })
    }

    fn name_of(&self, kind: Kind, number: i64) -> Option<String> {
        match kind {
            Kind::Relation => self.relation_name(number),
            Kind::Type => self.type_title(number, -1),
            Kind::Schema => {
                let mut names = self.schema_names();
                names.find(|own| schema_number(own) == number).map(quoted)
            }
            Kind::Role => {
                let mut names = self.roles();
                names.find(|own| role_number(own) == number).map(quoted)
            }
            Kind::Routine => system::routine_name(number),
            Kind::Operator => system::operator_title(number),
        }
    }

    fn definition(&self, what: Made, number: i64) -> Option<String> {
        let tables = &self.tables;
        match what {
            Made::View => {
                let name = self.names().find(|name| table_number(name) == number)?;
                let written = match tables.view(name) {
                    Some(text) => text,
                    None => tables.materialized(name)?.text,
                };
                Some(seen_view(tables, &self.path, written))
            }
            Made::Index => self.index(number, 0, false),
            Made::Arguments => system::arguments(number),
            Made::Result => system::result(number),
            Made::Constraint => constraints(tables)
                .into_iter()
                .find(|own| own.number == number)
                .map(|own| match &own.parent_of {
                    None => own.text,
                    Some(parent) => {
                        let shown = self.path.shown(tables, parent);
                        let kept = format!(" REFERENCES {}(", quoted(parent));
                        own.text
                            .replacen(&kept, &format!(" REFERENCES {shown}("), 1)
                    }
                }),
        }
    }

    fn laid_out(&self, text: String) -> String {
        laid_out(text)
    }

    fn index(&self, number: i64, place: usize, pretty: bool) -> Option<String> {
        let all = indexes(&self.tables);
        let own = all.iter().find(|own| own.number() == number)?;
        if place > 0 {
            return Some(own.part(place));
        }
        let on = if pretty {
            self.path.shown(&self.tables, own.table)
        } else {
            quoted(&names::exact(own.table))
        };
        Some(own.text(&on, pretty))
    }

    fn expression(&self, text: &str, pretty: bool) -> String {
        let text = seen_expression(&self.tables, &self.path, text);
        let shown = pretty.then(|| pretty_expression(&text)).flatten();
        shown.unwrap_or(text)
    }

    fn type_title(&self, number: i64, modifier: i64) -> Option<String> {
        if let Some(title) = type_title(number, modifier) {
            return Some(title);
        }
        let title = |name: &str| self.path.shown_type(&self.tables, name);
        let names = self.tables.types().into_iter();
        let mut names = names.chain(self.tables.domains());
        names.find_map(|name| {
            if i64::from(enum_number(name)) == number {
                Some(title(name))
            } else if i64::from(enum_array_number(name)) == number {
                Some(format!("{}[]", title(name)))
            } else {
                None
            }
        })
    }

    fn is_visible(&self, number: i64) -> Option<bool> {
        if let Some(name) = self.names().find(|name| table_number(name) == number) {
            return Some(self.path.sees(&self.tables, name));
        }
        if let Some(name) = system::table_of(number) {
            return Some(self.path.has(INFORMATION_SCHEMA) || !name.contains('.'));
        }
        if let Some(name) = of_number(&self.tables, number) {
            return Some(self.path.resolve_type(&self.tables, base(name)) == name);
        }
        let all = indexes(&self.tables);
        let own = all.iter().find(|own| own.number() == number)?;
        let name = own.full_name();
        Some(self.relation(&quoted(base(&name))).ok().flatten() == Some(number))
    }

    fn is_visible_type(&self, number: i64) -> Option<bool> {
        if type_title(number, -1).is_some() {
            return Some(true);
        }
        let mut names = self.tables.types().into_iter().chain(self.tables.domains());
        let name = names.find(|name| {
            number == i64::from(enum_number(name)) || number == i64::from(enum_array_number(name))
        })?;
        Some(self.path.resolve_type(&self.tables, base(name)) == name)
    }
}
