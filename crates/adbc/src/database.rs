//! A database: one store, and how it is opened.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use adbc_core::Optionable;
use adbc_core::error::Result;
use adbc_core::options::{OptionConnection, OptionDatabase, OptionValue};
use atoll::Access;

use crate::connection::Connection;
use crate::error::{invalid, missing, state};
use crate::guard::caught;
use crate::option::{as_double, as_int, no_option, not_set, number, text, truth};
use crate::store::Store;

/// How a store is opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    uri: Option<PathBuf>,
    path: Option<PathBuf>,
    read_only: bool,
    no_create: bool,
    threads: Option<usize>,
    memory_limit: Option<u64>,
    pool: Option<u64>,
    lock_timeout: Option<u64>,
}

impl Settings {
    /// Sets an option.
    ///
    /// # Errors
    /// If there is no such option, or its value is wrong.
    pub(crate) fn set(&mut self, key: &OptionDatabase, value: &OptionValue) -> Result<()> {
        let name = key.as_ref();
        match key {
            OptionDatabase::Uri => self.uri = Some(path_of_uri(&text(name, value)?)?),
            OptionDatabase::Username | OptionDatabase::Password => {
                return Err(missing(format!(
                    "{name}: a store that the program opens itself has no users; leave the option away"
                )));
            }
            OptionDatabase::Other(other) => match other.as_str() {
                "path" => self.path = Some(given_path(name, text(name, value)?)?),
                "atoll.read_only" => self.read_only = truth(name, value)?,
                "atoll.create" => self.no_create = !truth(name, value)?,
                "atoll.threads" => self.threads = Some(number(name, value)? as usize),
                "atoll.memory_limit" => self.memory_limit = Some(number(name, value)?),
                "atoll.pool" => self.pool = Some(number(name, value)?),
                "atoll.lock_timeout" => self.lock_timeout = Some(number(name, value)?),
                _ => return Err(no_option("databases", name)),
            },
            _ => return Err(no_option("databases", name)),
        }
        Ok(())
    }

    /// The file that the options name.
    fn file(&self) -> Result<Option<&PathBuf>> {
        match (&self.uri, &self.path) {
            (Some(uri), Some(path)) if uri != path => Err(invalid(format!(
                "uri and path name two stores, {} and {}: give one of them",
                uri.display(),
                path.display()
            ))),
            (uri, path) => Ok(uri.as_ref().or(path.as_ref())),
        }
    }

    fn options(&self) -> atoll::Options {
        let mut options = atoll::Options::default();
        if self.read_only {
            options.access = Access::Read;
        }
        options.threads = self.threads;
        options.memory_limit = self.memory_limit;
        options.pool_bytes = self.pool;
        options.lock_timeout = self.lock_timeout.map(Duration::from_millis);
        options
    }
}

fn given_path(key: &str, path: String) -> Result<PathBuf> {
    if path.is_empty() {
        return Err(invalid(format!(
            "{key} is empty: leave it away for a temporary store"
        )));
    }
    Ok(path.into())
}

/// The file that a URI names: a path, `file:` or `atoll:` before one.
fn path_of_uri(uri: &str) -> Result<PathBuf> {
    let rest = ["file:", "atoll:"].iter().find_map(|scheme| {
        let head = uri.get(..scheme.len())?;
        head.eq_ignore_ascii_case(scheme)
            .then(|| &uri[scheme.len()..])
    });
    let Some(rest) = rest else {
        if uri.contains("://") {
            let message = format!("uri {uri:?}: a store is a file; give its path, or file:/path");
            return Err(missing(message));
        }
        return given_path("uri", uri.to_owned());
    };
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(after) => {
            let at = after.find('/').unwrap_or(after.len());
            let (host, path) = after.split_at(at);
            if !host.is_empty() && host != "localhost" {
                return Err(invalid(format!(
                    "uri {uri:?} names the machine {host:?}: a path begins with a third slash, as in file:///folder/s.atoll"
                )));
            }
            path
        }
    };
    if path.contains(['?', '#']) {
        return Err(invalid(format!(
            "uri {uri:?}: parameters are not read there; set the options of the database, and write %3F for a question mark"
        )));
    }
    given_path("uri", decoded(uri, path)?)
}

/// A path with `%20` and its like as the bytes that they stand for.
fn decoded(uri: &str, path: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        bytes.push(match byte {
            b'%' => match (digit(rest.next()), digit(rest.next())) {
                (Some(high), Some(low)) => (high * 16 + low) as u8,
                _ => return Err(invalid(format!("uri {uri:?}: two digits follow a %"))),
            },
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| invalid(format!("uri {uri:?}: not a path in UTF-8")))
}

/// An open store: makes connections.
#[derive(Debug)]
pub struct Database {
    store: Arc<Store>,
    settings: Settings,
}

impl Database {
    pub(crate) fn open(settings: &Settings) -> Result<Database> {
        let path = settings.file()?;
        if path.is_none() && (settings.read_only || settings.no_create) {
            return Err(invalid(
                "a temporary store is new and empty: atoll.read_only and atoll.create need a path",
            ));
        }
        let create = !settings.no_create;
        let store = Store::open(path.map(PathBuf::as_path), create, &settings.options())?;
        Ok(Database {
            store,
            settings: settings.clone(),
        })
    }

    fn option(&self, key: &str) -> Result<String> {
        let database = self.store.database()?;
        let path = || {
            let path = self.store.path();
            let path = path.ok_or_else(|| not_set("databases", key))?;
            Ok(path.display().to_string())
        };
        match key {
            "uri" | "path" => path(),
            "atoll.read_only" => Ok(self.settings.read_only.to_string()),
            "atoll.create" => Ok((!self.settings.no_create).to_string()),
            "atoll.threads" => Ok(database.workers().width().to_string()),
            "atoll.memory_limit" => Ok(database.statistics().memory_limit.to_string()),
            "atoll.pool" => match self.settings.pool {
                Some(bytes) => Ok(bytes.to_string()),
                None => Err(not_set("databases", key)),
            },
            "atoll.lock_timeout" => Ok(self.settings.lock_timeout.unwrap_or(10_000).to_string()),
            _ => Err(not_set("databases", key)),
        }
    }
}

impl Optionable for Database {
    type Option = OptionDatabase;

    fn set_option(&mut self, key: OptionDatabase, value: OptionValue) -> Result<()> {
        // What there is not is told apart from what comes too late.
        Settings::default().set(&key, &value)?;
        Err(state(format!(
            "{} is set before the database is opened",
            key.as_ref()
        )))
    }

    fn get_option_string(&self, key: OptionDatabase) -> Result<String> {
        caught(|| self.option(key.as_ref()))
    }

    fn get_option_bytes(&self, key: OptionDatabase) -> Result<Vec<u8>> {
        Ok(self.get_option_string(key)?.into_bytes())
    }

    fn get_option_int(&self, key: OptionDatabase) -> Result<i64> {
        let name = key.as_ref().to_owned();
        as_int(&name, &self.get_option_string(key)?)
    }

    fn get_option_double(&self, key: OptionDatabase) -> Result<f64> {
        let name = key.as_ref().to_owned();
        as_double(&name, &self.get_option_string(key)?)
    }
}

impl adbc_core::Database for Database {
    type ConnectionType = Connection;

    fn new_connection(&self) -> Result<Connection> {
        self.new_connection_with_opts([])
    }

    fn new_connection_with_opts(
        &self,
        opts: impl IntoIterator<Item = (OptionConnection, OptionValue)>,
    ) -> Result<Connection> {
        let read_only = self.settings.read_only;
        let mut connection = caught(|| Connection::new(Arc::clone(&self.store), read_only))?;
        for (key, value) in opts {
            connection.set_option(key, value)?;
        }
        Ok(connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_name_files() {
        for (uri, wanted) in [
            ("reef.atoll", "reef.atoll"),
            ("/a b/reef.atoll", "/a b/reef.atoll"),
            ("file:reef.atoll", "reef.atoll"),
            ("file:/a/reef.atoll", "/a/reef.atoll"),
            ("FILE:///a%20b/reef.atoll", "/a b/reef.atoll"),
            ("file://localhost/reef.atoll", "/reef.atoll"),
            ("atoll:///reef.atoll", "/reef.atoll"),
            ("ä.atoll", "ä.atoll"),
        ] {
            assert_eq!(path_of_uri(uri).unwrap(), PathBuf::from(wanted), "{uri}");
        }
        for uri in [
            "",
            "file:",
            "file://reef.atoll",
            "file:///a?mode=ro",
            "file:///a%2",
            "file:///%ff",
            "postgresql://localhost/atoll",
        ] {
            assert!(path_of_uri(uri).is_err(), "{uri}");
        }
    }

    #[test]
    fn options_are_checked() {
        let set = |key: &str, value: &str| Settings::default().set(&key.into(), &value.into());
        assert!(set("atoll.threads", "2").is_ok());
        assert!(set("atoll.threads", "two").is_err());
        assert!(set("atoll.read_only", "1").is_err());
        assert!(set("path", "").is_err());
        for (key, value) in [("atoll.nothing", "1"), ("username", "ann")] {
            let error = set(key, value).unwrap_err();
            assert_eq!(error.status, adbc_core::error::Status::NotImplemented);
        }
        let mut both = Settings::default();
        both.set(&"uri".into(), &"file:a".into()).unwrap();
        both.set(&"path".into(), &"a".into()).unwrap();
        assert!(both.file().is_ok());
        both.set(&"path".into(), &"b".into()).unwrap();
        assert!(both.file().is_err());
    }
}
