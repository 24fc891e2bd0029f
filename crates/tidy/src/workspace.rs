//! The members of the workspace, their source files and what these import.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::circles::circles;
use crate::error::Error;
use crate::module::Modules;

/// The crates of a workspace, in the order in which its `Cargo.toml` names them.
#[derive(Debug)]
pub struct Workspace {
    /// The crates.
    pub members: Vec<Member>,
    /// The names under `workspace.dependencies`, which the crates may choose from.
    pub dependencies: BTreeSet<String>,
}

/// A crate of the workspace.
#[derive(Debug)]
pub struct Member {
    /// The crate's name.
    pub name: String,
    /// The crates that it depends on, by the names in its `Cargo.toml`; what only its tests need is not among them.
    pub dependencies: BTreeSet<String>,
    /// The crates that only its tests, examples and benchmarks depend on.
    pub test_dependencies: BTreeSet<String>,
    /// The crates that its `build.rs` depends on.
    pub build_dependencies: BTreeSet<String>,
    /// The source files of its library, or of its program if it has no library.
    pub files: Vec<SourceFile>,
    /// Every Rust file of the crate, tests and examples too: path from the crate's folder, and lines.
    pub lines: Vec<(String, usize)>,
    /// The text of every Rust file of the crate, tests and examples too: path from the crate's folder, and text.
    pub texts: Vec<(String, String)>,
}

/// A source file of a crate.
#[derive(Debug)]
pub struct SourceFile {
    /// The path from the crate's `src` folder, `operators/sort.rs`.
    pub path: String,
    /// Numbers of the files of the same crate that define what this one names.
    pub imports: Vec<usize>,
}

impl Workspace {
    /// Reads the workspace in the folder `root`.
    ///
    /// # Errors
    /// [`Error`] if a file cannot be read or understood.
    pub fn read(root: &Path) -> Result<Self, Error> {
        let manifest = toml_of(&root.join("Cargo.toml"))?;
        let members = manifest["workspace"]["members"]
            .as_array()
            .into_iter()
            .flatten();
        let members = members
            .filter_map(toml::Value::as_str)
            .map(|member| Member::read(&root.join(member)));
        Ok(Self {
            members: members.collect::<Result<_, _>>()?,
            dependencies: depends_on(&manifest["workspace"], "dependencies"),
        })
    }
}

impl Member {
    fn read(folder: &Path) -> Result<Self, Error> {
        let manifest = toml_of(&folder.join("Cargo.toml"))?;
        let name = manifest["package"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let library = folder.join("src/lib.rs");
        let root = if library.exists() {
            library
        } else {
            folder.join("src/main.rs")
        };
        let mut paths = Vec::new();
        rust_files(folder, &mut paths)?;
        paths.sort();
        let (mut lines, mut texts) = (Vec::new(), Vec::new());
        for path in paths {
            let text =
                fs::read_to_string(&path).map_err(|error| Error::Read(path.clone(), error))?;
            let name = relative(&path, folder);
            lines.push((name.clone(), text.lines().count()));
            texts.push((name, text));
        }
        Ok(Self {
            name,
            dependencies: depends_on(&manifest, "dependencies"),
            test_dependencies: depends_on(&manifest, "dev-dependencies"),
            build_dependencies: depends_on(&manifest, "build-dependencies"),
            files: source_files(&root)?,
            lines,
            texts,
        })
    }

    /// The circles of imports between the crate's files, largest first, each a list of paths.
    pub fn circles(&self) -> Vec<Vec<&str>> {
        let edges: Vec<_> = self.files.iter().map(|file| file.imports.clone()).collect();
        let named = |circle: Vec<usize>| {
            circle
                .into_iter()
                .map(|file| self.files[file].path.as_str())
                .collect()
        };
        circles(&edges).into_iter().map(named).collect()
    }
}

/// The names in the table `kind` of a `Cargo.toml`, and in that of each platform.
fn depends_on(manifest: &toml::Value, kind: &str) -> BTreeSet<String> {
    let platforms = manifest.get("target").and_then(toml::Value::as_table);
    let platforms = platforms.into_iter().flat_map(toml::Table::values);
    let tables = platforms
        .chain([manifest])
        .filter_map(|table| table.get(kind));
    let names = tables
        .filter_map(toml::Value::as_table)
        .flat_map(toml::Table::keys);
    names.cloned().collect()
}

fn source_files(root: &Path) -> Result<Vec<SourceFile>, Error> {
    let modules = Modules::read(root)?;
    let folder = root.parent().unwrap_or(root);
    let mut imports = vec![BTreeSet::new(); modules.files.len()];
    for (number, module) in modules.all.iter().enumerate() {
        for path in &module.paths {
            let target = modules
                .resolve(number, path)
                .filter(|&target| target != module.file);
            imports[module.file].extend(target);
        }
    }
    let files = modules.files.iter().zip(imports);
    Ok(files
        .map(|(path, imports)| SourceFile {
            path: relative(path, folder),
            imports: imports.into_iter().collect(),
        })
        .collect())
}

fn relative(path: &Path, folder: &Path) -> String {
    path.strip_prefix(folder)
        .unwrap_or(path)
        .to_string_lossy()
        .into_owned()
}

fn toml_of(path: &Path) -> Result<toml::Value, Error> {
    let text = fs::read_to_string(path).map_err(|error| Error::Read(path.into(), error))?;
    toml::from_str(&text).map_err(|error| Error::Toml(path.into(), error))
}

/// Adds the Rust files below `folder` to `found`.
fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    let unread = |error| Error::Read(folder.into(), error);
    for entry in fs::read_dir(folder).map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        if path.is_dir() {
            rust_files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}
