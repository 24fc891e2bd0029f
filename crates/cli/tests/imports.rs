//! `atoll import`: formats, inference, keys, and what it refuses.

mod atoll;

use atoll::{Folder, json};

fn csv(folder: &Folder, query: &str) -> String {
    folder
        .run(&["sql", "s.atoll", query, "--format", "csv"])
        .succeeded()
}

#[test]
fn csv_types_are_inferred() {
    let folder = Folder::new();
    folder.write(
        "a.csv",
        "id,name,day,x\n1,\"a\nb\",2024-01-02,1.5\n2,,2024-01-03,\n",
    );
    let report = json(
        &folder
            .run(&[
                "import",
                "s.atoll",
                "t",
                "a.csv",
                "--primary-key",
                "id",
                "--json",
            ])
            .succeeded(),
    );
    assert_eq!(
        (&report["rows"], &report["table"]),
        (&2.into(), &"t".into())
    );
    assert_eq!(
        csv(
            &folder,
            "select id + 1, name, extract(day from day), x * 2 from t order by id"
        )
        .lines()
        .skip(1)
        .collect::<Vec<_>>(),
        ["2,\"a", "b\",2,3.0", "3,,3,"]
    );
    // It exists now.
    folder
        .run(&["import", "s.atoll", "t", "a.csv"])
        .failed(1, &["\"t\"", "--append", "--replace"]);
    // Its key holds.
    folder
        .run(&["import", "s.atoll", "t", "a.csv", "--append"])
        .failed(1, &["\"t_pkey\"", "(id)=(1)"]);
    folder.write(
        "b.csv",
        "id,name,day,x\n3,c,2024-01-02,1.5\n4,,2024-01-03,\n",
    );
    folder
        .run(&["import", "s.atoll", "t", "b.csv", "--append"])
        .succeeded();
    assert_eq!(csv(&folder, "select count(*) as n from t"), "n\n4\n");
    let declared = ["import", "s.atoll", "u", "a.csv", "--primary-key", "id"];
    let declared = [&declared[..], &["--declare-keys"]].concat();
    folder.run(&declared).succeeded();
    let again = ["import", "s.atoll", "u", "a.csv", "--append"];
    folder.run(&again).succeeded();
    assert_eq!(csv(&folder, "select count(*) as n from u"), "n\n4\n");
    folder
        .run(&["import", "s.atoll", "t", "a.csv", "--replace"])
        .succeeded();
    assert_eq!(csv(&folder, "select count(*) as n from t"), "n\n2\n");
}

#[test]
fn several_files_keep_their_order() {
    let folder = Folder::new();
    let part = |from: usize| {
        (from..from + 100_000)
            .map(|n| format!("{n},x{}\n", n % 7))
            .collect::<String>()
    };
    folder.write("a.csv", format!("n,s\n{}", part(0)));
    folder.write(
        "b.csv",
        format!(
            "s,n\n{}",
            part(100_000)
                .lines()
                .map(|line| {
                    let (n, s) = line.split_once(',').unwrap();
                    format!("{s},{n}\n")
                })
                .collect::<String>()
        ),
    );
    folder
        .run(&["import", "s.atoll", "t", "a.csv", "b.csv"])
        .succeeded();
    assert_eq!(
        csv(
            &folder,
            "select count(*) as c, sum(n) as s, min(s) as m from t"
        ),
        "c,s,m\n200000,19999900000,x0\n"
    );
    // One thread scans blocks in their order.
    let one = folder
        .run(&[
            "sql",
            "s.atoll",
            "select n from t",
            "--format",
            "csv",
            "--threads",
            "1",
        ])
        .succeeded();
    assert!(
        one.lines()
            .skip(1)
            .map(|n| n.parse::<u32>().unwrap())
            .eq(0..200_000)
    );
}

#[test]
fn tbl_files_of_tpch_have_known_columns_and_keys() {
    let folder = Folder::new();
    folder.write(
        "region.tbl",
        "0|AFRICA|lar deposits|\n1|AMERICA|hs \"use ironic|\n",
    );
    folder.write("nation.tbl", "0|ALGERIA|0| haggle|\n");
    folder
        .run(&["import", "s.atoll", "region", "region.tbl"])
        .succeeded();
    folder
        .run(&["import", "s.atoll", "nation", "nation.tbl"])
        .succeeded();
    let joined = csv(
        &folder,
        "select r_name, n_name from region, nation where r_regionkey = n_regionkey",
    );
    assert_eq!(joined, "r_name,n_name\nAFRICA,ALGERIA\n");
    assert!(
        csv(
            &folder,
            "select r_comment from region where r_regionkey = 1"
        )
        .contains("\"\"use ironic")
    );
}

#[test]
fn schemas_and_keys_can_be_declared() {
    let folder = Folder::new();
    folder.write("p.csv", "1,x\n2,y\n");
    folder.write("c.csv", "10;1;1.25\n11;2;NIL\n");
    folder.write(
        "schema.sql",
        "create table p (id bigint primary key, name varchar not null);",
    );
    folder
        .run(&[
            "import",
            "s.atoll",
            "p",
            "p.csv",
            "--schema",
            "schema.sql",
            "--header",
            "no",
        ])
        .succeeded();
    let declared = [
        "import",
        "s.atoll",
        "c",
        "c.csv",
        "--schema",
        "id int, parent bigint, price decimal(9,2)",
        "--delimiter",
        ";",
        "--null",
        "NIL",
        "--primary-key",
        "id",
        "--foreign-key",
        "parent=p(id)",
    ];
    folder.run(&declared).succeeded();
    assert_eq!(
        csv(
            &folder,
            "select sum(price) as s, count(*) as n from c, p where parent = p.id"
        ),
        "s,n\n1.25,2\n"
    );
    let unknown = ["import", "s.atoll", "d", "p.csv", "--primary-key", "nope"];
    folder.run(&unknown).failed(1, &["\"nope\"", "column_1"]);
    folder
        .run(&["import", "s.atoll", "d", "p.csv", "--schema", "a notatype"])
        .failed(1, &[]);
}

#[test]
fn wrong_lines_are_named() {
    let folder = Folder::new();
    let good: String = (0..200_000)
        .map(|n| format!("{n},\"text\nover lines\",{n}\n"))
        .collect();
    let line = 2 + 2 * 200_000;
    for (wrong, parts) in [
        ("1,2\n", ["too few fields", "2 instead of 3"]),
        ("1,2,3,4\n", ["too many fields", "4 instead of 3"]),
        ("1,2,three\n", ["three", "--schema"]),
    ] {
        folder.write("a.csv", format!("a,b,c\n{good}{wrong}5,x,6\n"));
        let run = folder.run(&["import", "new.atoll", "t", "a.csv"]);
        run.failed(1, &[&format!("a.csv:{line}: "), parts[0], parts[1]]);
        assert!(
            !folder.path("new.atoll").exists(),
            "a failed import leaves no store"
        );
    }
    folder.write("a.tbl", "1|x|\n2|\n");
    folder
        .run(&["import", "s.atoll", "t", "a.tbl"])
        .failed(1, &["a.tbl:2: ", "too few fields", "1 instead of 2"]);
    folder.write("n.csv", "1,x\n,y\n");
    let not_null = [
        "import",
        "s.atoll",
        "t",
        "n.csv",
        "--schema",
        "a int not null, b text",
    ];
    folder.run(&not_null).failed(1, &["n.csv:2: ", "\"a\""]);
}

#[test]
fn unreadable_files_are_refused() {
    let folder = Folder::new();
    folder.write("text.parquet", "this is not Parquet at all");
    folder
        .run(&["import", "s.atoll", "t", "text.parquet"])
        .failed(1, &["text.parquet", "Parquet"]);
    folder
        .run(&[
            "sql",
            "s.atoll",
            "--create",
            "copy (select 1 as a) to 'good.parquet'",
        ])
        .succeeded();
    let good = std::fs::read(folder.path("good.parquet")).unwrap();
    for cut in [4, good.len() / 2, good.len() - 1] {
        folder.write("cut.parquet", &good[..cut]);
        folder
            .run(&["import", "s.atoll", "t", "cut.parquet"])
            .failed(1, &["cut.parquet"]);
    }
    folder.write("text.arrow", "neither a stream nor a file");
    folder
        .run(&["import", "s.atoll", "t", "text.arrow"])
        .failed(1, &["text.arrow", "Arrow"]);
    folder
        .run(&["import", "s.atoll", "t", "missing.csv"])
        .failed(1, &["missing.csv", "check the path"]);
    folder
        .run(&["import", "s.atoll", "t", "."])
        .failed(1, &["directory"]);
    folder.write("a.csv.gz", "");
    folder
        .run(&["import", "s.atoll", "t", "a.csv.gz"])
        .failed(1, &["decompress"]);
    folder.write("a.csv.xz", b"\xfd7zXZ\x00");
    folder
        .run(&["import", "s.atoll", "t", "a.csv.xz"])
        .failed(1, &["xz", "decompress"]);
    folder.write("a.csv.bz2", "BZh91AY&SY");
    folder
        .run(&["import", "s.atoll", "t", "a.csv.bz2"])
        .failed(1, &["a.csv.bz2", "damaged or cut off"]);
    folder.write("empty.csv", "");
    folder
        .run(&["import", "s.atoll", "t", "empty.csv"])
        .failed(1, &["empty", "--schema"]);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn standard_input_and_pipes_are_read() {
    let folder = Folder::new();
    let text: String = (0..300_000).map(|n| format!("{n},x{}\n", n % 7)).collect();
    let text = format!("n,s\n{text}");
    let wanted = "c,t\n300000,44999850000\n";
    let query = "select count(*) as c, sum(n) as t from t";
    for (name, input) in [
        ("-", text.clone().into_bytes()),
        ("/dev/stdin", gzip(text.as_bytes())),
    ] {
        let import = ["import", "s.atoll", "t", name, "--replace"];
        folder.piped(&import, &input).succeeded();
        assert_eq!(csv(&folder, query), wanted, "{name}");
    }
    let pipe = folder.path("pipe");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let writer = std::thread::spawn(move || std::fs::write(pipe, text));
    folder
        .run(&["import", "s.atoll", "t", "pipe", "--replace"])
        .succeeded();
    writer.join().unwrap().unwrap();
    assert_eq!(csv(&folder, query), wanted);
    // Nothing is no table.
    let run = folder.piped(&["import", "new.atoll", "t", "-"], b"");
    run.failed(1, &["standard input", "empty"]);
    assert!(!folder.path("new.atoll").exists());
}

#[test]
fn json_compressed_files_patterns_and_partitions() {
    let folder = Folder::new();
    folder.write("a.jsonl", "{\"n\":1,\"s\":\"x\"}\n{\"n\":2}\n");
    folder
        .run(&["import", "s.atoll", "j", "a.jsonl"])
        .succeeded();
    assert_eq!(
        csv(&folder, "select n, s from j order by n"),
        "n,s\n1,x\n2,\n"
    );
    // Without a name that tells, by what it holds.
    folder.write("lines", "[{\"n\":3}]");
    folder.run(&["import", "s.atoll", "l", "lines"]).succeeded();
    assert_eq!(csv(&folder, "select n from l"), "n\n3\n");
    folder.write("m/1.csv", "n,s\n1,a\n");
    folder.write("m/2.csv.gz", gzip(b"n,s\n2,b\n"));
    folder.write("m/3.json", "{\"s\":\"c\",\"n\":3}");
    folder.run(&["import", "s.atoll", "m", "m/*"]).succeeded();
    assert_eq!(
        csv(&folder, "select n, s from m order by n"),
        "n,s\n1,a\n2,b\n3,c\n"
    );
    folder.write("h/y=2023/a.csv", "n\n1\n");
    folder.write("h/y=2024/a.csv", "n\n2\n");
    folder.run(&["import", "s.atoll", "h", "h"]).succeeded();
    assert_eq!(
        csv(&folder, "select n, y from h order by n"),
        "n,y\n1,2023\n2,2024\n"
    );
    folder.write("q.txt", "id|'a|b'|NA\n");
    let options = [
        "--delimiter",
        "|",
        "--quote",
        "'",
        "--header",
        "no",
        "--null",
        "NA",
        "--null",
        "-",
    ];
    folder
        .run(&[&["import", "s.atoll", "q", "q.txt"], &options[..]].concat())
        .succeeded();
    assert_eq!(
        csv(&folder, "select * from q"),
        "column_1,column_2,column_3\nid,a|b,\n"
    );
}

#[test]
fn what_an_import_reads_a_query_reads() {
    let folder = Folder::new();
    for (name, text) in [
        ("a.csv", "id,name,name\n1,01234,x\n2,99999,y\n"),
        ("b.csv", ",a;b\n0,1\n"),
        ("c.csv", "1,2.5,2024-01-02\n3,4,2024-01-03\n"),
        ("d.csv", "k;v\n1;2,5\n"),
        ("e.json", "{\"a\":1,\"b\":[1]}"),
        ("g.json", "{\"a\":1,\"b\":{\"c\":1}}"),
        (
            "h.json",
            "{\"a\":[{\"c\":1,\"d\":[true]},{\"c\":2}],\"b\":{\"e\":{\"f\":\"x y\"},\"n\":null}}\n{\"a\":[],\"b\":null}",
        ),
        ("f.tsv", "t\tu\n2024-01-02 03:04:05\t9223372036854775808\n"),
    ] {
        folder.write(name, text);
        let imported = folder.run(&["import", "s.atoll", "t", name, "--replace"]);
        imported.succeeded();
        let from = |source: &str| csv(&folder, &format!("select * from {source}"));
        assert_eq!(from("t"), from(&format!("'./{name}'")), "{name}");
        let types = |source: &str| {
            folder
                .run(&[
                    "sql",
                    "s.atoll",
                    &format!("create or replace table d as select * from {source}"),
                ])
                .succeeded();
            csv(
                &folder,
                "select column_name, data_type from information_schema.columns where table_name = 'd'",
            )
        };
        assert_eq!(types("t"), types(&format!("'./{name}'")), "{name}");
    }
}

#[test]
fn broken_files_leave_nothing() {
    let folder = Folder::new();
    for (name, text, told) in [
        ("a.csv", &b"a,b\n1,\"x\n2,y\n"[..], "a.csv:2: a quote"),
        (
            "b.csv",
            b"a,b\n1,caf\xe9\n",
            "b.csv:2: byte 0xe9 is not UTF-8",
        ),
        (
            "c.csv",
            b"{\"a\":1}\n",
            "c.csv: has the name of a text file",
        ),
        ("d.json", b"{\"a\":1}\n{\n", "d.json:2: "),
    ] {
        folder.write(name, text);
        folder
            .run(&["import", "new.atoll", "t", name])
            .failed(1, &[told]);
        assert!(!folder.path("new.atoll").exists(), "{name}");
        folder
            .run(&["sql", "s.atoll", "--create", "select 1"])
            .succeeded();
        folder
            .run(&["import", "s.atoll", "t", name])
            .failed(1, &[told]);
        let tables = csv(
            &folder,
            "select count(*) as n from information_schema.tables where table_name = 't'",
        );
        assert_eq!(tables, "n\n0\n");
    }
}

/// An NPY file of 2 x 3 bytes.
fn npy() -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00\x46\x00".to_vec();
    bytes.extend(b"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }");
    bytes.resize(80, b' ');
    bytes.extend(1..=6);
    bytes
}

#[test]
fn netcdf_is_asked_by_its_coordinates_and_has_its_nulls() {
    let folder = Folder::new();
    let weather = format!(
        "{}/../arrayfile/tests/data/hdf/weather1.nc",
        env!("CARGO_MANIFEST_DIR")
    );
    let import = ["import", "s.atoll", "weather", &weather, "--member", "t2m"];
    folder.run(&import).succeeded();
    assert_eq!(
        csv(
            &folder,
            "select count(*), count(t2m), max(t2m) from weather where lat = 49.75 and time > 10"
        ),
        "count,count,max\n5,4,249.5\n"
    );
}

#[test]
fn what_a_file_is_decides_between_a_table_and_an_array() {
    let folder = Folder::new();
    folder.write("depths.npy", npy());
    folder.write("plain.txt", npy());
    folder.write("t.csv", "a\n1\n");
    let import = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        folder.run(&[&["import", "s.atoll"], &words[..]].concat())
    };
    let made = json(&import("depths depths.npy --chunk 1x3 --dims lat,lon --json").succeeded());
    assert_eq!(
        (&made["array"], &made["chunks"]),
        (&"depths".into(), &2.into())
    );
    import("again plain.txt --attribute m").succeeded();
    import("t t.csv").succeeded();
    assert_eq!(
        csv(&folder, "select sum(value), max(lon) from depths"),
        "sum,max\n21,2\n"
    );
    for (words, parts) in [
        ("depths depths.npy", ["array 'depths' exists", "depths"]),
        (
            "x depths.npy --append",
            ["--append is for tables", "depths.npy makes an array"],
        ),
        (
            "x depths.npy --primary-key a",
            ["--primary-key is for tables", "makes an array"],
        ),
        (
            "x t.csv --chunk 1x3",
            ["--chunk is for arrays", "t.csv makes a table"],
        ),
        (
            "x t.csv depths.npy",
            ["depths.npy holds an array", "import it by itself"],
        ),
        ("x absent.npy", ["absent.npy", "absent.npy"]),
        // Names are those of one thing.
        ("t depths.npy", ["'t' is a table", "choose another name"]),
        (
            "depths t.csv",
            ["'depths' is an array", "choose another name"],
        ),
    ] {
        import(words).failed(1, &parts);
    }
    folder.write("empty.npy", "");
    import("x empty.npy").failed(1, &["empty.npy", "NPY, NPZ"]);
    import("x t.csv --chunk 1y3").failed_usage(&["250x250x500"]);
    import("depths depths.npy --replace").succeeded();

    let export = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        folder.run(&[&["export", "s.atoll"], &words[..]].concat())
    };
    export("depths out.npy").succeeded();
    let written = std::fs::read(folder.path("out.npy")).unwrap();
    assert!(written.ends_with(&[1, 2, 3, 4, 5, 6]));
    export("t out.csv").failed(1, &["no array 't'", "copy t to"]);
    export("depths out.npy").failed(1, &["out.npy"]);
}
