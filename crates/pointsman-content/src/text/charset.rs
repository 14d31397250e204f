//! Names of character encodings.

/// What a charset parameter or an encoding declaration may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Charset {
    Utf8,
    Ascii,
    Latin1,
    /// Either byte order; a byte order mark says which.
    Utf16,
    Utf16Le,
    Utf16Be,
}

/// How a text is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Ascii,
    Latin1,
    Utf16Le,
    Utf16Be,
}

/// The names that IANA prefers, and two that everybody writes. The other aliases are written by nobody, and known to few.
const NAMES: &[(&[u8], Charset)] = &[
    (b"utf-8", Charset::Utf8),
    (b"utf8", Charset::Utf8),
    (b"us-ascii", Charset::Ascii),
    (b"ascii", Charset::Ascii),
    (b"iso-8859-1", Charset::Latin1),
    (b"utf-16", Charset::Utf16),
    (b"utf-16le", Charset::Utf16Le),
    (b"utf-16be", Charset::Utf16Be),
];

impl Charset {
    /// The one of this name, in whatever case.
    pub(super) fn of(name: &[u8]) -> Option<Charset> {
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|&(_, charset)| charset)
    }

    /// Whether it says what `encoding` is.
    pub(super) fn is(self, encoding: Encoding) -> bool {
        match self {
            Charset::Utf16 => matches!(encoding, Encoding::Utf16Le | Encoding::Utf16Be),
            _ => self.without_mark() == encoding,
        }
    }

    /// The encoding of a text that does not begin with a byte order mark.
    pub(super) fn without_mark(self) -> Encoding {
        match self {
            Charset::Utf8 => Encoding::Utf8,
            Charset::Ascii => Encoding::Ascii,
            Charset::Latin1 => Encoding::Latin1,
            Charset::Utf16Le => Encoding::Utf16Le,
            Charset::Utf16 | Charset::Utf16Be => Encoding::Utf16Be,
        }
    }
}

/// Whether a form says that it is in UTF-8, which is all that forms are read in.
pub(crate) fn is_utf8(name: &[u8]) -> bool {
    Charset::of(name) == Some(Charset::Utf8)
}

/// Whether a part of a form says that it is in UTF-8, or in ASCII, which is the same.
pub(crate) fn is_utf8_or_ascii(name: &[u8]) -> bool {
    matches!(Charset::of(name), Some(Charset::Utf8 | Charset::Ascii))
}
