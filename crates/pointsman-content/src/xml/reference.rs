//! References: to the five characters that have names, and to characters by number (XML 1.0, productions 66 to 68).

/// A reference as far as it has been read, behind its `&`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reference {
    Start,
    /// Letters of a name, and how many there are.
    Name([u8; NAME_BYTES_MAX], usize),
    /// `#`, and nothing else yet.
    Sign,
    /// Digits of this base were there or may come, and mean this.
    Number {
        base: u32,
        value: u32,
        has_digits: bool,
    },
}

/// What another byte makes of it.
pub(super) enum Next {
    More(Reference),
    Whole(char),
    Wrong,
}

const NAME_BYTES_MAX: usize = 4;

impl Reference {
    pub(super) fn push(self, byte: u8) -> Next {
        match self {
            Reference::Start if byte == b'#' => Next::More(Reference::Sign),
            Reference::Start => Reference::Name([0; NAME_BYTES_MAX], 0).push(byte),
            Reference::Name(letters, count) if byte == b';' => {
                named(letters.get(..count).unwrap_or_default()).map_or(Next::Wrong, Next::Whole)
            }
            Reference::Name(mut letters, count) => match letters.get_mut(count) {
                Some(letter) if byte.is_ascii_lowercase() => {
                    *letter = byte;
                    Next::More(Reference::Name(letters, count + 1))
                }
                _ => Next::Wrong,
            },
            Reference::Sign if byte == b'x' => {
                Next::More(Reference::Number { base: 16, value: 0, has_digits: false })
            }
            Reference::Sign => Reference::Number { base: 10, value: 0, has_digits: false }.push(byte),
            Reference::Number { value, has_digits: true, .. } if byte == b';' => {
                char::from_u32(value).filter(|found| is_allowed(*found)).map_or(Next::Wrong, Next::Whole)
            }
            Reference::Number { base, value, .. } => match char::from(byte).to_digit(base) {
                // Beyond the last character it stays wrong, however many digits come.
                Some(digit) => {
                    let value = value.saturating_mul(base).saturating_add(digit);
                    Next::More(Reference::Number { base, value, has_digits: true })
                }
                None => Next::Wrong,
            },
        }
    }
}

fn named(name: &[u8]) -> Option<char> {
    Some(match name {
        b"lt" => '<',
        b"gt" => '>',
        b"amp" => '&',
        b"apos" => '\'',
        b"quot" => '"',
        _ => return None,
    })
}

/// [2] Char.
fn is_allowed(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}
