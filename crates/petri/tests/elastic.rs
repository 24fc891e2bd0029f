//! The net of the databases (E1 to E4): its matrices, its worked examples, and its properties by
//! going through all its states.

use petri::{Check, ELASTIC, Marking, Net, Value};

const PLACES: [&str; 5] = ["Checks", "Stable", "Idle", "Overload", "Provision"];

fn net(n_total: u32) -> Net {
    Net::parse(ELASTIC)
        .unwrap()
        .with("n_total", n_total)
        .unwrap()
}

/// One check with so many cores allocated.
fn check(net: &Net, cores: u32, u: f64) -> (Check, Marking) {
    let start = net.start().unwrap();
    let mut marking = start
        .replaced(net, "Provision", Value::from(cores))
        .unwrap();
    let check = net.check(&mut marking, &[("u", u)]).unwrap();
    (check, marking)
}

fn rows(matrix: &[Vec<String>]) -> Vec<String> {
    matrix.iter().map(|row| row.join(" ")).collect()
}

#[test]
fn the_whole_is_a_5_by_8_matrix() {
    let net = net(16);
    let all = net
        .incidence()
        .of(&PLACES, &["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"]);
    let all = all.unwrap();
    assert_eq!(
        rows(&all.written(&all.pre)),
        [
            "u u u 0 0 0 0 0",
            "0 0 0 u 0 0 0 0",
            "0 0 0 0 n_a 0 0 n_a",
            "0 0 0 0 0 n_a n_a 0",
            "n_a n_a 0 0 0 0 0 0",
        ]
    );
    assert_eq!(
        rows(&all.written(&all.post)),
        [
            "0 0 0 u u u u u",
            "0 0 u 0 0 0 0 0",
            "n_a 0 0 0 0 0 0 0",
            "0 n_a 0 0 0 0 0 0",
            "0 0 0 0 n_a n_a n_a n_a",
        ]
    );
    assert_eq!(
        all.to_string().lines().nth(1),
        Some("Checks       -u    -u    -u     u     u     u     u     u")
    );
}

#[test]
fn overload_u_99_with_3_of_16_cores() {
    let net = net(16);
    let (check, marking) = check(&net, 3, 99.0);
    assert_eq!(check.path(&net), "t1-Overload-t5");
    assert_eq!(marking.number(&net, "Provision").unwrap(), 4.0);
    assert_eq!(marking.number(&net, "Checks").unwrap(), 99.0);
    let of = net.incidence().of(
        &["Checks", "Overload", "Provision"],
        &check.transitions(&net),
    );
    let of = of.unwrap();
    assert_eq!(rows(&of.written(&of.post)), ["0 u", "n_a 0", "0 n_a"]);
    assert_eq!(rows(&of.written(&of.pre)), ["u 0", "0 n_a", "n_a 0"]);
    assert_eq!(rows(&of.transposed()), ["-u n_a -n_a", "u -n_a n_a"]);
    // "... the CPU load, that goes down to 68 %": the next check is stable.
    let mut marking = marking;
    let next = net.check(&mut marking, &[("u", 68.0)]).unwrap();
    assert_eq!(next.path(&net), "t2-Stable-t3");
    assert_eq!(marking.number(&net, "Provision").unwrap(), 4.0);
}

#[test]
fn idle_u_8_to_10_with_5_cores() {
    let net = net(16);
    for u in [8.0, 10.0] {
        let (check, marking) = check(&net, 5, u);
        assert_eq!(check.path(&net), "t0-Idle-t4");
        assert_eq!(check.places(&net), ["Idle"]);
        assert_eq!(marking.number(&net, "Provision").unwrap(), 4.0);
        let of = net
            .incidence()
            .of(&["Checks", "Idle", "Provision"], &check.transitions(&net));
        let of = of.unwrap();
        assert_eq!(rows(&of.written(&of.post)), ["0 u", "n_a 0", "0 n_a"]);
        assert_eq!(rows(&of.written(&of.pre)), ["u 0", "0 n_a", "n_a 0"]);
        assert_eq!(rows(&of.transposed()), ["-u n_a -n_a", "u -n_a n_a"]);
    }
}

#[test]
fn stable_u_40() {
    let net = net(16);
    let (check, marking) = check(&net, 3, 40.0);
    assert_eq!(check.path(&net), "t2-Stable-t3");
    assert_eq!(marking.number(&net, "Provision").unwrap(), 3.0);
    let of = net
        .incidence()
        .of(&["Checks", "Stable"], &check.transitions(&net));
    let of = of.unwrap();
    assert_eq!(rows(&of.written(&of.post)), ["0 u", "u 0"]);
    assert_eq!(rows(&of.written(&of.pre)), ["u 0", "0 u"]);
    assert_eq!(rows(&of.transposed()), ["-u u", "u -u"]);
}

#[test]
fn the_bounds() {
    let net = net(16);
    let (full, marking) = check(&net, 16, 100.0);
    assert_eq!(full.path(&net), "t1-Overload-t6");
    assert_eq!(marking.number(&net, "Provision").unwrap(), 16.0);
    let (least, marking) = check(&net, 1, 0.0);
    assert_eq!(least.path(&net), "t0-Idle-t7");
    assert_eq!(marking.number(&net, "Provision").unwrap(), 1.0);
    for (u, path) in [
        (10.0, "t0-Idle-t4"),
        (10.5, "t2-Stable-t3"),
        (69.5, "t2-Stable-t3"),
        (70.0, "t1-Overload-t5"),
    ] {
        assert_eq!(check(&net, 2, u).0.path(&net), path);
    }
}

/// Loads of which guards can tell no more: each threshold, beside it, between, and the ends.
fn loads(net: &Net) -> Vec<f64> {
    let mut loads: Vec<f64> = (0..=100).map(f64::from).collect();
    for name in ["th_min", "th_max"] {
        let threshold = net.parameter(name).unwrap();
        loads.extend([threshold - 0.25, threshold, threshold + 0.25]);
    }
    loads
}

/// Goes through all states and proves E1's properties.
fn prove(net: &Net) {
    let (least, most) = (
        net.parameter("n_min").unwrap(),
        net.parameter("n_total").unwrap(),
    );
    let loads: Vec<[(&str, f64); 1]> = loads(net).into_iter().map(|u| [("u", u)]).collect();
    let readings: Vec<petri::Readings<'_>> = loads.iter().map(|one| &one[..]).collect();
    let graph = net
        .explore(&net.start().unwrap(), &readings, 1_000_000)
        .unwrap();
    let place = |name: &str| net.place(name).unwrap();
    // Exactly one of Checks, Stable, Idle and Overload is marked, with one token.
    let states = ["Checks", "Stable", "Idle", "Overload"].map(place);
    let broken = graph.violating(|m| states.iter().map(|p| m.tokens(*p).len()).sum::<usize>() == 1);
    assert_eq!(broken, [] as [usize; 0]);
    // The number of cores is in one place, and within its bounds.
    let holders = ["Provision", "Idle", "Overload"].map(place);
    let broken = graph.violating(|marking| {
        let mut tokens = holders.iter().flat_map(|place| marking.tokens(*place));
        let number = tokens.next().and_then(Value::as_number);
        number.is_some_and(|n| (least..=most).contains(&n)) && tokens.next().is_none()
    });
    assert_eq!(broken, [] as [usize; 0]);
    assert_eq!(graph.dead(), [] as [usize; 0]);
    assert!(graph.returns(), "the start can be reached from everywhere");
    for name in PLACES {
        assert!(graph.reaches(place(name)), "{name} is reached");
        assert_eq!(graph.most_tokens(place(name)), 1, "{name} is safe");
    }
    for cores in least as u32..=most as u32 {
        let with = |m: &Marking| m.tokens(holders[0]) == [Value::from(cores)];
        assert!(graph.markings.iter().any(with), "{cores} cores are reached");
    }
    // From each state at rest, each load leads through exactly one of the three.
    let mut out: Vec<Vec<petri::Edge>> = vec![Vec::new(); graph.markings.len()];
    for edge in &graph.edges {
        out[edge.from].push(*edge);
    }
    let mut fired = vec![false; net.transitions().len()];
    for edges in &out {
        if edges.iter().any(|edge| edge.transition.is_none()) {
            assert_eq!(edges.len(), readings.len(), "at rest each reading may come");
        } else {
            assert_eq!(edges.len(), 1, "what happens is determined");
            fired[edges[0].transition.unwrap()] = true;
        }
    }
    let moves = most > least;
    for (transition, fired) in net.transitions().iter().zip(fired) {
        let needs_room = ["t4", "t5"].contains(&&*transition.name);
        assert_eq!(fired, moves || !needs_room, "{}", transition.name);
    }
}

#[test]
fn all_states_hold_what_the_text_promises() {
    for n_total in [1, 2, 3, 16] {
        prove(&net(n_total));
    }
    let odd = Net::parse(ELASTIC).unwrap().with_all(&[
        ("n_total", 9.0),
        ("n_min", 4.0),
        ("th_min", 0.5),
        ("th_max", 99.5),
    ]);
    prove(&odd.unwrap());
}

#[test]
fn invariants() {
    let net = net(16);
    let names = |weights: &Vec<i64>| -> Vec<&str> {
        assert!(weights.iter().all(|w| (0..=1).contains(w)));
        let marked = net.places().iter().zip(weights).filter(|(_, w)| **w == 1);
        marked.map(|(place, _)| &*place.name).collect()
    };
    let places = net.place_invariants().unwrap();
    let mut told: Vec<_> = places.iter().map(names).collect();
    told.sort_unstable();
    assert_eq!(
        told,
        [
            vec!["Checks", "Stable", "Idle", "Overload"],
            vec!["Idle", "Overload", "Provision"]
        ]
    );
    // Each way through the net and back is one: t0 with t4 or t7, t1 with t5 or t6, t2 with t3.
    assert_eq!(net.transition_invariants().unwrap().len(), 5);
    for weights in net.transition_invariants().unwrap() {
        assert_eq!(weights.iter().sum::<i64>(), 2);
    }
}

#[test]
fn parameters_are_checked() {
    let net = Net::parse(ELASTIC).unwrap();
    let error = net.with("th_min", 70).unwrap_err().to_string();
    assert_eq!(
        error,
        "the net requires th_min < th_max, and here th_min is 70 and th_max is 70"
    );
    let error = net.with("th_mni", 70).unwrap_err().to_string();
    assert!(
        error.contains("th_mni") && error.contains("th_min"),
        "{error}"
    );
    assert!(net.with("n_total", 0).is_err());
    assert!(net.with("n_total", f64::NAN).is_err());
    let mut marking = net.start().unwrap();
    let before = marking.clone();
    for (readings, part) in [
        (
            &[("u", 101.0)][..],
            "Checks takes numbers from 0 to u_max, not 101",
        ),
        (&[("u", f64::NAN)][..], "NaN"),
        (&[][..], "no reading"),
        (&[("v", 1.0)][..], "no reading 'v'"),
    ] {
        let error = net.check(&mut marking, readings).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert_eq!(marking, before);
    }
}
