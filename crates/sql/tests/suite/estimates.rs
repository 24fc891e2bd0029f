//! What samples of the tables tell the planner: the order in which joins are probed, and whether rows are grouped before a join.
//! No answer depends on them.

use std::sync::Arc;

use crate::fixture;

/// Sales of five years, a calendar of two centuries, and what sales refer to.
struct Database {
    _directory: tempfile::TempDir,
    workers: Arc<workers::Workers>,
    instance: Arc<sql::Instance>,
}

impl Database {
    fn new() -> Database {
        let (workers, directory) = (fixture::workers(), tempfile::tempdir().unwrap());
        let mut store = store::Options::default();
        store.pool.bytes = 32 << 20;
        let options = sql::Options::spilling_to(directory.path());
        let path = directory.path().join("e.atoll");
        let instance = fixture::instance(&workers, &path, 256 << 20, store, options);
        let database = Database {
            _directory: directory,
            workers,
            instance,
        };
        // Of sales, 3 of 5 are of kind 7; a day of the week is of 1 in 7 days.
        database.lines(
            "create table day (day_id int, year int, week int);
             create table shop (shop_id int, size int, town int, area int);
             create table kind (kind_id int, word text);
             create table buyer (buyer_id int, name text, city text, phone text);
             create table sale (day int, shop int, kind int, buyer int, price int);
             insert into day select g, g / 365, g % 7 from generate_series(0, 72999) g;
             insert into shop select g, g % 10, g % 25, g % 25 from generate_series(0, 199) g;
             insert into kind select g, 'kind ' || g from generate_series(0, 99) g;
             insert into buyer select g, 'name ' || g, 'city ' || g % 50, 'phone ' || g
               from generate_series(0, 1999) g;
             insert into sale select 40000 + g * 7 % 1800, g * 13 % 200,
               case when g % 5 < 3 then 7 else g / 5 % 100 end, g * 31 % 2000, g % 1000
               from generate_series(1, 60000) g",
        );
        database
    }

    /// The texts of the first column of the last statement.
    fn lines(&self, text: &str) -> Vec<String> {
        let session = self.instance.session();
        let answers = self.workers.handle().block_on(session.execute(text));
        let answer = answers.unwrap_or_else(|e| panic!("{text}: {e}")).pop();
        let mut lines = Vec::new();
        for batch in &answer.unwrap().batches {
            let column = arrow::compute::cast(batch.column(0), &arrow::datatypes::DataType::Utf8);
            let column = column.unwrap();
            let texts: &arrow::array::StringArray = column.as_any().downcast_ref().unwrap();
            lines.extend(texts.iter().flatten().map(str::to_owned));
        }
        lines
    }

    /// Demands that sales probe the join table of `first`, or are reduced by it, before that of `second`, and that there are so many.
    fn probes(&self, from: &str, first: &str, second: &str, expected: usize) {
        let query = format!("select count(*) c, sum(price) from {from}");
        let plan = self.lines(&format!("explain {query}")).join("\n");
        let place = |key: &str| {
            let probe = format!("by ({key})");
            let lines = plan.lines().enumerate();
            let probes = ["dot", "hadamard"];
            let mut lines = lines.filter(|(_, line)| {
                let line = line.trim_start();
                probes.iter().any(|probe| line.starts_with(probe))
            });
            let found = lines.find(|(_, line)| line.contains(&probe));
            found
                .unwrap_or_else(|| panic!("{probe} is missing:\n{plan}"))
                .0
        };
        assert!(place(first) < place(second), "{query}:\n{plan}");
        assert_eq!(self.lines(&query), [expected.to_string()], "{query}");
    }
}

#[test]
fn a_filter_is_estimated_among_the_keys_that_are_referred_to() {
    let database = Database::new();
    // One of 200 years, but one of five that have sales; shops of a size are one of ten.
    let from = "sale join day on day = day_id join shop on shop = shop_id
                where year = 112 and size = 3";
    let expected = (1..=60_000).filter(|g| {
        let (day, shop) = (40_000 + g * 7 % 1_800, g * 13 % 200);
        day / 365 == 112 && shop % 10 == 3
    });
    database.probes(from, "shop", "day", expected.count());
    // A week day is one of seven, within those five years as anywhere.
    let from = "sale join day on day = day_id join shop on shop = shop_id
                where week = 2 and size >= 5";
    let expected = (1..=60_000).filter(|g| {
        let (day, shop) = (40_000 + g * 7 % 1_800, g * 13 % 200);
        day % 7 == 2 && shop % 10 >= 5
    });
    database.probes(from, "day", "shop", expected.count());
}

#[test]
fn frequent_values_are_told_from_rare_ones() {
    let database = Database::new();
    let sales = |kind: i64| {
        let of = |g: i64| if g % 5 < 3 { 7 } else { g / 5 % 100 };
        let found = (1..=60_000).filter(|g| of(*g) == kind && g * 13 % 200 % 10 < 2);
        found.count()
    };
    let from = |kind: i64| {
        format!(
            "sale join kind on kind = kind_id join shop on shop = shop_id
             where word = 'kind {kind}' and size < 2"
        )
    };
    database.probes(&from(7), "shop", "kind", sales(7));
    database.probes(&from(8), "kind", "shop", sales(8));
}

#[test]
fn conditions_that_follow_from_each_other_count_once() {
    let database = Database::new();
    // One of 25 shops is in a town, and in its area; one of 50 kinds has these two words.
    let from = "sale join shop on shop = shop_id join kind on kind = kind_id
                where town = 3 and area = 3 and word in ('kind 8', 'kind 9')";
    let expected = (1..=60_000i64).filter(|g| {
        let kind = if g % 5 < 3 { 7 } else { g / 5 % 100 };
        (g * 13 % 200) % 25 == 3 && (kind == 8 || kind == 9)
    });
    database.probes(from, "kind", "shop", expected.count());
}

/// As in TPC-DS 4, 11 and 74: a year's sales by buyer, of whom name, city and phone are wanted.
#[test]
fn groups_come_before_a_join_if_the_calendar_is_longer_than_the_sales() {
    let database = Database::new();
    let query = "select count(p) c from (
                   select name, city, phone, year, sum(price) p
                   from sale join day on day = day_id join buyer on buyer = buyer_id
                   where year in (111, 112) group by name, city, phone, year) x";
    let plan = database.lines(&format!("explain {query}")).join("\n");
    let early = plan
        .lines()
        .any(|line| line.contains("by krao(buyer, year)"));
    let early = early
        || plan
            .lines()
            .any(|line| line.contains("by krao(year, buyer)"));
    assert!(early, "{plan}");
    let groups: std::collections::BTreeSet<(i64, i64)> = (1..=60_000)
        .map(|g: i64| (g * 31 % 2_000, (40_000 + g * 7 % 1_800) / 365))
        .filter(|(_, year)| [111, 112].contains(year))
        .collect();
    assert_eq!(database.lines(query), [groups.len().to_string()]);
}

#[test]
fn volatile_conditions_are_not_tried() {
    let database = Database::new();
    database.lines("create sequence tried");
    let query = "select count(*) from sale join shop on shop = shop_id where nextval('tried') > 0";
    assert_eq!(database.lines(query), ["60000"]);
    assert_eq!(database.lines("select nextval('tried')"), ["60001"]);
}

/// What is in the tail, deleted or changed since the sample was read is in the answer.
#[test]
fn answers_follow_the_tables_and_not_the_samples() {
    let database = Database::new();
    let query = "select count(*) from sale join shop on shop = shop_id where size = 3";
    assert_eq!(database.lines(query), ["6000"]);
    database.lines("insert into sale values (1, 3, 1, 1, 1)");
    assert_eq!(database.lines(query), ["6001"]);
    database.lines("update shop set size = 4 where size = 3");
    assert_eq!(database.lines(query), ["0"]);
    database.lines("update shop set size = 3");
    assert_eq!(database.lines(query), ["60001"]);
    database.lines("delete from sale where day > 40000");
    let days = (1..=60_000).filter(|g| g * 7 % 1_800 == 0).count() + 1;
    assert_eq!(database.lines(query), [days.to_string()]);
}
