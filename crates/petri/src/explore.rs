//! The reachability graph of a small net.

use std::collections::HashMap;

use crate::net::Known;
use crate::{Error, Marking, Net, Result};

/// Readings of one moment, by name.
pub type Readings<'a> = &'a [(&'a str, f64)];

/// The states that a net can reach, whatever the readings.
#[derive(Debug, Clone)]
pub struct Graph {
    /// The states; the first is the start.
    pub markings: Vec<Marking>,
    /// What leads from state to state.
    pub edges: Vec<Edge>,
}

/// A step from one state to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Which of [`Graph::markings`].
    pub from: usize,
    /// Which of [`Graph::markings`].
    pub to: usize,
    /// Which of [`Net::transitions`]; `None` where a check begins and readings come in.
    pub transition: Option<usize>,
    /// Which of the readings that were given.
    pub readings: usize,
}

impl Net {
    /// All states that can be reached from `start`. Where the net is at rest, each of the
    /// readings may come; where it is not, it goes on with those that came, and all transitions
    /// that are enabled are tried.
    ///
    /// # Errors
    ///
    /// [`Error::TooMany`] beyond `limit` states, or what a step makes of it.
    pub fn explore(
        &self,
        start: &Marking,
        readings: &[Readings<'_>],
        limit: usize,
    ) -> Result<Graph> {
        let known = readings.iter().map(|readings| Known::new(self, readings));
        let known = known.collect::<Result<Vec<_>>>()?;
        let mut explorer = Explorer {
            limit,
            states: Vec::new(),
            numbers: HashMap::new(),
            edges: Vec::new(),
        };
        explorer.number((start.clone(), None))?;
        let mut next = 0;
        while let Some((marking, came)) = explorer.states.get(next).cloned() {
            match came {
                None => {
                    for (at, known) in known.iter().enumerate() {
                        let to = (self.refreshed(&marking, known)?, Some(at));
                        explorer.edge(next, to, None, at)?;
                    }
                }
                Some(at) => {
                    for binding in self.all_enabled(&marking, &known[at])? {
                        let after = self.fired(&marking, &binding, &known[at])?;
                        let came = (!self.rests(&after)).then_some(at);
                        explorer.edge(next, (after, came), Some(binding.transition), at)?;
                    }
                }
            }
            next += 1;
        }
        Ok(Graph {
            markings: explorer.states.into_iter().map(|(m, _)| m).collect(),
            edges: explorer.edges,
        })
    }
}

/// A state, and the readings of the check in progress; `None` where it is at rest.
type State = (Marking, Option<usize>);

struct Explorer {
    limit: usize,
    states: Vec<State>,
    numbers: HashMap<State, usize>,
    edges: Vec<Edge>,
}

impl Explorer {
    fn number(&mut self, state: State) -> Result<usize> {
        if let Some(number) = self.numbers.get(&state) {
            return Ok(*number);
        }
        if self.states.len() >= self.limit {
            return Err(Error::TooMany {
                what: "states",
                limit: self.limit,
            });
        }
        let number = self.states.len();
        self.states.push(state.clone());
        self.numbers.insert(state, number);
        Ok(number)
    }

    fn edge(
        &mut self,
        from: usize,
        to: State,
        transition: Option<usize>,
        readings: usize,
    ) -> Result<()> {
        let to = self.number(to)?;
        self.edges.push(Edge {
            from,
            to,
            transition,
            readings,
        });
        Ok(())
    }
}

impl Graph {
    /// The dead states: those without an outgoing edge.
    pub fn dead(&self) -> Vec<usize> {
        let mut leaves = vec![false; self.markings.len()];
        for edge in &self.edges {
            leaves[edge.from] = true;
        }
        (0..leaves.len()).filter(|at| !leaves[*at]).collect()
    }

    /// The states for which `holds` is false: where an invariant is broken.
    pub fn violating(&self, holds: impl Fn(&Marking) -> bool) -> Vec<usize> {
        let broken = |at: &usize| !holds(&self.markings[*at]);
        (0..self.markings.len()).filter(broken).collect()
    }

    /// Whether a place is marked in some state.
    pub fn reaches(&self, place: usize) -> bool {
        let mut markings = self.markings.iter();
        markings.any(|marking| !marking.tokens(place).is_empty())
    }

    /// The most tokens that a place ever holds.
    pub fn most_tokens(&self, place: usize) -> usize {
        let counts = self.markings.iter().map(|m| m.tokens(place).len());
        counts.max().unwrap_or(0)
    }

    /// Whether the start can be reached again from every state.
    pub fn returns(&self) -> bool {
        let mut back: Vec<Vec<usize>> = vec![Vec::new(); self.markings.len()];
        for edge in &self.edges {
            back[edge.to].push(edge.from);
        }
        let mut seen = vec![false; self.markings.len()];
        let mut rest = vec![0];
        while let Some(at) = rest.pop() {
            if let Some(seen) = seen.get_mut(at)
                && !std::mem::replace(seen, true)
            {
                rest.extend(&back[at]);
            }
        }
        seen.into_iter().all(|seen| seen)
    }
}
