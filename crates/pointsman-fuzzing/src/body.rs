//! Bodies that rules look into: what is decided, and what is wrong with a body, does not depend on how it was cut, and
//! what was decided stays so, whatever comes behind it.

use std::mem::discriminant;
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

use pointsman_http::{HeadLimits, RequestHead};
use pointsman_rules::{
    Cause, Evidence, Field, Halt, Outcome, Place, Program, Subject, Targets, Truths, Value, compile,
};
use pointsman_view::{BodyKind, BodyOptions, BodyPaths, Inspection};

use crate::random::Random;

pub(crate) const TOKENS: &[&str] = &[
    "Content-Type: application/xml\r\n",
    "Content-Type: text/xml; charset=iso-8859-1\r\n",
    "Content-Type: application/json\r\n",
    "Content-Type: application/x-www-form-urlencoded\r\n",
    "Content-Type: multipart/form-data; boundary=b\r\n",
    "Content-Encoding: gzip\r\n",
    "\r\n\r\n",
    "<order>",
    "</order>",
    "<order total='6'>",
    "<item>",
    "</item>",
    "<item/>",
    "<p:item xmlns:p=\"urn:p\">",
    "<![CDATA[6]]>",
    "<!--6-->",
    "<?a b?>",
    "<?xml version=\"1.0\" encoding=\"UTF-16\"?>",
    "<!DOCTYPE order>",
    "&#54;",
    "&lt;",
    "&x;",
    "{\"order\":",
    "\"items\":[",
    "\"total\":6",
    "{\"total\":1e400}",
    "\\u0036",
    "\\ud83d\\ude00",
    "null",
    "true",
    "[",
    "]",
    "{",
    "}",
    ",",
    "\"",
    "total=6",
    "&",
    "%36",
    "+",
    "--b\r\n",
    "\r\n--b--\r\n",
    "Content-Disposition: form-data; name=\"total\"\r\n\r\n",
    "\u{feff}",
    "\0",
    "6e9999",
];

/// Every way in which a body is asked.
const RULES: &str = r#"
    on_unknown routeTo(odd);
    namespace p = "urn:p";
    R1: if (xml.order/total > 5 || json.order.total > 5 || form["total"] > 5) { routeTo(large); }
    R2: if (first(xml.//item) == "6" || once(json.items[*]) == 6) { tag(item); }
    R3: if (xml.order/@total exists && !(xml.order/p:item[2] startsWith "6")) { routeTo(named); }
    R4: if (all(json.order.items[*].price) < 6) { routeTo(cheap, STICKY_ON(json.order.name)); }
    R5: if (count(form["item"]) > 1 || count(xml.//p:item) == 2) { setHeader("x-item", "${form[\"item\"]}"); routeTo(many); }
    R6: if (xml.order/item[1] == "6" || json.order.items[1] == 6) { routeTo(first); }
    R7: if (json[0] == true || json.order.note matches "6+" || body.size > 600) { reject(403); }
"#;

const KINDS: [BodyKind; 4] = [BodyKind::ByRules, BodyKind::Absent, BodyKind::Unknown, BodyKind::Sniff];

/// Panics where a property does not hold.
///
/// # Panics
/// With the property.
pub fn check(input: &[u8]) {
    static PROGRAM: LazyLock<(Arc<Program>, Arc<BodyPaths>)> = LazyLock::new(|| {
        let program = Arc::new(compile(RULES, &Targets::Any).expect("a rule set").program);
        let paths = Arc::new(BodyPaths::new(&program));
        (program, paths)
    });
    let Some(request) = Request::of(input) else { return };
    for kind in KINDS {
        let options = BodyOptions { kind, decoded_bytes_max: 1 << 20, ..BodyOptions::default() };
        let new = || {
            let (program, paths) = &*PROGRAM;
            let inspection = Inspection::new(
                Evidence::new(program),
                paths.clone(),
                &request.head,
                &request.received,
                &options,
            );
            Reading { program, inspection, decided: None, halt: None, end: String::new() }
        };
        let mut random = Random::of(input);
        let whole = new().read(request.content, || usize::MAX);
        let bytes = new().read(request.content, || 1);
        let pieces = new().read(request.content, || 1 + random.below(9));
        for (cut, read) in [("byte by byte", bytes), ("in pieces", pieces)] {
            let is_whole = read.1 == WHOLE;
            assert_eq!(is_whole, whole.1 == WHOLE, "{kind:?}: {cut} and in one");
            // How much comes out of broken compressed content may depend on how it was cut.
            if is_whole || !request.is_coded() {
                assert_eq!(read, whole, "{kind:?}: {cut} and in one");
            }
        }
    }
}

/// A head, and the content that it announces.
struct Request<'i> {
    head: RequestHead,
    received: Vec<u8>,
    content: &'i [u8],
}

impl<'i> Request<'i> {
    /// Up to the first empty line the input is lines of a head.
    fn of(input: &'i [u8]) -> Option<Request<'i>> {
        let end = input.windows(4).position(|window| window == b"\r\n\r\n")?;
        let (lines, content) = (&input[..end], &input[end + 4..]);
        let mut received = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n".to_vec();
        received.extend_from_slice(lines);
        received.extend_from_slice(b"\r\n\r\n");
        let mut head = RequestHead::default();
        let is_whole = head.parse(&received, &HeadLimits::default()).unwrap_or(false);
        is_whole.then_some(Request { head, received, content })
    }

    fn is_coded(&self) -> bool {
        let mut lines = self.head.lines().iter();
        lines.any(|line| line.name(&self.received).eq_ignore_ascii_case(b"content-encoding"))
    }
}

/// A body without a fault.
const WHOLE: &str = "whole";

struct Reading<'p> {
    program: &'p Program,
    inspection: Inspection,
    decided: Option<String>,
    /// Where it waits.
    halt: Option<Halt>,
    end: String,
}

impl Reading<'_> {
    /// What is decided, and how the body ends.
    fn read(mut self, content: &[u8], mut length: impl FnMut() -> usize) -> (Option<String>, String) {
        self.ask();
        let mut rest = content;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(length().min(rest.len()));
            self.inspection.feed(piece);
            self.ask();
            rest = behind;
        }
        self.inspection.finish();
        self.ask();
        assert!(self.inspection.evidence().has_all(), "at the end all is known");
        assert!(self.decided.is_some(), "at the end it is decided");
        assert_settled(self.program, self.inspection.evidence());
        let fault = self.inspection.fault().map(ToString::to_string);
        self.end = fault.unwrap_or_else(|| WHOLE.to_owned());
        (self.decided, self.end)
    }

    fn ask(&mut self) {
        let has_news = self.inspection.take_news();
        let evidence = self.inspection.evidence();
        let decision = self.program.decide(&Body(evidence), &mut Truths::default());
        let halt = Halt::of(&decision);
        if let Some(mut waits) = self.halt {
            let may_end = waits.may_end(self.program, evidence);
            let goes_on = self.program.waits_on(&mut waits, &Body(evidence), &mut Truths::default());
            assert_eq!(goes_on.then(|| waits.at()), halt.map(|halt| halt.at()), "from where it waited");
            assert!(may_end || self.halt.map(|halt| halt.at()) == halt.map(|halt| halt.at()));
            self.halt = goes_on.then_some(waits);
        } else if self.decided.is_none() {
            self.halt = halt;
        }
        let said = match decision.outcome {
            Outcome::Waits => None,
            outcome => Some(format!("{:?} {outcome:?} {:?}", decision.by, decision.effects)),
        };
        match &self.decided {
            None if said.is_some() => self.decided = said,
            None => {}
            Some(_) => assert_eq!(self.decided, said, "what was decided stays so ({has_news})"),
        }
    }
}

/// What proofs about rules rest on: a field that can have one value is settled by it, and where a body of one kind has a
/// value, fields of other kinds have none.
fn assert_settled(program: &Program, evidence: &Evidence) {
    let mut with_values = Vec::new();
    for payload in &program.payloads {
        let field = Field::Payload(payload.clone());
        let (mut begun, mut is_known) = (false, false);
        let _seen_enough = evidence.each(&field, &mut |value| {
            begun = true;
            is_known |= !matches!(value, Value::Unknown(_));
            ControlFlow::Continue(())
        });
        let unsettled = evidence.unsettled(&field);
        assert!(field.is_many_valued() || !is_known || unsettled.is_none(), "{field} has its value");
        if begun && payload.place != Place::Size {
            with_values.push(discriminant(&payload.place));
        }
    }
    let of_body = program.payloads.iter().filter(|payload| payload.place != Place::Size);
    for payload in of_body.filter(|payload| !with_values.contains(&discriminant(&payload.place))) {
        let field = Field::Payload(payload.clone());
        let is_read = with_values.is_empty();
        assert!(is_read || evidence.unsettled(&field).is_none(), "{field} stands in no such body");
    }
    assert!(with_values.windows(2).all(|pair| pair[0] == pair[1]), "a body is of one kind");
}

/// A request of which nothing is asked but its body.
struct Body<'e>(&'e Evidence);

impl Subject for Body<'_> {
    fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>) {
        let _seen_enough = self.0.each(field, see);
    }

    fn unsettled(&self, field: &Field) -> Option<Cause> {
        self.0.unsettled(field)
    }

    fn evidence(&self) -> Option<&Evidence> {
        Some(self.0)
    }
}
