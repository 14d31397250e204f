//! Requests with bodies to look into.

use std::ops::ControlFlow;
use std::sync::Arc;

use pointsman_http::{HeadLimits, RequestHead};
use pointsman_rules::{Evidence, Field, Program, Targets, Value, compile};
use pointsman_view::{BodyKind, BodyOptions, BodyPaths, Inspection};

/// Values of a field that cases show.
const VALUES_MAX: usize = 16;

/// One case of a vector file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Case {
    pub(crate) title: String,
    fields: Vec<String>,
    refused_by: Vec<String>,
    options: BodyOptions,
    head: Vec<String>,
    pub(crate) body: Vec<u8>,
    pub(crate) expected: Vec<String>,
}

/// The cases of a vector file below `testdata/bodies/`.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in include_str!("../../../../testdata/bodies/fields.txt").lines() {
        let (sign, rest) = line.split_at(line.len().min(2));
        if sign == "==" {
            cases.push(Case { title: rest.trim().to_owned(), ..Case::default() });
            continue;
        }
        let Some(case) = cases.last_mut() else { continue };
        match sign {
            "? " => case.fields.extend(words(rest)),
            "! " => case.refused_by.extend(words(rest)),
            "- " => rest.split(' ').for_each(|option| case.option(option)),
            "> " => case.head.push(rest.to_owned()),
            "| " => case.body.extend(unescaped(rest)),
            "x " => case.body.extend(hex(rest)),
            "= " => case.expected.push(rest.to_owned()),
            "" => {}
            other => panic!("`{other}` begins no line of {}", case.title),
        }
    }
    assert!(cases.iter().all(|case| !case.expected.is_empty()), "each case expects something");
    cases
}

impl Case {
    /// A body of JSON, and options that are usual.
    pub(crate) fn of(content_type: &str, fields: &[&str], body: &[u8]) -> Case {
        Case {
            title: content_type.to_owned(),
            fields: fields.iter().map(|field| (*field).to_owned()).collect(),
            head: vec![format!("Content-Type: {content_type}"), "Transfer-Encoding: chunked".to_owned()],
            body: body.to_vec(),
            ..Case::default()
        }
    }

    fn option(&mut self, option: &str) {
        let number = |text: &str| text.parse::<u32>().expect("a number");
        match option.split_once('=') {
            None => {
                self.options.kind = match option {
                    "absent" => BodyKind::Absent,
                    "unknown" => BodyKind::Unknown,
                    "sniff" => BodyKind::Sniff,
                    other => panic!("no option `{other}`"),
                }
            }
            Some(("value_bytes_max", value)) => self.options.limits.value_bytes_max = number(value),
            Some(("depth_max", value)) => self.options.limits.depth_max = number(value),
            Some(("parameters_max", value)) => self.options.limits.parameters_max = number(value),
            Some(("decoded_bytes_max", value)) => self.options.decoded_bytes_max = number(value).into(),
            Some((other, _)) => panic!("no option `{other}`"),
        }
    }

    /// A program that names the fields.
    pub(crate) fn program(&self) -> Arc<Program> {
        let named = self.fields.iter().map(|field| format!("if ({field} exists) {{ tag(a); }}\n"));
        let refused = self.refused_by.iter().map(|field| format!("if ({field} exists) {{ reject(); }}\n"));
        program(&named.chain(refused).collect::<String>())
    }

    /// The body before its first byte.
    pub(crate) fn inspection(&self) -> Inspection {
        self.inspection_for(&self.program())
    }

    pub(crate) fn inspection_for(&self, program: &Arc<Program>) -> Inspection {
        let mut request = "POST / HTTP/1.1\r\nHost: a\r\n".to_owned();
        for line in &self.head {
            request.push_str(&format!("{line}\r\n"));
        }
        let is_framed = |line: &String| line.starts_with("Content-Length") || line.starts_with("Transfer");
        if !self.head.iter().any(is_framed) {
            request.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        request.push_str("\r\n");
        let mut head = RequestHead::default();
        assert_eq!(head.parse(request.as_bytes(), &HeadLimits::default()), Ok(true), "{request}");
        let paths = Arc::new(BodyPaths::new(program));
        let evidence = Evidence::keeping(program, VALUES_MAX);
        Inspection::new(evidence, paths, &head, request.as_bytes(), &self.options)
    }

    /// What is known of the fields, and what is wrong: as vector files have it.
    pub(crate) fn known(&self, inspection: &Inspection) -> Vec<String> {
        let program = self.program();
        let mut known = Vec::new();
        for field in &self.fields {
            let payload = program.payloads.iter().find(|payload| *payload.spelling == **field);
            let field = Field::Payload(payload.expect("a field of the body").clone());
            known.push(format!("{field}: {}", shown(inspection, &field)));
        }
        known.extend(inspection.fault().map(|fault| format!("fault: {fault}")));
        known
    }
}

/// A rule set.
pub(crate) fn program(rules: &str) -> Arc<Program> {
    Arc::new(compile(rules, &Targets::Any).unwrap_or_else(|findings| panic!("{rules}{findings:?}")).program)
}

fn shown(inspection: &Inspection, field: &Field) -> String {
    let mut values = Vec::new();
    let seen = inspection.evidence().each(field, &mut |value| {
        values.push(match value {
            Value::Text(b"") => "(empty)".to_owned(),
            Value::Text(text) => text.escape_ascii().to_string(),
            Value::Integer(number) => number.to_string(),
            Value::Boolean(truth) => truth.to_string(),
            Value::Nothing => "(null)".to_owned(),
            Value::Unknown(cause) => format!("({cause})"),
            Value::Ip(_) => panic!("a body has no addresses"),
        });
        ControlFlow::Continue(())
    });
    assert_eq!(seen, ControlFlow::Continue(()));
    let unsettled = inspection.evidence().unsettled(field).map(|cause| format!("?{cause}"));
    match (values.is_empty(), unsettled) {
        (true, None) => "absent".to_owned(),
        (true, Some(cause)) => cause,
        (false, None) => values.join(" | "),
        (false, Some(cause)) => format!("{} {cause}", values.join(" | ")),
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    // Names of form fields have blanks.
    let mut is_quoted = false;
    text.split(move |c| {
        is_quoted ^= c == '"';
        c == ' ' && !is_quoted
    })
    .map(str::to_owned)
}

fn hex(text: &str) -> Vec<u8> {
    text.split(' ').map(|byte| u8::from_str_radix(byte, 16).expect("two hex digits")).collect()
}

/// Resolves `\\`, `\t`, `\r`, `\n` and `\xNN`.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next() {
                Some(b't') => b'\t',
                Some(b'r') => b'\r',
                Some(b'n') => b'\n',
                Some(b'x') => {
                    let digits: String = rest.by_ref().take(2).map(char::from).collect();
                    u8::from_str_radix(&digits, 16).expect("two hex digits")
                }
                Some(b'\\') => b'\\',
                other => panic!("unknown escape {other:?} in {text}"),
            },
            byte => byte,
        });
    }
    bytes
}
