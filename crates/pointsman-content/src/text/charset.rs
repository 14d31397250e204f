//! Names of character encodings.

/// What a charset parameter or an encoding declaration may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Charset {
    Utf8,
    Ascii,
    Latin1,
    Latin9,
    Windows1252,
    /// Either byte order; a byte order mark says which.
    Utf16,
    Utf16Le,
    Utf16Be,
}

/// How a text is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Ascii,
    /// ISO-8859-1
    Latin1,
    /// ISO-8859-15
    Latin9,
    Windows1252,
    Utf16Le,
    Utf16Be,
}

/// The names that IANA prefers, and those that everybody writes. The other aliases are known to few parsers.
const NAMES: &[(&[u8], Charset)] = &[
    (b"utf-8", Charset::Utf8),
    (b"utf8", Charset::Utf8),
    (b"us-ascii", Charset::Ascii),
    (b"ascii", Charset::Ascii),
    (b"iso-8859-1", Charset::Latin1),
    (b"latin1", Charset::Latin1),
    (b"iso-8859-15", Charset::Latin9),
    (b"windows-1252", Charset::Windows1252),
    (b"cp1252", Charset::Windows1252),
    (b"utf-16", Charset::Utf16),
    (b"utf-16le", Charset::Utf16Le),
    (b"utf-16be", Charset::Utf16Be),
];

/// What the bytes 0x80 to 0x9F are in windows-1252; NUL where nothing is assigned.
const WINDOWS_1252: [char; 32] = [
    '\u{20ac}', '\0', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}', //
    '\u{2c6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\0', '\u{17d}', '\0', //
    '\0', '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '\u{2022}', '\u{2013}', '\u{2014}', //
    '\u{2dc}', '\u{2122}', '\u{161}', '\u{203a}', '\u{153}', '\0', '\u{17e}', '\u{178}',
];

impl Charset {
    /// The one of this name, in whatever case.
    pub(super) fn of(name: &[u8]) -> Option<Charset> {
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|&(_, charset)| charset)
    }

    /// Whether it says what `encoding` is.
    pub(super) fn is(self, encoding: Encoding) -> bool {
        match self {
            Charset::Utf16 => encoding.is_utf16(),
            _ => self.without_mark() == encoding,
        }
    }

    /// The encoding of a text that does not begin with a byte order mark.
    pub(super) fn without_mark(self) -> Encoding {
        match self {
            Charset::Utf8 => Encoding::Utf8,
            Charset::Ascii => Encoding::Ascii,
            Charset::Latin1 => Encoding::Latin1,
            Charset::Latin9 => Encoding::Latin9,
            Charset::Windows1252 => Encoding::Windows1252,
            Charset::Utf16Le => Encoding::Utf16Le,
            Charset::Utf16 | Charset::Utf16Be => Encoding::Utf16Be,
        }
    }
}

impl Encoding {
    pub(super) fn is_utf16(self) -> bool {
        matches!(self, Encoding::Utf16Le | Encoding::Utf16Be)
    }

    /// The character of a byte, in an encoding of one byte each. The bytes 0x80 to 0x9F have none in ISO-8859: they
    /// are controls to some and letters of windows-1252 to others.
    pub(crate) fn character(self, byte: u8) -> Option<char> {
        let latin = match byte {
            0..=0x7f => return Some(char::from(byte)),
            0x80..=0x9f if self == Encoding::Windows1252 => {
                let letter = WINDOWS_1252[usize::from(byte - 0x80)];
                return (letter != '\0').then_some(letter);
            }
            0x80..=0x9f => return None,
            _ => char::from(byte),
        };
        match self {
            Encoding::Latin1 | Encoding::Windows1252 => Some(latin),
            Encoding::Latin9 => Some(match byte {
                0xa4 => '\u{20ac}',
                0xa6 => '\u{160}',
                0xa8 => '\u{161}',
                0xb4 => '\u{17d}',
                0xb8 => '\u{17e}',
                0xbc => '\u{152}',
                0xbd => '\u{153}',
                0xbe => '\u{178}',
                _ => latin,
            }),
            Encoding::Ascii | Encoding::Utf8 | Encoding::Utf16Le | Encoding::Utf16Be => None,
        }
    }
}

/// The encoding of a form that names this one: one in which ASCII is ASCII, so that names and delimiters do not depend
/// on it.
pub(crate) fn form_encoding(name: &[u8]) -> Option<Encoding> {
    let known = Charset::of(name).map(Charset::without_mark).filter(|encoding| !encoding.is_utf16());
    known.or_else(|| extends_ascii(name).then_some(Encoding::Ascii))
}

/// Whether it is a name of an encoding of a byte for each character in which ASCII is ASCII. What else its bytes are is
/// not known here.
pub(super) fn extends_ascii(name: &[u8]) -> bool {
    const FAMILIES: [&[u8]; 3] = [b"iso-8859-", b"windows-125", b"koi8-"];
    FAMILIES.iter().any(|family| {
        name.len() > family.len()
            && name.get(..family.len()).is_some_and(|start| start.eq_ignore_ascii_case(family))
    })
}

/// Whether a name is one of an encoding of characters, and not of a content coding.
pub(crate) fn is_charset(name: &[u8]) -> bool {
    Charset::of(name).is_some()
}
