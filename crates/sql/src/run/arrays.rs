//! The arrays that a statement sees: those of a snapshot, and over them those that its own transaction has changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use catalog::rights::Rights;
use parking_lot::Mutex;
use store::Snapshot;
use table::{Privileges, Tables};

use crate::error::Result;
use crate::scan::arrays::definition::ArrayTable;

/// What stands between the name of an array and that of a version.
const AT: char = '@';

/// What follows the name of an array that rows are inserted into, so that the same array in a query is another table.
pub(crate) const INTO: &str = " to insert into";

/// The array that a name is of, which may be that of a version.
pub(crate) fn array_of(name: &str) -> &str {
    name.rsplit_once(AT).map_or(name, |(array, _)| array)
}

/// The arrays of a statement.
#[derive(Clone, Debug)]
pub(crate) struct Arrays {
    pub snapshot: Snapshot,
    pub own: Option<Own>,
}

/// What a transaction has made of arrays.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    /// The state that it has reached.
    pub view: Snapshot,
    /// The arrays that it has changed; others are those of its snapshot.
    pub names: BTreeSet<String>,
}

impl Arrays {
    /// The array of that name, or the version of one.
    ///
    /// # Errors
    /// Those of reading its definition.
    pub(crate) fn find(&self, name: &str) -> Result<Option<ArrayTable>> {
        if let Some(target) = name.strip_suffix(INTO) {
            return Ok(self.find(target)?.map(ArrayTable::exact));
        }
        ArrayTable::find(self.of(name), name)
    }

    /// All arrays that may be read, by name.
    ///
    /// # Errors
    /// Those of reading their definitions.
    pub(crate) fn readable(&self, tables: &Tables, rights: &Rights) -> Result<Vec<ArrayTable>> {
        let mut all = Vec::new();
        for name in afl::Arrays::names(self) {
            if rights.check(tables, &name, Privileges::SELECT).is_ok() {
                all.extend(self.find(&name)?);
            }
        }
        Ok(all)
    }

    /// Where the array or version of that name is looked up.
    fn of(&self, name: &str) -> &Snapshot {
        let array = array_of(name);
        let own = self.own.as_ref();
        let own = own.filter(|own| own.names.contains(array) || own.names.contains(name));
        own.map_or(&self.snapshot, |own| &own.view)
    }
}

/// What queries of AFL see within a statement.
impl afl::Arrays for Arrays {
    fn open(&self, name: &str) -> array::Result<Arc<array::Array>> {
        array::Array::open(self.of(name), name)
    }

    fn names(&self) -> Vec<String> {
        let view = self.own.as_ref().map_or(&self.snapshot, |own| &own.view);
        array::names(view).unwrap_or_default()
    }
}

/// Arrays that tell which of them a query of AFL has opened.
pub(crate) struct Watched<'a> {
    arrays: &'a Arrays,
    opened: Mutex<BTreeSet<String>>,
}

impl<'a> Watched<'a> {
    pub(crate) fn new(arrays: &'a Arrays) -> Watched<'a> {
        Watched {
            arrays,
            opened: Mutex::default(),
        }
    }

    /// That all that were opened may be read.
    ///
    /// # Errors
    /// [`Error::Denied`](crate::error::Error::Denied).
    pub(crate) fn check(&self, tables: &Tables, rights: &Rights) -> Result<()> {
        let opened = self.opened.lock();
        let mut opened = opened.iter();
        opened.try_for_each(|name| rights.check(tables, array_of(name), Privileges::SELECT))
    }
}

impl afl::Arrays for Watched<'_> {
    fn open(&self, name: &str) -> array::Result<Arc<array::Array>> {
        self.opened.lock().insert(name.to_owned());
        self.arrays.open(name)
    }

    fn names(&self) -> Vec<String> {
        self.arrays.names()
    }
}
