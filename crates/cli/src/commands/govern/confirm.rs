//! Who governs by name as root is shown first whose processes these are.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::{anyhow, bail};
use governor_live::{Error, Named, Target, is_root};

use crate::commands::govern::options::Govern;

/// Shows the processes of each name and asks whether they are to be governed, if this is root and nothing else was said. A user
/// reaches no processes but the own ones.
///
/// # Errors
/// If the answer is no, or nobody is there to answer.
pub fn confirmed(args: &Govern, targets: &[Target]) -> anyhow::Result<()> {
    if args.yes || args.dry_run || !is_root() {
        return Ok(());
    }
    for target in targets {
        let Target::Name(name) = target else { continue };
        match governor_live::named(name) {
            Ok(found) => confirm(name, &found)?,
            // Who begins to govern tells.
            Err(Error::NoTarget { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Processes that are named in one line.
const NAMED: usize = 4;

fn confirm(name: &str, found: &[Named]) -> anyhow::Result<()> {
    if !std::io::stdin().is_terminal() {
        let first: Vec<String> = found.iter().take(NAMED).map(Named::to_string).collect();
        let more = match found.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        bail!(
            "root would govern what others run under the name {name} ({}{more}): give --yes if that is meant, or one of them by --pid",
            first.join("; ")
        );
    }
    let mut err = std::io::stderr().lock();
    writeln!(err, "atoll: of the name {name} there are")?;
    for one in found {
        writeln!(err, "    {one}")?;
    }
    write!(err, "Govern them? [y/N] ")?;
    err.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(anyhow!("nothing is governed, as that was not wanted")),
    }
}
