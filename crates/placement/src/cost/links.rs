//! Which links the lines between two nodes cross.

use std::collections::VecDeque;

use topology::Machine;

/// The links of a machine: between nodes that are no further from each other than any from its nearest one.
#[derive(Debug, Clone)]
pub(super) struct Links {
    nodes: usize,
    /// For each pair of nodes, the links from the first to the second, as pairs of neighbours.
    paths: Vec<Vec<(usize, usize)>>,
}

impl Links {
    pub(super) fn of(machine: &Machine) -> Links {
        let nodes = machine.nodes().len();
        let nearest = |node: usize| {
            let others = (0..nodes).filter(|other| *other != node);
            others.map(|other| machine.distance(node, other)).min()
        };
        // Each node has a link to those at the least distance that joins all: the greatest of the least ones.
        let reach = (0..nodes).filter_map(nearest).max().unwrap_or(0);
        let joined = |a: usize, b: usize| a != b && machine.distance(a, b) <= reach;
        let mut paths = Vec::with_capacity(nodes * nodes);
        for from in 0..nodes {
            // Breadth first: the fewest links.
            let mut before: Vec<Option<usize>> = vec![None; nodes];
            let mut open = VecDeque::from([from]);
            while let Some(node) = open.pop_front() {
                for (next, before) in before.iter_mut().enumerate() {
                    if next != from && before.is_none() && joined(node, next) {
                        *before = Some(node);
                        open.push_back(next);
                    }
                }
            }
            for to in 0..nodes {
                let mut path = Vec::new();
                let mut at = to;
                while at != from {
                    // Where nothing leads there, as if there were a link of its own.
                    let Some(node) = before[at] else {
                        path = vec![(from, to)];
                        break;
                    };
                    path.push((node, at));
                    at = node;
                }
                paths.push(path);
            }
        }
        Links { nodes, paths }
    }

    /// The links that lines cross from node `home` to node `reader`.
    pub(super) fn path(&self, home: usize, reader: usize) -> &[(usize, usize)] {
        &self.paths[home * self.nodes + reader]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_far_crosses_several_links() {
        let square = Links::of(&Machine::parse("opteron-8387").unwrap());
        assert!(square.path(0, 0).is_empty());
        assert_eq!(square.path(0, 1), [(0, 1)]);
        let far = square.path(0, 3);
        assert_eq!(far.len(), 2, "{far:?}");
        let pair = Links::of(&Machine::parse("2x4").unwrap());
        assert_eq!(pair.path(1, 0), [(1, 0)]);
        let one = Links::of(&Machine::parse("1x4").unwrap());
        assert!(one.path(0, 0).is_empty());
        // All at one distance: a link for each pair.
        let all = Links::of(&Machine::parse("4x2").unwrap());
        assert!((1..4).all(|node| all.path(node, 0) == [(node, 0)]));
    }
}
