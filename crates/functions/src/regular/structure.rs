//! How PostgreSQL divides a match among the parts of a regular expression.
//!
//! Of the matches that begin first, PostgreSQL takes the longest, or the shortest if the first quantifier of the expression
//! prefers that. Then it divides the text from left to right: each part takes as much as it prefers and the rest allows. Only
//! parts count in which groups, back references or other preferences are; runs of others are one part, which is not divided.
//! This tree has these parts, as Henry Spencer's library makes them, whose rules PostgreSQL's manual describes in 9.7.3.5.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use messages::Result;

use crate::regular::automaton::{Automaton, Language, MAX_STATES, too_complex};
use crate::regular::parse::{Node, Prefers};

/// Most parts, each of which holds the rest of its branch.
const MAX_PARTS: usize = 400;

/// What is known of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    longer: bool,
    shorter: bool,
    /// Whether parts of it prefer differently.
    mixed: bool,
    /// Whether there are groups in it.
    groups: bool,
    /// Whether there are back references in it.
    backs: bool,
}

impl Flags {
    const NONE: Flags = Flags {
        longer: false,
        shorter: false,
        mixed: false,
        groups: false,
        backs: false,
    };

    fn of(prefers: Prefers) -> Flags {
        Flags {
            longer: prefers == Prefers::Longer,
            shorter: prefers == Prefers::Shorter,
            ..Flags::NONE
        }
    }

    fn or(self, other: Flags) -> Flags {
        Flags {
            longer: self.longer || other.longer,
            shorter: self.shorter || other.shorter,
            mixed: self.mixed || other.mixed,
            groups: self.groups || other.groups,
            backs: self.backs || other.backs,
        }
    }

    /// Whether a match of it must be divided.
    fn is_divided(self) -> bool {
        self.mixed || self.groups || self.backs
    }

    /// What of it counts for the part around it.
    fn around(self) -> Flags {
        Flags {
            longer: false,
            shorter: false,
            mixed: self.mixed || self.longer && self.shorter,
            ..self
        }
    }

    /// Those of two parts together: the first that prefers something says what both prefer.
    fn with(self, other: Flags) -> Flags {
        let first = if self.longer || self.shorter {
            self
        } else {
            other
        };
        let both = self.or(other).around();
        Flags {
            longer: first.longer,
            shorter: first.shorter,
            ..both
        }
    }

    /// What it prefers, without the rest.
    fn preference(self) -> Flags {
        Flags {
            longer: self.longer,
            shorter: self.shorter,
            ..Flags::NONE
        }
    }

    pub(super) fn is_shorter(self) -> bool {
        self.shorter
    }
}

/// How the match of a part is divided.
#[derive(Debug)]
pub(super) enum Kind {
    /// Not at all.
    Whole,
    /// Into that of the first, and that of the second.
    Both(Box<[Part; 2]>),
    /// It is that of one of these.
    Either(Vec<Part>),
    /// Into those of repetitions.
    Repeat(Box<Part>, u32, Option<u32>),
    /// It is the text of a group, so many times.
    Back(usize, u32, Option<u32>),
    /// It is that of the part within.
    Within(Box<Part>),
}

/// A part of an expression.
#[derive(Debug)]
pub(super) struct Part {
    pub kind: Kind,
    pub flags: Flags,
    /// The group whose text its match is.
    pub group: Option<usize>,
    language: Arc<Language>,
    automaton: OnceLock<Automaton>,
}

impl Part {
    fn new(kind: Kind, flags: Flags, language: Arc<Language>) -> Part {
        Part {
            kind,
            flags,
            group: None,
            language,
            automaton: OnceLock::new(),
        }
    }

    /// What tells where its matches end.
    ///
    /// # Errors
    /// If it is too large.
    pub(super) fn automaton(&self) -> Result<&Automaton> {
        if let Some(known) = self.automaton.get() {
            return Ok(known);
        }
        let made = Automaton::new(&self.language)?;
        Ok(self.automaton.get_or_init(|| made))
    }

    /// The parts that it is divided into.
    pub(super) fn parts(&self) -> &[Part] {
        match &self.kind {
            Kind::Whole | Kind::Back(..) => &[],
            Kind::Both(parts) => &parts[..],
            Kind::Either(parts) => parts,
            Kind::Repeat(part, ..) | Kind::Within(part) => std::slice::from_ref(part.as_ref()),
        }
    }

    /// The states of all automata that it may need.
    fn size(&self) -> usize {
        let own = self.language.size();
        let parts = self.parts().iter().map(Part::size);
        parts.fold(own, |sum, size| sum.saturating_add(size))
    }
}

/// The parts of an expression.
///
/// # Errors
/// If it is too large.
pub(super) fn structure(root: &Node) -> Result<Part> {
    let mut builder = Builder {
        groups: HashMap::new(),
        parts: 0,
    };
    let part = builder.alternatives(root)?;
    if part.size() > 4 * MAX_STATES {
        return Err(too_complex());
    }
    Ok(part)
}

/// A quantifier.
#[derive(Clone, Copy)]
struct Times {
    least: u32,
    most: Option<u32>,
    prefers: Prefers,
}

const ONCE: Times = Times {
    least: 1,
    most: Some(1),
    prefers: Prefers::Same,
};

impl Times {
    fn is_once(self) -> bool {
        (self.least, self.most) == (1, Some(1))
    }

    fn of(self, language: Arc<Language>) -> Arc<Language> {
        if self.is_once() {
            return language;
        }
        Arc::new(Language::Repeat(language, self.least, self.most))
    }
}

fn sequence(parts: Vec<Arc<Language>>) -> Arc<Language> {
    Arc::new(Language::Sequence(parts))
}

struct Builder {
    /// What the groups match that are complete.
    groups: HashMap<usize, Arc<Language>>,
    parts: usize,
}

impl Builder {
    fn alternatives(&mut self, node: &Node) -> Result<Part> {
        let branches = match node {
            Node::Either(branches) => branches,
            Node::Sequence(items) => return self.branch(items),
            other => return self.branch(std::slice::from_ref(other)),
        };
        let parts = branches.iter().map(|branch| self.alternatives(branch));
        let parts = parts.collect::<Result<Vec<Part>>>()?;
        let mut flags = Flags::of(Prefers::Longer);
        for part in &parts {
            flags = flags.or(flags.or(part.flags).around());
        }
        let languages = parts.iter().map(|part| Arc::clone(&part.language));
        let language = Arc::new(Language::Either(languages.collect()));
        let kind = if flags.is_divided() {
            Kind::Either(parts)
        } else {
            Kind::Whole
        };
        Ok(Part::new(kind, flags, language))
    }

    /// What stands between two `|`: a run that is not divided, the part that must be, and the rest.
    fn branch(&mut self, items: &[Node]) -> Result<Part> {
        let mut run: Vec<Arc<Language>> = Vec::new();
        let mut flags = Flags::NONE;
        for (at, item) in items.iter().enumerate() {
            let (atom, times) = match item {
                Node::Repeat {
                    inner,
                    least,
                    most,
                    prefers,
                } => {
                    let times = Times {
                        least: *least,
                        most: *most,
                        prefers: *prefers,
                    };
                    (&**inner, times)
                }
                item => (item, ONCE),
            };
            if matches!(atom, Node::Place(_) | Node::Look { .. }) {
                run.push(Language::of(atom)?);
                continue;
            }
            let part = self.atom(atom)?;
            if (times.least, times.most) == (0, Some(0)) {
                continue;
            }
            let own = flags.or(Flags::of(times.prefers)).or(part.flags);
            let is_marked = part.group.is_some() || matches!(part.kind, Kind::Back(..));
            if !is_marked && !own.around().is_divided() {
                run.push(times.of(part.language));
                flags = own;
                continue;
            }
            self.parts += 1;
            if self.parts > MAX_PARTS {
                return Err(too_complex());
            }
            let whole = Flags::of(times.prefers).with(part.flags);
            let part = if matches!(atom, Node::Back(_)) {
                referred(part, times, whole)
            } else {
                repeated(part, times, whole)
            };
            return self.divided((run, flags), part, whole, &items[at + 1..]);
        }
        Ok(Part::new(Kind::Whole, flags, sequence(run)))
    }

    /// A character, parentheses or a back reference.
    fn atom(&mut self, atom: &Node) -> Result<Part> {
        match atom {
            Node::Group(inner, number) => {
                let mut part = self.alternatives(inner)?;
                let Some(number) = *number else {
                    return Ok(part);
                };
                self.groups.insert(number, Arc::clone(&part.language));
                part.flags.groups = true;
                if part.group.is_some() {
                    let (flags, language) = (part.flags, Arc::clone(&part.language));
                    part = Part::new(Kind::Within(Box::new(part)), flags, language);
                }
                part.group = Some(number);
                Ok(part)
            }
            Node::Back(number) => {
                let language = self.groups.get(number);
                let language = language.map_or_else(|| sequence(Vec::new()), Arc::clone);
                let flags = Flags {
                    backs: true,
                    ..Flags::NONE
                };
                let kind = Kind::Back(*number, 1, Some(1));
                Ok(Part::new(kind, flags, language.unconditional()))
            }
            other => Ok(Part::new(Kind::Whole, Flags::NONE, Language::of(other)?)),
        }
    }

    /// A run, a part of these flags with its quantifier, and the rest of the branch.
    fn divided(
        &mut self,
        (run, flags): (Vec<Arc<Language>>, Flags),
        middle: Part,
        whole: Flags,
        rest: &[Node],
    ) -> Result<Part> {
        if rest.is_empty() {
            if run.is_empty() {
                return Ok(middle);
            }
            let both = flags.or(flags.with(middle.flags));
            return Ok(behind(run, flags, middle, both));
        }
        let rest = self.branch(rest)?;
        let both = whole.or(whole.with(rest.flags));
        let merged = middle.flags.or(rest.flags).around();
        let plain = matches!((&middle.kind, &rest.kind), (Kind::Whole, Kind::Whole))
            && middle.group.is_none()
            && rest.group.is_none()
            && !merged.is_divided();
        let together = middle.flags.with(rest.flags);
        let language = sequence(vec![
            Arc::clone(&middle.language),
            Arc::clone(&rest.language),
        ]);
        let kind = Kind::Both(Box::new([middle, rest]));
        if run.is_empty() {
            return Ok(Part::new(kind, Flags::NONE.with(both), language));
        }
        let tail = if plain {
            Part::new(Kind::Whole, together, language)
        } else {
            Part::new(kind, both, language)
        };
        Ok(behind(run, flags, tail, flags.or(flags.with(both))))
    }
}

/// A run that is not divided, and what comes behind it.
fn behind(run: Vec<Arc<Language>>, flags: Flags, tail: Part, both: Flags) -> Part {
    let run = sequence(run);
    let language = sequence(vec![Arc::clone(&run), Arc::clone(&tail.language)]);
    let run = Part::new(Kind::Whole, flags, run);
    Part::new(Kind::Both(Box::new([run, tail])), both, language)
}

/// A back reference with its quantifier.
fn referred(mut part: Part, times: Times, flags: Flags) -> Part {
    if let Kind::Back(group, ..) = part.kind {
        part.kind = Kind::Back(group, times.least, times.most);
    }
    part.language = times.of(part.language);
    part.flags = part.flags.or(flags);
    part
}

/// A part with its quantifier.
fn repeated(part: Part, times: Times, flags: Flags) -> Part {
    let own = Flags {
        mixed: part.flags.mixed,
        ..part.flags.preference()
    };
    let language = Arc::clone(&part.language);
    if times.is_once()
        && (times.prefers == Prefers::Same || own == Flags::NONE || own == Flags::of(times.prefers))
    {
        return part;
    }
    if !part.flags.groups && !part.flags.backs {
        return Part::new(Kind::Whole, flags, times.of(language));
    }
    if times.least > 0 && !part.flags.backs {
        // Only the last repetition is divided: what groups found before does not count.
        let before = Times {
            least: times.least - 1,
            most: times.most.map(|most| most - 1),
            prefers: times.prefers,
        };
        let before = before.of(language.clone());
        let whole = sequence(vec![Arc::clone(&before), language]);
        let before = Part::new(Kind::Whole, flags.preference(), before);
        return Part::new(Kind::Both(Box::new([before, part])), flags, whole);
    }
    let whole = times.of(language);
    let kind = Kind::Repeat(Box::new(part), times.least, times.most);
    Part::new(kind, flags, whole)
}
