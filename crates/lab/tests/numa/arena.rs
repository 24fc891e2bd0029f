//! Arenas lie on the node they are asked for.

use memory::Arena;
use memory::pages::Policy;

use crate::place::{alone, cpus, fit, machine, several_nodes, with_cores};
use crate::system::{on, pages_of, resident};

/// Writes to each page of an arena.
fn touch(arena: &Arena) {
    for page in pages_of(arena) {
        // SAFETY: inside the arena, which is used by one thread at a time.
        unsafe { page.cast_mut().write(1) };
    }
}

#[test]
fn on_the_node_asked_for_whoever_touches_it() {
    let _alone = alone();
    let machine = machine();
    if !several_nodes(&machine) {
        return;
    }
    // With ordinary pages, and long enough for huge ones.
    for bytes in [1 << 18, 8 << 20] {
        for node in machine.nodes() {
            let arena = Arena::new(bytes, Some(node.os_index)).unwrap();
            assert_eq!(arena.notes(), [] as [&str; 0]);
            let toucher = with_cores(&machine)
                .into_iter()
                .find(|other| other.index != node.index);
            on(&cpus(toucher.unwrap()), || touch(&arena));
            let pages = pages_of(&arena);
            assert_eq!(resident(&pages), [(node.os_index, pages.len())]);
        }
    }
}

#[test]
fn interleaved_on_all_nodes_alike_and_bound_on_one() {
    let _alone = alone();
    let machine = machine();
    if !several_nodes(&machine) {
        return;
    }
    let nodes: Vec<u32> = machine.nodes().iter().map(|node| node.os_index).collect();
    // Below the size of a huge page: then 4 KiB by 4 KiB.
    let arena = Arena::placed(1 << 20, Policy::Interleave, &nodes).unwrap();
    assert_eq!(arena.notes(), [] as [&str; 0]);
    touch(&arena);
    let pages = pages_of(&arena);
    let found = resident(&pages);
    assert_eq!(found.len(), nodes.len(), "{found:?}");
    let fair = pages.len() / nodes.len();
    assert!(
        found.iter().all(|(_, count)| count.abs_diff(fair) <= 1),
        "{found:?}"
    );
    for &node in &nodes {
        let arena = Arena::placed(1 << 20, Policy::Bind, &[node]).unwrap();
        assert_eq!((arena.notes().len(), arena.node()), (0, Some(node)));
        touch(&arena);
        let pages = pages_of(&arena);
        assert_eq!(resident(&pages), [(node, pages.len())]);
    }
}

#[test]
fn without_a_node_where_it_is_touched() {
    let _alone = alone();
    let machine = machine();
    for node in with_cores(&machine) {
        let arena = Arena::new(1 << 20, None).unwrap();
        on(&cpus(node), || touch(&arena));
        let pages = pages_of(&arena);
        assert_eq!(resident(&pages), [(node.os_index, pages.len())]);
    }
}

#[test]
fn larger_than_the_node_it_goes_on_elsewhere() {
    let _alone = alone();
    let machine = machine();
    if !several_nodes(&machine) {
        return;
    }
    // The last node: the kernel's own memory is on the first.
    let node = machine.nodes().last().unwrap();
    let free = node.free_bytes.unwrap();
    let others: u64 = machine
        .nodes()
        .iter()
        .filter_map(|node| node.free_bytes)
        .sum();
    let small = free < 1 << 30 && others > free + (96 << 20);
    if !fit("a node small enough to be filled", small) {
        return;
    }
    let arena = Arena::new(free as usize + (32 << 20), Some(node.os_index)).unwrap();
    touch(&arena);
    let pages = resident(&pages_of(&arena));
    let (there, elsewhere): (Vec<_>, Vec<_>) =
        pages.iter().partition(|(on, _)| *on == node.os_index);
    let count = |parts: Vec<&(u32, usize)>| parts.iter().map(|(_, pages)| *pages).sum::<usize>();
    let (there, elsewhere) = (count(there), count(elsewhere));
    assert!(
        elsewhere > 0,
        "it cannot all lie on node {}: {pages:?}",
        node.os_index
    );
    assert!(
        there > elsewhere,
        "most fits on node {}: {pages:?}",
        node.os_index
    );
}

#[test]
fn on_a_node_that_does_not_exist_it_works_and_says_so() {
    let _alone = alone();
    let machine = machine();
    let highest = machine
        .nodes()
        .iter()
        .map(|node| node.os_index)
        .max()
        .unwrap();
    let arena = Arena::new(1 << 20, Some(highest + 1)).unwrap();
    touch(&arena);
    assert_eq!(arena.notes().len(), 1);
    assert!(arena.notes()[0].contains(&format!("node {}", highest + 1)));
}
