//! Renders a report as an HTML page, and writes the page and the JSON file beside it.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use topology::Machine;

use crate::error::{Error, Result};
use crate::html::{Escaped, link};
use crate::plot::{self, Plot};
use crate::report::{Block, Report, Written};

const STYLE: &str = include_str!("style.css");

/// Nothing is loaded and nothing runs, whatever a text might hold.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

impl Report {
    /// The page; `json` is the name of the file of raw numbers that lies beside it.
    ///
    /// # Errors
    ///
    /// [`Error::Plot`], which names the plot.
    pub fn html(&self, json: Option<&str>) -> Result<String> {
        html(self, json)
    }

    /// Writes the page to `path` and the raw numbers to the same name ending in `.json`.
    ///
    /// # Errors
    ///
    /// [`Error::Plot`], and [`Error::Write`] with the file that could not be written.
    pub fn write(&self, path: &Path) -> Result<Written> {
        let html = match path.extension() {
            Some(ending) if ending.eq_ignore_ascii_case("html") => path.to_owned(),
            _ => PathBuf::from(format!("{}.html", path.display())),
        };
        let json = html.with_extension("json");
        let name = json
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let page = self.html(name.as_deref())?;
        let raw = format!("{:#}\n", self.json());
        put(&json, raw.as_bytes())?;
        put(&html, page.as_bytes())?;
        Ok(Written { html, json })
    }
}

/// Fails at once if no page can be written to `path`, rather than after a long time of measuring.
///
/// # Errors
///
/// [`Error::Write`] if there is no such folder, or `path` is one.
pub fn can_write(path: &Path) -> Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let unusable = |source| Error::Write {
        path: path.to_owned(),
        source,
    };
    let about = std::fs::metadata(folder).map_err(|error| {
        let why = format!("{error}; make its folder first");
        unusable(std::io::Error::new(error.kind(), why))
    })?;
    if !about.is_dir() || path.is_dir() {
        let why = "name a file in a folder";
        return Err(unusable(std::io::Error::other(why)));
    }
    Ok(())
}

fn html(report: &Report, json: Option<&str>) -> Result<String> {
    let mut out = String::with_capacity(64 << 10);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>\n{STYLE}{}{}</style>\n</head>\n<body>\n<main>\n",
        Escaped(&report.title),
        swatches(),
        plot::style_sheet()
    );
    head(report, json, &mut out);
    let mut plots = 0;
    for block in &report.blocks {
        self::block(block, &mut plots, &mut out)?;
    }
    let _ = write!(
        out,
        "</main>\n<footer>Atoll {}. This page is one file and loads nothing.</footer>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    );
    Ok(out)
}

fn swatches() -> String {
    let rule = |at| format!(".legend .s{at} {{ background: var(--s{at}); }}\n");
    (1..=plot::SERIES).map(rule).collect()
}

fn head(report: &Report, json: Option<&str>, out: &mut String) {
    let _ = writeln!(out, "<h1>{}</h1>", Escaped(&report.title));
    if !report.lead.is_empty() {
        let _ = writeln!(out, "<p>{}</p>", Escaped(&report.lead));
    }
    if report.emulated {
        out.push_str(
            "<p class=\"banner\" role=\"note\"><strong>Emulated machine: counts, not times.</strong> \
             Emulation shows where accesses go, not how long they take; no figure here is a speed-up.</p>\n",
        );
    }
    out.push_str("<dl class=\"facts\">\n");
    let date = report.date.format("%Y-%m-%d %H:%M UTC").to_string();
    let _ = writeln!(out, "<dt>Date</dt><dd>{date}</dd>");
    let _ = writeln!(
        out,
        "<dt>Repeat with</dt><dd><code>{}</code></dd>",
        Escaped(&report.command)
    );
    let commit = report.commit.as_deref();
    let _ = writeln!(
        out,
        "<dt>Commit</dt><dd>{}</dd>",
        Escaped(commit.unwrap_or("not known: the program was built outside of its repository"))
    );
    if let Some(machine) = &report.machine {
        let _ = writeln!(
            out,
            "<dt>Machine</dt><dd>{}</dd>",
            Escaped(&in_words(machine))
        );
    }
    for (name, value) in &report.facts {
        let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", Escaped(name), Escaped(value));
    }
    if let Some(json) = json {
        let _ = writeln!(
            out,
            "<dt>Raw numbers</dt><dd><a href=\"{}\">{}</a></dd>",
            link(json),
            Escaped(json)
        );
    }
    out.push_str("</dl>\n");
    if let Some(machine) = &report.machine {
        let _ = writeln!(
            out,
            "<details><summary>drawing of the machine</summary><pre tabindex=\"0\">{}</pre></details>",
            Escaped(machine.render().trim_end())
        );
    }
}

fn in_words(machine: &Machine) -> String {
    let nodes = machine.nodes().len();
    let plural = if nodes == 1 { "" } else { "s" };
    let size = format!(
        "{nodes} node{plural}, {} cores, {} cpus",
        machine.cores(),
        machine.cpus()
    );
    match machine.about() {
        "" => format!("{}: {size}", machine.name()),
        about => format!("{} ({about}): {size}", machine.name()),
    }
}

fn block(block: &Block, plots: &mut usize, out: &mut String) -> Result<()> {
    let mut plot = |plot: &Plot, out: &mut String| {
        *plots += 1;
        plot.html(&format!("p{plots}"), out)
    };
    match block {
        Block::Section(title) => {
            let _ = writeln!(out, "<h2>{}</h2>", Escaped(title));
        }
        Block::Text(text) => {
            let _ = writeln!(out, "<p>{}</p>", Escaped(text));
        }
        Block::Table(table) => table.html(out),
        Block::Plot(one) => plot(one, out)?,
        Block::Plots(many) => {
            out.push_str("<div class=\"plots\">\n");
            for one in many {
                plot(one, out)?;
            }
            out.push_str("</div>\n");
        }
    }
    Ok(())
}

fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).map_err(|source| Error::Write {
        path: path.to_owned(),
        source,
    })
}
