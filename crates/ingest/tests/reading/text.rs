//! CSV, TPC-H's text, JSON.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, TimeUnit};
use ingest::{Dataset, Format, NullRule, Options, Request, Wanted};

use super::{Folder, gzip, rows};

#[test]
#[expect(clippy::too_many_lines, reason = "a table of files and what they hold")]
fn text_files_as_users_have_them() {
    let folder = Folder::new();
    for (text, columns, wanted) in [
        (
            "a,b\n1,x\n2,y\n",
            "a Int64, b Utf8View",
            &["1|x", "2|y"][..],
        ),
        (
            "\u{feff}a,b\r\n1,x\r\n2,y\r\n",
            "a Int64, b Utf8View",
            &["1|x", "2|y"],
        ),
        (
            "\u{feff}\"a\",b\r1,x\r2,y",
            "a Int64, b Utf8View",
            &["1|x", "2|y"],
        ),
        (
            "a,b\n1,\"x\ny\"\n2,\"he said \"\"no\"\"\"\n",
            "a Int64, b Utf8View",
            &["1|x\ny", "2|he said \"no\""],
        ),
        (
            "a;b\n1,5;x\n2,5;y\n",
            "a Utf8View, b Utf8View",
            &["1,5|x", "2,5|y"],
        ),
        (
            "a\tb\n1\t\n\t2\n",
            "a Int64, b Int64",
            &["1|NULL", "NULL|2"],
        ),
        // Numbers that would not be what they were.
        (
            "zip,n\n01234,1\n99999,2\n",
            "zip Utf8View, n Int64",
            &["01234|1", "99999|2"],
        ),
        ("tel\n+4930\n", "tel Utf8View", &["+4930"]),
        (
            "n\n9223372036854775808\n1\n",
            "n Decimal128(38, 0)",
            &["9223372036854775808", "1"],
        ),
        // Names that are repeated or missing.
        (
            "id,name,name\n1,a,b\n",
            "id Int64, name Utf8View, name_1 Utf8View",
            &["1|a|b"],
        ),
        (
            ",a,A,\n0,1,2,\n",
            "column_1 Int64, a Int64, A_1 Int64, column_4 Utf8View",
            &["0|1|2|NULL"],
        ),
        // A header alone, no header, one column, blank lines.
        ("a,b\n", "a Utf8View, b Utf8View", &[]),
        (
            "1,2\n3,4\n",
            "column_1 Int64, column_2 Int64",
            &["1|2", "3|4"],
        ),
        ("n\n\n1\n\n\n2\n\n", "n Int64", &["1", "2"]),
        (
            "t\n2024-01-02 03:04:05\n9999-12-31\n",
            "t Timestamp(µs)",
            &["2024-01-02T03:04:05", "9999-12-31T00:00:00"],
        ),
        ("x\nnan\n-inf\n1.5\n", "x Float64", &["NaN", "-inf", "1.5"]),
        // Within quotes is a text, even an empty one; other types have no such value.
        (
            "s,n\n,1\n\"\",\"\"\nx,\"3\"\n",
            "s Utf8View, n Int64",
            &["NULL|1", "|NULL", "x|3"],
        ),
        // An offset makes an instant.
        (
            "t\n2024-03-10T12:00:00Z\n2024-03-10 12:00:00.5+02:00\n",
            "t Timestamp(µs, \"+00:00\")",
            &["2024-03-10T12:00:00Z", "2024-03-10T10:00:00.500Z"],
        ),
        (
            "t\n2024-03-10T12:00:00Z\n2024-03-10 12:00:00\n",
            "t Utf8View",
            &["2024-03-10T12:00:00Z", "2024-03-10 12:00:00"],
        ),
        // No double has all digits of the first.
        (
            "x\n9007199254740993\n1.5\n",
            "x Utf8View",
            &["9007199254740993", "1.5"],
        ),
        (
            "x,y\ntrue,t\nFALSE,f\n",
            "x Boolean, y Utf8View",
            &["true|t", "false|f"],
        ),
    ] {
        folder.write("a.csv", text);
        let (found, rows) = folder
            .read("a.csv", &Options::default())
            .unwrap_or_else(|e| panic!("{text:?}: {e}"));
        assert_eq!(
            (found.as_str(), rows),
            (
                columns,
                wanted.iter().map(|row| (*row).to_owned()).collect()
            ),
            "{text:?}"
        );
    }
}

#[test]
fn options_of_text_files() {
    let folder = Folder::new();
    folder.write(
        "a.csv",
        "id;'the name';v\n1;'a;''b';NA\n2;NA;-\n3;\"c\";7\n",
    );
    let options = Options {
        delimiter: Some(b';'),
        quote: Some(Some(b'\'')),
        header: Some(true),
        nulls: vec!["NA".into(), "-".into()],
        types: vec![("ID".into(), DataType::Decimal128(5, 1))],
        ..Options::default()
    };
    let (columns, rows) = folder.read("a.csv", &options).unwrap();
    assert_eq!(columns, "id Decimal128(5, 1), the name Utf8View, v Int64");
    assert_eq!(rows, ["1.0|a;'b|NULL", "2.0|NULL|NULL", "3.0|\"c\"|7"]);
    let wrong = Options {
        types: vec![("nope".into(), DataType::Int64)],
        ..Options::default()
    };
    assert!(
        folder
            .read("a.csv", &wrong)
            .unwrap_err()
            .contains("\"nope\"")
    );

    folder.write("b.csv", "1,\"a\\\"b\"\n2,\"\\\\\"\n");
    let escaped = Options {
        escape: Some(b'\\'),
        names: vec!["x".into()],
        ..Options::default()
    };
    let (columns, rows) = folder.read("b.csv", &escaped).unwrap();
    assert_eq!(
        (columns.as_str(), rows),
        (
            "x Int64, column_2 Utf8View",
            vec!["1|a\"b".into(), "2|\\".into()]
        )
    );
    folder.write("c.csv", "a,b\n\"1,2\n");
    let bare = Options {
        quote: Some(None),
        all_text: true,
        ..Options::default()
    };
    assert_eq!(folder.read("c.csv", &bare).unwrap().1, ["\"1|2"]);
    // An empty field of text is text where NULL is written otherwise; of a number it is always NULL.
    folder.write("d.csv", "s,n\n,\nx,1\nNIL,NIL\n");
    let nil = Options {
        nulls: vec!["NIL".into()],
        ..Options::default()
    };
    assert_eq!(
        folder.read("d.csv", &nil).unwrap().1,
        ["|NULL", "x|1", "NULL|NULL"]
    );
}

#[test]
#[expect(
    clippy::too_many_lines,
    reason = "a table of files and what is told of them"
)]
fn what_is_wrong_is_told_with_its_line() {
    let folder = Folder::new();
    let long: String = (0..120_000).map(|n| format!("{n},x\n")).collect();
    for (text, told) in [
        (
            b"a,b\n1,\"x\n2,y\n".to_vec(),
            "a.csv:2: a quote that opens here is never closed",
        ),
        (
            b"a,b\n1,x\n2,\"y\"z\n".to_vec(),
            "a.csv:3: text follows a closing quote; the field began with a quote on line 3",
        ),
        // The quote that is missing makes another one close the field.
        (
            b"a,b\n1,\"x\n2,y\n3,\"z\"\n".to_vec(),
            "a.csv:4: text follows a closing quote; the field began with a quote on line 2",
        ),
        (
            b"a,b\n1,2\n\n3\n".to_vec(),
            "a.csv:4: too few fields: 1 instead of 2",
        ),
        (
            b"a,b\n1,2\n3,4,5\n".to_vec(),
            "a.csv:3: too many fields: 3 instead of 2",
        ),
        (
            b"a,b\n1,x\n2,caf\xe9\n".to_vec(),
            "a.csv:3: byte 0xe9 is not UTF-8",
        ),
        (b"\xff\xfea\x00".to_vec(), "a.csv: is UTF-16"),
        (b"a,b\n1,\x00\n".to_vec(), "a.csv: holds zero bytes"),
        (Vec::new(), "a.csv: is empty"),
        (
            format!("n,s\n{long}x,y\n").into_bytes(),
            "a.csv:120002: \"x\" in column \"n\" is no bigint",
        ),
        (
            format!("n,s\n1.5,x\n{long}9007199254740993,y\n").into_bytes(),
            "a.csv:120003: \"9007199254740993\" in column \"n\" would lose digits",
        ),
        (
            format!(
                "t,s\n{}2024-01-01 00:00:00+01,y\n",
                "2024-01-01 00:00:00,x\n".repeat(120_000)
            )
            .into_bytes(),
            "a.csv:120002: \"2024-01-01 00:00:00+01\" in column \"t\" is no timestamp",
        ),
        (
            format!("n,s\n{long}007,y\n").into_bytes(),
            "a.csv:120002: \"007\" in column \"n\" would lose its zeros",
        ),
        (
            format!("n,s\n{long}9223372036854775808,y\n").into_bytes(),
            "a.csv:120002: \"9223372036854775808\"",
        ),
        (
            format!("n,s\n{long}1,caf\u{e9}\n")
                .replace("\u{e9}", "\u{1}")
                .into_bytes()
                .into_iter()
                .map(|b| if b == 1 { 0xe9 } else { b })
                .collect(),
            "a.csv:120002: byte 0xe9",
        ),
        (
            b"{\"a\":1}\n{\"a\":2}\n".to_vec(),
            "a.csv: has the name of a text file but is Json",
        ),
        (
            b"PK\x03\x04 and so on".to_vec(),
            "a.csv: is compressed with zip",
        ),
    ] {
        folder.write("a.csv", &text);
        let error = folder.read("a.csv", &Options::default()).unwrap_err();
        assert!(error.starts_with(told), "{error}\n instead of {told}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn what_cannot_be_opened_is_told() {
    let folder = Folder::new();
    assert!(
        folder
            .read("missing.csv", &Options::default())
            .unwrap_err()
            .contains("no such file")
    );
    assert!(
        folder
            .read("", &Options::default())
            .unwrap_err()
            .contains("is a directory")
    );
    assert!(
        folder
            .read("*.nothing", &Options::default())
            .unwrap_err()
            .contains("no file matches")
    );
    folder.write("a.csv.gz", "a,b\n");
    assert!(
        folder
            .read("a.csv.gz", &Options::default())
            .unwrap_err()
            .contains("not compressed as its name says")
    );
    let whole = gzip(b"a,b\n1,2\n");
    folder.write("a.csv.gz", &whole[..whole.len() - 9]);
    assert!(
        folder
            .read("a.csv.gz", &Options::default())
            .unwrap_err()
            .contains("a.csv.gz: cannot be read")
    );
}

#[test]
fn declared_types_are_read_exactly() {
    let folder = Folder::new();
    let options = |types: &[(&str, DataType)]| Options {
        types: types
            .iter()
            .map(|(name, data_type)| ((*name).to_owned(), data_type.clone()))
            .collect(),
        ..Options::default()
    };
    let types = options(&[
        ("d", DataType::Decimal128(30, 2)),
        ("b", DataType::BinaryView),
        ("t", DataType::Timestamp(TimeUnit::Microsecond, None)),
        ("n", DataType::Int64),
    ]);
    let wanted = [
        "12345678901234567890.13|00ff|2024-03-10T12:00:00|9007199254740993",
        "-1.01|6162|2024-03-10T12:00:00|5",
    ];
    folder.write(
        "a.csv",
        "d,b,t,n\n12345678901234567890.125,\\x00ff,2024-03-10 12:00:00+02,9007199254740993\n-1.005,ab,2024-03-10 12:00:00,5\n",
    );
    assert_eq!(folder.read("a.csv", &types).unwrap().1, wanted);
    folder.write(
        "a.json",
        "{\"d\":12345678901234567890.125,\"b\":\"\\\\x00ff\",\"t\":\"2024-03-10 12:00:00+02\",\"n\":9007199254740993}\n{\"d\":-1.005,\"b\":\"ab\",\"t\":\"2024-03-10 12:00:00\",\"n\":5.0}\n",
    );
    assert_eq!(folder.read("a.json", &types).unwrap().1, wanted);
    // Dates in a form that is given, and an empty line of a single column.
    let dates = Options {
        dates: Some("dd.mm.yyyy".parse().unwrap()),
        empty_lines: true,
        ..Options::default()
    };
    folder.write("d.csv", "d\n05.03.2024\n\n31.12.1999\n");
    let (columns, rows) = folder.read("d.csv", &dates).unwrap();
    assert_eq!(columns, "d Date32");
    assert_eq!(rows, ["2024-03-05", "NULL", "1999-12-31"]);
    folder.write("d.csv", "d\n05.03.2024\n2024-03-05\n");
    assert_eq!(folder.read("d.csv", &dates).unwrap().0, "d Utf8View");
}

#[test]
fn numbers_of_json_are_read_exactly() {
    let folder = Folder::new();
    for (text, columns, wanted) in [
        (
            "{\"x\":9007199254740993}\n{\"x\":9223372036854775808}\n{\"x\":18446744073709551617}\n",
            "x Decimal128(38, 0)",
            &[
                "9007199254740993",
                "9223372036854775808",
                "18446744073709551617",
            ][..],
        ),
        (
            "{\"x\":2942420318599003496251392942420318599003496251392}",
            "x Utf8View",
            &["2942420318599003496251392942420318599003496251392"],
        ),
        (
            "{\"x\":9007199254740993}\n{\"x\":1.5}",
            "x Utf8View",
            &["9007199254740993", "1.5"],
        ),
        (
            "{\"x\":1E5}\n{\"x\":-0}",
            "x Float64",
            &["100000.0", "-0.0"],
        ),
    ] {
        folder.write("a.json", text);
        let (found, rows) = folder.read("a.json", &Options::default()).unwrap();
        assert_eq!(
            (
                found.as_str(),
                rows.iter().map(String::as_str).collect::<Vec<_>>()
            ),
            (columns, wanted.to_vec())
        );
    }
    folder.write("a.json", "{\"x\":[1,null]}\n{\"x\":[]}");
    let lists = folder.read("a.json", &Options::default()).unwrap().1;
    assert_eq!(lists, ["[1, NULL]", "[]"]);
    let late = |first: &str, last: &str| {
        let many = format!("{{\"x\":{first}}}\n").repeat(100_000);
        folder.write("a.json", format!("{many}{{\"x\":{last}}}\n"));
        folder.read("a.json", &Options::default()).unwrap_err()
    };
    for (first, last, told) in [
        ("1", "1.5", "\"1.5\" is no bigint"),
        (
            "1.5",
            "9007199254740993",
            "\"9007199254740993\" is no number",
        ),
        ("1.5", "1e400", "\"1e400\" is no number"),
        ("[1]", "[1.5]", "\"1.5\" is no bigint"),
    ] {
        let error = late(first, last);
        assert!(
            error.contains("a.json:100001: ") && error.contains(told),
            "{error}"
        );
    }
}

#[test]
fn json_that_is_none_is_refused_wherever_it_stands() {
    let folder = Folder::new();
    let many: String = (0..100_000).map(|n| format!("{{\"n\":{n}}},\n")).collect();
    for (text, line) in [
        ("[{\"a\":1},]", 1),
        ("[{\"a\":1},,{\"a\":2}]", 1),
        ("[,{\"a\":1}]", 1),
        ("[{\"a\":1} {\"a\":2}]", 1),
        ("{\"a\":1,}", 1),
        ("{\"a\":[1,]}", 1),
        ("{\"a\":1}\n{\"a\":1 \"b\":2}", 2),
        (&format!("[{many}{{\"n\":1,}}]"), 100_001),
        (&format!("[{many}{{\"n\":1}},\n]"), 100_002),
        ("{\"a\":1e400}", 1),
        ("{\"a\":NaN}", 1),
    ] {
        folder.write("a.json", text);
        let error = folder.read("a.json", &Options::default()).unwrap_err();
        assert!(error.starts_with(&format!("a.json:{line}: ")), "{error}");
    }
}

#[test]
fn json_of_several_kinds_stays_json() {
    let folder = Folder::new();
    folder.write(
        "a.json",
        "{\"a\":1,\"b\":5}\n{\"a\":{\"c\": [1, \"x\\n\"]},\"b\":6}\n{\"a\":\"t\",\"b\":7}\n{\"a\":null,\"b\":8}\n",
    );
    let (columns, rows) = folder.read("a.json", &Options::default()).unwrap();
    assert!(
        columns.starts_with("a Struct(") && columns.ends_with(", b Int64"),
        "{columns}"
    );
    for (row, wanted) in rows
        .iter()
        .zip(["1}|5", "{\"c\": [1, \"x\\n\"]}}|6", "\"t\"}|7", "|8"])
    {
        assert!(row.ends_with(wanted), "{row}");
    }
}

#[test]
fn a_huge_field_is_one() {
    let folder = Folder::new();
    let huge = "a\n,\"\"".repeat(1 << 20);
    folder.write("a.csv", format!("id,s\n1,\"{huge}\"\n2,b\n"));
    let dataset = Arc::new(Dataset::open(&[folder.path("a.csv")], &Options::default()).unwrap());
    let rows = rows(&dataset, &Request::all(&dataset)).unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].len(), 2 + huge.len() - (1 << 20));
}

#[test]
fn declared_types_may_lose_what_inferred_ones_may_not() {
    let folder = Folder::new();
    folder.write("a.csv", "n\n007\n");
    let dataset = Arc::new(Dataset::open(&[folder.path("a.csv")], &Options::default()).unwrap());
    let as_number = |declared| Request {
        columns: vec![Wanted {
            column: 0,
            field: Arc::new(Field::new("n", DataType::Int32, true)),
            declared,
            nulls: NullRule::default(),
        }],
        ..Request::all(&dataset)
    };
    assert_eq!(rows(&dataset, &as_number(true)).unwrap(), ["7"]);
    assert!(rows(&dataset, &as_number(false)).is_err());
}

#[test]
fn json_in_lines_and_arrays() {
    let folder = Folder::new();
    let lines = "{\"a\":1,\"b\":\"x\"}\n{\"b\":\"y\\n\",\"a\":2.5}\n\n{\"b\":null}\n";
    let array = "[\n{\"a\":1,\"b\":\"x\"},{\"b\":\"y\\n\",\n\"a\":2.5},{\"b\":null}]";
    for name in ["a.json", "a.jsonl", "a.log"] {
        for text in [lines, array] {
            folder.write(name, text);
            let (columns, rows) = folder.read(name, &Options::default()).unwrap();
            assert_eq!(columns, "a Float64, b Utf8View");
            assert_eq!(rows, ["1.0|x", "2.5|y\n", "NULL|NULL"]);
        }
    }
    folder.write("n.json.gz", gzip(b"{\"n\":[1,2],\"o\":{\"p\":1}}"));
    assert_eq!(
        folder.read("n.json.gz", &Options::default()).unwrap().1,
        ["[1, 2]|{p: 1}"]
    );
    let many: String = (0..100_000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    for (text, told) in [
        ("{\"a\":1}\n{\"a\":}\n", "w.json:2: is no JSON"),
        (
            "{\"a\":1}\n{\"a\":1\n",
            "w.json:2: what begins here has no end",
        ),
        (
            "{\"a\":1}\n5\n",
            "w.json:2: \"5\" where an object should begin",
        ),
        (&format!("{many}{{\"n\":\"x\"}}\n"), "w.json:100001: "),
        (
            &format!("{many}{{\"m\":1}}\n"),
            "w.json:100001: column 'm' missing",
        ),
    ] {
        folder.write("w.json", text);
        let error = folder.read("w.json", &Options::default()).unwrap_err();
        assert!(error.starts_with(told), "{error}\n instead of {told}");
    }
}

#[test]
fn tbl_lines_end_with_a_delimiter() {
    let folder = Folder::new();
    folder.write("a.tbl", "0|AFRICA|\"lar deposits|\n1|AMERICA||\n");
    let (columns, rows) = folder.read("a.tbl", &Options::default()).unwrap();
    assert_eq!(
        columns,
        "column_1 Int64, column_2 Utf8View, column_3 Utf8View"
    );
    assert_eq!(rows, ["0|AFRICA|\"lar deposits", "1|AMERICA|NULL"]);
    let csv = Options {
        format: Some(Format::Csv),
        ..Options::default()
    };
    assert!(
        folder
            .read("a.tbl", &csv)
            .unwrap_err()
            .contains("never closed")
    );
}
