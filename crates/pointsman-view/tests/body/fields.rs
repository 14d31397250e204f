//! What fields come to.

use crate::case::cases;

#[test]
fn vectors() {
    let mut wrong = Vec::new();
    for case in cases() {
        let pieces = [case.body.len().max(1), 1, 2, 3, 7];
        for piece in pieces {
            let mut inspection = case.inspection();
            for content in case.body.chunks(piece) {
                inspection.feed(content);
            }
            inspection.finish();
            let known = case.known(&inspection);
            if known != case.expected {
                wrong.push(format!(
                    "{} (in pieces of {piece})\nexpected:\n  {}\ngot:\n  {}",
                    case.title,
                    case.expected.join("\n  "),
                    known.join("\n  ")
                ));
            }
            assert!(!inspection.is_reading(), "{}", case.title);
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Where nothing in a body is asked for, nothing of it is looked at.
#[test]
fn what_nobody_asks_for_is_not_read() {
    for case in cases() {
        let inspection = case.inspection();
        let all_known = case.known(&inspection).iter().all(|field| !field.ends_with("?not read yet"));
        let is_reading = inspection.is_reading() && !inspection.checks_label();
        assert!(is_reading || all_known, "{}", case.title);
        assert!(!is_reading || !all_known, "{}", case.title);
    }
}
