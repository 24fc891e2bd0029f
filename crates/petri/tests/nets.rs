//! Nets in general: other kinds of tokens, bad input, and what other programs get.

use petri::{ELASTIC, Error, Kind, Marking, Net, Value};
use proptest::prelude::*;

/// Philosophers by their seats, and the forks between them.
const TABLE: &str = r#"
name = "table"
[parameters]
seats = 3
[[type]]
name = "seat"
symbol = "s"
holds = "integer"
least = 0
most = "seats - 1"
[[place]]
name = "thinking"
type = "seat"
start = [0, 1, 2]
[[place]]
name = "forks"
type = "seat"
start = [0, 1, 2]
[[place]]
name = "eating"
type = "seat"
[[transition]]
name = "take"
guard = "right = left + 1 or (left = seats - 1 and right = 0)"
pre = { thinking = "left", forks = ["left", "right"] }
post = { eating = "left" }
[[transition]]
name = "put"
pre = { eating = "left" }
post = { thinking = "left", forks = ["left", "max(0, left + 1 - seats * max(0, left + 2 - seats))"] }
"#;

#[test]
fn tokens_are_chosen_by_their_values() {
    let net = Net::parse(TABLE).unwrap();
    let start = net.start().unwrap();
    let enabled = net.enabled(&start, &[]).unwrap();
    let lefts: Vec<String> = enabled
        .iter()
        .map(|b| b.variables[0].1.to_string())
        .collect();
    assert_eq!(lefts, ["0", "1", "2"], "each may begin");
    let graph = net.explore(&start, &[&[]], 1000);
    let graph = graph.unwrap();
    let eating = net.place("eating").unwrap();
    assert_eq!(graph.most_tokens(eating), 1, "three forks feed one");
    assert_eq!(graph.dead(), [] as [usize; 0]);
    assert!(graph.returns());
    let after = net.fire(&start, &enabled[1], &[]).unwrap();
    assert_eq!(
        after.told(&net),
        "thinking 0, thinking 2, forks 0, eating 1"
    );
    let error = net.fire(&after, &enabled[1], &[]).unwrap_err();
    assert!(matches!(error, Error::NotEnabled { .. }), "{error}");
    assert!(matches!(
        net.explore(&start, &[&[]], 3),
        Err(Error::TooMany { limit: 3, .. })
    ));
}

#[test]
fn plain_tokens_flags_and_names() {
    let text = r#"
name = "mixed"
[parameters]
wanted = "red"
[[type]]
name = "dot"
holds = "unit"
[[type]]
name = "colour"
holds = "name"
of = ["red", "green"]
[[type]]
name = "answer"
holds = "flag"
[[place]]
name = "dots"
type = "dot"
start = ["()", "()"]
[[place]]
name = "colours"
type = "colour"
start = ["'red'", "'green'"]
[[place]]
name = "answers"
type = "answer"
[[transition]]
name = "ask"
guard = "c = wanted"
pre = { dots = ["()", "()"], colours = "c" }
post = { answers = "c = 'red'" }
"#;
    let net = Net::parse(text).unwrap();
    assert!(matches!(&net.types()[1].kind, Kind::Text { of } if of.len() == 2));
    let mut marking = net.start().unwrap();
    let check = net.check(&mut marking, &[]).unwrap();
    assert_eq!(check.transitions(&net), ["ask"]);
    assert_eq!(marking.told(&net), "colours 'green', answers true");
    assert_eq!(net.check(&mut marking, &[]).unwrap().fired, []);
    assert_eq!(net.incidence().transposed(), [["-2", "-1", "1"]]);
    assert!(
        marking
            .replaced(&net, "colours", Value::Text("blue".into()))
            .is_err()
    );
}

#[test]
fn what_does_not_come_to_rest_is_an_error() {
    let text = |more: &str| {
        format!(
            "name = 'x'\nreadings = ['u']\n[[type]]\nname = 't'\nholds = 'number'\nleast = 0\nmost = 9\n\
             [[place]]\nname = 'a'\ntype = 't'\nreading = 'u'\nstart = [1]\n\
             [[place]]\nname = 'b'\ntype = 't'\n\
             [[transition]]\nname = 'go'\npre = {{ a = 'u' }}\npost = {{ b = 'u' }}\n{more}"
        )
    };
    let stuck = Net::parse(&text("")).unwrap();
    let mut marking = stuck.start().unwrap();
    let error = stuck.check(&mut marking, &[("u", 3.0)]).unwrap_err();
    assert!(matches!(error, Error::NoRest { .. }), "{error}");
    assert_eq!(marking, stuck.start().unwrap(), "nothing has changed");
    let round = "[[transition]]\nname = 'turn'\npre = { b = 'x' }\npost = { b = 'x' }\n";
    let round = Net::parse(&text(round)).unwrap();
    let error = round.check(&mut round.start().unwrap(), &[("u", 3.0)]);
    assert!(error.unwrap_err().to_string().contains("go, turn, turn"));
    let error = stuck.check(&mut Marking::empty(&stuck), &[("u", 3.0)]);
    assert!(matches!(error, Err(Error::NotAtRest { tokens: 0, .. })));
}

#[test]
fn bad_files_name_what_is_wrong() {
    let change = |from: &str, to: &str| {
        assert!(ELASTIC.contains(from), "{from}");
        Net::parse(&ELASTIC.replacen(from, to, 1))
            .unwrap_err()
            .to_string()
    };
    for (from, to, part) in [
        ("name = \"elastic\"", "name = ", "line 19"),
        ("name = \"elastic\"", "nam = 3", "nam"),
        (
            "guard = \"u >= th_max\"",
            "guard = \"u >= \"",
            "a value is missing",
        ),
        (
            "guard = \"u >= th_max\"",
            "guard = \"v >= th_max\"",
            "transition t1: 'v >= th_max' names v",
        ),
        (
            "pre = { Checks = \"u\" }",
            "pre = { Cheks = \"u\" }",
            "no place Cheks",
        ),
        ("type = \"load\"", "type = \"lod\"", "no type lod"),
        ("reading = \"u\"", "reading = \"w\"", "no reading w"),
        ("holds = \"integer\"", "holds = \"int\"", "one of unit"),
        ("least = \"n_min\"", "", "'least' is missing"),
        (
            "name = \"t2\"",
            "name = \"t1\"",
            "transition t1: there are two",
        ),
        ("th_min = 10", "th_min = 90", "requires th_min < th_max"),
        ("th_min = 10", "th_min = nan", "not finite"),
        (
            "post = { Stable = \"u\" }",
            "post = { Stable = [] }",
            "1 to 16 tokens",
        ),
        ("holds = \"number\"", "holds = \"unit\"", "are for numbers"),
    ] {
        let told = change(from, to);
        assert!(told.contains(part), "{from} -> {to}: {told}");
        assert!(!told.contains('\n'), "{told}");
    }
    let error = Net::parse("name = 'none'").unwrap_err().to_string();
    assert!(error.contains("has no place"), "{error}");
    assert!(Net::parse(&"#".repeat(2 << 20)).is_err());
}

#[test]
fn other_programs_get_the_net() {
    let net = Net::parse(ELASTIC).unwrap();
    let text = net.pnml();
    let xml = roxmltree::Document::parse(&text).unwrap();
    let pnml = "http://www.pnml.org/version-2009/grammar/pnml";
    let all = |name: &'static str| {
        let tag = (pnml, name);
        xml.descendants()
            .filter(move |node| node.has_tag_name(tag))
            .count()
    };
    assert_eq!((all("place"), all("transition")), (5, 8));
    let arcs = net.incidence();
    let arcs: i64 = arcs.pre.iter().chain(&arcs.post).flatten().sum();
    assert_eq!(all("arc") as i64, arcs);
    let ids: std::collections::BTreeSet<&str> = xml
        .descendants()
        .filter_map(|node| node.attribute("id"))
        .collect();
    for arc in xml
        .descendants()
        .filter(|node| node.has_tag_name((pnml, "arc")))
    {
        assert!(ids.contains(arc.attribute("source").unwrap()));
        assert!(ids.contains(arc.attribute("target").unwrap()));
    }
    let conditions: Vec<&str> = xml
        .descendants()
        .filter(|node| node.has_tag_name((pnml, "condition")))
        .filter_map(|node| {
            node.descendants()
                .find_map(|n| n.text().filter(|t| !t.is_empty()))
        })
        .collect();
    assert_eq!(conditions[0], "u <= th_min");

    let dot = net.dot(Some(&net.start().unwrap()));
    assert!(dot.starts_with("digraph \"elastic\" {") && dot.ends_with("}\n"));
    assert!(
        dot.contains(r#"p4 [shape=ellipse, label="Provision\n1"]"#),
        "{dot}"
    );
    assert!(dot.contains(r#"t5 -> p4 [label="n_alloc + 1"]"#), "{dot}");
    let bare = Net::parse(&ELASTIC.replacen("\"elastic\"", "'a\"\\b'", 1)).unwrap();
    assert!(bare.dot(None).starts_with(r#"digraph "a\"\\b" {"#));
}

#[test]
fn the_documents_draw_the_net_that_there_is() {
    let net = Net::parse(ELASTIC).unwrap();
    let drawn = net.mermaid();
    assert!(
        drawn.contains("t5[\"t5: n_alloc &lt; n_total\"]"),
        "{drawn}"
    );
    assert!(drawn.contains("t5 -->|\"n_alloc + 1\"| p4"), "{drawn}");
    assert!(drawn.contains("    t3[\"t3\"]\n"), "{drawn}");
    let document = include_str!("../../../docs/explanations/governor.md");
    assert!(
        document.contains(&format!("```mermaid\n{drawn}```\n")),
        "docs/explanations/governor.md should have:\n{drawn}"
    );
}

proptest! {
    /// Whatever the loads, the number of cores goes by at most one and stays within its bounds.
    #[test]
    fn cores_follow_any_loads(loads in proptest::collection::vec(0.0f64..=100.0, 0..80), total in 1u32..9) {
        let net = Net::parse(ELASTIC).unwrap().with("n_total", total).unwrap();
        let mut marking = net.start().unwrap();
        let mut cores = 1i64;
        for u in loads {
            net.check(&mut marking, &[("u", u)]).unwrap();
            let wanted = if u >= 70.0 { cores + 1 } else if u <= 10.0 { cores - 1 } else { cores };
            cores = wanted.clamp(1, i64::from(total));
            prop_assert_eq!(marking.number(&net, "Provision").unwrap(), cores as f64);
        }
    }

    #[test]
    fn any_text_is_answered(text in "[\\[\\]a-z_=\"'{}0-9.\n ]{0,200}") {
        let _ = Net::parse(&text);
    }
}
