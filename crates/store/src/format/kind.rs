//! What pages hold and how they are stored.

/// What a page holds. It does not change how the page is stored, it is for statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Values of fixed width.
    Values = 0,
    /// Validity bits.
    Validity = 1,
    /// Strings: views or their bytes.
    Strings = 2,
    /// Entries of a dictionary.
    Dictionary = 3,
    /// Anything else.
    Blob = 4,
}

impl Kind {
    /// How many kinds there are.
    pub const COUNT: usize = 5;

    /// All kinds, in their order.
    pub const ALL: [Kind; Kind::COUNT] = [
        Kind::Values,
        Kind::Validity,
        Kind::Strings,
        Kind::Dictionary,
        Kind::Blob,
    ];

    pub(crate) fn of(byte: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(byte)).copied()
    }

    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Values => "values",
            Kind::Validity => "validity",
            Kind::Strings => "strings",
            Kind::Dictionary => "dictionary",
            Kind::Blob => "blob",
        }
    }
}

/// How the bytes of a page or of a structure are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Codec {
    /// As they are.
    Raw = 0,
    /// Compressed with zstd.
    Zstd = 1,
}

impl Codec {
    pub(crate) fn of(byte: u8) -> Option<Codec> {
        match byte {
            0 => Some(Codec::Raw),
            1 => Some(Codec::Zstd),
            _ => None,
        }
    }
}
