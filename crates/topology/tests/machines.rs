//! Machines from every source, and what is refused.

use std::collections::HashSet;
use std::fs;

use proptest::prelude::*;
use topology::{CacheKind, Error, MAX_CPUS, MAX_NODES, Machine, SHIPPED, Source};

/// The invariants of every machine, and of its drawing.
fn check(machine: &Machine) {
    let count = machine.nodes().len();
    assert!((1..=MAX_NODES).contains(&count));
    assert!((1..=MAX_CPUS).contains(&machine.cpus()));
    let mut seen = HashSet::new();
    for (index, node) in machine.nodes().iter().enumerate() {
        assert_eq!(node.index, index);
        for core in &node.cores {
            assert!(!core.cpus.is_empty() && core.cpus.is_sorted());
            for &cpu in &core.cpus {
                assert!(seen.insert(cpu), "cpu {cpu} twice");
                assert_eq!(machine.node_of_cpu(cpu), Some(index));
            }
        }
        assert_eq!(machine.distance(index, index), 10);
        let nearest = machine.nearest(index);
        assert_eq!(nearest[0], index);
        assert_eq!(nearest.iter().collect::<HashSet<_>>().len(), count);
        for other in 0..count {
            assert!(machine.distance(index, other) >= 10);
        }
    }
    assert_eq!(seen.len(), machine.cpus());
    assert_eq!(machine.distance(count, 0), u32::MAX);
    let drawing = machine.render();
    assert!(drawing.ends_with('\n'));
    for line in drawing.lines() {
        assert!(
            line.chars().count() <= 80,
            "{} columns: {line}",
            line.chars().count()
        );
    }
}

/// Level, kind and size of the caches of a node, without repetition.
fn kinds(machine: &Machine) -> Vec<(u8, CacheKind, u64)> {
    let caches = machine.nodes()[0].caches.iter();
    let mut kinds: Vec<_> = caches
        .map(|cache| (cache.level, cache.kind, cache.bytes))
        .collect();
    kinds.dedup();
    kinds
}

#[test]
fn the_four_machines_of_the_papers() {
    const K: u64 = 1024;
    const G: u64 = 1 << 30;
    // name, nodes, cores per node, cpus per core, L1, L2, L3 in KiB, memory per node, far, farthest
    let expected = [
        ("opteron-8387", 4, 4, 1, 64, 512, 6 * K, 16 * G, 16, 22),
        ("xeon-4114", 2, 10, 1, 32, 1024, 14 * K, 64 * G, 14, 14),
        ("xeon-2630", 2, 6, 1, 32, 256, 15 * K, 24 * G, 13, 13),
        ("xeon-4657l", 4, 12, 2, 32, 256, 30 * K, 256 * G, 20, 30),
    ];
    assert_eq!(expected.map(|machine| machine.0), SHIPPED);
    for (name, nodes, cores, smt, l1, l2, l3, memory, far, farthest) in expected {
        let machine = Machine::parse(name).unwrap();
        check(&machine);
        assert_eq!(
            (machine.name(), machine.source()),
            (name, &Source::Shipped(name))
        );
        assert!(machine.about().contains(" x "), "{}", machine.about());
        assert_eq!(machine.nodes().len(), nodes);
        assert_eq!(machine.cpus(), nodes * cores * smt);
        for node in machine.nodes() {
            assert_eq!(
                (node.cores.len(), node.cpus()),
                (cores, cores * smt),
                "{name}"
            );
            assert_eq!(node.memory_bytes, memory);
            assert_eq!(node.free_bytes, None);
        }
        let (unified, data) = (CacheKind::Unified, CacheKind::Data);
        let caches = [
            (3, unified, l3 * K),
            (2, unified, l2 * K),
            (1, data, l1 * K),
        ];
        assert_eq!(kinds(&machine), caches, "{name}");
        let remote: Vec<u32> = (1..nodes).map(|node| machine.distance(0, node)).collect();
        assert_eq!(remote.iter().min(), Some(&far), "{name}");
        assert_eq!(remote.iter().max(), Some(&farthest), "{name}");
    }
}

#[test]
fn the_opteron_square_and_the_numbering_of_siblings() {
    let opteron = Machine::parse("opteron-8387").unwrap();
    assert_eq!(opteron.nearest(0), [0, 1, 2, 3]);
    assert_eq!(opteron.nearest(1), [1, 0, 3, 2]);
    let xeon = Machine::parse("xeon-4657l").unwrap();
    assert_eq!(xeon.nodes()[1].cores[0].cpus, [12, 60]);
    assert_eq!(xeon.nodes()[1].cores[0].package, Some(1));
}

#[test]
fn cpus_in_order_keep_their_cores_nodes_and_caches() {
    for spec in [
        "xeon-4657l",
        "opteron-8387",
        "2x3",
        "node:2 core:2 pu:2(indexes=7,3,5,1,6,2,4,0)",
    ] {
        let machine = Machine::parse(spec).unwrap();
        let ordered = machine.in_order();
        let cpus = |machine: &Machine| -> Vec<u32> {
            let cores = machine.nodes().iter().flat_map(|node| &node.cores);
            cores.flat_map(|core| core.cpus.clone()).collect()
        };
        let (before, after) = (cpus(&machine), cpus(&ordered));
        assert_eq!(
            after,
            (0..before.len() as u32).collect::<Vec<_>>(),
            "{spec}"
        );
        let number = |cpu: &u32| before.iter().position(|own| own == cpu).unwrap() as u32;
        for (node, own) in machine.nodes().iter().zip(ordered.nodes()) {
            for cpu in node.cores.iter().flat_map(|core| &core.cpus) {
                assert_eq!(ordered.node_of_cpu(number(cpu)), Some(node.index), "{spec}");
            }
            assert_eq!(own.os_index as usize, own.index);
            for (cache, other) in node.caches.iter().zip(&own.caches) {
                let mut shared: Vec<u32> = cache.cpus.iter().map(number).collect();
                shared.sort_unstable();
                assert_eq!(
                    (shared, cache.bytes),
                    (other.cpus.clone(), other.bytes),
                    "{spec}"
                );
            }
        }
        assert_eq!(ordered.in_order(), ordered, "{spec}");
    }
}

#[test]
fn drawing_of_the_opteron() {
    let drawing = Machine::parse("opteron-8387").unwrap().render();
    let expected = "\
opteron-8387 (shipped description)
4 x Quad-Core AMD Opteron 8387, 2.8 GHz
4 nodes, 16 cores, 16 cpus, 64 GiB of memory

┌─ node 0 ────────────────────────────┐  ┌─ node 1 ────────────────────────────┐
│ memory 16 GiB                       │  │ memory 16 GiB                       │
│ L3 6 MiB                            │  │ L3 6 MiB                            │
│ L2 512 KiB x 4                      │  │ L2 512 KiB x 4                      │
│ L1d 64 KiB x 4                      │  │ L1d 64 KiB x 4                      │
│ [0] [1] [2] [3]                     │  │ [4] [5] [6] [7]                     │
└─────────────────────────────────────┘  └─────────────────────────────────────┘
┌─ node 2 ────────────────────────────┐  ┌─ node 3 ────────────────────────────┐
│ memory 16 GiB                       │  │ memory 16 GiB                       │
│ L3 6 MiB                            │  │ L3 6 MiB                            │
│ L2 512 KiB x 4                      │  │ L2 512 KiB x 4                      │
│ L1d 64 KiB x 4                      │  │ L1d 64 KiB x 4                      │
│ [8] [9] [10] [11]                   │  │ [12] [13] [14] [15]                 │
└─────────────────────────────────────┘  └─────────────────────────────────────┘

distance (10 is local)
             0    1    2    3
node 0      10   16   16   22
node 1      16   10   22   16
node 2      16   22   10   16
node 3      22   16   16   10
";
    assert_eq!(drawing, expected);
}

#[test]
fn the_live_machine() {
    let machine = Machine::live().unwrap();
    check(&machine);
    assert_eq!(machine.source(), &Source::Live);
    assert_eq!(Machine::parse(" live ").unwrap().cpus(), machine.cpus());
    assert_eq!(
        machine.cpus(),
        std::thread::available_parallelism().unwrap().get()
    );
    assert!(machine.memory_bytes() > 0);
    let free: u64 = machine
        .nodes()
        .iter()
        .filter_map(|node| node.free_bytes)
        .sum();
    assert!(
        free > 0 && free <= machine.memory_bytes(),
        "{free} of {}",
        machine.memory_bytes()
    );
}

/// Runs this same test in a child that may use one cpu only.
#[test]
fn only_allowed_cpus() {
    const CHILD: &str = "ATOLL_TEST_ONE_CPU";
    let machine = Machine::live().unwrap();
    if std::env::var_os(CHILD).is_some() {
        return assert_eq!(machine.cpus(), 1, "the child sees only what it may use");
    }
    let cpus = machine
        .nodes()
        .iter()
        .flat_map(|node| &node.cores)
        .flat_map(|core| &core.cpus);
    let last = cpus.max().unwrap().to_string();
    let status = std::process::Command::new("taskset")
        .args(["-c", &last])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "only_allowed_cpus"])
        .env(CHILD, "1")
        .output()
        .expect("taskset is part of util-linux, which every Debian has");
    assert!(
        status.status.success(),
        "{}",
        String::from_utf8_lossy(&status.stdout)
    );
}

#[test]
fn synthetic_strings() {
    let machine = Machine::parse("node:4 l3:1 core:4 pu:2").unwrap();
    check(&machine);
    assert_eq!(
        (machine.nodes().len(), machine.cores(), machine.cpus()),
        (4, 16, 32)
    );
    assert_eq!(machine.distance(0, 3), 20, "20 where nothing is said");
    let grid = Machine::parse("3x5").unwrap();
    check(&grid);
    assert_eq!(
        (grid.nodes().len(), grid.cores(), grid.name()),
        (3, 15, "3x5")
    );
    assert_eq!(grid.source(), &Source::Synthetic("3x5".into()));
    let flat = Machine::parse("core:3").unwrap();
    assert_eq!((flat.nodes().len(), flat.cpus()), (1, 3));
}

#[test]
fn memory_only_nodes() {
    let machine =
        Machine::parse("pack:2 [numa(memory=1GB)] [numa(memory=8GB)] core:2 pu:1").unwrap();
    check(&machine);
    let cores: Vec<usize> = machine
        .nodes()
        .iter()
        .map(|node| node.cores.len())
        .collect();
    assert_eq!(cores.iter().sum::<usize>(), 4);
    assert_eq!(
        cores.iter().filter(|cores| **cores == 0).count(),
        2,
        "{cores:?}"
    );
    assert!(machine.render().contains("memory only"));
}

/// Two nodes of one and three cores, the second with a sibling pair, a distance matrix that is
/// not symmetric and does not count from 10, and operating system numbers with a gap.
const UNEVEN: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x0000001f" complete_cpuset="0x0000001f" allowed_cpuset="0x0000001f" nodeset="0x00000005" complete_nodeset="0x00000005" allowed_nodeset="0x00000005" gp_index="1">
    <object type="Package" os_index="0" cpuset="0x00000001" complete_cpuset="0x00000001" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="2">
      <object type="NUMANode" os_index="0" cpuset="0x00000001" complete_cpuset="0x00000001" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="3" local_memory="1073741824"/>
      <object type="Core" os_index="0" cpuset="0x00000001" complete_cpuset="0x00000001" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="4">
        <object type="PU" os_index="0" cpuset="0x00000001" complete_cpuset="0x00000001" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="5"/>
      </object>
    </object>
    <object type="Package" os_index="1" cpuset="0x0000001e" complete_cpuset="0x0000001e" nodeset="0x00000004" complete_nodeset="0x00000004" gp_index="6">
      <object type="NUMANode" os_index="2" cpuset="0x0000001e" complete_cpuset="0x0000001e" nodeset="0x00000004" complete_nodeset="0x00000004" gp_index="7" local_memory="3221225472"/>
      <object type="Core" os_index="1" cpuset="0x00000002" complete_cpuset="0x00000002" nodeset="0x00000004" complete_nodeset="0x00000004" gp_index="8">
        <object type="PU" os_index="1" cpuset="0x00000002" complete_cpuset="0x00000002" nodeset="0x00000004" complete_nodeset="0x00000004" gp_index="9"/>
      </object>
      <object type="Core" os_index="2" cpuset="0x00000004" complete_cpuset="0x00000004" nodeset="0x00000004" complete_nodeset="0x00000004" gp_index="10">
        <object type="PU" os_index="2" cpuset="0x00000004" complete_cpuset="0x00000004" nodeset="0x00000004" complete_nodeset="0x00000004" gp_index="11"/>
      </object>
      <object type="Core" os_index="3" cpuset="0x00000018" complete_cpuset="0x00000018" nodeset="0x00000004" complete_nodeset="0x00000004" gp_index="12">
        <object type="PU" os_index="3" cpuset="0x00000008" complete_cpuset="0x00000008" nodeset="0x00000004" complete_nodeset="0x00000004" gp_index="13"/>
        <object type="PU" os_index="4" cpuset="0x00000010" complete_cpuset="0x00000010" nodeset="0x00000004" complete_nodeset="0x00000004" gp_index="14"/>
      </object>
    </object>
  </object>
  <distances2 type="NUMANode" nbobjs="2" kind="5" name="NUMALatency" indexing="os">
    <indexes length="4">0 2 </indexes>
    <u64values length="12">20 50 40 20 </u64values>
  </distances2>
</topology>
"#;

fn xml(folder: &tempfile::TempDir, name: &str, text: impl AsRef<[u8]>) -> String {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn uneven_nodes_and_distances_from_xml() {
    let folder = tempfile::tempdir().unwrap();
    let path = xml(&folder, "uneven.XML", UNEVEN);
    let machine = Machine::parse(&path).unwrap();
    check(&machine);
    assert_eq!(machine.name(), "uneven");
    assert_eq!(machine.source(), &Source::Xml(path.into()));
    let cores: Vec<usize> = machine
        .nodes()
        .iter()
        .map(|node| node.cores.len())
        .collect();
    assert_eq!(cores, [1, 3]);
    assert_eq!(machine.nodes()[1].os_index, 2);
    assert_eq!(machine.nodes()[1].memory_bytes, 3 << 30);
    assert_eq!(machine.nodes()[1].cores[2].cpus, [3, 4]);
    assert_eq!((machine.distance(0, 1), machine.distance(1, 0)), (25, 20));
    assert!(machine.render().contains("numbered 2"));
}

#[test]
fn bad_input_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let broken = xml(&folder, "broken.xml", &UNEVEN[..UNEVEN.len() / 2]);
    let empty = xml(&folder, "empty.xml", "");
    let binary = xml(&folder, "binary.xml", [0xff, 0xfe, 0]);
    let other = xml(
        &folder,
        "other.xml",
        "<topology version=\"2.0\"><cheese/></topology>",
    );
    let table = [
        ("opteron", "unknown machine 'opteron'"),
        ("", "unknown machine ''"),
        ("live2", "opteron-8387, xeon-4114, xeon-2630, xeon-4657l"),
        ("0x4", "'0x4'"),
        ("4x0", "'4x0'"),
        ("x", "unknown machine 'x'"),
        ("4x", "unknown machine '4x'"),
        ("-1x4", "unknown machine '-1x4'"),
        ("4x4x4", "unknown machine '4x4x4'"),
        ("300x1", "300 nodes, at most 256"),
        ("99999999999999999999x1", "too large"),
        ("1x5000", "5000 cpus, at most 4096"),
        ("node:100000000 core:100000", "at most 256"),
        ("node:2 cheese:4", "'node:2 cheese:4'"),
        ("node:2 core:", "does not say how many"),
        ("node:2 core:2(size=", "'node:2 core:2(size='"),
        ("/nowhere/machine.xml", "/nowhere/machine.xml"),
        (&broken, "broken.xml"),
        (&empty, "empty.xml"),
        (&binary, "UTF-8"),
        (&other, "other.xml"),
    ];
    for (spec, part) in table {
        let error = Machine::parse(spec).expect_err(spec).to_string();
        assert!(error.contains(part), "'{spec}' gives: {error}");
        assert!(!error.contains('\n'), "one line: {error}");
    }
    let long = "y".repeat(100_000);
    assert!(Machine::parse(&long).unwrap_err().to_string().len() < 500);
    let missing = Machine::parse("/nowhere/machine.xml").unwrap_err();
    assert!(matches!(missing, Error::Unreadable { .. }));
    assert!(matches!(
        Machine::parse("opteron").unwrap_err(),
        Error::Unknown { .. }
    ));
}

#[test]
fn large_machines_are_drawn_within_limits() {
    let machine = Machine::parse("256x16").unwrap();
    check(&machine);
    let drawing = machine.render();
    assert!(drawing.contains("224 more nodes") && drawing.contains("20 to 20"));
    let wide = Machine::parse("1x4096").unwrap();
    check(&wide);
    assert!(wide.render().contains("more cores"));
}

#[test]
fn serializes() {
    let machine = Machine::parse("opteron-8387").unwrap();
    let json = serde_json::to_value(&machine).unwrap();
    assert_eq!(json["name"], "opteron-8387");
    assert_eq!(json["source"]["shipped"], "opteron-8387");
    assert_eq!(json["distances"][0][3], 22);
    assert_eq!(json["nodes"][3]["cores"][1]["cpus"][0], 13);
    assert_eq!(json["nodes"][0]["caches"][0]["bytes"], 6 << 20);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_machines_are_what_they_say(
        packages in 1usize..5, nodes in 1usize..4, l3 in 0usize..3, cores in 1usize..5, smt in 1usize..4,
        memory in 1u64..64,
    ) {
        let cache = if l3 > 0 { format!("l3:{l3}") } else { String::new() };
        let spec = format!("pack:{packages} numa:{nodes}(memory={memory}GB) {cache} core:{cores} pu:{smt}");
        let machine = Machine::parse(&spec).unwrap();
        check(&machine);
        let groups = l3.max(1);
        prop_assert_eq!(machine.nodes().len(), packages * nodes);
        prop_assert_eq!(machine.cores(), packages * nodes * groups * cores);
        prop_assert_eq!(machine.cpus(), packages * nodes * groups * cores * smt);
        for node in machine.nodes() {
            prop_assert_eq!(node.cores.len(), groups * cores);
            prop_assert_eq!(node.caches.len(), l3);
            prop_assert!(node.cores.iter().all(|core| core.cpus.len() == smt));
        }
    }

    /// Whatever the text, the answer is a sound machine or one line.
    #[test]
    fn any_text_is_answered(
        spec in prop_oneof![
            ".{0,40}",
            "[a-z]{1,6}:[0-9]{1,4}( [a-z]{1,6}:[0-9]{1,3}){0,3}",
            "(node|core|pu|l3|l2|pack|group|\\[numa\\])(:[0-9]{1,2})?( (core|pu|l3|l2|l1|die):[0-9]{1,2}(\\([a-z]{4,7}=[0-9]{1,4}\\))?){0,4}",
            "[0-9]{0,5}x[0-9]{0,5}",
        ],
    ) {
        prop_assume!(spec.trim() != "live");
        match Machine::parse(&spec) {
            Ok(machine) => check(&machine),
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
        }
    }

    /// Damaged XML: hwloc's own parser sees it.
    #[test]
    fn damaged_xml_is_answered(at in 0..UNEVEN.len(), byte in 32u8..127, cut in any::<bool>()) {
        let folder = tempfile::tempdir().unwrap();
        let mut text = UNEVEN.as_bytes().to_vec();
        if cut {
            text.drain(at..(at + byte as usize).min(UNEVEN.len()));
        } else {
            text[at] = byte;
        }
        match Machine::parse(&xml(&folder, "damaged.xml", &text)) {
            Ok(machine) => check(&machine),
            Err(error) => prop_assert!(error.to_string().contains("damaged")),
        }
    }
}
