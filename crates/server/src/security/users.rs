//! The file of users: a line for each, `name:SCRAM-SHA-256$rounds:salt$stored:server`. Passwords are not in it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::error::{Error, Result};
use scram::Verifier;

/// Users, and what is kept of their passwords.
#[derive(Clone, Debug, Default)]
pub(crate) struct Users(BTreeMap<String, Verifier>);

impl Users {
    /// Reads a file of users. Empty lines, and those that begin with `#`, are nothing.
    ///
    /// # Errors
    /// [`Error::File`] if it cannot be read, others may read it, or a line is none of a user.
    pub(crate) fn read(path: &Path) -> Result<Users> {
        let wrong = |line, reason: &str| Error::File {
            path: path.to_path_buf(),
            line,
            reason: reason.to_string(),
        };
        let text = fs::read_to_string(path).map_err(|e| wrong(None, &e.to_string()))?;
        let mode = fs::metadata(path).map_err(|e| wrong(None, &e.to_string()))?;
        if mode.permissions().mode() & 0o077 != 0 {
            return Err(wrong(
                None,
                "others than its owner may use this file of verifiers; `chmod 600` it",
            ));
        }
        let mut users = BTreeMap::new();
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let user = line.split_once(':');
            let Some((name, Some(verifier))) =
                user.map(|(name, text)| (name, Verifier::read(text.trim())))
            else {
                return Err(wrong(
                    Some(at + 1),
                    "expected name:SCRAM-SHA-256$..., as `atoll serve --add-user` writes it",
                ));
            };
            if users.insert(name.to_string(), verifier).is_some() {
                return Err(wrong(Some(at + 1), "this user is there twice"));
            }
        }
        Ok(Users(users))
    }

    /// The verifier of a user.
    pub(crate) fn get(&self, name: &str) -> Option<&Verifier> {
        self.0.get(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// Writes a user to the file, which is made if it is not there; a user of that name gets the new password.
///
/// # Errors
/// [`Error::Options`] for a name or a password that cannot be; [`Error::File`].
pub fn add_user(path: &Path, name: &str, password: &str) -> Result<()> {
    let plain = !name.is_empty() && name.len() < 64;
    if !plain || name.starts_with('#') || name.contains(|c: char| c == ':' || c.is_control()) {
        return Err(Error::Options(format!(
            "{name:?} cannot name a user: 1 to 63 bytes, without a colon, no # at the start"
        )));
    }
    // Clients change others before they use them, each in its own way.
    if password.is_empty() || !password.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        return Err(Error::Options(
            "a password has one character at least, and none but those of ASCII that are printed"
                .into(),
        ));
    }
    let mut users = if path.exists() {
        Users::read(path)?
    } else {
        Users::default()
    };
    let verifier = Verifier::new(password).map_err(Error::System)?;
    users.0.insert(name.to_string(), verifier);
    let mut text =
        String::from("# Users of `atoll serve`: verifiers, from which no password can be read.\n");
    for (name, verifier) in &users.0 {
        text.push_str(&format!("{name}:{}\n", verifier.text()));
    }
    // In another file first: the users that there are must not be lost in the middle.
    let beside = path.with_extension("new");
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())
                .and_then(|()| file.sync_all())
        })
        .and_then(|()| fs::rename(&beside, path));
    written.map_err(|e| Error::File {
        path: path.to_path_buf(),
        line: None,
        reason: e.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_added_and_changed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("users");
        add_user(&path, "ann", "one").unwrap();
        add_user(&path, "bob", "two").unwrap();
        let first = Users::read(&path).unwrap().get("ann").cloned();
        add_user(&path, "ann", "three").unwrap();
        let users = Users::read(&path).unwrap();
        assert_eq!(users.names().collect::<Vec<_>>(), ["ann", "bob"]);
        assert_ne!(users.get("ann").cloned(), first);
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("three"), "{text}");
        assert!(add_user(&path, "a:b", "x").is_err());
        assert!(add_user(&path, "c", "").is_err());
    }

    #[test]
    fn files_that_others_read_or_that_are_no_users_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("users");
        add_user(&path, "ann", "one").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(
            Users::read(&path)
                .unwrap_err()
                .to_string()
                .contains("chmod 600")
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "# users\n\nann:secret\n").unwrap();
        let error = Users::read(&path).unwrap_err().to_string();
        assert!(error.contains(":3: expected name:SCRAM"), "{error}");
    }
}
