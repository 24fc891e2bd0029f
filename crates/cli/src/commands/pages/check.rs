//! `atoll pages STORE check`: reads every page, of whatever kind of store.

use std::cell::Cell;
use std::io::Write;

use anyhow::anyhow;
use store::Problem;

use crate::commands::pages::options::Asked;
use crate::failure::Failure;
use crate::terminal::{interrupt, out};
use crate::units;

/// Prints the problems that `verify` finds; `verify` reports its progress as pages done and pages in all.
pub fn run(
    args: &Asked,
    verify: impl FnOnce(&dyn Fn(u64, u64)) -> Result<Vec<Problem>, Failure>,
) -> Result<(), Failure> {
    let pages = Cell::new(0);
    let problems = verify(&|_, total| {
        pages.set(total);
        if interrupt::asked() {
            // A check writes nothing, so nothing is lost.
            std::process::exit(interrupt::STATUS);
        }
    })?;
    let mut out = out::stdout();
    if args.json {
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        let (store, pages) = (args.store.display().to_string(), pages.get());
        writeln!(
            out,
            "{}",
            serde_json::json!({ "store": store, "pages": pages, "problems": problems })
        )?;
    } else {
        for problem in &problems {
            writeln!(out, "{problem}")?;
        }
        writeln!(
            out,
            "{}: {} pages read",
            args.store.display(),
            units::count(pages.get())
        )?;
    }
    out.flush()?;
    match problems.len() {
        0 => Ok(()),
        found => Err(anyhow!(
            "{}: {found} problems found; load the data again, or restore a copy of the store and its log",
            args.store.display()
        )
        .into()),
    }
}
