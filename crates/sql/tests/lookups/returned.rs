//! What single inserts, and updates and deletes by a key, return is what a plan of it returns.

use crate::fixture;
use crate::written::Side;

/// A `returning` of columns needs no plan: whoever finds the row by its key is who is said to have run the statement.
#[test]
fn returned_columns_need_no_plan() {
    let workers = fixture::workers();
    let side = Side::new(&workers, (false, true));
    let other = Side::new(&workers, (true, true));
    for (text, values, is_found) in [
        (
            "insert into k (id, n, tz, ai, jb) values ($1, 5, $2, $3, '[1]') returning id as \"No\", tz, k.ai, jb, g",
            vec![Some("1"), Some("2020-01-02 03:04:05+02"), Some("{1,NULL}")],
            false,
        ),
        (
            "insert into k (id, n) values ($1, $2) returning *",
            vec![Some("2"), Some("6")],
            false,
        ),
        (
            "update k set n = n + $1 where id = $2 returning n, n, id",
            vec![Some("3"), Some("1")],
            true,
        ),
        (
            "update k set n = n + $1 where id = $2 returning id, n + 1",
            vec![Some("3"), Some("1")],
            true,
        ),
        (
            "update k set n = n + $1 where id = $2 returning n",
            vec![Some("3"), Some("99")],
            false,
        ),
        (
            "delete from k where id = $1 returning *",
            vec![Some("1")],
            true,
        ),
    ] {
        let prepared = side.session.prepare(text, &[]);
        let prepared = workers.handle().block_on(prepared).unwrap().unwrap();
        let columns = prepared.columns().cloned();
        let (said, found) = side.prepared(&workers, text, &values);
        let (wanted, _) = other.prepared(&workers, text, &values);
        assert_eq!(said, wanted, "{text}");
        assert_eq!(found, is_found, "{text}: {said:?}");
        let fields = columns.unwrap();
        let names = fields.fields().iter().map(|field| field.name().clone());
        for name in names {
            let none = values.contains(&Some("99"));
            assert!(none || said.as_ref().unwrap().contains(&name), "{text}");
        }
    }
    // What may not be read is not returned.
    let run = |text: &str| side.run(&workers, text).0;
    run("create role writer login").unwrap();
    run("grant insert on k to writer").unwrap();
    run("set role writer").unwrap();
    let said = run("insert into k (id) values (50) returning id");
    assert_eq!(said.unwrap_err().0, "42501");
}
