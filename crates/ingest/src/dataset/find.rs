//! Finds the files that a path, a pattern or a folder of partitions stands for.

use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result};
use crate::options::Options;

/// The value that stands for NULL in the name of a folder.
const NULL_KEY: &str = "__HIVE_DEFAULT_PARTITION__";

/// A file that is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its path, as far as it was given.
    pub path: PathBuf,
    /// Keys and values of the folders `key=value` it lies in, outermost first; a value of `None` is NULL.
    pub keys: Vec<(String, Option<String>)>,
}

/// Whether `name` has characters of a pattern: `*`, `?` or `[`.
pub fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// The files that `names` stand for: those of a pattern in the order of their names.
///
/// A name that is that of a file stands for it, whatever characters it has. A folder stands for the files below it
/// if it has folders `key=value`.
pub(crate) fn find(names: &[PathBuf], options: &Options) -> Result<Vec<Found>> {
    let (mut found, mut several) = (vec![], false);
    for name in names {
        let (paths, many) = paths(name)?;
        several |= many;
        found.extend(paths);
    }
    if found.is_empty() {
        return Err(Error::Options(
            "no file was given; name at least one".into(),
        ));
    }
    let keyed: Vec<Found> = found
        .into_iter()
        .map(|path| Found {
            keys: keys(&path),
            path,
        })
        .collect();
    let wanted = match options.hive {
        Some(wanted) => wanted,
        None => several && alike(&keyed) && !keyed[0].keys.is_empty(),
    };
    if !wanted {
        let plain = keyed.into_iter().map(|file| Found {
            keys: vec![],
            ..file
        });
        return Ok(plain.collect());
    }
    if !alike(&keyed) {
        let odd = keyed
            .iter()
            .find(|file| !alike(&[keyed[0].clone(), (*file).clone()]));
        let path = odd.map_or(&keyed[0].path, |file| &file.path);
        return Err(Error::file(
            path,
            "lies in folders key=value of other keys than the other files; name fewer files",
        ));
    }
    Ok(keyed)
}

/// Whether all files have the same keys, in any order.
fn alike(files: &[Found]) -> bool {
    let names = |file: &Found| {
        let mut names: Vec<String> = file
            .keys
            .iter()
            .map(|(key, _)| key.to_lowercase())
            .collect();
        names.sort();
        names
    };
    files
        .windows(2)
        .all(|pair| names(&pair[0]) == names(&pair[1]))
}

/// The files of one name, and whether there may be more than one.
fn paths(name: &Path) -> Result<(Vec<PathBuf>, bool)> {
    let text = name.to_string_lossy();
    if text.contains("://") && !text.starts_with("file://") {
        return Err(Error::file(
            name,
            "is not on this machine; only local files are read",
        ));
    }
    let name = match text.strip_prefix("file://") {
        Some(local) => PathBuf::from(local),
        None => name.to_owned(),
    };
    if name.as_os_str() == "-" {
        return Ok((vec![name], false));
    }
    match std::fs::metadata(&name) {
        Ok(there) if there.is_dir() => {
            let mut files = vec![];
            if has_keys(&name)? {
                walk(&name, &mut files)?;
            }
            if files.is_empty() {
                return Err(Error::file(
                    &name,
                    format!(
                        "is a directory; name a file, or a pattern such as '{}/*.parquet'",
                        name.display()
                    ),
                ));
            }
            files.sort();
            Ok((files, true))
        }
        Ok(_) => Ok((vec![name], false)),
        Err(_) if is_pattern(&name.to_string_lossy()) => matching(&name),
        Err(error) => Err(Error::io(&name, &error)),
    }
}

/// The files that a pattern matches; hidden ones only if it says so.
fn matching(pattern: &Path) -> Result<(Vec<PathBuf>, bool)> {
    let text = pattern.to_string_lossy();
    let options = glob::MatchOptions {
        case_sensitive: true,
        require_literal_separator: true,
        require_literal_leading_dot: true,
    };
    let all = glob::glob_with(&text, options).map_err(|error| {
        Error::file(
            pattern,
            format!("is no pattern ({error}); `*`, `?`, `[ab]` and `**` are known"),
        )
    })?;
    let mut files = vec![];
    for path in all {
        let path = path.map_err(|error| Error::io(error.path(), error.error()))?;
        if !path.is_dir() {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(Error::file(pattern, "no file matches; check the pattern"));
    }
    Ok((files, true))
}

/// Whether a folder has folders `key=value`.
fn has_keys(folder: &Path) -> Result<bool> {
    let entries = std::fs::read_dir(folder).map_err(|error| Error::io(folder, &error))?;
    let mut names = entries.filter_map(|entry| entry.ok());
    Ok(names
        .any(|entry| key(&entry.file_name().to_string_lossy()).is_some() && entry.path().is_dir()))
}

/// All files below a folder but hidden ones and those that start with `_`, as writers leave behind.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder).map_err(|error| Error::io(folder, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| Error::io(folder, &error))?;
        let name = entry.file_name();
        if name.to_string_lossy().starts_with(['.', '_']) {
            continue;
        }
        let kind = entry
            .file_type()
            .map_err(|error| Error::io(&entry.path(), &error))?;
        // A link to a folder could lead back here.
        if kind.is_dir() {
            walk(&entry.path(), files)?;
        } else if !entry.path().is_dir() {
            files.push(entry.path());
        }
    }
    Ok(())
}

fn key(name: &str) -> Option<(&str, &str)> {
    name.split_once('=').filter(|(key, _)| !key.is_empty())
}

/// The keys of the folders that a file lies in.
fn keys(path: &Path) -> Vec<(String, Option<String>)> {
    let folders = path.parent().into_iter().flat_map(Path::components);
    let names = folders.filter_map(|component| match component {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let pairs = names.filter_map(key);
    let mut keys: Vec<(String, Option<String>)> = vec![];
    for (key, value) in pairs {
        let value = (value != NULL_KEY).then(|| decoded(value));
        match keys.iter_mut().find(|(known, _)| known == key) {
            // The innermost of folders with the same key counts.
            Some(known) => known.1 = value,
            None => keys.push((key.to_owned(), value)),
        }
    }
    keys
}

/// `%20` and the like as what they stand for; other text as it is.
fn decoded(value: &str) -> String {
    let (mut bytes, mut rest) = (vec![], value.as_bytes());
    while let [first, after @ ..] = rest {
        let digits = (*first == b'%').then(|| after.get(..2)).flatten();
        let byte = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        folder
    }

    fn names(folder: &tempfile::TempDir, pattern: &str) -> Result<Vec<String>> {
        let found = find(&[folder.path().join(pattern)], &Options::default())?;
        let name = |file: &Found| {
            let name = file.path.strip_prefix(folder.path()).unwrap();
            name.display().to_string()
        };
        Ok(found.iter().map(name).collect())
    }

    #[test]
    fn patterns_match_and_brackets_are_names_where_there_is_such_a_file() {
        let folder = folder(&[
            "b.csv",
            "a.csv",
            "a[1].csv",
            "a1.csv",
            ".hidden.csv",
            "deep/er/c.csv",
            "d.parquet",
        ]);
        assert_eq!(
            names(&folder, "*.csv").unwrap(),
            ["a.csv", "a1.csv", "a[1].csv", "b.csv"]
        );
        assert_eq!(names(&folder, "a[1].csv").unwrap(), ["a[1].csv"]);
        assert_eq!(names(&folder, "[ab].csv").unwrap(), ["a.csv", "b.csv"]);
        assert_eq!(names(&folder, "**/c.csv").unwrap(), ["deep/er/c.csv"]);
        assert_eq!(
            names(&folder, "?.*").unwrap(),
            ["a.csv", "b.csv", "d.parquet"]
        );
        for wrong in ["*.json", "missing.csv", "a[.csv", ""] {
            assert!(names(&folder, wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn folders_of_keys_are_columns() {
        let folder = folder(&[
            "y=2024/m=1/a.csv",
            "y=2023/m=12/b.csv",
            "y=2023/m=__HIVE_DEFAULT_PARTITION__/_tmp",
            "y=2023/m=a%20b/c.csv",
        ]);
        let root = folder.path().to_owned();
        for name in [root.clone(), root.join("**/*.csv"), root.join("*/*/*.csv")] {
            let found = find(&[name], &Options::default()).unwrap();
            let keys: Vec<_> = found
                .iter()
                .map(|file| file.keys[1].1.clone().unwrap())
                .collect();
            assert_eq!(keys, ["12", "a b", "1"]);
            assert_eq!(found[0].keys[0], ("y".to_owned(), Some("2023".to_owned())));
        }
        // One file that is named is what it is, unless it is asked for.
        let one = root.join("y=2024/m=1/a.csv");
        assert!(
            find(std::slice::from_ref(&one), &Options::default()).unwrap()[0]
                .keys
                .is_empty()
        );
        let hive = Options {
            hive: Some(true),
            ..Options::default()
        };
        assert_eq!(find(&[one], &hive).unwrap()[0].keys.len(), 2);
    }

    #[test]
    fn keys_must_be_alike_where_they_are_asked_for() {
        let folder = folder(&["y=1/a.csv", "m=1/b.csv"]);
        let pattern = [folder.path().join("*/*.csv")];
        assert!(
            find(&pattern, &Options::default()).unwrap()[0]
                .keys
                .is_empty()
        );
        let hive = Options {
            hive: Some(true),
            ..Options::default()
        };
        assert!(find(&pattern, &hive).is_err());
    }
}
