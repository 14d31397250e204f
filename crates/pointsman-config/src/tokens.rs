//! Tokens of the admin listener: one a line, kept as digests, compared in a time that says nothing.

use std::collections::BTreeSet;

use aws_lc_rs::constant_time::verify_slices_are_equal;

use crate::reading::{Digest, digest_of};

/// More than anybody keeps apart.
const TOKENS_MAX: usize = 64;
/// Longer than any that is in use; a request's head has room for it.
const TOKEN_BYTES_MAX: usize = 1024;
/// 128 bits as hex digits.
const HEX_DIGITS_MIN: usize = 32;
/// 128 bits in letters that stand for six bits each.
const LETTERS_MIN: usize = 22;
/// Fewer different letters are in no random token: of 32 random hex digits there are so few once in some ten million.
const DIFFERENT_LETTERS_MIN: usize = 8;

/// Who may change something.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tokens(Vec<Token>);

#[derive(PartialEq, Eq)]
struct Token {
    name: String,
    digest: Digest,
}

/// Not even a digest goes into logs.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Tokens {
    /// Whether there are none.
    pub fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Whose token this is. How long it takes says nothing of how near it came.
    pub fn holder(&self, given: &[u8]) -> Option<&str> {
        let given = digest_of(given);
        // All are compared, also behind the one that is found.
        self.0.iter().fold(None, |found, token| {
            let is_it = verify_slices_are_equal(&token.digest, &given).is_ok();
            if is_it { Some(token.name.as_str()) } else { found }
        })
    }
}

/// What a file of tokens says, and its first token; or all that is wrong with it, without the tokens.
///
/// A line is a token, or a name, white space and a token; `#` begins a comment. A token without a name is called by
/// the beginning of its digest.
pub(crate) fn read(source: &str) -> Result<(Tokens, String), Vec<String>> {
    let (mut tokens, mut faults, mut first) = (Vec::new(), Vec::new(), None);
    for (line, number) in source.lines().zip(1..) {
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let (name, token) = match words.as_slice() {
            [] => continue,
            [token] => (None, *token),
            [name, token] => (Some(*name), *token),
            _ => {
                faults.push(format!("line {number} has more than a name and a token"));
                continue;
            }
        };
        if let Err(fault) = check(name, token) {
            faults.push(format!("line {number} {fault}"));
            continue;
        }
        let digest = digest_of(token.as_bytes());
        let name = name.map_or_else(|| fingerprint(&digest), str::to_owned);
        if tokens.iter().any(|known: &Token| known.name == name || known.digest == digest) {
            faults.push(format!("line {number} has a name or a token that stands there before"));
        }
        first.get_or_insert_with(|| token.to_owned());
        tokens.push(Token { name, digest });
    }
    if tokens.len() > TOKENS_MAX {
        faults.push(format!("there are {} tokens, and {TOKENS_MAX} are enough", tokens.len()));
    }
    match first {
        Some(first) if faults.is_empty() => Ok((Tokens(tokens), first)),
        None if faults.is_empty() => Err(vec!["there is no token in it".to_owned()]),
        _ => Err(faults),
    }
}

fn check(name: Option<&str>, token: &str) -> Result<(), String> {
    if name.is_some_and(|name| {
        name.len() > 64 || !name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"')
    }) {
        return Err("has a name that is no word of up to 64 letters".to_owned());
    }
    // What `Authorization: Bearer` takes (RFC 6750 section 2.1).
    if !token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)) {
        return Err("has a token with other than letters, digits and `-._~+/=`".to_owned());
    }
    if token.len() > TOKEN_BYTES_MAX {
        return Err(format!("has a token of {} bytes, and {TOKEN_BYTES_MAX} are enough", token.len()));
    }
    let is_hex = token.bytes().all(|byte| byte.is_ascii_hexdigit());
    let min = if is_hex { HEX_DIGITS_MIN } else { LETTERS_MIN };
    let letters = token.trim_end_matches('=');
    if letters.len() < min {
        let kind = if is_hex { "hex digits" } else { "letters" };
        return Err(format!("has a token of {} {kind}, and 128 bits take {min}", letters.len()));
    }
    if letters.bytes().collect::<BTreeSet<u8>>().len() < DIFFERENT_LETTERS_MIN {
        return Err("has a token that is not random".to_owned());
    }
    Ok(())
}

fn fingerprint(digest: &Digest) -> String {
    let digits: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "000102030405060708090a0b0c0d0e0f";
    const BASE64: &str = "AAECAwQFBgcICQoLDA0ODw==";

    fn check(source: &str, expected: &[&str]) {
        let faults = read(source).err().unwrap_or_default();
        assert_eq!(faults, expected, "{source}");
    }

    #[test]
    fn lines_are_tokens() {
        let (tokens, first) = read(&format!("# who\n\ndeploy {HEX} # since May\n{BASE64}\n")).expect("good");
        assert_eq!(first, HEX);
        assert_eq!(tokens.holder(HEX.as_bytes()), Some("deploy"));
        assert_eq!(tokens.holder(BASE64.as_bytes()), Some("sha256:333baf9e"));
        for other in ["", &HEX[1..], "deploy", &format!("{HEX}0"), &HEX.replace('a', "A")] {
            assert_eq!(tokens.holder(other.as_bytes()), None, "{other}");
        }
        assert!(!format!("{tokens:?}").contains(HEX));
    }

    #[test]
    fn what_is_no_token() {
        check("", &["there is no token in it"]);
        check("# none", &["there is no token in it"]);
        check(&HEX[1..], &["line 1 has a token of 31 hex digits, and 128 bits take 32"]);
        check("correct-horse-battery", &["line 1 has a token of 21 letters, and 128 bits take 22"]);
        check(&"ab".repeat(16), &["line 1 has a token that is not random"]);
        check(
            &format!("a b {HEX}\n{HEX}ü"),
            &[
                "line 1 has more than a name and a token",
                "line 2 has a token with other than letters, digits and `-._~+/=`",
            ],
        );
        check(&format!("a {HEX}\na {BASE64}"), &["line 2 has a name or a token that stands there before"]);
        check(&format!("a {HEX}\nb {HEX}"), &["line 2 has a name or a token that stands there before"]);
    }
}
