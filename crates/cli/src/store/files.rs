//! The files of stores: those of a folder, their size, removing them, and the error if one is missing.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use store::Dropped;

/// The most names that are suggested.
const SUGGESTED: usize = 3;

/// Whether there is no file of that name, as far as this user can see.
pub fn absent(path: &Path) -> bool {
    matches!(path.try_exists(), Ok(false))
}

/// Prints a note on commits at the end of the log that opening the store has dropped.
pub fn tell_dropped(dropped: &Option<Dropped>) {
    if let Some(dropped) = dropped {
        eprintln!("note: {dropped}");
    }
}

/// The log file of a store.
fn log_of(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(".log");
    name.into()
}

/// Bytes of a store's files.
pub fn bytes(store: &Path) -> u64 {
    let size = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    size(store) + size(&log_of(store))
}

/// Removes a store's files; what cannot be removed stays.
pub fn remove(store: &Path) {
    let _ = fs::remove_file(store);
    let _ = fs::remove_file(log_of(store));
}

/// The folder of a store: on its disk, not in memory as the system's temporary folder may be.
pub fn folder(store: &Path) -> &Path {
    match store.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The error for a store that does not exist.
pub fn missing(path: &Path) -> anyhow::Error {
    let name = path.display();
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return anyhow!("{name}: there is no folder {}", folder.display());
    }
    let stores = stores(folder);
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    let near = nearest(&wanted, &stores);
    let list = |stores: &[&PathBuf]| {
        let names: Vec<_> = stores
            .iter()
            .map(|store| store.display().to_string())
            .collect();
        names.join(" or ")
    };
    match (near.as_slice(), stores.len()) {
        ([], 0) => anyhow!("{name}: there is no such store, and no other in its folder"),
        ([], count) if count > SUGGESTED => anyhow!("{name}: there is no such store"),
        ([], _) => {
            let all: Vec<_> = stores.iter().collect();
            anyhow!("{name}: there is no such store; there is {}", list(&all))
        }
        (near, _) => anyhow!(
            "{name}: there is no such store; did you mean {}?",
            list(near)
        ),
    }
}

/// The stores in a folder, by name; paths begin with the folder unless that is the present one.
pub fn stores(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut stores: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| store::is_store(path))
        .map(|path| match path.strip_prefix(".") {
            Ok(plain) => plain.to_owned(),
            Err(_) => path,
        })
        .collect();
    stores.sort();
    stores
}

/// The stores whose names are close to `wanted`, nearest first.
fn nearest<'a>(wanted: &str, stores: &'a [PathBuf]) -> Vec<&'a PathBuf> {
    let stem = |path: &Path| {
        let stem = path.file_stem().unwrap_or_default();
        stem.to_string_lossy().to_lowercase()
    };
    let (whole, wanted) = (wanted.to_lowercase(), stem(Path::new(wanted)));
    let count = wanted.chars().count();
    let most = (count / 3).max(1);
    let mut near: Vec<(usize, &PathBuf)> = stores
        .iter()
        .filter_map(|store| {
            let name = store.file_name()?.to_string_lossy().to_lowercase();
            let own = strsim::damerau_levenshtein(&whole, &name);
            // A name with another extension, or none, may mean this one.
            let distance = own.min(strsim::damerau_levenshtein(&wanted, &stem(store)));
            // Of a name of one letter nothing is left where that is another.
            let near = distance <= most && 2 * distance <= count;
            near.then_some((distance, store))
        })
        .collect();
    near.sort();
    near.truncate(SUGGESTED);
    near.into_iter().map(|(_, store)| store).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            fs::write(folder.path().join(name), b"ATOLL\r\n\0").unwrap();
        }
        fs::write(folder.path().join("sale.txt"), "no store").unwrap();
        folder
    }

    fn message(folder: &tempfile::TempDir, name: &str) -> String {
        let text = missing(&folder.path().join(name)).to_string();
        text.replace(&format!("{}/", folder.path().display()), "")
    }

    #[test]
    fn stores_near_by_are_suggested() {
        let some = folder(&[
            "sales.atoll",
            "reef.atoll",
            "tpch-1.atoll",
            "tpch-10.atoll",
            "x",
        ]);
        let meant = "there is no such store; did you mean";
        assert_eq!(
            message(&some, "slaes.atoll"),
            format!("slaes.atoll: {meant} sales.atoll?")
        );
        assert_eq!(
            message(&some, "sales"),
            format!("sales: {meant} sales.atoll?")
        );
        assert_eq!(
            message(&some, "SALES.db"),
            format!("SALES.db: {meant} sales.atoll?")
        );
        assert_eq!(message(&some, "fish.db"), "fish.db: there is no such store");
        assert_eq!(
            message(&some, "tpch-2.atoll"),
            format!("tpch-2.atoll: {meant} tpch-1.atoll or tpch-10.atoll?")
        );
        let short = folder(&["c.atoll", "e.atoll", "n.atoll", "tab.atoll"]);
        assert_eq!(
            message(&short, "f.atoll"),
            "f.atoll: there is no such store"
        );
        assert!(message(&short, "c").ends_with("did you mean c.atoll?"));
        assert!(message(&short, "tb.atoll").ends_with("did you mean tab.atoll?"));
        let one = folder(&["reef.atoll"]);
        assert_eq!(
            message(&one, "other.atoll"),
            "other.atoll: there is no such store; there is reef.atoll"
        );
        let none = folder(&[]);
        assert!(message(&none, "a").contains("no other in its folder"));
        assert!(message(&none, "none/a").contains("there is no folder"));
    }
}
