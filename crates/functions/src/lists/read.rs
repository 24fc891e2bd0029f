//! Arrays and structs from texts: `{1,2,NULL}` and `(1,x,)`, as PostgreSQL reads them, and what is in them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListArray, StringArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion_common::{Result, exec_err};

use crate::items::from_texts;
use crate::lists::types::{base, dimensions, fields, is_list, is_map, list_of};
use crate::maps;
use crate::structs::text;

/// What stands between braces.
enum Node {
    Null,
    Text(String),
    Array(Vec<Node>),
}

/// The values of type `to` that texts say.
///
/// # Errors
/// For a text that is none: no array of so many dimensions, no struct of such fields.
pub(crate) fn read(texts: &StringArray, to: &DataType) -> Result<ArrayRef> {
    match fields(to) {
        Some(fields) => structs(texts, fields),
        None if is_list(to) => arrays(texts, to),
        None if is_map(to) => maps::read(texts, to),
        None => from_texts(&(Arc::new(texts.clone()) as ArrayRef), to),
    }
}

fn structs(texts: &StringArray, fields: &Fields) -> Result<ArrayRef> {
    let mut columns = vec![Vec::with_capacity(texts.len()); fields.len()];
    for text in texts {
        let values = match text {
            Some(text) => text::parse(text, fields.len())?,
            None => vec![None; fields.len()],
        };
        for (column, value) in columns.iter_mut().zip(values) {
            column.push(value);
        }
    }
    let columns = columns.into_iter().zip(fields).map(|(column, field)| {
        let found = read(&StringArray::from(column), field.data_type())?;
        if found.data_type() == field.data_type() {
            return Ok(found);
        }
        Ok(cast(&found, field.data_type())?)
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let nulls = texts.nulls().cloned();
    Ok(Arc::new(StructArray::try_new(
        fields.clone(),
        columns,
        nulls,
    )?))
}

fn arrays(texts: &StringArray, to: &DataType) -> Result<ArrayRef> {
    let depth = dimensions(to);
    let mut levels = vec![vec![0i32]; depth];
    let mut leaves: Vec<Option<String>> = Vec::new();
    let mut valid = Vec::with_capacity(texts.len());
    for text in texts {
        valid.push(text.is_some());
        match text {
            Some(text) => {
                let items = parse(text, depth)?;
                put(items, &mut levels, &mut leaves);
            }
            None => put(vec![], &mut levels, &mut leaves),
        }
    }
    let mut items = read(&StringArray::from(leaves), base(to))?;
    let mut item = base(to).clone();
    for (level, ends) in levels.into_iter().enumerate().rev() {
        let nulls = (level == 0).then(|| NullBuffer::from(valid.clone()));
        let field = Arc::new(Field::new_list_field(item.clone(), true));
        items = Arc::new(ListArray::try_new(
            field,
            OffsetBuffer::new(ends.into()),
            items,
            nulls,
        )?);
        item = list_of(item);
    }
    Ok(items)
}

/// Appends the items of an array: to the ends of its level, and those of its parts to the levels below.
fn put(items: Vec<Node>, levels: &mut [Vec<i32>], leaves: &mut Vec<Option<String>>) {
    let Some((own, below)) = levels.split_first_mut() else {
        return;
    };
    let count = items.len() as i32;
    for item in items {
        match item {
            Node::Null => leaves.push(None),
            Node::Text(text) => leaves.push(Some(text)),
            Node::Array(items) => put(items, below, leaves),
        }
    }
    let last = own.last().copied().unwrap_or(0);
    own.push(last + count);
}

fn malformed<T>(text: &str, why: &str) -> Result<T> {
    exec_err!("invalid input syntax for an array: malformed array literal: \"{text}\": {why}")
}

/// The items that a text says for an array of `depth` dimensions.
fn parse(text: &str, depth: usize) -> Result<Vec<Node>> {
    let mut parser = Parser {
        text,
        rest: text.trim_start(),
    };
    if parser.rest.starts_with('[') {
        return exec_err!(
            "not supported: an array whose positions begin elsewhere than at 1: \"{text}\""
        );
    }
    if !parser.rest.starts_with('{') {
        return malformed(
            text,
            "Array value must start with \"{\" or dimension information.",
        );
    }
    let items = parser.array(1)?;
    if !parser.rest.trim().is_empty() {
        return malformed(text, "Junk after closing right brace.");
    }
    let Some((found, _)) = shape(&items) else {
        return malformed(
            text,
            "Multidimensional arrays must have sub-arrays with matching dimensions.",
        );
    };
    let empty = count(&items) == 0;
    match found {
        // `{}` has no dimensions, nor has `{{},{}}`.
        _ if empty => Ok(vec![]),
        found if found == depth => Ok(items),
        found => exec_err!(
            "not supported: an array of {found} dimensions where the type has {depth}: write the type as int{}",
            "[]".repeat(found)
        ),
    }
}

/// The number of values in an array.
fn count(items: &[Node]) -> usize {
    let of = |item: &Node| match item {
        Node::Array(items) => count(items),
        _ => 1,
    };
    items.iter().map(of).sum()
}

/// The number of dimensions and the lengths; `None` if parts differ.
fn shape(items: &[Node]) -> Option<(usize, Vec<usize>)> {
    let mut below: Option<Option<(usize, Vec<usize>)>> = None;
    for item in items {
        let own = match item {
            Node::Array(items) => Some(shape(items)?),
            _ => None,
        };
        match &below {
            None => below = Some(own),
            Some(first) if *first == own => {}
            Some(_) => return None,
        }
    }
    let (depth, lengths) = below.flatten().unwrap_or((0, vec![]));
    let mut all = vec![items.len()];
    all.extend(lengths);
    Some((depth + 1, all))
}

/// The deepest nesting that is read.
const DEEPEST: usize = 6;

struct Parser<'t> {
    text: &'t str,
    rest: &'t str,
}

impl Parser<'_> {
    /// An array, which begins here.
    fn array(&mut self, depth: usize) -> Result<Vec<Node>> {
        if depth > DEEPEST {
            return exec_err!("number of array dimensions exceeds the maximum allowed ({DEEPEST})");
        }
        self.rest = self.rest[1..].trim_start();
        let mut items = Vec::new();
        if let Some(rest) = self.rest.strip_prefix('}') {
            self.rest = rest;
            return Ok(items);
        }
        loop {
            items.push(if self.rest.starts_with('{') {
                Node::Array(self.array(depth + 1)?)
            } else {
                self.item()?
            });
            self.rest = self.rest.trim_start();
            if let Some(rest) = self.rest.strip_prefix(',') {
                self.rest = rest.trim_start();
            } else if let Some(rest) = self.rest.strip_prefix('}') {
                self.rest = rest;
                return Ok(items);
            } else if self.rest.is_empty() {
                return malformed(self.text, "Unexpected end of input.");
            } else {
                return malformed(self.text, "Unexpected array element.");
            }
        }
    }

    fn item(&mut self) -> Result<Node> {
        if let Some(rest) = self.rest.strip_prefix('"') {
            self.rest = rest;
            return self.quoted();
        }
        let (mut value, mut end) = (String::new(), 0);
        let (mut escaped, mut last) = (false, self.rest.len());
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                ',' | '}' => {
                    last = at;
                    break;
                }
                '{' | '"' => return malformed(self.text, "Unexpected array element."),
                '\\' => {
                    let Some((_, c)) = chars.next() else {
                        return malformed(self.text, "Unexpected end of input.");
                    };
                    value.push(c);
                    (escaped, end) = (true, value.len());
                }
                c => {
                    value.push(c);
                    if !c.is_ascii_whitespace() {
                        end = value.len();
                    }
                }
            }
        }
        self.rest = &self.rest[last..];
        value.truncate(end);
        if value.is_empty() {
            return malformed(self.text, "Unexpected \",\" or \"}\" character.");
        }
        if !escaped && value.eq_ignore_ascii_case("null") {
            return Ok(Node::Null);
        }
        Ok(Node::Text(value))
    }

    fn quoted(&mut self) -> Result<Node> {
        let mut value = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(Node::Text(value));
                }
                '\\' => match chars.next() {
                    Some((_, c)) => value.push(c),
                    None => break,
                },
                c => value.push(c),
            }
        }
        malformed(self.text, "Unexpected end of input.")
    }
}
