//! Parquet, Arrow, several files, pipes.

use std::path::Path;
use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::{DataType, Int32Type, Schema};
use ingest::{Dataset, Options, Request};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

use super::{Folder, all_rows, gzip, numbered, rows};

fn batch() -> RecordBatch {
    let words = ["one", "a text that is too long to be held inline", "one"];
    let coded: DictionaryArray<Int32Type> = words.iter().map(|word| Some(*word)).collect();
    let columns: [(&str, ArrayRef); 5] = [
        (
            "n",
            Arc::new(Int32Array::from(vec![Some(1), None, Some(3)])),
        ),
        (
            "s",
            Arc::new(StringArray::from(vec![Some("a"), None, Some("c")])),
        ),
        ("l", Arc::new(LargeStringArray::from(words.to_vec()))),
        ("v", Arc::new(StringViewArray::from(words.to_vec()))),
        ("d", Arc::new(coded)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn arrow_files_and_streams_with_texts_of_any_kind() {
    let folder = Folder::new();
    let batch = batch();
    let mut stream = arrow::ipc::writer::StreamWriter::try_new(vec![], &batch.schema()).unwrap();
    let mut file = arrow::ipc::writer::FileWriter::try_new(vec![], &batch.schema()).unwrap();
    for _ in 0..2 {
        stream.write(&batch).unwrap();
        file.write(&batch).unwrap();
    }
    let (stream, file) = (stream.into_inner().unwrap(), file.into_inner().unwrap());
    let long = "a text that is too long to be held inline";
    let three = [
        "1|a|one|one|one".to_owned(),
        format!("NULL|NULL|{long}|{long}|{long}"),
        "3|c|one|one|one".to_owned(),
    ];
    for (name, bytes) in [
        ("a.arrow", &file),
        ("b.arrow", &stream),
        ("c.feather", &file),
        ("d.arrows.gz", &gzip(&stream)),
        ("noname", &stream),
    ] {
        folder.write(name, bytes);
        let (columns, rows) = folder.read(name, &Options::default()).unwrap();
        assert_eq!(
            columns,
            "n Int32, s Utf8View, l Utf8View, v Utf8View, d Utf8View"
        );
        assert_eq!(rows, [three.clone(), three.clone()].concat());
    }
    for cut in [7, file.len() / 2, file.len() - 3] {
        folder.write("cut.arrow", &file[..cut]);
        assert!(
            folder.read("cut.arrow", &Options::default()).is_err(),
            "{cut}"
        );
    }
    for at in (0..file.len().min(2000)).step_by(13) {
        let mut bytes = file.clone();
        bytes[at] ^= 0x55;
        folder.write("flipped.arrow", bytes);
        let _ = folder.read("flipped.arrow", &Options::default());
    }
}
fn parquet(path: &Path, batch: &RecordBatch, group: usize) {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group))
        .build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn parquet_is_read_by_row_groups() {
    let folder = Folder::new();
    parquet(&folder.path("a.parquet"), &batch(), 2);
    let (columns, rows) = folder.read("a.parquet", &Options::default()).unwrap();
    assert_eq!(
        columns,
        "n Int32, s Utf8View, l Utf8View, v Utf8View, d Utf8View"
    );
    assert_eq!((rows.len(), rows[2].as_str()), (3, "3|c|one|one|one"));
    let dataset =
        Arc::new(Dataset::open(&[folder.path("a.parquet")], &Options::default()).unwrap());
    assert_eq!((dataset.groups(0), dataset.rows()), (2, Some(3)));
    let known = dataset.statistics(0, 0).unwrap();
    assert_eq!(known.mins.as_primitive::<Int32Type>().values(), &[1, 3]);
    assert_eq!(known.nulls, UInt64Array::from(vec![1, 0]));
    for ahead in [false, true] {
        let all = Request {
            ahead,
            ..Request::of(&dataset, [4, 0])
        };
        assert_eq!(all_rows(&dataset, &all).len(), 3);
        let second = Request {
            keep: Some(vec![vec![false, true]]),
            ..all.clone()
        };
        assert_eq!(all_rows(&dataset, &second), ["one|3"]);
        let shares = (0..2).flat_map(|reader| {
            all_rows(
                &dataset,
                &Request {
                    share: (reader, 2),
                    ..all.clone()
                },
            )
        });
        assert_eq!(shares.collect::<Vec<_>>(), all_rows(&dataset, &all));
    }
    // Only the rows are asked for.
    let none = Request::of(&dataset, []);
    assert_eq!(all_rows(&dataset, &none).len(), 3);
}
#[test]
fn parquet_tells_nothing_of_floats() {
    let folder = Folder::new();
    let values = Float64Array::from(vec![f64::NAN, f64::INFINITY]);
    let batch = RecordBatch::try_from_iter([("x", Arc::new(values) as ArrayRef)]).unwrap();
    parquet(&folder.path("a.parquet"), &batch, 10);
    let dataset = Dataset::open(&[folder.path("a.parquet")], &Options::default()).unwrap();
    assert!(dataset.statistics(0, 0).is_none());
}

#[test]
fn several_files_are_one() {
    let folder = Folder::new();
    folder.write("m/1.csv", "a,b\n1,x\n");
    folder.write("m/2.csv", "b,a\ny,2.5\n");
    folder.write("m/3.csv", "");
    let (columns, rows) = folder.read("m/*.csv", &Options::default()).unwrap();
    assert_eq!(
        (columns.as_str(), rows),
        (
            "a Float64, b Utf8View",
            vec!["1.0|x".into(), "2.5|y".into()]
        )
    );
    // Several formats, gzip, Zstandard; a column that some lack.
    folder.write("m/4.json", "{\"b\":\"z\",\"c\":true}");
    folder.write("m/5.csv.gz", gzip(b"a,b\n5,v\n"));
    folder.write(
        "m/6.csv.zst",
        zstd::encode_all(&b"a,b\n6,w\n"[..], 1).unwrap(),
    );
    let (columns, rows) = folder.read("m/*", &Options::default()).unwrap();
    assert_eq!(columns, "a Float64, b Utf8View, c Boolean");
    assert_eq!(
        rows,
        [
            "1.0|x|NULL",
            "2.5|y|NULL",
            "NULL|z|true",
            "5.0|v|NULL",
            "6.0|w|NULL"
        ]
    );
    folder.write("m/7.csv", "a,q\n1,2\n");
    assert!(
        folder
            .read("m/*.csv", &Options::default())
            .unwrap_err()
            .contains("7.csv: has a column \"q\"")
    );
    folder.write("m/7.csv", "a,b,c\n1,2,3\n");
    assert!(
        folder
            .read("m/*.csv", &Options::default())
            .unwrap_err()
            .contains("7.csv: has 3 columns")
    );
    // Texts and numbers of one column are texts.
    folder.write("t/1.csv", "a,b\n1,2\n");
    folder.write("t/2.csv", "a,b\nx,2\n");
    assert_eq!(
        folder.read("t/*.csv", &Options::default()).unwrap().0,
        "a Utf8View, b Int64"
    );
    assert_eq!(
        folder.read("t/[1].csv", &Options::default()).unwrap().1,
        ["1|2"]
    );
}

#[test]
fn folders_of_partitions_are_columns() {
    let folder = Folder::new();
    folder.write("h/y=2023/k=a%20b/1.csv", "n\n1\n");
    folder.write("h/y=2024/k=__HIVE_DEFAULT_PARTITION__/1.csv", "n\n2\n");
    for name in ["h", "h/**/*.csv", "h/y=*/k=*/*.csv"] {
        let (columns, rows) = folder.read(name, &Options::default()).unwrap();
        assert_eq!(columns, "n Int64, y Int64, k Utf8View");
        assert_eq!(rows, ["1|2023|a b", "2|2024|NULL"]);
    }
    let off = Options {
        hive: Some(false),
        ..Options::default()
    };
    assert_eq!(folder.read("h/**/*.csv", &off).unwrap().0, "n Int64");
    let typed = Options {
        types: vec![("y".into(), DataType::Utf8View)],
        ..Options::default()
    };
    assert_eq!(
        folder.read("h", &typed).unwrap().0,
        "n Int64, y Utf8View, k Utf8View"
    );
    let dataset = Arc::new(Dataset::open(&[folder.path("h")], &Options::default()).unwrap());
    let known = dataset.statistics(1, 1).unwrap();
    assert_eq!(
        known
            .mins
            .as_primitive::<arrow::datatypes::Int64Type>()
            .values(),
        &[2024]
    );
    assert_eq!(
        rows(&dataset, &Request::of(&dataset, [1])).unwrap(),
        ["2023", "2024"]
    );
    // Parquet has one of the keys as a column, too: the folder counts.
    std::fs::create_dir_all(folder.path("p/n=7")).unwrap();
    parquet(&folder.path("p/n=7/a.parquet"), &batch(), 10);
    let (columns, rows) = folder.read("p/*/*.parquet", &Options::default()).unwrap();
    assert!(
        columns.starts_with("n Int64, s ") && rows[1].starts_with("7|NULL|"),
        "{columns} {rows:?}"
    );
}

#[test]
fn a_file_that_is_another_by_now_is_told() {
    let folder = Folder::new();
    let path = folder.write("a.csv", "a\n1\n");
    let dataset =
        Arc::new(Dataset::open(std::slice::from_ref(&path), &Options::default()).unwrap());
    let mut pieces = dataset.pieces(&Request::all(&dataset)).unwrap();
    let piece = pieces.next().unwrap().unwrap();
    folder.write("a.csv", "a\n1\n2\n");
    let told: Vec<_> = (piece.read)().unwrap().filter_map(Result::err).collect();
    assert!(
        told.len() == 1 && told[0].to_string().contains("changed while it was read"),
        "{told:?}"
    );
    assert!(
        rows(&dataset, &Request::all(&dataset))
            .unwrap_err()
            .contains("changed while it was read")
    );
}

#[test]
fn pipes_are_read_once() {
    let folder = Folder::new();
    let path = folder.path("pipe");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    let text: String = (0..300_000).map(|n| format!("{n},x{n}\n")).collect();
    let writer = {
        let (path, text) = (path.clone(), format!("n,s\n{text}"));
        std::thread::spawn(move || std::fs::write(path, gzip(text.as_bytes())).unwrap())
    };
    let dataset = Arc::new(Dataset::open(&[path], &Options::default()).unwrap());
    assert!(dataset.is_once() && dataset.is_slow() && dataset.bytes().is_none());
    assert_eq!(
        all_rows(&dataset, &Request::of(&dataset, [0])).len(),
        300_000
    );
    writer.join().unwrap();
    assert!(
        rows(&dataset, &Request::all(&dataset))
            .unwrap_err()
            .contains("only once")
    );
}

#[test]
fn schema_of_nothing_is_refused() {
    let folder = Folder::new();
    let empty = RecordBatch::new_empty(Arc::new(Schema::empty()));
    let stream = arrow::ipc::writer::StreamWriter::try_new(vec![], &empty.schema()).unwrap();
    folder.write("a.arrow", stream.into_inner().unwrap());
    assert!(
        folder
            .read("a.arrow", &Options::default())
            .unwrap_err()
            .contains("no columns")
    );
}

#[test]
fn compressed_text_is_read_as_it_was_written() {
    use std::io::Write as _;
    let folder = Folder::new();
    for (name, compression) in [
        ("a.csv", ingest::Compression::None),
        ("a.csv.gz", ingest::Compression::Gzip),
        ("a.csv.zst", ingest::Compression::Zstd),
        ("a.csv.bz2", ingest::Compression::Bzip2),
    ] {
        assert_eq!(ingest::Compression::to_write(name), Ok(compression));
        let mut bytes = vec![];
        // Several streams one after the other are one file.
        for text in ["a,b\n1,x\n", "2,y\n"] {
            let mut out = ingest::Compressing::new(bytes, compression).unwrap();
            out.write_all(text.as_bytes()).unwrap();
            bytes = out.finish().unwrap();
        }
        folder.write(name, &bytes);
        let (columns, rows) = folder.read(name, &Options::default()).unwrap();
        assert_eq!(columns, "a Int64, b Utf8View");
        assert_eq!(rows, ["1|x", "2|y"], "{name}");
        if compression != ingest::Compression::None {
            folder.write(name, &bytes[..bytes.len() - 5]);
            let error = folder.read(name, &Options::default()).unwrap_err();
            assert!(error.starts_with(name), "{error}");
        }
    }
    for name in ["a.csv.xz", "a.csv.lz4", "a.json.snappy", "a.csv.ZIP"] {
        assert!(ingest::Compression::to_write(name).is_err(), "{name}");
    }
}

#[test]
fn rows_have_the_name_of_their_file_and_a_number_in_it() {
    let folder = Folder::new();
    let texts: Vec<String> = (10..50).map(|n| format!("{n}\n")).collect();
    let csv = folder.write("a.csv", format!("n\n{}", texts.concat()));
    let zipped = folder.write(
        "b.csv.gz",
        gzip(format!("n\n\n{}", texts.concat()).as_bytes()),
    );
    let objects: Vec<String> = (10..50).map(|n| format!("{{\"n\": {n}}}\n")).collect();
    let json = folder.write("c.json", objects.concat());
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(10..50));
    let batch = RecordBatch::try_from_iter([("n", values)]).unwrap();
    let groups = folder.path("d.parquet");
    parquet(&groups, &batch, 7);
    let mut file = arrow::ipc::writer::FileWriter::try_new(vec![], &batch.schema()).unwrap();
    file.write(&batch.slice(0, 15)).unwrap();
    file.write(&batch.slice(15, 25)).unwrap();
    let arrow = folder.write("e.arrow", file.into_inner().unwrap());
    let files = [csv, zipped, json, groups.clone(), arrow];
    let of = |path: &Path| {
        let rows = (0..40).map(|row| format!("{}|{}|{row}", row + 10, path.display()));
        rows.collect::<Vec<_>>()
    };
    let mut all: Vec<String> = files.iter().flat_map(|path| of(path)).collect();
    all.sort_unstable();
    for readers in [1, 3] {
        assert_eq!(numbered(&files, readers, None), all);
        for path in &files {
            assert_eq!(
                numbered(std::slice::from_ref(path), readers, None),
                of(path)
            );
        }
        // Row groups that are left out count.
        let keep = vec![(0..6).map(|group| group % 2 == 1).collect()];
        let kept = of(&groups);
        let kept = [&kept[7..14], &kept[21..28], &kept[35..40]].concat();
        assert_eq!(
            numbered(std::slice::from_ref(&groups), readers, Some(keep)),
            kept
        );
    }
}
