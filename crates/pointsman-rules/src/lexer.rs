//! Text to tokens, one at a time; comments are put aside for the formatter.

use std::net::IpAddr;

use crate::ast::Comment;
use crate::{Span, pace};

/// What a token is. Its text is in the source, under its span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `R1`, `tls.sni`, `pool.server`
    Word,
    /// `xml.a/b`, `json.a[0]`
    Path,
    /// `purchase:1.subTotal:2.`
    OldPath,
    /// `99.95`, and whatever else begins like a number
    Number,
    /// `0x80c6a2d9`
    Hex,
    /// `10.0.0.1`, `::1`
    Address,
    /// `10.0.0.0/8`
    Network,
    /// `@blocked`
    List,
    /// `"text"`, also in typographic quotes
    Text,
    /// A text without its closing quote; it ends with its line.
    OpenText,
    LeftRound,
    RightRound,
    LeftSquare,
    RightSquare,
    LeftCurly,
    RightCurly,
    Comma,
    Semicolon,
    Colon,
    DotDot,
    Arrow,
    /// `=`
    Assign,
    /// `==`
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `!`
    Not,
    /// A character that begins no token, or a run of them.
    Stray,
    End,
}

/// A token and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
    /// Whether nothing but white space stands before it on its line.
    pub(crate) opens_line: bool,
}

/// Where the tokens of a text stand, one behind the other: what lies between them makes no difference.
pub fn tokens(source: &str) -> impl Iterator<Item = Span> {
    let mut lexer = Lexer::new(source);
    std::iter::from_fn(move || {
        Some(lexer.next()).filter(|token| token.kind != Kind::End).map(|token| token.span)
    })
}

/// A position in a source text.
pub(crate) struct Lexer<'a> {
    source: &'a str,
    at: usize,
    line_opened: bool,
    pub(crate) comments: Vec<Comment>,
}

/// What it takes to read a token and to put it where it belongs, as [`pace::spend`] counts.
const TOKEN_UNITS: u64 = 6;

/// Long enough for every address; a longer run of its characters is none.
const ADDRESS_BYTES_MAX: usize = 64;

impl<'a> Lexer<'a> {
    pub(crate) fn new(source: &'a str) -> Self {
        let at = if source.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Lexer { source, at, line_opened: false, comments: Vec::new() }
    }

    /// The next token; `End` for ever once the text is used up.
    pub(crate) fn next(&mut self) -> Token {
        pace::spend(TOKEN_UNITS);
        self.skip_blank();
        let start = self.at;
        let kind = self.scan();
        let opens_line = !self.line_opened;
        self.line_opened = true;
        Token { kind, span: span(start, self.at), opens_line }
    }

    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn skip_blank(&mut self) {
        while let Some(c) = self.rest().chars().next() {
            if c == '\n' {
                self.line_opened = false;
            } else if c == '#' {
                self.comment();
                continue;
            } else if !c.is_whitespace() {
                return;
            }
            self.at += c.len_utf8();
        }
    }

    fn comment(&mut self) {
        let rest = self.rest();
        let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
        let text = line.trim_end();
        self.comments.push(Comment { span: span(self.at, self.at + text.len()) });
        self.at += line.len();
    }

    fn scan(&mut self) -> Kind {
        let rest = self.rest();
        let Some(c) = rest.chars().next() else { return Kind::End };
        if let Some(close) = closing_quotes(c) {
            return self.text(c, close);
        }
        if (c.is_ascii_hexdigit() || rest.starts_with("::"))
            && let Some(kind) = self.address()
        {
            return kind;
        }
        let signed = matches!(c, '+' | '-') && rest[1..].starts_with(|d: char| d.is_ascii_digit());
        if c.is_ascii_digit() || signed {
            return self.number();
        }
        if c.is_alphabetic() || c == '_' {
            return self.word();
        }
        if let Some(name) = rest.strip_prefix('@').map(plain_word_len).filter(|len| *len > 0) {
            self.at += '@'.len_utf8() + name;
            return Kind::List;
        }
        if let Some((text, kind)) = PUNCTUATION.iter().find(|(text, _)| rest.starts_with(text)) {
            self.at += text.len();
            return *kind;
        }
        self.stray()
    }

    /// A run of what begins no token is one token, so that rubbish is one error and not a page.
    fn stray(&mut self) -> Kind {
        let begins_token = |c: char| {
            c.is_whitespace()
                || c.is_alphanumeric()
                || c == '_'
                || c == '#'
                || closing_quotes(c).is_some()
                || PUNCTUATION.iter().any(|(text, _)| text.starts_with(c))
        };
        let rest = self.rest();
        let first = rest.chars().next().map_or(0, char::len_utf8);
        self.at += first + rest[first..].find(begins_token).unwrap_or(rest.len() - first);
        Kind::Stray
    }

    fn text(&mut self, open: char, close: &[char]) -> Kind {
        self.at += open.len_utf8();
        while let Some(c) = self.rest().chars().next() {
            if c == '\n' {
                break;
            }
            let tail = self.rest();
            self.at += match c {
                '\\' if tail[1..].starts_with(['"', '\\']) => 2,
                '$' => keyed_placeholder(tail).unwrap_or(1),
                _ => c.len_utf8(),
            };
            if close.contains(&c) {
                return Kind::Text;
            }
        }
        if self.source[..self.at].ends_with('\r') {
            self.at -= 1;
        }
        Kind::OpenText
    }

    /// An address or a network here, if the run of its characters is one.
    fn address(&mut self) -> Option<Kind> {
        let rest = self.rest();
        let run = run_of(rest, ADDRESS_BYTES_MAX + 1, |b| b.is_ascii_hexdigit() || b == b':' || b == b'.');
        let run = &run[..run.find("..").unwrap_or(run.len())];
        if run.len() > ADDRESS_BYTES_MAX || run.parse::<IpAddr>().is_err() {
            return None;
        }
        self.at += run.len();
        let bits = run_of(self.rest().strip_prefix('/').unwrap_or(""), 4, |b| b.is_ascii_digit());
        if bits.is_empty() {
            return Some(Kind::Address);
        }
        self.at += 1 + bits.len();
        Some(Kind::Network)
    }

    /// A number, or what begins like one: whether it is one is asked when its value is.
    fn number(&mut self) -> Kind {
        let bytes = self.rest().as_bytes();
        let hex = matches!(bytes, [b'0', b'x' | b'X', ..]);
        let mut len = 1;
        while let Some(byte) = bytes.get(len) {
            let joins = match byte {
                b'.' => bytes.get(len + 1).is_some_and(u8::is_ascii_digit),
                b'+' | b'-' => {
                    matches!(bytes[len - 1], b'e' | b'E')
                        && !hex
                        && bytes.get(len + 1).is_some_and(u8::is_ascii_digit)
                }
                byte => byte.is_ascii_alphanumeric() || *byte == b'_',
            };
            if !joins {
                break;
            }
            len += 1;
        }
        self.at += len;
        if hex { Kind::Hex } else { Kind::Number }
    }

    fn word(&mut self) -> Kind {
        let rest = self.rest();
        let first = plain_word_len(rest);
        let tail = &rest[first..];
        let head = &rest[..first];
        if head == "xml" && tail.starts_with('.') || head == "json" && tail.starts_with(['.', '[']) {
            self.at += first + path_len(tail);
            return Kind::Path;
        }
        if let Some(len) = old_path_len(rest) {
            self.at += len;
            return Kind::OldPath;
        }
        self.at += dotted_word_len(rest);
        Kind::Word
    }
}

const PUNCTUATION: &[(&str, Kind)] = &[
    ("..", Kind::DotDot),
    ("->", Kind::Arrow),
    ("==", Kind::Equal),
    ("!=", Kind::NotEqual),
    ("<=", Kind::LessOrEqual),
    (">=", Kind::GreaterOrEqual),
    ("&&", Kind::And),
    ("||", Kind::Or),
    ("=", Kind::Assign),
    ("<", Kind::Less),
    (">", Kind::Greater),
    ("!", Kind::Not),
    ("(", Kind::LeftRound),
    (")", Kind::RightRound),
    ("[", Kind::LeftSquare),
    ("]", Kind::RightSquare),
    ("{", Kind::LeftCurly),
    ("}", Kind::RightCurly),
    (",", Kind::Comma),
    (";", Kind::Semicolon),
    (":", Kind::Colon),
];

/// Whether a text may begin or end with it.
pub(crate) fn is_quote(c: char) -> bool {
    closing_quotes(c).is_some()
}

/// What may close a text that `open` opens. Typesetters turn plain quotes into these.
fn closing_quotes(open: char) -> Option<&'static [char]> {
    match open {
        '"' => Some(&['"']),
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' => {
            Some(&['\u{201c}', '\u{201d}', '\u{201e}', '\u{201f}', '"'])
        }
        '\u{2018}' | '\u{2019}' => Some(&['\u{2019}', '\u{2018}']),
        _ => None,
    }
}

/// The length of `${name["key"]}` at the start of `text`: the quotes of a field's key do not end
/// the text around it.
fn keyed_placeholder(text: &str) -> Option<usize> {
    let name = text.strip_prefix("${")?;
    let name_len = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.')?;
    let key = name[name_len..].strip_prefix("[\"")?;
    let key_len = key.find(['"', '\\', '\n'])?;
    key[key_len..].starts_with("\"]}").then_some(2 + name_len + 2 + key_len + 3)
}

/// What the text between plain quotes means: `\"` and `\\` are escapes, nothing else is.
pub(crate) fn unescape(raw: &str) -> Box<str> {
    if !raw.contains('\\') {
        return raw.into();
    }
    unescaped(raw).map(|(_, c)| c).collect::<String>().into()
}

/// Each character of the meaning, and whether it is escaped in `raw`.
fn unescaped(raw: &str) -> impl Iterator<Item = (bool, char)> {
    let mut chars = raw.chars().peekable();
    std::iter::from_fn(move || {
        let c = chars.next()?;
        if c == '\\'
            && let Some(escaped) = chars.next_if(|next| matches!(next, '"' | '\\'))
        {
            return Some((true, escaped));
        }
        Some((false, c))
    })
}

/// Where in the source the bytes of a quoted text's meaning stand.
#[derive(Debug)]
pub(crate) struct Meaning {
    /// The first byte behind the opening quote.
    start: usize,
    /// One past the closing quote.
    end: usize,
    /// The bytes of the meaning that are escaped in the source.
    escapes: Vec<usize>,
}

impl Meaning {
    pub(crate) fn of(source: &str, quoted: Span) -> Meaning {
        let text = quoted.of(source);
        let open = text.chars().next().map_or(0, char::len_utf8);
        let (mut meant, mut escapes) = (0, Vec::new());
        for (is_escape, c) in unescaped(&text[open..]) {
            if is_escape {
                escapes.push(meant);
            }
            meant += c.len_utf8();
        }
        Meaning { start: quoted.start as usize + open, end: quoted.end as usize, escapes }
    }

    /// The place of a range of the meaning.
    pub(crate) fn span(&self, start: usize, end: usize) -> Span {
        let place = |at: usize| {
            let before = self.escapes.partition_point(|escape| *escape < at);
            (self.start + at + before).min(self.end)
        };
        span(place(start), place(end))
    }
}

/// What a quoted text means, quotes and escapes resolved.
pub(crate) fn meaning(text: &str) -> Box<str> {
    let mut chars = text.chars();
    chars.next();
    chars.next_back();
    unescape(chars.as_str())
}

fn plain_word_len(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').unwrap_or(text.len())
}

fn dotted_word_len(text: &str) -> usize {
    let mut len = plain_word_len(text);
    while let Some(tail) = text[len..].strip_prefix('.') {
        match plain_word_len(tail) {
            0 => break,
            more => len += 1 + more,
        }
    }
    len
}

/// The length of `name:1.name:2.` at the start of `text`, if at least one index is there.
fn old_path_len(text: &str) -> Option<usize> {
    let (mut len, mut indexed) = (0, false);
    loop {
        let tail = &text[len..];
        let name = plain_word_len(tail);
        if name == 0 || !tail.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            break;
        }
        let index = tail[name..].strip_prefix(':').map_or("", |t| run_of(t, t.len(), |b| b.is_ascii_digit()));
        len += name;
        if !index.is_empty() {
            indexed = true;
            len += 1 + index.len();
        }
        if !text[len..].starts_with('.') || text[len..].starts_with("..") {
            break;
        }
        len += 1;
    }
    indexed.then_some(len)
}

/// The length of the rest of an `xml.` or `json.` path: one token, white space only in quotes.
fn path_len(text: &str) -> usize {
    let mut len = 0;
    while let Some(c) = text[len..].chars().next() {
        let tail = &text[len..];
        len += match c {
            '[' => match bracket_len(tail) {
                Some(more) => more,
                None => break,
            },
            '"' if text[..len].ends_with(['/', '.', '@', ':']) => match quoted_len(tail) {
                Some(more) => more,
                None => break,
            },
            '.' | '/' | ':' | '@' | '_' | '-' => 1,
            c if c.is_alphanumeric() => c.len_utf8(),
            _ => break,
        };
    }
    len
}

fn bracket_len(text: &str) -> Option<usize> {
    let inner = &text[1..];
    let len = match quoted_len(inner) {
        Some(len) => len,
        None => inner.find(|c: char| !c.is_alphanumeric() && c != '*' && c != '-')?,
    };
    inner[len..].starts_with(']').then_some(len + 2)
}

fn quoted_len(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('"')?;
    let len = inner.find(['"', '\n'])?;
    inner[len..].starts_with('"').then_some(len + 2)
}

fn run_of(text: &str, max: usize, belongs: impl Fn(u8) -> bool) -> &str {
    let len = text.bytes().take(max).position(|b| !belongs(b)).unwrap_or(text.len().min(max));
    // Every byte taken is ASCII, so this is a character border.
    &text[..len]
}

/// Lengths fit: longer files are refused before they are read.
fn len32(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

fn span(start: usize, end: usize) -> Span {
    Span { start: len32(start), end: len32(end) }
}
