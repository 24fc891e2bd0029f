//! Constraints: keys, foreign keys and checks.

use messages::numbers::{enum_number, schema_number, table_number, type_number};
use syntax::deparse::Type;
use syntax::names::{base, catalog_name, permanent, quoted, schema_of};
use syntax::{deparse, lengths, mentioned};
use table::{Action, Check, Deferral, Definition, Domain, ForeignKey, Rule, Tables};

use crate::pg_catalog::build::Built;
use crate::pg_catalog::expressions::typed_columns;
use crate::pg_catalog::schemas::schema_of_number;
use crate::pg_catalog::types::length;

/// A constraint of a table.
pub struct TableConstraint {
    /// Its number in `pg_constraint`.
    pub number: i64,
    /// What stands behind its name where it is declared.
    pub text: String,
    /// Its name.
    pub name: String,
    /// Its letter in `pg_constraint`.
    pub kind: &'static str,
    /// The table's name in the catalog.
    pub of: String,
    schema: i64,
    table: i64,
    /// The number of the domain that it is of; then it is of no table.
    domain: i64,
    /// The number of the index of a key that holds.
    index: i64,
    /// Places of its columns, from 1 on.
    pub columns: Vec<i16>,
    parent: i64,
    /// The name in the catalog of the table that a foreign key refers to, and places of columns there.
    pub parent_of: Option<String>,
    /// Places of the columns there that it refers to.
    pub parent_columns: Vec<i16>,
    /// The letter of what becomes of rows whose parent gets another key.
    pub on_update: &'static str,
    /// The letter of what becomes of rows whose parent is deleted.
    pub on_delete: &'static str,
    /// When it is looked at.
    pub deferral: Deferral,
    /// Whether all rows agree.
    validated: bool,
    /// How much of a foreign key may be NULL.
    matching: &'static str,
}

impl TableConstraint {
    /// Whether a transaction may look at it when it ends.
    pub(crate) fn is_deferrable(&self) -> bool {
        self.deferral != Deferral::Never
    }

    /// How much of a foreign key may be NULL, as the standard calls it.
    pub(crate) fn match_option(&self) -> &'static str {
        if self.matching == "f" { "FULL" } else { "NONE" }
    }
}

impl TableConstraint {
    /// The condition of a check.
    fn condition(&self) -> Option<String> {
        let text = self.text.strip_prefix("CHECK (")?;
        let end = text.rfind(')')?;
        text.get(..end).map(str::to_owned)
    }

    /// Whether it is of a domain, and not of a table.
    pub(crate) fn is_of_domain(&self) -> bool {
        self.domain != 0
    }
}

/// All constraints.
pub fn constraints(all: &Tables) -> Vec<TableConstraint> {
    let mut names = permanent(all.names());
    names.sort_unstable();
    let mut found = Vec::new();
    for table in names {
        if let Some(definition) = all.get(table).map(|table| table.definition()) {
            keys(definition, &mut found);
            foreign_keys(all, definition, &mut found);
            checks(all, definition, &mut found);
        }
    }
    for own in all
        .domains()
        .into_iter()
        .filter_map(|name| all.domain(name))
    {
        found.extend(own.checks.iter().map(|check| of_domain(own, check)));
    }
    found
}

fn constraint(
    definition: &Definition,
    name: String,
    kind: &'static str,
    text: String,
) -> TableConstraint {
    let table = &definition.name;
    TableConstraint {
        number: table_number(&catalog_name(schema_of(table), &name)),
        text,
        name,
        kind,
        of: table.clone(),
        schema: schema_of_number(table),
        table: table_number(table),
        domain: 0,
        index: 0,
        columns: Vec::new(),
        parent: 0,
        parent_of: None,
        parent_columns: Vec::new(),
        on_update: " ",
        on_delete: " ",
        deferral: Deferral::Never,
        validated: true,
        matching: " ",
    }
}

/// The names of columns, with commas between them.
fn named(definition: &Definition, columns: &[usize]) -> String {
    let columns = columns.iter().filter_map(|at| definition.columns.get(*at));
    let names: Vec<String> = columns.map(|column| quoted(&column.name)).collect();
    names.join(", ")
}

/// Places of columns, from 1 on.
fn places(columns: &[usize]) -> Vec<i16> {
    columns.iter().map(|at| (at + 1) as i16).collect()
}

fn keys(definition: &Definition, found: &mut Vec<TableConstraint>) {
    let held = definition.keys.iter().any(|key| key.primary);
    if !definition.primary_key.is_empty() && !held {
        // One that is declared only.
        let name = format!("{}_pkey", base(&definition.name));
        let text = format!(
            "PRIMARY KEY ({})",
            named(definition, &definition.primary_key)
        );
        found.push(TableConstraint {
            columns: places(&definition.primary_key),
            ..constraint(definition, name, "p", text)
        });
    }
    for key in &definition.keys {
        let (kind, word) = if key.primary {
            ("p", "PRIMARY KEY")
        } else {
            ("u", "UNIQUE")
        };
        let text = format!("{word} ({})", named(definition, &key.columns));
        let own = constraint(definition, key.name.clone(), kind, text);
        found.push(TableConstraint {
            columns: places(&key.columns),
            index: own.number,
            ..own
        });
    }
}

fn foreign_keys(all: &Tables, definition: &Definition, found: &mut Vec<TableConstraint>) {
    for (at, key) in definition.foreign_keys.iter().enumerate() {
        let rule = definition.rules.iter().find(|rule| rule.foreign_key == at);
        let name = match rule {
            Some(rule) => rule.name.clone(),
            None => {
                let of = |at: &usize| definition.columns.get(*at);
                let columns = key.columns.iter().filter_map(of);
                let columns: Vec<&str> = columns.map(|column| column.name.as_str()).collect();
                format!("{}_{}_fkey", base(&definition.name), columns.join("_"))
            }
        };
        let parent = all.get(&key.parent).map(|parent| parent.definition());
        let place = |name: &String| parent?.position(name).ok();
        let parent_places: Vec<usize> = key.parent_columns.iter().filter_map(place).collect();
        // The index of the key that it refers to: drivers look its name up there.
        let known = |own: &&table::Key| own.columns == parent_places;
        let known = parent.and_then(|parent| {
            let found = parent.keys.iter().find(known)?;
            Some(table_number(&catalog_name(
                schema_of(&key.parent),
                &found.name,
            )))
        });
        let text = reference(definition, key, rule);
        let action = |action: Option<Action>| match action {
            Some(Action::Cascade) => "c",
            Some(Action::SetNull) => "n",
            Some(Action::SetDefault) => "d",
            Some(Action::Restrict) => "r",
            Some(Action::NoAction) | None => "a",
        };
        found.push(TableConstraint {
            columns: places(&key.columns),
            index: known.unwrap_or(0),
            parent: table_number(&key.parent),
            parent_of: Some(key.parent.clone()),
            parent_columns: places(&parent_places),
            on_update: action(rule.map(|rule| rule.on_update)),
            on_delete: action(rule.map(|rule| rule.on_delete)),
            deferral: rule.map_or(Deferral::Never, |rule| rule.deferral),
            validated: rule.is_none_or(|rule| !rule.unchecked),
            matching: match rule {
                Some(rule) if rule.full => "f",
                _ => "s",
            },
            ..constraint(definition, name, "f", text)
        });
    }
}

/// `FOREIGN KEY (a) REFERENCES parent(b) ON DELETE CASCADE`.
fn reference(definition: &Definition, key: &ForeignKey, rule: Option<&Rule>) -> String {
    let parents: Vec<String> = key.parent_columns.iter().map(|own| quoted(own)).collect();
    let mut text = format!(
        "FOREIGN KEY ({}) REFERENCES {}({})",
        named(definition, &key.columns),
        quoted(&key.parent),
        parents.join(", ")
    );
    let Some(rule) = rule else {
        return text;
    };
    if rule.full {
        text += " MATCH FULL";
    }
    let mut add = |when: &str, action: Action| {
        let what = match action {
            Action::NoAction => return,
            Action::Restrict => "RESTRICT",
            Action::Cascade => "CASCADE",
            Action::SetNull => "SET NULL",
            Action::SetDefault => "SET DEFAULT",
        };
        text += &format!(" ON {when} {what}");
    };
    add("UPDATE", rule.on_update);
    add("DELETE", rule.on_delete);
    if !rule.delete_columns.is_empty() {
        let columns = rule.delete_columns.iter();
        let columns: Vec<usize> = columns.map(|place| key.columns[*place]).collect();
        text += &format!(" ({})", named(definition, &columns));
    }
    text += match rule.deferral {
        Deferral::Never => "",
        Deferral::Immediate => " DEFERRABLE",
        Deferral::Deferred => " DEFERRABLE INITIALLY DEFERRED",
    };
    if rule.unchecked {
        text += " NOT VALID";
    }
    text
}

fn checks(all: &Tables, definition: &Definition, found: &mut Vec<TableConstraint>) {
    for check in definition.checks.iter().filter(|own| !lengths::is_one(own)) {
        let valid = if check.unchecked { " NOT VALID" } else { "" };
        let columns = typed_columns(all, definition);
        let column = |name: &str| {
            let (_, own) = columns.iter().find(|(own, _)| own == name)?;
            Some(*own)
        };
        let text = whole(&check.text, deparse::kept(&check.text, &column));
        let text = format!("CHECK ({text}){valid}");
        found.push(TableConstraint {
            validated: !check.unchecked,
            columns: named_in(definition, &check.text),
            ..constraint(definition, check.name.clone(), "c", text)
        });
    }
}

/// The places of the columns that a check names, from 1 on, in the order in which it does.
fn named_in(definition: &Definition, text: &str) -> Vec<i16> {
    let names = mentioned::columns(text).unwrap_or_default();
    let found = names
        .iter()
        .filter_map(|name| definition.position(name).ok());
    places(&found.collect::<Vec<usize>>())
}

/// The definition of a constraint or a view as it is laid out for people: with as few parentheses as it needs.
pub fn laid_out(text: String) -> String {
    if text.starts_with(" SELECT ") {
        return deparse::pretty_view(&text).unwrap_or(text);
    }
    let plain = || {
        let rest = text.strip_prefix("CHECK (")?;
        let end = rest.rfind(')')?;
        let (own, behind) = (rest.get(..end)?, rest.get(end..)?);
        let without = || own.strip_prefix('(')?.strip_suffix(')').map(str::to_owned);
        let shown = deparse::pretty(own).or_else(without)?;
        Some(format!("CHECK ({shown}{behind}"))
    };
    plain().unwrap_or(text)
}

/// The text of a check as PostgreSQL writes it, or else as it was written.
fn whole(text: &str, deparsed: Option<String>) -> String {
    deparsed.unwrap_or_else(|| format!("({})", bare(text)))
}

/// A check of a domain.
fn of_domain(own: &Domain, check: &Check) -> TableConstraint {
    let name = format!("{} {}", own.name, check.name);
    let number = match length(own) {
        Some(("character", _)) => 1042,
        Some(_) => 1043,
        None => type_number(&own.data_type).into(),
    };
    let deparsed = deparse::kept_of_domain(&check.text, Type::of_number(number));
    let text = whole(&check.text, deparsed);
    TableConstraint {
        number: table_number(&format!("check {name}")),
        text: format!("CHECK ({text})"),
        name: check.name.clone(),
        kind: "c",
        of: own.name.clone(),
        schema: schema_number(schema_of(&own.name)),
        table: 0,
        domain: enum_number(&own.name).into(),
        index: 0,
        columns: Vec::new(),
        parent: 0,
        parent_of: None,
        parent_columns: Vec::new(),
        on_update: " ",
        on_delete: " ",
        deferral: Deferral::Never,
        validated: true,
        matching: " ",
    }
}

/// `pg_constraint`.
pub(super) fn by_number(all: &Tables) -> Built {
    let keys = constraints(all);
    let rows = keys.len();
    Built::default()
        .numbers("oid", keys.iter().map(|key| key.number))
        .names("conname", keys.iter().map(|key| key.name.as_str()))
        .numbers("connamespace", keys.iter().map(|key| key.schema))
        .names("contype", keys.iter().map(|key| key.kind))
        .truths(
            "condeferrable",
            keys.iter().map(TableConstraint::is_deferrable),
        )
        .truths(
            "condeferred",
            keys.iter().map(|key| key.deferral == Deferral::Deferred),
        )
        .truth("conislocal", true, keys.len())
        .truths("convalidated", keys.iter().map(|key| key.validated))
        .numbers("conrelid", keys.iter().map(|key| key.table))
        .numbers("contypid", keys.iter().map(|key| key.domain))
        .numbers("conindid", keys.iter().map(|key| key.index))
        .number("conparentid", 0, rows)
        .numbers("confrelid", keys.iter().map(|key| key.parent))
        .names("confupdtype", keys.iter().map(|key| key.on_update))
        .names("confdeltype", keys.iter().map(|key| key.on_delete))
        .names("confmatchtype", keys.iter().map(|key| key.matching))
        .arrays("conkey", keys.iter().map(|key| key.columns.clone()))
        .some_arrays(
            "confkey",
            keys.iter()
                .map(|key| (key.kind == "f").then(|| key.parent_columns.clone())),
        )
        .truths("connoinherit", keys.iter().map(|key| key.kind != "c"))
        .texts("conbin", keys.iter().map(TableConstraint::condition))
}

/// An expression without the parentheses around all of it, of which a restored dump would have one more each time.
fn bare(text: &str) -> &str {
    let mut text = text.trim();
    while let Some(inner) = text
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
    {
        let mut depth = 0_i32;
        let closes = inner.chars().any(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth < 0
        });
        // Within quotes may stand a parenthesis that is none.
        if closes || depth != 0 || inner.contains(['\'', '"']) {
            break;
        }
        text = inner.trim();
    }
    text
}
