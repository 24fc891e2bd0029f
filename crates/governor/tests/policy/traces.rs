//! Recorded traces.

use governor::{
    Decision, Head, Mode, Policy, Power, Trace, WAITING, core_seconds, elastic_net, replay,
};
use proptest::prelude::*;

use super::{all, busy, governor, machine, resident};

/// A trace of a governor with this policy, with a load that goes up and down.
fn record(policy: &Policy, demands: &[f64]) -> Trace {
    let machine = machine("4x4");
    let cpus = all(&machine);
    let mut governor = governor(policy.clone(), &machine);
    let mut decisions = Vec::new();
    for (at, demand) in demands.iter().enumerate() {
        let cores = governor.cpus().len() as f64;
        let waiting = governor::Measure::new((demand - cores).max(0.0), "threads", "test");
        let readings = busy(at as f64 * 0.1, &cpus, demand.min(cores)).with(WAITING, waiting);
        let readings = resident(readings, &[1.0, 2.0 + (at / 7) as f64, 9.0, 0.0]);
        decisions.push(governor.step(&readings).unwrap());
    }
    Trace {
        head: Some(Head::new(&machine, policy)),
        decisions,
    }
}

const DEMANDS: [f64; 14] = [
    0.0, 5.0, 16.0, 16.0, 3.0, 3.0, 3.0, 3.0, 0.1, 0.1, 0.1, 0.1, 9.0, 9.0,
];

#[test]
fn a_trace_says_where_it_is_from_and_reads_as_it_was_written() {
    let trace = record(&Policy::default(), &DEMANDS);
    let head = trace.head.as_ref().unwrap();
    assert_eq!(head.machine, "4x4");
    let mut text = Vec::new();
    trace.write(&mut text).unwrap();
    assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), 15);
    assert_eq!(Trace::read(&text[..]).unwrap(), trace);
    // Without its head, and with empty lines.
    let headless: Vec<u8> = text.splitn(2, |b| *b == b'\n').nth(1).unwrap().to_vec();
    let spaced = [&headless[..], b"\n\n"].concat();
    let read = Trace::read(&spaced[..]).unwrap();
    assert_eq!((read.head, read.decisions), (None, trace.decisions));
}

#[test]
fn another_policy_is_tried_on_a_trace() {
    let trace = record(&Policy::default(), &DEMANDS);
    let machine = machine("4x4");
    let net = elastic_net().unwrap();
    // In sparse mode there is no node to stay on.
    let eager = Policy {
        confirm_node: 1,
        patience: 1,
        ..Policy::default()
    };
    let trace = Trace {
        decisions: replay(&trace, eager, &machine, &net).unwrap(),
        ..trace
    };
    let sparse = Policy {
        mode: Mode::Sparse,
        ..Policy::default()
    };
    let other = replay(&trace, sparse, &machine, &net).unwrap();
    let counts = |of: &[Decision]| of.iter().map(|d| d.cpus.len()).collect::<Vec<_>>();
    assert_eq!(counts(&other), counts(&trace.decisions), "as many cores");
    assert_ne!(other[1].cpus, trace.decisions[1].cpus, "and others");
    let few = Policy {
        max_cores: Some(2),
        ..Policy::default()
    };
    let few = replay(&trace, few, &machine, &net).unwrap();
    assert_eq!(few.iter().map(|d| d.cpus.len()).max(), Some(2));
    let busy = &few[4].readings["busy"];
    assert_eq!(busy.source, "replay, estimated");
    assert_eq!(busy.value, Some(2.0));
    assert!(core_seconds(&few, 1.4) < core_seconds(&trace.decisions, 1.4));
}

#[test]
fn what_is_wrong_with_a_trace_is_named() {
    let trace = record(&Policy::plain(), &DEMANDS[..3]);
    let mut text = Vec::new();
    trace.write(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let told = |text: &str| Trace::read(text.as_bytes()).unwrap_err().to_string();
    assert!(told(&text.replace("\"trace\":1", "\"trace\":2")).contains("line 1: version 2"));
    let broken = text.replacen("\"place\"", "\"plaice\"", 1);
    assert!(told(&broken).contains("line 2"), "{}", told(&broken));
    assert!(told(&format!("{text}not json\n")).contains("line 5"));
    let lines: Vec<&str> = text.lines().collect();
    let back = [lines[0], lines[3], lines[2]].join("\n");
    assert!(told(&back).contains("line 3: its time goes back"));
    assert!(told(&"x".repeat(2 << 20)).contains("longer than"));
    let mut odd = trace.clone();
    odd.decisions[1].available = "0-".to_owned();
    let net = elastic_net().unwrap();
    let error = replay(&odd, Policy::plain(), &machine("4x4"), &net).unwrap_err();
    assert!(error.to_string().contains("trace, line 3"), "{error}");
}

#[test]
fn energy_is_estimated_as_the_document_does() {
    let power = Power {
        core_watts: governor::OPTERON_8387_WATTS / 4.0,
        joules_per_bit: Some(1e-11),
    };
    let energy = power.energy(8.0, Some(1e9));
    assert_eq!(energy.cpu_joules, 150.0);
    assert!((energy.link_joules.unwrap() - 0.08).abs() < 1e-9);
    assert!(energy.estimate);
    let unknown = Power {
        joules_per_bit: None,
        ..power
    };
    assert_eq!(unknown.energy(1.0, Some(1.0)).link_joules, None);
    let trace = record(&Policy::plain(), &DEMANDS[..2]);
    // One core for 0.1 s, then two.
    let sum = core_seconds(&trace.decisions, 1.1);
    assert!((sum - 2.1).abs() < 1e-9, "{sum}");
    assert_eq!(core_seconds(&[], 5.0), 0.0);
}

proptest! {
    /// Decided again with the same policy, a trace gives the same decisions.
    #[test]
    fn a_replay_is_exact(
        demands in proptest::collection::vec(0.0f64..20.0, 1..40),
        mode in prop_oneof![Just(Mode::Sparse), Just(Mode::Dense), Just(Mode::Adaptive)],
        plain in any::<bool>(),
    ) {
        let base = if plain { Policy::plain() } else { Policy::default() };
        let policy = Policy { mode, smoothing: 0.7, ..base };
        let trace = record(&policy, &demands);
        let mut text = Vec::new();
        trace.write(&mut text).unwrap();
        let read = Trace::read(&text[..]).unwrap();
        let again = replay(&read, policy, &machine("4x4"), &elastic_net().unwrap()).unwrap();
        prop_assert_eq!(again, trace.decisions);
    }

    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Trace::read(&bytes[..]);
    }
}
