//! Statements from standard input, as they arrive.

use std::collections::VecDeque;
use std::io::BufRead;

use anyhow::Context;

use atoll::script::{Splitter, Statement};

/// Statements from standard input, as they arrive.
#[derive(Default)]
pub struct Incoming {
    splitter: Splitter,
    ready: VecDeque<Statement>,
    ended: bool,
}

impl Incoming {
    /// The first statement, which stays the next one.
    pub fn first(&mut self) -> anyhow::Result<Option<&Statement>> {
        self.read()?;
        Ok(self.ready.front())
    }

    /// The next statement; none at the end.
    pub fn next(&mut self) -> anyhow::Result<Option<Statement>> {
        self.read()?;
        Ok(self.ready.pop_front())
    }

    /// Reads on until a statement is complete.
    fn read(&mut self) -> anyhow::Result<()> {
        let (mut input, mut line) = (std::io::stdin().lock(), String::new());
        while self.ready.is_empty() && !self.ended {
            line.clear();
            let read = input
                .read_line(&mut line)
                .context("cannot read standard input; it must be UTF-8 text")?;
            self.ready.extend(self.splitter.push(&line));
            if read == 0 {
                self.ended = true;
                self.ready
                    .extend(std::mem::take(&mut self.splitter).finish());
            }
        }
        Ok(())
    }
}
