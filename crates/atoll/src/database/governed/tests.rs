use super::*;

#[test]
fn each_cpu_has_a_place_on_its_node() {
    let live = Machine::live().unwrap();
    for spec in ["4x2", "2x1", "3x5"] {
        let machine = Machine::parse(spec).unwrap();
        let sites = sites(&machine, &live, true);
        assert_eq!(sites.len(), machine.cpus(), "{spec}");
        for (cpu, place) in &sites {
            assert_eq!(machine.node_of_cpu(*cpu), Some(place.node), "{spec} {cpu}");
            assert!(live.node_of_cpu(place.cpu).is_some());
        }
        // As many workers as nodes are laid out one to each.
        let nodes = machine.nodes().len();
        let few = Layout::of(&machine, &live, nodes, true);
        let cpus = cpus_of(&sites, few.places());
        let mut at: Vec<_> = cpus
            .iter()
            .filter_map(|cpu| machine.node_of_cpu(cpu))
            .collect();
        at.sort_unstable();
        assert_eq!(at, (0..nodes).collect::<Vec<_>>(), "{spec}");
    }
    let own = sites(&live, &live, true);
    assert!(own.iter().all(|(cpu, place)| *cpu == place.cpu), "{own:?}");
    let all = Layout::of(&live, &live, 3 * live.cpus(), true);
    assert_eq!(
        cpus_of(&own, all.places()).len(),
        live.cpus(),
        "several on each"
    );
}

#[test]
fn a_governed_database_answers_and_tells() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options {
        threads: Some(4),
        machine: Some("2x2".to_owned()),
        govern: Govern::On,
        ..Options::default()
    };
    let database = crate::Database::create(directory.path().join("a"), &options).unwrap();
    let session = database.session();
    session.sql("create table t (n bigint)").unwrap();
    session
        .sql("insert into t select * from generate_series(1, 1000)")
        .unwrap();
    // Pairs of a thousand rows: it takes a moment.
    let count = "select count(*), sum(a.n * b.n % 7) from t a, t b where a.n + b.n > 3";
    let expected = session.sql(count).unwrap()[0].batches.clone();
    for width in [1, 3, 4] {
        database.workers().set_width(width).unwrap();
        assert_eq!(session.sql(count).unwrap()[0].batches, expected);
    }
    let answer = session.sql(&format!("explain analyze {count}")).unwrap();
    let text = arrow::util::pretty::pretty_format_batches(&answer[0].batches).unwrap();
    let text = text.to_string();
    assert!(text.contains("governed: it began with "), "{text}");
    let laq = session.analyze_laq("return(sum(lift(t.n)))").unwrap();
    let text = arrow::util::pretty::pretty_format_batches(&laq.batches).unwrap();
    assert!(text.to_string().contains("governed: "), "{text}");
    drop(session);
    database.close().unwrap();

    options.govern = Govern::Off;
    let database = crate::Database::open(directory.path().join("a"), &options).unwrap();
    let answer = database
        .session()
        .sql(&format!("explain analyze {count}"))
        .unwrap();
    let text = arrow::util::pretty::pretty_format_batches(&answer[0].batches).unwrap();
    assert!(!text.to_string().contains("governed"), "{text}");
}
