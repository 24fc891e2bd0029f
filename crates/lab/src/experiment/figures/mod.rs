//! The figures and tables of all texts on one page: what each showed, what repeats it here, and how that went last.

mod catalogue;
mod page;
mod perform;

use std::path::{Path, PathBuf};

use clap::Args;

use self::catalogue::{Text, text, texts};
use self::page::Page;
use self::perform::{Bench, Ran};
use crate::desk::Desk;
use crate::error::{Error, Result};
use crate::json;
use crate::options::folder_is_there;

/// The file of what was run, in the folder of the reports.
const LAST: &str = "last.json";

/// `figures`
#[derive(Args, Clone, Debug)]
pub struct Figures {
    /// A text: T (000, arrays), M (001, mapping), E (002, elastic), B (003, SMILE), L (004, LAQ) [default: all]
    #[arg(value_name = "TEXT", value_parser = text)]
    pub text: Option<String>,
    /// Run the command of a figure first, or those of all; without it the last results are shown
    #[arg(long, value_name = "FIGURE|all")]
    pub run: Option<String>,
    /// Run short forms: they say whether it works, not how much
    #[arg(long, requires = "run")]
    pub quick: bool,
    /// A store with TPC-H, for the commands that need one
    #[arg(long, value_name = "STORE", requires = "run")]
    pub store: Option<PathBuf>,
    /// Write the page to this file; what was run goes to the folder of that name beside it
    #[arg(long, value_name = "FILE.html", default_value = "lab-figures.html")]
    pub report: PathBuf,
    /// One JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

impl Figures {
    /// The commands of all figures, long and short, without the word `atoll` before them.
    ///
    /// # Errors
    ///
    /// [`Error::Given`] if a file of this source is damaged.
    pub fn commands() -> Result<Vec<String>> {
        let texts = texts()?;
        let figures = texts.iter().flat_map(|text| &text.figures);
        let commands = figures.flat_map(|figure| [&figure.command, &figure.quick]);
        Ok(commands.flatten().cloned().collect())
    }

    pub(super) fn run(&self, desk: &mut Desk<'_>) -> Result<()> {
        folder_is_there(&self.report)?;
        let mut texts = texts()?;
        texts.retain(|text| self.text.as_ref().is_none_or(|rows| *rows == text.rows));
        let folder = self.report.with_extension("");
        let mut last = read_last(&folder)?;
        if let Some(name) = &self.run {
            self.run_all(&texts, name, &folder, &mut last, desk)?;
        }
        let page = Page {
            texts: &texts,
            last: &last,
            folder: &folder,
        };
        let (report, tables) = page.report(&desk.command);
        let tables: Vec<_> = tables.iter().collect();
        desk.finish(&self.report, self.json, report, &tables)
    }

    fn run_all(
        &self,
        texts: &[Text],
        name: &str,
        folder: &Path,
        last: &mut Vec<Ran>,
        desk: &mut Desk<'_>,
    ) -> Result<()> {
        if name != "all" && texts.len() != 1 {
            let why = format!(
                "several texts have figures: say whose figure {name} is, such as: lab figures T --run {name}"
            );
            return Err(Error::Given { why });
        }
        let store = self.store.as_deref().map(std::path::absolute).transpose();
        let store = store.map_err(|error| Error::Given {
            why: format!("cannot find --store: {error}"),
        })?;
        let bench = Bench {
            folder,
            store: store.as_deref(),
            quick: self.quick,
        };
        for text in texts {
            for figure in text.named(name)? {
                if name == "all" && figure.command.is_none() {
                    continue;
                }
                desk.progress(&format!("figure {} {}", text.rows, figure.name));
                let ran = bench.run(&text.rows, figure, desk)?;
                if let Some(why) = &ran.failed {
                    desk.progress(&format!("figure {} {}: {why}", text.rows, figure.name));
                }
                last.retain(|other| other.figure != ran.figure);
                last.push(ran);
                // At once: what was run is not lost if the next one is interrupted.
                write_last(folder, last)?;
            }
        }
        Ok(())
    }
}

fn read_last(folder: &Path) -> Result<Vec<Ran>> {
    let path = folder.join(LAST);
    match std::fs::read_to_string(&path) {
        Ok(text) => json::read(&text, &format!("{}, which can be removed", path.display())),
        Err(_) => Ok(vec![]),
    }
}

fn write_last(folder: &Path, last: &[Ran]) -> Result<()> {
    let failed = |source| Error::Write {
        path: folder.join(LAST),
        source,
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let text = json::write(&last)?;
    std::fs::write(folder.join(LAST), text).map_err(failed)
}
