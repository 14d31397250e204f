//! Comments, instructions, CDATA and the XML declaration.

use super::lexer::{CHARACTER, Lexer, State};
use super::{declaration, is_space, scan};
use crate::{Cause, Fault};

/// Bytes of the XML declaration.
const DECLARATION_BYTES_MAX: usize = 1024;
const DECLARATION: &str = "an XML declaration that is not as it has to be";
const CDATA_START: &[u8] = b"[CDATA[";
const MORE_BRACKETS: &str = "]]]]]]]]]]]]]]]]";

impl Lexer {
    /// Behind `<!`.
    pub(super) fn declared(&mut self, byte: u8, at: usize) -> Result<usize, Fault> {
        self.state = match byte {
            b'-' => State::CommentStart,
            b'[' if self.open.is_empty() => {
                return Err(self.malformed_markup("CDATA outside of the root element"));
            }
            b'[' => State::CdataStart(1),
            b'D' => return Err(self.malformed_markup("a document type declaration")),
            _ => return Err(self.malformed_markup("`<!` that opens neither a comment nor CDATA")),
        };
        Ok(at + 1)
    }

    /// Behind `-` of a comment's start, and `-` or `--` in it.
    pub(super) fn dash(&mut self, byte: u8, at: usize) -> Result<usize, Fault> {
        self.state = match (self.state, byte) {
            (State::CommentStart, b'-') => State::Comment,
            (State::CommentStart, _) => {
                return Err(self.malformed_markup("`<!` that opens neither a comment nor CDATA"));
            }
            (State::CommentDash, b'-') => State::CommentEnd,
            (State::CommentDash, _) => {
                self.state = State::Comment;
                return Ok(at);
            }
            (_, b'>') => self.outside_or_content(),
            _ => {
                let at = self.offset + at as u64 - 2;
                return Err(Fault { cause: Cause::Malformed, at, what: "`--` in a comment" });
            }
        };
        Ok(at + 1)
    }

    pub(super) fn comment(&mut self, bytes: &[u8], at: usize) -> Result<usize, Fault> {
        let stop = self.pass(bytes, at, b'-')?;
        if stop == bytes.len() {
            return Ok(stop);
        }
        self.state = State::CommentDash;
        Ok(stop + 1)
    }

    /// The next `stop`, or the end; nothing that is not allowed stands before it.
    fn pass(&self, bytes: &[u8], mut at: usize, stop: u8) -> Result<usize, Fault> {
        loop {
            at = scan::up_to(bytes, at, stop);
            match bytes.get(at) {
                Some(b'\r') => at += 1,
                Some(&scan::HIGH) if !scan::is_noncharacter(bytes, at) => at += 3,
                Some(byte) if *byte != stop => return Err(self.malformed(at, CHARACTER)),
                _ => return Ok(at),
            }
        }
    }

    pub(super) fn cdata_start(&mut self, byte: u8, at: usize, matched: usize) -> Result<usize, Fault> {
        if CDATA_START.get(matched) != Some(&byte) {
            return Err(self.malformed_markup("`<!` that opens neither a comment nor CDATA"));
        }
        let is_over = matched + 1 == CDATA_START.len();
        self.state = if is_over { State::Cdata } else { State::CdataStart(matched + 1) };
        Ok(at + 1)
    }

    /// [20] CData, up to its end or the piece's. The last two `]` of a piece wait for what follows them.
    pub(super) fn cdata(&mut self, text: &str, mut at: usize) -> Result<usize, Fault> {
        let bytes = text.as_bytes();
        loop {
            let count = bytes.iter().skip(at).take_while(|byte| **byte == b']').count();
            let all = std::mem::take(&mut self.brackets) + count;
            at += count;
            match bytes.get(at) {
                None => {
                    self.brackets = all.min(2);
                    self.capture_brackets(all - self.brackets);
                    return Ok(at);
                }
                Some(b'>') if all >= 2 => {
                    self.capture_brackets(all - 2);
                    self.state = State::Content;
                    return Ok(at + 1);
                }
                Some(_) => self.capture_brackets(all),
            }
            let stop = scan::up_to(bytes, at, b']');
            self.capture(text, at, stop);
            at = match bytes.get(stop) {
                None | Some(b']') => stop,
                Some(_) => self.odd(text, stop)?,
            };
        }
    }

    fn capture_brackets(&mut self, mut count: usize) {
        while count > 0 {
            let some = count.min(MORE_BRACKETS.len());
            self.capture(MORE_BRACKETS, 0, some);
            count -= some;
        }
    }

    /// [17] PITarget.
    pub(super) fn target(&mut self, text: &str, at: usize) -> Result<usize, Fault> {
        let bytes_max = self.limits.name_bytes_max as usize;
        let end = self
            .name
            .go_on(&mut self.carried, text, at, bytes_max)
            .map_err(|fault| self.named_wrong(fault))?;
        let Some(end) = end else { return Ok(text.len()) };
        if self.name.prefix_bytes > 0 {
            return Err(self.malformed_markup("an instruction with a colon in its name"));
        }
        self.state = State::TargetEnd;
        if self.carried == b"xml" && self.mark == 0 {
            self.carried.clear();
            self.state = State::XmlDeclaration;
        } else if self.carried.eq_ignore_ascii_case(b"xml") {
            return Err(self.malformed_markup(
                "an XML declaration that is not at the start, or an instruction with its name",
            ));
        }
        Ok(end)
    }

    pub(super) fn target_end(&mut self, byte: u8, at: usize) -> Result<usize, Fault> {
        self.state = match byte {
            b'?' => State::InstructionOver,
            _ if is_space(byte) => State::Instruction,
            _ => return Err(self.malformed(at, "an instruction without space behind its name")),
        };
        Ok(at + 1)
    }

    pub(super) fn instruction(&mut self, bytes: &[u8], at: usize) -> Result<usize, Fault> {
        let stop = self.pass(bytes, at, b'?')?;
        if stop == bytes.len() {
            return Ok(stop);
        }
        self.state = State::InstructionEnd;
        Ok(stop + 1)
    }

    /// Behind `?`.
    pub(super) fn instruction_end(&mut self, byte: u8, at: usize) -> Result<usize, Fault> {
        match (self.state, byte) {
            (_, b'>') => {
                self.state = self.outside_or_content();
                Ok(at + 1)
            }
            (State::InstructionOver, _) => {
                Err(self.malformed(at, "an instruction without space behind its name"))
            }
            (_, b'?') => Ok(at + 1),
            _ => {
                self.state = State::Instruction;
                Ok(at)
            }
        }
    }

    pub(super) fn xml_declaration(&mut self, bytes: &[u8], at: usize) -> Result<usize, Fault> {
        let rest = bytes.get(at..).unwrap_or_default();
        let count = memchr::memchr3(b'?', b'<', b'>', rest).unwrap_or(rest.len());
        if self.carried.len() + count > DECLARATION_BYTES_MAX {
            let at = (b"<?xml".len() + DECLARATION_BYTES_MAX) as u64;
            return Err(Fault { cause: Cause::Limit, at, what: "an XML declaration that is too long" });
        }
        self.carried.extend_from_slice(rest.get(..count).unwrap_or_default());
        if count == rest.len() {
            return Ok(bytes.len());
        }
        if rest.get(count) != Some(&b'?') {
            return Err(self.malformed(at + count, DECLARATION));
        }
        self.state = State::XmlDeclarationEnd;
        Ok(at + count + 1)
    }

    /// Behind its `?`.
    pub(super) fn xml_declaration_end(&mut self, byte: u8, at: usize) -> Result<usize, Fault> {
        let wrong = |at: usize| Fault {
            cause: Cause::Malformed,
            at: (b"<?xml".len() + at) as u64,
            what: DECLARATION,
        };
        declaration::check(&self.carried).map_err(wrong)?;
        if byte != b'>' {
            return Err(wrong(self.carried.len()));
        }
        self.state = State::Outside;
        Ok(at + 1)
    }
}
