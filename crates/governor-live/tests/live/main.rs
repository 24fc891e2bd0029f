//! Governing real processes: what is set, what is put back, and what happens meanwhile.
//!
//! Nothing here depends on how long something takes, but for a limit after which it counts as stuck.

mod groups;
mod hostile;
mod load;
mod safety;
mod within;

use std::time::Instant;

use governor::{BUSY, Decision, Policy, Trace, WAITING};
use governor_live::{Error, Live, Metrics, Target};
use placement::CpuSet;

use load::{Load, all_cpus, governed, options, several_cpus, until};

#[test]
fn cores_follow_the_load_and_everything_is_put_back() {
    if !several_cpus("a load that needs more than one core") {
        return;
    }
    let load = Load::start(&["threads", "4"]);
    let before = load.affinities();
    let mut live = governed(&load);
    let first = live.check().unwrap().remove(0);
    assert_eq!(first.cpus.len(), 1, "{first}");
    assert_eq!(load.affinities(), vec![first.cpus(); before.len()]);
    load.busy(true);
    let all = all_cpus();
    let grown = until(&mut live, |decision| decision.cpus.len() == all.len());
    assert!(grown.readings[BUSY].value.is_some(), "{grown:?}");
    assert_eq!(grown.readings[WAITING].unit, "threads");
    assert_eq!(load.affinities(), vec![all; before.len()]);
    load.busy(false);
    let shrunk = until(&mut live, |decision| decision.cpus.len() == 1);
    assert_eq!(load.affinities(), vec![shrunk.cpus(); before.len()]);
    live.end().unwrap();
    assert_eq!(load.affinities(), before);
}

#[test]
fn a_recorded_run_is_decided_again() {
    let load = Load::start(&["threads", "3"]);
    let mut live = governed(&load);
    let mut decisions = Vec::new();
    for at in 0..60 {
        load.busy((at / 15) % 2 == 0);
        decisions.extend(live.check().unwrap());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    live.end().unwrap();
    let mut text = Vec::new();
    let trace = Trace {
        head: None,
        decisions,
    };
    trace.write(&mut text).unwrap();
    let read = Trace::read(&text[..]).unwrap();
    let machine = topology::Machine::live().unwrap();
    let net = governor::elastic_net().unwrap();
    let again = governor::replay(&read, Policy::default(), &machine, &net).unwrap();
    let cores = |of: &[Decision]| -> Vec<Vec<u32>> { of.iter().map(|d| d.cpus.clone()).collect() };
    assert_eq!(cores(&again), cores(&trace.decisions));
}

#[test]
fn a_dry_run_changes_nothing() {
    let load = Load::start(&["threads", "2"]);
    load.busy(true);
    let before = load.affinities();
    let mut options = options(&load);
    options.dry_run = true;
    let mut live = load.govern(options).unwrap();
    for _ in 0..5 {
        let decision = live.check().unwrap().remove(0);
        assert!(!decision.cpus.is_empty());
        assert_eq!(load.affinities(), before);
    }
}

#[test]
fn a_thread_that_bound_itself_keeps_its_wish() {
    if !several_cpus("a thread that binds itself to one of two cpus") {
        return;
    }
    let load = Load::start(&["threads", "2"]);
    let all = all_cpus();
    let last = all.iter().last().unwrap();
    let wish: CpuSet = [last].into_iter().collect();
    let thread = load.threads()[1];
    placement::apply::bind(thread, &wish).unwrap();
    let before = load.affinities();
    let mut live = governed(&load);
    let one = live.check().unwrap().remove(0);
    assert_eq!(load.affinities(), vec![one.cpus(); before.len()]);
    load.busy(true);
    until(&mut live, |decision| decision.cpus.len() == all.len());
    assert_eq!(placement::apply::cpus_of(thread).unwrap(), wish);
    live.end().unwrap();
    assert_eq!(load.affinities(), before);
}

#[test]
fn processes_by_name_share_the_machine() {
    let (one, other) = (
        Load::start(&["threads", "1"]),
        Load::start(&["threads", "1"]),
    );
    let names = [one.name(), other.name()];
    let wanted = names
        .iter()
        .map(|name| load::wanted(Target::Name(name.clone())));
    let mut live = Live::begin(wanted.collect(), options(&one)).unwrap();
    let decisions = live.check().unwrap();
    let told: Vec<_> = decisions
        .iter()
        .map(|d| d.target.clone().unwrap())
        .collect();
    assert_eq!(told, names);
    if several_cpus("two databases on cpus of their own") {
        let (a, b) = (decisions[0].cpus(), decisions[1].cpus());
        assert!(a.iter().all(|cpu| !b.contains(cpu)), "{a} and {b}");
    }
    drop(other);
    let limit = Instant::now() + load::LIMIT;
    while live.check().unwrap().len() == 2 {
        assert!(
            Instant::now() < limit,
            "the one that ended is still governed"
        );
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let notes = live.notes().join("\n");
    assert!(notes.contains("has ended"), "{notes}");
    drop(one);
    let ended = loop {
        match live.check() {
            Ok(_) => assert!(Instant::now() < limit, "both have ended"),
            Err(error) => break error,
        }
    };
    assert!(matches!(ended, Error::Ended { .. }), "{ended}");
}

#[test]
fn who_looks_on_sees_one_governor_after_the_other() {
    let status = std::sync::Arc::default();
    let begin = |load: &Load| {
        let options = governor_live::Options {
            status: std::sync::Arc::clone(&status),
            ..options(load)
        };
        load.govern(options).unwrap()
    };
    let targets = || -> Vec<String> {
        let status = status.lock().unwrap();
        let names = status
            .targets
            .iter()
            .map(|standing| standing.target.clone());
        names.collect()
    };
    for load in [
        Load::start(&["threads", "1"]),
        Load::start(&["threads", "1"]),
    ] {
        assert_eq!(targets(), [""; 0], "none between two");
        let mut live = begin(&load);
        live.check().unwrap();
        assert_eq!(targets(), [format!("process {}", load.pid())]);
        let decisions = status.lock().unwrap().targets[0].decisions;
        assert_eq!(decisions, 1, "of this governor, not of the one before");
        live.end().unwrap();
    }
    assert_eq!(targets(), [""; 0]);
}

#[test]
fn idle_processes_are_known_not_to_wait() {
    let load = Load::start(&["backends", "40"]);
    let mut live = governed(&load);
    live.check().unwrap();
    for _ in 0..80 {
        std::thread::sleep(std::time::Duration::from_millis(10));
        let decision = live.check().unwrap().remove(0);
        let waiting = &decision.readings[WAITING];
        assert!(waiting.value.is_some(), "{waiting:?}");
    }
    assert_eq!(live.notes(), [""; 0]);
}

#[test]
fn traffic_is_read_or_said_not_to_be() {
    let load = Load::start(&["threads", "2"]);
    load.busy(true);
    let mut options = options(&load);
    options.policy = Policy::default().thresholds_of(governor::Sensor::Traffic);
    let mut live = load.govern(options).unwrap();
    live.check().unwrap();
    for _ in 0..5 {
        std::thread::sleep(std::time::Duration::from_millis(5));
        let decision = live.check().unwrap().remove(0);
        let traffic = &decision.readings[governor::TRAFFIC];
        match (traffic.value, &traffic.unavailable) {
            (Some(ratio), _) => assert!(ratio >= 0.0, "{traffic:?}"),
            (None, Some(_)) => {
                assert_eq!(decision.cpus.len(), 1, "nothing changes: {decision}");
                assert!(decision.why.contains("traffic is not known"), "{decision}");
            }
            (None, None) => panic!("{traffic:?}"),
        }
    }
    let notes = live.notes();
    let said = notes.iter().filter(|note| note.starts_with("traffic"));
    assert!(said.count() <= 1, "{notes:?}");
}

#[test]
fn prometheus_gets_the_state() {
    use std::io::{Read, Write};
    let load = Load::start(&["threads", "1"]);
    let mut live = governed(&load);
    live.check().unwrap();
    let outside = Metrics::serve("0.0.0.0:0".parse().unwrap(), live.status()).unwrap_err();
    assert!(outside.to_string().contains("127.0.0.1"), "{outside}");
    let metrics = Metrics::serve("127.0.0.1:0".parse().unwrap(), live.status()).unwrap();
    let ask = |path: &str| {
        let mut stream = std::net::TcpStream::connect(metrics.address()).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = ask("/metrics");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let target = format!("target=\"process {}\"", load.pid());
    assert!(
        answer.contains(&format!("atoll_govern_cores{{{target}}} 1\n")),
        "{answer}"
    );
    live.check().unwrap();
    let answer = ask("/metrics");
    let family = "atoll_govern_energy_estimated_joules_total";
    assert!(
        answer.contains(&format!("# TYPE {family} counter")),
        "{answer}"
    );
    assert!(
        answer.contains(&format!("{family}{{{target}}} ")),
        "{answer}"
    );
    let spent = live.spent().remove(0);
    assert!(
        spent.energy.estimate && spent.seconds > 0.0 && spent.used <= spent.core_seconds + 0.1,
        "{spent}"
    );
    assert!(ask("/x").starts_with("HTTP/1.1 404"));
}

#[test]
fn what_is_not_there_is_said() {
    let load = Load::start(&["threads", "1"]);
    for (target, part) in [
        (Target::Name("no-such-name".into()), "no-such-name"),
        (Target::Pid(0x3fff_ffff), "1073741823"),
        (Target::Cgroup("/no/such/group".into()), "/no/such/group"),
    ] {
        let error = Live::begin(vec![load::wanted(target)], options(&load)).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
}
