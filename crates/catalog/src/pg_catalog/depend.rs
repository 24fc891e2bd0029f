//! What depends on what: views on the tables that they read, each by its rule, sequences on the columns whose values they give,
//! and defaults on their columns and the sequences that they ask.

use std::ops::ControlFlow;

use messages::numbers::table_number;
use sqlparser::ast::{Query, TableFactor, Visitor};
use syntax::asked::asked;
use syntax::names::{column_name, permanent, table_name};
use syntax::views::of_text;
use syntax::walk::Walk;
use table::{Column, Tables};

use crate::pg_catalog::attributes::default_number;
use crate::pg_catalog::build::Built;

/// The name of the rule by which a view is read.
const RULE: &str = "_RETURN";

/// The names of views and materialized views, each with its text.
fn views(all: &Tables) -> Vec<(&str, &str)> {
    let mut names = permanent(all.views());
    names.extend(permanent(all.names()));
    names.sort_unstable();
    let text = |name: &str| {
        let kept = || all.materialized(name).map(|query| query.text);
        all.view(name).or_else(kept)
    };
    let named = names.into_iter();
    named.filter_map(|name| Some((name, text(name)?))).collect()
}

/// The number of the rule of a view.
fn rule_number(view: &str) -> i64 {
    table_number(&format!("rule {view}"))
}

/// `pg_rewrite`.
pub(super) fn rules(all: &Tables) -> Built {
    let views = views(all);
    let rows = views.len();
    Built::default()
        .numbers("oid", views.iter().map(|(name, _)| rule_number(name)))
        .text("rulename", RULE, rows)
        .numbers("ev_class", views.iter().map(|(name, _)| table_number(name)))
        .text("ev_type", "1", rows)
        .text("ev_enabled", "O", rows)
        .truth("is_instead", true, rows)
}

/// The names in the catalog of the tables and views that the text of a view names.
pub(crate) fn read_by(all: &Tables, text: &str) -> Vec<String> {
    #[derive(Default)]
    struct Used {
        found: Vec<String>,
        /// Names that `with` defines.
        hidden: Vec<String>,
    }

    impl Visitor for Used {
        type Break = ();

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            let with = query.with.iter().flat_map(|with| &with.cte_tables);
            self.hidden
                .extend(with.map(|cte| column_name(&cte.alias.name)));
            ControlFlow::Continue(())
        }

        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
            if let TableFactor::Table { name, .. } = factor
                && let Ok(own) = table_name(name)
                && !self.found.contains(&own)
            {
                self.found.push(own);
            }
            ControlFlow::Continue(())
        }
    }

    // What cannot be read any more depends on nothing.
    let Ok(view) = of_text(text) else {
        return Vec::new();
    };
    let mut used = Used::default();
    let _ = view.query.walk(&mut used);
    let Used { mut found, hidden } = used;
    found.retain(|name| {
        !hidden.contains(name)
            && (all.get(name).is_some() || all.view(name).is_some() || all.sequence(name).is_some())
    });
    found
}

/// A row of `pg_depend`.
struct Row {
    class: &'static str,
    object: i64,
    of: i64,
    column: i64,
    kind: &'static str,
}

/// `pg_depend`.
pub(super) fn dependencies(all: &Tables) -> Built {
    let mut rows = Vec::new();
    for (view, text) in views(all) {
        let rule = |of: i64, kind| Row {
            class: "pg_rewrite",
            object: rule_number(view),
            of,
            column: 0,
            kind,
        };
        // A view and its rule go together.
        rows.push(rule(table_number(view), "i"));
        let read = read_by(all, text).into_iter();
        rows.extend(read.map(|name| rule(table_number(&name), "n")));
    }
    for table in permanent(all.names()) {
        let columns = all.get(table).map(|table| &table.definition().columns);
        for (place, column) in (1..).zip(columns.into_iter().flatten()) {
            rows.extend(sequences(column).map(|(name, kind)| Row {
                class: "pg_class",
                object: table_number(name),
                of: table_number(table),
                column: place,
                kind,
            }));
            rows.extend(of_default(table, place, column));
        }
    }
    let count = rows.len();
    Built::default()
        .numbers("classid", rows.iter().map(|row| table_number(row.class)))
        .numbers("objid", rows.iter().map(|row| row.object))
        .counts("objsubid", std::iter::repeat_n(0, count))
        .number("refclassid", table_number("pg_class"), count)
        .numbers("refobjid", rows.iter().map(|row| row.of))
        .numbers("refobjsubid", rows.iter().map(|row| row.column))
        .names("deptype", rows.iter().map(|row| row.kind))
}

/// The sequences that a column owns, and how: that of an identity is a part of it.
fn sequences(column: &Column) -> impl Iterator<Item = (&str, &'static str)> {
    let identity = column.identity().map(|(name, _)| name);
    let owned = column.sequences.iter().map(String::as_str);
    let others = owned.filter(move |name| Some(*name) != identity);
    let others = others.map(|name| (name, "a"));
    identity.map(|name| (name, "i")).into_iter().chain(others)
}

/// What the default of a column depends on. Programs that write all statements out create sequences before the defaults that ask
/// them.
fn of_default(table: &str, place: i64, column: &Column) -> Vec<Row> {
    let Some(text) = &column.default else {
        return vec![];
    };
    let row = |of: i64, column: i64, kind| Row {
        class: "pg_attrdef",
        object: default_number(table, place),
        of,
        column,
        kind,
    };
    // What cannot be read any more asks nothing.
    let asked = asked(text).unwrap_or_default();
    let asked = asked.iter().map(|name| row(table_number(name), 0, "n"));
    [row(table_number(table), place, "a")]
        .into_iter()
        .chain(asked)
        .collect()
}
