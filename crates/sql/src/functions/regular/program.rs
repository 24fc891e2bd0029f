//! Regular expressions as programs that try one way after the other.

use regex::{Regex, RegexBuilder};

use crate::error::{Error, Result};
use crate::functions::regular::parse::{Edge, Node, Width};

/// Most steps of a program: repetitions of many parts are written out.
const MAX_STEPS: usize = 10_000;

/// A step of a program.
#[derive(Debug)]
pub(super) enum Step {
    /// A character that passes.
    Take(Test),
    /// A place in the text.
    Stand(Edge),
    /// Goes on at the first of the two, and at the second if that leads nowhere.
    Split(usize, usize),
    Jump(usize),
    /// Notes where the text of a group begins, or ends.
    Note(usize),
    /// The text that a group has found.
    Back(usize),
    /// A condition on what is around.
    Look(Look),
}

/// Which characters pass.
#[derive(Debug)]
pub(super) enum Test {
    Any,
    Letter(char),
    /// The class, as one of the library that knows them.
    Class(Regex),
}

/// A condition on what comes, or on what was before.
#[derive(Debug)]
pub(super) struct Look {
    pub behind: bool,
    pub negated: bool,
    pub steps: Vec<Step>,
    /// How many characters it takes.
    pub width: Width,
}

/// A regular expression.
#[derive(Debug)]
pub(crate) struct Program {
    pub(super) steps: Vec<Step>,
    /// How many groups it has.
    pub(super) groups: usize,
    /// Whether letters are alike in both cases.
    pub(super) alike: bool,
}

/// The program of an expression.
///
/// # Errors
/// If it is too large.
pub(super) fn program(root: &Node, alike: bool) -> Result<Program> {
    let mut writer = Writer {
        steps: Vec::new(),
        groups: 0,
        alike,
        before: 0,
    };
    writer.write(root)?;
    Ok(Program {
        steps: writer.steps,
        groups: writer.groups,
        alike,
    })
}

struct Writer {
    steps: Vec<Step>,
    groups: usize,
    alike: bool,
    /// How many steps the programs around this one have.
    before: usize,
}

impl Writer {
    fn push(&mut self, step: Step) -> Result<usize> {
        if self.before + self.steps.len() >= MAX_STEPS {
            return Err(Error::coded(
                "2201B",
                "invalid regular expression: regular expression is too complex",
            ));
        }
        self.steps.push(step);
        Ok(self.steps.len() - 1)
    }

    fn write(&mut self, node: &Node) -> Result<()> {
        match node {
            Node::Letter(letter) => {
                let test = if self.alike {
                    self.class(&regex::escape(&letter.to_string()))?
                } else {
                    Test::Letter(*letter)
                };
                self.push(Step::Take(test))?;
            }
            Node::Any => _ = self.push(Step::Take(Test::Any))?,
            Node::Class(text) => {
                let test = self.class(text)?;
                self.push(Step::Take(test))?;
            }
            Node::Place(edge) => _ = self.push(Step::Stand(*edge))?,
            Node::Back { group, .. } => _ = self.push(Step::Back(*group))?,
            Node::Sequence(items) => items.iter().try_for_each(|item| self.write(item))?,
            Node::Either(all) => self.either(all)?,
            Node::Group(inner, None) => self.write(inner)?,
            Node::Group(inner, Some(number)) => {
                self.groups = self.groups.max(*number);
                self.push(Step::Note(2 * number))?;
                self.write(inner)?;
                self.push(Step::Note(2 * number + 1))?;
            }
            Node::Look {
                behind,
                negated,
                inner,
            } => {
                let mut own = Writer {
                    steps: Vec::new(),
                    groups: 0,
                    alike: self.alike,
                    before: self.before + self.steps.len(),
                };
                own.write(inner)?;
                let look = Look {
                    behind: *behind,
                    negated: *negated,
                    steps: own.steps,
                    width: inner.width(),
                };
                self.before += look.steps.len();
                self.push(Step::Look(look))?;
            }
            Node::Repeat {
                inner,
                least,
                most,
                greedy,
            } => self.repeat(inner, (*least, *most), *greedy)?,
        }
        Ok(())
    }

    fn class(&self, text: &str) -> Result<Test> {
        RegexBuilder::new(&format!("^{text}$"))
            .case_insensitive(self.alike)
            .build()
            .map(Test::Class)
            .map_err(|_| {
                Error::coded(
                    "2201B",
                    "invalid regular expression: invalid character range",
                )
            })
    }

    fn either(&mut self, all: &[Node]) -> Result<()> {
        let mut ends = Vec::new();
        for (at, own) in all.iter().enumerate() {
            if at + 1 == all.len() {
                self.write(own)?;
                break;
            }
            let split = self.push(Step::Split(0, 0))?;
            self.write(own)?;
            ends.push(self.push(Step::Jump(0))?);
            self.steps[split] = Step::Split(split + 1, self.steps.len());
        }
        let end = self.steps.len();
        for jump in ends {
            self.steps[jump] = Step::Jump(end);
        }
        Ok(())
    }

    fn repeat(&mut self, inner: &Node, (least, most): Width, greedy: bool) -> Result<()> {
        // What takes no character is the same once and many times.
        let (least, most) = match inner.width().1 {
            Some(0) => (least.min(1), Some(most.map_or(1, |most| most.min(1)))),
            _ => (least, most),
        };
        for _ in 0..least {
            self.write(inner)?;
        }
        let order = |inside: usize, behind: usize| {
            if greedy {
                Step::Split(inside, behind)
            } else {
                Step::Split(behind, inside)
            }
        };
        let Some(most) = most else {
            let split = self.push(Step::Split(0, 0))?;
            self.write(inner)?;
            self.push(Step::Jump(split))?;
            self.steps[split] = order(split + 1, self.steps.len());
            return Ok(());
        };
        let mut splits = Vec::new();
        for _ in least..most {
            splits.push(self.push(Step::Split(0, 0))?);
            self.write(inner)?;
        }
        let end = self.steps.len();
        for split in splits {
            self.steps[split] = order(split + 1, end);
        }
        Ok(())
    }
}
