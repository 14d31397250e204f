//! Standard output and standard error that nobody reads: the switch goes on, and ends when it is told to.

use std::fs::File;
use std::io::{BufRead, BufReader};

use pointsman_e2e::{Origin, Setup, Switch, tool, until};

pointsman_e2e::for_threads!(
    access_log_to_nobody,
    access_log_read_late,
    access_log_in_a_fifo,
    access_log_on_a_full_disk,
    access_log_at_the_limit_on_file_size,
    told_twice,
    standard_error_to_nobody,
    standard_error_read_late
);

/// More requests than a pipe and its reader take the lines of.
const LOGGED: usize = 250;

/// More reloads than a pipe, its reader and the queue take the refusals of.
const REFUSED: usize = 24;

fn with_stuck_log(threads: usize, origin: &Origin) -> Switch {
    let switch = Setup::new(threads).pool("standard", &[origin]).start();
    switch.output().hold();
    let mut client = switch.client();
    for number in 0..LOGGED {
        assert_eq!(client.get(&format!("/{number}/{}", "x".repeat(400))).status(), 200);
    }
    switch
}

/// The log's lines are lost, and counted; the process ends.
fn access_log_to_nobody(threads: usize) {
    let origin = Origin::new("origin");
    let mut switch = with_stuck_log(threads, &origin);
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(0));
    let line = switch.wait_for_line("access log cut lines=");
    let lost: usize = line["access log cut lines=".len()..].parse().expect("a number");
    assert!((1..=LOGGED).contains(&lost), "{line}");
}

/// Who reads on after all gets every line that was not dropped and counted.
fn access_log_read_late(threads: usize) {
    let origin = Origin::new("origin");
    let mut switch = with_stuck_log(threads, &origin);
    switch.output().go_on();
    let dropped = || switch.metric("pointsman_access_log_dropped_lines_total", &[]);
    until("every line", || (switch.log_lines() as f64 + dropped() >= LOGGED as f64).then_some(()));
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(0));
    assert!(switch.said().ends_with("\ndrained"), "{}", switch.said());
}

/// What cannot be written is said once, and so is that it can be again; what cannot be opened anew, each time.
fn access_log_on_a_full_disk(threads: usize) {
    let (origin, folder) = (Origin::new("origin"), tempfile::tempdir().expect("a folder"));
    let (log, next) = (folder.path().join("access.log"), folder.path().join("next"));
    let turn_to = |target: &str| {
        std::os::unix::fs::symlink(target, &next).expect("a writable folder");
        std::fs::rename(&next, &log).expect("a writable folder");
    };
    turn_to("/dev/full");
    let table = format!("[access_log]\npath = \"{}\"", log.display());
    let switch = Setup::new(threads).top(&table).pool("standard", &[&origin]).start();
    let asked = || assert_eq!(switch.get("/").status(), 200);
    asked();
    let line = switch.wait_for_line("access log not written: ");
    assert_eq!(line, "access log not written: no space left on device; lines are lost until it can be");
    (0..20).for_each(|_| asked());
    turn_to("none/access.log");
    switch.signal("HUP");
    let line = switch.wait_for_line("access log not opened anew: ");
    assert!(line.contains(": no such file or directory; "), "{line}");
    turn_to("written.log");
    switch.signal("HUP");
    let written = || std::fs::read_to_string(folder.path().join("written.log")).unwrap_or_default();
    until("a line", || {
        asked();
        (!written().is_empty()).then_some(())
    });
    let line = switch.wait_for_line("access log written again failures=");
    let lost = line.rsplit('=').next().expect("a count").parse::<f64>().expect("a number");
    assert!((lost - switch.metric("pointsman_access_log_dropped_lines_total", &[])).abs() < 0.5, "{line}");
    assert_eq!(switch.said().matches("access log not written: ").count(), 1, "{}", switch.said());
}

/// The limit on file size cuts writes short as a full disk does: the switch survives, and no line is torn.
fn access_log_at_the_limit_on_file_size(threads: usize) {
    let origin = Origin::new("origin");
    let table = "[access_log]\npath = \"access.log\"";
    let switch = Setup::new(threads).top(table).pool("standard", &[&origin]).start();
    let log = || std::fs::read_to_string(switch.folder().join("access.log")).unwrap_or_default();
    let are_whole = |text: &str| {
        assert!(text.is_empty() || text.ends_with('\n'), "the last line is torn: {text}");
        for line in text.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        }
    };
    switch.limit_file_bytes(Some(10_000));
    let mut client = switch.client();
    for number in 0..100 {
        assert_eq!(client.get(&format!("/{number}")).status(), 200);
    }
    let line = switch.wait_for_line("access log not written: ");
    assert_eq!(line, "access log not written: file too large; lines are lost until it can be");
    // The limit on processor time is another one whose signal ends processes.
    switch.signal("XCPU");
    let counted = |name: &str| switch.metric(&format!("pointsman_access_log_{name}lines_total"), &[]);
    until("every line, written or lost", || (counted("") + counted("dropped_") >= 100.0).then_some(()));
    let text = log();
    are_whole(&text);
    assert_eq!(text.lines().count() as f64, counted(""), "{text}");
    switch.limit_file_bytes(None);
    until("another line", || {
        assert_eq!(client.get("/later").status(), 200);
        log().contains("/later").then_some(())
    });
    are_whole(&log());
}

/// A FIFO is opened whether or not somebody reads: at the start and at SIGHUP. Who comes later reads what waits.
fn access_log_in_a_fifo(threads: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let fifo = |name: &str| {
        tool(folder.path(), "mkfifo", &[name]).map(|made| assert_eq!(made.code, 0, "{}", made.output()))
    };
    let Some(()) = fifo("access.log") else { return };
    let path = folder.path().join("access.log");
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).top(&format!("[access_log]\npath = \"{}\"", path.display()));
    let setup = setup.pool("standard", &[&origin]);
    let mut switch = setup.start();
    for target in ["/1", "/2"] {
        assert_eq!(switch.get(target).status(), 200);
        let mut line = String::new();
        let mut reader = BufReader::new(File::open(&path).expect("a FIFO"));
        reader.read_line(&mut line).expect("a line");
        assert!(line.contains(&format!("\"path\":\"{target}\"")), "{line}");
    }
    std::fs::rename(&path, folder.path().join("access.log.1")).expect("it is there");
    fifo("access.log").expect("as before");
    switch.reload(&setup, 2);
    assert_eq!(switch.get("/3").status(), 200);
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(0));
    // Nothing was left to write, although nobody ever read the second one.
    assert!(switch.said().ends_with("\ndrained"), "{}", switch.said());
}

/// A second SIGTERM while the log is waited for does no harm, and what was lost is still said.
fn told_twice(threads: usize) {
    let origin = Origin::new("origin");
    let mut switch = with_stuck_log(threads, &origin);
    switch.signal("TERM");
    switch.wait_for_line("drained");
    // It may have ended by itself meanwhile.
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(0));
    switch.wait_for_line("access log cut lines=");
}

fn with_stuck_errors(threads: usize) -> Switch {
    let origin = Origin::new("origin");
    let setup = Setup::new(threads).pool("standard", &[&origin]);
    let switch = setup.start();
    switch.errors().hold();
    setup.top(&format!("{} = 1", "x".repeat(30_000))).write(switch.folder());
    for number in 1..=REFUSED {
        switch.signal("HUP");
        let refused = || switch.metric("pointsman_reloads_total", &[("result", "refused")]);
        until("a refused reload", || (refused() >= number as f64).then_some(()));
    }
    switch
}

/// Reloads go on, requests and the admin listener, too, and SIGTERM is obeyed.
fn standard_error_to_nobody(threads: usize) {
    let mut switch = with_stuck_errors(threads);
    assert_eq!(switch.admin_get("/health").status(), 200);
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit_unheard(), Some(0));
}

/// What was lost is counted where it would have stood.
fn standard_error_read_late(threads: usize) {
    let mut switch = with_stuck_errors(threads);
    switch.errors().go_on();
    let start = "standard error was not read dropped=";
    let dropped: usize = switch.wait_for_line(start)[start.len()..].parse().expect("a number");
    let count = |said: &str| said.lines().filter(|line| *line == "reload refused:").count();
    assert_eq!(count(&switch.said()) + dropped, REFUSED);
    switch.signal("TERM");
    assert_eq!(switch.wait_for_exit(), Some(0));
    assert!(switch.said().ends_with("\ndrained"), "{}", switch.said());
}
