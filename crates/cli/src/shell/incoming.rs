//! Statements and commands from standard input, as they arrive.

use std::collections::VecDeque;
use std::io::BufRead;

use anyhow::Context;

use crate::shell::input::{Input, Item};

/// Statements and commands from standard input, as they arrive.
pub struct Incoming {
    input: Input,
    ready: VecDeque<Item>,
    ended: bool,
}

impl Default for Incoming {
    fn default() -> Incoming {
        Incoming {
            input: Input::script(),
            ready: VecDeque::new(),
            ended: false,
        }
    }
}

impl Incoming {
    /// The first of them, which stays the next one.
    pub fn first(&mut self) -> anyhow::Result<Option<&Item>> {
        self.read()?;
        Ok(self.ready.front())
    }

    /// The next one; none at the end.
    pub fn next(&mut self) -> anyhow::Result<Option<Item>> {
        self.read()?;
        Ok(self.ready.pop_front())
    }

    /// Reads on until one is complete.
    fn read(&mut self) -> anyhow::Result<()> {
        let (mut input, mut line) = (std::io::stdin().lock(), String::new());
        while self.ready.is_empty() && !self.ended {
            line.clear();
            let read = input
                .read_line(&mut line)
                .context("cannot read standard input; it must be UTF-8 text")?;
            self.ready.extend(self.input.push(&line));
            if read == 0 {
                self.ended = true;
                let rest = std::mem::take(&mut self.input).rest();
                self.ready.extend(rest.map(Item::Statement));
            }
        }
        Ok(())
    }
}
