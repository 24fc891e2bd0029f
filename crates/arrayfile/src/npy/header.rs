//! The header of an NPY file: a line of Python that says type, order and shape.

use array::DataType;

/// The most bytes of a header that are read; NumPy itself takes 10,000.
const MOST_HEADER: usize = 1 << 20;

/// The first bytes of a file.
pub(super) const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// What a header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NpyHeader {
    /// The type of the values.
    pub data_type: DataType,
    /// Whether values have their most significant byte first.
    pub big_endian: bool,
    /// Whether neighbours along the first dimension lie side by side.
    pub fortran: bool,
    /// The cells along each dimension.
    pub shape: Vec<u64>,
}

/// Where the header's text lies in the file, given the first 12 bytes: its first byte and its length.
///
/// # Errors
/// What is wrong, in words.
pub(super) fn extent(first: &[u8; 12]) -> Result<(usize, usize), String> {
    if !first.starts_with(MAGIC) {
        return Err("does not begin as an NPY file does".to_owned());
    }
    let short = usize::from(u16::from_le_bytes([first[8], first[9]]));
    let long = u32::from_le_bytes([first[8], first[9], first[10], first[11]]) as usize;
    let (start, length) = match first[6] {
        1 => (10, short),
        2 | 3 => (12, long),
        version => return Err(format!("has version {version} of NPY; 1 to 3 are read")),
    };
    if length > MOST_HEADER {
        return Err(format!(
            "its header says that it has {length} bytes itself; no more than {MOST_HEADER} are read"
        ));
    }
    Ok((start, length))
}

impl NpyHeader {
    /// Reads the text of a header.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn parse(text: &[u8]) -> Result<NpyHeader, String> {
        let mut at = Cursor { text, at: 0 };
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        at.expect(b'{')?;
        while !at.takes(b'}') {
            let key = at.string()?;
            at.expect(b':')?;
            match key.as_str() {
                "descr" if at.peek() == Some(b'[') => {
                    return Err(
                        "has records of several fields; write each field as a file of its own"
                            .to_owned(),
                    );
                }
                "descr" => descr = Some(of_descr(&at.string()?)?),
                "fortran_order" => fortran = Some(at.truth()?),
                "shape" => shape = Some(at.numbers()?),
                _ => return Err(format!("its header has the unknown key '{key}'")),
            }
            if !at.takes(b',') {
                at.expect(b'}')?;
                break;
            }
        }
        if at.peek().is_some() {
            return Err("its header goes on after its end".to_owned());
        }
        let missing = |key: &str| format!("its header lacks the key '{key}'");
        let (data_type, big_endian) = descr.ok_or_else(|| missing("descr"))?;
        Ok(NpyHeader {
            data_type,
            big_endian,
            fortran: fortran.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }

    /// The bytes of a file before its values, for little-endian values in row-major order. Their number is a multiple
    /// of 64.
    pub fn encode(data_type: DataType, shape: &[u64]) -> Vec<u8> {
        let lengths: Vec<String> = shape.iter().map(|length| format!("{length},")).collect();
        let text = format!(
            "{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
            descr(data_type),
            lengths.join(" ")
        );
        // Version 1 holds 65,535 bytes: more than 32 dimensions need.
        let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend((length as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes.resize(10 + length - 1, b' ');
        bytes.push(b'\n');
        bytes
    }
}

/// NumPy's name of a type, little-endian.
pub(crate) fn descr(data_type: DataType) -> String {
    let order = if data_type.width() == 1 { '|' } else { '<' };
    let kind = match data_type {
        DataType::Bool => 'b',
        of if of.is_float() => 'f',
        of if of.is_signed() => 'i',
        _ => 'u',
    };
    format!("{order}{kind}{}", data_type.width())
}

/// The type that NumPy's name means, and whether its most significant byte comes first.
///
/// # Errors
/// What the type is, and which are read, in words.
pub(crate) fn of_descr(name: &str) -> Result<(DataType, bool), String> {
    let (big, rest) = match name.chars().next() {
        Some('>') => (true, &name[1..]),
        Some('<' | '=' | '|') => (false, &name[1..]),
        _ => (false, name),
    };
    let found = DataType::ALL
        .into_iter()
        .find(|&of| rest == &descr(of)[1..]);
    let kind = match rest.chars().next() {
        Some('c') => "complex numbers",
        Some('f') => "floats of this width",
        Some('S' | 'a' | 'U' | 'T') => "texts",
        Some('O') => "objects of Python",
        Some('M' | 'm') => "times; write them as int64, with .view('int64')",
        Some('V') => "records",
        _ => "this type",
    };
    found.map(|of| (of, big)).ok_or_else(|| {
        format!(
            "has the type '{name}'; {kind} cannot be read, but bool, int8 to int64, uint8 to uint64, float32 and \
             float64 can"
        )
    })
}

/// A place in a header's text.
struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    /// The next byte that is no blank.
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn takes(&mut self, byte: u8) -> bool {
        let is = self.peek() == Some(byte);
        self.at += usize::from(is);
        is
    }

    fn wrong(&self, wanted: &str) -> String {
        format!("its header does not have {wanted} at byte {}", self.at)
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.takes(byte) {
            Ok(())
        } else {
            Err(self.wrong(&format!("'{}'", char::from(byte))))
        }
    }

    /// The bytes up to one for which `ends` holds.
    fn until(&mut self, ends: impl Fn(u8) -> bool) -> String {
        let rest = &self.text[self.at..];
        let length = rest
            .iter()
            .position(|&byte| ends(byte))
            .unwrap_or(rest.len());
        self.at += length;
        String::from_utf8_lossy(&rest[..length]).into_owned()
    }

    fn string(&mut self) -> Result<String, String> {
        let quote = match self.peek() {
            Some(quote @ (b'\'' | b'"')) => quote,
            _ => return Err(self.wrong("a text in quotes")),
        };
        self.at += 1;
        let text = self.until(|byte| byte == quote);
        self.expect(quote)?;
        Ok(text)
    }

    fn word(&mut self) -> String {
        self.peek();
        self.until(|byte| !byte.is_ascii_alphanumeric())
    }

    fn truth(&mut self) -> Result<bool, String> {
        match self.word().as_str() {
            "True" => Ok(true),
            "False" => Ok(false),
            _ => Err(self.wrong("True or False")),
        }
    }

    fn numbers(&mut self) -> Result<Vec<u64>, String> {
        self.expect(b'(')?;
        let mut numbers = Vec::new();
        while !self.takes(b')') {
            let word = self.word();
            // Python 2 wrote whole numbers with an L.
            let number = word.strip_suffix('L').unwrap_or(&word).parse();
            numbers.push(number.map_err(|_| self.wrong("a length"))?);
            if numbers.len() > array::MAX_DIMENSIONS {
                return Err(format!(
                    "has more than {} dimensions",
                    array::MAX_DIMENSIONS
                ));
            }
            if !self.takes(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn headers_as_numpy_writes_them_are_read() {
        let parse = |text: &str| NpyHeader::parse(text.as_bytes());
        let read =
            parse("{'descr': '>f4', 'fortran_order': True, 'shape': (3, 4), }   \n").unwrap();
        assert_eq!(
            read,
            NpyHeader {
                data_type: DataType::F32,
                big_endian: true,
                fortran: true,
                shape: vec![3, 4],
            }
        );
        let old =
            parse("{\"shape\": (3L,), \"descr\": \"|b1\", \"fortran_order\": False}").unwrap();
        assert_eq!((old.data_type, old.shape), (DataType::Bool, vec![3]));
        let none = parse("{'descr': '<i8', 'fortran_order': False, 'shape': ()}").unwrap();
        assert!(none.shape.is_empty());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let parse = |text: &str| NpyHeader::parse(text.as_bytes()).unwrap_err();
        let with = |descr: &str, shape: &str| {
            parse(&format!(
                "{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}"
            ))
        };
        for (wrong, said) in [
            (with("'<c8'", "(1,)"), "'<c8'; complex"),
            (with("'<f2'", "(1,)"), "floats of this width"),
            (with("'|S5'", "(1,)"), "texts"),
            (with("'<M8[ns]'", "(1,)"), "int64"),
            (with("[('a', '<i4')]", "(1,)"), "fields"),
            (with("'<i4'", "(-1,)"), "a length"),
            (with("'<i4'", "(99999999999999999999,)"), "a length"),
            (with("'<i4'", "(1, 2"), "')'"),
            (with("'<i4'", "[1]"), "'('"),
            (
                with("'<i4'", &format!("({})", "1,".repeat(40))),
                "32 dimensions",
            ),
            (parse("{'descr': '<i4', 'shape': (1,)}"), "fortran_order"),
            (parse("{'descr': '<i4"), "'''"),
            (parse("{'x': 1}"), "unknown key 'x'"),
            (parse(""), "'{'"),
            (
                parse("{'descr': '<i4', 'fortran_order': False, 'shape': (1,)} x"),
                "goes on",
            ),
        ] {
            assert!(wrong.contains(said), "{wrong}");
        }
        let mut first = *b"\x93NUMPY\x02\x00\xff\xff\xff\xff";
        assert!(extent(&first).unwrap_err().contains("4294967295"));
        first[6] = 4;
        assert!(extent(&first).unwrap_err().contains("version 4"));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(shape in prop::collection::vec(any::<u64>(), 0..33), of in 0..11usize) {
            let data_type = DataType::ALL[of];
            let bytes = NpyHeader::encode(data_type, &shape);
            prop_assert_eq!(bytes.len() % 64, 0);
            let (start, length) = extent(bytes[..12].try_into().unwrap()).unwrap();
            let read = NpyHeader::parse(&bytes[start..start + length]).unwrap();
            prop_assert_eq!(read, NpyHeader { data_type, big_endian: false, fortran: false, shape });
        }

        #[test]
        fn no_text_is_a_panic(text: Vec<u8>, cut in 0..80usize) {
            let _ = NpyHeader::parse(&text);
            let whole = NpyHeader::encode(DataType::I64, &[3, 4]);
            let _ = NpyHeader::parse(&whole[10..][..cut]);
        }
    }
}
