//! A failing query and its data, made small.

use arrow::util::pretty::pretty_format_batches;

use crate::query::{Query, Select, Source};
use crate::{Database, Verdict};

/// Attempts to make one failure smaller.
const MOST: usize = 400;

/// A report of the smallest query found that still fails, with the rows it reads.
pub(crate) fn smallest(database: &Database, query: Query) -> String {
    let whole = query.sql();
    let (mut best, mut tries) = (query, 0);
    let fails = |query: &Query, tries: &mut usize| {
        *tries += 1;
        *tries < MOST && matches!(database.compare(query), Verdict::Different(_))
    };
    loop {
        let next = smaller(&best)
            .into_iter()
            .find(|query| fails(query, &mut tries));
        match next {
            Some(query) => best = query,
            None => break,
        }
    }
    // The rows of one table after the other.
    for part in 0..best.first.from.len() {
        while let Some(query) = fewer_rows(database, &best, part)
            .into_iter()
            .find(|query| fails(query, &mut tries))
        {
            best = query;
        }
    }
    report(database, &best, &whole)
}

/// The query with one thing less, the greatest first.
fn smaller(query: &Query) -> Vec<Query> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Query)| {
        let mut query = query.clone();
        change(&mut query);
        all.push(query);
    };
    if !query.more.is_empty() {
        with(&|q| q.more.clear());
        with(&|q| q.first = q.more.remove(0).1);
    }
    if query.limit.is_some() {
        with(&|q| q.limit = None);
    }
    if query.limit.is_none() && !query.order.is_empty() {
        with(&|q| q.order.clear());
        (0..query.order.len()).for_each(|i| {
            with(&|q| {
                q.order.remove(i);
            });
        });
    }
    let first = &query.first;
    (1..first.from.len()).rev().for_each(|i| {
        with(&|q| {
            q.first.from.remove(i);
        });
        (0..first.from[i].on.len()).for_each(|j| {
            with(&|q| {
                q.first.from[i].on.remove(j);
            });
        });
        if first.from[i].join != "join" {
            with(&|q| q.first.from[i].join = "join");
        }
    });
    let lists: [fn(&mut Select) -> &mut Vec<String>; 4] = [
        |s| &mut s.filter,
        |s| &mut s.having,
        |s| &mut s.group,
        |s| &mut s.items,
    ];
    for list in lists {
        let length = list(&mut first.clone()).len();
        let least = if std::ptr::fn_addr_eq(list, lists[3]) {
            1
        } else {
            0
        };
        for i in 0..length {
            if length > least && query.order.is_empty() && query.more.is_empty() {
                with(&|q| {
                    list(&mut q.first).remove(i);
                });
            }
        }
    }
    if first.distinct {
        with(&|q| q.first.distinct = false);
    }
    all
}

/// The query over half of the rows of a table.
fn fewer_rows(database: &Database, query: &Query, part: usize) -> Vec<Query> {
    let Source::Table(name, range) = &query.first.from[part].source else {
        return vec![];
    };
    let rows = database
        .tables
        .iter()
        .find(|t| t.name == *name)
        .map_or(0, |t| t.rows);
    let (low, high) = range.unwrap_or((0, rows));
    if high - low <= 1 && range.is_some() {
        return vec![];
    }
    let middle = low + (high - low) / 2;
    let quarter = (high - low) / 4;
    let ranges = [
        (low, middle),
        (middle, high),
        (low + quarter, high - quarter),
        (low + 1, high),
        (low, high.max(1) - 1),
    ];
    ranges
        .iter()
        .filter(|range| Some(**range) != query_range(query, part) && range.0 <= range.1)
        .map(|range| {
            let mut query = query.clone();
            query.first.from[part].source = Source::Table(name.clone(), Some(*range));
            query
        })
        .collect()
}

fn query_range(query: &Query, part: usize) -> Option<(usize, usize)> {
    match &query.first.from[part].source {
        Source::Table(_, range) => *range,
        Source::Select(_) => None,
    }
}

fn report(database: &Database, query: &Query, whole: &str) -> String {
    let text = query.sql();
    let what = match database.compare(query) {
        Verdict::Different(what) => what,
        other => format!("{other:?} when asked again"),
    };
    let mut lines = vec![
        what,
        format!("query: {text}"),
        format!("made from: {whole}"),
    ];
    for part in &query.first.from {
        if let Source::Table(name, range) = &part.source
            && let Some(table) = database.tables.iter().find(|t| t.name == *name)
        {
            let (low, high) = range.unwrap_or((0, table.rows));
            let rows = table.batch.slice(low, (high - low).min(20));
            let used: Vec<usize> = (0..rows.num_columns())
                .filter(|c| {
                    *c == 0
                        || text.contains(&format!(
                            "{}.{}",
                            part.alias,
                            rows.schema().field(*c).name()
                        ))
                })
                .collect();
            let shown = pretty_format_batches(&[rows.project(&used).unwrap()]).unwrap();
            lines.push(format!(
                "{}; rows {low}..{high} (20 shown):\n{shown}",
                table.create()
            ));
        }
    }
    let short = |outcome: crate::Outcome| {
        let text = format!("{outcome:?}");
        text.chars().take(600).collect::<String>()
    };
    lines.push(format!("ours:   {}", short(database.ours(&text))));
    lines.push(format!("theirs: {}", short(database.theirs(&text))));
    if let crate::Outcome::Rows { rows, .. } = database.ours(&format!("explain {text}")) {
        lines.extend(rows.iter().map(|row| format!("  {row:?}")));
    }
    lines.join("\n")
}
