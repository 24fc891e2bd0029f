//! Random machines for tests: uneven nodes, nodes without cores, shared and private caches, SMT,
//! packages, and distances that are not all alike.

use std::fmt::Write;

use proptest::prelude::*;
use topology::Machine;

/// A machine to be: per node the last-level caches with the number of hardware threads of each core.
#[derive(Debug, Clone)]
pub struct Plan {
    pub nodes: Vec<Vec<Vec<usize>>>,
    pub distances: Vec<u32>,
    /// Whether last-level caches are in the description.
    pub caches: bool,
}

impl Plan {
    /// The machine, by way of hwloc's XML.
    pub fn machine(&self) -> Machine {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.xml");
        std::fs::write(&path, self.xml()).unwrap();
        Machine::parse(path.to_str().unwrap()).unwrap()
    }

    fn xml(&self) -> String {
        let mut out = String::from("<topology version=\"2.0\">\n<object type=\"Machine\">\n");
        let mut cpu = 0u32;
        for (index, caches) in self.nodes.iter().enumerate() {
            let (mut body, first) = (String::new(), cpu);
            for cores in caches {
                let begin = cpu;
                let mut inner = String::new();
                for &threads in cores {
                    let own = mask(cpu, cpu + threads as u32);
                    writeln!(inner, "<object type=\"Core\" cpuset=\"{own}\">").unwrap();
                    for _ in 0..threads {
                        let own = mask(cpu, cpu + 1);
                        writeln!(
                            inner,
                            "<object type=\"PU\" os_index=\"{cpu}\" cpuset=\"{own}\"/>"
                        )
                        .unwrap();
                        cpu += 1;
                    }
                    inner.push_str("</object>\n");
                }
                if self.caches {
                    let all = mask(begin, cpu);
                    writeln!(
                        body,
                        "<object type=\"L3Cache\" cpuset=\"{all}\" cache_size=\"1000000\" depth=\"3\" \
                         cache_type=\"0\">\n{inner}</object>"
                    )
                    .unwrap();
                } else {
                    body.push_str(&inner);
                }
            }
            let all = mask(first, cpu);
            writeln!(
                out,
                "<object type=\"Group\" cpuset=\"{all}\"><object type=\"NUMANode\" os_index=\"{index}\" \
                 cpuset=\"{all}\" local_memory=\"1000000000\"/>\n{body}</object>"
            )
            .unwrap();
        }
        let count = self.nodes.len();
        let indexes: Vec<String> = (0..count).map(|node| node.to_string()).collect();
        let values: Vec<String> = self.distances.iter().map(u32::to_string).collect();
        writeln!(
            out,
            "</object>\n<distances2 type=\"NUMANode\" nbobjs=\"{count}\" kind=\"5\" \
             indexing=\"os\">\n<indexes>{}</indexes>\n<u64values>{}</u64values>\n</distances2>\n</topology>",
            indexes.join(" "),
            values.join(" ")
        )
        .unwrap();
        out
    }
}

/// The cpus from `first` up to `end`, as hwloc writes them.
fn mask(first: u32, end: u32) -> String {
    let words = (0..end.div_ceil(32).max(1)).rev().map(|word| {
        let bits = (0..32).filter(|bit| (first..end).contains(&(word * 32 + bit)));
        format!("0x{:08x}", bits.fold(0u32, |mask, bit| mask | 1 << bit))
    });
    words.collect::<Vec<_>>().join(",")
}

/// A machine of `nodes` nodes; at least one has cores.
pub fn plans(
    nodes: std::ops::Range<usize>,
    most_caches: usize,
    most_cores: usize,
    most_threads: usize,
) -> impl Strategy<Value = Plan> {
    let core = 1..=most_threads;
    let cache = prop::collection::vec(core, 1..=most_cores);
    let node = prop::collection::vec(cache, 0..=most_caches);
    let node = prop_oneof![4 => node.clone(), 1 => Just(Vec::new())];
    let different = (
        prop::collection::vec(node.clone(), nodes.clone()),
        any::<bool>(),
    );
    // Equal nodes are what symmetry is about.
    let equal = (node, nodes).prop_map(|(node, count)| vec![node; count]);
    let equal = (equal, Just(true));
    let shape = prop_oneof![different, equal];
    let shape = shape.prop_filter("a machine has a core", |(nodes, _)| {
        nodes.iter().any(|caches| !caches.is_empty())
    });
    let distances = |(nodes, caches): (Vec<Vec<Vec<usize>>>, bool)| {
        let count = nodes.len();
        let pairs = prop::collection::vec(0..2u32, count * count);
        let matrix = move |pairs: Vec<u32>, kind: u32| -> Vec<u32> {
            let far = |a: usize, b: usize| match kind {
                0 => 20,
                // Two packages.
                1 => 20 + 5 * u32::from(a % 2 != b % 2),
                // A ring.
                2 => {
                    let hops = a.abs_diff(b).min(count - a.abs_diff(b));
                    10 + 10 * hops as u32
                }
                // Anything symmetric.
                _ => 20 + pairs[a.min(b) * count + a.max(b)],
            };
            let cell = |at: usize| (at / count, at % count);
            let cells = (0..count * count).map(cell);
            cells
                .map(|(a, b)| if a == b { 10 } else { far(a, b) })
                .collect()
        };
        (pairs, 0..4u32).prop_map(move |(pairs, kind)| Plan {
            nodes: nodes.clone(),
            distances: matrix(pairs, kind),
            caches,
        })
    };
    shape.prop_flat_map(distances)
}
