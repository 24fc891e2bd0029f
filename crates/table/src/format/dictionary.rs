//! The record of a column's dictionary.

use buffer::{PageId, Pool};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::format::block::Page;
use crate::format::page::{pin, texts};
use crate::format::record::damaged;

/// A dictionary as the catalog keeps it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DictionaryRecord {
    /// Labels; codes are `0 .. labels`.
    pub labels: u32,
    /// The labels below this code are in ascending order.
    pub sorted: u32,
    /// Text pages with the labels in code order.
    pub pages: Vec<Page>,
}

impl DictionaryRecord {
    /// Reads the labels, in code order.
    pub(crate) async fn labels(&self, table: &str, pool: &Pool) -> Result<Vec<Box<[u8]>>> {
        let mut labels: Vec<Box<[u8]>> = Vec::with_capacity(self.labels as usize);
        let damaged = |id| damaged(table, &format!("page {id} of a dictionary"));
        for (index, page) in self.pages.iter().enumerate() {
            let end = self
                .pages
                .get(index + 1)
                .map_or(self.labels, |next| next.first);
            let pin = pin(pool, page.id).await?;
            if page.long {
                let mut label = pin.to_vec();
                for id in &page.more {
                    label.extend_from_slice(&self::pin(pool, *id).await?);
                }
                labels.push(label.into());
                continue;
            }
            let rows = end
                .checked_sub(page.first)
                .ok_or_else(|| damaged(page.id))? as usize;
            let texts = texts(&pin, rows).ok_or_else(|| damaged(page.id))?;
            labels.extend(texts.into_iter().map(Box::from));
        }
        if labels.len() == self.labels as usize {
            Ok(labels)
        } else {
            Err(damaged(self.pages.last().map_or(0, |p| p.id)))
        }
    }

    /// All pages.
    pub(crate) fn page_ids(&self) -> impl Iterator<Item = PageId> + '_ {
        self.pages.iter().flat_map(Page::ids)
    }
}
