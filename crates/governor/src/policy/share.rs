//! Several databases on one machine (E13).

use placement::CpuSet;

use crate::error::{Error, Result};
use crate::policy::decision::Decision;
use crate::policy::governor::Governor;
use crate::policy::readings::Readings;

/// What a database asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Claim {
    /// Cores it would use.
    pub wants: usize,
    /// Cores it gets before others get more than theirs.
    pub floor: usize,
    /// Its weight when cores are scarce, relative to the others' weights.
    pub weight: f64,
}

/// Divides cores among claims: each gets its floor first, then the rest go one by one to whoever has the fewest for
/// its weight and still wants more. Cores that nobody wants stay free. If there are enough cores, everybody gets at
/// least one.
///
/// ```
/// use governor::{Claim, share};
///
/// let claim = |wants, floor, weight| Claim { wants, floor, weight };
/// assert_eq!(share(&[claim(16, 1, 2.0), claim(16, 1, 1.0)], 12), [8, 4]);
/// assert_eq!(share(&[claim(16, 1, 1.0), claim(2, 1, 1.0)], 12), [10, 2]);
/// ```
pub fn share(claims: &[Claim], cores: usize) -> Vec<usize> {
    let mut given = vec![0; claims.len()];
    let mut left = cores;
    let floor = |claim: &Claim| claim.floor.clamp(1, claim.wants.max(1));
    // Floors in turns, so that where they do not all fit nobody is left out.
    let rounds: [&dyn Fn(&Claim) -> usize; 2] = [&floor, &|claim| claim.wants];
    for upto in rounds {
        while left > 0 {
            let open = (0..claims.len()).filter(|at| given[*at] < upto(&claims[*at]));
            let per = |at: usize| given[at] as f64 / claims[at].weight.max(f64::MIN_POSITIVE);
            let next = open.min_by(|a, b| {
                // Nobody is second before all are first.
                let first = (given[*a] > 0).cmp(&(given[*b] > 0));
                first.then(per(*a).total_cmp(&per(*b))).then(a.cmp(b))
            });
            let Some(next) = next else {
                break;
            };
            given[next] += 1;
            left -= 1;
        }
    }
    given
}

/// A database among others.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its name in decisions.
    pub name: String,
    /// Its weight when cores are scarce, relative to the others' weights.
    pub weight: f64,
    /// The governor that decides for it; the fewest cores of its policy are its floor.
    pub governor: Governor,
}

/// Governs several databases on sets of cpus that never overlap.
#[derive(Debug, Clone, Default)]
pub struct Together {
    members: Vec<Member>,
}

impl Together {
    /// No database yet.
    pub fn new() -> Together {
        Together::default()
    }

    /// Adds a database.
    ///
    /// # Errors
    ///
    /// [`Error::Policy`] if the weight is not above zero, or the name is taken.
    pub fn add(&mut self, member: Member) -> Result<()> {
        let why = if !(member.weight > 0.0 && member.weight.is_finite()) {
            format!("the weight of {} is {}", member.name, member.weight)
        } else if self.members.iter().any(|other| other.name == member.name) {
            format!("there are two databases named {}", member.name)
        } else {
            self.members.push(member);
            return Ok(());
        };
        Err(Error::Policy { why })
    }

    /// The databases.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Removes a database that has ended; its cores are free from now on.
    pub fn remove(&mut self, name: &str) {
        self.members.retain(|member| member.name != name);
    }

    /// The machine has changed: cpus came or went for good.
    pub fn on(&mut self, machine: &topology::Machine) {
        for member in &mut self.members {
            member.governor.on(machine);
        }
    }

    /// Makes a decision for each, in their order. All are first asked what they want; those who have to give up cores
    /// do so before any gets more.
    ///
    /// # Errors
    ///
    /// [`Error::Policy`] if there are not as many readings as databases, and those of the nets.
    pub fn step(&mut self, readings: &[Readings]) -> Result<Vec<Decision>> {
        if readings.len() != self.members.len() {
            return Err(Error::Policy {
                why: format!(
                    "{} databases and readings of {}",
                    self.members.len(),
                    readings.len()
                ),
            });
        }
        let mut plans = Vec::new();
        for (member, readings) in self.members.iter_mut().zip(readings) {
            plans.push(Some(member.governor.plan(readings)?));
        }
        let claim = |(member, plan): (&Member, &Option<crate::policy::governor::Plan>)| Claim {
            wants: plan.as_ref().map_or(0, |plan| plan.cores),
            floor: plan.as_ref().map_or(0, |plan| plan.floor),
            weight: member.weight,
        };
        let claims: Vec<Claim> = self.members.iter().zip(&plans).map(claim).collect();
        let all: CpuSet = readings.iter().flat_map(|r| r.available.iter()).collect();
        let reserve = self.members.iter().map(|m| m.governor.policy().reserve);
        let cores = all.len().saturating_sub(reserve.max().unwrap_or(0));
        // The reserve gives way where there would not be a core for each.
        let given = share(&claims, cores.max(self.members.len()).min(all.len()));
        // Those that shrink come first.
        let mut order: Vec<usize> = (0..self.members.len()).collect();
        let grows = |at: usize| given[at] > self.members[at].governor.cpus().len();
        order.sort_by_key(|at| grows(*at));
        let mut decisions: Vec<Option<Decision>> = vec![None; self.members.len()];
        for at in order {
            let others: CpuSet = self
                .members
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != at)
                .flat_map(|(_, member)| member.governor.cpus().iter())
                .collect();
            let member = &mut self.members[at];
            if let Some(plan) = plans[at].take() {
                let mut decision = member
                    .governor
                    .settle(&readings[at], plan, given[at], &others);
                decision.target = Some(member.name.clone());
                decisions[at] = Some(decision);
            }
        }
        Ok(decisions.into_iter().flatten().collect())
    }
}
