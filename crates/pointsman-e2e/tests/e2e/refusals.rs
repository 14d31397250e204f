//! Requests that are refused, by the table in `testdata/refusals.txt`.

use std::fmt::Write as _;

use pointsman_e2e::{Origin, Setup, read_lines, unescape};

pointsman_e2e::for_threads!(table);

fn table(threads: usize) {
    let origin = Origin::new("origin");
    let switch = Setup::new(threads).pool("standard", &[&origin]).start();
    let mut failures = String::new();
    for (number, line) in read_lines("refusals.txt") {
        let mut columns = line.splitn(3, " | ");
        let mut column = || columns.next().unwrap_or_else(|| panic!("{number}: three columns in `{line}`"));
        let (statuses, what, bytes) = (column(), column(), unescape(column()));
        let in_body = statuses.starts_with('!');
        let before = origin.count();
        let mut client = switch.client();
        client.send(&bytes);
        let seen = match client.try_response() {
            Ok(answer) => answer.status().to_string(),
            Err(error) => error.to_string(),
        };
        if !statuses.trim_start_matches('!').split(',').any(|status| status == seen) {
            writeln!(failures, "{number}: {what}: {seen} instead of {statuses}").expect("memory");
        }
        if !client.closes() {
            writeln!(failures, "{number}: {what}: the connection goes on").expect("memory");
        }
        let reached: Vec<_> = origin.requests().split_off(before);
        if reached.iter().any(|request| !in_body || request.complete) {
            writeln!(failures, "{number}: {what}: reached the server: {reached:?}").expect("memory");
        }
    }
    assert!(failures.is_empty(), "refusals.txt\n{failures}");
}
