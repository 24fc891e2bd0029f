//! The roles of a snapshot, and whom its things belong to.

use std::collections::BTreeMap;
use std::sync::Arc;

use store::Snapshot;

use crate::error::Result;
use crate::format::{key, rights};
use crate::schema::{Acl, Role};

/// Stands for all roles where names stand for tables: a statement that changes one has this.
pub const ROLES: &str = "\u{1}\u{1}roles";

/// Roles and rights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rights {
    pub roles: BTreeMap<String, Arc<Role>>,
    pub acls: BTreeMap<String, Arc<Acl>>,
}

/// All records under `prefix`, by what follows it.
fn records<T>(
    snapshot: &Snapshot,
    prefix: &[u8],
    read: impl Fn(&[u8], &str) -> Result<T>,
) -> Result<BTreeMap<String, Arc<T>>> {
    let entries = snapshot.prefix(key::DIRECTORY, prefix);
    let own = |(entry, record): (Arc<[u8]>, Arc<[u8]>)| {
        let name = String::from_utf8_lossy(&entry[prefix.len()..]).into_owned();
        let own = read(&record, &name)?;
        Ok((name, Arc::new(own)))
    };
    entries.map(own).collect()
}

/// Puts into `here` what `own` has changed of `base`.
fn overlay<T: PartialEq>(
    here: &mut BTreeMap<String, Arc<T>>,
    base: &BTreeMap<String, Arc<T>>,
    own: &BTreeMap<String, Arc<T>>,
) {
    for (name, value) in own
        .iter()
        .filter(|(name, value)| base.get(*name) != Some(*value))
    {
        here.insert(name.clone(), Arc::clone(value));
    }
    here.retain(|name, _| own.contains_key(name) || !base.contains_key(name));
}

impl Rights {
    /// Those of a snapshot.
    pub(super) fn of(snapshot: &Snapshot) -> Result<Rights> {
        Ok(Rights {
            roles: records(snapshot, key::ROLE, rights::read_role)?,
            acls: records(snapshot, key::ACL, rights::read)?,
        })
    }

    /// These with what a transaction has changed that began at `base` and has come to `own`.
    pub(super) fn overlaid(&self, base: &Rights, own: &Rights) -> Rights {
        let mut all = self.clone();
        overlay(&mut all.roles, &base.roles, &own.roles);
        overlay(&mut all.acls, &base.acls, &own.acls);
        all
    }

    /// Whether what is said of `name` is other there; of [`ROLES`], whether there are others.
    pub(super) fn differ(&self, other: &Rights, name: &str) -> bool {
        if name == ROLES {
            return self.roles != other.roles;
        }
        self.acls.get(name) != other.acls.get(name)
    }
}
