//! `atoll load seismic` and `atoll array`.

mod atoll;

use atoll::{Folder, json as parsed};
use serde_json::json;

/// An NPY file of 2 x 3 whole numbers of 16 bits.
fn npy() -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00\x46\x00".to_vec();
    bytes.extend(b"{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }");
    bytes.resize(80, b' ');
    bytes.extend([1i16, -2, 3, 4, 5, 600].map(i16::to_le_bytes).concat());
    bytes
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// A folder with the store `s.atoll`, in which the array of [`npy`] is `depths`.
fn sea() -> Folder {
    let folder = Folder::new();
    folder.write("depths.npy", npy());
    folder
        .run(&words("array s.atoll import depths.npy --dims lat,lon"))
        .succeeded();
    folder
}

#[test]
fn an_array_is_imported_described_exported_and_deleted() {
    let folder = Folder::new();
    folder.write("depths.v1.npy", npy());
    let import = "array s.atoll import depths.v1.npy --dims lat,lon --attribute metres --chunk 2,2 --compress lz4 --json";
    let made = parsed(&folder.run(&words(import)).succeeded());
    assert_eq!(
        (&made["array"], &made["format"]),
        (&json!("depths"), &json!("npy"))
    );
    assert_eq!(
        (&made["shape"], &made["chunk"]),
        (&json!([2, 3]), &json!([2, 2]))
    );
    assert_eq!((&made["chunks"], &made["bytes"]), (&json!(2), &json!(12)));
    assert!(made["seconds"].as_f64().unwrap() > 0.0);

    let list = parsed(&folder.run(&words("array s.atoll list --json")).succeeded());
    let described = parsed(
        &folder
            .run(&words("array s.atoll describe --json"))
            .succeeded(),
    );
    assert_eq!(list["arrays"], json!([described]));
    assert_eq!(described["dimensions"][1]["name"], "lon");
    assert_eq!(described["dimensions"][1]["last"], "2");
    assert_eq!(
        described["attributes"],
        json!([{
            "name": "metres", "type": "int16", "nullable": false, "fill": 0, "compression": "lz4",
            "times": false, "metadata": {},
        }])
    );
    let text = folder.run(&words("array s.atoll describe")).succeeded();
    assert!(
        text.contains("depths: 2 x 3, dense") && text.contains("dimension lat"),
        "{text}"
    );
    let text = folder.run(&words("array s.atoll list")).succeeded();
    assert!(text.contains("metres int16"), "{text}");

    for (export, format, import) in [
        ("out.npy", "npy", "out.npy"),
        ("out.zarr", "zarr3", "out.zarr"),
        ("two.zarr --format zarr2 --pack gzip", "zarr2", "two.zarr"),
    ] {
        let line = format!("array s.atoll export {export} --name depths --json");
        let written = parsed(&folder.run(&words(&line)).succeeded());
        assert_eq!(
            (&written["format"], &written["bytes"]),
            (&json!(format), &json!(12))
        );
        let line = format!("array s.atoll import {import} --name again --replace --json");
        assert_eq!(
            parsed(&folder.run(&words(&line)).succeeded())["format"],
            format
        );
        let last = format!("{format}.npy");
        folder
            .run(&["array", "s.atoll", "export", &last, "--name", "again"])
            .succeeded();
        let (one, other) = (folder.path("out.npy"), folder.path(&last));
        assert!(
            std::fs::read(one).unwrap() == std::fs::read(other).unwrap(),
            "{format}"
        );
    }
    folder
        .run(&words("array s.atoll delete --name again"))
        .succeeded();
    let gone = folder.run(&words("array s.atoll describe --name again"));
    gone.failed(1, &["no array 'again'"]);
    folder.run(&words("pages s.atoll check")).succeeded();
}

#[test]
fn the_seismic_array_is_made_in_both_shapes() {
    let folder = Folder::new();
    let volume = "load seismic s.atoll --gib 0.002 --chunks 12 --json";
    let made = parsed(&folder.run(&words(volume)).succeeded());
    assert_eq!(
        (&made["array"], &made["type"]),
        (&json!("seismic"), &json!("double"))
    );
    assert_eq!(
        (&made["chunks"], made["shape"].as_array().unwrap().len()),
        (&json!(12), 3)
    );
    let trials = "load seismic s.atoll --trials --chunks 3 --chunk 8,16,16 --name shots --seed 7 --compress zstd";
    let text = folder.run(&words(trials)).succeeded();
    assert!(text.contains("shots: 3 x 8 x 16 x 16 of float"), "{text}");
    let again = folder.run(&words("load seismic s.atoll --gib 0.001"));
    again.failed(1, &["'seismic' exists already"]);
    folder
        .run(&words(
            "load seismic s.atoll --gib 0.001 --chunks 2 --replace",
        ))
        .succeeded();
    let list = parsed(&folder.run(&words("array s.atoll list --json")).succeeded());
    assert_eq!(list["arrays"][0]["chunks"], 2);
    assert_eq!(list["arrays"][1]["name"], "shots");
    folder.run(&words("pages s.atoll check")).succeeded();
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let folder = sea();
    folder.write("text.npy", "x,y\n1,2\n");
    folder.write("cut.npy", &npy()[..85]);
    for (line, said) in [
        (
            "array n.atoll import text.npy",
            "none of the files that are read",
        ),
        (
            "array n.atoll import cut.npy",
            "has 5 bytes of values, not the 12",
        ),
        ("array n.atoll import absent.npy", "absent.npy"),
        (
            "array n.atoll import depths.npy --chunk 2",
            "1 lengths of a chunk",
        ),
        ("array n.atoll import depths.npy --dims a,b,c", "3 names"),
        ("array n.atoll import depths.npy --page-size 5000", "page"),
        ("array n.atoll import", "needs the file"),
        ("array n.atoll list", "no such store"),
        ("array s.atoll import depths.npy", "'depths' exists already"),
        (
            "array s.atoll import depths.npy --name=",
            "cannot be the name",
        ),
        (
            "array s.atoll import depths.npy --page-size 4KiB",
            "leave out --page-size",
        ),
        ("array s.atoll export", "needs the file"),
        ("array s.atoll export depths.npy", "exists already"),
        (
            "array s.atoll export a.txt",
            "end it with .npy, .npz, .h5, .nc or .zarr",
        ),
        (
            "array s.atoll export a.npy --null 99999",
            "99999 cannot stand for nulls",
        ),
        ("array s.atoll export a.npy --pack zstd", "never compressed"),
        ("array s.atoll export a.h5 --pack zstd", "take --pack gzip"),
        ("array s.atoll export a.npy --name reef", "no array 'reef'"),
        (
            "array s.atoll list a.npy",
            "a file is for import, export, not for list",
        ),
        (
            "array s.atoll export a.npy --dims x,y",
            "--dims is for import, not for export",
        ),
        ("array s.atoll delete", "delete needs --name"),
        ("array s.atoll delete --name reef", "no array 'reef'"),
    ] {
        folder.run(&words(line)).failed(1, &[said]);
    }
    assert!(
        !folder.path("n.atoll").exists(),
        "a failed import leaves no store"
    );
    folder
        .run(&words("array s.atoll dance"))
        .failed_usage(&["dance"]);
    folder
        .run(&words("array s.atoll export a.npy --null x"))
        .failed_usage(&["'x' is no number"]);
}

#[test]
fn a_seismic_array_that_cannot_be_is_refused() {
    let folder = Folder::new();
    for (line, said) in [
        ("load seismic n.atoll --gib=-1", "--gib"),
        ("load seismic n.atoll --gib nan", "--gib"),
        ("load seismic n.atoll --chunk 1,2", "three lengths"),
        ("load seismic n.atoll --chunk 0,1,1", "at least one cell"),
        (
            "load seismic n.atoll --gib 1 --chunks 1 --memory-limit 64MiB",
            "needs",
        ),
    ] {
        folder.run(&words(line)).failed(1, &[said]);
    }
    assert!(
        !folder.path("n.atoll").exists(),
        "what failed leaves no store"
    );
}

#[test]
fn of_several_arrays_one_is_to_be_chosen() {
    let folder = sea();
    folder
        .run(&words("array s.atoll import depths.npy --name second"))
        .succeeded();
    let choose = "choose one of depths, second with --name";
    folder
        .run(&words("array s.atoll describe"))
        .failed(1, &[choose]);
    folder
        .run(&words("pages create r.pages --pages 10"))
        .succeeded();
    folder
        .run(&words("array r.pages list"))
        .failed(1, &["raw pages"]);
    folder.run(&words("pages s.atoll check")).succeeded();
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_the_store_as_it_was() {
    let folder = sea();
    let mut child = folder
        .command(&words(
            "load seismic s.atoll --gib 4 --chunks 4000 --memory-limit 256MiB",
        ))
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Its pages are being written once the file is longer than one array needs.
    let store = folder.path("s.atoll");
    let begun = std::time::Instant::now();
    while std::fs::metadata(&store).unwrap().len() < 8 << 20 {
        assert!(child.try_wait().unwrap().is_none(), "it is still running");
        assert!(begun.elapsed().as_secs() < 120, "the store grows");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let id = child.id().to_string();
    assert!(
        std::process::Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let ended = child.wait().unwrap();
    assert_eq!(ended.code(), Some(130), "{ended:?}");
    let list = parsed(&folder.run(&words("array s.atoll list --json")).succeeded());
    assert_eq!(list["arrays"].as_array().unwrap().len(), 1);
    folder.run(&words("pages s.atoll check")).succeeded();
}

/// A file of the tests of `arrayfile`.
fn shared(name: &str) -> String {
    format!(
        "{}/../arrayfile/tests/data/hdf/{name}",
        env!("CARGO_MANIFEST_DIR")
    )
}

#[test]
fn variables_of_netcdf_become_attributes_and_go_back() {
    let folder = Folder::new();
    let file = shared("weather4.nc");
    let import = |more: &str| {
        let line = format!("array s.atoll import {file} {more}");
        folder.run(&words(&line))
    };
    let text = import("").succeeded();
    assert!(
        text.contains("weather4: 2 x 3 x 5 of t2m double, wind float, flags uint8"),
        "{text}"
    );
    let made = parsed(&import("--member wind --json").succeeded());
    assert_eq!(
        (&made["array"], &made["format"]),
        (&json!("wind"), &json!("hdf5"))
    );
    assert_eq!(
        made["attributes"],
        json!([{ "name": "wind", "type": "float" }])
    );
    import("--member t2m,wind --name two").succeeded();
    import("--name x --member depth")
        .failed(1, &["no variable 'depth'", "'t2m' (2 x 3 x 5 of int16)"]);
    import("--name x --attribute v").failed(1, &["one attribute, and the file has 3", "--member"]);
    for (file, more, format) in [
        ("w.nc", "--pack gzip", "netcdf4"),
        ("w.h5", "", "hdf5"),
        ("w3.nc", "--format netcdf3", "netcdf3"),
    ] {
        let line = format!("export s.atoll two {file} --json {more}");
        let line = line.trim_end();
        let written = parsed(&folder.run(&words(line)).succeeded());
        assert_eq!(written["format"], json!(format));
        let line = format!("import s.atoll back {file} --replace");
        folder.run(&words(&line)).succeeded();
    }
    let described = |name: &str| {
        let line = format!("array s.atoll describe --name {name} --json");
        parsed(&folder.run(&words(&line)).succeeded())
    };
    for at in 0..3 {
        let ends = |of: &serde_json::Value| {
            let dimension = &of["dimensions"][at];
            ["name", "first", "last", "coordinates"].map(|part| dimension[part].clone())
        };
        assert_eq!(ends(&described("two")), ends(&described("back")));
    }
    let line = format!("array s.atoll import {} --json", shared("unordered.nc"));
    let notes = parsed(&folder.run(&words(&line)).succeeded())["notes"].clone();
    assert!(
        notes[0]
            .as_str()
            .unwrap()
            .contains("'up' neither rises nor falls"),
        "{notes}"
    );
}

/// Writes a group of Zarr as xarray does: `heat` over two times, of which `units` and perhaps a calendar are said.
fn group(folder: &Folder, name: &str, units: &str, calendar: bool) {
    let array = |shape: &str| {
        format!(
            r#"{{"zarr_format": 2, "shape": {shape}, "chunks": {shape}, "dtype": "<f8", "compressor": null,
                "fill_value": null, "order": "C", "filters": null}}"#
        )
    };
    let calendar = if calendar {
        r#", "calendar": "proleptic_gregorian""#
    } else {
        ""
    };
    let file = |file: &str, contents: &[u8]| folder.write(&format!("{name}/{file}"), contents);
    file(".zgroup", br#"{"zarr_format": 2}"#);
    file(".zattrs", br#"{"title": "A sea"}"#);
    file("heat/.zarray", array("[2]").as_bytes());
    let said = r#"{"_ARRAY_DIMENSIONS": ["time"], "units": "K"}"#;
    file("heat/.zattrs", said.as_bytes());
    file("heat/0", &[280.5f64, 281.0].map(f64::to_le_bytes).concat());
    file("time/.zarray", array("[2]").as_bytes());
    let said = format!(r#"{{"_ARRAY_DIMENSIONS": ["time"], "units": "{units}"{calendar}}}"#);
    file("time/.zattrs", said.as_bytes());
    file("time/0", &[11.5f64, 12.0].map(f64::to_le_bytes).concat());
}

#[test]
fn times_of_a_group_of_zarr_are_timestamps_and_go_back_as_numbers() {
    let folder = Folder::new();
    let csv = |query: &str| {
        let arguments = ["sql", "s.atoll", query, "--format", "csv"];
        folder.run(&arguments).succeeded()
    };
    let units = "hours since 1900-01-01 00:00:0.0";
    group(&folder, "said.zarr", units, true);
    group(&folder, "unsaid.zarr", units, false);
    group(&folder, "never.zarr", "days since never", true);
    for import in [
        "import s.atoll said said.zarr",
        "import s.atoll unsaid unsaid.zarr",
        "import s.atoll always unsaid.zarr --times always",
        "import s.atoll never never.zarr --times always",
    ] {
        folder.run(&words(import)).succeeded();
    }
    for name in ["said", "always"] {
        let found = csv(&format!(
            "select time, heat from {name} where time > '1900-01-01 11:45'"
        ));
        assert_eq!(found, "time,heat\n1900-01-01T12:00:00,281.0\n", "{name}");
    }
    for name in ["unsaid", "never"] {
        let found = csv(&format!("select time, heat from {name} where time = 11.5"));
        assert_eq!(found, "time,heat\n11.5,280.5\n", "{name}");
    }
    assert_eq!(
        csv(
            "select column_name, attribute_name, attribute_value from information_schema.array_attributes \
             where table_name = 'never' order by 1 nulls first, 2"
        ),
        "column_name,attribute_name,attribute_value\n,title,A sea\nheat,units,K\ntime,calendar,proleptic_gregorian\n\
         time,units,days since never\n",
    );
    let said = folder
        .run(&words("array s.atoll describe --name said"))
        .succeeded();
    assert!(said.contains("  heat:units = K\n"), "{said}");
    assert!(said.contains("  title = A sea\n"), "{said}");
    let described = parsed(
        &folder
            .run(&words("array s.atoll describe --name said --json"))
            .succeeded(),
    );
    assert_eq!(described["dimensions"][0]["times"], json!(true));
    assert_eq!(
        described["attributes"][0]["metadata"],
        json!({ "units": "K" })
    );
    assert_eq!(described["metadata"], json!({ "title": "A sea" }));

    // What is written in SQL goes out in the units of the file.
    csv("update said set heat = 1 where time = '1900-01-01 11:30'");
    folder
        .run(&words("export s.atoll said out.zarr --group"))
        .succeeded();
    let out = std::fs::read_to_string(folder.path("out.zarr/time/zarr.json")).unwrap();
    let out: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        out["attributes"],
        json!({ "units": units, "calendar": "proleptic_gregorian" })
    );
    let values = std::fs::read(folder.path("out.zarr/time/c/0")).unwrap();
    assert_eq!(values, [11.5f64, 12.0].map(f64::to_le_bytes).concat());
    folder.write("t.csv", "a\n1\n");
    let wrong = folder.run(&words("import s.atoll t t.csv --times never"));
    assert_ne!(wrong.code, Some(0));
    assert!(wrong.stderr.contains("--times"), "{}", wrong.stderr);
}
