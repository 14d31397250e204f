//! What an inspection holds, counted by the heap: never more than it says, however long the body is.

use std::sync::Arc;

use pointsman_http::{HeadLimits, RequestHead};
use pointsman_rules::{Evidence, Program, Targets, compile};
use pointsman_view::{BodyOptions, BodyPaths, Inspection};

#[global_allocator]
static HEAP: dhat::Alloc = dhat::Alloc;

const MIB: usize = 1024 * 1024;

/// For each field that the program names: its value, its place in the evidence and in a reader.
const FIELD_BYTES: usize = 4096 + 1024;

struct Fed {
    held: usize,
    held_bytes_max: usize,
    fault: Option<String>,
}

/// Feeds a beginning, and a piece again and again until so many bytes have come.
fn fed(program: &Program, head: &str, beginning: &str, repeated: &[u8], bytes: usize) -> Fed {
    let request = format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n{head}\r\n\r\n");
    let mut parsed = RequestHead::default();
    assert_eq!(parsed.parse(request.as_bytes(), &HeadLimits::default()), Ok(true));
    let paths = Arc::new(BodyPaths::new(program));
    let profiler = dhat::Profiler::builder().testing().build();
    let evidence = Evidence::new(program);
    let mut inspection =
        Inspection::new(evidence, paths, &parsed, request.as_bytes(), &BodyOptions::default());
    let held_bytes_max = usize::try_from(inspection.held_bytes_max()).expect("memory has so much");
    inspection.feed(beginning.as_bytes());
    let mut too_much = None;
    for _ in 0..bytes.div_ceil(repeated.len().max(1)) {
        inspection.feed(repeated);
        let so_far = usize::try_from(inspection.held_bytes_max_so_far()).expect("memory has so much");
        let held = dhat::HeapStats::get().curr_bytes;
        if held > so_far + program.payloads.len() * FIELD_BYTES {
            too_much.get_or_insert((held, so_far, inspection.decoded_bytes()));
        }
        assert!(so_far <= held_bytes_max);
    }
    assert_eq!(too_much, None, "{head}: it holds, says and has read");
    let fault = inspection.fault().map(ToString::to_string);
    drop(inspection);
    let held = dhat::HeapStats::get().max_bytes;
    drop(profiler);
    Fed { held, held_bytes_max, fault }
}

#[test]
fn an_inspection_holds_what_it_says() {
    let rules =
        "if (xml.//a > 1 || xml.//@b > 1 || xml.o/i == \"x\" || first(xml.o/i) == \"y\") { routeTo(a); }
        if (json.a[*] == 1 || json.a[*].b == \"x\" || json.s == \"x\") { routeTo(b); }
        if (form[\"a\"] == \"x\") { routeTo(c); }";
    let program = compile(rules, &Targets::Any).expect("a rule set").program;
    let fields = program.payloads.len();
    let (xml, json) = ("Content-Type: text/xml", "Content-Type: application/json");
    let form = "Content-Type: application/x-www-form-urlencoded";
    let parts = "Content-Type: multipart/form-data; boundary=x";
    let part = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n";
    let name = "n".repeat(250);
    let text = "t".repeat(4000);
    // As deep as may be, each with a long name or a long value; then as many attributes.
    let deep: String = (0..30).map(|_| format!("<a>{text}<{name}>")).collect();
    let attributes: String = (0..60).map(|number| format!(" b{number}=\"{text}\"")).collect();
    let namespaces: String = (0..4).map(|number| format!(" xmlns:p{number}=\"{}\"", &text[..4000])).collect();
    let declared = format!("<o>{}", format!("<p0:i{namespaces}>").repeat(60));
    let mut wrong = Vec::new();
    for (head, beginning, repeated) in [
        (xml, "<o>", "<i>9</i>".to_owned()),
        (xml, "<o>", format!("<a>{text}</a>")),
        (xml, "<a>", "<a>1</a>".to_owned()),
        (xml, &*deep, "text without end ".to_owned()),
        (xml, "<o>", format!("<i b=\"{text}\"{attributes}/>")),
        (xml, &*declared, "<i/>".to_owned()),
        (xml, "<o><!--", "a comment without end ".to_owned()),
        (xml, "<o b=\"", "a value without end ".to_owned()),
        (json, "{\"a\":[0", ",{\"b\":\"x\"},1".to_owned()),
        (json, "{\"s\":\"", "a text without end ".to_owned()),
        (json, "{\"z\":0", format!(",\"{name}\":{{}}")),
        (form, "a=", "a+value+without+end+".to_owned()),
        (form, "", "a=1&".to_owned()),
        (parts, part, "a value without end ".to_owned()),
        (parts, "--x\r\nContent-Disposition: ", "a head without end ".to_owned()),
    ] {
        let beyond = fields * FIELD_BYTES;
        let [short, long] =
            [MIB / 8, MIB].map(|bytes| fed(&program, head, beginning, repeated.as_bytes(), bytes));
        let told = format!(
            "{head}: {}… {}…",
            &beginning[..beginning.len().min(20)],
            &repeated[..repeated.len().min(20)]
        );
        if long.held > long.held_bytes_max + beyond || long.held != short.held {
            let Fed { held, held_bytes_max, fault } = long;
            wrong.push(format!("{told} {held} of {held_bytes_max}, {} before; {fault:?}", short.held));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
