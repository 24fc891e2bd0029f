//! How many cores.

use governor::{Action, BUSY, Governor, LOAD, Measure, Policy, Readings, Sensor, TRAFFIC, WAITING};
use placement::CpuSet;
use proptest::prelude::*;

use super::{all, busy, governor, machine};

/// So many checks with a load in per cent; the cores after each.
fn cores(governor: &mut Governor, available: &CpuSet, loads: &[f64]) -> Vec<usize> {
    let mut cores = Vec::new();
    for load in loads {
        let now = governor.cpus().len() as f64;
        let readings = busy(cores.len() as f64, available, load * now / 100.0);
        cores.push(governor.step(&readings).unwrap().cpus.len());
    }
    cores
}

#[test]
fn the_plain_net_takes_one_step_a_check() {
    let machine = machine("4x4");
    let cpus = all(&machine);
    let mut plain = governor(Policy::plain(), &machine);
    let loads = [0.0, 99.0, 99.0, 68.0, 70.0, 40.0, 10.0, 8.0, 8.0, 8.0];
    assert_eq!(
        cores(&mut plain, &cpus, &loads),
        [1, 2, 3, 3, 4, 4, 3, 2, 1, 1]
    );
}

#[test]
fn a_decision_says_why() {
    let machine = machine("4x4");
    let cpus = all(&machine);
    let mut plain = governor(Policy::plain(), &machine);
    let first = plain.step(&busy(0.0, &cpus, 0.0)).unwrap();
    assert_eq!(first.action, Action::Allocate);
    assert_eq!(first.path(), "-");
    assert!(first.why.contains("starts with 1 of 16"), "{first}");
    let decision = plain.step(&busy(0.1, &cpus, 0.99)).unwrap();
    assert_eq!(
        decision.to_string(),
        "0.100 s  t1-Overload-t5  allocate cpu 1 (node 0)  1 -> 2 cores, 0-1: load 99 % of 1 cores"
    );
    let json = serde_json::to_value(&decision).unwrap();
    assert_eq!(json["transitions"], serde_json::json!(["t1", "t5"]));
    assert_eq!(json["place"], "Overload");
    assert_eq!(json["action"], "allocate");
    assert_eq!(json["cpus"], serde_json::json!([0, 1]));
    assert_eq!(json["readings"]["busy"]["value"], 0.99);
    assert_eq!(json["readings"]["busy"]["unit"], "cpus");
    assert_eq!(json["readings"]["busy"]["source"], "test");
    assert_eq!(json["readings"]["busy"]["age_seconds"], 0.0);
    for field in ["time", "why", "decision_seconds"] {
        assert!(!json[field].is_null(), "{field}");
    }
}

#[test]
fn what_is_not_known_changes_nothing() {
    let machine = machine("4x4");
    let cpus = all(&machine);
    let mut plain = governor(Policy::plain(), &machine);
    cores(&mut plain, &cpus, &[0.0, 99.0]);
    let gone = Measure::unavailable("cpus", "stat", "permission denied");
    for readings in [
        Readings::new(2.0, cpus.clone()),
        Readings::new(2.0, cpus.clone()).with(BUSY, gone.clone()),
        Readings::new(2.0, cpus.clone()).with(BUSY, Measure::new(f64::NAN, "cpus", "x")),
    ] {
        let decision = plain.step(&readings).unwrap();
        assert_eq!((decision.cpus.len(), decision.action), (2, Action::None));
        assert_eq!(decision.transitions, [] as [String; 0]);
        assert!(decision.why.contains("not known"), "{decision}");
    }
    let load =
        Readings::new(3.0, cpus.clone()).with(LOAD, Measure::new(99.0, "per cent", "mpstat"));
    assert_eq!(plain.step(&load).unwrap().cpus.len(), 3);
    let json = serde_json::to_value(&gone).unwrap();
    assert!(json["value"].is_null());
    assert_eq!(json["unavailable"], "permission denied");
}

#[test]
fn a_load_step_is_followed_within_three_periods() {
    for spec in ["1x2", "4x4", "4x16", "8x32"] {
        let machine = machine(spec);
        let cpus = all(&machine);
        let total = cpus.len() as f64;
        // With what waits, and without knowing it.
        for known in [true, false] {
            let mut governor = governor(Policy::default(), &machine);
            governor.step(&busy(0.0, &cpus, 0.0)).unwrap();
            let mut periods = 0;
            while governor.cpus().len() < cpus.len() {
                let now = governor.cpus().len() as f64;
                let mut readings = busy(f64::from(periods), &cpus, now);
                if known {
                    let waiting = Measure::new(2.0 * total - now, "threads", "test");
                    readings.set(WAITING, waiting);
                }
                governor.step(&readings).unwrap();
                periods += 1;
                assert!(periods < 20);
            }
            let bar = if known || cpus.len() <= 64 { 3 } else { 4 };
            assert!(periods <= bar, "{spec}, {known}: {periods} periods");
        }
    }
}

/// Many that come at once and are gone at the next check get all of the node where they are, and no other.
#[test]
fn a_burst_stays_on_its_node() {
    let machine = machine("4x4");
    let cpus = all(&machine);
    let mut governor = governor(Policy::default(), &machine);
    governor.step(&busy(0.0, &cpus, 0.0)).unwrap();
    let mut time = 0.0;
    let mut step = |cpus_busy: f64, waiting: f64| {
        time += 1.0;
        let waiting = Measure::new(waiting, "threads", "test");
        let readings = busy(time, &cpus, cpus_busy).with(WAITING, waiting);
        governor.step(&readings).unwrap()
    };
    for _ in 0..3 {
        let burst = step(1.0, 30.0);
        assert_eq!(burst.cpus.len(), 4, "{burst}");
        assert!(
            burst.why.contains("12 more would be of other nodes"),
            "{burst}"
        );
        assert_eq!(step(2.0, 0.0).cpus.len(), 4, "it is over");
        for _ in 0..3 {
            step(0.1, 0.0);
        }
    }
    step(1.0, 30.0);
    let full = step(3.9, 0.3);
    assert_eq!(full.cpus.len(), 4, "for headroom it leaves no node: {full}");
    assert!(full.why.contains("can do it"), "{full}");
    for _ in 0..2 {
        assert_eq!(step(4.0, 30.0).cpus.len(), 4);
    }
    assert_eq!(step(4.0, 30.0).cpus.len(), 16, "it is none");
}

#[test]
fn slack_releases_what_the_thresholds_would_keep() {
    let machine = machine("4x4");
    let cpus = all(&machine);
    let mut governor = governor(Policy::default(), &machine);
    governor.step(&busy(0.0, &cpus, 0.0)).unwrap();
    let waiting = Measure::new(30.0, "threads", "test");
    for busy_cpus in [1.0, 4.0, 4.0] {
        let readings = busy(busy_cpus, &cpus, busy_cpus);
        governor
            .step(&readings.with(WAITING, waiting.clone()))
            .unwrap();
    }
    assert_eq!(governor.cpus().len(), 16);
    // Five cpus busy: the plain net stays at 16 cores (31 %).
    let after: Vec<usize> = (0..12)
        .map(|at| {
            let readings = busy(f64::from(at) + 5.0, &cpus, 5.0);
            governor.step(&readings).unwrap().cpus.len()
        })
        .collect();
    assert_eq!(
        after[..3],
        [16, 16, 9],
        "three checks agree, then it goes down"
    );
    let last = after[11];
    assert!((8..=9).contains(&last), "{after:?}");
    assert!(
        5.0 / last as f64 <= 0.7,
        "and no further than the load allows"
    );
    // It stays there: no going up and down.
    assert!(
        after[3..].windows(2).all(|pair| pair[0] >= pair[1]),
        "{after:?}"
    );
}

#[test]
fn hysteresis_smoothing_and_rates() {
    let machine = machine("1x8");
    let cpus = all(&machine);
    let policy = Policy {
        confirm_up: 2,
        confirm_down: 2,
        ..Policy::plain()
    };
    let mut slow = governor(policy, &machine);
    let loads = [0.0, 99.0, 99.0, 99.0, 40.0, 99.0, 5.0, 5.0];
    assert_eq!(cores(&mut slow, &cpus, &loads), [1, 1, 2, 2, 2, 2, 2, 1]);

    let policy = Policy {
        smoothing: 0.5,
        ..Policy::plain()
    };
    let mut smooth = governor(policy, &machine);
    // 40, then (40 + 80) / 2, then (60 + 90) / 2.
    assert_eq!(
        cores(&mut smooth, &cpus, &[0.0, 40.0, 80.0, 90.0]),
        [1, 1, 1, 2]
    );

    let policy = Policy {
        rate_changes: 1,
        rate_seconds: 3.0,
        ..Policy::plain()
    };
    let mut rare = governor(policy, &machine);
    let loads = [0.0, 99.0, 99.0, 99.0, 99.0, 99.0];
    assert_eq!(cores(&mut rare, &cpus, &loads), [1, 2, 2, 2, 3, 3]);
    let held = rare.step(&busy(6.0, &cpus, 3.0)).unwrap();
    assert!(held.why.contains("held back"), "{held}");
    assert_eq!(
        held.path(),
        "t1-Overload-t6",
        "the net's own bound holds it"
    );
}

/// Live, time comes from a clock that does not jump; readings of a trace may be anybody's.
#[test]
fn a_clock_that_jumps() {
    let machine = machine("4x4");
    let cpus = all(&machine);
    let policy = Policy {
        rate_changes: 1,
        rate_seconds: 3.0,
        ..Policy::plain()
    };
    let mut jumped = governor(policy, &machine);
    let day = 86_400.0;
    let mut after = Vec::new();
    for time in [0.0, 1.0, 2.0, day, day + 1.0, 5.0, 6.0, -day, -day + 1.0] {
        let decision = jumped.step(&busy(time, &cpus, 99.0)).unwrap();
        after.push(decision.cpus.len());
    }
    // Forward, the limit is over; backward, it begins anew. It never holds for longer than it says.
    assert_eq!(after, [1, 2, 2, 3, 3, 4, 4, 5, 5]);
}

#[test]
fn traffic_instead_of_load() {
    let machine = machine("4x4");
    let cpus = all(&machine);
    let policy = Policy::plain().thresholds_of(Sensor::Traffic);
    let mut governor = governor(policy, &machine);
    let ratios = [0.0, 0.5, 0.4, 0.2, 7.5, 0.1, 0.05];
    let mut after = Vec::new();
    for ratio in ratios {
        let readings =
            Readings::new(0.0, cpus.clone()).with(TRAFFIC, Measure::new(ratio, "ratio", "x"));
        after.push(governor.step(&readings).unwrap().cpus.len());
    }
    assert_eq!(after, [1, 2, 3, 3, 4, 3, 2]);
    let decision = governor.step(&busy(0.0, &cpus, 9.0)).unwrap();
    assert!(decision.why.contains("traffic is not known"), "{decision}");
}

#[test]
fn cpus_that_go_and_come() {
    let machine = machine("2x2");
    let cpus = all(&machine);
    let mut plain = governor(Policy::plain(), &machine);
    assert_eq!(cores(&mut plain, &cpus, &[0.0, 99.0, 99.0]), [1, 2, 3]);
    // Cpu 0 goes offline, or another cpuset takes it.
    let fewer: CpuSet = [1, 3].into_iter().collect();
    let decision = plain.step(&busy(3.0, &fewer, 3.0)).unwrap();
    assert_eq!(decision.cpus, [1]);
    assert!(decision.why.contains("2 cpus to choose from"), "{decision}");
    assert_eq!(plain.step(&busy(4.0, &fewer, 1.0)).unwrap().cpus, [1, 3]);
    let none = plain.step(&busy(5.0, &CpuSet::default(), 1.0)).unwrap();
    assert_eq!(none.cpus, [] as [u32; 0]);
    assert_eq!(plain.step(&busy(6.0, &cpus, 1.0)).unwrap().cpus.len(), 1);
}

#[test]
fn policies_are_checked() {
    let machine = machine("2x2");
    let net = governor::elastic_net().unwrap();
    type Change = fn(&mut Policy);
    let bad: [(Change, &str); 8] = [
        (|p| p.min_cores = 0, "at least one core"),
        (
            |p| (p.min_cores, p.max_cores) = (3, Some(2)),
            "max_cores 2 is below min_cores 3",
        ),
        (|p| p.th_min = 80.0, "0 <= th_min < th_max"),
        (|p| p.th_max = f64::NAN, "0 <= th_min < th_max"),
        (|p| p.smoothing = 0.0, "smoothing"),
        (|p| p.slack = 70.0, "slack"),
        (|p| p.confirm_down = 0, "at least 1"),
        (|p| p.half_life = 0.0, "half_life"),
    ];
    for (change, part) in bad {
        let mut policy = Policy::default();
        change(&mut policy);
        let error = Governor::new(policy, &machine, &net)
            .unwrap_err()
            .to_string();
        assert!(error.contains(part), "{error}");
    }
    let other = petri::ELASTIC.replace("Provision", "Cores");
    let error = Governor::new(
        Policy::default(),
        &machine,
        &petri::Net::parse(&other).unwrap(),
    );
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("no place 'Provision'")
    );
    assert!(
        "thick"
            .parse::<governor::Mode>()
            .unwrap_err()
            .to_string()
            .contains("sparse, dense")
    );
}

#[test]
fn the_net_can_be_replaced() {
    // Two cores at a time.
    let two = petri::ELASTIC.replace(
        "Provision = \"n_alloc + 1\"",
        "Provision = \"min(n_alloc + 2, n_total)\"",
    );
    let machine = machine("1x8");
    let net = petri::Net::parse(&two).unwrap();
    let mut governor = Governor::new(Policy::plain(), &machine, &net).unwrap();
    assert_eq!(
        cores(
            &mut governor,
            &all(&machine),
            &[0.0, 99.0, 99.0, 99.0, 99.0]
        ),
        [1, 3, 5, 7, 8]
    );
}

proptest! {
    /// With the plain policy the cores are what the net alone makes of the same loads.
    #[test]
    fn the_governor_is_the_net(loads in proptest::collection::vec(0u32..=100, 1..60)) {
        let machine = machine("2x3");
        let cpus = all(&machine);
        let mut plain = governor(Policy::plain(), &machine);
        plain.step(&busy(0.0, &cpus, 0.0)).unwrap();
        let net = governor::elastic_net().unwrap().with("n_total", 6).unwrap();
        let mut marking = net.start().unwrap();
        for (at, load) in loads.into_iter().enumerate() {
            let load = f64::from(load);
            let readings = Readings::new(at as f64, cpus.clone()).with(LOAD, Measure::new(load, "per cent", "x"));
            let decision = plain.step(&readings).unwrap();
            let check = net.check(&mut marking, &[("u", load)]).unwrap();
            prop_assert_eq!(decision.cpus.len() as f64, marking.number(&net, "Provision").unwrap());
            prop_assert_eq!(decision.path(), check.path(&net));
        }
    }
}
