//! Ways to give a group of processes its cpus.

pub(crate) mod affinity;
pub(crate) mod migrate;

use std::path::PathBuf;
use std::str::FromStr;

use placement::CpuSet;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::group::cgroup::{self, Kind, Mounts, Own, Tree};
use crate::group::partition::{self, Partition};
use crate::group::target::{Group, Target, systemctl};
use crate::system::proc::Identity;
use affinity::{Affinity, Before};

/// The way in which a group is given its cpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Means {
    /// The cpuset if the target is a control group, systemd if it is a unit, else affinity.
    #[default]
    Auto,
    /// A cpuset: the target's, or that of a control group of our own which the processes are moved into.
    Cgroup,
    /// The property AllowedCPUs of a unit.
    Systemd,
    /// The affinity of each thread: needs no privilege for processes of the same user.
    Affinity,
}

impl FromStr for Means {
    type Err = Error;

    fn from_str(name: &str) -> Result<Means> {
        match name {
            "auto" => Ok(Means::Auto),
            "cgroup" => Ok(Means::Cgroup),
            "systemd" => Ok(Means::Systemd),
            "affinity" => Ok(Means::Affinity),
            _ => Err(Error::Governor(governor::Error::Name {
                what: "actuator",
                name: name.to_owned(),
                known: "auto, cgroup, systemd, affinity",
            })),
        }
    }
}

/// The state from before, from which any process can put a group back.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Undo {
    /// Nothing was changed.
    Nothing,
    Affinity(Before),
    Cpuset {
        kind: Kind,
        folder: PathBuf,
        cpus: String,
        below: Vec<(PathBuf, CpuSet)>,
        /// The kind of partition that the group was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        partition: Option<String>,
    },
    Own(Own),
    Unit {
        unit: String,
        cpus: String,
    },
}

/// Gives a group its cpus.
#[derive(Debug)]
pub(crate) enum Actuator {
    Dry,
    Affinity(Box<Affinity>),
    Cpuset {
        tree: Tree,
        undo: Undo,
        below: Vec<(PathBuf, CpuSet)>,
        partition: Option<Partition>,
    },
    Own {
        tree: Tree,
        own: Own,
        made: bool,
        /// The partition, if nobody else is to use the cpus, once the group is made.
        exclusive: bool,
        partition: Option<Partition>,
        /// Whether processes were left in other groups because they could not be put back there.
        apart: bool,
    },
    Unit {
        unit: String,
        undo: Undo,
        tree: Tree,
    },
}

impl Actuator {
    /// Chooses the way; nothing is changed yet.
    pub(crate) fn new(means: Means, exclusive: bool, group: &Group) -> Result<Actuator> {
        let wrong = |why: &str| {
            Err(Error::Command {
                what: "--actuator".to_owned(),
                why: why.to_owned(),
            })
        };
        match (means, &group.target, &group.tree) {
            (Means::Auto | Means::Systemd, Target::Unit(unit), Some(tree)) => {
                Actuator::of_unit(unit, tree)
            }
            (Means::Systemd, ..) => wrong("systemd needs a unit, given with --unit"),
            (Means::Auto, _, Some(tree)) if !tree.has_cpuset() => {
                let mut affinity = Affinity::new(group);
                affinity.note = Some(format!(
                    "{} has no cpuset, as its controller is not enabled above it: each thread is bound instead; --actuator cgroup enables it",
                    tree.folder.display()
                ));
                Ok(Actuator::Affinity(Box::new(affinity)))
            }
            (Means::Auto | Means::Cgroup, _, Some(tree)) => Actuator::of_cpuset(tree, exclusive),
            (Means::Cgroup, _, None) => {
                let root = group.roots().next().map_or(0, |root| root.identity.pid);
                let own = Own::plan(root)?;
                let tree = Tree::at(own.kind, own.folder.clone(), &Mounts::find());
                Ok(Actuator::Own {
                    exclusive: exclusive && own.kind == Kind::Two,
                    tree,
                    own,
                    made: false,
                    partition: None,
                    apart: false,
                })
            }
            (Means::Auto | Means::Affinity, ..) => {
                Ok(Actuator::Affinity(Box::new(Affinity::new(group))))
            }
        }
    }

    /// Uses a property of a systemd unit.
    fn of_unit(unit: &str, tree: &Tree) -> Result<Actuator> {
        let shown = ["show", "--property=AllowedCPUs", "--value", "--", unit];
        let cpus = systemctl(&shown)?.trim().replace(' ', ",");
        let (unit, tree) = (unit.to_owned(), tree.clone());
        let undo = Undo::Unit {
            unit: unit.clone(),
            cpus,
        };
        Ok(Actuator::Unit { unit, undo, tree })
    }

    /// Uses the cpuset of a control group, and enables it if it is not.
    fn of_cpuset(tree: &Tree, exclusive: bool) -> Result<Actuator> {
        if !tree.has_cpuset() {
            cgroup::enable(&tree.folder)?;
        }
        let file = tree.folder.join("cpuset.cpus");
        let cpus = std::fs::read_to_string(&file).map_err(|source| Error::Refused {
            what: format!("reading {}", file.display()),
            source,
        })?;
        let below = match tree.kind() {
            Kind::One => tree.below(),
            Kind::Two => Vec::new(),
        };
        let partition = if exclusive {
            Partition::of(&tree.folder)
        } else {
            None
        };
        let undo = Undo::Cpuset {
            partition: partition.as_ref().map(|partition| partition.before.clone()),
            kind: tree.kind(),
            folder: tree.folder.clone(),
            cpus: cpus.trim().to_owned(),
            below: below.clone(),
        };
        let tree = tree.clone();
        Ok(Actuator::Cpuset {
            tree,
            undo,
            below,
            partition,
        })
    }

    /// As text.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Actuator::Dry => "nothing",
            Actuator::Affinity(_) => "affinity",
            Actuator::Cpuset { .. } => "cpuset",
            Actuator::Own { .. } => "own cpuset",
            Actuator::Unit { .. } => "systemd",
        }
    }

    /// What is needed to put everything back.
    pub(crate) fn undo(&self) -> Undo {
        match self {
            Actuator::Dry => Undo::Nothing,
            Actuator::Affinity(affinity) => Undo::Affinity(affinity.before.clone()),
            Actuator::Cpuset { undo, .. } | Actuator::Unit { undo, .. } => undo.clone(),
            Actuator::Own { own, .. } => Undo::Own(own.clone()),
        }
    }

    /// The cpus that the group may have at most, if known.
    pub(crate) fn allowed(&mut self, group: &Group) -> Option<CpuSet> {
        match self {
            Actuator::Dry => {
                let root = group.roots().next()?.identity.pid;
                placement::apply::cpus_of(root.cast_signed()).ok()
            }
            Actuator::Affinity(affinity) => {
                let root = group.roots().next()?.identity.pid;
                let (_, folder) = cgroup::of_process(root, &Mounts::find())?;
                let within = cgroup::effective(&folder);
                affinity.within.clone_from(&within);
                let base = &affinity.before.base;
                match within {
                    Some(within) => Some(both(&within, base)),
                    None => Some(base.clone()),
                }
            }
            Actuator::Cpuset {
                tree,
                undo,
                partition,
                ..
            } => {
                let above = tree.folder.parent().and_then(cgroup::effective)?;
                let above = with_own(above, tree, partition.as_ref());
                match undo {
                    Undo::Cpuset { cpus, .. } => match cpus.parse::<CpuSet>() {
                        Ok(cpus) => Some(both(&above, &cpus)),
                        Err(_) => Some(above),
                    },
                    _ => Some(above),
                }
            }
            Actuator::Own {
                tree,
                own,
                partition,
                ..
            } => {
                let above = cgroup::effective(&own.from)?;
                Some(with_own(above, tree, partition.as_ref()))
            }
            Actuator::Unit { tree, undo, .. } => {
                let above = tree.folder.parent().and_then(cgroup::effective);
                // What its own file gives it; empty: whatever there is.
                let own = match undo {
                    Undo::Unit { cpus, .. } => cpus.parse::<CpuSet>().ok(),
                    _ => None,
                };
                match (above, own.filter(|own| !own.is_empty())) {
                    (Some(above), Some(own)) => Some(both(&above, &own)),
                    (above, own) => above.or(own),
                }
            }
        }
    }

    /// The cpus that the group has now, if that is cheap to find out.
    pub(crate) fn present(&mut self, group: &Group) -> Option<CpuSet> {
        match self {
            Actuator::Dry => None,
            Actuator::Affinity(affinity) => {
                let root = group.roots().next()?.identity.pid;
                if affinity.before.others.contains_key(&root) {
                    return None;
                }
                placement::apply::cpus_of(root.cast_signed()).ok()
            }
            Actuator::Cpuset { tree, .. }
            | Actuator::Own { tree, .. }
            | Actuator::Unit { tree, .. } => tree.present(),
        }
    }

    /// Gives the group these cpus. Returns `true` if more has become known of the state from before.
    pub(crate) fn set(&mut self, cpus: &CpuSet, group: &Group) -> Result<bool> {
        match self {
            Actuator::Dry => Ok(false),
            Actuator::Affinity(affinity) => {
                let what = || format!("binding the threads of {} to cpus {cpus}", group.target);
                let bound = affinity.set(cpus, group);
                let bound = bound.map_err(|source| Error::Refused {
                    what: what(),
                    source,
                })?;
                Ok(bound.wishes > 0)
            }
            Actuator::Cpuset {
                tree,
                below,
                partition,
                ..
            } => {
                give(tree, below, partition.as_mut(), cpus)?;
                Ok(false)
            }
            Actuator::Own {
                tree,
                own,
                made,
                exclusive,
                partition,
                apart,
            } => {
                if !*made {
                    own.make()?;
                    *made = true;
                    if *exclusive {
                        *partition = Partition::of(&tree.folder);
                    }
                }
                give(tree, &[], partition.as_mut(), cpus)?;
                let listed = tree.processes();
                let outside = group.members.keys().filter(|pid| !listed.contains(pid));
                let outside: Vec<u32> = outside.copied().collect();
                if !outside.is_empty() {
                    let mounts = Mounts::find();
                    let fits = |pid: &u32| own.fits(*pid, &mounts);
                    let (take, leave): (Vec<u32>, Vec<u32>) = outside.into_iter().partition(fits);
                    own.take(&take)?;
                    *apart |= leave.into_iter().any(|pid| Identity::of(pid).is_some());
                }
                Ok(false)
            }
            Actuator::Unit { unit, .. } => {
                let cpus = format!("AllowedCPUs={}", cpus.to_string().replace(',', " "));
                systemctl(&["set-property", "--runtime", "--", unit.as_str(), &cpus])?;
                Ok(false)
            }
        }
    }

    /// Whether the cpus are exclusive, if that is asked for.
    pub(crate) fn can_exclude(&self) -> bool {
        matches!(
            self,
            Actuator::Dry
                | Actuator::Cpuset {
                    partition: Some(_),
                    ..
                }
                | Actuator::Own {
                    exclusive: true,
                    ..
                }
        )
    }

    /// A note for the user about the last change, returned once.
    pub(crate) fn note(&mut self) -> Option<String> {
        match self {
            Actuator::Own {
                own,
                apart,
                partition,
                ..
            } => {
                if std::mem::take(apart) {
                    Some(format!(
                        "processes that are not in {} stay in their groups, with all cpus of these; --actuator affinity governs them too",
                        own.from.display()
                    ))
                } else {
                    partition.as_mut()?.note()
                }
            }
            Actuator::Cpuset { partition, .. } => partition.as_mut()?.note(),
            Actuator::Affinity(affinity) => affinity.note.take(),
            _ => None,
        }
    }

    /// Threads that could not be changed.
    pub(crate) fn refused(&self) -> usize {
        match self {
            Actuator::Affinity(affinity) => affinity.refused.len(),
            _ => 0,
        }
    }
}

/// Gives a group cpus, exclusively if there is a partition.
fn give(
    tree: &mut Tree,
    below: &[(PathBuf, CpuSet)],
    partition: Option<&mut Partition>,
    cpus: &CpuSet,
) -> Result<()> {
    let Some(partition) = partition else {
        return tree.set(cpus, below);
    };
    let list = cpus.to_string();
    let there = tree.present().is_some_and(|present| present == *cpus);
    if !(there && partition.is_for(&list)) {
        partition.open();
        tree.set(cpus, below)?;
        partition.close(&list);
    }
    Ok(())
}

/// The cpus of the group above, together with those that it has given to this one exclusively, which it no longer
/// lists as its own.
fn with_own(above: CpuSet, tree: &mut Tree, partition: Option<&Partition>) -> CpuSet {
    match partition {
        Some(_) => {
            let own = tree.present().unwrap_or_default();
            above.iter().chain(own.iter()).collect()
        }
        None => above,
    }
}

fn both(a: &CpuSet, b: &CpuSet) -> CpuSet {
    a.iter().filter(|cpu| b.contains(*cpu)).collect()
}

impl Undo {
    /// Puts everything back; returns the number of threads, processes or groups.
    pub(crate) fn run(&self, processes: impl Iterator<Item = Identity>) -> Result<usize> {
        match self {
            Undo::Nothing => Ok(0),
            Undo::Affinity(before) => {
                let restored = before.restore(processes);
                restored.map_err(|source| Error::Refused {
                    what: "giving threads their former cpus back".to_owned(),
                    source,
                })
            }
            Undo::Cpuset {
                kind,
                folder,
                cpus,
                below,
                partition,
            } => {
                if let Some(before) = partition {
                    partition::restore(folder, before);
                }
                if !folder.exists() {
                    return Ok(0);
                }
                match cpus.parse::<CpuSet>() {
                    Ok(cpus) => {
                        Tree::at(*kind, folder.clone(), &Mounts::find()).set(&cpus, below)?;
                    }
                    // Empty: as the group above.
                    Err(_) => cgroup::empty(folder)?,
                }
                Ok(1)
            }
            Undo::Own(own) => own.undo(),
            Undo::Unit { unit, cpus } => {
                let cpus = format!("AllowedCPUs={cpus}");
                systemctl(&["set-property", "--runtime", "--", unit.as_str(), &cpus])?;
                Ok(1)
            }
        }
    }
}
