//! Documents become pages and come back; hostile names do nothing.

use std::path::Path;

use pointsman_measure::chart::{Axis, Chart, Content, Layer, Line};
use pointsman_measure::report::{Document, Figure, Run, page};
use pointsman_measure::table::Table;
use pointsman_measure::verdict::Colour;

fn run(name: &str, capacity: f64) -> Run {
    let points: Vec<(f64, f64)> =
        (1..=13_u32).map(|step| f64::from(step) * 50.0).map(|x| (x, x.min(capacity))).collect();
    let curve = Line {
        name: "achieved".to_owned(),
        band: points.iter().map(|(x, y)| (*x, 0.98 * y, 1.02 * y)).collect(),
        points,
        ..Line::default()
    };
    let distribution = Line {
        name: "response time".to_owned(),
        points: vec![(0.2, 0.1), (0.5, 0.5), (1.0, 0.9), (8.0, 0.99), (40.0, 1.0)],
        is_stepped: true,
        ..Line::default()
    };
    let chart = |id: &str, title: &str, x, y, content| Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        x,
        y,
        content,
    };
    let layer = |name: &str, values: &[f64]| Layer { name: name.to_owned(), values: values.to_vec() };
    let by_name = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    Run {
        started: "2026-11-23T03:00:00Z".to_owned(),
        machine: by_name(&[("processor", "two cores"), ("kernel", "6.1.0")]),
        versions: by_name(&[("pointsman", "0.1.0")]),
        settings: by_name(&[("url", "https://127.0.0.1:8443/"), ("key", name)]),
        figures: vec![
            Figure {
                name: "peak".to_owned(),
                unit: "1/s".to_owned(),
                value: Some(capacity),
                interval: Some((capacity * 0.99, capacity * 1.01)),
            },
            Figure { name: "knee".to_owned(), unit: "1/s".to_owned(), value: None, interval: None },
        ],
        charts: vec![
            chart(
                "curve",
                "Demanded against achieved",
                Axis::linear("demanded, 1/s"),
                Axis::linear("achieved, 1/s"),
                Content::Lines(vec![curve]),
            ),
            chart(
                "cdf",
                "Response time",
                Axis::logarithmic("ms"),
                Axis::linear("share"),
                Content::Lines(vec![distribution]),
            ),
            chart(
                "phases",
                "Phases of a handshake",
                Axis::linear("kind"),
                Axis::linear("µs"),
                Content::Bars {
                    categories: vec!["full".to_owned(), "resumed".to_owned()],
                    layers: vec![layer("server", &[300.0, 80.0]), layer("wire", &[40.0, 40.0])],
                },
            ),
        ],
        tables: vec![by_clients(capacity)],
        answer: format!("{capacity} requests a second at the most."),
        outcome: Some(serde_json::json!({"kind": "load", "seconds": 1.5})),
        ..Run::named(name)
    }
}

fn by_clients(capacity: f64) -> Table {
    Table {
        title: "By clients".to_owned(),
        columns: vec!["clients".to_owned(), "1/s".to_owned()],
        rows: vec![vec![1.0.into(), 99.5.into()], vec![4.0.into(), capacity.into()], vec!["8".into()]],
    }
}

fn two_runs() -> Document {
    Document {
        title: "RSA against ECDSA".to_owned(),
        runs: vec![run("RSA-2048", 250.0), run("ECDSA P-256", 500.0)],
    }
}

/// Compares with a file; `UPDATE_EXPECT=1` writes it.
fn golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, found).expect("the file is written");
    }
    let expected = std::fs::read_to_string(&path).expect("the file is there");
    assert!(expected == found, "{name} differs: UPDATE_EXPECT=1 writes what there is now");
}

#[test]
fn two_runs_stand_beside_each_other() {
    golden("two-runs.html", &page(&two_runs()));
}

#[test]
fn a_document_comes_back_from_its_json() {
    let document = two_runs();
    assert_eq!(Document::from_json(&document.to_json().to_string()), Ok(document.clone()));
    // And from the page.
    let page = page(&document);
    assert_eq!(Document::read(&page), Ok(document.clone()));
    assert_eq!(Document::read(&document.to_json().to_string()), Ok(document));
    assert!(Document::read("<html></html>").expect_err("no report").message.contains("no document"));
}

#[test]
fn runs_share_their_axes() {
    let page = page(&two_runs());
    let slow = page.split("<figure>").nth(1).expect("the first chart");
    // 600 on the axis that the faster needs, though the slower ends at 250.
    assert!(slow.contains(">600</text>") && slow.contains("500</text>"), "{slow}");
}

#[test]
fn what_is_of_something_else_has_axes_and_ratios_of_its_own() {
    let mut document = two_runs();
    document.runs.push(run("kept", 40_000.0));
    document.runs[2].charts[0].x.label = "demanded, requests/s".to_owned();
    document.runs[2].figures[0].unit = "requests/s".to_owned();
    let page = page(&document);
    let slow = page.split("<figure>").nth(1).expect("the first chart");
    assert!(slow.contains(">600</text>"), "not on an axis to 40,000: {slow}");
    let row = |unit: &str| {
        let from = page.find(&format!("peak <small>{unit}</small>")).expect("a row");
        page[from..].split("</tr>").next().expect("it ends").to_owned()
    };
    assert_eq!(row("1/s").matches('×').count(), 1, "{}", row("1/s"));
    assert_eq!(row("requests/s").matches('×').count(), 0, "{}", row("requests/s"));
}

/// Whatever their order in the runs.
#[test]
fn charts_of_the_same_stand_in_one_row_each_run_once() {
    let mut document = two_runs();
    let (first, second) = document.runs.split_at_mut(1);
    let more = |title: &str, id: &str, charts: &mut Vec<Chart>| {
        let chart = Chart { title: title.to_owned(), id: id.to_owned(), ..charts[0].clone() };
        charts.push(chart);
    };
    more("first of a", "a", &mut first[0].charts);
    more("again of a", "a", &mut first[0].charts);
    more("of b", "b", &mut second[0].charts);
    more("other of a", "a", &mut second[0].charts);
    let page = page(&document);
    let (shown, _) = page.split_once("<script").expect("the document is in it");
    let places: Vec<Option<usize>> = ["first of a", "other of a", "of b", "again of a"]
        .map(|title| shown.find(&format!(">{title}</text>")))
        .to_vec();
    assert!(places[0].is_some() && places[0] < places[1] && places[1] < places[2], "{places:?}");
    assert_eq!(places[3], None, "one of a run is enough");
}

#[test]
fn hostile_names_do_nothing() {
    let hostile =
        "</script><script>alert(1)</script><img src=x onerror='alert(2)'>\" onload=\"alert(3)\u{202e}\u{0}";
    let mut document = two_runs();
    document.title = hostile.to_owned();
    let run = &mut document.runs[0];
    run.name = hostile.to_owned();
    run.started = hostile.to_owned();
    run.colour = Colour::Amber;
    run.reasons = vec![hostile.to_owned()];
    for map in [&mut run.machine, &mut run.versions, &mut run.settings] {
        map.insert(hostile.to_owned(), hostile.to_owned());
    }
    run.figures[0].name = hostile.to_owned();
    run.figures[0].unit = hostile.to_owned();
    run.tables[0] = Table {
        title: hostile.to_owned(),
        columns: vec![hostile.to_owned()],
        rows: vec![vec![hostile.into()]],
    };
    for chart in &mut run.charts {
        (chart.id, chart.title) = (format!("{}{hostile}", chart.id), hostile.to_owned());
        (chart.x.label, chart.y.label) = (hostile.to_owned(), hostile.to_owned());
        match &mut chart.content {
            Content::Lines(lines) => lines[0].name = hostile.to_owned(),
            Content::Bars { categories, layers } => {
                categories[0] = hostile.to_owned();
                layers[0].name = hostile.to_owned();
            }
        }
    }
    let page = page(&document);
    assert_eq!(page.matches("<script").count(), 1, "only the document's own");
    assert_eq!(page.matches("</script>").count(), 1);
    let (before, json) = page.split_once("id=\"document\">").expect("the document is in it");
    assert!(!before.contains("<img") && !before.contains("\" onload") && !before.contains('\u{202e}'));
    assert!(!before.contains('\u{0}'));
    let (json, _) = json.split_once("</script>").expect("it ends");
    assert_eq!(Document::from_json(json), Ok(document));
}

#[test]
fn a_red_run_shows_its_reasons_and_no_figure() {
    let mut document = two_runs();
    document.runs[0].colour = Colour::Red;
    document.runs[0].reasons = vec!["7 arrivals were due and never sent".to_owned()];
    let page = page(&document);
    let (shown, _) = page.split_once("<script").expect("the document is in it");
    assert!(shown.contains("not a result") && shown.contains("7 arrivals"));
    assert!(!shown.contains("247.5") && !shown.contains("250 requests a second"), "what the red run found");
    assert!(shown.contains("495 to 505") && shown.contains("500 requests a second at the most."));
}

#[test]
fn the_page_needs_no_network() {
    let page = page(&two_runs());
    let (before, _) = page.split_once("id=\"document\">").expect("the document is in it");
    for word in ["src=", "@import", "url(", "http:"] {
        assert!(!before.contains(word), "{word}");
    }
    assert_eq!(before.matches("https://").count(), 2, "only the setting that says what was measured");
}

#[test]
fn what_is_wrong_with_a_document_is_said() {
    let check = |json: &str, place: &str, message: &str| {
        let error = Document::from_json(json).expect_err(json);
        assert_eq!(error.place, place, "{error}");
        assert!(error.message.contains(message), "{error}");
    };
    let with =
        |run: &str| format!(r#"{{"schema":"pointsman-bench/1","title":"","runs":[{{"name":"a",{run}}}]}}"#);
    check("{", "", "no JSON");
    check("[]", "", "an object is wanted");
    check("{}", "schema", "missing");
    check(r#"{"schema":"other/9"}"#, "schema", "`other/9` is not known");
    check(r#"{"schema":"pointsman-bench/1","title":1}"#, "title", "a text is wanted");
    check(r#"{"schema":"pointsman-bench/1","title":"","more":1}"#, "more", "not known");
    check(&with(r#""verdict":{"colour":"blue"}"#), "runs[0].verdict.colour", "`blue` is no colour");
    let green = |rest: &str| with(&format!(r#""verdict":{{"colour":"green"}},{rest}"#));
    check(
        &green(r#""figures":[{"name":"a","unit":"b","value":"c"}]"#),
        "runs[0].figures[0].value",
        "a number is wanted",
    );
    check(&green(r#""machine":{"a":1}"#), "runs[0].machine.a", "a text is wanted");
    let chart = r#""charts":[{"id":"a","title":"b","x":{"label":""},"y":{"label":""},"lines":[{"name":"","points":[[1]]}]}]"#;
    check(&green(chart), "runs[0].charts[0].lines[0].points[0]", "2 numbers");
    check(&format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000)), "", "no JSON");
}
