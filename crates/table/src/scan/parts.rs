//! Parts of documents: read from their shreds in the blocks that have these, elsewhere with the documents.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray, StringViewBuilder};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use buffer::Pool;
use documents::text_of;

use crate::catalog::table::Table;
use crate::error::Result;
use crate::format::block::{Block, Matrix, ShredForm};
use crate::scan::chunk::{PinnedChunk, Tally};
use crate::scan::decode::decode;
use crate::scan::rows::Rows;

/// A part of the documents of a column of `jsonb` that a scan reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentPart {
    /// The position of the column in the table.
    pub column: usize,
    /// The keys that lead to the part, through objects.
    pub keys: Vec<String>,
    /// Whether its text is wanted, as `->>` gives it, or the part as it is written.
    pub as_text: bool,
}

/// What a scan finds of a part.
#[derive(Clone, Debug)]
pub enum PartValues {
    /// The parts, as texts.
    Parts(ArrayRef),
    /// The documents, of the type of their column: the part is not kept apart here.
    Documents(ArrayRef),
}

/// Where a part is in a block.
pub(crate) struct PartPlace<'b> {
    pub matrix: &'b Matrix,
    /// What the matrix holds of it; `None` for the documents.
    pub form: Option<ShredForm>,
}

impl DocumentPart {
    /// Where it is in `block`.
    pub(crate) fn place<'b>(&self, block: &'b Block) -> PartPlace<'b> {
        let shred = block.shred(self.column, &self.keys);
        // How a string is written cannot be told from its characters.
        let shred = shred.filter(|shred| self.as_text || shred.form != ShredForm::Strings);
        PartPlace {
            matrix: shred.map_or(&block.columns[self.column], |shred| &shred.matrix),
            form: shred.map(|shred| shred.form),
        }
    }

    /// Its chunk of `block`, of which nothing is pinned yet.
    pub(crate) fn chunk<'p>(
        &self,
        table: &'p str,
        pool: &'p Arc<Pool>,
        block: &'p Block,
    ) -> PartChunk<'p> {
        let PartPlace { matrix, form } = self.place(block);
        PartChunk {
            chunk: PinnedChunk::new(table, pool, matrix, block.rows),
            form,
            as_text: self.as_text,
        }
    }
}

impl Table {
    /// The share of the rows that lie in blocks where the part is kept apart, about: of many blocks some are looked at.
    pub fn share_with_part(&self, part: &DocumentPart) -> f64 {
        /// Blocks that are looked at.
        const BLOCKS: usize = 1_024;
        let blocks = &self.body.blocks;
        let step = (blocks.len() / BLOCKS).max(1);
        let (mut kept, mut all) = (0, 0);
        for block in blocks.iter().step_by(step).map(|block| &*block.value) {
            all += block.rows as usize;
            if part.place(block).form.is_some() {
                kept += block.rows as usize;
            }
        }
        kept as f64 / (all + self.tail_rows()).max(1) as f64
    }
}

/// A part of the documents of an opened block.
#[derive(Debug)]
pub(crate) struct PartChunk<'p> {
    pub chunk: PinnedChunk<'p>,
    form: Option<ShredForm>,
    as_text: bool,
}

impl PartChunk<'_> {
    /// The part at `rows`, or the documents, which have the type `documents`.
    pub(crate) fn values(
        &self,
        rows: &Rows<'_>,
        documents: &DataType,
        tally: &mut Tally<'_>,
    ) -> Result<PartValues> {
        let mut values = |data_type: &DataType| decode(&self.chunk, rows, data_type, None, tally);
        Ok(match (self.form, self.as_text) {
            (None, _) => PartValues::Documents(values(documents)?),
            (Some(ShredForm::Numbers), _) => {
                PartValues::Parts(cast(&values(&DataType::Int64)?, &DataType::Utf8View)?)
            }
            (Some(ShredForm::Written), true) => {
                let written = values(&DataType::Utf8View)?;
                let texts = self.texts(written.as_string_view())?;
                PartValues::Parts(Arc::new(texts))
            }
            (Some(_), _) => PartValues::Parts(values(&DataType::Utf8View)?),
        })
    }

    /// The texts of values that are as they are written.
    fn texts(&self, written: &StringViewArray) -> Result<StringViewArray> {
        let mut texts = StringViewBuilder::with_capacity(written.len());
        for value in written {
            let text = value.map(text_of).transpose();
            let text = text.map_err(|e| {
                let page = self.chunk.matrix.pages.first().map_or(0, |page| page.id);
                self.chunk.damaged(page, &format!("holds no value: {e}"))
            })?;
            texts.append_option(text.flatten());
        }
        Ok(texts.finish())
    }
}
