//! An expression as the library `regex` searches for it.

use std::sync::OnceLock;

use regex::{CaptureLocations, Regex};

use crate::regular::divided::Places;
use crate::regular::plain::Source;

/// An expression of the library.
#[derive(Debug)]
pub(super) struct Library {
    source: Source,
    whole: Regex,
    /// The two of [`Source::split`], compiled when groups are first asked for.
    split: OnceLock<Option<[Regex; 2]>>,
}

/// What a search of the library leaves: its memory serves the next search.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// For the whole, or for each of the two.
    locations: [Option<CaptureLocations>; 2],
    /// Where the match and its groups are.
    pub(super) places: Places,
}

impl Library {
    /// That of a source; none if it is over the limits of the library.
    pub(super) fn new(source: Source) -> Option<Library> {
        let whole = Regex::new(&source.whole).ok()?;
        Some(Library {
            source,
            whole,
            split: OnceLock::new(),
        })
    }

    /// Whether there is a match.
    pub(super) fn is_match(&self, text: &str) -> bool {
        self.whole.is_match(text)
    }

    /// Where the first match begins and ends that begins at `at` or behind it.
    pub(super) fn span(&self, text: &str, at: usize) -> Option<(usize, usize)> {
        let found = self.whole.find_at(text, at)?;
        Some((found.start(), self.end(text, found.end())))
    }

    /// Where a match ends that ends at `end` without its tail.
    fn end(&self, text: &str, end: usize) -> usize {
        if self.source.to_end { text.len() } else { end }
    }

    /// The same with the groups, which are left in `room`; whether there is a match.
    pub(super) fn groups(&self, text: &str, at: usize, room: &mut Room) -> bool {
        let all = match self.split() {
            Some(both) => &both[..],
            None => std::slice::from_ref(&self.whole),
        };
        for (regex, locations) in all.iter().zip(&mut room.locations) {
            let locations = locations.get_or_insert_with(|| regex.capture_locations());
            let Some(found) = regex.captures_read_at(locations, text, at) else {
                continue;
            };
            let whole = (found.start(), self.end(text, found.end()));
            room.places.clear();
            room.places.push(Some(whole));
            let groups = (1..locations.len()).map(|group| locations.get(group));
            room.places.extend(groups);
            return true;
        }
        false
    }

    fn split(&self) -> Option<&[Regex; 2]> {
        let compiled = || {
            let [with, without] = self.source.split.as_ref()?;
            Some([Regex::new(with).ok()?, Regex::new(without).ok()?])
        };
        self.split.get_or_init(compiled).as_ref()
    }
}
