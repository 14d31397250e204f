//! Tests wait for what they want to see, never for time to pass.

use super::{Finding, tree::Tree};

const CALLS: &[&str] = &["thread::sleep", "time::sleep"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.with_ending(".rs") {
        let tests = file.first_test_line();
        // Under a paused clock a sleep takes no time: it is how a test moves the clock.
        let mut is_paused = false;
        for (line, text) in file.lines().filter(|(line, _)| *line >= tests) {
            if text.trim_start().starts_with("#[") && text.contains("test") {
                is_paused = text.contains("start_paused = true");
            }
            // A call, not a word in a text.
            let call = CALLS.iter().find(|call| text.contains(&format!("{call}(")));
            if let Some(call) = call.filter(|call| !is_paused || call.starts_with("thread")) {
                findings.push(Finding::line(&file.path, line, format!("a test does not call `{call}`")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::{CALLS, check};

    #[test]
    fn sleeping_tests_are_found() {
        for call in CALLS {
            let code = format!("fn a() {{ std::{call}(time); }}\n");
            assert_eq!(found(check, &[("crates/a/src/lib.rs", &code)]).len(), 0);
            assert_eq!(found(check, &[("crates/a/tests/b.rs", &code)]).len(), 1);
            assert_eq!(found(check, &[("crates/pointsman-e2e/src/lib.rs", &code)]).len(), 1);
            let in_tests = format!("fn a() {{}}\n#[cfg(test)]\n{code}");
            assert_eq!(found(check, &[("crates/a/src/lib.rs", &in_tests)]).len(), 1);
        }
    }

    #[test]
    fn a_paused_clock_may_sleep() {
        let paused =
            format!("#[tokio::test(start_paused = true)]\nasync fn a() {{ tokio::{}(time) }}\n", CALLS[1]);
        assert_eq!(found(check, &[("crates/a/tests/b.rs", &paused)]).len(), 0);
        let real = paused.replace("(start_paused = true)", "");
        assert_eq!(found(check, &[("crates/a/tests/b.rs", &format!("{paused}{real}"))]).len(), 1);
        let thread = paused.replace(CALLS[1], CALLS[0]);
        assert_eq!(found(check, &[("crates/a/tests/b.rs", &thread)]).len(), 1);
    }
}
