//! Parts of documents at paths of constant keys, several at once.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, BooleanBuilder, ByteView, StringViewArray,
    StringViewBuilder,
};
use arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue, exec_err};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::{BinaryExpr, Expr, Operator};
use documents::{Paths, text_of};
use table::{JsonKind, json_kind};

use crate::json::contained::Contained;
use crate::json::get::{STEPS, STEPS_TEXT};
use crate::json::value::{of_texts, texts};
use crate::json::walk::{form, looked_at, told};

/// A part of a document.
#[derive(Clone, Debug)]
pub struct Part {
    /// The keys that lead to it from the document.
    keys: Vec<String>,
    wanted: Wanted,
}

/// What is wanted of a part.
#[derive(Clone, Debug)]
enum Wanted {
    /// The part, as JSON.
    Json,
    /// Its text, as `->>` gives it.
    Text,
    /// Whether its text is one of these, which are sorted.
    Among(Vec<String>),
    /// Whether it contains this, as `@>` has it.
    Containing(Contained),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        for (place, key) in self.keys.iter().enumerate() {
            let is_last = place + 1 == self.keys.len();
            let operator = match &self.wanted {
                Wanted::Text | Wanted::Among(_) if is_last => "->>",
                _ => "->",
            };
            write!(f, " {operator} {}", quoted(key))?;
        }
        if let Wanted::Among(texts) = &self.wanted {
            let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
            write!(f, " in ({})", texts.join(", "))?;
        }
        if let Wanted::Containing(constant) = &self.wanted {
            write!(f, " @> {}", quoted(constant.text()))?;
        }
        Ok(())
    }
}

impl Part {
    /// The keys that lead to it, and whether it is its text that matters, as `->>` gives it; `None` if it takes more than the part
    /// to tell what is wanted.
    pub fn kept(&self) -> Option<(&[String], bool)> {
        match self.wanted {
            _ if self.keys.is_empty() => None,
            Wanted::Json => Some((&self.keys, false)),
            Wanted::Text | Wanted::Among(_) => Some((&self.keys, true)),
            Wanted::Containing(_) => None,
        }
    }

    /// What is wanted of the part of each document of `jsonb`, by what is [kept](Part::kept) of it.
    ///
    /// # Errors
    /// Of no such texts.
    pub fn of_kept(&self, parts: &ArrayRef) -> Result<ArrayRef> {
        let texts = parts.as_string_view();
        match &self.wanted {
            Wanted::Json => of_texts(JsonKind::Normal, texts.clone()),
            Wanted::Among(among) => {
                let is_one = |text: &str| among.binary_search_by(|own| (**own).cmp(text)).is_ok();
                let truths = texts.iter().map(|text| text.map(is_one));
                Ok(Arc::new(truths.collect::<BooleanArray>()))
            }
            _ => Ok(Arc::clone(parts)),
        }
    }

    /// The paths whose ends tell what is wanted: the first is that of the part, unless that is the document and its members tell.
    fn paths(&self) -> Vec<Vec<String>> {
        let own = || self.keys.clone();
        match &self.wanted {
            Wanted::Containing(constant) => {
                let part = (!self.keys.is_empty()).then(own);
                let leaves = constant.paths(&self.keys);
                part.into_iter().chain(leaves).collect()
            }
            _ => vec![own()],
        }
    }
}

/// The document that a call of `->`, `->>` or several of them takes a part of, and which part that is, if all keys are constants. The
/// same of `@>` with a constant at its right.
pub fn part(function: &ScalarFunction) -> Option<(&Expr, Part)> {
    let wanted = match function.func.name() {
        "json get" | STEPS => Wanted::Json,
        "json get text" | STEPS_TEXT => Wanted::Text,
        "jsonb contains" => return asked(&function.args),
        _ => return None,
    };
    let (document, steps) = function.args.split_first()?;
    let keys = steps.iter().map(text).collect::<Option<Vec<String>>>()?;
    Some((document, Part { keys, wanted }))
}

/// Of the arguments of `@>`: the document, and which part of it is asked to contain a constant.
fn asked(args: &[Expr]) -> Option<(&Expr, Part)> {
    let [of, Expr::Literal(ScalarValue::Struct(constant), _)] = args else {
        return None;
    };
    if json_kind(constant.data_type()) != Some(JsonKind::Normal) {
        return None;
    }
    let constant: ArrayRef = constant.clone();
    let constant = texts(&constant);
    let constant = constant.iter().next().flatten()?;
    let wanted = Wanted::Containing(Contained::new(constant).ok()?);
    let within = match of {
        Expr::ScalarFunction(function) => part(function),
        _ => None,
    };
    Some(match within {
        Some((document, part)) if matches!(part.wanted, Wanted::Json) => {
            (document, Part { wanted, ..part })
        }
        _ => {
            let keys = Vec::new();
            (of, Part { keys, wanted })
        }
    })
}

/// Whether each of the documents, which are of `jsonb`, contains this constant.
///
/// # Errors
/// Those of [`Parts::of`].
pub(super) fn containing(documents: &ArrayRef, constant: &str) -> Result<ArrayRef> {
    let keys = Vec::new();
    let wanted = Wanted::Containing(Contained::new(constant)?);
    let parts = Parts::new(std::iter::once(&Part { keys, wanted }));
    match parts.of(documents, false)?.pop() {
        Some(found) => Ok(found),
        None => exec_err!("nothing is found"),
    }
}

/// A constant that is a text.
fn text(e: &Expr) -> Option<String> {
    match e {
        Expr::Literal(text, _) => text.try_as_str().flatten().map(ToString::to_string),
        _ => None,
    }
}

/// Of a comparison of the text of such a part with constants: the document, whether the text is one of these, and whether the
/// comparison is true where it is not.
pub fn compared(e: &Expr) -> Option<(&Expr, Part, bool)> {
    let (of, mut texts, negated) = match e {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::Eq | Operator::NotEq),
            right,
        }) => {
            let (of, constant) = match &**left {
                Expr::Literal(..) => (right, left),
                _ => (left, right),
            };
            (of, vec![text(constant)?], *op == Operator::NotEq)
        }
        Expr::InList(list) => {
            let texts = list.list.iter().map(text);
            (
                &list.expr,
                texts.collect::<Option<Vec<String>>>()?,
                list.negated,
            )
        }
        _ => return None,
    };
    let Expr::ScalarFunction(function) = &**of else {
        return None;
    };
    let (document, part) = part(function)?;
    match part.wanted {
        Wanted::Text => {
            texts.sort_unstable();
            let wanted = Wanted::Among(texts);
            Some((document, Part { wanted, ..part }, negated))
        }
        _ => None,
    }
}

/// Several parts of documents, which one walk finds.
#[derive(Debug)]
pub struct Parts {
    paths: Paths,
    parts: Vec<Part>,
    /// Which of the paths are those of each part.
    places: Vec<Range<usize>>,
}

impl Parts {
    /// These parts, to be found in one walk through each document.
    pub fn new<'p>(parts: impl Iterator<Item = &'p Part>) -> Parts {
        let parts: Vec<Part> = parts.cloned().collect();
        let (mut paths, mut places) = (Vec::new(), Vec::new());
        for part in &parts {
            let start = paths.len();
            paths.extend(part.paths());
            places.push(start..paths.len());
        }
        let paths = Paths::new(&paths);
        Parts {
            paths,
            parts,
            places,
        }
    }

    /// What is wanted of the parts of the documents, one per row. Long parts may lie in the documents, and keep these in memory, if the
    /// values are `passing`.
    ///
    /// # Errors
    /// For escapes that stand for no character, which `jsonb` does not have.
    pub fn of(&self, documents: &ArrayRef, passing: bool) -> Result<Vec<ArrayRef>> {
        let own = texts(documents);
        let kind = json_kind(documents.data_type()).unwrap_or(JsonKind::Text);
        let (form, rows) = (form(kind), own.len());
        let values = self.parts.iter().map(|part| Values::new(part, rows));
        let mut values: Vec<Values<'_>> = values.collect();
        let paths = self.places.last().map_or(0, |places| places.end);
        let mut found = vec![None; paths];
        for row in 0..rows {
            if own.is_null(row) {
                values.iter_mut().for_each(Values::append_null);
                continue;
            }
            let text = looked_at(own.value(row));
            self.paths.find(text, form, &mut found).map_err(told)?;
            let within = passing.then_some((&own, row));
            for (values, places) in values.iter_mut().zip(&self.places) {
                values.append(&found[places.clone()], within)?;
            }
        }
        values.into_iter().map(|own| own.finish(kind)).collect()
    }
}

/// The document that a part lies in, by its row.
type Within<'d> = Option<(&'d StringViewArray, usize)>;

/// Values of a part that are being made.
enum Values<'w> {
    Json(Views),
    Texts(Views),
    Truths(&'w [String], BooleanBuilder),
    /// Whether the part contains a constant: the document if there are no keys.
    Contain {
        constant: &'w Contained,
        keys: usize,
        values: BooleanBuilder,
    },
}

impl<'w> Values<'w> {
    fn new(part: &'w Part, rows: usize) -> Values<'w> {
        let truths = || BooleanBuilder::with_capacity(rows);
        match &part.wanted {
            Wanted::Json => Values::Json(Views::new(rows)),
            Wanted::Text => Values::Texts(Views::new(rows)),
            Wanted::Among(texts) => Values::Truths(texts, truths()),
            Wanted::Containing(constant) => Values::Contain {
                constant,
                keys: part.keys.len(),
                values: truths(),
            },
        }
    }

    /// Appends what is wanted of a part by what stands at the ends of [its paths](Part::paths), NULL if there is no such part.
    fn append(&mut self, found: &[Option<&str>], within: Within<'_>) -> Result<()> {
        let part = found.first().copied().flatten();
        match self {
            Values::Json(values) => values.append(part.map(Cow::Borrowed), within)?,
            Values::Texts(values) => values.append(characters_of(part)?, within)?,
            Values::Truths(texts, values) => {
                let is_one = |found: Cow<'_, str>| {
                    texts.binary_search_by(|own| (**own).cmp(&*found)).is_ok()
                };
                values.append_option(characters_of(part)?.map(is_one));
            }
            Values::Contain {
                constant,
                keys,
                values,
            } => match found {
                leaves if *keys == 0 => values.append_value(constant.is_in(leaves)?),
                [Some(_), leaves @ ..] => values.append_value(constant.is_in(leaves)?),
                _ => values.append_null(),
            },
        }
        Ok(())
    }

    /// Appends NULL, for a document that is.
    fn append_null(&mut self) {
        match self {
            Values::Json(own) | Values::Texts(own) => own.values.append_null(),
            Values::Truths(_, values) | Values::Contain { values, .. } => values.append_null(),
        }
    }

    fn finish(self, kind: JsonKind) -> Result<ArrayRef> {
        match self {
            Values::Json(mut views) => of_texts(kind, views.values.finish()),
            Values::Texts(mut views) => Ok(Arc::new(views.values.finish())),
            Values::Truths(_, mut values) | Values::Contain { mut values, .. } => {
                Ok(Arc::new(values.finish()))
            }
        }
    }
}

/// Texts that are being made, of which long ones lie where they are found.
struct Views {
    values: StringViewBuilder,
    /// The blocks that the buffers of the documents are, by their numbers; [`UNMET`] until there is a text in one.
    blocks: Vec<u32>,
}

/// Marks a buffer that is no block yet.
const UNMET: u32 = u32::MAX;

impl Views {
    fn new(rows: usize) -> Views {
        /// Bytes of a value that is not short.
        const BYTES: usize = 32;
        let block = rows.saturating_mul(BYTES).clamp(BYTES, 1 << 20) as u32;
        let values = StringViewBuilder::with_capacity(rows).with_fixed_block_size(block);
        let blocks = Vec::new();
        Views { values, blocks }
    }

    fn append(&mut self, text: Option<Cow<'_, str>>, within: Within<'_>) -> Result<()> {
        /// A text of so many bytes is copied sooner than looked at again.
        const SHORT: usize = 256;
        match (text, within) {
            (Some(Cow::Borrowed(text)), Some((documents, row))) if text.len() > SHORT => {
                self.append_long(text, documents, row)
            }
            (text, _) => {
                self.values.append_option(text);
                Ok(())
            }
        }
    }

    /// Appends a text that lies in the document of a row.
    fn append_long(&mut self, text: &str, documents: &StringViewArray, row: usize) -> Result<()> {
        let view = documents.views().get(row).copied().unwrap_or_default();
        let view = ByteView::from(view);
        let start = documents.value(row).as_ptr().addr();
        let start = text.as_ptr().addr().checked_sub(start);
        let start = start.and_then(|start| u32::try_from(start).ok());
        let start = start.and_then(|start| start.checked_add(view.offset));
        let own = view.buffer_index as usize;
        let (Some(start), Some(buffer)) = (start, documents.data_buffers().get(own)) else {
            self.values.append_value(text);
            return Ok(());
        };
        self.blocks.resize(documents.data_buffers().len(), UNMET);
        let mut block = self.blocks[own];
        if block == UNMET {
            block = self.values.append_block(buffer.clone());
            self.blocks[own] = block;
        }
        Ok(self
            .values
            .try_append_view(block, start, text.len() as u32)?)
    }
}

/// What `->>` gives of a part.
fn characters_of(part: Option<&str>) -> Result<Option<Cow<'_, str>>> {
    let text = part.map(text_of).transpose().map_err(told)?;
    Ok(text.flatten())
}

/// Whether parts of documents of type `data` are found without errors.
pub fn is_sure(data: &DataType) -> bool {
    json_kind(data) == Some(JsonKind::Normal)
}
