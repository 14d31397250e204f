//! Every field and operator, by the table in `testdata/conditions.txt`.

use std::fmt::Write as _;

use pointsman_e2e::{Client, Origin, Setup, read_lines, testdata};

pointsman_e2e::for_threads!(table);

/// One switch takes the whole table: a request names the row it is about in a field.
fn table(threads: usize) {
    let rows = rows();
    let (yes, no) = (Origin::new("yes"), Origin::new("no"));
    let setup = Setup::new(threads).pool("no", &[&no]).pool("yes", &[&yes]);
    // The port is known only once the listener is bound; a reload keeps it.
    let switch = setup.start();
    let port = switch.address("shop").port();
    switch.reload(&setup.rules(&rules(&rows).replace("{port}", &port.to_string())), 2);
    let mut failures = String::new();
    for (number, row) in rows.iter().enumerate() {
        for (line, sign, request) in &row.requests {
            let mut client = switch.client();
            let seen = ask(&mut client, number, request);
            if seen != *sign {
                let condition = &row.condition;
                writeln!(failures, "{line}: {condition}\n  {request}: {seen} instead of {sign}")
                    .expect("memory");
            }
        }
    }
    assert!(failures.is_empty(), "conditions.txt\n{failures}");
}

struct Row {
    condition: String,
    requests: Vec<(usize, char, String)>,
}

fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for (number, line) in read_lines(&testdata("conditions.txt")) {
        let request = ["+ ", "- ", "? "].iter().find_map(|sign| line.strip_prefix(sign));
        match request {
            Some(request) => {
                let sign = line.chars().next().expect("not empty");
                let row = rows.last_mut().expect("a condition before its requests");
                row.requests.push((number, sign, request.to_owned()));
            }
            None => rows.push(Row { condition: line, requests: Vec::new() }),
        }
    }
    rows
}

fn rules(rows: &[Row]) -> String {
    let rule = |(number, row): (usize, &Row)| {
        let condition = &row.condition;
        format!("C{number}: if (header[\"x-case\"] == \"{number}\" && ({condition})) {{ routeTo(yes); }}\n")
    };
    rows.iter().enumerate().map(rule).collect()
}

/// Sends a request and says what became of it, by the signs of the table.
fn ask(client: &mut Client, number: usize, request: &str) -> char {
    let mut parts = request.split(" | ");
    let line = parts.next().expect("a request line");
    let version = if line.split(' ').count() == 2 { " HTTP/1.1" } else { "" };
    let fields: Vec<&str> = parts.collect();
    let mut text = format!("{line}{version}\r\nX-Case: {number}\r\n");
    if !fields.iter().any(|field| field.starts_with("Host:")) {
        text.push_str("Host: shop.example\r\n");
    }
    for field in &fields {
        write!(text, "{field}\r\n").expect("memory");
    }
    text.push_str("\r\n");
    let length = fields.iter().find_map(|field| field.strip_prefix("Content-Length: "));
    text.push_str(&"x".repeat(length.map_or(0, |length| length.parse().expect("a length"))));
    client.send(text);
    let answer = client.response();
    match (answer.status(), answer.server()) {
        (200, "yes") => '+',
        (200, "no") => '-',
        (400, _) => '?',
        (status, server) => panic!("{request}: {status} from `{server}`: {}", answer.text()),
    }
}
