//! Large expressions are planned in a time that fits their size, and filters that joins make are of the right columns.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sql::Executor;

use crate::fixture;

const STACK: usize = 16 << 20;

/// A table `t` of a thousand rows, `i` from 1 and `s` a text, and whoever runs statements on it.
struct Fixture {
    _directory: tempfile::TempDir,
    workers: Arc<workers::Workers>,
    instance: Arc<sql::Instance>,
}

impl Fixture {
    fn new(executor: Executor) -> Fixture {
        let (workers, directory) = (fixture::workers(), tempfile::tempdir().unwrap());
        let mut store = store::Options::default();
        store.pool.bytes = 8 << 20;
        let mut options = sql::Options::spilling_to(directory.path());
        options.executor = executor;
        let path = directory.path().join("p.atoll");
        let instance = fixture::instance(&workers, &path, 256 << 20, store, options);
        let fixture = Fixture {
            _directory: directory,
            workers,
            instance,
        };
        fixture.rows(
            "create table t (i int, s text);
            insert into t select g, 'k' || g from generate_series(1, 1000) g;
            select * from t",
        );
        fixture
    }

    /// How many rows the last of some statements has.
    fn rows(&self, text: &str) -> usize {
        self.answer(text).rows()
    }

    /// The answer of the last of some statements.
    fn answer(&self, text: &str) -> sql::Answer {
        let run = || {
            let session = self.instance.session();
            let answers = self.workers.handle().block_on(session.execute(text));
            answers.unwrap().pop().unwrap()
        };
        // With the stack that workers have, and not the small one of a test.
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK);
            let running = thread.spawn_scoped(scope, run).unwrap();
            running.join().unwrap()
        })
    }

    /// Demands a value of a query within a time that is generous for a build without optimisation.
    fn expect(&self, query: &str, expected: &str) {
        let asked = Instant::now();
        let text = format!("select * from (select ({query})::text v) x where v = '{expected}'");
        let begin = &text[..text.len().min(200)];
        assert_eq!(self.rows(&text), 1, "{begin}");
        let took = asked.elapsed();
        assert!(took < Duration::from_secs(20), "{took:?}: {begin}");
    }
}

/// `levels` of an expression around `inside`; `{k}` in them stands for the number of the level.
fn within(before: &str, inside: &str, after: &str, levels: usize) -> String {
    (0..levels).fold(inside.to_owned(), |inside, k| {
        let written = |part: &str| part.replace("{k}", &k.to_string());
        format!("{}{inside}{}", written(before), written(after))
    })
}

/// `count` terms with `between` in between; `{k}` in them stands for the number of the term.
fn chain(term: &str, between: &str, count: usize) -> String {
    let terms = (0..count).map(|k| term.replace("{k}", &k.to_string()));
    terms.collect::<Vec<_>>().join(between)
}

/// The time that our engine takes to look for kernels, and the planner for types, does not grow with a power of the number of terms
/// beyond what one can wait for.
#[test]
fn chains_of_many_terms() {
    let arms = chain("when {k} then {k} % 7", " ", 1_000);
    let either = chain("(i = {k} and s = 'k{k}')", " or ", 300);
    let list = chain("{k}", ", ", 20_000);
    let nulls = chain("nullif(i, i)", ", ", 300);
    let cases = [
        (format!("max({})", chain("i", " + ", 300)), "300000"),
        (format!("min({})", chain("i", " - ", 300)), "-298000"),
        (format!("max({})", chain("i::bigint", " + ", 300)), "300000"),
        (format!("max(length({}))", chain("s", " || ", 500)), "2500"),
        (format!("bool_and({}true)", "not ".repeat(300)), "true"),
        (format!("count(*) filter (where {either})"), "299"),
        (format!("max(case i {arms} end)"), "6"),
        (format!("count(*) filter (where i in ({list}))"), "1000"),
        (format!("max(coalesce({nulls}, i))"), "1000"),
    ];
    for executor in [Executor::Fused, Executor::Staged] {
        let f = Fixture::new(executor);
        for (value, expected) in &cases {
            f.expect(&format!("select {value} from t"), expected);
        }
    }
}

/// Functions and operators within each other that are written out, or asked, several times while they are planned. With forty
/// levels, and twice in each, no machine would come to an end, neither of planning nor of computing the values.
#[test]
fn what_is_copied_is_not_copied_at_each_level() {
    let is_one = "(i = 1)";
    let levels = |before: &str, inside: &str, after: &str| within(before, inside, after, 40);
    let two_arms = ") then i > {k} when i = 4 then i > 5 else i = 9 end";
    let of_booleans = [
        levels("(", is_one, " between false and (i > {k}))"),
        levels("case when ", is_one, " then 1 end = 1"),
        levels("(", is_one, "::text like 'tr%')"),
        levels("(", is_one, " is distinct from (i = {k}))"),
        levels("(", is_one, " in (true, i > {k}))"),
        format!("not {}", levels("case when (", is_one, two_arms)),
    ];
    let of_numbers = [
        (
            levels("case when coalesce(", "i", ", 1) > 3 then i else 4 end"),
            "1",
        ),
        (levels("(1 + coalesce(", "i", ", {k}))"), "41"),
        (levels("coalesce(nullif(", "i", ", 0), 1)"), "1"),
        (levels("greatest(1 + ", "i", ", {k})"), "41"),
        (levels("(1 + ", "i", ") / 2"), "1"),
        // A branch that no row takes is not computed, however deep it is.
        (
            levels("case when i < 0 then 1 / (i - i) else ", "i", " end"),
            "1",
        ),
        (
            levels("case when i > 0 then i else 1 / (i - i) * (", "i", ") end"),
            "1",
        ),
    ];
    for executor in [Executor::Fused, Executor::Staged] {
        let f = Fixture::new(executor);
        for value in &of_booleans {
            f.expect(&format!("select bool_or({value}) from t"), "true");
            f.expect(&format!("select count(*) > 0 from t where {value}"), "true");
        }
        for (value, expected) in &of_numbers {
            f.expect(&format!("select min({value}) from t"), expected);
        }
    }
}

/// The functions that stand for what is deep inside go through joins, groups, sorts and subqueries.
#[test]
fn what_is_deep_stands_everywhere() {
    let deep = |of: &str| within("case when coalesce(", of, ", 1) > 3 then i else 4 end", 10);
    let own = deep("i");
    let joined = within(
        "case when coalesce(",
        "coalesce(u.i, 7)",
        ", 1) > 3 then u.i end",
        10,
    );
    let cases = [
        (
            format!("select count(*) from t group by {own} order by 1 desc limit 1"),
            "1",
        ),
        (
            format!("select sum(c) from (select count(*) c from t group by {own}) x"),
            "1000",
        ),
        (format!("select count(distinct {own}) from t"), "1000"),
        (
            format!("select i from t order by {own} desc limit 1"),
            "1000",
        ),
        (
            format!(
                "select count(*) from t left join (select i from t where i > 500) u on t.i = u.i where {joined} is null"
            ),
            "500",
        ),
        (
            format!(
                "select count(*) from t where exists (select 1 from (select i as j from t) u where u.j = {own})"
            ),
            "1000",
        ),
        (
            format!(
                "select count({}) from t",
                deep("(now() - now() <> interval '1 s')::int")
            ),
            "1000",
        ),
    ];
    for executor in [Executor::Fused, Executor::Staged] {
        let f = Fixture::new(executor);
        for (query, expected) in &cases {
            f.expect(query, expected);
        }
    }
}

#[test]
fn filters_of_joins_know_columns_of_one_name_apart() {
    let fixture = Fixture::new(Executor::Fused);
    // The filter of `b` is not that of `a`, whose column has the same name in the rows of the join of both.
    let twice = "select count(*) from (select i, count(*) n from t group by i) a, (select i, count(*) n from t group by i) b, \
                 t c, t d where c.s = 'k3' and c.i = a.i and d.s = 'k4' and d.i = b.i and a.n = b.n";
    for _ in 0..50 {
        fixture.expect(twice, "1");
    }
}
