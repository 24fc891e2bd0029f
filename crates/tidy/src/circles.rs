//! Circles in a graph of imports: its strongly connected components (Tarjan's algorithm).

/// Finds the circles of a graph in which `edges[a]` are the nodes that `a` imports.
///
/// Returns each set of two or more nodes that all reach each other, largest first, nodes in ascending order.
///
/// # Panics
/// If an edge names a node that is not there.
pub fn circles(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut search = Search {
        edges,
        order: vec![None; edges.len()],
        low: vec![0; edges.len()],
        stack: Vec::new(),
        on_stack: vec![false; edges.len()],
        next: 0,
        found: Vec::new(),
    };
    for node in 0..edges.len() {
        if search.order[node].is_none() {
            search.visit(node);
        }
    }
    let mut found = search.found;
    found.sort_by_key(|circle| (usize::MAX - circle.len(), circle[0]));
    found
}

struct Search<'a> {
    edges: &'a [Vec<usize>],
    /// When each node was first visited.
    order: Vec<Option<usize>>,
    /// The earliest visited node that is reachable from each node through the stack.
    low: Vec<usize>,
    stack: Vec<usize>,
    on_stack: Vec<bool>,
    next: usize,
    found: Vec<Vec<usize>>,
}

impl Search<'_> {
    fn visit(&mut self, node: usize) {
        self.order[node] = Some(self.next);
        self.low[node] = self.next;
        self.next += 1;
        self.stack.push(node);
        self.on_stack[node] = true;
        for &other in &self.edges[node] {
            match self.order[other] {
                None => {
                    self.visit(other);
                    self.low[node] = self.low[node].min(self.low[other]);
                }
                Some(order) if self.on_stack[other] => self.low[node] = self.low[node].min(order),
                Some(_) => {}
            }
        }
        if self.order[node] == Some(self.low[node]) {
            self.take(node);
        }
    }

    /// Takes the component whose first node is `root` from the stack.
    fn take(&mut self, root: usize) {
        let mut component = Vec::new();
        while let Some(node) = self.stack.pop() {
            self.on_stack[node] = false;
            component.push(node);
            if node == root {
                break;
            }
        }
        if component.len() > 1 {
            component.sort_unstable();
            self.found.push(component);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::circles;

    #[test]
    fn a_chain_has_none_and_a_ring_is_one() {
        assert!(circles(&[vec![1], vec![2], vec![]]).is_empty());
        assert_eq!(circles(&[vec![1], vec![2], vec![0]]), [vec![0, 1, 2]]);
    }

    #[test]
    fn rings_that_only_one_way_joins_are_two() {
        let edges = [vec![1], vec![0, 2], vec![3], vec![4], vec![2]];
        assert_eq!(circles(&edges), [vec![2, 3, 4], vec![0, 1]]);
    }
}
