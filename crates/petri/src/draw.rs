//! The net for other programs: drawings (DOT, Mermaid) and editors (PNML).

use std::fmt::Write as _;

use crate::net::Flow;
use crate::{Marking, Net};

impl Net {
    /// The net in Graphviz's language, with the tokens of `marking`; `dot -Tsvg` draws it.
    pub fn dot(&self, marking: Option<&Marking>) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "digraph {} {{", quoted(self.name()));
        let _ = writeln!(text, "  rankdir=LR;");
        for (at, place) in self.places().iter().enumerate() {
            let mut label = place.name.to_string();
            for token in marking.map_or(&[][..], |marking| marking.tokens(at)) {
                let _ = write!(label, "\n{token}");
            }
            let _ = writeln!(text, "  p{at} [shape=ellipse, label={}];", quoted(&label));
        }
        for (at, transition) in self.transitions().iter().enumerate() {
            let mut label = transition.name.to_string();
            if transition.guard.text() != "true" {
                let _ = write!(label, "\n{}", transition.guard);
            }
            let _ = writeln!(text, "  t{at} [shape=box, label={}];", quoted(&label));
            for flow in &transition.pre {
                let _ = writeln!(
                    text,
                    "  p{} -> t{at} [label={}];",
                    flow.place,
                    carried(flow)
                );
            }
            for flow in &transition.post {
                let _ = writeln!(
                    text,
                    "  t{at} -> p{} [label={}];",
                    flow.place,
                    carried(flow)
                );
            }
        }
        text.push_str("}\n");
        text
    }

    /// The net in Mermaid's language, which is drawn in Markdown documents: places round, transitions with their guards.
    pub fn mermaid(&self) -> String {
        let mut text = String::from("flowchart LR\n");
        for (at, place) in self.places().iter().enumerate() {
            let _ = writeln!(text, "    p{at}((\"{}\"))", entities(&place.name));
        }
        for (at, transition) in self.transitions().iter().enumerate() {
            let guard = entities(transition.guard.text());
            let name = entities(&transition.name);
            let _ = match &*guard {
                "true" => writeln!(text, "    t{at}[\"{name}\"]"),
                _ => writeln!(text, "    t{at}[\"{name}: {guard}\"]"),
            };
            for flow in &transition.pre {
                let label = entities(&inscribed(flow, ", "));
                let _ = writeln!(text, "    p{} -->|\"{label}\"| t{at}", flow.place);
            }
            for flow in &transition.post {
                let label = entities(&inscribed(flow, ", "));
                let _ = writeln!(text, "    t{at} -->|\"{label}\"| p{}", flow.place);
            }
        }
        text
    }

    /// The net in the Petri Net Markup Language (ISO/IEC 15909-2), as a high-level net whose
    /// inscriptions are text.
    pub fn pnml(&self) -> String {
        let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        text.push_str("<pnml xmlns=\"http://www.pnml.org/version-2009/grammar/pnml\">\n");
        text.push_str(
            " <net id=\"net\" type=\"http://www.pnml.org/version-2009/grammar/highlevelnet\">\n",
        );
        let _ = writeln!(text, "  {}", labelled("name", self.name()));
        text.push_str("  <page id=\"page\">\n");
        for (at, place) in self.places().iter().enumerate() {
            let kind = &self.types()[place.token];
            let start: Vec<String> = place.start.iter().map(ToString::to_string).collect();
            let _ = writeln!(text, "   <place id=\"p{at}\">");
            let _ = writeln!(text, "    {}", labelled("name", &place.name));
            let told = format!("{}: {}", kind.name, kind.kind);
            let _ = writeln!(text, "    {}", labelled("type", &told));
            if !start.is_empty() {
                let label = labelled("hlinitialMarking", &start.join(" ++ "));
                let _ = writeln!(text, "    {label}");
            }
            let _ = writeln!(text, "   </place>");
        }
        for (at, transition) in self.transitions().iter().enumerate() {
            let _ = writeln!(text, "   <transition id=\"t{at}\">");
            let _ = writeln!(text, "    {}", labelled("name", &transition.name));
            let _ = writeln!(
                text,
                "    {}",
                labelled("condition", transition.guard.text())
            );
            let _ = writeln!(text, "   </transition>");
        }
        for (at, transition) in self.transitions().iter().enumerate() {
            for flow in &transition.pre {
                let (from, to) = (format!("p{}", flow.place), format!("t{at}"));
                arc(&mut text, &from, &to, flow);
            }
            for flow in &transition.post {
                let (from, to) = (format!("t{at}"), format!("p{}", flow.place));
                arc(&mut text, &from, &to, flow);
            }
        }
        text.push_str("  </page>\n </net>\n</pnml>\n");
        text
    }
}

fn arc(text: &mut String, from: &str, to: &str, flow: &Flow) {
    let _ = writeln!(
        text,
        "   <arc id=\"{from}-{to}\" source=\"{from}\" target=\"{to}\">{}</arc>",
        labelled("hlinscription", &inscribed(flow, " ++ "))
    );
}

fn inscribed(flow: &Flow, between: &str) -> String {
    let texts: Vec<&str> = flow.inscriptions.iter().map(|e| e.text()).collect();
    texts.join(between)
}

fn carried(flow: &Flow) -> String {
    quoted(&inscribed(flow, ", "))
}

/// A string of DOT.
fn quoted(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    format!("\"{escaped}\"")
}

/// What means something in HTML or ends a string, as entities.
fn entities(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A label of PNML.
fn labelled(name: &str, text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            // Not allowed in XML.
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    format!("<{name}><text>{escaped}</text></{name}>")
}
