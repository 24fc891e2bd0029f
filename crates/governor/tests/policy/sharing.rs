//! Several databases on one machine.

use std::collections::BTreeSet;

use governor::{Claim, Member, Policy, Together, WAITING, share};
use proptest::prelude::*;

use super::{all, busy, governor, machine};

fn member(name: &str, weight: f64, min_cores: usize, machine: &topology::Machine) -> Member {
    let policy = Policy {
        min_cores,
        ..Policy::default()
    };
    Member {
        name: name.to_owned(),
        weight,
        governor: governor(policy, machine),
    }
}

#[test]
fn what_is_scarce_goes_by_weight_and_what_is_unused_goes_on() {
    let machine = machine("4x4");
    let cpus = all(&machine);
    let mut together = Together::new();
    together.add(member("a", 3.0, 1, &machine)).unwrap();
    together.add(member("b", 1.0, 2, &machine)).unwrap();
    let error = together.add(member("b", 1.0, 1, &machine)).unwrap_err();
    assert!(error.to_string().contains("two databases named b"));
    assert!(together.add(member("c", f64::NAN, 1, &machine)).is_err());
    assert!(together.step(&[]).is_err());
    let mut time = 0.0;
    let mut step = |together: &mut Together, demands: [f64; 2]| -> Vec<usize> {
        time += 1.0;
        let readings: Vec<governor::Readings> = together
            .members()
            .iter()
            .zip(demands)
            .map(|(member, demand)| {
                let cores = member.governor.cpus().len() as f64;
                let waiting = governor::Measure::new((demand - cores).max(0.0), "threads", "test");
                busy(time, &cpus, demand.min(cores)).with(WAITING, waiting)
            })
            .collect();
        let decisions = together.step(&readings).unwrap();
        assert_eq!(decisions[1].target.as_deref(), Some("b"));
        decisions.iter().map(|d| d.cpus.len()).collect()
    };
    assert_eq!(step(&mut together, [0.0, 0.0]), [1, 2]);
    assert_eq!(step(&mut together, [99.0, 0.0]), [4, 2], "its node first");
    step(&mut together, [99.0, 0.0]);
    assert_eq!(step(&mut together, [99.0, 0.0]), [14, 2], "b has its floor");
    assert_eq!(step(&mut together, [99.0, 99.0]), [12, 4], "three to one");
    // b falls silent: its cores are handed over as soon as it is sure.
    let mut last = vec![0, 0];
    for _ in 0..4 {
        last = step(&mut together, [99.0, 0.0]);
    }
    assert_eq!(last, [14, 2]);
    together.remove("a");
    assert_eq!(together.members().len(), 1);
}

proptest! {
    #[test]
    fn shares_are_fair(
        claims in proptest::collection::vec((0usize..20, 0usize..6, 1u32..9), 0..6),
        cores in 0usize..40,
    ) {
        let claims: Vec<Claim> = claims
            .into_iter()
            .map(|(wants, floor, weight)| Claim { wants, floor, weight: f64::from(weight) })
            .collect();
        let given = share(&claims, cores);
        let sum: usize = given.iter().sum();
        prop_assert!(sum <= cores);
        let floor = |claim: &Claim| claim.floor.clamp(1, claim.wants.max(1));
        let floors: usize = claims.iter().map(floor).sum();
        for (claim, given) in claims.iter().zip(&given) {
            prop_assert!(*given <= claim.wants.max(1));
            if cores >= claims.len() {
                prop_assert!(*given > 0, "nobody is starved");
            }
            if cores >= floors {
                prop_assert!(*given >= floor(claim));
            }
        }
        // Nothing is left over while somebody wants it.
        if claims.iter().zip(&given).any(|(claim, given)| *given < claim.wants) {
            prop_assert_eq!(sum, cores);
        }
        // Nobody above the floor has more for its weight than one who wants more, but for one core.
        for (a, one) in claims.iter().zip(&given) {
            for (b, other) in claims.iter().zip(&given) {
                if *one < a.wants && *other > floor(b).max(1) {
                    let (mine, theirs) = (*one as f64 / a.weight, (*other as f64 - 1.0) / b.weight);
                    prop_assert!(theirs <= mine + 1e-9, "{:?} {:?}", claims, given);
                }
            }
        }
    }

    #[test]
    fn sets_never_overlap(
        steps in proptest::collection::vec(proptest::collection::vec(0.0f64..12.0, 3), 1..15),
        masks in proptest::collection::vec(any::<u16>(), 15),
    ) {
        let machine = machine("2x4");
        let cpus = all(&machine);
        let mut together = Together::new();
        for (name, weight, floor) in [("a", 1.0, 1), ("b", 2.0, 2), ("c", 0.5, 1)] {
            together.add(member(name, weight, floor, &machine)).unwrap();
        }
        for (time, (demands, mask)) in steps.iter().zip(&masks).enumerate() {
            let available: placement::CpuSet =
                cpus.iter().filter(|cpu| *cpu < 3 || mask >> cpu & 1 == 1).collect();
            let readings: Vec<governor::Readings> =
                demands.iter().map(|demand| busy(time as f64, &available, *demand)).collect();
            let decisions = together.step(&readings).unwrap();
            let mut seen = BTreeSet::new();
            for decision in &decisions {
                prop_assert!(!decision.cpus.is_empty(), "nobody is starved");
                for cpu in &decision.cpus {
                    prop_assert!(available.contains(*cpu));
                    prop_assert!(seen.insert(*cpu), "cpu {} is in two sets", cpu);
                }
            }
        }
    }
}
