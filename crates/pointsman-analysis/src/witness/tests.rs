//! Sketches and the requests that they become, against `testdata/witness/*.txt`.

mod properties;

use std::{env, fs};

use std::sync::Arc;

use pointsman_rules::{Cause, Condition, DecidedBy, Field, OwnedValue, Targets, Truths, compile};
use pointsman_view::{BodyPaths, Connection};

use super::{Setting, Witness, realise, with_subject};
use crate::Effort;
use crate::wanted::{Sketch, Values};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/witness");

impl Witness {
    /// One that is written, and comes from nowhere in particular.
    pub(crate) fn written(bytes: Vec<u8>) -> Witness {
        let connection = Connection { src: None, dst: None, proxied: None, tls: None };
        Witness { bytes, is_of_http2: false, rest: None, connection, proxy: None }
    }

    /// As it was written.
    pub(crate) fn as_written(&self) -> &[u8] {
        &self.bytes
    }
}

/// A field as rules spell it.
fn field(spelling: &str) -> Field {
    let rules =
        format!("namespace p = \"urn:p\"; namespace q = \"urn:q\"; if ({spelling} exists) {{ tag(x); }}");
    let program =
        compile(&rules, &Targets::Any).unwrap_or_else(|wrong| panic!("{spelling}: {wrong:?}")).program;
    match &program.rules[0].condition {
        Condition::Test(test) => test.field.clone(),
        other => panic!("{other:?}"),
    }
}

/// `path "/a"`, `count 1 2`, `xml.a absent`, `json.a null`, `json.a "x" rest malformed`.
fn wish(line: &str) -> (Field, Values) {
    let (spelling, mut rest) = line.split_once("  ").unwrap_or_else(|| panic!("two spaces: {line}"));
    let mut values = Values::default();
    while !rest.is_empty() {
        rest = rest.trim_start();
        if let Some(quoted) = rest.strip_prefix('"') {
            let (text, behind) = quoted.split_once('"').expect("a quote at the end");
            values.known.push(OwnedValue::Text(unescaped(text).into()));
            rest = behind;
            continue;
        }
        let (word, behind) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = behind;
        match word {
            "absent" => {}
            "true" | "false" => values.known.push(OwnedValue::Boolean(word == "true")),
            "null" => values.known.push(OwnedValue::Nothing),
            "long" => values.known.push(OwnedValue::Unknown(Cause::Limit)),
            "malformed" => values.rest = Some(Cause::Malformed),
            "encoding" => values.rest = Some(Cause::Encoding),
            "limit" => values.rest = Some(Cause::Limit),
            "repeated" => values.rest = Some(Cause::DuplicateKey),
            _ => values.known.push(match word.parse() {
                Ok(integer) => OwnedValue::Integer(integer),
                Err(_) => OwnedValue::Ip(word.parse().unwrap_or_else(|_| panic!("a value: {word}"))),
            }),
        }
    }
    (field(spelling), values)
}

/// `\n`, `\r`, `\t`, `\\` and `\xhh`; a quote is `\x22`.
fn unescaped(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match bytes.next().expect("an escape") {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'x' => {
                let digits = [bytes.next().expect("a digit"), bytes.next().expect("a digit")];
                u8::from_str_radix(std::str::from_utf8(&digits).expect("text"), 16).expect("hex digits")
            }
            other => other,
        });
    }
    out
}

/// `proxies 10.0.0.0/8`, `speaks tls`, `speaks plain`, `sniffs`, `trusts nobody` or, behind proxies, `nobody else`,
/// `bind 192.0.2.1:8443`, `comes by unix`, `comes by address`, `names x_a,x_b` that are kept, and what the keys of a listener
/// are called that say more.
pub(crate) fn settle(setting: &mut Setting, line: &str) {
    match line.split_once(' ').unwrap_or((line, "")) {
        ("proxies", network) => setting.trusted_proxies.push(network.parse().expect("a network")),
        ("speaks", what) => setting.speaks_tls = Some(what == "tls"),
        ("sniffs", "") => setting.body_options.kind = pointsman_view::BodyKind::Sniff,
        ("bind", address) => setting.binds.push(address.parse().expect("an address")),
        ("comes", "by unix") => setting.takes_addresses = false,
        ("comes", "by address") => setting.takes_unix = false,
        ("trusts", "unix") => setting.trusts_unix = true,
        ("ipv6", "only") => setting.ipv6_only = true,
        ("slashes", "merged") => setting.path_options.merge_slashes = true,
        ("slashes", "refused") => {
            setting.path_options.encoded_slash = pointsman_view::EncodedSlash::Refuse;
        }
        ("names", "dropped") => setting.odd_fields = super::OddFields::Drop,
        ("names", "refused") => setting.odd_fields = super::OddFields::Refuse,
        ("names", names) => {
            setting.odd_fields = super::OddFields::Keep(names.split(',').map(Into::into).collect());
        }
        ("trusts", "nobody" | "nobody else") => {
            (setting.may_trust_others, setting.proxy_header) = (false, super::ProxyHeader::Off);
        }
        ("tls", "1.3") => setting.tls.takes_tls12 = false,
        ("key", "ecdsa") => setting.tls.signs_by_rsa = false,
        ("key", "rsa") => setting.tls.signs_by_ecdsa = false,
        ("alpn", "http/1.1") => setting.tls.names_http2 = false,
        ("alpn", "h2") => setting.tls.names_http1 = false,
        ("http2", "only") => setting.takes_http1 = false,
        ("upgrades", "none") => setting.upgrades.clear(),
        ("tickets", "none") => setting.tls.resumes = false,
        ("clients", "unasked") => setting.tls.clients = super::ClientCertificates::Never,
        ("clients", "known") => setting.tls.clients = super::ClientCertificates::Always,
        ("proxy", "required") => setting.proxy_header = super::ProxyHeader::Required,
        _ => panic!("no setting: {line}"),
    }
}

fn outcome(sketch: &str) -> String {
    let mut setting = Setting::default();
    let mut wishes = Vec::new();
    for line in sketch.lines() {
        match line.strip_prefix("setting: ") {
            Some(line) => settle(&mut setting, line),
            None => wishes.push(wish(line)),
        }
    }
    let sketch = Sketch { fields: wishes.iter().map(|(field, values)| (field, values.clone())).collect() };
    let witness = match realise(&sketch, &setting, &mut Effort::new(u64::MAX)) {
        Ok(witness) => witness,
        Err(unrealisable) => {
            let at =
                |field| wishes.iter().position(|(other, _)| other == field).expect("a field of the sketch");
            let places: Vec<_> =
                unrealisable.fields.iter().map(|field| (at(field) + 1).to_string()).collect();
            let ever = if unrealisable.are_of_two_kinds { " whatever their values" } else { "" };
            return format!("none for {}{ever}\n", places.join(", "));
        }
    };
    let options = witness.explain_options(&setting);
    let shown: String = witness.to_string().split_inclusive('\n').map(shortened).collect();
    let rest = witness.rest().map(|rest| format!("{rest}\n")).unwrap_or_default();
    let end = if shown.ends_with('\n') { "" } else { "\n" };
    match options.to_string() {
        none if none.is_empty() => format!("{shown}{end}{rest}"),
        options => format!("{options}\n{shown}{end}{rest}"),
    }
}

/// What is sought in all cases.
fn sketches() -> Vec<String> {
    let folder = fs::read_dir(FOLDER).expect("a folder").map(|file| file.expect("a file").path());
    let mut sketches = Vec::new();
    for path in folder {
        let text = fs::read_to_string(&path).expect("a file");
        let sketch = |case: &str| case.split_once("----\n").expect("a line between both").0.to_owned();
        sketches.extend(text.split("====\n").skip(1).map(sketch));
    }
    sketches
}

/// A line as it stands in a file of vectors.
fn shortened(line: &str) -> String {
    match line.len() {
        0..=300 => line.to_owned(),
        bytes => format!("{}... ({bytes} bytes)\n", &line[..100]),
    }
}

/// Each file has cases between lines of `====`: what is sought, `----`, and what becomes of it. `UPDATE_EXPECT=1` writes
/// what is expected anew.
#[test]
fn sketches_become_requests() {
    let mut cases = 0;
    let mut wrong = Vec::new();
    let folder = fs::read_dir(FOLDER).expect("a folder");
    for path in folder.map(|file| file.expect("a file").path()) {
        let text = fs::read_to_string(&path).expect("a file");
        let (top, _) = text.split_once("====\n").expect("a case");
        let mut anew = top.to_owned();
        for case in text.split("====\n").skip(1) {
            let (sketch, expected) = case.split_once("----\n").expect("a line between both");
            let found = outcome(sketch);
            cases += 1;
            anew += &format!("====\n{sketch}----\n{found}");
            if found != expected {
                wrong.push(format!("{}:\n{sketch}----\n{found}", path.display()));
            }
        }
        if env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&path, anew).expect("a writable file");
        }
    }
    assert!(cases > 100, "only {cases} cases");
    let updates = env::var_os("UPDATE_EXPECT").is_some();
    assert!(wrong.is_empty() || updates, "{} of {cases} differ:\n{}", wrong.len(), wrong.join("====\n"));
}

/// What decides a request that is made of a sketch.
fn decided_by(rules: &str, sketch: &str) -> String {
    let program = Arc::new(compile(rules, &Targets::Any).expect("rules").program);
    let paths = Arc::new(BodyPaths::new(&program));
    let wishes: Vec<_> = sketch.lines().map(wish).collect();
    let sketch = Sketch { fields: wishes.iter().map(|(field, values)| (field, values.clone())).collect() };
    let setting = Setting::default();
    let witness = realise(&sketch, &setting, &mut Effort::new(u64::MAX)).expect("a request");
    let by = with_subject(&program, &paths, &witness, &setting, |subject| {
        match program.decide(subject, &mut Truths::default()).by {
            DecidedBy::Rule { label, .. } => label.to_owned(),
            other => format!("{other:?}"),
        }
    });
    by.expect("it is a request still")
}

#[test]
fn rules_decide_witnesses() {
    let rules = r#"
        R1: if (content_length > 1000000) { reject(413); }
        R2: if (xml.order/total > 52000 && srcip in [10.0.0.0/8]) { reject(); }
        R3: if (tls.version == "1.2" || json.a[*] == "x") { routeTo(old); }
        R4: if (!(form["a"] exists)) { routeTo(plain); }
        else: routeTo(standard);
    "#;
    for (sketch, expected) in [
        ("content_length  1000001", "R1"),
        ("xml.order/total  \"7\" \"52001\"\nsrcip  10.1.2.3", "R2"),
        ("xml.order/total  \"52001\"\nsrcip  11.1.2.3", "R4"),
        ("tls.version  \"1.2\"", "R3"),
        ("json.a[*]  \"y\" \"x\"", "R3"),
        ("form[\"a\"]  absent", "R4"),
    ] {
        assert_eq!(decided_by(rules, sketch), expected, "{sketch}");
    }
}

/// What keeps a request from being is looked for as long as there is effort: then no more is drafted, and what is left is
/// named.
#[test]
fn what_does_not_fit_is_looked_for_within_an_effort() {
    let lines = |last: usize| (0..=last).map(|n| format!("header[\"h{n}\"]  \"1\"\n")).collect::<String>();
    let named = |sketch: &str, effort: &mut Effort| {
        let wishes: Vec<_> = sketch.lines().map(wish).collect();
        let sketch =
            Sketch { fields: wishes.iter().map(|(field, values)| (field, values.clone())).collect() };
        let unrealisable = realise(&sketch, &Setting::default(), effort).expect_err("there is none");
        (unrealisable.fields.len(), unrealisable.are_of_two_kinds)
    };
    let of_two_kinds = format!("{}json.a  \"1\"\nform[\"b\"]  \"2\"\n", lines(59));
    let mut enough = Effort::new(100_000);
    assert_eq!(named(&of_two_kinds, &mut enough), (2, true));
    assert!(!enough.is_used_up());
    let mut too_little = Effort::new(2_000);
    let (fields, _) = named(&of_two_kinds, &mut too_little);
    assert!(fields > 2 && fields <= 62 && too_little.is_used_up(), "{fields}");
    assert_eq!(named(&of_two_kinds, &mut Effort::new(0)), (62, false));
    // More lines than are taken of a request, and one of them too many: each of them matters. The search has an end, too.
    let mut much = Effort::new(super::least::STEPS_MAX + 1);
    let (fields, of_two_kinds) = named(&lines(100), &mut much);
    assert!(fields >= 100 && !of_two_kinds, "{fields}");
    assert!(much.take(1), "one search takes no more than its share");
    assert!(!much.take(super::least::STEPS_MAX), "and its drafts are counted");
}
