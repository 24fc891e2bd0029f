//! `atoll pages` on stores of raw pages: made, filled, read by operators.

mod atoll;

use atoll::Folder;
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_store_is_made_filled_and_read_in_either_order_of_words() {
    let folder = Folder::new();
    let made = folder.run(&[
        "pages",
        "create",
        "r.pages",
        "--page-size",
        "4KiB",
        "--pages",
        "300",
        "--json",
    ]);
    let made = json(&made.succeeded());
    assert_eq!(
        (&made["room"], &made["page_size"]),
        (&300.into(), &4096.into())
    );
    let text = folder
        .run(&["pages", "r.pages", "alloc", "--seed", "7"])
        .succeeded();
    assert!(text.contains("300 pages allocated"), "{text}");
    let scan = [
        "pages",
        "r.pages",
        "scan",
        "--threads",
        "1,2",
        "--partitions",
        "1..4",
        "--prefetch",
        "0..2",
        "--numa",
        "on,off",
        "--repeat",
        "2",
        "--json",
    ];
    let scan = json(&folder.run(&scan).succeeded());
    assert_eq!(scan["pages"], 300);
    assert_eq!(scan["times"].as_array().unwrap().len(), 2 * 3 * 3 * 2);
    assert_eq!(scan["times"][0]["seconds"].as_array().unwrap().len(), 2);
    assert_eq!(scan["pools"].as_array().unwrap().len(), 3 * 2);
    for what in ["groupby", "hashjoin"] {
        let text = folder
            .run(&["pages", what, "r.pages", "--repeat", "1", "--cold"])
            .succeeded();
        assert!(
            text.contains("partitions") && text.contains("evictions"),
            "{text}"
        );
    }
    let text = folder.run(&["pages", "vacuum", "r.pages"]).succeeded();
    assert!(text.contains("before"), "{text}");
    assert!(
        folder
            .run(&["pages", "r.pages", "check"])
            .succeeded()
            .contains("pages read")
    );
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let folder = Folder::new();
    folder
        .run(&["pages", "create", "r.pages", "--page-size", "5000"])
        .failed(1, &["5000"]);
    folder
        .run(&["pages", "create", "r.pages", "--pages", "20"])
        .succeeded();
    folder
        .run(&["pages", "create", "r.pages"])
        .failed(1, &["r.pages"]);
    folder
        .run(&["pages", "missing.pages", "scan"])
        .failed(1, &["missing.pages"]);
    folder
        .run(&["pages", "r.pages", "swim"])
        .failed(1, &["swim", "scan, groupby"]);
    folder
        .run(&["pages", "r.pages", "stat", "--threads", "2"])
        .failed(1, &["--threads", "stat"]);
    folder
        .run(&["pages", "r.pages", "scan", "--seed", "2"])
        .failed(1, &["--seed", "scan"]);
    folder
        .run(&["pages", "r.pages", "scan", "--pool", "64KiB"])
        .failed(1, &["65536"]);
    folder
        .run(&["pages", "r.pages", "scan", "--threads", "0"])
        .failed_usage(&["1 to 1024"]);
    folder
        .run(&["pages", "r.pages", "scan", "--prefetch", "8..0"])
        .failed_usage(&["empty"]);
}
