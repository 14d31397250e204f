//! Who does the computing: a library in this process, another program, or a token.

use std::time::Duration;

use crate::keys::Keys;
use crate::library::Library;
use crate::openssl::Openssl;
use crate::operation::{Operation, Primitive};
use crate::round::{Round, round};
use crate::token::Token;
use crate::work::Trouble;

/// Someone who can compute what TLS needs.
#[derive(Clone, Debug)]
pub enum Provider {
    /// A library that is linked.
    Library(Library),
    /// The program `openssl`.
    Openssl(Openssl),
    /// A token behind PKCS#11.
    Token(Token),
}

impl Provider {
    /// What it is called in results.
    pub fn name(&self) -> String {
        match self {
            Provider::Library(library) => library.name().to_owned(),
            Provider::Openssl(openssl) => openssl.name(),
            Provider::Token(token) => token.name(),
        }
    }

    /// What it is, as exactly as it says.
    pub fn version(&self) -> String {
        match self {
            Provider::Library(library) => library.version().to_owned(),
            Provider::Openssl(openssl) => openssl.version().to_owned(),
            Provider::Token(token) => token.version().to_owned(),
        }
    }

    /// Whether it claims to have hardware for this; nothing where nobody claims anything.
    pub(crate) fn claims_hardware(&self, operation: Operation) -> Option<bool> {
        match self {
            Provider::Token(token) => token.claims_hardware(operation),
            Provider::Library(_) | Provider::Openssl(_) => None,
        }
    }

    /// Does each of a primitive's operations for a while, with `depth` of them under way at a time.
    pub(crate) fn rounds(
        &self,
        primitive: Primitive,
        keys: &Keys,
        depth: usize,
        time: Duration,
    ) -> Result<Vec<(Operation, Round)>, Trouble> {
        let each = |work: &dyn Fn(Operation) -> Result<Round, Trouble>| {
            primitive.operations().into_iter().map(|one| Ok((one, work(one)?))).collect()
        };
        match self {
            Provider::Library(library) => {
                each(&|operation| round(depth, time, &|| library.work(operation, keys)))
            }
            Provider::Openssl(openssl) => openssl.rounds(primitive, depth, time),
            Provider::Token(token) => each(&|operation| round(depth, time, &|| token.work(operation))),
        }
    }
}
