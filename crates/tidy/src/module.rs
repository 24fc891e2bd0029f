//! The modules of a crate, read from its source files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree};

use crate::error::Error;

/// A module: a file of its own, or a `mod name { }` within one.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// The file, as a number into [`Files::paths`].
    pub file: usize,
    pub parent: Option<usize>,
    pub children: BTreeMap<String, usize>,
    /// What `use` names here: local name to path, as it was written.
    pub uses: BTreeMap<String, Vec<String>>,
    /// The modules all of whose public names are here (`use path::*`).
    pub globs: Vec<Vec<String>>,
    /// Names of items that are defined here.
    pub items: BTreeSet<String>,
    /// Every path in code and in `use` that could name another module.
    pub paths: BTreeSet<Vec<String>>,
}

/// The modules of one crate; the first is its root. Modules under `#[cfg(test)]` are left out.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    pub all: Vec<Module>,
    /// The source files, in the order in which they were read.
    pub files: Vec<PathBuf>,
}

impl Modules {
    /// Reads the crate whose root is the file `root`.
    pub fn read(root: &Path) -> Result<Self, Error> {
        let mut modules = Self::default();
        let folder = root.parent().unwrap_or(root).to_path_buf();
        modules.read_file(root, &folder, None)?;
        Ok(modules)
    }

    /// Reads `path`, whose `mod name;` are looked for in `folder`; returns the module's number.
    fn read_file(
        &mut self,
        path: &Path,
        folder: &Path,
        parent: Option<usize>,
    ) -> Result<usize, Error> {
        let text = fs::read_to_string(path).map_err(|error| Error::Read(path.into(), error))?;
        let parsed = syn::parse_file(&text).map_err(|error| Error::Parse(path.into(), error))?;
        self.files.push(path.into());
        let file = self.files.len() - 1;
        self.read_items(&parsed.items, file, folder, parent)
    }

    fn read_items(
        &mut self,
        items: &[Item],
        file: usize,
        folder: &Path,
        parent: Option<usize>,
    ) -> Result<usize, Error> {
        let number = self.all.len();
        self.all.push(Module {
            file,
            parent,
            ..Module::default()
        });
        for item in items {
            if let Item::Mod(module) = item {
                if is_test(&module.attrs) {
                    continue;
                }
                let name = module.ident.to_string();
                let child = match &module.content {
                    Some((_, items)) => {
                        self.read_items(items, file, &folder.join(&name), Some(number))?
                    }
                    None => self.read_child(&name, folder, number)?,
                };
                self.all[number].children.insert(name, child);
            } else {
                self.all[number].take(item);
            }
        }
        Ok(number)
    }

    fn read_child(&mut self, name: &str, folder: &Path, parent: usize) -> Result<usize, Error> {
        let inner = folder.join(name);
        let beside = folder.join(format!("{name}.rs"));
        let path = if beside.exists() {
            beside
        } else {
            inner.join("mod.rs")
        };
        self.read_file(&path, &inner, Some(parent))
    }

    /// The file that defines what `path` names when it stands in module `from`; none if that is another crate.
    pub fn resolve(&self, from: usize, path: &[String]) -> Option<usize> {
        self.find(from, path, 16)
            .map(|module| self.all[module].file)
    }

    /// The module that defines what `path` names; re-exports are followed, `depth` of them at most.
    fn find(&self, from: usize, path: &[String], depth: usize) -> Option<usize> {
        let (first, rest) = path.split_first()?;
        let module = match first.as_str() {
            "crate" => 0,
            "self" => from,
            "super" => self.all[from].parent?,
            name => *self.all[from].children.get(name)?,
        };
        self.descend(module, rest, depth)
    }

    fn descend(&self, module: usize, rest: &[String], depth: usize) -> Option<usize> {
        let Some((name, after)) = rest.split_first() else {
            return Some(module);
        };
        let here = &self.all[module];
        if name == "super" {
            return self.descend(here.parent?, after, depth);
        }
        if let Some(&child) = here.children.get(name) {
            return self.descend(child, after, depth);
        }
        if here.items.contains(name) || depth == 0 {
            return Some(module);
        }
        if let Some(target) = here.uses.get(name) {
            let target: Vec<String> = target.iter().chain(after).cloned().collect();
            return self.find(module, &target, depth - 1);
        }
        let through = here.globs.iter().find_map(|glob| {
            let inner = self.find(module, glob, depth - 1)?;
            let known = &self.all[inner];
            let there = known.items.contains(name) || known.children.contains_key(name);
            there
                .then(|| self.descend(inner, rest, depth - 1))
                .flatten()
        });
        through.or(Some(module))
    }
}

impl Module {
    /// Notes what `item` defines, re-exports and names.
    fn take(&mut self, item: &Item) {
        let name = match item {
            Item::Use(item) => {
                self.take_use(&item.tree, &mut Vec::new());
                return;
            }
            Item::Const(item) => Some(&item.ident),
            Item::Enum(item) => Some(&item.ident),
            Item::Fn(item) => Some(&item.sig.ident),
            Item::Macro(item) => item.ident.as_ref(),
            Item::Static(item) => Some(&item.ident),
            Item::Struct(item) => Some(&item.ident),
            Item::Trait(item) => Some(&item.ident),
            Item::TraitAlias(item) => Some(&item.ident),
            Item::Type(item) => Some(&item.ident),
            Item::Union(item) => Some(&item.ident),
            _ => None,
        };
        self.items.extend(name.map(ToString::to_string));
        Paths(&mut self.paths).visit_item(item);
    }

    fn take_use(&mut self, tree: &UseTree, before: &mut Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.take_use(&path.tree, before);
                before.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.take_use(tree, before);
                }
            }
            UseTree::Glob(_) => {
                self.paths.insert(before.clone());
                self.globs.push(before.clone());
            }
            UseTree::Name(name) => self.take_name(before, &name.ident, &name.ident),
            UseTree::Rename(name) => self.take_name(before, &name.ident, &name.rename),
        }
    }

    fn take_name(&mut self, before: &[String], name: &syn::Ident, local: &syn::Ident) {
        let mut path = before.to_vec();
        let itself = name == "self";
        if !itself {
            path.push(name.to_string());
        }
        let local = if itself && local == "self" {
            path.last().cloned()
        } else {
            Some(local.to_string())
        };
        self.paths.insert(path.clone());
        if let Some(local) = local {
            self.uses.insert(local, path);
        }
    }
}

/// Collects the paths of code.
struct Paths<'a>(&'a mut BTreeSet<Vec<String>>);

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.0.insert(
                path.segments
                    .iter()
                    .map(|segment| segment.ident.to_string())
                    .collect(),
            );
        }
        visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let list = attribute.meta.require_list();
        attribute.path().is_ident("cfg")
            && list.is_ok_and(|list| {
                list.tokens
                    .to_string()
                    .split(|c: char| !c.is_alphanumeric())
                    .any(|word| word == "test")
            })
    })
}
