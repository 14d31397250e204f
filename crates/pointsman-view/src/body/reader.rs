//! One reader for whatever a body is.

use pointsman_content::{
    Fault, FormOptions, FormReading, JsonPaths, JsonReader, Limits, MultipartReader, TextKind, TextPiece,
    TextReader, UrlencodedReader, XmlReader,
};
use pointsman_rules::Evidence;

use super::fault::Part;
use super::hearing::{Hearing, OtherReadings};
use super::media_type::{MediaType, Reads};
use super::paths::NamedField;
use super::{BodyFault, BodyPaths};

/// Reads a body, once its codings are undone.
#[derive(Debug)]
pub(super) enum Reader {
    Xml { text: TextReader, xml: XmlReader },
    Json { text: TextReader, json: JsonReader },
    Urlencoded(UrlencodedReader),
    Multipart(MultipartReader),
}

/// Who hears of it.
pub(super) struct Heard<'a> {
    pub(super) paths: &'a BodyPaths,
    pub(super) evidence: &'a mut Evidence,
    pub(super) readings: &'a mut OtherReadings,
    pub(super) is_asked: bool,
}

impl Reader {
    pub(super) fn new(
        media_type: &MediaType,
        paths: &BodyPaths,
        limits: &Limits,
    ) -> Result<Reader, BodyFault> {
        let charset = media_type.charset.as_deref();
        let reading = if paths.form.is_refused_by { FormReading::Common } else { FormReading::Literal };
        let form = FormOptions { charset, reading, limits };
        let text = |kind| TextReader::new(kind, charset).map_err(said_by_head);
        Ok(match media_type.reads {
            Reads::Xml => Reader::Xml {
                text: text(TextKind::Xml)?,
                xml: XmlReader::new(paths.xml.paths.clone(), *limits),
            },
            Reads::Json => Reader::Json { text: text(TextKind::Json)?, json: JsonReader::new(*limits) },
            Reads::Urlencoded => {
                Reader::Urlencoded(UrlencodedReader::new(&paths.form.paths, &form).map_err(said_by_head)?)
            }
            Reads::Multipart => {
                let boundary = media_type.boundary.as_deref().unwrap_or_default();
                let reader = MultipartReader::new(&paths.form.paths, boundary, &form);
                Reader::Multipart(reader.map_err(said_by_head)?)
            }
        })
    }

    pub(super) fn part(&self) -> Part {
        match self {
            Reader::Xml { .. } => Part::Xml,
            Reader::Json { .. } => Part::Json,
            Reader::Urlencoded(_) | Reader::Multipart(_) => Part::Form,
        }
    }

    pub(super) fn feed(&mut self, bytes: &[u8], heard: &mut Heard<'_>) -> Result<(), Fault> {
        let paths = heard.paths;
        match self {
            Reader::Xml { text, xml } => {
                let mut hearing = heard.of(&paths.xml.fields);
                text.feed(bytes, &mut |piece| match piece {
                    TextPiece::Text(text) => xml.feed(text, &mut hearing),
                    TextPiece::Undecodable(fault) => Err(fault),
                })
            }
            Reader::Json { text, json } => {
                let mut hearing = heard.of(&paths.json.fields);
                text.feed(bytes, &mut |piece| feed_json(json, &paths.json.paths, piece, &mut hearing))
            }
            Reader::Urlencoded(form) => {
                form.feed(&paths.form.paths, bytes, &mut heard.of(&paths.form.fields))
            }
            Reader::Multipart(form) => form.feed(&paths.form.paths, bytes, &mut heard.of(&paths.form.fields)),
        }
    }

    pub(super) fn finish(&mut self, heard: &mut Heard<'_>) -> Result<(), Fault> {
        let paths = heard.paths;
        match self {
            Reader::Xml { text, xml } => {
                let mut hearing = heard.of(&paths.xml.fields);
                text.finish(&mut |piece| match piece {
                    TextPiece::Text(text) => xml.feed(text, &mut hearing),
                    TextPiece::Undecodable(fault) => Err(fault),
                })?;
                xml.finish(&mut hearing)
            }
            Reader::Json { text, json } => {
                let mut hearing = heard.of(&paths.json.fields);
                text.finish(&mut |piece| feed_json(json, &paths.json.paths, piece, &mut hearing))?;
                json.finish(&paths.json.paths, &mut hearing)
            }
            Reader::Urlencoded(form) => form.finish(&paths.form.paths, &mut heard.of(&paths.form.fields)),
            Reader::Multipart(form) => form.finish(&mut heard.of(&paths.form.fields)),
        }
    }
}

impl Heard<'_> {
    fn of<'a>(&'a mut self, fields: &'a [NamedField]) -> Hearing<'a> {
        Hearing { evidence: self.evidence, readings: self.readings, fields, is_asked: self.is_asked }
    }
}

fn feed_json(
    json: &mut JsonReader,
    paths: &JsonPaths,
    piece: TextPiece<'_>,
    hearing: &mut Hearing<'_>,
) -> Result<(), Fault> {
    match piece {
        TextPiece::Text(text) => json.feed(paths, text, hearing),
        TextPiece::Undecodable(fault) => json.feed_undecodable(paths, fault, hearing),
    }
}

/// What a reader refuses before its first byte stands in the head.
fn said_by_head(fault: Fault) -> BodyFault {
    BodyFault::new(Part::Head, fault)
}
