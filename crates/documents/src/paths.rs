//! Paths of keys, all of which one walk follows.

use crate::strings::{BadEscape, characters, inner};
use crate::walk::Walk;

/// How objects are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In any way. Of several members under a key the last counts, so that objects are walked through as a whole.
    Written,
    /// Each key once, shorter ones first. Nothing is looked at behind the last part, nor behind the place where it would be. All
    /// escapes stand for characters.
    Normal,
}

/// Paths of keys from the outermost object to parts of documents.
#[derive(Clone, Debug)]
pub struct Paths {
    /// The first is the document.
    nodes: Vec<Node>,
}

/// What some paths come to.
#[derive(Clone, Debug, Default)]
struct Node {
    /// The keys that lead on, and the nodes to which they do.
    keys: Vec<(Box<str>, usize)>,
    /// The bytes of the longest of these keys.
    longest: usize,
    /// The paths that end here.
    ends: Vec<usize>,
}

/// Members of one object that paths lead to, by the places of their keys.
type Members<'t> = Vec<Option<&'t str>>;

impl Paths {
    /// These paths. One without keys leads to the document.
    pub fn new<K: AsRef<str>>(paths: &[Vec<K>]) -> Paths {
        let mut nodes = vec![Node::default()];
        for (number, path) in paths.iter().enumerate() {
            let mut at = 0;
            for key in path {
                let key = key.as_ref();
                let next = nodes.len();
                let node = &mut nodes[at];
                let known = node.keys.iter().find(|(own, _)| **own == *key);
                at = match known {
                    Some((_, known)) => *known,
                    None => {
                        node.keys.push((key.into(), next));
                        node.longest = node.longest.max(key.len());
                        nodes.push(Node::default());
                        next
                    }
                };
            }
            nodes[at].ends.push(number);
        }
        Paths { nodes }
    }

    /// Finds the parts of `text` to which the paths lead, in their order: `found` has a place for each. Keys lead into objects only.
    ///
    /// # Errors
    /// For keys that are looked at with escapes that stand for no character.
    pub fn find<'t>(
        &self,
        text: &'t str,
        form: Form,
        found: &mut [Option<&'t str>],
    ) -> Result<(), BadEscape> {
        found.fill(None);
        match form {
            Form::Written => self.written(0, text, found),
            Form::Normal => {
                let mut walk = Walk::new(text);
                self.normal(0, &mut walk, false, found)?;
                Ok(())
            }
        }
    }

    /// Sets those paths of `found` that end at a node to the value there.
    fn set<'t>(&self, node: usize, value: Option<&'t str>, found: &mut [Option<&'t str>]) {
        for path in &self.nodes[node].ends {
            if let Some(place) = found.get_mut(*path) {
                *place = value;
            }
        }
    }

    /// Follows the paths from the value that comes next. Returns whether it passed that value; it need not, unless it `must`.
    fn normal<'t>(
        &self,
        at: usize,
        walk: &mut Walk<'t>,
        must: bool,
        found: &mut [Option<&'t str>],
    ) -> Result<bool, BadEscape> {
        let node = &self.nodes[at];
        let passes = must || !node.ends.is_empty();
        let is_object = walk.peek() == Some(b'{');
        let start = walk.at();
        let value = if is_object && !node.keys.is_empty() {
            self.members(node, walk, passes, found)?;
            let closed = passes.then(|| walk.close(b'{', b'}', 1)).flatten();
            closed.and_then(|()| walk.since(start))
        } else {
            passes.then(|| walk.value()).flatten()
        };
        self.set(at, value, found);
        Ok(value.is_some())
    }

    /// Follows the paths from the members of an object that comes next, up to the last that is looked for. If it `passes` the object
    /// later, it stops outside of strings and of brackets within.
    fn members<'t>(
        &self,
        node: &Node,
        walk: &mut Walk<'t>,
        passes: bool,
        found: &mut [Option<&'t str>],
    ) -> Result<(), BadEscape> {
        let mut left = node.keys.len();
        walk.eat(b'{');
        while walk.peek() == Some(b'"') {
            let Some((own, escaped)) = walk.string() else {
                break;
            };
            let child = if escaped {
                node.child(&characters(own)?)
            } else if inner(own).len() > node.longest {
                break;
            } else {
                node.child(inner(own))
            };
            walk.eat(b':');
            let passed = match child {
                Some((_, child)) => {
                    left -= 1;
                    self.normal(child, walk, passes || left > 0, found)?
                }
                None => walk.value().is_some(),
            };
            if left == 0 || !passed || !walk.eat(b',') {
                break;
            }
        }
        Ok(())
    }

    /// Follows the paths through `text`, whose objects are looked at as a whole before their members are.
    fn written<'t>(
        &self,
        at: usize,
        text: &'t str,
        found: &mut [Option<&'t str>],
    ) -> Result<(), BadEscape> {
        let node = &self.nodes[at];
        let mut walk = Walk::new(text);
        if !node.ends.is_empty() {
            self.set(at, Walk::new(text).value(), found);
        }
        if node.keys.is_empty() || !walk.eat(b'{') {
            return Ok(());
        }
        let mut members: Members<'t> = vec![None; node.keys.len()];
        while walk.peek() == Some(b'"') {
            let Some((own, escaped)) = walk.string() else {
                break;
            };
            let child = if escaped {
                node.child(&characters(own)?)
            } else {
                node.child(inner(own))
            };
            walk.eat(b':');
            let Some(value) = walk.value() else {
                break;
            };
            if let Some((place, _)) = child {
                members[place] = Some(value);
            }
            if !walk.eat(b',') {
                break;
            }
        }
        for (member, (_, child)) in members.into_iter().zip(&node.keys) {
            if let Some(value) = member {
                self.written(*child, value, found)?;
            }
        }
        Ok(())
    }
}

impl Node {
    /// The place of a key, and the node to which it leads.
    #[inline]
    fn child(&self, key: &str) -> Option<(usize, usize)> {
        let place = self.keys.iter().position(|(own, _)| **own == *key)?;
        Some((place, self.keys[place].1))
    }
}
