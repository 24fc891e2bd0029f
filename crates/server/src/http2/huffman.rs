//! The Huffman code of header strings (RFC 7541, appendix B).
//!
//! The code is canonical: among codes of one length, those of lesser symbols come first. So the symbols in order of their
//! lengths are all there is to know.

/// The shortest code, in bits.
const SHORTEST: usize = 5;

/// The longest code.
const LONGEST: usize = 30;

/// The symbols whose codes have [`SHORTEST`] bits, one more, and so on.
const SYMBOLS: [&[u8]; LONGEST - SHORTEST + 1] = [
    b"012aceiost",
    b" %-./3456789=A_bdfghlmnpru",
    b":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz",
    b"&*,;XZ",
    b"",
    b"!\"()?",
    b"'+|",
    b"#>",
    b"\0$@[]~",
    b"^}",
    b"<`{",
    b"",
    b"",
    b"",
    b"\\\xc3\xd0",
    b"\x80\x82\x83\xa2\xb8\xc2\xe0\xe2",
    b"\x99\xa1\xa7\xac\xb0\xb1\xb3\xd1\xd8\xd9\xe3\xe5\xe6",
    b"\x81\x84\x85\x86\x88\x92\x9a\x9c\xa0\xa3\xa4\xa9\xaa\xad\xb2\xb5\xb9\xba\xbb\xbd\xbe\xc4\xc6\xe4\xe8\xe9",
    b"\x01\x87\x89\x8a\x8b\x8c\x8d\x8f\x93\x95\x96\x97\x98\x9b\x9d\x9e\xa5\xa6\xa8\xae\xaf\xb4\xb6\xb7\xbc\xbf\xc5\xe7\xef",
    b"\x09\x8e\x90\x91\x94\x9f\xab\xce\xd7\xe1\xec\xed",
    b"\xc7\xcf\xea\xeb",
    b"\xc0\xc1\xc8\xc9\xca\xcd\xd2\xd5\xda\xdb\xee\xf0\xf2\xf3\xff",
    b"\xcb\xcc\xd3\xd4\xd6\xdd\xde\xdf\xf1\xf4\xf5\xf6\xf7\xf8\xfa\xfb\xfc\xfd\xfe",
    b"\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\x10\x11\x12\x13\x14\x15\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x7f\xdc\xf9",
    b"",
    // The last code of this length is the end of a string, which must not stand in one.
    b"\x0a\x0d\x16",
];

/// The string that `bytes` is the code of; none if they are no code.
pub(super) fn decode(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(bytes.len() * 8 / SHORTEST);
    let mut code = Code::default();
    for byte in bytes {
        for at in (0..8).rev() {
            if let Some(symbol) = code.push(byte >> at & 1)? {
                text.push(symbol);
                code = Code::default();
            }
        }
    }
    // What is left is the beginning of the end of a string, and less than a byte.
    (code.length < 8 && code.ones).then_some(text)
}

/// A code whose bits come one by one.
struct Code {
    length: usize,
    bits: u32,
    /// The first code of this length.
    first: u32,
    /// Whether all bits are ones.
    ones: bool,
}

impl Default for Code {
    fn default() -> Code {
        Code {
            length: 0,
            bits: 0,
            first: 0,
            ones: true,
        }
    }
}

impl Code {
    /// Takes a bit; returns the symbol if the code is whole, and none at all if it cannot become one.
    fn push(&mut self, bit: u8) -> Option<Option<u8>> {
        self.length += 1;
        self.bits = self.bits << 1 | u32::from(bit);
        self.first <<= 1;
        self.ones &= bit == 1;
        if self.length < SHORTEST {
            return Some(None);
        }
        let symbols = SYMBOLS.get(self.length - SHORTEST)?;
        let at = (self.bits - self.first) as usize;
        if let Some(symbol) = symbols.get(at) {
            return Some(Some(*symbol));
        }
        self.first += symbols.len() as u32;
        (self.length < LONGEST).then_some(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code of `text`.
    pub(crate) fn encode(text: &[u8]) -> Vec<u8> {
        let mut bits = Vec::new();
        for byte in text {
            let mut first = 0_u32;
            for (more, symbols) in SYMBOLS.iter().enumerate() {
                let length = SHORTEST + more;
                if let Some(at) = symbols.iter().position(|symbol| symbol == byte) {
                    let code = first + at as u32;
                    bits.extend((0..length).rev().map(|bit| code >> bit & 1 == 1));
                    break;
                }
                first = (first + symbols.len() as u32) << 1;
            }
        }
        while bits.len() % 8 != 0 {
            bits.push(true);
        }
        let byte = |bits: &[bool]| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
        bits.chunks(8).map(byte).collect()
    }

    /// The examples of RFC 7541, C.4 and C.6.
    #[test]
    fn the_examples_of_the_standard() {
        let cases: [(&[u8], &str); 4] = [
            (
                b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff",
                "www.example.com",
            ),
            (b"\xa8\xeb\x10\x64\x9c\xbf", "no-cache"),
            (
                b"\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff",
                "Mon, 21 Oct 2013 20:13:21 GMT",
            ),
            (b"", ""),
        ];
        for (code, text) in cases {
            assert_eq!(decode(code).as_deref(), Some(text.as_bytes()), "{text}");
            assert_eq!(encode(text.as_bytes()), code, "{text}");
        }
    }

    #[test]
    fn every_byte_has_one_code() {
        let all: Vec<u8> = (0..=255).collect();
        let mut known: Vec<u8> = SYMBOLS.concat();
        known.sort_unstable();
        assert_eq!(known, all);
        assert_eq!(decode(&encode(&all)), Some(all));
    }

    #[test]
    fn what_is_no_code_is_refused() {
        // The end of a string; padding of a byte; padding that is not all ones.
        assert_eq!(decode(b"\xff\xff\xff\xff"), None);
        assert_eq!(decode(b"\xff"), None);
        assert_eq!(decode(b"\x00"), None);
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..random.usize(0..12)).map(|_| random.u8(..)).collect();
            if let Some(text) = decode(&bytes) {
                assert_eq!(encode(&text), bytes);
            }
        }
    }
}
