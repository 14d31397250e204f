//! Standard output and standard error that nobody reads: the switch goes on, and ends when it is told to.

use pointsman_e2e::{Origin, Setup, Switch, until};

pointsman_e2e::for_threads!(
    access_log_to_nobody,
    access_log_read_late,
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
