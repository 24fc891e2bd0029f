//! Cores are exchanged for those of the node that has the pages.

use governor::{
    Decision, Governor, Member, Mode, Policy, RESIDENCY, Readings, Together, Trace, elastic_net,
    replay,
};
use placement::CpuSet;
use proptest::prelude::*;
use topology::Machine;

use super::machines::Plan;
use super::{all, busy, governor, machine, resident};

/// A governor on a machine, and the time of its readings.
struct Run {
    machine: Machine,
    governor: Governor,
    available: CpuSet,
    time: f64,
    decisions: Vec<Decision>,
}

impl Run {
    /// It has these cpus already.
    fn on(machine: Machine, policy: Policy, cpus: &[u32]) -> Run {
        let mut run = Run {
            governor: governor(policy, &machine),
            available: all(&machine),
            machine,
            time: 0.0,
            decisions: Vec::new(),
        };
        run.governor.holds(&cpus.iter().copied().collect());
        run
    }

    /// A check that finds its cores at 65 %, which changes nothing, and so much on each node.
    fn check(&mut self, bytes: &[f64]) -> Decision {
        self.loaded(0.65, bytes)
    }

    fn loaded(&mut self, load: f64, bytes: &[f64]) -> Decision {
        let readings = self.readings(load, bytes);
        self.step(&readings)
    }

    fn readings(&mut self, load: f64, bytes: &[f64]) -> Readings {
        self.time += 0.1;
        let cores = self.governor.cpus().len() as f64;
        resident(busy(self.time, &self.available, load * cores), bytes)
    }

    fn step(&mut self, readings: &Readings) -> Decision {
        let decision = self.governor.step(readings).unwrap();
        self.decisions.push(decision.clone());
        decision
    }

    fn cpus(&self) -> String {
        self.governor.cpus().to_string()
    }
}

#[test]
fn cores_go_to_the_pages_once_three_looks_agree() {
    let mut run = Run::on(machine("4x4"), Policy::default(), &[0, 1]);
    let bytes = [5.0, 91.0, 0.0, 4.0];
    assert_eq!(run.check(&bytes).cpus, [0, 1]);
    assert_eq!(run.check(&bytes).cpus, [0, 1]);
    let decision = run.check(&bytes);
    assert_eq!(decision.cpus, [4, 5]);
    assert_eq!(decision.cores_before, 2);
    assert!(decision.changed());
    assert_eq!(
        decision.to_string(),
        "0.300 s  t2-Stable-t3  2 cores, 4-5: load 65 % of 2 cores; \
         exchanged core 0 (node 0) for 4 (node 1), core 1 (node 0) for 5 (node 1): 91 % of its pages are there"
    );
    let json = serde_json::to_value(&decision).unwrap();
    assert_eq!(json["action"], "none");
    let first = serde_json::json!({"from": {"cpu": 0, "node": 0}, "to": {"cpu": 4, "node": 1}});
    assert_eq!(json["exchanged"][0], first);
    assert_eq!(json["allocated"].as_array().unwrap().len(), 2);
    assert_eq!(json["released"].as_array().unwrap().len(), 2);
    for _ in 0..50 {
        assert!(!run.check(&bytes).changed());
    }
}

#[test]
fn one_look_read_again_is_no_second_opinion() {
    let mut run = Run::on(machine("2x4"), Policy::default(), &[0]);
    let mut check = |age: f64| {
        let mut readings = run.readings(0.65, &[1.0, 99.0]);
        for node in 0..2 {
            let measure = readings.values.get_mut(&format!("{RESIDENCY}{node}"));
            measure.unwrap().age_seconds = age;
        }
        run.step(&readings).cpus
    };
    for at in 0..20 {
        assert_eq!(check(f64::from(at) * 0.1), [0]);
    }
    assert_eq!(check(0.0), [0], "the second");
    assert_eq!(check(0.1), [0]);
    assert_eq!(check(0.0), [4], "the third");
}

#[test]
fn pages_half_and_half_move_nothing() {
    let mut run = Run::on(machine("2x4"), Policy::default(), &[0, 1]);
    for at in 0..200 {
        let more = 50.0 + f64::from(at % 30) - 15.0;
        assert!(!run.check(&[more, 100.0 - more]).changed());
    }
    assert_eq!(run.cpus(), "0-1");
    // Not even where they are told to lie on one node, then on the other.
    for at in 0..200 {
        let more = if at % 3 == 0 { 5.0 } else { 95.0 };
        assert!(!run.check(&[more, 100.0 - more]).changed());
    }
    // Pages that really go to and fro take the cores with them now and then only.
    let changes = (0..100).filter(|at| {
        let more = if at / 5 % 2 == 0 { 5.0 } else { 95.0 };
        run.check(&[more, 100.0 - more]).changed()
    });
    assert!((1..=5).contains(&changes.count()));
}

#[test]
fn a_full_node_takes_as_many_as_it_can() {
    // Cpus 4 and 5 are all that may be used of the node with the pages.
    let mut run = Run::on(machine("4x4"), Policy::default(), &[0, 1, 2, 3]);
    run.available = (0..6).chain(8..16).collect();
    let bytes = [1.0, 90.0, 8.0, 1.0];
    for _ in 0..3 {
        run.check(&bytes);
    }
    assert_eq!(run.cpus(), "2-5", "the first two of them");
    // After a rest the others go to the next best.
    for _ in 0..30 {
        run.check(&bytes);
    }
    assert_eq!(run.cpus(), "4-5,8-9");
    for _ in 0..50 {
        assert!(!run.check(&bytes).changed());
    }
}

/// Nodes with so many cores.
fn nodes(cores: &[usize]) -> Machine {
    let far = |at: usize| {
        if at.is_multiple_of(cores.len() + 1) {
            10
        } else {
            20
        }
    };
    let plan = Plan {
        nodes: cores.iter().map(|count| vec![vec![1; *count]]).collect(),
        distances: (0..cores.len() * cores.len()).map(far).collect(),
        caches: false,
    };
    plan.machine()
}

#[test]
fn uneven_nodes() {
    let mut run = Run::on(nodes(&[5, 2, 1]), Policy::default(), &[0, 1, 2]);
    for _ in 0..60 {
        run.check(&[10.0, 60.0, 30.0]);
    }
    // All of the two, and the one of the next best.
    assert_eq!(run.cpus(), "5-7");
}

#[test]
fn memory_without_cores() {
    // What lies on the third node, of memory only, is best used from the one nearest to it.
    let machine = nodes(&[2, 2, 0]);
    let sites = governor::Sites::new(&machine, governor::Siblings::Last);
    let weights = sites.weights(&[(2, 90.0)].into());
    let near = weights.iter().position(|bytes| *bytes > 0.0).unwrap();
    let (far, there) = if near == 0 { ([2], "0") } else { ([0], "2") };
    let mut run = Run::on(machine, Policy::default(), &far);
    for _ in 0..3 {
        run.check(&[5.0, 5.0, 90.0]);
    }
    assert_eq!(run.cpus(), there);
}

#[test]
fn a_whole_core_is_not_given_for_a_second_thread() {
    // Two nodes of two cores of two threads; cpus 0, 1 are one core. Others have cpus 4 and 6.
    let spec = "node:2 core:2 pu:2";
    let mut run = Run::on(machine(spec), Policy::default(), &[0, 1]);
    run.available = [0, 1, 2, 3, 5, 7].into_iter().collect();
    for _ in 0..60 {
        run.check(&[1.0, 99.0]);
    }
    assert_eq!(run.cpus(), "0,5", "a second thread for a second thread");
    run.available = all(&run.machine);
    for _ in 0..60 {
        run.check(&[1.0, 99.0]);
    }
    assert_eq!(run.cpus(), "4-5");
}

#[test]
fn other_modes_and_the_plain_net_stay() {
    let dense = Policy {
        mode: Mode::Dense,
        ..Policy::default()
    };
    for policy in [dense, Policy::plain()] {
        let mut run = Run::on(machine("2x4"), policy, &[0, 1]);
        for _ in 0..10 {
            assert!(!run.check(&[1.0, 99.0]).changed());
        }
    }
}

#[test]
fn it_is_done_while_the_number_of_cores_goes_up_and_down() {
    // No check does both.
    let policy = Policy {
        max_cores: Some(4),
        confirm_down: 1,
        ..Policy::default()
    };
    let mut run = Run::on(machine("4x4"), policy, &[0, 1, 2]);
    let mut exchanges = 0;
    for at in 0..40usize {
        let load = [1.0, 0.65, 0.65, 0.3][at % 4];
        let decision = run.loaded(load, &[2.0, 98.0]);
        let counts = decision.cores_before == decision.cpus.len();
        assert!(counts || decision.exchanged.is_empty(), "{decision}");
        exchanges += decision.exchanged.len();
    }
    assert!(exchanges > 0);
    let away = run.governor.cpus().iter().filter(|cpu| *cpu < 4);
    assert_eq!(away.count(), 0, "{}", run.cpus());
}

#[test]
fn others_keep_their_cores() {
    let machine = machine("2x2");
    let mut together = Together::new();
    for (name, cpus) in [("a", [0u32, 1]), ("b", [2, 3])] {
        let mut one = governor(Policy::default(), &machine);
        one.holds(&cpus.into_iter().collect());
        let member = Member {
            name: name.to_owned(),
            weight: 1.0,
            governor: one,
        };
        together.add(member).unwrap();
    }
    // All that both have is on the second node, and b needs one core only from the tenth check on.
    let mut last = Vec::new();
    for at in 0..60 {
        let loads = [1.3, if at < 10 { 1.3 } else { 0.6 }];
        let readings = loads.map(|load| {
            let readings = busy(f64::from(at), &all(&machine), load);
            resident(readings, &[1.0, 99.0])
        });
        last = together.step(&readings).unwrap();
        let mut all: Vec<u32> = last.iter().flat_map(|one| one.cpus.clone()).collect();
        all.sort_unstable();
        all.dedup();
        let sum: usize = last.iter().map(|one| one.cpus.len()).sum();
        assert_eq!(all.len(), sum, "no core is in two sets");
        if at < 10 {
            assert_eq!(last[0].cpus, [0, 1], "there is none to be had");
        }
    }
    assert_eq!(last[1].cpus, [2]);
    assert_eq!(last[0].cpus, [1, 3], "the one that b gave back");
}

proptest! {
    /// Whatever is read: an exchange leaves the number of cores as it is, goes to a node with far more pages and
    /// is followed by a rest; and the trace decided again is the same.
    #[test]
    fn an_exchange_is_one_for_one(
        checks in proptest::collection::vec((0.0f64..1.2, 0.0f64..9.0, 0.0f64..9.0, 0.0f64..9.0), 1..80),
        rest in 0u32..9,
    ) {
        let policy = Policy { rest_follow: rest, ..Policy::default() };
        let mut run = Run::on(machine("3x2"), policy.clone(), &[]);
        let mut since = u32::MAX;
        for (load, a, b, c) in checks {
            let before = run.governor.cpus().len();
            let bytes = [a, b, c];
            let decision = run.loaded(load, &bytes);
            since = since.saturating_add(1);
            if !decision.exchanged.is_empty() {
                prop_assert_eq!(decision.cpus.len(), before);
                prop_assert_eq!(decision.released.len(), decision.exchanged.len());
                prop_assert!(since >= rest.max(1), "{} after {}", decision, since);
                since = 0;
            }
            for one in &decision.exchanged {
                let of = |node: u32| bytes[node as usize];
                prop_assert!(of(one.to.node) > 2.0 * of(one.from.node), "{}", decision);
            }
        }
        let trace = Trace { head: None, decisions: run.decisions };
        let mut text = Vec::new();
        trace.write(&mut text).unwrap();
        let read = Trace::read(&text[..]).unwrap();
        let again = replay(&read, policy, &run.machine, &elastic_net().unwrap()).unwrap();
        prop_assert_eq!(again, trace.decisions);
    }
}
