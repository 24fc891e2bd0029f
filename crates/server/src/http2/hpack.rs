//! Lists of headers as HTTP/2 packs them (RFC 7541).

use std::collections::VecDeque;

use crate::http2::huffman;

/// The most bytes of the table of a decoder: what the standard gives who says nothing else.
const TABLE: usize = 4096;

/// What an entry of the table takes beside its name and value.
const ENTRY: usize = 32;

/// The entries that every table begins with.
const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// A name and a value.
pub(crate) type Header = (Vec<u8>, Vec<u8>);

/// Why a block of headers is none. The connection cannot go on: the tables of both ends differ from here on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is not what the standard says.
    Malformed,
    /// It has more bytes than a client may say.
    Long,
}

/// Reads blocks of headers, each with what those before it have put into the table.
#[derive(Debug)]
pub(super) struct Decoder {
    table: VecDeque<Header>,
    /// Bytes of the table.
    size: usize,
    /// The most bytes of it.
    most: usize,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder {
            table: VecDeque::new(),
            size: 0,
            most: TABLE,
        }
    }
}

impl Decoder {
    /// The headers of `block`, of `most` bytes at most.
    ///
    /// # Errors
    /// See [`Refused`].
    pub(super) fn decode(&mut self, block: &[u8], most: usize) -> Result<Vec<Header>, Refused> {
        let mut rest = block;
        let mut headers = Vec::new();
        let mut length = 0;
        while let Some(&first) = rest.first() {
            let header = if first & 0x80 != 0 {
                let index = number(&mut rest, 7)?;
                self.entry(index)?
            } else if first & 0xc0 == 0x40 {
                let header = self.literal(&mut rest, 6)?;
                self.insert(header.clone());
                header
            } else if first & 0xe0 == 0x20 {
                let most = number(&mut rest, 5)?;
                // Only at the start, and no more than was agreed.
                if !headers.is_empty() || most > TABLE {
                    return Err(Refused::Malformed);
                }
                self.most = most;
                self.evict();
                continue;
            } else {
                // Without, or never to be, put into the table.
                self.literal(&mut rest, 4)?
            };
            length += header.0.len() + header.1.len() + ENTRY;
            if length > most {
                return Err(Refused::Long);
            }
            headers.push(header);
        }
        Ok(headers)
    }

    /// A header whose name may be one of the table.
    fn literal(&self, rest: &mut &[u8], prefix: u8) -> Result<Header, Refused> {
        let name = match number(rest, prefix)? {
            0 => string(rest)?,
            index => self.entry(index)?.0,
        };
        Ok((name, string(rest)?))
    }

    fn entry(&self, index: usize) -> Result<Header, Refused> {
        let index = index.checked_sub(1).ok_or(Refused::Malformed)?;
        if let Some((name, value)) = STATIC.get(index) {
            return Ok((name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        }
        let found = self.table.get(index - STATIC.len());
        found.cloned().ok_or(Refused::Malformed)
    }

    fn insert(&mut self, header: Header) {
        self.size += header.0.len() + header.1.len() + ENTRY;
        self.table.push_front(header);
        // One that is larger than the table empties it.
        self.evict();
    }

    fn evict(&mut self) {
        while self.size > self.most {
            let Some((name, value)) = self.table.pop_back() else {
                self.size = 0;
                return;
            };
            self.size -= name.len() + value.len() + ENTRY;
        }
    }
}

/// A number whose first byte has `prefix` bits of it.
fn number(rest: &mut &[u8], prefix: u8) -> Result<usize, Refused> {
    let mut next = || {
        let (first, after) = rest.split_first().ok_or(Refused::Malformed)?;
        *rest = after;
        Ok(*first)
    };
    let all = (1_u8 << prefix) - 1;
    let first = next()? & all;
    if first < all {
        return Ok(first.into());
    }
    let mut value = usize::from(all);
    // No number here needs more than 28 bits.
    for shift in [0, 7, 14, 21] {
        let byte = next()?;
        value += usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Refused::Malformed)
}

fn string(rest: &mut &[u8]) -> Result<Vec<u8>, Refused> {
    let packed = rest.first().is_some_and(|first| first & 0x80 != 0);
    let length = number(rest, 7)?;
    let (text, after) = rest.split_at_checked(length).ok_or(Refused::Malformed)?;
    *rest = after;
    if packed {
        huffman::decode(text).ok_or(Refused::Malformed)
    } else {
        Ok(text.to_vec())
    }
}

/// Appends a header that no table is to keep.
pub(super) fn put(out: &mut Vec<u8>, name: &str, value: &str) {
    if (name, value) == (":status", "200") {
        out.push(0x88);
        return;
    }
    out.push(0);
    for text in [name, value] {
        put_number(out, text.len());
        out.extend(text.as_bytes());
    }
}

/// Appends a number with a prefix of seven bits.
fn put_number(out: &mut Vec<u8>, number: usize) {
    if number < 0x7f {
        out.push(number as u8);
        return;
    }
    out.push(0x7f);
    let mut rest = number - 0x7f;
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 16 << 10;

    fn shown(headers: &[Header]) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        headers.iter().map(|(n, v)| (text(n), text(v))).collect()
    }

    /// The requests of RFC 7541, C.3 and C.4: without the Huffman code and with it.
    #[test]
    fn the_examples_of_the_standard() {
        let plain: [&[u8]; 3] = [
            b"\x82\x86\x84\x41\x0fwww.example.com",
            b"\x82\x86\x84\xbe\x58\x08no-cache",
            b"\x82\x87\x85\xbf\x40\x0acustom-key\x0ccustom-value",
        ];
        let packed: [&[u8]; 3] = [
            b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff",
            b"\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf",
            b"\x82\x87\x85\xbf\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf",
        ];
        let wanted = [
            "GET http / www.example.com",
            "GET http / www.example.com no-cache",
            "GET https /index.html www.example.com custom-value",
        ];
        for blocks in [plain, packed] {
            let mut decoder = Decoder::default();
            for (block, wanted) in blocks.iter().zip(wanted) {
                let headers = shown(&decoder.decode(block, MOST).unwrap());
                let values: Vec<&str> = headers.iter().map(|(_, value)| value.as_str()).collect();
                assert_eq!(values.join(" "), wanted);
            }
            assert_eq!(decoder.size, 164);
        }
    }

    #[test]
    fn what_is_put_is_read() {
        let long = "x".repeat(70_000);
        let mut block = Vec::new();
        put(&mut block, ":status", "200");
        put(&mut block, "grpc-message", &long);
        put(&mut block, "empty", "");
        let headers = Decoder::default().decode(&block, 1 << 20).unwrap();
        let wanted = [(":status", "200"), ("grpc-message", &long), ("empty", "")];
        let wanted = wanted.map(|(n, v)| (n.to_string(), v.to_string()));
        assert_eq!(shown(&headers), wanted);
    }

    #[test]
    fn the_table_is_no_larger_than_was_agreed() {
        let mut decoder = Decoder::default();
        for at in 0..200 {
            let value = format!("{at:040}");
            let mut block = vec![0x40, 1, b'n'];
            put_number(&mut block, value.len());
            block.extend(value.as_bytes());
            decoder.decode(&block, MOST).unwrap();
            assert!(decoder.size <= TABLE);
        }
        assert_eq!(decoder.table.len(), TABLE / (1 + 40 + ENTRY));
        // It is emptied, and cannot be made larger.
        decoder.decode(b"\x20", MOST).unwrap();
        assert!(decoder.table.is_empty());
        assert_eq!(
            decoder.decode(b"\x3f\xe2\x1f", MOST),
            Err(Refused::Malformed)
        );
        // Small blocks that stand for much are refused, too.
        let mut decoder = Decoder::default();
        let mut block = vec![0x40, 1, b'n'];
        put_number(&mut block, 3000);
        block.extend([b'v'; 3000]);
        decoder.decode(&block, MOST).unwrap();
        assert_eq!(decoder.decode(&[0xbe; 100], MOST), Err(Refused::Long));
    }

    #[test]
    fn any_bytes_are_read_without_harm() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut decoder = Decoder::default();
        for _ in 0..100_000 {
            let bytes: Vec<u8> = (0..random.usize(0..24)).map(|_| random.u8(..)).collect();
            let _ = decoder.decode(&bytes, MOST);
            assert!(decoder.size <= TABLE);
        }
        for bytes in [
            &b"\x80"[..],
            b"\x40",
            b"\x40\x05abc",
            b"\xff\xff\xff\xff\xff\x0f",
        ] {
            assert_eq!(decoder.decode(bytes, MOST), Err(Refused::Malformed));
        }
    }
}
