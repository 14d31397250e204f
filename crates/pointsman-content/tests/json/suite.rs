//! A folder of documents that somebody else has sorted, as JSONTestSuite has it: names begin with `y_` for those that
//! are accepted, `n_` for those that are refused, and `i_` where a reader may choose.
#![expect(clippy::print_stderr, reason = "what is found is told there")]

use pointsman_content::Limits;

use crate::reading::{characters, read};

const FOLDER: &str = "JSON_TEST_SUITE";

#[test]
#[ignore = "reads the folder that JSON_TEST_SUITE names"]
fn a_suite_from_elsewhere() {
    let folder = std::env::var_os(FOLDER).expect(FOLDER);
    let (mut accepted, mut refused, mut chosen) = (0, 0, Vec::new());
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        // What is no UTF-8 is another layer's to refuse.
        let Ok(text) = String::from_utf8(std::fs::read(entry.path()).expect("a file")) else {
            assert!(!name.starts_with("y_"), "{name}");
            refused += usize::from(name.starts_with("n_"));
            continue;
        };
        // Depth is a limit, and no question of grammar.
        let limits = Limits { depth_max: 1_000_000, ..Limits::default() };
        let whole = read(&[], limits, [text.as_str()]);
        assert_eq!(whole.calls(), read(&[], limits, characters(&text)).calls(), "{name}");
        match name.get(..2) {
            Some("y_") => accepted += usize::from(whole.is_accepted()),
            Some("n_") => refused += usize::from(!whole.is_accepted()),
            _ => chosen.push((name.clone(), whole.is_accepted())),
        }
        let is_right = !name.starts_with(if whole.is_accepted() { "n_" } else { "y_" });
        assert!(is_right, "{name}: {:?}", whole.outcome);
    }
    eprintln!("{accepted} accepted, {refused} refused; by choice: {chosen:#?}");
}
