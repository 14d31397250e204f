//! One request body on its way, and what has become known of it.

use std::sync::Arc;

use pointsman_content::{ContentDecoder, Limits};
use pointsman_http::{Framing, HeaderKind, RequestHead};
use pointsman_rules::{Cause, Evidence, PayloadId, Value};

use super::fault::Part;
use super::hearing::OtherReadings;
use super::label::LabelCheck;
use super::media_type::{MediaType, Reads};
use super::others::Others;
use super::reader::{Heard, Reader};
use super::sniff::{Sniff, Sniffed};
use super::{BodyFault, BodyKind, BodyLabel, BodyOptions, BodyPaths};
use crate::Servers;

/// Looks into one request body while it comes, for the fields that a program names.
///
/// It is fed the content of the body, as HTTP delimits it and still in its content codings. What becomes known at which
/// byte does not depend on how the content was cut. A body of no bytes has no fields; with `validate full` it is no
/// document either (RFC 8259 section 2, XML 1.0 section 2.1), and malformed. A length of 0 says that there is no body
/// (RFC 9110 section 8.6).
///
/// `body.size` counts the bytes as they were sent. It is known with the head where Content-Length says it, and otherwise
/// at the end.
///
/// Time grows with the bytes that are fed and with what they decode to, and nothing is held of what was fed but what
/// [`Inspection::held_bytes_max`] says.
#[derive(Debug)]
pub struct Inspection {
    paths: Arc<BodyPaths>,
    evidence: Evidence,
    readings: OtherReadings,
    content: Content,
    /// Looks for another kind of content than the media type says.
    label: Option<LabelCheck>,
    /// Undone before content is read; absent where there is none.
    coding: Option<ContentDecoder>,
    /// Whether somebody asks for fields.
    is_asked: bool,
    limits: Limits,
    /// That were fed.
    bytes: u64,
    /// That they were decoded to.
    decoded_bytes: u64,
    fault: Option<BodyFault>,
}

/// What becomes of content.
#[derive(Debug)]
enum Content {
    /// Nobody looks at it.
    Passed,
    /// It cannot be read, if there is any.
    Refused(BodyFault),
    /// Its first byte says what it is.
    Sniffed(Sniff),
    /// It is read.
    Read(Box<Reader>),
}

const UNREAD: BodyFault = BodyFault::encoding("a media type that is not read");

impl Inspection {
    /// Of the body of the request with this head, which was parsed from `received`. What the head alone says is settled.
    ///
    /// `evidence` is of a body of which nothing has been read, and of the program that `paths` are those of.
    pub fn new(
        evidence: Evidence,
        paths: Arc<BodyPaths>,
        head: &RequestHead,
        received: &[u8],
        options: &BodyOptions,
    ) -> Inspection {
        let by_repetition = paths.guards && options.readings != Servers::NONE;
        let mut inspection = Inspection {
            evidence,
            paths,
            readings: OtherReadings { by_repetition, ..OtherReadings::default() },
            content: Content::Passed,
            label: None,
            coding: None,
            is_asked: true,
            limits: options.limits,
            bytes: 0,
            decoded_bytes: 0,
            fault: None,
        };
        match head.framing() {
            Framing::None => inspection.evidence.end_all(None),
            Framing::Length(bytes) => {
                inspection.settle_size(bytes);
                if let Err(fault) = inspection.prepare(head, received, options) {
                    inspection.fail(fault);
                }
            }
            Framing::Chunked | Framing::UntilClose => {
                if let Err(fault) = inspection.prepare(head, received, options) {
                    inspection.content = Content::Refused(fault);
                }
            }
        }
        inspection
    }

    /// What is known of the body so far.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// What is known of it in other readings, where those differ from the literal one.
    pub fn other_readings(&self) -> &[Evidence] {
        self.readings.evidence.as_ref().map_or(&[], |others| others.each())
    }

    /// Bytes that evidence of all readings takes at most, beside the values that it keeps.
    pub fn evidence_bytes(&self) -> u64 {
        let readings = if self.paths.guards { 1 + Others::COUNT } else { 1 };
        self.evidence.bytes() * readings as u64
    }

    /// Takes more of the content.
    pub fn feed(&mut self, content: &[u8]) {
        if content.is_empty() {
            return;
        }
        self.bytes = self.bytes.saturating_add(content.len() as u64);
        if let Err(fault) = self.read(content) {
            self.fail(fault);
        }
        if self.readings.came_late && self.fault.is_none() {
            let part = if let Content::Read(reader) = &self.content { reader.part() } else { Part::Head };
            self.fail(BodyFault::ambiguous(part));
        }
        if matches!(self.content, Content::Passed) && self.label.is_none() {
            self.coding = None;
        }
    }

    /// The content is whole: all fields end.
    pub fn finish(&mut self) {
        // Without a byte there is no document, and none that could be malformed unless whole documents are asked for.
        if (self.bytes > 0 || self.paths.validates_before_sending)
            && let Err(fault) = self.finish_reading()
        {
            self.fail(fault);
        }
        if self.bytes > 0 {
            self.settle_size(self.bytes);
        }
        self.content = Content::Passed;
        self.label = None;
        self.coding = None;
        self.end_all(None);
    }

    /// Nothing more is read before the decision: all fields that have not ended do so for this cause. Whether the body is
    /// what it says goes on to be looked at.
    pub fn give_up(&mut self, cause: Cause) {
        self.end_all(Some(cause));
        self.conclude();
    }

    /// The decision has fallen, and nobody asks for fields any more: nothing further is kept of them. Whether the body is
    /// what it says goes on to be looked at.
    pub fn conclude(&mut self) {
        self.is_asked = false;
    }

    /// Whether since the last call something was learned that a decision could depend on.
    pub fn take_news(&mut self) -> bool {
        self.evidence.take_news()
    }

    /// What is wrong with the body, so far as it was read. A decision that rests on it (a refusal, `on_unknown routeTo`,
    /// a rule that was skipped) is about such a body; beside any other, nobody may take the body for whole.
    pub fn fault(&self) -> Option<&BodyFault> {
        self.fault.as_ref()
    }

    /// Whether the program names fields that stand in content, and content of this media type has none of them; asked
    /// before any is fed.
    pub fn is_passed_by(&self) -> bool {
        self.paths.names_content()
            && matches!(self.content, Content::Passed)
            && self.label.is_none()
            && self.fault.is_none()
    }

    /// Whether the label of the content is still compared with it.
    pub fn checks_label(&self) -> bool {
        self.label.is_some()
    }

    /// Whether content that is fed is still looked at.
    pub fn is_reading(&self) -> bool {
        !matches!(self.content, Content::Passed) || self.label.is_some() || self.awaits_size()
    }

    /// Whether content codings are undone: then what it holds may be more than what it was fed.
    pub fn is_coded(&self) -> bool {
        self.coding.is_some()
    }

    /// Bytes that it holds at most, whatever it is fed, besides its evidence and a few for each field that the program
    /// names: what readers keep of open elements, names, tags and values on their way, and windows of content codings.
    pub fn held_bytes_max(&self) -> u64 {
        /// Of an element or attribute, besides its name and value.
        const PLACE_BYTES: u64 = 256;
        /// Namespace declarations, or the head of a part of a form.
        const OTHER_BYTES: u64 = 256 * 4096 + 64 * 1024;
        let reading = match &self.content {
            Content::Passed | Content::Refused(_) => 0,
            Content::Sniffed(_) | Content::Read(_) => {
                let Limits { depth_max, attributes_max, name_bytes_max, value_bytes_max, .. } = self.limits;
                let places = u64::from(depth_max) + u64::from(attributes_max) + 1;
                // Room doubles as it grows.
                let of_place = 2 * (u64::from(name_bytes_max) + u64::from(value_bytes_max)) + PLACE_BYTES;
                places * of_place + OTHER_BYTES + pointsman_content::TextReader::HELD_BYTES_MAX as u64
            }
        };
        let coding = self.coding.as_ref().map_or(0, |coding| coding.held_bytes_max() as u64);
        reading + coding
    }

    /// The same, so far: what readers keep is copied from what they were fed, and content codings have the room that was
    /// announced to them.
    pub fn held_bytes_max_so_far(&self) -> u64 {
        /// Of a reader that has been fed nothing.
        const READER_BYTES: u64 = 64 * 1024;
        /// Room doubles as it grows.
        const HELD_OF_READ: u64 = 2;
        let coding = self.coding.as_ref().map_or(0, ContentDecoder::held_bytes_max_after);
        let read = self.decoded_bytes.saturating_mul(HELD_OF_READ).saturating_add(READER_BYTES);
        read.saturating_add(coding).min(self.held_bytes_max())
    }

    /// Bytes that have come out of the body's content codings; if it has none, those that were read.
    pub fn decoded_bytes(&self) -> u64 {
        self.decoded_bytes
    }

    /// Finds out what reads the content, and ends the fields that it cannot have.
    fn prepare(
        &mut self,
        head: &RequestHead,
        received: &[u8],
        options: &BodyOptions,
    ) -> Result<(), BodyFault> {
        if !self.paths.names_content() {
            return Ok(());
        }
        let lines = || head.lines().iter().filter(|line| !line.hidden);
        let of_type = lines().filter(|line| line.kind == HeaderKind::ContentType);
        let content = match MediaType::read(of_type.map(|line| line.value(received)))? {
            Some(media_type) => {
                let is_checked = options.label == BodyLabel::Checked;
                self.label = self.paths.label_check(media_type.reads).filter(|_| is_checked);
                self.readings.by_name = self.paths.guards
                    && match media_type.reads {
                        Reads::Json => options.readings.fold_members(),
                        Reads::Urlencoded | Reads::Multipart => options.readings.rewrite_parameters(),
                        Reads::Xml => false,
                    };
                self.heard().reader(&media_type, &options.limits)?
            }
            None => self.of_another_type(options.kind)?,
        };
        if !matches!(content, Content::Passed) || self.label.is_some() {
            let of_coding =
                lines().filter(|line| line.name(received).eq_ignore_ascii_case(b"content-encoding"));
            let values = of_coding.map(|line| line.value(received));
            let coding = ContentDecoder::new(values, options.decoded_bytes_max)
                .map_err(|fault| BodyFault::new(Part::Head, fault))?;
            self.coding = Some(coding).filter(|coding| coding.codings().next().is_some());
        }
        self.content = content;
        Ok(())
    }

    /// What becomes of a body whose media type is none of those that are read.
    fn of_another_type(&mut self, kind: BodyKind) -> Result<Content, BodyFault> {
        let paths = self.paths.clone();
        let mut heard = self.heard();
        match kind {
            BodyKind::Unknown => return Err(UNREAD),
            BodyKind::Absent => heard.end(paths.content()),
            BodyKind::ByRules => {
                for (ids, is_refused_by) in paths.kinds() {
                    if !is_refused_by {
                        heard.end(ids.iter().map(|field| field.id));
                    }
                }
                if paths.kinds().any(|(_, is_refused_by)| is_refused_by) {
                    return Err(UNREAD);
                }
            }
            BodyKind::Sniff => {
                heard.end(paths.form.fields.iter().map(|field| field.id));
                if !paths.xml.fields.is_empty() || !paths.json.fields.is_empty() {
                    return Ok(Content::Sniffed(Sniff::default()));
                }
            }
        }
        Ok(Content::Passed)
    }

    fn read(&mut self, content: &[u8]) -> Result<(), BodyFault> {
        let Inspection {
            paths,
            evidence,
            readings,
            content: state,
            label,
            coding,
            is_asked,
            limits,
            decoded_bytes,
            ..
        } = self;
        let mut heard = Heard { paths, evidence, readings, is_asked: *is_asked };
        let Some(coding) = coding else {
            *decoded_bytes += content.len() as u64;
            look_at_label(label, content, &mut heard);
            return state.feed(content, limits, &mut heard);
        };
        let mut found = None;
        let fed = coding.feed(content, &mut |piece| {
            look_at_label(label, piece, &mut heard);
            state.feed(piece, limits, &mut heard).map_err(|fault| found.insert(fault).fault())?;
            // What nobody looks at is not decoded.
            let is_passed = matches!(state, Content::Passed) && label.is_none();
            if is_passed { Err(UNREAD.fault()) } else { Ok(()) }
        });
        *decoded_bytes = coding.decoded_bytes();
        match fed {
            Err(_) if found.is_none() && matches!(state, Content::Passed) && label.is_none() => Ok(()),
            fed => fed.map_err(|fault| found.unwrap_or(BodyFault::new(Part::Coding, fault))),
        }
    }

    fn finish_reading(&mut self) -> Result<(), BodyFault> {
        let Inspection { paths, evidence, readings, content, coding, is_asked, .. } = self;
        if let Some(coding) = coding {
            coding.finish().map_err(|fault| BodyFault::new(Part::Coding, fault))?;
        }
        match content {
            // White space is all there was.
            Content::Passed | Content::Refused(_) | Content::Sniffed(_) => Ok(()),
            Content::Read(reader) => {
                let part = reader.part();
                let finished = reader.finish(&mut Heard { paths, evidence, readings, is_asked: *is_asked });
                finished.map_err(|fault| BodyFault::new(part, fault))
            }
        }
    }

    /// Reads no further: what is not known of the content is never to be.
    fn fail(&mut self, fault: BodyFault) {
        for id in self.paths.content() {
            self.evidence.end_unknown(id, fault.cause());
            if let Some(others) = &mut self.readings.evidence {
                others.end(id, Some(fault.cause()));
            }
        }
        self.fault = Some(fault);
        self.content = Content::Passed;
        self.label = None;
        self.coding = None;
    }

    fn awaits_size(&self) -> bool {
        self.is_asked && self.paths.size.is_some_and(|size| !self.evidence.has_ended(size))
    }

    fn settle_size(&mut self, bytes: u64) {
        if let Some(size) = self.paths.size {
            self.evidence.see(size, Value::Integer(bytes));
            self.evidence.end(size);
            if let Some(others) = &mut self.readings.evidence {
                others.see(size, Value::Integer(bytes), false);
                others.end(size, None);
            }
        }
    }

    fn end_all(&mut self, unknown: Option<Cause>) {
        self.evidence.end_all(unknown);
        if let Some(others) = &mut self.readings.evidence {
            others.end_all(unknown);
        }
    }

    fn heard(&mut self) -> Heard<'_> {
        let Inspection { paths, evidence, readings, is_asked, .. } = self;
        Heard { paths, evidence, readings, is_asked: *is_asked }
    }
}

/// Compares content with what its media type says.
fn look_at_label(label: &mut Option<LabelCheck>, content: &[u8], heard: &mut Heard<'_>) {
    let Some(check) = label else { return };
    check.look(content, |kind| heard.mislabelled(kind));
    if !check.is_left() {
        *label = None;
    }
}

impl Content {
    fn feed(&mut self, bytes: &[u8], limits: &Limits, heard: &mut Heard<'_>) -> Result<(), BodyFault> {
        match self {
            Content::Passed => Ok(()),
            Content::Refused(fault) => Err(*fault),
            Content::Read(reader) => {
                let part = reader.part();
                reader.feed(bytes, heard).map_err(|fault| BodyFault::new(part, fault))
            }
            Content::Sniffed(sniff) => {
                let (reads, skipped) = match sniff.look(bytes) {
                    Sniffed::Nothing => return Ok(()),
                    Sniffed::TooFar => return Err(BodyFault::limit("no document within its first bytes")),
                    Sniffed::Xml(skipped) => (Reads::Xml, skipped),
                    Sniffed::Json(skipped) => (Reads::Json, skipped),
                    Sniffed::Other => {
                        heard.end(heard.paths.content());
                        *self = Content::Passed;
                        return Ok(());
                    }
                };
                *self = heard.reader(&MediaType { reads, charset: None, boundary: None }, limits)?;
                let Content::Read(reader) = self else { return Ok(()) };
                let part = reader.part();
                let fed = reader.feed(&skipped, heard).and_then(|()| reader.feed(bytes, heard));
                fed.map_err(|fault| BodyFault::new(part, fault))
            }
        }
    }
}

impl Heard<'_> {
    /// The reader of a media type, where a field of its kind is named. Those of other kinds end.
    fn reader(&mut self, media_type: &MediaType, limits: &Limits) -> Result<Content, BodyFault> {
        let BodyPaths { xml, json, form, .. } = self.paths;
        let (own, others) = match media_type.reads {
            Reads::Xml => (&xml.fields, [&json.fields, &form.fields]),
            Reads::Json => (&json.fields, [&xml.fields, &form.fields]),
            Reads::Urlencoded | Reads::Multipart => (&form.fields, [&xml.fields, &json.fields]),
        };
        self.end(others.into_iter().flatten().map(|field| field.id));
        if own.is_empty() {
            return Ok(Content::Passed);
        }
        Ok(Content::Read(Box::new(Reader::new(media_type, self.paths, limits)?)))
    }

    /// The content may be of this kind, other than its label says: some server may read these fields of it.
    fn mislabelled(&mut self, kind: Reads) {
        let fields = if kind == Reads::Json { &self.paths.json.fields } else { &self.paths.xml.fields };
        if !self.is_asked {
            self.readings.came_late = true;
            return;
        }
        let others = self.readings.evidence.get_or_insert_with(|| Box::new(Others::new(self.evidence)));
        others.mislabelled(fields.iter().map(|field| field.id));
    }

    /// There is nothing of these fields.
    fn end(&mut self, fields: impl Iterator<Item = PayloadId>) {
        fields.for_each(|id| self.evidence.end(id));
    }
}
