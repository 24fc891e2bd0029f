//! Prepared statements, portals, binary values.

use crate::client::{Served, bind, describe, execute, kinds, parse, sync};

#[test]
fn parameters_are_typed_by_what_they_are_compared_with() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create table t (a int, b varchar, c date, d decimal(10,2), e double)");
    let types_of = |client: &mut crate::client::Client, text: &str| {
        client.send(&[parse("", text, &[]), describe(b'S', ""), sync()].concat());
        let all = client.answers();
        let types = all
            .iter()
            .find(|told| told.kind == 't')
            .unwrap_or_else(|| panic!("{text}: {all:?}"));
        let numbers = types.body[2..].chunks(4);
        numbers
            .map(|four| u32::from_be_bytes(four.try_into().unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        types_of(&mut client, "select 1 from t where a = $1 and b = $2"),
        [23, 25]
    );
    assert_eq!(types_of(&mut client, "select $1::int, $2"), [23, 25]);
    assert_eq!(
        types_of(&mut client, "select a from t limit $1 offset $2"),
        [20, 20]
    );
    assert_eq!(
        types_of(&mut client, "select a from t where c between $1 and $2"),
        [1082, 1082]
    );
    assert_eq!(
        types_of(&mut client, "insert into t values ($1, $2, $3, $4, $5)"),
        [23, 25, 1082, 1700, 701]
    );
    assert_eq!(
        types_of(&mut client, "insert into t (b, a) values ($1, $2)"),
        [25, 23]
    );
    assert_eq!(
        types_of(&mut client, "update t set e = $1 where d > $2"),
        [701, 1700]
    );
    assert_eq!(
        types_of(&mut client, "delete from t where a in ($1, $2)"),
        [23, 23]
    );
    client.ask("create table s (u uuid, j jsonb, k json, l int[], m text[])");
    for (condition, wanted) in [
        ("u = $1", vec![2950]),
        ("u in ($1, $2)", vec![2950, 2950]),
        ("j @> $1 and u > $2", vec![3802, 2950]),
        ("(j -> $1) = j and (k ->> $2) = 'x'", vec![25, 25]),
        ("l @> $1 and $2 = m", vec![1007, 1009]),
        ("u = any($1)", vec![2951]),
        ("1 = any($1) and 'x' <> all($2)", vec![1016, 1009]),
    ] {
        let text = format!("select 1 from s where {condition}");
        assert_eq!(types_of(&mut client, &text), wanted, "{condition}");
    }
    assert_eq!(
        types_of(&mut client, "insert into s values ($1, $2, $3, $4, $5)"),
        [2950, 3802, 114, 1007, 1009]
    );
}

#[test]
fn what_a_client_declares_as_a_uuid_or_as_json_is_one() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create table s (u uuid, j jsonb)");
    let uuid = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
    let bytes: Vec<u8> = (0..32)
        .step_by(2)
        .map(|at| u8::from_str_radix(&uuid.replace('-', "")[at..at + 2], 16).unwrap())
        .collect();
    let json = b"\x01{\"a\": 1}";
    let values = |binary: bool| -> [Option<&[u8]>; 2] {
        if binary {
            [Some(&bytes), Some(json)]
        } else {
            [Some(uuid.as_bytes()), Some(&json[1..])]
        }
    };
    for binary in [false, true] {
        for text in [
            "insert into s values ($1, $2)",
            "select count(*) from s where u = $1 and j @> $2",
            "select $1, $2",
        ] {
            client.send(
                &[
                    parse("", text, &[2950, 3802]),
                    bind("", "", binary, &values(binary), false),
                    describe(b'P', ""),
                    execute("", 0),
                    sync(),
                ]
                .concat(),
            );
            let all = client.answers();
            if text.starts_with("insert") {
                assert_eq!(kinds(&all), "12nCZ", "{all:?}");
                continue;
            }
            assert_eq!(kinds(&all), "12TDCZ", "{text}: {all:?}");
            let found = all.iter().find(|told| told.kind == 'D').unwrap().texts();
            let wanted: Vec<Option<String>> = if text.contains("count") {
                vec![Some((1 + i32::from(binary)).to_string())]
            } else {
                vec![Some(uuid.into()), Some("{\"a\": 1}".into())]
            };
            assert_eq!(found, wanted, "{text}");
        }
    }
}

/// Drivers know by these words and by the routine that they must prepare a statement again.
#[test]
fn a_statement_whose_columns_have_changed_says_so_as_drivers_expect() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create table t (a int); insert into t values (1)");
    client.send(
        &[
            parse("s", "select * from t", &[]),
            describe(b'S', "s"),
            sync(),
        ]
        .concat(),
    );
    client.answers();
    client.ask("alter table t add column b int");
    client.send(&[bind("", "s", false, &[], false), execute("", 0), sync()].concat());
    let all = client.answers();
    let told = all.iter().find(|told| told.kind == 'E').unwrap();
    let parts = [b'C', b'M', b'R'].map(|key| told.part(key));
    assert_eq!(
        parts,
        [
            "0A000",
            "cached plan must not change result type",
            "RevalidateCachedQuery"
        ]
    );
}

#[test]
fn values_go_both_ways_in_both_formats() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create table t (a int, b varchar, c double, d decimal(10,2), e boolean, f date, g bytea, h timestamp)");
    let insert = "insert into t values ($1, $2, $3, $4, $5, $6, $7, $8)";
    let numeric = [0, 2, 0, 0, 0x40, 0, 0, 2, 0, 12, 0x13, 0x88];
    let binary: [Option<&[u8]>; 8] = [
        Some(&[0xff, 0xff, 0xff, 0xfb]),
        Some("é'".as_bytes()),
        Some(&[0x3f, 0xf8, 0, 0, 0, 0, 0, 0]),
        Some(&numeric),
        Some(&[1]),
        Some(&[0, 0, 0, 1]),
        Some(b"\0\xff"),
        Some(&[0, 0, 0, 0, 0, 0, 0, 1]),
    ];
    let text: [Option<&[u8]>; 8] = [
        Some(b"7"),
        None,
        Some(b"-1e10"),
        Some(b"0.5"),
        Some(b"f"),
        Some(b"1999-12-31"),
        Some(b"\\x00"),
        Some(b"2026-11-25 00:00:00"),
    ];
    client.send(
        &[
            parse("i", insert, &[]),
            bind("", "i", true, &binary, false),
            execute("", 0),
            sync(),
            bind("", "i", false, &text, false),
            execute("", 0),
            sync(),
        ]
        .concat(),
    );
    assert_eq!(kinds(&client.answers()), "12CZ");
    assert_eq!(kinds(&client.answers()), "2CZ");
    let rows = client.rows("select * from t order by a");
    let shown: Vec<_> = rows[0].iter().flatten().map(String::as_str).collect();
    assert_eq!(
        shown,
        [
            "-5",
            "é'",
            "1.5",
            "-12.50",
            "t",
            "2000-01-02",
            "\\x00ff",
            "2000-01-01 00:00:00.000001"
        ]
    );
    assert_eq!(rows[1][1], None);
    // And back, in binary.
    client.send(
        &[
            parse("", "select * from t where a = $1", &[23]),
            bind("", "", false, &[Some(b"-5")], true),
            describe(b'P', ""),
            execute("", 0),
            sync(),
        ]
        .concat(),
    );
    let all = client.answers();
    assert_eq!(kinds(&all), "12TDCZ");
    let fields = all.iter().find(|told| told.kind == 'D').unwrap().fields();
    assert_eq!(fields, binary.map(|value| value.map(<[u8]>::to_vec)));
}

#[test]
fn decimals_that_are_no_numbers_go_both_ways_in_both_formats() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create table t (n numeric(50, 10))");
    let nan: &[u8] = &[0, 0, 0, 0, 0xc0, 0, 0, 0];
    client.send(
        &[
            parse("i", "insert into t values ($1)", &[]),
            bind("", "i", true, &[Some(nan)], false),
            execute("", 0),
            bind("", "i", false, &[Some(b"1.5")], false),
            execute("", 0),
            sync(),
        ]
        .concat(),
    );
    assert_eq!(kinds(&client.answers()), "12C2CZ");
    let query = "select n, 'inf'::numeric, '-inf'::numeric from t order by n desc limit 1";
    let row = [Some("NaN"), Some("Infinity"), Some("-Infinity")];
    let row = row.map(|text| text.map(str::to_string));
    assert_eq!(client.rows(query)[0], row);
    client.send(
        &[
            parse("", query, &[]),
            bind("", "", false, &[], true),
            execute("", 0),
            sync(),
        ]
        .concat(),
    );
    let all = client.answers();
    assert_eq!(kinds(&all), "12DCZ");
    let fields = all.iter().find(|told| told.kind == 'D').unwrap().fields();
    let signs = [0xc0, 0xd0, 0xf0].map(|sign| Some(vec![0, 0, 0, 0, sign, 0, 0, 0]));
    assert_eq!(fields, signs);
    assert_eq!(client.code("insert into t values ('inf')"), "22003");
}

#[test]
fn values_of_an_enum_are_texts_in_both_formats() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create type mood as enum ('sad', 'ok')");
    client.ask("create table t (m mood, l mood[])");
    client.ask("insert into t values ('ok', '{sad}'), ('sad', null)");
    let number: u32 = client
        .value("select to_regtype('mood')::oid")
        .parse()
        .unwrap();
    for declared in [&[][..], &[number][..]] {
        client.send(
            &[
                parse("", "select m from t where m = $1", declared),
                describe(b'S', ""),
                bind("", "", true, &[Some(b"ok")], true),
                execute("", 0),
                sync(),
            ]
            .concat(),
        );
        let all = client.answers();
        assert_eq!(kinds(&all), "1tT2DCZ");
        let part = |kind| &all.iter().find(|told| told.kind == kind).unwrap().body;
        // The name, a table and a column come before the type.
        assert_eq!(part('T')[2 + 2 + 6..][..4], number.to_be_bytes());
        if declared.is_empty() {
            assert_eq!(part('t')[2..], number.to_be_bytes());
        }
        let fields = all.iter().find(|told| told.kind == 'D').unwrap().fields();
        assert_eq!(fields, [Some(b"ok".to_vec())]);
    }
    assert_eq!(client.value("select l from t where m = 'ok'"), "{sad}");
    assert_eq!(client.code("insert into t values ('glum')"), "22P02");
    assert_eq!(client.tag("alter type mood add value 'glad'"), "ALTER TYPE");
}

#[test]
fn portals_give_some_rows_at_a_time() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("begin");
    let text = "select * from (values (1), (2), (3), (4), (5)) t(a) order by a";
    client.send(
        &[
            parse("", text, &[]),
            bind("p", "", false, &[], false),
            execute("p", 2),
            sync(),
        ]
        .concat(),
    );
    assert_eq!(kinds(&client.answers()), "12DDsZ");
    // Another statement beside it.
    assert_eq!(client.value("select 7"), "7");
    client.send(
        &[
            execute("p", 2),
            sync(),
            execute("p", 2),
            sync(),
            execute("p", 2),
            sync(),
        ]
        .concat(),
    );
    assert_eq!(kinds(&client.answers()), "DDsZ");
    assert_eq!(kinds(&client.answers()), "DCZ");
    assert_eq!(kinds(&client.answers()), "CZ");
    client.ask("commit");
    client.send(&[execute("p", 2), sync()].concat());
    let all = client.answers();
    assert_eq!(
        (kinds(&all), all[0].part(b'C')),
        ("EZ".into(), "34000".into())
    );
}

#[test]
fn statements_up_to_a_sync_are_one_transaction() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create table t (a int)");
    let insert =
        |value: &[u8]| [bind("", "i", false, &[Some(value)], false), execute("", 0)].concat();
    client.send(&[parse("i", "insert into t values ($1)", &[]), sync()].concat());
    client.answers();
    client.send(
        &[
            insert(b"1"),
            insert(b"2"),
            insert(b"x"),
            insert(b"4"),
            sync(),
        ]
        .concat(),
    );
    let all = client.answers();
    assert_eq!(kinds(&all), "2C2C2EZ");
    assert_eq!(client.value("select count(*) from t"), "0");
    client.send(&[insert(b"1"), insert(b"2"), insert(b"3"), sync()].concat());
    assert_eq!(kinds(&client.answers()), "2C2C2CZ");
    assert_eq!(client.value("select sum(a) from t"), "6");
}

#[test]
fn mistakes_are_told_and_the_rest_is_skipped() {
    let served = Served::new();
    let mut client = served.client();
    let mut code = |messages: &[u8]| {
        client.send(&[messages, &sync()].concat());
        let all = client.answers();
        let error = all.iter().find(|told| told.kind == 'E');
        error.map_or_else(String::new, |error| error.part(b'C'))
    };
    assert_eq!(
        code(
            &[
                parse("", "select $1", &[999]),
                bind("", "", false, &[], false)
            ]
            .concat()
        ),
        "0A000"
    );
    assert_eq!(code(&bind("", "none", false, &[], false)), "26000");
    assert_eq!(code(&execute("none", 0)), "34000");
    assert_eq!(code(&parse("", "select 1; select 2", &[])), "42601");
    assert_eq!(
        code(
            &[
                parse("", "select $1 + 1", &[]),
                bind("", "", false, &[], false)
            ]
            .concat()
        ),
        "08P01"
    );
    assert_eq!(
        code(
            &[
                parse("", "select $1 + 1", &[20]),
                bind("", "", true, &[Some(b"123")], false)
            ]
            .concat()
        ),
        "22P03"
    );
    assert_eq!(
        code(
            &[
                parse("", "select $1 + 1", &[20]),
                bind("", "", false, &[Some(b"1; drop")], false),
                execute("", 0)
            ]
            .concat()
        ),
        "22P02"
    );
    assert_eq!(code(&parse("a", "select 1", &[])), "");
    assert_eq!(code(&parse("a", "select 1", &[])), "42P05");
    assert_eq!(
        code(
            &[
                parse("", "", &[]),
                bind("", "", false, &[], false),
                describe(b'P', ""),
                execute("", 0)
            ]
            .concat()
        ),
        ""
    );
}

#[test]
fn columns_of_statements_are_described_before_they_run() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create table t (a int, b decimal(10,2))");
    for (text, wanted) in [
        ("select a, b from t", "1tTZ"),
        ("insert into t values (1, 2)", "1tnZ"),
        ("insert into t values (1, 2) returning b", "1tTZ"),
        ("show server_version", "1tTZ"),
        ("explain select 1", "1tTZ"),
        ("begin", "1tnZ"),
        ("", "1tnZ"),
    ] {
        client.send(&[parse("", text, &[]), describe(b'S', ""), sync()].concat());
        assert_eq!(kinds(&client.answers()), wanted, "{text}");
    }
    assert_eq!(client.value("select count(*) from t"), "0");
}
