//! Prints the circles of imports between files, crate by crate, and the files that are too long.

use std::io::{self, Write};
use std::process::ExitCode;

use tidy::{Walls, Workspace};

fn main() -> ExitCode {
    match print(&mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tidy: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print(out: &mut impl Write) -> Result<(), Box<dyn std::error::Error>> {
    let root = tidy::root();
    let workspace = Workspace::read(&root)?;
    let walls = Walls::read(&root.join("crates/tidy/walls.toml"))?;
    writeln!(
        out,
        "{:<14} {:>6} {:>8} {:>10} {:>8}  circles of files",
        "crate", "files", "lines", "in circles", "longest"
    )?;
    let mut total = [0; 3];
    for member in &workspace.members {
        let circles = member.circles();
        let inside: usize = circles.iter().map(Vec::len).sum();
        let lines: usize = member.lines.iter().map(|(_, lines)| lines).sum();
        let longest = member
            .lines
            .iter()
            .map(|(_, lines)| *lines)
            .max()
            .unwrap_or(0);
        let sizes: Vec<String> = circles
            .iter()
            .map(|circle| circle.len().to_string())
            .collect();
        writeln!(
            out,
            "{:<14} {:>6} {lines:>8} {inside:>10} {longest:>8}  {}",
            member.name,
            member.lines.len(),
            sizes.join(" + "),
        )?;
        total = [
            total[0] + member.lines.len(),
            total[1] + lines,
            total[2] + inside,
        ];
    }
    writeln!(
        out,
        "{:<14} {:>6} {:>8} {:>10}",
        "all", total[0], total[1], total[2]
    )?;
    for member in &workspace.members {
        for circle in member.circles() {
            writeln!(
                out,
                "\n{}, {} files: {}",
                member.name,
                circle.len(),
                circle.join(" ")
            )?;
        }
    }
    let broken = walls.broken(&workspace);
    for wall in &broken {
        writeln!(out, "\n{wall}")?;
    }
    Ok(())
}
