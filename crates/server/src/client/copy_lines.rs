//! The rows of `copy` from the client: lines of text or CSV, in pieces that end anywhere.

use atoll::TransferFormat;

/// Most bytes of a line, which is kept until its end has come.
const LONGEST: usize = 256 << 20;

/// What a reader finds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Row(Vec<Option<String>>),
    /// The line has not ended: more bytes are needed, or there are none.
    More,
    /// The client says that nothing more comes.
    End,
}

/// Reads rows from pieces that end anywhere.
pub(crate) struct Reader {
    format: TransferFormat,
    columns: usize,
    /// Bytes from `taken` on are still to be read.
    bytes: Vec<u8>,
    taken: usize,
    /// Bytes after `taken` in which no line ends, and whether they end within quotes.
    looked: usize,
    quoted: bool,
    /// Whether the last byte that was looked at escapes the next one.
    escaped: bool,
    line: u64,
    ended: bool,
    header: bool,
}

impl Reader {
    pub(crate) fn new(format: &TransferFormat, columns: usize) -> Reader {
        let header = match format {
            TransferFormat::Text { header, .. } | TransferFormat::Csv { header, .. } => *header,
            _ => false,
        };
        Reader {
            format: format.clone(),
            columns,
            bytes: Vec::new(),
            taken: 0,
            looked: 0,
            quoted: false,
            escaped: false,
            line: 0,
            ended: false,
            header,
        }
    }

    /// Takes more bytes.
    pub(crate) fn push(&mut self, more: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend(more);
    }

    /// The next row. `last` says that no bytes will follow.
    ///
    /// # Errors
    /// What is wrong with the line, and its number.
    pub(crate) fn next(&mut self, last: bool) -> Result<Line, String> {
        loop {
            if self.ended {
                return Ok(Line::End);
            }
            let Some(end) = self.line_end(last) else {
                return if self.bytes.len() - self.taken > LONGEST {
                    Err(self.wrong("the line is too long"))
                } else if last && self.quoted {
                    Err(self.wrong("unterminated CSV quoted field"))
                } else {
                    Ok(Line::More)
                };
            };
            let start = self.taken;
            self.taken = (end + 1).min(self.bytes.len());
            (self.looked, self.quoted, self.escaped) = (0, false, false);
            self.line += 1;
            let mut line = &self.bytes[start..end];
            if line.last() == Some(&b'\r') && !line.ends_with(b"\\\r") {
                line = &line[..line.len() - 1];
            }
            if line == b"\\." {
                self.ended = true;
                continue;
            }
            if std::mem::take(&mut self.header) {
                continue;
            }
            let fields = match &self.format {
                TransferFormat::Csv { .. } => self.csv(line),
                _ => self.text(line),
            };
            return fields
                .map(Line::Row)
                .map_err(|message| self.wrong(&message));
        }
    }

    fn wrong(&self, message: &str) -> String {
        format!("{message}, in line {} of the copied data", self.line.max(1))
    }

    /// Where the line ends that begins at `taken`.
    fn line_end(&mut self, last: bool) -> Option<usize> {
        let from = self.taken + self.looked;
        for (at, byte) in self.bytes.iter().enumerate().skip(from) {
            match &self.format {
                TransferFormat::Csv { quote, escape, .. } => {
                    if std::mem::take(&mut self.escaped) {
                        continue;
                    }
                    if self.quoted && byte == escape && escape != quote {
                        self.escaped = true;
                    } else if byte == quote {
                        // A doubled one ends the quotes and begins them again, which comes to the same.
                        self.quoted = !self.quoted;
                    } else if *byte == b'\n' && !self.quoted {
                        return Some(at);
                    }
                }
                _ => {
                    if std::mem::take(&mut self.escaped) {
                        continue;
                    }
                    match byte {
                        b'\\' => self.escaped = true,
                        b'\n' => return Some(at),
                        _ => {}
                    }
                }
            }
        }
        self.looked = self.bytes.len() - self.taken;
        // The last line may lack its end.
        (last && self.looked > 0 && !self.quoted).then_some(self.bytes.len())
    }

    fn utf8(bytes: Vec<u8>) -> Result<String, String> {
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| "invalid byte sequence for encoding \"UTF8\"".to_string())?;
        if text.contains('\0') {
            return Err("invalid byte sequence for encoding \"UTF8\": 0x00".to_string());
        }
        Ok(text)
    }

    fn counted(&self, fields: Vec<Option<String>>) -> Result<Vec<Option<String>>, String> {
        match fields.len() {
            found if found == self.columns => Ok(fields),
            found if found < self.columns => Err(format!(
                "missing data: {found} fields for {} columns",
                self.columns
            )),
            found => Err(format!(
                "extra data after last expected column: {found} fields for {} columns",
                self.columns
            )),
        }
    }

    fn text(&self, line: &[u8]) -> Result<Vec<Option<String>>, String> {
        let TransferFormat::Text {
            delimiter, null, ..
        } = &self.format
        else {
            return Err("not text".into());
        };
        let mut fields = Vec::with_capacity(self.columns);
        let mut start = 0;
        let mut at = 0;
        loop {
            match line.get(at) {
                Some(b'\\') => at += 2,
                Some(byte) if byte != delimiter => at += 1,
                found => {
                    let raw = &line[start..at.min(line.len())];
                    fields.push(if raw == null.as_bytes() {
                        None
                    } else {
                        Some(Reader::utf8(unescaped(raw))?)
                    });
                    if found.is_none() {
                        // A table without columns has rows without fields.
                        if self.columns == 0 && line.is_empty() {
                            fields.clear();
                        }
                        return self.counted(fields);
                    }
                    at += 1;
                    start = at;
                }
            }
        }
    }

    fn csv(&self, line: &[u8]) -> Result<Vec<Option<String>>, String> {
        let TransferFormat::Csv {
            delimiter,
            quote,
            escape,
            null,
            ..
        } = &self.format
        else {
            return Err("not csv".into());
        };
        let mut fields = Vec::with_capacity(self.columns);
        let mut at = 0;
        loop {
            let (mut value, mut within, mut had_quotes) = (Vec::new(), false, false);
            while let Some(byte) = line.get(at) {
                let next = line.get(at + 1);
                if within {
                    if byte == escape && next.is_some_and(|next| next == quote || next == escape) {
                        value.extend(next);
                        at += 2;
                        continue;
                    }
                    if byte == quote {
                        within = false;
                    } else {
                        value.push(*byte);
                    }
                } else if byte == quote {
                    within = true;
                    had_quotes = true;
                } else if byte == delimiter {
                    break;
                } else {
                    value.push(*byte);
                }
                at += 1;
            }
            if within {
                return Err("unterminated CSV quoted field".to_string());
            }
            fields.push(if !had_quotes && value == null.as_bytes() {
                None
            } else {
                Some(Reader::utf8(value)?)
            });
            if line.get(at).is_none() {
                return self.counted(fields);
            }
            at += 1;
        }
    }
}

/// A field of the text format without its backslashes.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut bytes = field.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        match bytes.next() {
            None => plain.push(b'\\'),
            Some(b'b') => plain.push(8),
            Some(b'f') => plain.push(12),
            Some(b'n') => plain.push(b'\n'),
            Some(b'r') => plain.push(b'\r'),
            Some(b't') => plain.push(b'\t'),
            Some(b'v') => plain.push(11),
            Some(b'x') => {
                let mut code = None;
                for _ in 0..2 {
                    let digit = bytes.next_if(u8::is_ascii_hexdigit);
                    let digit = digit.and_then(|digit| char::from(digit).to_digit(16));
                    code = digit.map(|digit| code.unwrap_or(0) * 16 + digit).or(code);
                }
                plain.push(code.map_or(b'x', |code| code as u8));
            }
            Some(first @ b'0'..=b'7') => {
                let mut code = u32::from(first - b'0');
                for _ in 0..2 {
                    if let Some(digit) = bytes.next_if(|byte| matches!(byte, b'0'..=b'7')) {
                        code = code * 8 + u32::from(digit - b'0');
                    }
                }
                plain.push(code as u8);
            }
            Some(other) => plain.push(other),
        }
    }
    plain
}
