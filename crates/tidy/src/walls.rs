//! The walls of the workspace: which crate may use which, how the folders of a crate are layered, which words may
//! stand in which crate only, and how long a file may be.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::error::Error;
use crate::unused::{unchosen, unused};
use crate::words::Words;
use crate::workspace::{Member, Workspace};

/// What `walls.toml` says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Walls {
    /// The longest file, in lines.
    longest_file: usize,
    /// By crate: the crates of the workspace that it may use.
    crates: BTreeMap<String, Vec<String>>,
    /// By crate: its layers from the top down, each a list of folders or files under `src`, without `.rs`. What
    /// stands in a layer may use its own layer and those below.
    layers: BTreeMap<String, Vec<Vec<String>>>,
    /// By crate: the most files that circles of imports may have together.
    circles: BTreeMap<String, usize>,
    /// Words that only some crates or files may say.
    words: Vec<Words>,
    /// By crate: what it depends on without naming it, and why.
    unnamed: BTreeMap<String, BTreeMap<String, String>>,
}

/// A wall that is broken, as a sentence.
#[derive(Debug)]
pub struct Wall(String);

impl fmt::Display for Wall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Walls {
    /// Reads `path`.
    ///
    /// # Errors
    /// [`Error`] if it cannot be read or understood.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path).map_err(|error| Error::Read(path.into(), error))?;
        toml::from_str(&text).map_err(|error| Error::Toml(path.into(), error))
    }

    /// The walls that `workspace` breaks.
    pub fn broken(&self, workspace: &Workspace) -> Vec<Wall> {
        let names: Vec<&str> = workspace
            .members
            .iter()
            .map(|member| member.name.as_str())
            .collect();
        let mut broken = Vec::new();
        for member in &workspace.members {
            self.edges(member, &names, &mut broken);
            self.circles(member, &mut broken);
            self.layers(member, &mut broken);
            self.lengths(member, &mut broken);
            let none = BTreeMap::new();
            let unnamed = self.unnamed.get(&member.name).unwrap_or(&none);
            broken.extend(unused(member, unnamed).into_iter().map(Wall));
        }
        broken.extend(unchosen(workspace).into_iter().map(Wall));
        let words = self.words.iter();
        broken.extend(words.flat_map(|words| words.broken(workspace)).map(Wall));
        broken
    }

    fn edges(&self, member: &Member, names: &[&str], broken: &mut Vec<Wall>) {
        let Some(allowed) = self.crates.get(&member.name) else {
            broken.push(Wall(format!(
                "crate {} does not stand in walls.toml",
                member.name
            )));
            return;
        };
        let ours = member
            .dependencies
            .iter()
            .filter(|name| names.contains(&name.as_str()));
        for other in ours.clone().filter(|name| !allowed.contains(name)) {
            broken.push(Wall(format!(
                "crate {} uses {other}: walls.toml has no such edge",
                member.name
            )));
        }
        for gone in allowed
            .iter()
            .filter(|name| !ours.clone().any(|other| other == *name))
        {
            broken.push(Wall(format!(
                "crate {} no longer uses {gone}: remove the edge from walls.toml",
                member.name
            )));
        }
    }

    fn circles(&self, member: &Member, broken: &mut Vec<Wall>) {
        let circles = member.circles();
        let found: usize = circles.iter().map(Vec::len).sum();
        let allowed = self.circles.get(&member.name).copied().unwrap_or(0);
        if found > allowed {
            let circles: Vec<String> = circles.iter().map(|circle| circle.join(" ")).collect();
            broken.push(Wall(format!(
                "crate {}: {found} files import each other in circles, {allowed} may: {}",
                member.name,
                circles.join("; ")
            )));
        } else if found < allowed {
            broken.push(Wall(format!(
                "crate {}: {found} files import each other in circles, fewer than the {allowed} of walls.toml: lower it",
                member.name
            )));
        }
    }

    fn layers(&self, member: &Member, broken: &mut Vec<Wall>) {
        let Some(layers) = self.layers.get(&member.name) else {
            return;
        };
        let layer = |path: &str| {
            let within = |name: &String| {
                path == format!("{name}.rs") || path.starts_with(&format!("{name}/"))
            };
            layers.iter().position(|names| names.iter().any(within))
        };
        for file in member.files.iter().filter(|file| file.path != "lib.rs") {
            let Some(own) = layer(&file.path) else {
                broken.push(Wall(format!(
                    "{}/src/{} stands in no layer of walls.toml",
                    member.name, file.path
                )));
                continue;
            };
            for &import in &file.imports {
                let other = &member.files[import].path;
                if other == "lib.rs" || layer(other).is_some_and(|other| other < own) {
                    broken.push(Wall(format!(
                        "{}/src/{} imports {other}, a layer above it",
                        member.name, file.path
                    )));
                }
            }
        }
    }

    fn lengths(&self, member: &Member, broken: &mut Vec<Wall>) {
        for (path, lines) in member
            .lines
            .iter()
            .filter(|(_, lines)| *lines > self.longest_file)
        {
            let most = self.longest_file;
            broken.push(Wall(format!(
                "{}/{path} has {lines} lines, {most} at most",
                member.name
            )));
        }
    }
}
