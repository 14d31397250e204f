//! What a log has written down of a request or a connection, as the fields that a rule can ask for.

use std::ops::ControlFlow;

use pointsman_rules::{Cause, Field, Place, Subject, Value};

/// Which fields a record says. Of each of them it says all, also that there is none of it; of the others it says
/// nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known<'a> {
    /// `srcip`.
    pub src_ip: bool,
    /// `srcport`.
    pub src_port: bool,
    /// `dstip`.
    pub dst_ip: bool,
    /// `dstport`.
    pub dst_port: bool,
    /// `clientip`.
    pub client_ip: bool,
    /// `proto`, `scheme`.
    pub scheme: bool,
    /// `tls.sni`.
    pub sni: bool,
    /// `tls.version`.
    pub tls_version: bool,
    /// Everything else of TLS.
    pub handshake: bool,
    /// `method`, `path`.
    pub request: bool,
    /// `host`.
    pub host: bool,
    /// `url`.
    pub target: bool,
    /// `query`, `query["k"]`.
    pub query: bool,
    /// `content_type`, `content_length`.
    pub content: bool,
    /// The fields of the body.
    pub body: RecordedBody,
    /// `version`.
    pub version: bool,
    /// The names of header fields, in lower case.
    pub headers: &'a [&'a str],
}

/// What a record says of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordedBody {
    /// Nothing.
    #[default]
    Unknown,
    /// That there was none.
    Absent,
    /// How many bytes it had.
    Bytes(u64),
}

impl Known<'_> {
    /// Whether the record says a field. One arm a field and no catch-all: a field that is added to the language is
    /// missed here.
    pub fn holds(&self, field: &Field) -> bool {
        match field {
            Field::SrcIp => self.src_ip,
            Field::SrcPort => self.src_port,
            Field::DstIp => self.dst_ip,
            Field::DstPort => self.dst_port,
            Field::ClientIp => self.client_ip,
            Field::Proto | Field::Scheme => self.scheme,
            Field::TlsSni => self.sni,
            Field::TlsVersion => self.tls_version,
            Field::TlsCipher
            | Field::TlsAlpn
            | Field::TlsResumed
            | Field::TlsClientSubject
            | Field::TlsClientSan
            | Field::TlsClientFingerprint
            | Field::TlsClientCertificate => self.handshake,
            Field::Method | Field::Path => self.request,
            Field::Host => self.host,
            Field::Url => self.target,
            Field::Query | Field::QueryParam(_) => self.query,
            Field::Version => self.version,
            Field::Header(name) => self.headers.contains(&&**name),
            Field::ContentType | Field::ContentLength => self.content,
            Field::Cookie(_) | Field::Upgrade | Field::Proxy(_) => false,
            Field::Payload(payload) => match self.body {
                RecordedBody::Unknown => false,
                RecordedBody::Absent => true,
                RecordedBody::Bytes(_) => payload.place == Place::Size,
            },
        }
    }
}

/// A subject of which only some fields were written down. The others are not known, which is not the same as absent:
/// a rule that needs one of them [waits](pointsman_rules::Outcome::Waits).
#[derive(Clone, Copy)]
pub struct Recorded<'a> {
    subject: &'a dyn Subject,
    known: Known<'a>,
}

impl<'a> Recorded<'a> {
    /// What `known` says of `subject`. What that shows of other fields is never asked for.
    pub fn new(subject: &'a dyn Subject, known: Known<'a>) -> Recorded<'a> {
        Recorded { subject, known }
    }
}

impl Subject for Recorded<'_> {
    fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>) {
        if let (Field::Payload(payload), RecordedBody::Bytes(bytes)) = (field, self.known.body)
            && payload.place == Place::Size
        {
            let _wants_more = see(Value::Integer(bytes));
            return;
        }
        if self.known.holds(field) {
            self.subject.each(field, see);
        }
    }

    fn unsettled(&self, field: &Field) -> Option<Cause> {
        (!self.known.holds(field)).then_some(Cause::Unread)
    }
}

#[cfg(test)]
mod tests {
    use pointsman_rules::{Outcome, Targets, Truths, compile};

    use super::*;
    use crate::{Connection, ConnectionView};

    /// What a record says of a body is all that is known of it.
    #[test]
    fn bodies_are_known_as_far_as_they_are_written_down() {
        let connection = Connection { src: None, dst: None, proxied: None, tls: None };
        let view = ConnectionView::new(&connection, None);
        for (body, condition, expected) in [
            (RecordedBody::Unknown, "body.size > 5", None),
            (RecordedBody::Unknown, "json.a exists", None),
            (RecordedBody::Absent, "body.size exists", Some(false)),
            (RecordedBody::Absent, "json.a exists || xml.a == \"b\" || form[\"c\"] exists", Some(false)),
            (RecordedBody::Bytes(6), "body.size > 5", Some(true)),
            (RecordedBody::Bytes(5), "body.size > 5", Some(false)),
            (RecordedBody::Bytes(5), "json.a exists", None),
        ] {
            let known = Known { body, ..Known::default() };
            assert_eq!(decided(&Recorded::new(&view, known), condition), expected, "{body:?} {condition}");
        }
    }

    /// Nothing where it is not known.
    fn decided(recorded: &Recorded<'_>, condition: &str) -> Option<bool> {
        let rules = format!("if ({condition}) {{ reject(); }} else {{ discard(); }}");
        let program = compile(&rules, &Targets::Any).expect("a rule set").program;
        match program.decide_plainly(recorded).outcome {
            Outcome::Terminal(pointsman_rules::Terminal::Reject { .. }) => Some(true),
            Outcome::Terminal(_) => Some(false),
            _ => None,
        }
    }

    /// What each rule set decides of a connection of which only `srcip`, 10.0.0.1, is written down.
    #[test]
    fn what_is_not_written_down_is_neither_there_nor_absent() {
        let connection = Connection { src: "10.0.0.1:5".parse().ok(), dst: None, proxied: None, tls: None };
        let view = ConnectionView::new(&connection, None);
        let known = Known { src_ip: true, headers: &["referer"], ..Known::default() };
        let recorded = Recorded::new(&view, known);
        for (condition, expected) in [
            ("srcip == 10.0.0.1", Some(true)),
            ("srcip == 10.0.0.2", Some(false)),
            ("srcport == 5", None),
            ("srcport exists", None),
            ("!(srcport exists)", None),
            ("path == \"/\"", None),
            ("header[\"referer\"] exists", Some(false)),
            ("header[\"cookie\"] exists", None),
            ("json.a == 1", None),
            ("count(query[\"k\"]) == 0", None),
            ("srcip == 10.0.0.1 || tls.sni == \"a\"", Some(true)),
            ("srcip == 10.0.0.2 && tls.sni == \"a\"", Some(false)),
            ("srcip == 10.0.0.1 && tls.sni == \"a\"", None),
        ] {
            let rules = format!("if ({condition}) {{ reject(); }} else {{ discard(); }}");
            let program = compile(&rules, &Targets::Any).expect("a rule set").program;
            for decision in
                [program.decide(&recorded, &mut Truths::default()), program.decide_plainly(&recorded)]
            {
                let found = match decision.outcome {
                    Outcome::Terminal(pointsman_rules::Terminal::Reject { .. }) => Some(true),
                    Outcome::Terminal(_) => Some(false),
                    Outcome::Waits => None,
                    other => panic!("{condition}: {other:?}"),
                };
                assert_eq!(found, expected, "{condition}");
            }
        }
    }
}
