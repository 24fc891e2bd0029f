//! Searches a text by a [program](super::program), which may take a time that grows beyond any power of the text's length: so
//! its steps are counted.

use crate::error::{Error, Result};
use crate::functions::regular::parse::Edge;
use crate::functions::regular::program::{Look, Program, Step, Test};

/// How many ways one search may try in vain.
const MAX_TRIES: usize = 1_000_000;

/// Where a match and its groups begin and end: two places each.
pub(super) type Places = Vec<Option<usize>>;

impl Program {
    /// The first match that begins at the byte `at` or behind it.
    ///
    /// # Errors
    /// If it tries too many ways.
    pub(super) fn search(&self, text: &str, at: usize) -> Result<Option<Places>> {
        let mut search = Search {
            text,
            alike: self.alike,
            tries: 0,
        };
        let anchored = matches!(self.steps.first(), Some(Step::Stand(Edge::Start)));
        let mut next = Some(at);
        while let Some(start) = next {
            if anchored && start > 0 {
                break;
            }
            search.tried()?;
            let mut places = vec![None; 2 * (self.groups + 1)];
            if let Some(end) = search.run(&self.steps, start, None, &mut places)? {
                places[0] = Some(start);
                places[1] = Some(end);
                return Ok(Some(places));
            }
            next = search.next(start).map(|letter| start + letter.len_utf8());
        }
        Ok(None)
    }
}

/// What to do when a way leads nowhere.
enum Other {
    /// Goes on there.
    Way { step: usize, at: usize },
    /// Forgets what was noted since.
    Place { slot: usize, old: Option<usize> },
}

struct Search<'t> {
    text: &'t str,
    alike: bool,
    tries: usize,
}

impl Search<'_> {
    fn tried(&mut self) -> Result<()> {
        self.tries += 1;
        if self.tries > MAX_TRIES {
            return Err(Error::coded(
                "2201B",
                format!(
                    "regular expression failed: with look-around or back references, more than {MAX_TRIES} ways were tried in one text; make the expression simpler or the text shorter"
                ),
            ));
        }
        Ok(())
    }

    fn next(&self, at: usize) -> Option<char> {
        self.text[at..].chars().next()
    }

    fn last(&self, at: usize) -> Option<char> {
        self.text[..at].chars().next_back()
    }

    /// Where a match that begins at `at` ends, which is at `wanted` if that is said.
    fn run(
        &mut self,
        steps: &[Step],
        at: usize,
        wanted: Option<usize>,
        places: &mut Places,
    ) -> Result<Option<usize>> {
        let mut others = Vec::new();
        let (mut step, mut at) = (0, at);
        loop {
            let goes = match steps.get(step) {
                None if wanted.is_none_or(|wanted| wanted == at) => return Ok(Some(at)),
                None => None,
                Some(Step::Take(test)) => self
                    .next(at)
                    .filter(|letter| passes(test, *letter))
                    .map(|letter| (step + 1, at + letter.len_utf8())),
                Some(Step::Stand(edge)) => self.stands(*edge, at).then_some((step + 1, at)),
                Some(Step::Split(first, second)) => {
                    others.push(Other::Way { step: *second, at });
                    Some((*first, at))
                }
                Some(Step::Jump(to)) => Some((*to, at)),
                Some(Step::Note(slot)) => {
                    let old = places[*slot].replace(at);
                    others.push(Other::Place { slot: *slot, old });
                    Some((step + 1, at))
                }
                Some(Step::Back(group)) => {
                    let found = (places[2 * group], places[2 * group + 1]);
                    self.back(found, at).map(|at| (step + 1, at))
                }
                Some(Step::Look(look)) => self.look(look, at)?.then_some((step + 1, at)),
            };
            if let Some(goes) = goes {
                (step, at) = goes;
                continue;
            }
            self.tried()?;
            loop {
                match others.pop() {
                    None => return Ok(None),
                    Some(Other::Place { slot, old }) => places[slot] = old,
                    Some(Other::Way { step: to, at: from }) => {
                        (step, at) = (to, from);
                        break;
                    }
                }
            }
        }
    }

    fn stands(&self, edge: Edge, at: usize) -> bool {
        let word = |letter: Option<char>| letter.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let words = || (word(self.last(at)), word(self.next(at)));
        match edge {
            Edge::Start => at == 0,
            Edge::End => at == self.text.len(),
            Edge::WordStart => words() == (false, true),
            Edge::WordEnd => words() == (true, false),
            Edge::Word => words().0 != words().1,
            Edge::NoWord => words().0 == words().1,
        }
    }

    /// Where the text that a group has found ends, if it stands here, too.
    fn back(&self, found: (Option<usize>, Option<usize>), at: usize) -> Option<usize> {
        let (Some(start), Some(end)) = found else {
            return None;
        };
        let (wanted, rest) = (&self.text[start..end], &self.text[at..]);
        if !self.alike {
            return rest.starts_with(wanted).then_some(at + wanted.len());
        }
        let mut letters = rest.chars();
        for own in wanted.chars() {
            let other = letters.next()?;
            if own != other && !own.to_lowercase().eq(other.to_lowercase()) {
                return None;
            }
        }
        Some(self.text.len() - letters.as_str().len())
    }

    /// Whether a condition holds.
    fn look(&mut self, look: &Look, at: usize) -> Result<bool> {
        let mut places = Places::new();
        if !look.behind {
            let found = self.run(&look.steps, at, None, &mut places)?;
            return Ok(found.is_some() != look.negated);
        }
        let (least, most) = look.width;
        let (mut start, mut width) = (at, 0);
        loop {
            if width >= least
                && self
                    .run(&look.steps, start, Some(at), &mut places)?
                    .is_some()
            {
                return Ok(!look.negated);
            }
            let Some(letter) = self.last(start) else {
                break;
            };
            if most.is_some_and(|most| width >= most) {
                break;
            }
            self.tried()?;
            start -= letter.len_utf8();
            width += 1;
        }
        Ok(look.negated)
    }
}

fn passes(test: &Test, letter: char) -> bool {
    match test {
        Test::Any => true,
        Test::Letter(own) => *own == letter,
        Test::Class(class) => class.is_match(letter.encode_utf8(&mut [0; 4])),
    }
}
