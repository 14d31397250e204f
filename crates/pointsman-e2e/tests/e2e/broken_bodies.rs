//! Of bodies that end in a fault, a test, `explain` and the switch itself say the same.

use pointsman_e2e::{Client, Origin, Setup, ends, folder, pointsman};
use serde_json::Value;

/// A body, and what a test says of it.
struct Row {
    rules: &'static str,
    media_type: &'static str,
    body: &'static str,
    /// Behind `request` and `expect`.
    test: (&'static str, &'static str),
    /// The rule that decides, and the status that is answered then.
    decided: (&'static str, u16),
}

const JSON: &str = "application/json";
const XML: &str = "application/xml";
const FORM: &str = "multipart/form-data; boundary=b";

/// What was known in front of the fault, and what was not.
const ROWS: &[Row] = &[
    // There is one value of it, and it is known.
    Row {
        rules: "R1: if (json.a > 7) { reject(403); }\nR2: if (json.a == 5) { respond(200, \"5\"); }",
        media_type: JSON,
        body: r#"{"a":5,}"#,
        test: ("json.a 5 body unknown(malformed)", "R2 -> respond(200)"),
        decided: ("R2", 200),
    },
    Row {
        rules: "R1: if (once(json.a) > 7 || count(json.a) > 1 || all(json.a) != \"5\") { reject(403); }\n\
                R2: if (json.b == 1) { reject(403); }",
        media_type: JSON,
        body: r#"{"a":5,}"#,
        test: ("json.a 5 body unknown(malformed)", "R2 -> unknown(malformed)"),
        decided: ("R2", 400),
    },
    Row {
        rules: "R1: if (json.a > 7) { reject(403); }\nelse: respond(200, \"else\");",
        media_type: JSON,
        body: r#"{"a":5,"a":9}"#,
        test: ("json.a 5 body unknown(duplicate key)", "else -> respond(200)"),
        decided: ("else", 200),
    },
    // Another element may have been to come.
    Row {
        rules: "R1: if (json.a[*] > 7) { reject(403); }\nelse: respond(200, \"else\");",
        media_type: JSON,
        body: r#"{"a":[5,}"#,
        test: ("json.a[*] 5 body unknown(malformed)", "R1 -> unknown(malformed)"),
        decided: ("R1", 400),
    },
    Row {
        rules: "R1: if (json.a[*] > 7) { respond(200, \"more\"); }\nelse: reject(403);",
        media_type: JSON,
        body: r#"{"a":[5,8,}"#,
        test: ("json.a[*] 5 json.a[*] 8 body unknown(malformed)", "R1 -> respond(200)"),
        decided: ("R1", 200),
    },
    Row {
        rules: "R1: if (xml.a/b > 7) { reject(403); }\nelse: respond(200, \"else\");",
        media_type: XML,
        body: "<a><b>5</b></c>",
        test: ("xml.a/b 5 body unknown(malformed)", "R1 -> unknown(malformed)"),
        decided: ("R1", 400),
    },
    Row {
        rules: "R1: if (xml.a/b[1] > 7) { reject(403); }\nelse: respond(200, \"else\");",
        media_type: XML,
        body: "<a><b>5</b></c>",
        test: ("xml.a/b[1] 5 body unknown(malformed)", "else -> respond(200)"),
        decided: ("else", 200),
    },
    Row {
        rules: "R1: if (form[\"a\"] > 7) { reject(403); }\nelse: respond(200, \"else\");",
        media_type: FORM,
        body: "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n5\r\n--b",
        test: ("form[\"a\"] 5 body unknown(malformed)", "R1 -> unknown(malformed)"),
        decided: ("R1", 400),
    },
    Row {
        rules: "R1: if (first(form[\"a\"]) > 7) { reject(403); }\nelse: respond(200, \"else\");",
        media_type: FORM,
        body: "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n5\r\n--b",
        test: ("form[\"a\"] 5 body unknown(malformed)", "else -> respond(200)"),
        decided: ("else", 200),
    },
    // A body of one kind has no fields of the others, which its values show, or its media type.
    Row {
        rules: "R1: if (xml.a == 1 || form[\"a\"] == 1) { reject(403); }\n\
                R2: if (json.a == 1) { respond(200, \"1\"); }",
        media_type: JSON,
        body: r#"{"a":1,}"#,
        test: ("json.a 1 body unknown(malformed)", "R2 -> respond(200)"),
        decided: ("R2", 200),
    },
    Row {
        rules: "R1: if (xml.a == 1) { reject(403); }\nR2: if (json.a == 1) { respond(200, \"1\"); }",
        media_type: JSON,
        body: "{,",
        test: ("content_type \"application/json\" body unknown(malformed)", "R2 -> unknown(malformed)"),
        decided: ("R2", 400),
    },
    Row {
        rules: "R1: if (body.size > 20) { reject(403); }\nR2: if (json.a == 1) { respond(200, \"1\"); }",
        media_type: JSON,
        body: "{,",
        test: ("body.size 2 body unknown(malformed)", "R2 -> unknown(malformed)"),
        decided: ("R2", 400),
    },
];

#[test]
fn tests_explanations_and_the_switch_agree() {
    let origin = Origin::new("standard");
    for row in ROWS {
        let (said, expected) = row.test;
        let tested = format!("{}\ntest \"it\" {{ request {said} expect {expected} }}\n", row.rules);
        let request = format!(
            "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n{}",
            row.media_type,
            row.body.len(),
            row.body
        );
        let folder = folder(&[("a.rules", &tested), ("a.http", &request)]);
        ends(folder.path(), &["test", "a.rules"], 0, &["1 test"]);
        let explained = pointsman(folder.path(), &["explain", "--json", "a.rules", "a.http"]).stdout;
        let explained: Value = serde_json::from_str(&explained).expect("JSON");
        let decision = &explained["decision"];
        let refused = decision["refused"]["status"].as_u64();
        assert_eq!(
            (decision["rule"].as_str(), refused),
            (Some(row.decided.0), (row.decided.1 == 400).then_some(400)),
            "{}\n{explained}",
            row.rules
        );
        let switch = Setup::new(1).rules(row.rules).pool("usual", &[&origin]).start();
        let mut client: Client = switch.client();
        client.send(request);
        assert_eq!(client.response().status(), row.decided.1, "{}", row.rules);
        let entry = switch.log_entry("the request", |_| true);
        assert_eq!(entry["rule"], row.decided.0, "{entry}");
    }
}
