//! Which core is next.

use std::collections::BTreeMap;

use governor::{Mode, Policy, Siblings, Sites};
use placement::CpuSet;
use proptest::prelude::*;

use super::machines::plans;
use super::{all, busy, governor, machine, resident};

/// The order in which a mode hands out all cpus.
fn order(spec: &str, mode: Mode, siblings: Siblings, bytes: &[f64]) -> Vec<u32> {
    let machine = machine(spec);
    let sites = Sites::new(&machine, siblings);
    let residency: BTreeMap<u32, f64> = (0..).zip(bytes.iter().copied()).collect();
    let priorities = sites.priorities(&sites.weights(&residency));
    let mut taken: Vec<u32> = Vec::new();
    while let Some(site) = sites.next(mode, &priorities, |cpu| !taken.contains(&cpu)) {
        taken.push(site.cpu);
    }
    // Taken back in the opposite order.
    let mut left: CpuSet = taken.iter().copied().collect();
    for cpu in taken.iter().rev() {
        let last = sites.last(mode, &priorities, &left).unwrap();
        assert_eq!(last.cpu, *cpu);
        left = left.iter().filter(|other| other != cpu).collect();
    }
    taken
}

#[test]
fn the_documents_machine() {
    // core(i, j) = d i + j with four nodes of four.
    let sparse = order("4x4", Mode::Sparse, Siblings::Last, &[]);
    assert_eq!(sparse[..6], [0, 4, 8, 12, 1, 5]);
    let dense = order("4x4", Mode::Dense, Siblings::Last, &[]);
    assert_eq!(dense, (0..16).collect::<Vec<u32>>());
    let adaptive = order("4x4", Mode::Adaptive, Siblings::Last, &[1.0, 5.0, 9.0, 5.0]);
    assert_eq!(
        adaptive,
        [8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15, 0, 1, 2, 3]
    );
}

#[test]
fn second_hardware_threads() {
    // Two nodes of two cores of two threads: cpus 0,1 are one core.
    let spec = "node:2 core:2 pu:2";
    let last = order(spec, Mode::Dense, Siblings::Last, &[]);
    assert_eq!(last, [0, 2, 4, 6, 1, 3, 5, 7]);
    let node = order(spec, Mode::Dense, Siblings::Node, &[]);
    assert_eq!(node, [0, 2, 1, 3, 4, 6, 5, 7]);
    let never = order(spec, Mode::Sparse, Siblings::Never, &[]);
    assert_eq!(never, [0, 4, 2, 6]);
    let sparse = order(spec, Mode::Sparse, Siblings::Last, &[]);
    assert_eq!(sparse, [0, 4, 2, 6, 1, 5, 3, 7]);
    let adaptive = order(spec, Mode::Adaptive, Siblings::Node, &[0.0, 1.0]);
    assert_eq!(adaptive, [4, 6, 5, 7, 0, 2, 1, 3]);
}

#[test]
fn a_core_is_released_where_the_fewest_pages_are() {
    let machine = machine("4x4");
    let cpus = all(&machine);
    let mut governor = governor(Policy::plain(), &machine);
    let on_two = [10.0, 0.0, 90.0, 20.0];
    let step = |governor: &mut governor::Governor, load: f64, bytes: &[f64]| {
        let cores = governor.cpus().len() as f64;
        let readings = resident(busy(0.0, &cpus, load * cores), bytes);
        governor.step(&readings).unwrap()
    };
    for _ in 0..6 {
        step(&mut governor, 1.0, &on_two);
    }
    assert_eq!(governor.cpus().to_string(), "8-13");
    // The pages have moved: what is released is where they are fewest now.
    let decision = step(&mut governor, 0.0, &[10.0, 0.0, 1.0, 200.0]);
    assert_eq!(decision.released[0].node, 2);
    assert_eq!(governor.cpus().to_string(), "8-10,12-13");
}

proptest! {
    /// On any machine, with any cpus to choose from, any readings and any policy: the cpus are
    /// some of those there are, as many as the bounds say.
    #[test]
    fn cpus_are_always_some_of_those_there_are(
        plan in plans(1..4, 2, 3, 2),
        mode in prop_oneof![Just(Mode::Sparse), Just(Mode::Dense), Just(Mode::Adaptive)],
        min in 1usize..4,
        more in proptest::option::of(0usize..6),
        reserve in 0usize..3,
        steps in proptest::collection::vec((any::<u32>(), 0.0f64..20.0, 0.0f64..10.0, 0.0f64..10.0), 1..20),
        plain in any::<bool>(),
    ) {
        let machine = plan.machine();
        let cpus = all(&machine);
        let max_cores = more.map(|more| min + more);
        let base = if plain { Policy::plain() } else { Policy::default() };
        let policy = Policy { mode, min_cores: min, max_cores, reserve, ..base };
        let mut governor = governor(policy, &machine);
        for (at, (mask, load, a, b)) in steps.into_iter().enumerate() {
            let available: CpuSet = cpus.iter().filter(|cpu| mask >> (cpu % 32) & 1 == 1).collect();
            let readings = resident(busy(at as f64, &available, load), &[a, b]);
            let decision = governor.step(&readings).unwrap();
            let cores = decision.cpus.len();
            prop_assert!(decision.cpus.iter().all(|cpu| available.contains(*cpu)), "{}", decision);
            let most = available.len().saturating_sub(reserve).min(max_cores.unwrap_or(usize::MAX));
            let least = min.min(available.len());
            prop_assert!(cores >= least && cores <= most.max(least).max(1), "{}", decision);
            prop_assert_eq!(cores == 0, available.is_empty());
        }
    }
}
