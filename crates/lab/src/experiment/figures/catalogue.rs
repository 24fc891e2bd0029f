//! The figures and tables of the texts: what each showed, and which command repeats its shape.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::error::{Error, Result};

/// The files, by the letter of the rows of docs/sources.md, with the text's number.
const FILES: [(&str, &str, &str); 5] = [
    ("T", "000", include_str!("../../../figures/arrays.toml")),
    ("M", "001", include_str!("../../../figures/mapping.toml")),
    ("E", "002", include_str!("../../../figures/elastic.toml")),
    ("B", "003", include_str!("../../../figures/smile.toml")),
    ("L", "004", include_str!("../../../figures/laq.toml")),
];

/// A text and its figures.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// What it is about.
    pub title: String,
    /// The letter of its rows.
    pub rows: String,
    /// Its figures and tables, in their order.
    #[serde(rename = "figure")]
    pub figures: Vec<Figure>,
}

/// A figure or a table of a text.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Its number, or a word where the text gives none.
    pub name: String,
    /// What it shows over what.
    pub subject: String,
    /// What the text found.
    pub showed: String,
    /// The rows of docs/sources.md that it belongs to.
    pub rows: Vec<String>,
    /// What is typed after `atoll` to repeat its shape.
    pub command: Option<String>,
    /// The same in a short form.
    pub quick: Option<String>,
    /// Where its numbers come from.
    pub how: How,
    /// What was found here, as the documents have it.
    pub ours: Option<String>,
    /// What is not repeated.
    pub missing: Option<String>,
    /// Of a drawing: what in the source it is a drawing of.
    #[serde(rename = "where")]
    pub place: Option<String>,
}

/// Where numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// The clock of this machine.
    Measured,
    /// Counters of the emulated machine, or of the program.
    Counted,
    /// A model computes them.
    Modelled,
    /// There are none: a drawing, or a table of words.
    Drawn,
}

impl How {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            How::Measured => "measured",
            How::Counted => "counted",
            How::Modelled => "modelled",
            How::Drawn => "drawn",
        }
    }
}

/// All texts.
///
/// # Errors
///
/// [`Error::Given`] if a file of this source is damaged; a test reads them.
pub fn texts() -> Result<Vec<Text>> {
    let read = |(rows, _, text): &(&str, &str, &str)| {
        toml::from_str::<Text>(text).map_err(|error| Error::Given {
            why: format!("the figures of text {rows} are damaged: {error}"),
        })
    };
    FILES.iter().map(read).collect()
}

/// The letter of a text's rows, from that letter or the text's number.
pub fn text(given: &str) -> std::result::Result<String, String> {
    let named = |(rows, number, _): &&(&str, &str, &str)| {
        rows.eq_ignore_ascii_case(given) || *number == given
    };
    let found = FILES.iter().find(named);
    found.map(|(rows, ..)| (*rows).to_owned()).ok_or_else(|| {
        format!("{given:?} is no text: take T (000, arrays), M (001, mapping), E (002, elastic), B (003, SMILE) or L (004, LAQ)")
    })
}

impl Text {
    /// The figures of that name, or all of them.
    ///
    /// # Errors
    ///
    /// [`Error::Given`] if there is none of that name.
    pub fn named(&self, name: &str) -> Result<Vec<&Figure>> {
        if name == "all" {
            return Ok(self.figures.iter().collect());
        }
        let found: Vec<&Figure> = self.figures.iter().filter(|one| one.name == name).collect();
        if found.is_empty() {
            let names: BTreeSet<&str> = self.figures.iter().map(|one| one.name.as_str()).collect();
            let names: Vec<&str> = names.into_iter().collect();
            return Err(Error::Given {
                why: format!(
                    "text {} has no figure {name:?}: take all, or one of {}",
                    self.rows,
                    names.join(", ")
                ),
            });
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_says_what_it_is() {
        let texts = texts().unwrap();
        let sources = include_str!("../../../../../docs/sources.md");
        for (text, (rows, ..)) in texts.iter().zip(FILES) {
            assert_eq!(text.rows, rows);
            let mut names = BTreeSet::new();
            for figure in &text.figures {
                let name = format!("{rows} {}", figure.name);
                assert!(names.insert(&figure.name), "{name} is there twice");
                assert!(
                    !figure.subject.is_empty() && !figure.showed.is_empty(),
                    "{name}"
                );
                assert!(!figure.rows.is_empty(), "{name} belongs to no row");
                for row in &figure.rows {
                    let line = format!("\n| {row} ");
                    assert!(sources.contains(&line), "{name}: no row {row}");
                }
                if let Some(place) = &figure.place {
                    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
                    let path = std::path::Path::new(root).join(place);
                    assert!(path.exists(), "{name}: no {place}");
                }
                let explained = figure.command.is_some() || figure.missing.is_some();
                assert!(
                    explained || figure.how == How::Drawn,
                    "{name}: neither repeated nor explained"
                );
            }
        }
    }

    #[test]
    fn texts_and_figures_have_names() {
        assert_eq!(text("t"), Ok("T".to_owned()));
        assert_eq!(text("003"), Ok("B".to_owned()));
        assert!(text("005").unwrap_err().contains("L (004, LAQ)"));
        let all = texts().unwrap();
        assert_eq!(all[0].named("4").unwrap().len(), 1);
        assert!(all[0].named("all").unwrap().len() >= 9);
        let error = all[0].named("10").unwrap_err().to_string();
        assert!(error.contains("\"10\"") && error.contains("4"), "{error}");
    }
}
