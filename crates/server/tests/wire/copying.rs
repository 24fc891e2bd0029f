//! `copy` through the connection.

use crate::client::{Served, bind, execute, framed, kinds, parse, sync};

fn data(bytes: &[u8]) -> Vec<u8> {
    framed(Some(b'd'), bytes)
}

fn done() -> Vec<u8> {
    framed(Some(b'c'), &[])
}

fn query(text: &str) -> Vec<u8> {
    framed(Some(b'Q'), format!("{text}\0").as_bytes())
}

#[test]
fn rows_come_in_as_text_and_as_csv() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create table t (a int, b varchar, c date default date '2026-01-01')");
    client.send(
        &[
            query("copy t (a, b) from stdin"),
            data(b"1\tone\n2\t"),
            data(b"\\N\n3\ttab\\t\n\\.\n"),
            done(),
        ]
        .concat(),
    );
    let all = client.answers();
    assert_eq!(kinds(&all), "GCZ");
    assert_eq!(all[1].text(), "COPY 3");
    client.send(
        &[
            query("copy t from stdin (format csv, header)"),
            data(b"a,b,c\r\n4,\"a,\nb\",2026-11-25\r\n,,\n"),
            done(),
        ]
        .concat(),
    );
    assert_eq!(client.answers()[1].text(), "COPY 2");
    assert_eq!(
        client.value("select count(*) from t where c = date '2026-01-01'"),
        "3"
    );
    assert_eq!(client.value("select b from t where a = 4"), "a,\nb");
    assert_eq!(
        client.value("select count(*) from t where a is null and b is null and c is null"),
        "1"
    );
    assert_eq!(client.value("select b from t where a = 3"), "tab\t");
}

#[test]
fn many_rows_come_in_pieces() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create table t (a bigint, b varchar)");
    client.send(&query("copy t from stdin (format csv)"));
    let mut text = String::new();
    for number in 0..200_000 {
        text.push_str(&format!("{number},\"number {number}\"\n"));
    }
    for piece in text.as_bytes().chunks(10_007) {
        client.send(&data(piece));
    }
    client.send(&done());
    assert_eq!(client.answers()[1].text(), "COPY 200000");
    assert_eq!(client.value("select sum(a) from t"), "19999900000");
    assert_eq!(
        client.value("select b from t where a = 123456"),
        "number 123456"
    );
}

/// Lines of text, more than are read at once: a number, a text with a backslash, and a double or NULL.
fn numbered(count: usize) -> String {
    let mut text = String::new();
    for number in 0..count {
        let last = match number % 7 {
            0 => "\\N".to_string(),
            _ => format!("{}.5", number % 1000),
        };
        text.push_str(&format!("{number}\tkey \\t{number}\t{last}\r\n"));
    }
    text
}

#[test]
fn parts_of_text_are_read_side_by_side_and_stay_in_their_order() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create table t (a bigint, b varchar, c double precision)");
    let text = numbered(150_000);
    for size in [100, 32 << 10, text.len()] {
        client.ask("truncate t");
        client.send(&query("copy t from stdin"));
        // The last line lacks its end.
        let bytes = text.trim_end().as_bytes();
        let pieces: Vec<u8> = bytes.chunks(size).flat_map(data).collect();
        client.send(&pieces);
        client.send(&done());
        assert_eq!(client.answers()[1].text(), "COPY 150000");
        assert_eq!(client.value("select sum(a) from t"), "11249925000");
        assert_eq!(client.value("select count(c) from t"), "128571");
        assert_eq!(
            client.value("select b from t where a = 123456"),
            "key \t123456"
        );
        assert_eq!(client.value("select c from t where a = 123456"), "456.5");
    }
}

#[test]
fn a_line_far_behind_that_is_wrong_is_told_by_its_number() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create table t (a bigint, b varchar, c double precision)");
    let text = numbered(100_000);
    let mut told = |rest: &[u8]| {
        let mut sent = query("copy t from stdin");
        for piece in [text.as_bytes(), rest].concat().chunks(50_000) {
            sent.extend(data(piece));
        }
        client.send(&[sent, done()].concat());
        let all = client.answers();
        let error = all.iter().find(|told| told.kind == 'E').unwrap();
        assert_eq!(client.value("select count(*) from t"), "0");
        (error.part(b'C'), error.part(b'M'))
    };
    let (code, message) = told(b"1\t2\t3\n1\t2\n\xff\n");
    assert_eq!(code, "22P04");
    let wanted = "missing data: 2 fields for 3 columns, in line 100002 of the copied data";
    assert_eq!(message, wanted);
    let (code, message) = told(b"1\t2\t3\n\n1\t2\t3\n");
    assert_eq!(code, "22P04");
    assert!(
        message.ends_with("in line 100002 of the copied data"),
        "{message}"
    );
    let (code, message) = told(b"1\ttwo\tthree\n");
    assert_eq!(code, "22P02");
    assert!(message.contains("\"three\""), "{message}");
}

#[test]
fn what_stands_behind_the_end_or_comes_before_giving_up_is_not_kept() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create table t (a bigint, b varchar, c double precision)");
    let text = numbered(50_000);
    // What is behind the end is no row, however much it is.
    let mut sent = query("copy t from stdin");
    sent.extend(data(text.as_bytes()));
    sent.extend(data(b"\\.\n"));
    sent.extend(data("wrong\n".repeat(200_000).as_bytes()));
    client.send(&[sent, done()].concat());
    assert_eq!(client.answers()[1].text(), "COPY 50000");
    client.ask("truncate t");
    let mut sent = query("copy t from stdin");
    sent.extend(data(text.as_bytes()));
    sent.extend(framed(Some(b'f'), b"enough\0"));
    client.send(&sent);
    let all = client.answers();
    assert_eq!(all[1].part(b'C'), "57014");
    assert_eq!(client.value("select count(*) from t"), "0");
}

#[test]
fn what_is_wrong_leaves_nothing() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create table t (a int not null, b varchar)");
    for (lines, code) in [
        (&b"1\tone\nx\ttwo\n"[..], "22P02"),
        (b"1\tone\n2\n", "22P04"),
        (b"1\tone\n\\N\ttwo\n", "23502"),
        (b"1\t\xff\n", "22P04"),
    ] {
        client.send(&[query("copy t from stdin"), data(lines), done()].concat());
        let all = client.answers();
        let error = all.iter().find(|told| told.kind == 'E').unwrap();
        assert_eq!(error.part(b'C'), code, "{}", error.part(b'M'));
    }
    // The client gives up.
    client.send(
        &[
            query("copy t from stdin"),
            data(b"1\tone\n"),
            framed(Some(b'f'), b"enough\0"),
        ]
        .concat(),
    );
    let all = client.answers();
    assert_eq!(all[1].part(b'C'), "57014");
    assert!(all[1].part(b'M').contains("enough"));
    assert_eq!(client.code("copy nowhere from stdin"), "42P01");
    assert_eq!(client.code("copy t (c) from stdin"), "42703");
    assert_eq!(client.value("select count(*) from t"), "0");
}

#[test]
fn rows_go_out_in_three_formats() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create table t (a int, b varchar)");
    client.ask("insert into t values (1, 'a\tb'), (2, null), (3, 'x,\"y\"')");
    let mut out = |text: &str| {
        let all = client.ask(text);
        let data = all.iter().filter(|told| told.kind == 'd');
        data.flat_map(|told| told.body.clone()).collect::<Vec<u8>>()
    };
    let text = out("copy (select * from t order by a) to stdout");
    assert_eq!(text, b"1\ta\\tb\n2\t\\N\n3\tx,\"y\"\n");
    let csv = out("copy (select * from t order by a) to stdout (format csv, header)");
    assert_eq!(csv, b"a,b\n1,a\tb\n2,\n3,\"x,\"\"y\"\"\"\n");
    let binary = out("copy (select a from t where a = 1) to stdout (format binary)");
    assert_eq!(&binary[..11], b"PGCOPY\n\xff\r\n\0");
    assert_eq!(&binary[19..], [0, 1, 0, 0, 0, 4, 0, 0, 0, 1, 255, 255]);
    assert_eq!(client.tag("copy t to stdout"), "COPY 3");
}

#[test]
fn binary_rows_come_back_as_they_went() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create table t (a int, b varchar, c bigint, d decimal(12,3), e double, f date, g timestamp, h boolean, k real, l smallint, m time)");
    client.ask("insert into t values (1, 'a', -9000000000, -12.345, 1e-300, date '1969-12-31', timestamp '2026-11-25 18:30:00.123456', true, 0.5, -7, time '23:59:59.5'), (null, null, null, null, null, null, null, null, null, null, null)");
    client.ask("create table u as select * from t where false");
    let all = client.ask("copy t to stdout (format binary)");
    let out: Vec<u8> = all
        .iter()
        .filter(|told| told.kind == 'd')
        .flat_map(|told| told.body.clone())
        .collect();
    client.send(&query("copy u from stdin (format binary)"));
    for piece in out.chunks(13) {
        client.send(&data(piece));
    }
    client.send(&done());
    let all = client.answers();
    assert_eq!(all[0].body[0], 1, "it is asked for as binary");
    assert_eq!(all[1].text(), "COPY 2", "{}", all[1].part(b'M'));
    assert_eq!(
        client.value("select count(*) from (select * from t except select * from u) a"),
        "0"
    );
    assert_eq!(client.value("select count(*) from u where a is null"), "1");
    for wrong in [&out[..out.len() - 5], &out[1..], b"1\tone\n"] {
        let asked = query("copy u from stdin (format binary)");
        client.send(&[asked, data(wrong), done()].concat());
        let all = client.answers();
        let error = all.iter().find(|told| told.kind == 'E').unwrap();
        assert_eq!(error.part(b'C'), "22P04", "{}", error.part(b'M'));
    }
    assert_eq!(client.value("select count(*) from u"), "2");
    client.ask("create table v (a int, b bytea)");
    assert_eq!(client.code("copy v from stdin (format binary)"), "0A000");
}

/// Rust's driver reads them so, as PostgreSQL sends them: the head with the first row, and one message about the end.
#[test]
fn what_goes_out_in_binary_begins_with_its_head_and_ends_once() {
    let served = Served::new();
    let mut client = served.client();
    for (rows, wanted) in [(2, "12HdddcCZ"), (0, "12HdcCZ")] {
        let text =
            format!("copy (select x from generate_series(1, {rows}) s(x)) to stdout with binary");
        client.send(
            &[
                parse("", &text, &[]),
                bind("", "", false, &[], false),
                execute("", 0),
                sync(),
            ]
            .concat(),
        );
        let all = client.answers();
        assert_eq!(kinds(&all), wanted, "{all:?}");
        let first = all.iter().find(|told| told.kind == 'd').unwrap();
        let head = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
        let behind: &[u8] = match rows {
            0 => &[0xff, 0xff],
            _ => &[0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1],
        };
        assert_eq!(first.body, [&head[..], behind].concat());
        let ends: Vec<String> = all
            .iter()
            .filter(|told| told.kind == 'C')
            .map(crate::client::Told::text)
            .collect();
        assert_eq!(ends, [format!("COPY {rows}")]);
    }
}

#[test]
fn values_stand_within_quotes_where_they_are_forced_to() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create table t (a int, b text, c text)");
    client.ask("insert into t values (1, '', null), (2, 'a\"b', 'x')");
    let mut out = |options: &str| {
        let all = client.ask(&format!("copy t to stdout {options}"));
        let data = all.iter().filter(|told| told.kind == 'd');
        let data = data.flat_map(|told| told.body.clone()).collect::<Vec<u8>>();
        String::from_utf8(data).unwrap()
    };
    assert_eq!(
        out("(format csv, header, force_quote *, null 'NIL')"),
        "a,b,c\n\"1\",\"\",NIL\n\"2\",\"a\"\"b\",\"x\"\n"
    );
    assert_eq!(
        out("csv force quote b, c quote '''' escape '/' encoding 'utf8'"),
        "1,'',\n2,'a\"b','x'\n"
    );
    assert_eq!(
        out("(null 'q', format csv, encoding \"utf8\")"),
        "1,,q\n2,\"a\"\"b\",x\n"
    );
}

#[test]
fn options_that_are_wrong_have_the_codes_of_postgresql() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create table t (a int, b text, c text)");
    for (text, code) in [
        ("copy t to stdout (format xml)", "22023"),
        ("copy t to stdout (foo 1)", "42601"),
        ("copy t to stdout (format csv, format csv)", "42601"),
        ("copy t to stdout (format csv, header match)", "0A000"),
        ("copy t to stdout (format csv, header 2)", "42601"),
        ("copy t to stdout (encoding 'foo')", "22023"),
        ("copy t to stdout (encoding 'latin1')", "0A000"),
        ("copy t to stdout (format binary, delimiter ',')", "42601"),
        ("copy t to stdout (format binary, null 'x')", "42601"),
        ("copy t to stdout (format binary, header)", "0A000"),
        ("copy t to stdout (delimiter 'ab')", "0A000"),
        ("copy t to stdout (delimiter E'\\n')", "22023"),
        ("copy t to stdout (null E'\\n')", "22023"),
        ("copy t to stdout (delimiter 'x')", "22023"),
        ("copy t to stdout (quote 'x')", "0A000"),
        ("copy t to stdout (format csv, quote ',')", "22023"),
        ("copy t to stdout (force_quote *)", "0A000"),
        ("copy t from stdin (format csv, force_quote *)", "0A000"),
        ("copy t to stdout (format csv, force_not_null (a))", "0A000"),
        ("copy t to stdout csv force null a", "0A000"),
        ("copy t from stdin (format csv, force_null *)", "22023"),
        ("copy t from stdin (format csv, force_null (z))", "42703"),
        (
            "copy t (a) from stdin (format csv, force_not_null (b))",
            "42P10",
        ),
        ("copy t to stdout (format csv, force_quote (z))", "42703"),
        (
            "copy t (a) to stdout (format csv, force_quote (b))",
            "42P10",
        ),
        (
            "copy (select 1 as x) to stdout (format csv, force_quote (b))",
            "42703",
        ),
        ("copy t to stdout (format csv, force_quote (a, a))", "42701"),
        ("copy t to stdout (null 'a,b', delimiter ',')", "0A000"),
        ("copy t from stdin (format text, freeze 3)", "42601"),
    ] {
        assert_eq!(client.code(text), code, "{text}");
    }
}

#[test]
fn null_is_what_options_say_and_names_match() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create table t (a int, b text, c text)");
    let csv = "copy t from stdin (format csv, null 'N', force_null (b, c), force_not_null (b))";
    client.send(&[query(csv), data(b"1,N,\"N\"\n2,\"N\",N\n3,\"\",\n"), done()].concat());
    assert_eq!(client.answers()[1].text(), "COPY 3");
    let all = "select string_agg(coalesce(b, 'null') || '/' || coalesce(c, 'null'), ' ' order by a) from t";
    assert_eq!(client.value(all), "N/null null/null /");
    for (text, lines, message) in [
        (
            "copy t from stdin (format csv, header match)",
            &b"a,b,d\n1,2,3\n"[..],
            "column name mismatch in header line field 3: got \"d\", expected \"c\"",
        ),
        (
            "copy t (c, a) from stdin (header match)",
            b"c\ta\tb\n",
            "wrong number of fields in header line: got 3, expected 2",
        ),
        (
            "copy t from stdin (format csv, header match)",
            b"",
            "wrong number of fields in header line: got 1, expected 3",
        ),
    ] {
        client.send(&[query(text), data(lines), done()].concat());
        let all = client.answers();
        let error = all.iter().find(|told| told.kind == 'E').unwrap();
        assert_eq!(error.part(b'C'), "22P04");
        assert!(error.part(b'M').contains(message), "{}", error.part(b'M'));
    }
    let named = "copy t (c, a) from stdin (header match)";
    client.send(&[query(named), data(b"c\ta\nx\t7\n"), done()].concat());
    assert_eq!(client.answers()[1].text(), "COPY 1");
    assert_eq!(client.value("select c from t where a = 7"), "x");
}

#[test]
fn what_statements_return_goes_out() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create table t (a int primary key, b text)");
    let out = |client: &mut crate::client::Client, text: &str| {
        let all = client.ask(text);
        let data = all.iter().filter(|told| told.kind == 'd');
        let data = data.flat_map(|told| told.body.clone()).collect::<Vec<u8>>();
        let end = all.iter().find(|told| told.kind == 'C').unwrap();
        (String::from_utf8(data).unwrap(), end.text())
    };
    for (text, rows, tag) in [
        (
            "copy (insert into t values (1, 'x'), (2, null) returning a, b) to stdout",
            "1\tx\n2\t\\N\n",
            "COPY 2",
        ),
        (
            "copy (update t set a = a + 10 where b = 'x' returning a) to stdout (format csv, header)",
            "a\n11\n",
            "COPY 1",
        ),
        (
            "copy (with x as (insert into t values (5, 'y') returning a) select a * 2 as d from x) to stdout csv",
            "10\n",
            "COPY 1",
        ),
        (
            "copy (with x as (select 6 as n) insert into t select n from x returning *) to stdout",
            "6\t\\N\n",
            "COPY 1",
        ),
        (
            "copy (delete from t where a > 4 and a < 7 returning b is null) to stdout csv force quote *",
            "\"f\"\n\"t\"\n",
            "COPY 2",
        ),
    ] {
        let (found, end) = out(&mut client, text);
        assert_eq!((found.as_str(), end.as_str()), (rows, tag), "{text}");
    }
    assert_eq!(
        client.value("select string_agg(a::text, ' ' order by a) from t"),
        "2 11"
    );
    for text in [
        "copy (insert into t values (7, 'x')) to stdout",
        "copy (update t set a = 1) to stdout",
        "copy (delete from t) to stdout",
        "copy (with x as (select 1) delete from t) to stdout",
        "copy (select 1 into u) to stdout",
    ] {
        assert_eq!(client.code(text), "0A000", "{text}");
    }
    let unknown =
        "copy (insert into t values (7, 'x') returning a) to stdout (format csv, force_quote (z))";
    assert_eq!(client.code(unknown), "42703");
    assert_eq!(client.value("select count(*) from t"), "2");
}
