//! What stands in the place of a match, as `regexp_replace` is told it.

use crate::regular::known::Matches;

/// What stands in the place of a match: `\1` is what its first group found, `\&` the match.
#[derive(Debug, Default)]
pub(crate) struct Template<'a> {
    text: &'a str,
    pieces: Vec<Piece<'a>>,
    refers: bool,
}

/// A piece of a template.
#[derive(Clone, Copy, Debug)]
enum Piece<'a> {
    Text(&'a str),
    /// What the group of this number has found; that of number 0 is the match.
    Group(usize),
}

impl<'a> Template<'a> {
    /// Takes another text, unless it is the one that it has.
    pub(crate) fn read(&mut self, text: &'a str) {
        if self.text == text {
            return;
        }
        self.text = text;
        self.pieces.clear();
        let mut rest = text;
        while let Some(at) = rest.find('\\') {
            let (before, mark) = rest.split_at(at);
            self.push(before);
            rest = &mark[1..];
            let group = match rest.bytes().next() {
                Some(b'&') => 0,
                Some(digit @ b'1'..=b'9') => usize::from(digit - b'0'),
                behind => {
                    self.push(&mark[..1]);
                    // Two are one; before anything else it is itself.
                    rest = &rest[usize::from(behind == Some(b'\\'))..];
                    continue;
                }
            };
            self.pieces.push(Piece::Group(group));
            rest = &rest[1..];
        }
        self.push(rest);
        let is_group = |piece: &Piece<'_>| matches!(piece, Piece::Group(1..));
        self.refers = self.pieces.iter().any(is_group);
    }

    fn push(&mut self, text: &'a str) {
        if !text.is_empty() {
            self.pieces.push(Piece::Text(text));
        }
    }

    /// Whether there are groups in it.
    pub(crate) fn refers(&self) -> bool {
        self.refers
    }

    /// What stands in the place of a match, if that is one text that is there already.
    pub(crate) fn only(&self, found: &Matches<'_, 'a>) -> Option<&'a str> {
        match &self.pieces[..] {
            [] => Some(""),
            [piece] => Some(piece.of(found)),
            _ => None,
        }
    }

    /// Appends what stands in the place of a match.
    pub(crate) fn put(&self, found: &Matches<'_, 'a>, out: &mut String) {
        for piece in &self.pieces {
            out.push_str(piece.of(found));
        }
    }
}

impl<'a> Piece<'a> {
    fn of(self, found: &Matches<'_, 'a>) -> &'a str {
        match self {
            Piece::Text(text) => text,
            Piece::Group(group) => found.group(group).map_or("", |group| group.text),
        }
    }
}
