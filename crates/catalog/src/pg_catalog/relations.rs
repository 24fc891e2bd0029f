//! Relations, as rows of `pg_class`: tables, views, sequences, indexes, composite types, and those of the system.

use std::borrow::Cow;
use std::collections::BTreeSet;

use messages::numbers::composite_number;
use syntax::lengths;
use syntax::names::{base, permanent};
use table::{Definition, Privileges, Tables};

use crate::pg_catalog::build::Built;
use crate::pg_catalog::composites::{composites, definition};
use crate::pg_catalog::indexes::indexes;
use crate::pg_catalog::schemas::schema_of_number;
use crate::pg_catalog::{roles, system_relations};

/// The kind of the relation of a composite type.
pub(super) const COMPOSITE: &str = "c";

/// The access method of tables.
const HEAP: i64 = 2;

/// A row of `pg_class`.
pub(super) struct Relation<'t> {
    /// The name in the catalog.
    pub name: Cow<'t, str>,
    /// What has its owner: the table of an index, others themselves.
    owned: &'t str,
    pub kind: &'static str,
    /// The number of the access method.
    method: i64,
    columns: usize,
    rows: i64,
    pub definition: Option<&'t Definition>,
    populated: bool,
}

impl<'t> Relation<'t> {
    fn new(all: &'t Tables, name: &'t str, kind: &'static str) -> Relation<'t> {
        let table = all.get(name);
        let definition = table.map(|table| table.definition());
        Relation {
            name: Cow::Borrowed(name),
            owned: name,
            kind,
            method: if matches!(kind, "r" | "m") { HEAP } else { 0 },
            columns: definition.map_or(0, |own| own.columns.len()),
            rows: table.map_or(-1, |table| table.rows() as i64),
            definition,
            populated: all.materialized(name).is_none_or(|query| query.populated),
        }
    }

    fn number(&self) -> i64 {
        match self.kind {
            COMPOSITE => composite_number(&self.name),
            _ => system_relations::number(&self.name),
        }
    }

    /// The privileges that there are for it.
    fn privileges(&self) -> Privileges {
        match self.kind {
            "S" => Privileges::OF_SEQUENCE,
            _ => Privileges::OF_TABLE,
        }
    }

    fn has(&self, what: impl Fn(&Definition) -> bool) -> bool {
        self.definition.is_some_and(what)
    }
}

/// Tables, views, sequences, indexes and composite types, and what PostgreSQL has in its own schemas, in order of their names.
pub(super) fn relations(all: &Tables) -> Vec<Relation<'_>> {
    let (kept, plain): (Vec<_>, Vec<_>) = permanent(all.names())
        .into_iter()
        .partition(|name| all.materialized(name).is_some());
    let kinds = [
        (plain, "r"),
        (kept, "m"),
        (permanent(all.views()), "v"),
        (permanent(all.sequences()), "S"),
    ];
    let of_kind = |(names, kind): (Vec<_>, _)| {
        let names = names.into_iter();
        names.map(move |name| Relation::new(all, name, kind))
    };
    let mut relations: Vec<_> = kinds.into_iter().flat_map(of_kind).collect();
    relations.extend(indexes(all).into_iter().map(|own| Relation {
        name: Cow::Owned(own.full_name()),
        owned: own.table,
        kind: "i",
        method: own.method_number(),
        columns: own.width(),
        rows: -1,
        definition: None,
        populated: true,
    }));
    relations.extend(composites(all).into_iter().map(|name| Relation {
        columns: definition(all, name).map_or(0, |own| own.columns.len()),
        ..Relation::new(all, name, COMPOSITE)
    }));
    relations.extend(system_relations::relations().map(|own| Relation {
        name: Cow::Owned(own.full_name()),
        // Nobody has been given one of them.
        owned: "",
        kind: own.kind(),
        method: if own.kind() == "r" { HEAP } else { 0 },
        columns: own.width(),
        rows: -1,
        definition: None,
        populated: true,
    }));
    relations.sort_by(|a, b| (&a.name, a.kind).cmp(&(&b.name, b.kind)));
    relations
}

/// Whether a table has indexes, of keys that hold or declared.
pub(super) fn is_indexed(definition: &Definition) -> bool {
    !definition.keys.is_empty() || !definition.indexes.is_empty()
}

/// `pg_class`.
pub(super) fn classes(all: &Tables) -> Built {
    let relations = relations(all);
    let rows = relations.len();
    let each = || relations.iter();
    // As in PostgreSQL, foreign keys are kept by triggers on both tables; psql shows them only where there are any.
    let foreign = each().filter_map(|own| own.definition);
    let foreign = foreign.flat_map(|own| &own.foreign_keys);
    let referred: BTreeSet<&str> = foreign.map(|own| own.parent.as_str()).collect();
    let built = Built::default()
        .numbers("oid", each().map(Relation::number))
        .names("relname", each().map(|own| base(&own.name)))
        .numbers(
            "relnamespace",
            each().map(|own| schema_of_number(&own.name)),
        )
        .number("reltype", 0, rows)
        .number("reloftype", 0, rows)
        .numbers(
            "relowner",
            each().map(|own| roles::owner_number(all, own.owned)),
        )
        .numbers("relam", each().map(|own| own.method))
        .number("relfilenode", 0, rows)
        .number("reltablespace", 0, rows)
        .number("relpages", 0, rows)
        .numbers("reltuples", each().map(|own| own.rows))
        .number("reltoastrelid", 0, rows)
        .names("relkind", each().map(|own| own.kind))
        .counts("relnatts", each().map(|own| own.columns as i32))
        .counts(
            "relchecks",
            each().map(|own| {
                let checks = own.definition.map(|own| own.checks.iter());
                checks.map_or(0, |all| {
                    all.filter(|own| !lengths::is_one(own)).count() as i32
                })
            }),
        )
        .text("relpersistence", "p", rows)
        .text("relreplident", "d", rows)
        .lists(
            "relacl",
            each().map(|own| match own.kind {
                COMPOSITE => None,
                _ => roles::acl(all, &own.name, own.privileges()),
            }),
        )
        .no_lists("reloptions", rows)
        .nothing("relpartbound", rows)
        .truths(
            "relhaspkey",
            each().map(|own| own.has(|own| !own.primary_key.is_empty())),
        )
        .truths("relispopulated", each().map(|own| own.populated))
        .truths(
            "relhastriggers",
            each().map(|own| {
                own.has(|own| !own.foreign_keys.is_empty()) || referred.contains(&*own.name)
            }),
        )
        // A view is a rule.
        .truths("relhasrules", each().map(|own| matches!(own.kind, "v" | "m")))
        .truths("relhasindex", each().map(|own| own.has(is_indexed)));
    [
        "relisshared",
        "relhassubclass",
        "relrowsecurity",
        "relforcerowsecurity",
        "relispartition",
    ]
    .into_iter()
    .fold(built, |built, name| built.truth(name, false, rows))
}
