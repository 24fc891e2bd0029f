//! Documents into shreds: the paths that many documents of a block have, each as a column of its own.
//!
//! A query that takes a part out of each document then reads that part alone. The documents stay as they are beside it, so what is
//! kept is bounded: the paths with the fewest bytes, up to half of those of the documents.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringViewArray};
use documents::{Form, Paths, Walk, inner, text_of};

use crate::error::{Error, Result};
use crate::format::block::ShredForm;
use crate::format::nested::to_storage;
use crate::schema::{JsonKind, json_kind};

/// Paths whose values are looked for in one walk through the documents: what is found is in memory at once.
pub(crate) const AT_ONCE: usize = 16;

/// Documents that are looked through for paths.
const SAMPLE: usize = 1_024;

/// Of fewer documents no paths are kept.
const FEWEST: usize = 1_024;

/// A path is kept if one in so many documents has it.
const ONE_IN: usize = 100;

/// The most paths of one column of a block.
const MOST: usize = 48;

/// The longest path, in keys.
const DEEPEST: usize = 8;

/// The most paths that are counted, of documents whose keys are data.
const MOST_COUNTED: usize = 4_096;

/// The most bytes of the keys of a path.
const LONGEST: usize = 512;

/// The documents of a column that may be shredded: of `jsonb`, whose objects have each key once. `None` of other columns.
///
/// # Errors
/// Of no column that there is.
pub(crate) fn documents(column: &ArrayRef) -> Result<Option<StringViewArray>> {
    if json_kind(column.data_type()) != Some(JsonKind::Normal) {
        return Ok(None);
    }
    Ok(to_storage(column)?.as_string_view_opt().cloned())
}

/// The paths of documents that are worth a shred each.
pub(crate) fn paths(documents: &StringViewArray) -> Vec<Vec<String>> {
    let rows = documents.len();
    if rows < FEWEST {
        return vec![];
    }
    let mut counted = Counted::default();
    let (mut sampled, mut bytes) = (0, 0);
    for row in (0..rows).step_by((rows / SAMPLE).max(1)) {
        if documents.is_valid(row) {
            let text = documents.value(row);
            counted.add(0, 0, &mut Walk::new(text));
            sampled += 1;
            bytes += text.len();
        }
    }
    counted.chosen(sampled.max(1), bytes / 2)
}

/// How often paths were met: a tree of keys.
struct Counted {
    /// The first is the document. A node stands behind the one that leads to it.
    nodes: Vec<Node>,
}

#[derive(Default)]
struct Node {
    /// The node that leads to it.
    before: usize,
    key: String,
    next: Vec<usize>,
    /// How many documents have a value here that is no object, and the bytes of these.
    values: usize,
    bytes: usize,
}

impl Default for Counted {
    fn default() -> Counted {
        let nodes = vec![Node::default()];
        Counted { nodes }
    }
}

impl Counted {
    /// Counts the value that comes next, at `node`, or what is in it; `None` at the end of a text that ends too early.
    fn add(&mut self, node: usize, depth: usize, walk: &mut Walk<'_>) -> Option<()> {
        if walk.peek()? != b'{' || depth == DEEPEST {
            let value = walk.value()?;
            self.nodes[node].values += 1;
            self.nodes[node].bytes += value.len();
            return Some(());
        }
        walk.eat(b'{');
        if walk.eat(b'}') {
            return Some(());
        }
        loop {
            walk.peek()?;
            let (key, escaped) = walk.string()?;
            if !walk.eat(b':') {
                return None;
            }
            let next = (!escaped).then(|| self.node(node, inner(key))).flatten();
            match next {
                Some(next) => self.add(next, depth + 1, walk)?,
                None => _ = walk.value()?,
            }
            if !walk.eat(b',') {
                return walk.eat(b'}').then_some(());
            }
        }
    }

    /// The node to which `key` leads; `None` if there are too many.
    fn node(&mut self, before: usize, key: &str) -> Option<usize> {
        let next = &self.nodes[before].next;
        let known = next.iter().find(|next| self.nodes[**next].key == key);
        if let Some(known) = known {
            return Some(*known);
        }
        let number = self.nodes.len();
        if number == MOST_COUNTED || key.len() > LONGEST {
            return None;
        }
        self.nodes[before].next.push(number);
        self.nodes.push(Node {
            before,
            key: key.to_owned(),
            ..Node::default()
        });
        Some(number)
    }

    /// The paths of which one in [`ONE_IN`] documents has a value, those with the fewest bytes first, as many as take up to
    /// `room` bytes.
    fn chosen(&self, documents: usize, room: usize) -> Vec<Vec<String>> {
        let nodes = self.nodes.iter().enumerate().skip(1);
        let often = nodes.filter(|(_, node)| node.values * ONE_IN >= documents);
        let mut often: Vec<(usize, &Node)> = often.collect();
        often.sort_by_key(|(_, node)| node.bytes);
        let mut taken = 0;
        let fitting = often.into_iter().take(MOST).take_while(|(_, node)| {
            taken += node.bytes;
            taken <= room
        });
        let paths = fitting.map(|(number, _)| self.path(number));
        paths
            .filter(|path| path.iter().map(String::len).sum::<usize>() <= LONGEST)
            .collect()
    }

    fn path(&self, mut node: usize) -> Vec<String> {
        let mut keys = Vec::new();
        while node != 0 {
            keys.push(self.nodes[node].key.clone());
            node = self.nodes[node].before;
        }
        keys.reverse();
        keys
    }
}

/// The values at these paths, as they are written, one per document.
///
/// # Errors
/// [`Error::Test`] for documents that are not those of `jsonb`.
pub(crate) fn values<'d>(
    documents: &'d StringViewArray,
    paths: &[Vec<String>],
) -> Result<Vec<Vec<Option<&'d str>>>> {
    let walks = Paths::new(paths);
    let mut found = vec![None; paths.len()];
    let mut all = vec![Vec::with_capacity(documents.len()); paths.len()];
    for row in 0..documents.len() {
        if documents.is_valid(row) {
            let text = documents.value(row);
            let walked = walks.find(text, Form::Normal, &mut found);
            walked.map_err(|e| Error::Test(Box::new(e)))?;
        } else {
            found.fill(None);
        }
        let both = all.iter_mut().zip(&found);
        both.for_each(|(all, one)| all.push(*one));
    }
    Ok(all)
}

/// Values in the form that says most of them.
pub(crate) fn column(values: &[Option<&str>]) -> (ShredForm, ArrayRef) {
    if let Some(numbers) = numbers(values) {
        return (ShredForm::Numbers, Arc::new(numbers));
    }
    if let Some(strings) = strings(values) {
        return (ShredForm::Strings, Arc::new(strings));
    }
    let written = StringViewArray::from_iter(values.iter().copied());
    (ShredForm::Written, Arc::new(written))
}

/// The values as numbers, if they are written as these are.
fn numbers(values: &[Option<&str>]) -> Option<Int64Array> {
    let number = |text: &str| -> Option<i64> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        // Others have more than one way to be written.
        let is_plain = matches!(digits.as_bytes(), [b'1'..=b'9', ..]) || text == "0";
        text.parse().ok().filter(|_| is_plain)
    };
    let all = values.iter().map(|value| value.map(number));
    let all = all.map(|value| match value {
        Some(None) => None,
        Some(number) => Some(number),
        None => Some(None),
    });
    all.collect::<Option<Vec<Option<i64>>>>()
        .map(Int64Array::from)
}

/// The characters of the values, if all are strings.
fn strings(values: &[Option<&str>]) -> Option<StringViewArray> {
    let is_string = |value: &&str| value.starts_with('"');
    if !values.iter().flatten().all(is_string) {
        return None;
    }
    let mut all = arrow::array::StringViewBuilder::with_capacity(values.len());
    for value in values {
        match value {
            Some(value) => all.append_option(text_of(value).ok()?),
            None => all.append_null(),
        }
    }
    Some(all.finish())
}
