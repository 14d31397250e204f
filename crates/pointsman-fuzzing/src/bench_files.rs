//! Files of the bench that others may have written: workloads, and documents of reports.

use pointsman_measure::report::{Document, Run, page};
use pointsman_measure::table::{Cell, Table, csv, text, xlsx};
use pointsman_measure::workload::parse;
use pointsman_rules::{Colour, draw};

pub(crate) const TOKENS: &[&str] = &[
    "DEFINE_CLASSES\n",
    "DEFINE_REQUESTS\n",
    "CLASS_404:",
    " 100\n",
    " 0.01\n",
    "GET /a\n",
    "POST /b#c\n",
    " # ",
    "{\"schema\":\"pointsman-bench/1\",\"title\":\"",
    "\"runs\":[",
    "\"verdict\":{\"colour\":\"red\",\"reasons\":[]}",
    "\"charts\":[",
    "\"points\":[[1,2]]",
    "\"x\":{\"label\":\"\",\"log\":true}",
    "null",
    "1e308",
    "-1e-300",
    "</script>",
    "<script type=\"application/json\" id=\"document\">",
    "\\u003c",
];

/// Panics where a property does not hold.
///
/// # Panics
/// With the property.
pub fn check(input: &[u8]) {
    let Ok(input) = std::str::from_utf8(input) else { return };
    workload(input);
    document(input);
}

fn workload(input: &str) {
    match parse(input) {
        Ok(workload) => {
            let shares: u32 = workload.classes().iter().map(|class| class.share_e4).sum();
            assert_eq!(shares, 10_000, "all requests are of a class");
            let weights = workload.weights().unwrap_or_default();
            assert!(weights.iter().all(|weight| *weight > 0), "each request is asked for");
            for request in workload.classes().iter().flat_map(|class| &class.requests) {
                assert!(request.target.starts_with('/') && !request.target.contains([' ', '\r', '\n']));
            }
        }
        Err(errors) => assert!(!draw(&errors, "w", input, Colour::Never).is_empty(), "an error is shown"),
    }
}

fn document(input: &str) {
    let Ok(document) = Document::read(input) else { return };
    let json = document.to_json().to_string();
    let again = Document::from_json(&json).expect("what is written can be read");
    // Numbers may come back with another last bit.
    let shape = |document: &Document| {
        let of_run =
            |run: &Run| (run.name.clone(), run.figures.len(), run.charts.len(), run.settings.clone());
        document.runs.iter().map(of_run).collect::<Vec<_>>()
    };
    assert_eq!(shape(&again), shape(&document), "what is read is what was written");
    let page = page(&document);
    assert_eq!(page.matches("<script").count(), 1, "nothing acts on the page");
    assert_eq!(page.matches("</script").count(), 1, "nothing acts on the page");
    let from_page = Document::read(&page).expect("a page can be read");
    assert_eq!(from_page.to_json().to_string(), again.to_json().to_string(), "the page has all of it");
    for table in document.runs.iter().flat_map(|run| &run.tables) {
        assert!(!text(table).is_empty());
        // What a sheet cannot hold is an error, and no panic.
        drop(xlsx(std::slice::from_ref(table)));
        for cell in table.rows.iter().flatten() {
            let alone = csv(&Table { rows: vec![vec![cell.clone()]], ..Table::default() });
            let is_formula = matches!(cell, Cell::Text(text) if text.starts_with(['=', '+', '-', '@']));
            assert!(!is_formula || alone.starts_with("\r\n\"'"), "a spreadsheet would compute {alone:?}");
        }
    }
}
