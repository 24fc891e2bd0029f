//! What is governed: a target and its processes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use counters::clock;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::group::cgroup::{Kind, Tree};
use crate::system::proc::{self, Identity};

/// The most processes that are governed one by one.
pub const MAX_GOVERNED: usize = 20_000;

/// How often everything is looked at again: processes by name, members of a cgroup.
const SCAN: Duration = Duration::from_secs(1);

/// How long after its start a process may still take another name (exec).
const YOUNG: Duration = Duration::from_secs(5);

/// Root processes that are looked at in each check.
const ROOTS: usize = 16;

/// Members whose children are looked up in one check, beside those of the root processes.
const VISITS: usize = 4;

/// The pause before it is done again, as a multiple of the time it took, because each thread has a file of its own.
const REST: u32 = 4000;

/// What to govern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// A process and its descendants.
    Pid(u32),
    /// All processes whose command has this name, and their descendants.
    Name(String),
    /// The processes of a control group, given by its path, absolute or from the hierarchy's root.
    Cgroup(PathBuf),
    /// A systemd unit.
    Unit(String),
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Pid(pid) => write!(f, "process {pid}"),
            Target::Name(name) => write!(f, "{name}"),
            Target::Cgroup(path) => write!(f, "cgroup {}", path.display()),
            Target::Unit(unit) => write!(f, "{unit}"),
        }
    }
}

/// A governed process.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) identity: Identity,
    /// Not a descendant of another member.
    pub(crate) root: bool,
    /// The member through which it was found, 0 for roots; and whether others were found through this one.
    parent: u32,
    children_known: bool,
    /// Processor time at the last look.
    time: Duration,
    /// For roots: processor time of its children that have ended, in clock ticks.
    children: u64,
    /// Whether it has run between the last two looks.
    pub(crate) active: bool,
    /// Whether it has run since its children were looked up; if not, it has no new ones.
    moved: bool,
    /// When its children may be looked up again.
    rested: Option<Instant>,
}

/// The processes of a target.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) target: Target,
    pub(crate) tree: Option<Tree>,
    pub(crate) members: BTreeMap<u32, Member>,
    scanned: Option<Instant>,
    visited: u32,
    /// Processes without the wanted name, and since when each is known.
    strangers: HashMap<u32, Instant>,
    first: bool,
    /// Whether its control group is gone.
    gone: bool,
    /// Whether the control group counts the processor time of its processes.
    counted: bool,
    /// Whether processes were added since the last question.
    pub(crate) came: bool,
    /// Whether members became roots since the last question, because their ancestors have ended.
    pub(crate) orphaned: bool,
}

/// Processor time of a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    /// Processor time since the last look.
    pub(crate) time: Duration,
    /// The source of the figure.
    pub(crate) source: &'static str,
}

impl Group {
    /// # Errors
    ///
    /// [`Error::NoTarget`] if no such process, group or unit exists.
    pub(crate) fn find(target: Target) -> Result<Group> {
        let tree = match &target {
            Target::Cgroup(path) => Some(Tree::find(path)?),
            Target::Unit(unit) => Some(Tree::find(&unit_group(unit)?)?),
            Target::Pid(_) | Target::Name(_) => None,
        };
        let mut group = Group {
            target,
            tree,
            members: BTreeMap::new(),
            scanned: None,
            visited: 0,
            strangers: HashMap::new(),
            first: true,
            gone: false,
            counted: false,
            came: false,
            orphaned: false,
        };
        if let Target::Pid(pid) = group.target {
            let Some(identity) = Identity::of(pid) else {
                return Err(Error::Process(counters::Error::NoProcess { pid }));
            };
            // A thread has a line of its own, and its process another number.
            counters::Process::open(&counters::System::real(), pid)?;
            group.add(identity, 0);
        }
        // The second look finds children that have lower numbers than their parents.
        group.refresh();
        group.visited = 0;
        group.refresh();
        if group.members.is_empty() && group.tree.is_none() {
            return Err(Error::NoTarget {
                what: format!("no process is named {}", group.target),
                hint: "the name is the second column of ps -eo pid,comm; or give --pid",
            });
        }
        group.first = false;
        Ok(group)
    }

    /// Whether it has ended. A control group that is empty for a while has not.
    pub(crate) fn ended(&self) -> bool {
        match (&self.target, &self.tree) {
            // As of the last look.
            (_, Some(_)) => self.gone,
            (Target::Pid(pid), _) => !self.members.contains_key(pid),
            _ => self.members.is_empty(),
        }
    }

    /// The root processes.
    pub(crate) fn roots(&self) -> impl Iterator<Item = &Member> {
        self.members.values().filter(|member| member.root)
    }

    /// How many processes there are of a root: itself and its descendants.
    pub(crate) fn family(&self, root: u32) -> usize {
        let origin = |mut pid: u32| {
            // As many steps as there are processes, as what is read while they change may go in circles.
            for _ in 0..self.members.len() {
                match self.members.get(&pid) {
                    Some(member) if !member.root => pid = member.parent,
                    _ => break,
                }
            }
            pid
        };
        let all = self.members.keys();
        all.filter(|pid| origin(**pid) == root).count()
    }

    /// Looks for processes that came and went. The work is bounded, so that it may take a few checks until the
    /// children of one of many members are found; until then they run on the cpus of their parent.
    pub(crate) fn refresh(&mut self) {
        let now = Instant::now();
        let due = self.scanned.is_none_or(|at| now - at >= SCAN);
        if due {
            self.scanned = Some(now);
        }
        if let Some(tree) = &self.tree {
            if due {
                self.gone = !tree.exists();
                let listed: BTreeSet<u32> = tree.processes().into_iter().collect();
                self.members.retain(|pid, _| listed.contains(pid));
                for pid in listed {
                    self.meet(pid, 0);
                }
                if self.counted {
                    // Otherwise it is looked who has run whenever that is asked for.
                    self.look();
                }
            }
            return;
        }
        self.check_roots();
        if due && let Target::Name(name) = &self.target {
            let name = name.clone();
            self.by_name(&name, now);
        }
        let roots: Vec<u32> = self.roots().map(|member| member.identity.pid).collect();
        // Roots that are many are visited in turns like the others.
        for pid in roots.iter().take(ROOTS) {
            self.visit(*pid, due);
        }
        // One that has not run has no new children, and is the one that it was.
        let next = |group: &Group| -> Option<u32> {
            let mut after = group.members.range(group.visited.saturating_add(1)..);
            let due = |member: &Member| member.moved && member.rested.is_none_or(|at| now >= at);
            after.find(|(_, member)| due(member)).map(|(pid, _)| *pid)
        };
        let visits = if self.first { MAX_GOVERNED } else { VISITS };
        for _ in 0..visits {
            match next(self) {
                Some(pid) => {
                    self.visited = pid;
                    let same = self.members.get(&pid).is_some_and(|m| m.identity.alive());
                    if same {
                        self.visit(pid, true);
                    } else {
                        self.lose(pid);
                    }
                }
                None => {
                    self.visited = 0;
                    break;
                }
            }
        }
    }

    /// Forgets roots that have ended.
    fn check_roots(&mut self) {
        let roots: Vec<Identity> = self.roots().map(|m| m.identity).take(ROOTS).collect();
        for root in roots {
            if !root.alive() {
                self.lose(root.pid);
            }
        }
    }

    fn by_name(&mut self, name: &str, now: Instant) {
        let all = proc::all();
        let own = std::process::id();
        let mut new = Vec::new();
        let known: BTreeSet<u32> = all.iter().copied().collect();
        self.strangers.retain(|pid, _| known.contains(pid));
        for pid in all {
            if self.members.contains_key(&pid) || pid == own {
                continue;
            }
            if let Some(since) = self.strangers.get(&pid)
                && now - *since > YOUNG
            {
                continue;
            }
            if proc::name(pid).as_deref() == Some(name) {
                self.strangers.remove(&pid);
                self.meet(pid, 0);
                new.push(pid);
            } else {
                self.strangers.entry(pid).or_insert(now);
            }
        }
        // What descends from another member is none of the first.
        for pid in new {
            let parent = proc::stat(pid).map_or(0, |stat| stat.parent);
            if self.members.contains_key(&parent)
                && let Some(member) = self.members.get_mut(&pid)
            {
                (member.root, member.parent) = (false, parent);
                self.parents(parent);
            }
        }
    }

    /// Notes that others were found through this member.
    fn parents(&mut self, pid: u32) {
        if let Some(member) = self.members.get_mut(&pid) {
            member.children_known = true;
        }
    }

    /// Forgets a member that has ended. Its descendants stay. As they can no longer be found through it when they are
    /// put back, they become roots, unless another member is now their parent.
    fn lose(&mut self, pid: u32) -> Option<Member> {
        let lost = self.members.remove(&pid)?;
        if lost.children_known {
            let of = |(child, member): (&u32, &Member)| (member.parent == pid).then_some(*child);
            let children: Vec<u32> = self.members.iter().filter_map(of).collect();
            for child in children {
                self.orphan(child);
            }
        }
        Some(lost)
    }

    fn orphan(&mut self, child: u32) {
        let Some(stat) = proc::stat(child) else {
            return;
        };
        let parent = if self.members.contains_key(&stat.parent) {
            stat.parent
        } else {
            0
        };
        if let Some(member) = self.members.get_mut(&child) {
            member.parent = parent;
            member.root = parent == 0;
            // What those that have ended took is counted from now on.
            member.children = stat.children_ticks;
        }
        self.orphaned |= parent == 0;
        self.parents(parent);
    }

    /// The children of a member; of its main thread only, unless it is time for `all`.
    fn visit(&mut self, pid: u32, all: bool) {
        let begun = Instant::now();
        match self.members.get_mut(&pid) {
            // A visit of the main thread alone leaves the others to the next one.
            Some(member) if member.moved => member.moved = !all,
            _ => return,
        }
        let threads = if all { proc::threads(pid) } else { vec![pid] };
        for thread in threads {
            for child in proc::children(pid, thread) {
                self.meet(child, pid);
            }
        }
        if let Some(member) = self.members.get_mut(&pid).filter(|_| all) {
            member.rested = Some(begun + (begun.elapsed() * REST).min(SCAN));
        }
    }

    /// Adds a new process; `parent` is a member, or 0.
    fn meet(&mut self, pid: u32, parent: u32) {
        if self.members.contains_key(&pid) || self.members.len() >= MAX_GOVERNED {
            return;
        }
        if let Some(identity) = Identity::of(pid) {
            self.add(identity, parent);
            self.parents(parent);
        }
    }

    fn add(&mut self, identity: Identity, parent: u32) {
        let stat = proc::stat(identity.pid).unwrap_or_default();
        let time = clock::of_process(identity.pid).unwrap_or_default();
        // One that came since the last look has used all its time since.
        let new = !self.first && proc::age(identity.start) < 2 * SCAN;
        self.came = true;
        self.members.insert(
            identity.pid,
            Member {
                identity,
                root: parent == 0,
                parent,
                children_known: false,
                time: if new { Duration::ZERO } else { time },
                children: stat.children_ticks,
                active: true,
                moved: true,
                rested: None,
            },
        );
    }

    /// Reads how long each member has run in all, and which have ended.
    fn look(&mut self) -> (Duration, Vec<u32>) {
        let mut sum = Duration::ZERO;
        let mut ended = Vec::new();
        for (pid, member) in &mut self.members {
            match clock::of_process(*pid) {
                Some(time) if time >= member.time => {
                    member.active = time > member.time;
                    member.moved |= member.active;
                    sum += time - member.time;
                    member.time = time;
                }
                // Another process has the number by now.
                Some(_) | None => ended.push(*pid),
            }
        }
        (sum, ended)
    }

    /// The processor time since the last call.
    pub(crate) fn used(&mut self) -> Option<Used> {
        let used = self.tree.as_mut().and_then(Tree::used);
        self.counted = used.is_some();
        if let Some(time) = used {
            let source = match self.tree.as_ref().map(Tree::kind) {
                Some(Kind::One) => "cpuacct",
                _ => "cgroup",
            };
            return Some(Used { time, source });
        }
        let (sum, ended) = self.look();
        let mut owed = Duration::ZERO;
        for pid in ended {
            if let Some(member) = self.lose(pid) {
                owed += member.time;
            }
        }
        Some(Used {
            time: sum + self.of_ended(owed),
            source: "cpu clocks",
        })
    }

    /// Time used by processes that have ended since they were last looked at. Their parents have their total, `owed`
    /// of which was counted before.
    fn of_ended(&mut self, owed: Duration) -> Duration {
        let mut ticks = 0;
        let roots = self.members.values_mut().filter(|member| member.root);
        for root in roots.take(ROOTS) {
            if let Some(stat) = proc::stat(root.identity.pid) {
                ticks += stat.children_ticks.saturating_sub(root.children);
                root.children = stat.children_ticks;
            }
        }
        let all = Duration::from_secs_f64(ticks as f64 / proc::ticks_per_second());
        all.saturating_sub(owed)
    }
}

/// The control group of a unit.
fn unit_group(unit: &str) -> Result<PathBuf> {
    let shown = systemctl(&["show", "--property=ControlGroup", "--value", "--", unit])?;
    let group = shown.trim();
    if group.is_empty() {
        return Err(Error::NoTarget {
            what: format!("{unit} is not running"),
            hint: "systemctl list-units shows what is",
        });
    }
    Ok(PathBuf::from(group))
}

/// Runs `systemctl` and returns its output.
pub(crate) fn systemctl(arguments: &[&str]) -> Result<String> {
    let what = format!("systemctl {}", arguments.join(" "));
    let ran = Command::new("systemctl").args(arguments).output();
    let failed = |why: String| Error::Command {
        what: what.clone(),
        why,
    };
    let output = ran.map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said.split_whitespace().collect();
    Err(failed(said.join(" ")))
}
