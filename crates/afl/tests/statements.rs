//! Statements and what they give, and wrong ones and what is said of them.

use std::sync::Arc;

use afl::{Error, Outcome};
use array::{Model, Run, Scalar};
use futures::executor::block_on;
use proptest::prelude::*;
use store::{Options, PoolOptions, Store};

fn store() -> (tempfile::TempDir, Arc<Store>) {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        page_size: 4096,
        pool: PoolOptions {
            bytes: 4 << 20,
            ..PoolOptions::default()
        },
        durability: store::Durability::None,
        ..Options::default()
    };
    let store = Store::create(directory.path().join("t.atoll"), &options).unwrap();
    for statement in [
        "store(build(<v:double>[x=0:3,2; y=0:5,4], x * 10 + y), a)",
        "store(build(<celsius:double>[latitude=-25.420:-25.429:-0.001; longitude=-49.269:-49.260:0.001; year=2000:2024], year), temperature)",
        "create array empty <k:int32 null, f:float default 1.5 compression 'zstd'> [t=0:*,10] sparse",
    ] {
        done(&store, statement);
    }
    (directory, store)
}

fn run(store: &Arc<Store>, text: &str) -> Result<Outcome, Error> {
    block_on(afl::execute(text, store, &Run::new()))
}

fn done(store: &Arc<Store>, text: &str) -> String {
    match run(store, text) {
        Ok(Outcome::Done(what)) => what,
        other => panic!("{text}: {other:?}"),
    }
}

/// Shape and values of the first attribute of a query, by both models.
fn query(store: &Arc<Store>, text: &str) -> (Vec<u64>, Vec<String>) {
    let each = [Model::Pipeline, Model::Materialise].map(|model| {
        let outcome = block_on(afl::execute(text, store, &Run::new().model(model)));
        let Ok(Outcome::Array(data)) = outcome else {
            panic!("{text}: {outcome:?}");
        };
        let block = data.to_block().unwrap();
        let values = (0..block.cells()).map(|at| {
            if block.exists(at) {
                block.column(0).unwrap().get(at).to_string()
            } else {
                "-".to_owned()
            }
        });
        (data.schema().shape(), values.collect::<Vec<_>>())
    });
    assert_eq!(each[0], each[1], "{text}");
    each[0].clone()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn queries_give_what_they_say() {
    let (_directory, store) = store();
    for (text, shape, values) in [
        ("subarray(a, 1, 2, 2, 3)", vec![2, 2], "12.0 13.0 22.0 23.0"),
        ("subarray(a, 2, 3, 1, 2)", vec![2, 2], "12.0 13.0 22.0 23.0"),
        (
            "subarray(a, null, 5, *, 5)",
            vec![4, 1],
            "5.0 15.0 25.0 35.0",
        ),
        ("subset(a, y, 2, 2)", vec![4, 1], "2.0 12.0 22.0 32.0"),
        ("slice(a, x, 3)", vec![6], "30.0 31.0 32.0 33.0 34.0 35.0"),
        (
            "slice(between(a, 0, 0, 0, 2), x, 0)",
            vec![6],
            "0.0 1.0 2.0 - - -",
        ),
        (
            "slice(filter(a, v % 2 = 0 and not y > 3), x, 1)",
            vec![6],
            "10.0 - 12.0 - - -",
        ),
        ("aggregate(a, sum(v) as s)", vec![1], "420.0"),
        (
            "AGGREGATE(a, x, max(v), count(*))",
            vec![4],
            "5.0 15.0 25.0 35.0",
        ),
        (
            "project(apply(slice(a, y, 1), w, int8(v) - 1, z, iif(x > 1, null, 7)), w)",
            vec![4],
            "0 10 20 30",
        ),
        (
            "regrid(a, 2, 3, avg(v) as m)",
            vec![2, 2],
            "6.0 9.0 26.0 29.0",
        ),
        (
            "slice(window(a, 1, 1, 0, 0, sum(v)), y, 0)",
            vec![4],
            "10.0 30.0 60.0 50.0",
        ),
        (
            "transpose(subarray(a, 0, 0, 1, 1))",
            vec![2, 2],
            "0.0 10.0 1.0 11.0",
        ),
        (
            "add(slice(a, x, 0), 0.5)",
            vec![6],
            "0.5 1.5 2.5 3.5 4.5 5.5",
        ),
        (
            "subtract(1, slice(a, x, 0))",
            vec![6],
            "1.0 0.0 -1.0 -2.0 -3.0 -4.0",
        ),
        (
            "divide(slice(a, x, 1), slice(a, x, 0))",
            vec![6],
            "inf 11.0 6.0 4.333333333333333 3.5 3.0",
        ),
        (
            "opposite(slice(a, y, 1))",
            vec![4],
            "-1.0 -11.0 -21.0 -31.0",
        ),
        (
            "compare(slice(a, y, 1), >=, 11)",
            vec![4],
            "false true true true",
        ),
        (
            "sort(slice(a, y, 0), v desc)",
            vec![4],
            "30.0 20.0 10.0 0.0",
        ),
        (
            "matmul(subarray(a, 0, 0, 0, 1), subarray(a, 0, 0, 1, 0))",
            vec![1, 1],
            "10.0",
        ),
        (
            "concat(slice(a, y, 0), slice(a, y, 1))",
            vec![8],
            "0.0 10.0 20.0 30.0 1.0 11.0 21.0 31.0",
        ),
        (
            "redimension(apply(slice(a, y, 0), k, int64(3 - x)), <v> [k=0:3])",
            vec![4],
            "30.0 20.0 10.0 0.0",
        ),
        (
            "redimension(apply(slice(a, y, 0), k, int64(3 - x)), <v:double null> [k=0:3])",
            vec![4],
            "30.0 20.0 10.0 0.0",
        ),
        (
            "redimension(apply(a, k, x % 2), [k=0:1], sum(v) as s)",
            vec![2],
            "150.0 270.0",
        ),
        (
            "aggregate(cross_join(slice(a, y, 1), rename(slice(a, y, 0), v, w), l.x, r.x), sum(w))",
            vec![1],
            "60.0",
        ),
        (
            "aggregate(subarray(temperature, -25.423, -49.267, 2000, -25.426, -49.265, 2020), count(*))",
            vec![1],
            "252",
        ),
        (
            "aggregate(filter(join(a, rename(a, v, w)), v = w), count(*));",
            vec![1],
            "24",
        ),
    ] {
        let (found, all) = query(&store, text);
        assert_eq!(found, shape, "{text}");
        let shown: Vec<_> = all.iter().map(|of| of.as_str()).collect();
        let expected: Vec<_> = values.split(' ').collect();
        assert_eq!(shown, expected, "{text}");
    }
}

#[test]
fn arrays_are_created_written_listed_and_removed() {
    let (_directory, store) = store();
    assert_eq!(
        done(&store, "store(filter(a, v > 30), big)"),
        "array 'big' stored: 5 cells"
    );
    assert_eq!(
        query(&store, "slice(big, x, 3)").1,
        ["-", "31.0", "32.0", "33.0", "34.0", "35.0"]
    );
    done(&store, "insert(multiply(a, 2), a)");
    assert_eq!(
        query(&store, "slice(a, y, 5)").1,
        ["10.0", "30.0", "50.0", "70.0"]
    );
    done(&store, "create array log <v:double> [t=0:*,2; y=0:5]");
    for _ in 0..2 {
        done(&store, "append(a, log, t)");
    }
    assert_eq!(query(&store, "aggregate(log, count(*))").1, ["48"]);
    let Outcome::List(all) = run(&store, "list()").unwrap() else {
        panic!()
    };
    let names: Vec<_> = all.iter().map(|of| of.name.as_str()).collect();
    assert_eq!(names, ["a", "big", "empty", "log", "temperature"]);
    let Outcome::Schema(schema) = run(&store, "show(empty)").unwrap() else {
        panic!()
    };
    assert_eq!(schema.attributes()[1].fill_value(), Scalar::Float(1.5));
    assert!(schema.dimensions()[0].is_growing());
    done(&store, "remove(big)");
    assert!(run(&store, "big").is_err());
    assert!(afl::writes("remove(a)").unwrap() && !afl::writes("list()").unwrap());
}

#[test]
fn cells_of_a_sparse_array_are_deleted() {
    let (_directory, store) = store();
    done(&store, "store(filter(a, v > 30), big)");
    let said = done(&store, "delete(big, v = 32 or y > 4)");
    assert_eq!(said, "array 'big' has lost 2 cells");
    assert_eq!(
        query(&store, "slice(big, x, 3)").1,
        ["-", "31.0", "-", "33.0", "34.0", "-"]
    );
    assert_eq!(
        done(&store, "delete(big, v < 0)"),
        "array 'big' has lost 0 cells"
    );
    assert!(afl::writes("delete(big, true)").unwrap());
    for (statement, said) in [
        ("delete(a, v > 1)", "is dense, and has each of its cells"),
        ("delete(none, v > 1)", "no array 'none'"),
        ("delete(big, w > 1)", "'w'"),
        ("delete(big, v + 1)", "filter"),
        ("delete(big)", "`,`"),
    ] {
        let error = run(&store, statement).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    assert_eq!(query(&store, "aggregate(big, count(*))").1, ["3"]);
}

#[test]
fn statistics_are_exact() {
    let (_directory, store) = store();
    for (text, shape, values) in [
        ("quantile(a, v, 0.5)", vec![1], vec!["17.5"]),
        (
            "quantile(a, v, 0, 0.25, 1, x)",
            vec![4, 3],
            vec![
                "0.0", "1.25", "5.0", "10.0", "11.25", "15.0", "20.0", "21.25", "25.0", "30.0",
                "31.25", "35.0",
            ],
        ),
        (
            "project(histogram(a, v, 3, 0, 30), count)",
            vec![3],
            vec!["6", "6", "7"],
        ),
        (
            "project(histogram(a, v, 2), low, count)",
            vec![2],
            vec!["0.0", "17.5"],
        ),
        (
            "variable_window(filter(slice(a, x, 0), y <> 2), y, 1, 0, sum(v))",
            vec![6],
            vec!["0.0", "1.0", "-", "4.0", "7.0", "9.0"],
        ),
    ] {
        let values: Vec<String> = values.into_iter().map(str::to_owned).collect();
        assert_eq!(query(&store, text), (shape, values), "{text}");
    }
}

#[test]
fn versions_are_read_listed_and_removed() {
    let (_directory, store) = store();
    assert_eq!(
        done(&store, "create version 1 of a"),
        "array 'a' kept as a@1"
    );
    done(&store, "create version \"of Monday\" of a");
    done(&store, "insert(multiply(a, 2), a)");
    assert_eq!(
        query(&store, "slice(a, y, 5)").1,
        ["10.0", "30.0", "50.0", "70.0"]
    );
    assert_eq!(
        query(&store, "slice(a@1, y, 5)").1,
        ["5.0", "15.0", "25.0", "35.0"]
    );
    assert_eq!(
        query(
            &store,
            "aggregate(compare(subtract(a, a@\"of Monday\"), =, a@1), min(v))"
        )
        .1,
        ["true"]
    );
    let Outcome::List(all) = run(&store, "versions(a)").unwrap() else {
        panic!()
    };
    let names: Vec<_> = all.iter().map(|of| of.name.as_str()).collect();
    assert_eq!(names, ["a@1", "a@of Monday"]);
    assert!(all.iter().all(|of| of.kept == of.pages && of.pages > 0));
    for (text, message) in [
        ("create version 1 of a", "'a@1' exists"),
        ("create version 1 of b", "no array 'b'"),
        (
            "create table a",
            "expected `array` or `version`, found `table`",
        ),
        ("create version 2 a", "expected `of`, found `a`"),
        (
            "a@2",
            "array 'a' has no version '2'; there are '1', 'of Monday'",
        ),
        ("b@2", "no array 'b'"),
        ("remove(a)", "drop '1', 'of Monday' first"),
        (
            "store(build(<v:double>[x=0:1], x), a)",
            "drop '1', 'of Monday' first",
        ),
        ("insert(a, a@1)", "expected"),
        ("versions(c)", "no array 'c'"),
    ] {
        let error = run(&store, text).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
    done(&store, "remove(a@1)");
    done(&store, "remove(a@\"of Monday\")");
    done(&store, "remove(a)");
    assert!(afl::writes("create version 1 of a").unwrap() && !afl::writes("versions(a)").unwrap());
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn what_is_wrong_is_said_where_it_is() {
    let (_directory, store) = store();
    let deep = format!("{}a{}", "opposite(".repeat(80), ")".repeat(80));
    let long = format!("filter(a, v = {})", vec!["1"; 300].join(" + "));
    for (text, message) in [
        (
            "",
            "line 1, column 1: expected an array: a name or an operator, found the end",
        ),
        (
            "subarray(a, 1, 2",
            "line 1, column 17: expected `,` or `)`, found the end",
        ),
        (
            "subarray(a, 1, 2, 3)",
            "line 1, column 1: subarray: 2 dimensions need 4 bounds",
        ),
        (
            "subarray(a, 1, 2, 9, 3)",
            "line 1, column 1: subarray: 9 is not in dimension 'x', which has 0 to 3",
        ),
        (
            "add(a,\n  slice(b, x, 1))",
            "line 2, column 9: there is no array 'b'; there are a, empty, temperature",
        ),
        (
            "filter(a, w > 1)",
            "line 1, column 1: filter: there is no attribute or dimension 'w'; there are 'v', 'x', 'y'",
        ),
        (
            "filter(a, v > 'x')",
            "line 1, column 15: there are no texts in arrays",
        ),
        (
            "aggregate(a, median(v))",
            "line 1, column 14: there is no aggregate `median`",
        ),
        (
            "aggregate(a, sum(*))",
            "line 1, column 18: expected the name of an attribute; only count takes a *",
        ),
        (
            "frobnicate(a)",
            "line 1, column 1: there is no operator `frobnicate`",
        ),
        (
            "slice(a, x, 1e2)",
            "line 1, column 13: '1e2' is no coordinate",
        ),
        (
            "a b",
            "line 1, column 3: expected the end of the statement, found `b`",
        ),
        (
            "a; a",
            "line 1, column 4: expected the end of the statement, found `a`",
        ),
        ("store(a)", "line 1, column 8: expected `,`, found `)`"),
        (
            "add(1, 2)",
            "line 1, column 1: one of the two must be an array",
        ),
        (
            "filter(a, sin(v) > 1)",
            "line 1, column 11: there is no function `sin`",
        ),
        (
            "create array b <v:text>[x=0:1]",
            "line 1, column 19: there is no type `text`",
        ),
        (
            "create array b <v:int8 default 300>[x=0:1]",
            "line 1, column 16: attribute 'v' cannot have the fill value 300",
        ),
        (
            "create array b <v:int8>[x=0:1:0.3]",
            "line 1, column 27: steps of 0.3 do not lead from 0 to 1",
        ),
        (
            "redimension(apply(a, k, x), <v:int32> [k=0:3])",
            "line 1, column 1: redimension: attribute 'v' is double, not int32",
        ),
        ("a /* never", "line 1, column 3: this comment has no end"),
        ("a $", "line 1, column 3: '$' has no meaning here"),
        (&deep, "more than 64 levels"),
        (&long, "more than 200 operators"),
    ] {
        let error = run(&store, text).unwrap_err();
        assert!(error.to_string().contains(message), "{text}: {error}");
        let fault = error.fault().unwrap();
        assert!(fault.excerpt().contains('^'), "{}", fault.excerpt());
    }
    let error = run(&store, "create array a <v:int8>[x=0:1]").unwrap_err();
    assert!(error.to_string().contains("array 'a' exists"), "{error}");
}

/// Pieces that statements are made of.
const PIECES: &[&str] = &[
    "a",
    "v",
    "x",
    "y",
    "temperature",
    "subarray(",
    "quantile(",
    "histogram(",
    "variable_window(",
    "create version",
    "@",
    "of",
    "filter(",
    "aggregate(",
    "window(",
    "sort(",
    "build(",
    "apply(",
    "regrid(",
    "slice(",
    "redimension(",
    "matmul(",
    "join(",
    "add(",
    "compare(",
    "store(",
    "sum(",
    "count(*)",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    "{",
    "}",
    ",",
    ";",
    ":",
    "=",
    "-",
    "+",
    "*",
    "/",
    "%",
    "^",
    "0",
    "1",
    "2.5",
    "1e300",
    "null",
    "not",
    "and",
    "or",
    "as",
    "desc",
    "iif(",
    "int8(",
    "'",
    "\"",
    "--",
    "/*",
    "*/",
    "é",
    "\n",
    "v:double",
    "x=0:3",
    "99999999999999999999",
    ".",
    "create array z ",
];

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![12 => prop::sample::select(PIECES.to_vec()).prop_map(str::to_owned), 1 => ".{0,3}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn no_text_is_a_panic(pieces in prop::collection::vec(piece(), 0..40)) {
        let text = pieces.join("");
        if let Err(error) = afl::writes(&text) {
            let fault = error.fault().cloned().unwrap();
            prop_assert!(fault.line >= 1 && fault.column >= 1 && fault.length >= 1);
            prop_assert!(!fault.excerpt().is_empty());
        }
    }
}

#[test]
fn what_is_said_of_an_array_is_stored_with_what_is_computed_of_it() {
    let (_directory, store) = store();
    let schema = array::Array::open(&store.snapshot(), "a").unwrap();
    let mut metadata = array::Metadata::default();
    let units = |of: &str| vec![("units".to_owned(), of.into())];
    metadata.describe(Some("x"), units("m"));
    metadata.describe(Some("v"), units("K"));
    let mut writer = array::Writer::begin(&store).unwrap();
    let described = schema.schema().clone().with_metadata(metadata);
    writer.create("told", &described).unwrap();
    writer.commit().unwrap();
    done(
        &store,
        "store(aggregate(apply(told, w, v + 1), sum(v) as s, x), of_x)",
    );
    done(&store, "store(project(filter(told, y < 3), v), fewer)");
    for (name, v) in [("of_x", ""), ("fewer", "K")] {
        let array = array::Array::open(&store.snapshot(), name).unwrap();
        let said = |part| array.schema().metadata().of(Some(part)).first().cloned();
        assert_eq!(said("x").unwrap().1.to_string(), "m");
        assert_eq!(said("v").map_or(String::new(), |of| of.1.to_string()), v);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_nesting_overflows_the_stack(open in prop::sample::select(vec!["(", "-", "not ", "opposite(", "iif(", "abs(", "2^", "[", "<"]), n in 0..50_000usize) {
        let text = format!("filter(a, {}1)", open.repeat(n));
        let _ = afl::writes(&text);
        let _ = afl::writes(&open.repeat(n));
    }
}

#[test]
fn statements_with_wrong_words_in_them_are_no_panic() {
    let (_directory, store) = store();
    let snapshot = store.snapshot();
    let whole = "aggregate(window(filter(apply(a, w, v * 2 - x), w > 3 and v < 30), 1, 1, 0, 1, sum(w) as s), max(s), x)";
    let tokens: Vec<&str> = whole
        .split_inclusive(|c: char| !c.is_alphanumeric())
        .collect();
    let mut good = 0;
    for at in 0..tokens.len() {
        for other in [
            "", "x", "v,", "99", "(", ")", "null", "-1.5,", "sum(", "'t'",
        ] {
            let mut changed = tokens.clone();
            changed[at] = other;
            good += usize::from(afl::compile(&changed.concat(), &snapshot).is_ok());
        }
    }
    assert!(good > 0, "some of them are statements still");
}
