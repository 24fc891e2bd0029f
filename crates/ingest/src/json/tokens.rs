//! A walk over JSON that is known to be well formed: where its values begin and end.

use memchr::memchr2;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    List,
    String,
    Number,
    Boolean,
    Null,
}

/// A place in JSON. Of text that is not well formed it finds something, and never fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tokens<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Tokens<'t> {
    /// At the beginning of `text`.
    pub fn new(text: &'t [u8]) -> Tokens<'t> {
        Tokens { text, at: 0 }
    }

    /// How far it has come.
    pub fn at(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'t [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_spaces(&mut self) {
        let spaces = self.rest().iter();
        self.at += spaces
            .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
            .count();
    }

    /// The kind of the value that comes next.
    pub fn kind(&mut self) -> Kind {
        self.skip_spaces();
        match self.rest().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::List,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Boolean,
            Some(b'n') | None => Kind::Null,
            Some(_) => Kind::Number,
        }
    }

    /// Goes into an object or a list.
    pub fn enter(&mut self) {
        self.skip_spaces();
        self.at += 1;
    }

    /// Whether the object or list has one more member; otherwise it is left.
    pub fn more(&mut self) -> bool {
        self.skip_spaces();
        if self.rest().first() == Some(&b',') {
            self.at += 1;
            self.skip_spaces();
        }
        match self.rest().first() {
            Some(b'}' | b']') => {
                self.at += 1;
                false
            }
            None => false,
            Some(_) => true,
        }
    }

    /// The name of a member of an object; its value comes next.
    pub fn name(&mut self) -> String {
        let written = self.value();
        self.skip_spaces();
        if self.rest().first() == Some(&b':') {
            self.at += 1;
        }
        let plain = || String::from_utf8_lossy(written).into_owned();
        serde_json::from_slice(written).unwrap_or_else(|_| plain())
    }

    /// Passes over a value; gives it as it is written.
    pub fn value(&mut self) -> &'t [u8] {
        self.skip_spaces();
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match self.rest().first() {
                None => break,
                Some(b'"') => self.skip_string(),
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.at += 1;
                }
                Some(b'}' | b']') => {
                    depth = depth.saturating_sub(1);
                    self.at += 1;
                }
                Some(b',' | b':' | b' ' | b'\t' | b'\r' | b'\n') if depth > 0 => self.at += 1,
                Some(_) => {
                    let ends = |byte: &u8| {
                        matches!(
                            byte,
                            b',' | b':' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n'
                        )
                    };
                    let word = self.rest().iter().skip(1).position(ends);
                    self.at += word.map_or(self.rest().len(), |end| end + 1);
                }
            }
            if depth == 0 {
                break;
            }
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn skip_string(&mut self) {
        self.at += 1;
        while let Some(found) = memchr2(b'"', b'\\', self.rest()) {
            let escaped = self.rest().get(found) == Some(&b'\\');
            self.at = (self.at + found + 1 + usize::from(escaped)).min(self.text.len());
            if !escaped {
                return;
            }
        }
        self.at = self.text.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_passed_over() {
        let text = br#" { "a\"b" : [1, {"x": "]}"}, []] , "c":-1.5e3,"d":null , "e":true}"#;
        let mut tokens = Tokens::new(text);
        assert_eq!(tokens.kind(), Kind::Object);
        tokens.enter();
        let mut found = vec![];
        while tokens.more() {
            let name = tokens.name();
            let kind = tokens.kind();
            let value = String::from_utf8(tokens.value().to_vec()).unwrap();
            found.push((name, kind, value));
        }
        let wanted = [
            ("a\"b", Kind::List, r#"[1, {"x": "]}"}, []]"#),
            ("c", Kind::Number, "-1.5e3"),
            ("d", Kind::Null, "null"),
            ("e", Kind::Boolean, "true"),
        ];
        let wanted = wanted.map(|(name, kind, value)| (name.to_owned(), kind, value.to_owned()));
        assert_eq!(found, wanted);
        assert_eq!(tokens.at(), text.len());
    }

    #[test]
    fn what_is_no_json_ends() {
        for text in [
            "", "{", "{\"a", "{\"a\\", "[,]", "}", "{\"a\":", "{1:2", "[[[[",
        ] {
            let mut tokens = Tokens::new(text.as_bytes());
            tokens.value();
            let mut tokens = Tokens::new(text.as_bytes());
            tokens.enter();
            let mut rounds = 0;
            while tokens.more() && rounds < 9 {
                tokens.name();
                tokens.value();
                rounds += 1;
            }
            assert!(rounds < 9, "{text}");
        }
    }
}
