//! XML, read as it comes: whether it is well-formed, and the values at paths.

mod declaration;
mod lexer;
mod matcher;
mod name;
mod namespaces;
mod other_markup;
mod paths;
mod reference;
mod scan;
mod start_tag;
mod tag;

use std::sync::Arc;

use crate::{Fault, Limits, Sink};
use lexer::Lexer;
pub use paths::{XmlAttribute, XmlAxis, XmlName, XmlPath, XmlPaths, XmlStep};

/// Reads one XML document that is pushed piece by piece, and tells what stands at paths.
///
/// It takes documents that are well-formed by XML 1.0 (fifth edition) and by Namespaces in XML 1.0 (third edition) and
/// have no document type declaration: with one they are malformed. So there are no entities but the five that XML
/// itself has, and nothing is expanded or fetched. What the declaration says of the encoding is only checked for its
/// form, and a byte order mark is none of the document: both are for whoever makes text of bytes.
///
/// An element's value is its direct text, with CDATA and without comments, instructions and child elements. Line ends
/// are line feeds (XML 1.0 section 2.11); in values of attributes white space is spaces (section 3.3.3).
///
/// Beside [`Limits`] there are 256 namespace declarations that hold at one place, 4096 bytes of a namespace's name, and
/// 1024 bytes of the XML declaration. What is held is at most the names of the open elements and their values at paths,
/// one tag's attributes without the values that nobody asks for, the namespaces, and a few bytes for each path.
#[derive(Debug)]
pub struct XmlReader {
    paths: Arc<XmlPaths>,
    lexer: Lexer,
    fault: Option<Fault>,
}

impl XmlReader {
    /// A reader of one document that looks for these paths.
    pub fn new(paths: Arc<XmlPaths>, limits: Limits) -> XmlReader {
        XmlReader { lexer: Lexer::new(&paths, limits), paths, fault: None }
    }

    /// Reads the next piece.
    pub fn feed<S: Sink>(&mut self, text: &str, sink: &mut S) -> Result<(), Fault> {
        match self.fault {
            Some(fault) => Err(fault),
            None => self.lexer.feed(&self.paths, text, sink).inspect_err(|fault| self.fault = Some(*fault)),
        }
    }

    /// There are no more pieces.
    pub fn finish<S: Sink>(&mut self, sink: &mut S) -> Result<(), Fault> {
        match self.fault {
            Some(fault) => Err(fault),
            None => self.lexer.finish(&self.paths, sink).inspect_err(|fault| self.fault = Some(*fault)),
        }
    }
}

/// [3] S.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}
