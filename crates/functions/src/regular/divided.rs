//! Searches a text, and divides a match among the [parts](super::structure) of an expression.

use messages::Result;

use crate::regular::automaton::{last, next};
use crate::regular::letters::are_alike;
use crate::regular::structure::{Kind, Part};
use crate::regular::work::Work;

/// Where less of the stack is left, parts within parts get another of [`STACK`] bytes.
const RED_ZONE: usize = 64 << 10;
const STACK: usize = 1 << 20;

/// Where a match and its groups begin and end.
pub(super) type Places = Vec<Option<(usize, usize)>>;

/// The first match of `part` that begins at `at` or behind it, with `groups` groups; letters may be alike in both cases.
///
/// # Errors
/// If the expression is too complex, or the statement was cancelled.
pub(super) fn search(
    part: &Part,
    text: &str,
    at: usize,
    (groups, alike): (usize, bool),
) -> Result<Option<Places>> {
    let mut search = Search {
        text,
        alike,
        work: Work::default(),
        places: vec![None; groups + 1],
    };
    let mut start = Some(at);
    while let Some(at) = start {
        if let Some(end) = search.from(part, at)? {
            search.places[0] = Some((at, end));
            return Ok(Some(search.places));
        }
        start = search.after(at);
    }
    Ok(None)
}

/// Whether there is a match of a part without back references.
///
/// # Errors
/// If the expression is too complex, or the statement was cancelled.
pub(super) fn exists(part: &Part, text: &str) -> Result<bool> {
    part.automaton()?.exists(text, 0, &mut Work::default())
}

struct Search<'t> {
    text: &'t str,
    alike: bool,
    work: Work,
    places: Places,
}

impl Search<'_> {
    /// The place behind the character at a place.
    fn after(&self, at: usize) -> Option<usize> {
        next(self.text, at).map(|letter| at + letter.len_utf8())
    }

    /// The place of the character before a place.
    fn before(&self, at: usize) -> Option<usize> {
        last(self.text, at).map(|letter| at - letter.len_utf8())
    }

    fn longest(&mut self, part: &Part, start: usize, limit: usize) -> Result<Option<usize>> {
        let automaton = part.automaton()?;
        automaton.longest(self.text, start, limit, &mut self.work)
    }

    fn shortest(
        &mut self,
        part: &Part,
        start: usize,
        ends: (usize, usize),
    ) -> Result<Option<usize>> {
        let automaton = part.automaton()?;
        automaton.shortest(self.text, start, ends, &mut self.work)
    }

    /// Where the match of the whole ends that begins at `start`.
    fn from(&mut self, part: &Part, start: usize) -> Result<Option<usize>> {
        let shorter = part.flags.is_shorter();
        let (mut least, mut most) = (start, self.text.len());
        loop {
            let end = if shorter {
                self.shortest(part, start, (least, most))?
            } else {
                self.longest(part, start, most)?
            };
            let Some(end) = end else {
                return Ok(None);
            };
            self.places.fill(None);
            if self.divide(part, start, end)? {
                return Ok(Some(end));
            }
            let other = if shorter {
                self.after(end)
            } else {
                self.before(end).filter(|other| *other >= start)
            };
            match other {
                Some(other) if shorter => least = other,
                Some(other) => most = other,
                None => return Ok(None),
            }
        }
    }

    /// Divides the match of a part from `start` to `end`; whether it can be divided.
    fn divide(&mut self, part: &Part, start: usize, end: usize) -> Result<bool> {
        let divided = stacker::maybe_grow(RED_ZONE, STACK, || match &part.kind {
            Kind::Whole => Ok(true),
            Kind::Within(inner) => self.divide(inner, start, end),
            Kind::Both(parts) => self.both(parts, start, end),
            Kind::Either(parts) => self.either(parts, start, end),
            Kind::Back(group, least, most) => self.back(*group, (*least, *most), start, end),
            Kind::Repeat(inner, least, most) => {
                let mut repetitions = Repetitions {
                    inner,
                    shorter: inner.flags.is_shorter(),
                    least: (*least).max(1) as usize,
                    ends: vec![start],
                    end,
                    proven: 0,
                };
                if *least == 0 && start == end && repetitions.shorter {
                    return Ok(true);
                }
                let most = most.map_or(usize::MAX, |most| most as usize);
                let found = repetitions.find(self, most)?;
                Ok(found || *least == 0 && start == end)
            }
        })?;
        if divided && let Some(group) = part.group {
            self.places[group] = Some((start, end));
        }
        Ok(divided)
    }

    /// Forgets what the groups in a part have found.
    fn forget(&mut self, part: &Part) {
        if let Some(group) = part.group {
            self.places[group] = None;
        }
        part.parts().iter().for_each(|part| self.forget(part));
    }

    fn both(&mut self, [first, second]: &[Part; 2], start: usize, end: usize) -> Result<bool> {
        let shorter = first.flags.is_shorter();
        let mut middle = if shorter {
            self.shortest(first, start, (start, end))?
        } else {
            self.longest(first, start, end)?
        };
        while let Some(at) = middle {
            if self.longest(second, at, end)? == Some(end)
                && self.divide(first, start, at)?
                && self.divide(second, at, end)?
            {
                return Ok(true);
            }
            self.forget(first);
            self.forget(second);
            middle = if shorter {
                match self.after(at).filter(|next| *next <= end) {
                    Some(next) => self.shortest(first, start, (next, end))?,
                    None => None,
                }
            } else {
                match self.before(at).filter(|before| *before >= start) {
                    Some(before) => self.longest(first, start, before)?,
                    None => None,
                }
            };
        }
        Ok(false)
    }

    fn either(&mut self, parts: &[Part], start: usize, end: usize) -> Result<bool> {
        for part in parts {
            if self.longest(part, start, end)? == Some(end) && self.divide(part, start, end)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the text from `start` to `end` is that of a group, so many times.
    fn back(
        &mut self,
        group: usize,
        (least, most): (u32, Option<u32>),
        start: usize,
        end: usize,
    ) -> Result<bool> {
        let text = self.text;
        let Some(Some((from, to))) = self.places.get(group).copied() else {
            return Ok(false);
        };
        if from == to {
            return Ok(start == end);
        }
        if start == end {
            return Ok(least == 0);
        }
        self.work.done(end - start)?;
        let (wanted, mut rest) = (&text[from..to], &text[start..end]);
        let mut times = 0u32;
        while !rest.is_empty() {
            match self.without(rest, wanted) {
                Some(behind) => rest = behind,
                None => return Ok(false),
            }
            times = times.saturating_add(1);
        }
        Ok(times >= least && most.is_none_or(|most| times <= most))
    }

    /// What is left of a text behind another, if that stands at its beginning.
    fn without<'r>(&self, rest: &'r str, wanted: &str) -> Option<&'r str> {
        if !self.alike {
            return rest.strip_prefix(wanted);
        }
        let mut letters = rest.chars();
        for own in wanted.chars() {
            let other = letters.next()?;
            if !are_alike(own, other) {
                return None;
            }
        }
        Some(letters.as_str())
    }
}

/// How a match is divided into repetitions of a part.
struct Repetitions<'p> {
    inner: &'p Part,
    /// Whether the part prefers less.
    shorter: bool,
    /// The least number of repetitions, which is not zero.
    least: usize,
    /// Where the whole begins, and where each repetition ends.
    ends: Vec<usize>,
    /// Where the last one must end.
    end: usize,
    /// How many of them have been divided.
    proven: usize,
}

impl Repetitions<'_> {
    /// Whether a repetition that takes nothing from `at` on is needed to make enough of them: the `count`th.
    fn needs_nothing(&self, search: &Search<'_>, count: usize, at: usize) -> bool {
        let rest = || search.text[at..self.end].chars().take(self.least).count();
        count < self.least && self.least - count >= rest()
    }

    /// Finds at most so many.
    fn find(&mut self, search: &mut Search<'_>, most: usize) -> Result<bool> {
        let start = self.ends[0];
        let letters = search.text[start..self.end].chars().count();
        let most = letters.min(most).max(self.least);
        let mut limit = if self.shorter { start } else { self.end };
        // The number of repetitions that end where `ends` says, and of which the last is to be found now.
        let mut count = 1;
        while count > 0 {
            self.ends.truncate(count);
            let from = self.ends[count - 1];
            let found = if self.shorter {
                if limit == from && limit != self.end && !self.needs_nothing(search, count, from) {
                    limit = search.after(limit).unwrap_or(self.end);
                }
                if count >= most {
                    limit = self.end;
                }
                search.shortest(self.inner, from, (limit, self.end))?
            } else {
                search.longest(self.inner, from, limit)?
            };
            let Some(at) = found else {
                count -= 1;
                count = self.shortened(search, count, &mut limit);
                continue;
            };
            self.ends.push(at);
            self.proven = self.proven.min(count - 1);
            if at != self.end {
                if count >= most {
                    count = self.shortened(search, count - 1, &mut limit);
                } else if !self.shorter && at == from && !self.needs_nothing(search, count, from) {
                    count = self.shortened(search, count, &mut limit);
                } else {
                    count += 1;
                    limit = if self.shorter { at } else { self.end };
                }
                continue;
            }
            if count >= self.least {
                match self.proved(search, count)? {
                    None => return Ok(true),
                    Some(failed) => count = failed,
                }
            }
            count = self.shortened(search, count, &mut limit);
        }
        Ok(false)
    }

    /// Divides the first `count` repetitions; the number of the first that cannot be.
    fn proved(&mut self, search: &mut Search<'_>, count: usize) -> Result<Option<usize>> {
        for number in self.proven + 1..=count {
            // What groups found in another than the last one does not count.
            search.forget(self.inner);
            if !search.divide(self.inner, self.ends[number - 1], self.ends[number])? {
                return Ok(Some(number));
            }
            self.proven = number;
        }
        Ok(None)
    }

    /// The last of the first `count` repetitions that can end elsewhere, and in `limit` where: nearer, or further if less is
    /// preferred.
    fn shortened(&self, search: &Search<'_>, count: usize, limit: &mut usize) -> usize {
        let mut count = count;
        while count > 0 {
            let (before, at) = (self.ends[count - 1], self.ends[count]);
            if self.shorter {
                if at < self.end {
                    *limit = search.after(at).unwrap_or(self.end);
                    return count;
                }
            } else if at > before {
                *limit = search.before(at).unwrap_or(before);
                if *limit > before || self.needs_nothing(search, count, before) {
                    return count;
                }
            }
            count -= 1;
        }
        0
    }
}
