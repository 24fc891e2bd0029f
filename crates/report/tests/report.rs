//! Reports hold whatever they are given: hostile texts, figures that are not numbers, nothing.

use report::{
    Axis, Bars, Cell, Error, Heat, Line, Lines, Plot, Point, Report, Roofline, Spread, Table, Unit,
};

/// Ends what surrounds it in HTML, in attributes, in a style sheet and in a comment.
const HOSTILE: &str = "</title></style></svg>--><script>alert(1)</script><img src=x onerror='alert(2)'>\" onload=\"a&\u{0}\u{202e}";

fn plots(name: &str) -> Vec<Plot> {
    let mut bars = Bars::new(name, name, Unit::Count).series([name, name]);
    bars.category(name, [1.0, f64::NAN]);
    let mut stack = Bars::new(name, name, Unit::Bytes).stacked();
    stack.category(name, [f64::INFINITY, -3.0, 2.0]);
    let mut spread = Spread::new(name, name, Unit::Seconds);
    spread.category(name, vec![1.0, f64::NAN, 2.0].into());
    spread.category("", Vec::new().into());
    let range = Point {
        x: 1.0,
        y: f64::NAN,
        low: f64::NEG_INFINITY,
        high: f64::INFINITY,
    };
    let lines = |axis: fn(Axis) -> Axis| {
        Lines::new(
            name,
            axis(Axis::new(name, Unit::Plain)),
            axis(Axis::new(name, Unit::Ratio)),
        )
        .line(Line::new(
            name,
            [range, Point::from((0.0, 0.0)), Point::from((-1.0, 1e300))],
        ))
        .line(Line::new("", Vec::<Point>::new()))
        .mark(name, f64::NAN)
    };
    let heat = Heat::new(name, Unit::Share, &[vec![f64::NAN, -1.0], vec![]])
        .rows(name, [name])
        .columns(name, [name, name]);
    let mut roofline = Roofline::new(name, [name, name])
        .bandwidth(name, 1e9)
        .bandwidth(name, f64::NAN)
        .peak(name, f64::INFINITY);
    roofline.point(0, name, name, (0.1, 1e7));
    roofline.point(7, name, name, (f64::NAN, -1.0));
    vec![
        roofline.into(),
        bars.into(),
        stack.into(),
        spread.into(),
        lines(|axis| axis).into(),
        lines(Axis::log).into(),
        heat.into(),
    ]
}

fn empty() -> Vec<Plot> {
    vec![
        Bars::new("", "", Unit::Plain).into(),
        Spread::new("", "", Unit::Plain).into(),
        Lines::new("", Axis::new("", Unit::Plain), Axis::new("", Unit::Plain)).into(),
        Heat::nodes("", Unit::Plain, &[]).into(),
    ]
}

fn report(name: &str, plots: Vec<Plot>) -> Report {
    let mut table = Table::new([name]).caption(name);
    table.row([Cell::from(name)]);
    let mut report = Report::new(name, name)
        .lead(name)
        .fact(name, name)
        .section(name)
        .text(name)
        .table(table);
    for plot in plots {
        report = report.plot(plot.clone()).plots([plot]);
    }
    report.results(serde_json::json!({ name: name }))
}

#[test]
fn no_text_becomes_markup() {
    let page = report(HOSTILE, plots(HOSTILE)).html(Some(HOSTILE)).unwrap();
    assert!(
        !page.contains("<script") && !page.contains("<img"),
        "an element"
    );
    assert!(
        !page.contains("\" onload") && !page.contains("-->"),
        "an attribute or a comment"
    );
    assert!(
        !page.contains('\u{0}') && !page.contains('\u{202e}'),
        "a control character"
    );
    assert_eq!(page.matches("</title></style>").count(), 0);
    let text = page.matches("&lt;script&gt;").count();
    assert!(text > 30, "the texts are there, escaped: {text}");
}

#[test]
fn pages_are_well_formed_xml_but_for_void_elements() {
    for report in [report(HOSTILE, plots(HOSTILE)), report("", empty())] {
        let page = report.html(Some("raw.json")).unwrap();
        let body = page.find("<body>").expect("a body");
        let body = page[body..]
            .trim_end()
            .strip_suffix("</html>")
            .expect("an end");
        let document = roxmltree::Document::parse(body).unwrap();
        let ids: Vec<&str> = document
            .descendants()
            .filter_map(|node| node.attribute("id"))
            .collect();
        let distinct: std::collections::HashSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), distinct.len(), "an id is used twice");
        for svg in document
            .descendants()
            .filter(|node| node.has_tag_name("svg"))
        {
            let names = svg.attribute("aria-labelledby").expect("a name");
            assert!(
                names.split(' ').all(|name| distinct.contains(name)),
                "{names}"
            );
        }
        for number in document.descendants().flat_map(|node| node.attributes()) {
            let coordinate = ["x", "y", "x1", "y1", "width", "points"].contains(&number.name());
            assert!(
                !(coordinate && number.value().contains("NaN")),
                "{number:?}"
            );
        }
    }
}

#[test]
fn pages_load_nothing() {
    let page = report("plain", plots("plain"))
        .html(Some("raw.json"))
        .unwrap();
    for loads in [
        "http://", "https://", "src=", "url(", "@import", "<link", "<script",
    ] {
        assert!(!page.contains(loads), "{loads}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn the_banner_is_there_exactly_when_emulated() {
    let report = report("plain", Vec::new());
    assert!(!report.html(None).unwrap().contains("counts, not times"));
    assert!(
        report
            .emulated()
            .html(None)
            .unwrap()
            .contains("counts, not times")
    );
}

#[test]
fn the_machine_and_the_command_are_told() {
    let machine = topology::Machine::parse("opteron-8387").unwrap();
    let page = Report::new("t", "atoll lab pages --quick")
        .machine(machine)
        .html(None)
        .unwrap();
    assert!(page.contains("<code>atoll lab pages --quick</code>"));
    assert!(page.contains("4 nodes, 16 cores") && page.contains("<pre"));
}

#[test]
fn the_commit_is_told_or_that_it_is_not_known() {
    let of = |commit: Option<&str>| Report::new("t", "c").commit(commit);
    let known = of(Some("5afe76295d01-dirty"));
    assert_eq!(known.json()["commit"], "5afe76295d01-dirty");
    assert!(
        known
            .html(None)
            .unwrap()
            .contains("<dd>5afe76295d01-dirty</dd>")
    );
    for unknown in [of(None), of(Some("")), Report::new("t", "c")] {
        assert!(unknown.json()["commit"].is_null());
        assert!(
            unknown
                .html(None)
                .unwrap()
                .contains("<dt>Commit</dt><dd>not known")
        );
    }
}

#[test]
fn both_files_are_written_and_the_json_says_where_it_is_from() {
    let folder = tempfile::tempdir().unwrap();
    let written = report("plain", plots("plain"))
        .write(&folder.path().join("a report"))
        .unwrap();
    assert_eq!(written.html, folder.path().join("a report.html"));
    let raw: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&written.json).unwrap()).unwrap();
    for field in [
        "title", "command", "date", "version", "commit", "emulated", "machine", "facts", "results",
    ] {
        assert!(raw.get(field).is_some(), "{field}");
    }
    assert!(
        std::fs::read_to_string(&written.html)
            .unwrap()
            .contains("href=\"./a%20report.json\"")
    );
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let error = report("plain", Vec::new())
        .write(std::path::Path::new("/nonexistent/r.html"))
        .unwrap_err();
    assert!(
        matches!(&error, Error::Write { path, .. } if path.ends_with("r.json")),
        "{error}"
    );
    assert!(error.to_string().contains("/nonexistent/r.json"));
}
