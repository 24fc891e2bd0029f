//! An ordered map whose versions share what they have in common.

use std::borrow::Borrow;
use std::fmt;
use std::slice;
use std::sync::Arc;

/// The most entries of a leaf, and children of an inner node.
const MOST: usize = 32;
/// A node with fewer is joined with a neighbour.
const FEWEST: usize = MOST / 4;

/// A B+ tree. Cloning it copies one pointer; a change copies the nodes on the way to the entry, as
/// far as another version has them too.
///
/// Invariants:
/// 1. All leaves lie at the same depth, and their entries are in the order of the keys.
/// 2. The keys below a child are not less than the key beside it, unless it is the first child,
///    and less than the key beside the next child.
/// 3. A node has at most `MOST` parts and, unless it is the root, at least `FEWEST`; an inner root
///    has at least two.
/// 4. `len` is the number of entries.
#[derive(Clone)]
pub(crate) struct Tree<K, V> {
    root: Arc<Node<K, V>>,
    len: usize,
}

#[derive(Clone)]
enum Node<K, V> {
    Leaf(Vec<(K, V)>),
    Inner(Vec<Child<K, V>>),
}

type Child<K, V> = (K, Arc<Node<K, V>>);

/// The child in which a key lies, if it lies in any.
fn child_of<K: Borrow<Q>, V, Q: Ord + ?Sized>(children: &[Child<K, V>], key: &Q) -> usize {
    let after = children.partition_point(|(least, _)| least.borrow() <= key);
    after.saturating_sub(1)
}

impl<K: Ord + Clone, V: Clone> Node<K, V> {
    fn parts(&self) -> usize {
        match self {
            Node::Leaf(entries) => entries.len(),
            Node::Inner(children) => children.len(),
        }
    }

    /// Sets the value of a key; returns the one it had.
    fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self {
            Node::Leaf(entries) => match entries.binary_search_by(|(other, _)| other.cmp(&key)) {
                Ok(at) => Some(std::mem::replace(&mut entries[at].1, value)),
                Err(at) => {
                    entries.insert(at, (key, value));
                    None
                }
            },
            Node::Inner(children) => {
                let at = child_of(children, &key);
                let child = Arc::make_mut(&mut children[at].1);
                let old = child.insert(key, value);
                if let Some(split) = child.split() {
                    children.insert(at + 1, split);
                }
                old
            }
        }
    }

    /// Takes the upper half of a node with too many parts out of it.
    fn split(&mut self) -> Option<Child<K, V>> {
        if self.parts() <= MOST {
            return None;
        }
        let half = self.parts() / 2;
        let (least, upper) = match self {
            Node::Leaf(entries) => {
                let upper = entries.split_off(half);
                (upper[0].0.clone(), Node::Leaf(upper))
            }
            Node::Inner(children) => {
                let upper = children.split_off(half);
                (upper[0].0.clone(), Node::Inner(upper))
            }
        };
        Some((least, Arc::new(upper)))
    }

    /// Removes a key that is there.
    fn remove<Q: Ord + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        match self {
            Node::Leaf(entries) => {
                if let Ok(at) = entries.binary_search_by(|(other, _)| other.borrow().cmp(key)) {
                    entries.remove(at);
                }
            }
            Node::Inner(children) => {
                let at = child_of(children, key);
                Arc::make_mut(&mut children[at].1).remove(key);
                if children[at].1.parts() < FEWEST && children.len() > 1 {
                    let left = at.min(children.len() - 2);
                    let (least, right) = children.remove(left + 1);
                    let joined = Arc::make_mut(&mut children[left].1);
                    joined.append(least, Arc::unwrap_or_clone(right));
                    if let Some(split) = joined.split() {
                        children.insert(left + 1, split);
                    }
                }
            }
        }
    }

    /// Adds the parts of the node after this one, whose keys are not less than `least`.
    fn append(&mut self, least: K, right: Node<K, V>) {
        match (self, right) {
            (Node::Leaf(entries), Node::Leaf(more)) => entries.extend(more),
            (Node::Inner(children), Node::Inner(mut more)) => {
                // What stands beside a first child bounds nothing, see invariant 2.
                more[0].0 = least;
                children.extend(more);
            }
            _ => unreachable!("all leaves lie at the same depth"),
        }
    }
}

impl<K: Ord + Clone, V: Clone> Tree<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let mut node = &*self.root;
        loop {
            match node {
                Node::Inner(children) => node = &children[child_of(children, key)].1,
                Node::Leaf(entries) => {
                    let at = entries.binary_search_by(|(other, _)| other.borrow().cmp(key));
                    return at.ok().map(|at| &entries[at].1);
                }
            }
        }
    }

    /// The value of a key, to be changed.
    pub(crate) fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        // Nothing is copied for a key that is not there.
        self.get(key)?;
        let mut node = &mut self.root;
        loop {
            match Arc::make_mut(node) {
                Node::Inner(children) => {
                    let at = child_of(children, key);
                    node = &mut children[at].1;
                }
                Node::Leaf(entries) => {
                    let at = entries.binary_search_by(|(other, _)| other.borrow().cmp(key));
                    return Some(&mut entries[at.ok()?].1);
                }
            }
        }
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        let root = Arc::make_mut(&mut self.root);
        let old = root.insert(key, value);
        if let Some(upper) = root.split() {
            // The key beside a first child bounds nothing, so any will do.
            let lower = std::mem::replace(root, Node::Inner(Vec::new()));
            *root = Node::Inner(vec![(upper.0.clone(), Arc::new(lower)), upper]);
        }
        self.len += usize::from(old.is_none());
    }

    /// Removes a key; says whether it was there.
    pub(crate) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        // Nothing is copied for a key that is not there.
        if self.get(key).is_none() {
            return false;
        }
        Arc::make_mut(&mut self.root).remove(key);
        if let Node::Inner(children) = &*self.root
            && let [(_, only)] = &children[..]
        {
            self.root = only.clone();
        }
        self.len -= 1;
        true
    }
}

impl<K, V> Tree<K, V> {
    /// All entries, in the order of the keys.
    pub(crate) fn iter(&self) -> Iter<'_, K, V> {
        let mut iter = Iter {
            later: Vec::new(),
            leaf: [].iter(),
        };
        iter.descend(&self.root);
        iter
    }

    /// The entries from the first key on that is not less than `start`, in the order of the keys.
    pub(crate) fn iter_from<Q: Ord + ?Sized>(&self, start: &Q) -> Iter<'_, K, V>
    where
        K: Borrow<Q>,
    {
        let mut later = Vec::new();
        let mut node = &*self.root;
        loop {
            match node {
                Node::Inner(children) => {
                    let at = child_of(children, start);
                    later.push(children[at + 1..].iter());
                    node = &children[at].1;
                }
                Node::Leaf(entries) => {
                    let at = entries.partition_point(|(key, _)| key.borrow() < start);
                    let leaf = entries[at..].iter();
                    return Iter { later, leaf };
                }
            }
        }
    }
}

impl<K, V> Default for Tree<K, V> {
    fn default() -> Tree<K, V> {
        Tree {
            root: Arc::new(Node::Leaf(Vec::new())),
            len: 0,
        }
    }
}

impl<K: Ord + Clone, V: Clone> FromIterator<(K, V)> for Tree<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Tree<K, V> {
        let mut tree = Tree::default();
        for (key, value) in entries {
            tree.insert(key, value);
        }
        tree
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for Tree<K, V> {
    fn eq(&self, other: &Tree<K, V>) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<K: Eq, V: Eq> Eq for Tree<K, V> {}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Tree<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Entries of a [`Tree`], in the order of the keys.
pub(crate) struct Iter<'a, K, V> {
    /// The children still to come, of the root first.
    later: Vec<slice::Iter<'a, Child<K, V>>>,
    leaf: slice::Iter<'a, (K, V)>,
}

impl<'a, K, V> Iter<'a, K, V> {
    /// Goes on with the first leaf of `node`.
    fn descend(&mut self, mut node: &'a Node<K, V>) {
        loop {
            match node {
                Node::Leaf(entries) => {
                    self.leaf = entries.iter();
                    return;
                }
                Node::Inner(children) => {
                    let mut children = children.iter();
                    let Some((_, first)) = children.next() else {
                        return;
                    };
                    self.later.push(children);
                    node = first;
                }
            }
        }
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.leaf.next() {
                return Some((key, value));
            }
            match self.later.last_mut()?.next() {
                Some((_, node)) => self.descend(node),
                None => drop(self.later.pop()),
            }
        }
    }
}

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Iter {
            later: self.later.clone(),
            leaf: self.leaf.clone(),
        }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Iter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.clone()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;
    use std::collections::BTreeMap;

    thread_local! {
        static COPIES: Cell<usize> = const { Cell::new(0) };
    }

    /// A key that counts how often one is copied.
    #[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct Counted(u32);

    impl Clone for Counted {
        fn clone(&self) -> Counted {
            COPIES.set(COPIES.get() + 1);
            Counted(self.0)
        }
    }

    /// Panics unless the invariants hold below `node`; returns its depth.
    fn verify<K: Ord, V>(node: &Node<K, V>, root: bool, from: Option<&K>, to: Option<&K>) -> usize {
        let within = |key: &K| from.is_none_or(|from| from <= key) && to.is_none_or(|to| key < to);
        match node {
            Node::Leaf(entries) => {
                assert!(entries.len() <= MOST && (root || entries.len() >= FEWEST));
                assert!(entries.windows(2).all(|pair| pair[0].0 < pair[1].0));
                assert!(entries.iter().all(|(key, _)| within(key)));
                1
            }
            Node::Inner(children) => {
                let fewest = if root { 2 } else { FEWEST };
                assert!((fewest..=MOST).contains(&children.len()));
                let depths: Vec<_> = (0..children.len())
                    .map(|at| {
                        let least = if at == 0 { from } else { Some(&children[at].0) };
                        let next = children.get(at + 1).map(|(key, _)| key).or(to);
                        verify(&children[at].1, false, least, next)
                    })
                    .collect();
                assert!(depths.iter().all(|depth| *depth == depths[0]));
                depths[0] + 1
            }
        }
    }

    #[test]
    fn a_change_copies_a_path_and_no_more() {
        let mut tree: Tree<_, _> = (0..100_000).map(|key| (Counted(key), ())).collect();
        let depth = verify(&tree.root, true, None, None);
        let before = tree.clone();
        let copies = |change: &mut dyn FnMut()| {
            COPIES.set(0);
            change();
            COPIES.get()
        };
        // Each node on the way, and what a split takes.
        let path = depth * (MOST + 2);
        assert!(copies(&mut || drop(before.clone())) == 0);
        for key in [0, 50_000, 99_999] {
            let mut other = tree.clone();
            assert!(copies(&mut || other.insert(Counted(key), ())) <= path);
            let mut other = tree.clone();
            // A node that becomes too small takes its neighbour along.
            assert!(copies(&mut || assert!(other.remove(&Counted(key)))) <= 2 * path);
            let mut other = tree.clone();
            assert!(copies(&mut || assert!(other.get_mut(&Counted(key)).is_some())) <= path);
        }
        // A version that nobody else has is changed where it is.
        tree.insert(Counted(50_000), ());
        drop(before);
        assert!(copies(&mut || tree.insert(Counted(50_001), ())) <= depth);
        assert_eq!(copies(&mut || assert!(!tree.remove(&Counted(100_000)))), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn a_tree_is_a_map_and_its_clones_stay_as_they_are(
            steps in prop::collection::vec((0u32..900, 0u8..8, any::<bool>()), 1..2500),
            growing in any::<bool>(),
        ) {
            let mut tree = Tree::default();
            let mut model = BTreeMap::new();
            let mut kept: Vec<(Tree<u32, u32>, BTreeMap<u32, u32>)> = Vec::new();
            for (at, (key, step, up)) in (0u32..).zip(steps) {
                // First mostly up, then mostly down.
                let grows = if (at < 1200) == growing { step > 1 } else { step > 5 };
                if grows {
                    // Runs of neighbours in both directions, as well as single keys.
                    let key = if up { key } else { at };
                    tree.insert(key, at);
                    model.insert(key, at);
                } else {
                    prop_assert_eq!(tree.remove(&key), model.remove(&key).is_some());
                    if let Some(value) = tree.get_mut(&(key + 1)) {
                        *value += 1;
                        *model.get_mut(&(key + 1)).unwrap() += 1;
                    }
                }
                prop_assert_eq!(tree.get(&key), model.get(&key));
                prop_assert_eq!(tree.len(), model.len());
                if at % 256 == 0 {
                    verify(&tree.root, true, None, None);
                    kept.push((tree.clone(), model.clone()));
                    let from = tree.iter_from(&key);
                    prop_assert!(from.eq(model.range(key..)));
                }
            }
            kept.push((tree, model));
            for (tree, model) in kept {
                verify(&tree.root, true, None, None);
                prop_assert!(tree.iter().eq(model.iter()));
                prop_assert_eq!(tree.is_empty(), model.is_empty());
            }
        }
    }
}
