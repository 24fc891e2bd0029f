//! A walk through the bytes of a text.

use memchr::memchr2;

use crate::blocks::{BLOCK, Blocks, Marks};

/// Where a walk through a text has come.
#[derive(Debug)]
pub struct Walk<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Walk<'t> {
    /// At the beginning of a text.
    pub fn new(text: &'t str) -> Walk<'t> {
        Walk { text, at: 0 }
    }

    /// How many bytes of the text are passed.
    pub fn at(&self) -> usize {
        self.at
    }

    /// What was passed from a place on.
    pub fn since(&self, start: usize) -> Option<&'t str> {
        self.text.get(start..self.at)
    }

    /// What comes next that is no blank, which stays there.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    /// Whether a mark comes next, which is passed then.
    #[inline]
    pub fn eat(&mut self, mark: u8) -> bool {
        let comes = self.peek() == Some(mark);
        self.at += usize::from(comes);
        comes
    }

    /// Passes the string that begins here, with a quote: its text with the quotes, and whether there are escapes in it.
    pub fn string(&mut self) -> Option<(&'t str, bool)> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let (mut at, mut escaped) = (start + 1, false);
        loop {
            let rest = bytes.get(at..)?;
            let next = memchr2(b'"', b'\\', rest)?;
            if rest.get(next) == Some(&b'"') {
                self.at = at + next + 1;
                return Some((self.text.get(start..self.at)?, escaped));
            }
            escaped = true;
            at += next + 2;
        }
    }

    /// Passes what comes up to the end of so many pairs of brackets of one kind, which are open. Brackets of the other kind and all
    /// that is in strings do not matter: brackets come in pairs.
    pub fn close(&mut self, open: u8, close: u8, mut depth: usize) -> Option<()> {
        let mut blocks = Blocks::default();
        loop {
            let text = self.text.as_bytes();
            let rest = text.get(self.at..)?;
            let marks = match (rest.first_chunk::<BLOCK>(), text.last_chunk::<BLOCK>()) {
                (Some(block), _) => blocks.next(block, 0, open, close),
                (None, Some(block)) if !rest.is_empty() => {
                    blocks.next(block, BLOCK - rest.len(), open, close)
                }
                _ => {
                    let mut block = [0; BLOCK];
                    block.get_mut(..rest.len())?.copy_from_slice(rest);
                    blocks.next(&block, 0, open, close)
                }
            };
            if marks.close.count_ones() as usize >= depth
                && let Some(end) = end(marks, depth)
            {
                self.at += end + 1;
                return Some(());
            }
            if rest.len() <= BLOCK {
                return None;
            }
            depth += marks.open.count_ones() as usize;
            depth -= marks.close.count_ones() as usize;
            self.at += BLOCK;
        }
    }

    /// Passes the value that comes next, and gives it.
    pub fn value(&mut self) -> Option<&'t str> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => return self.string().map(|(text, _)| text),
            b'{' => {
                self.at += 1;
                self.close(b'{', b'}', 1)?;
            }
            b'[' => {
                self.at += 1;
                self.close(b'[', b']', 1)?;
            }
            _ => {
                let mut rest = self.text.as_bytes().get(start..)?.iter();
                let ends =
                    |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r');
                self.at += rest.position(ends).unwrap_or(self.text.len() - start);
            }
        }
        self.since(start).filter(|value| !value.is_empty())
    }
}

/// The place of the bracket in a block that closes the last of so many pairs.
fn end(marks: Marks, depth: usize) -> Option<usize> {
    let (mut closing, mut closed) = (marks.close, 0);
    while closing != 0 {
        let place = closing.trailing_zeros();
        closed += 1;
        let opened = (marks.open & ((1 << place) - 1)).count_ones() as usize;
        if depth + opened == closed {
            return Some(place as usize);
        }
        closing &= closing - 1;
    }
    None
}
