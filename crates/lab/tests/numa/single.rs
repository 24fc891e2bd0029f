//! A machine with one node: everything is local, and asking for more is no error.

use memory::Arena;

use crate::place::{alone, fit, machine};
use crate::system::{Pages, here, pages_of, resident};
use crate::threads::{look, workers};

#[test]
fn everything_is_local() {
    let _alone = alone();
    let machine = machine();
    if !fit("a single node", machine.nodes().len() == 1) {
        return;
    }
    let node = machine.nodes()[0].os_index;
    assert_eq!(machine.distance(0, 0), 10);
    assert_eq!(machine.nearest(0), [0]);
    assert_eq!(here().1, node);
    let pages = Pages::new(64);
    pages.touch();
    assert_eq!(pages.resident(), [(node, 64)]);
    let workers = workers(&machine, machine.cpus());
    assert!(
        look(&workers)
            .values()
            .all(|seen| (seen.node, seen.os_node) == (0, node))
    );
    for asked in [None, Some(node), Some(node + 1)] {
        let arena = Arena::new(1 << 20, asked).unwrap();
        let pages = pages_of(&arena);
        for page in &pages {
            // SAFETY: inside the arena, which is ours alone.
            unsafe { page.cast_mut().write(1) };
        }
        assert_eq!(resident(&pages), [(node, pages.len())]);
    }
}
