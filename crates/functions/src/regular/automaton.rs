//! What a part of a regular expression matches, as a nondeterministic automaton.
//!
//! An automaton tells where matches from a place end, the longest or the shortest. It does not tell how they are divided:
//! see [`divided`](super::divided). A step takes a time that grows with the part, so that a search grows with part times text.

use std::sync::Arc;

use messages::{Error, Result};

use crate::regular::letters::{Test, is_word};
use crate::regular::parse::{Edge, Node};
use crate::regular::work::Work;

/// Most states of all automata of an expression.
pub(super) const MAX_STATES: usize = 100_000;

/// What a part matches, whatever groups are in it.
#[derive(Debug)]
pub(super) enum Language {
    /// A character that passes.
    Take(Arc<Test>),
    /// A place in the text.
    Place(Edge),
    /// A condition on what is around.
    Look(Arc<Look>),
    Sequence(Vec<Arc<Language>>),
    Either(Vec<Arc<Language>>),
    Repeat(Arc<Language>, u32, Option<u32>),
}

/// A condition on what comes, or on what was before.
#[derive(Debug)]
pub(super) struct Look {
    behind: bool,
    negated: bool,
    automaton: Automaton,
}

impl Language {
    /// That of a part without back references.
    ///
    /// # Errors
    /// If a condition in it is too complex.
    pub(super) fn of(node: &Node) -> Result<Arc<Language>> {
        let all = |nodes: &[Node]| nodes.iter().map(Language::of).collect::<Result<Vec<_>>>();
        Ok(Arc::new(match node {
            Node::Take(test) => Language::Take(Arc::clone(test)),
            Node::Place(edge) => Language::Place(*edge),
            Node::Sequence(nodes) => Language::Sequence(all(nodes)?),
            Node::Either(nodes) => Language::Either(all(nodes)?),
            Node::Group(inner, _) => return Language::of(inner),
            Node::Look {
                behind,
                negated,
                inner,
            } => Language::Look(Arc::new(Look {
                behind: *behind,
                negated: *negated,
                automaton: Automaton::new(&*Language::of(inner)?)?,
            })),
            Node::Back(_) => Language::Sequence(Vec::new()),
            Node::Repeat {
                inner, least, most, ..
            } => Language::Repeat(Language::of(inner)?, *least, *most),
        }))
    }

    /// It without conditions, as a back reference to it matches.
    pub(super) fn unconditional(self: &Arc<Language>) -> Arc<Language> {
        let all = |parts: &[Arc<Language>]| parts.iter().map(Language::unconditional).collect();
        Arc::new(match &**self {
            Language::Take(_) => return Arc::clone(self),
            Language::Place(_) | Language::Look(_) => Language::Sequence(Vec::new()),
            Language::Sequence(parts) => Language::Sequence(all(parts)),
            Language::Either(parts) => Language::Either(all(parts)),
            Language::Repeat(inner, least, most) => {
                Language::Repeat(inner.unconditional(), *least, *most)
            }
        })
    }

    /// About how many states its automaton has.
    pub(super) fn size(&self) -> usize {
        let sum = |parts: &[Arc<Language>]| {
            let sizes = parts.iter().map(|part| part.size());
            sizes.fold(1usize, |sum, size| sum.saturating_add(size))
        };
        match self {
            Language::Take(_) | Language::Place(_) => 1,
            Language::Look(look) => look.automaton.empty.len(),
            Language::Sequence(parts) => sum(parts),
            Language::Either(parts) => sum(parts).saturating_add(2 * parts.len()),
            Language::Repeat(inner, least, most) => {
                let times = most.unwrap_or(least + 1).max(*least) as usize;
                inner.size().saturating_mul(times).saturating_add(3)
            }
        }
    }
}

/// The error of an expression that is too large.
pub(super) fn too_complex() -> Error {
    Error::coded(
        "2201B",
        "invalid regular expression: regular expression is too complex",
    )
}

/// What must hold where an automaton goes on without a character.
#[derive(Clone, Debug)]
enum Condition {
    None,
    Place(Edge),
    Look(Arc<Look>),
}

/// An automaton. Its first state is where it starts, its second the one that accepts.
#[derive(Debug)]
pub(super) struct Automaton {
    /// Where each state goes without a character.
    empty: Vec<Vec<(usize, Condition)>>,
    /// Where it goes with one, and with which.
    takes: Vec<Option<(Arc<Test>, usize)>>,
}

const START: usize = 0;
const ACCEPT: usize = 1;

impl Automaton {
    /// # Errors
    /// If it is too large.
    pub(super) fn new(language: &Language) -> Result<Automaton> {
        let mut automaton = Automaton {
            empty: Vec::new(),
            takes: Vec::new(),
        };
        if language.size() > MAX_STATES {
            return Err(too_complex());
        }
        automaton.state()?;
        automaton.state()?;
        automaton.put(language, START, ACCEPT)?;
        Ok(automaton)
    }

    fn state(&mut self) -> Result<usize> {
        if self.empty.len() >= 4 * MAX_STATES {
            return Err(too_complex());
        }
        self.empty.push(Vec::new());
        self.takes.push(None);
        Ok(self.empty.len() - 1)
    }

    fn join(&mut self, from: usize, to: usize, condition: Condition) {
        self.empty[from].push((to, condition));
    }

    /// Puts what matches `language` between two states. No other character leaves the first of them.
    fn put(&mut self, language: &Language, from: usize, to: usize) -> Result<()> {
        match language {
            Language::Take(test) => self.takes[from] = Some((Arc::clone(test), to)),
            Language::Place(edge) => self.join(from, to, Condition::Place(*edge)),
            Language::Look(look) => self.join(from, to, Condition::Look(Arc::clone(look))),
            Language::Sequence(parts) => {
                let mut at = from;
                for part in parts {
                    let next = self.state()?;
                    self.put(part, at, next)?;
                    at = next;
                }
                self.join(at, to, Condition::None);
            }
            Language::Either(parts) => {
                for part in parts {
                    let (own, end) = (self.state()?, self.state()?);
                    self.join(from, own, Condition::None);
                    self.put(part, own, end)?;
                    self.join(end, to, Condition::None);
                }
            }
            Language::Repeat(inner, least, most) => {
                let mut at = from;
                for _ in 0..*least {
                    let next = self.state()?;
                    self.put(inner, at, next)?;
                    at = next;
                }
                let Some(most) = most else {
                    let (again, end) = (self.state()?, self.state()?);
                    self.join(at, again, Condition::None);
                    self.put(inner, again, end)?;
                    self.join(end, again, Condition::None);
                    self.join(again, to, Condition::None);
                    return Ok(());
                };
                self.join(at, to, Condition::None);
                for _ in *least..*most {
                    let next = self.state()?;
                    self.put(inner, at, next)?;
                    at = next;
                    self.join(at, to, Condition::None);
                }
            }
        }
        Ok(())
    }

    /// Where the longest match ends that begins at `start` and ends at `limit` or before.
    ///
    /// # Errors
    /// If the statement was cancelled.
    pub(super) fn longest(
        &self,
        text: &str,
        start: usize,
        limit: usize,
        work: &mut Work,
    ) -> Result<Option<usize>> {
        let mut found = None;
        let mut run = Run::new(self, text);
        run.enter(START, start, work)?;
        let mut at = start;
        loop {
            if run.accepts() {
                found = Some(at);
            }
            if at >= limit || run.is_over() {
                return Ok(found);
            }
            at = run.step(at, work)?;
        }
    }

    /// Where the shortest match ends that begins at `start` and ends from `least` to `most`.
    ///
    /// # Errors
    /// If the statement was cancelled.
    pub(super) fn shortest(
        &self,
        text: &str,
        start: usize,
        (least, most): (usize, usize),
        work: &mut Work,
    ) -> Result<Option<usize>> {
        let mut run = Run::new(self, text);
        run.enter(START, start, work)?;
        let mut at = start;
        loop {
            if at >= least && run.accepts() {
                return Ok(Some(at));
            }
            if at >= most || run.is_over() {
                return Ok(None);
            }
            at = run.step(at, work)?;
        }
    }

    /// Whether a match begins at `start` or behind it.
    ///
    /// # Errors
    /// If the statement was cancelled.
    pub(super) fn exists(&self, text: &str, start: usize, work: &mut Work) -> Result<bool> {
        let mut run = Run::new(self, text);
        let mut at = start;
        loop {
            run.enter(START, at, work)?;
            if run.accepts() {
                return Ok(true);
            }
            if at >= text.len() {
                return Ok(false);
            }
            at = run.step(at, work)?;
        }
    }
}

/// The states that an automaton is in at a place of a text.
struct Run<'r> {
    automaton: &'r Automaton,
    text: &'r str,
    states: Vec<usize>,
    before: Vec<usize>,
    /// States that are still to be entered.
    open: Vec<usize>,
    /// The round in which a state was entered last.
    rounds: Vec<u32>,
    round: u32,
}

impl<'r> Run<'r> {
    fn new(automaton: &'r Automaton, text: &'r str) -> Run<'r> {
        Run {
            automaton,
            text,
            states: Vec::new(),
            before: Vec::new(),
            open: Vec::new(),
            rounds: vec![0; automaton.empty.len()],
            round: 1,
        }
    }

    fn accepts(&self) -> bool {
        self.rounds[ACCEPT] == self.round
    }

    fn is_over(&self) -> bool {
        self.states.is_empty()
    }

    /// Enters a state, and those that it leads to without a character.
    fn enter(&mut self, state: usize, at: usize, work: &mut Work) -> Result<()> {
        self.open.push(state);
        while let Some(state) = self.open.pop() {
            if self.rounds[state] == self.round {
                continue;
            }
            self.rounds[state] = self.round;
            self.states.push(state);
            work.done(1)?;
            for (to, condition) in &self.automaton.empty[state] {
                let holds = match condition {
                    Condition::None => true,
                    Condition::Place(edge) => stands(*edge, self.text, at),
                    Condition::Look(look) => look.holds(self.text, at, work)?,
                };
                if holds {
                    self.open.push(*to);
                }
            }
        }
        Ok(())
    }

    /// Takes the character at `at`, and returns the place behind it.
    fn step(&mut self, at: usize, work: &mut Work) -> Result<usize> {
        let Some(letter) = next(self.text, at) else {
            self.states.clear();
            return Ok(self.text.len());
        };
        let behind = at + letter.len_utf8();
        std::mem::swap(&mut self.states, &mut self.before);
        self.states.clear();
        self.round += 1;
        let before = std::mem::take(&mut self.before);
        for state in &before {
            if let Some((test, to)) = &self.automaton.takes[*state]
                && test.passes(letter)
            {
                self.enter(*to, behind, work)?;
            }
        }
        work.done(before.len())?;
        self.before = before;
        Ok(behind)
    }
}

/// The character at a place.
pub(super) fn next(text: &str, at: usize) -> Option<char> {
    text[at..].chars().next()
}

/// The character before a place.
pub(super) fn last(text: &str, at: usize) -> Option<char> {
    text[..at].chars().next_back()
}

fn stands(edge: Edge, text: &str, at: usize) -> bool {
    let words = || (is_word(last(text, at)), is_word(next(text, at)));
    match edge {
        Edge::Start => at == 0,
        Edge::End => at == text.len(),
        Edge::LineStart => at == 0 || last(text, at) == Some('\n'),
        Edge::LineEnd => at == text.len() || next(text, at) == Some('\n'),
        Edge::WordStart => words() == (false, true),
        Edge::WordEnd => words() == (true, false),
        Edge::Word => words().0 != words().1,
        Edge::NoWord => words().0 == words().1,
    }
}

impl Look {
    /// Whether the condition holds at a place.
    fn holds(&self, text: &str, at: usize, work: &mut Work) -> Result<bool> {
        let own = &self.automaton;
        if !self.behind {
            let found = own.shortest(text, at, (at, text.len()), work)?;
            return Ok(found.is_some() != self.negated);
        }
        let mut start = at;
        loop {
            if own.longest(text, start, at, work)? == Some(at) {
                return Ok(!self.negated);
            }
            match last(text, start) {
                Some(letter) => start -= letter.len_utf8(),
                None => return Ok(self.negated),
            }
        }
    }
}
