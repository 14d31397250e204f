//! Results of the bench in the console: they are drawn as their reports are, stand beside each other, and go nowhere.

use std::path::{Path, PathBuf};

use pointsman_e2e::{Browser, NullServer, ends, folder, pointsman, workspace};
use serde_json::{Value, json};

use super::{Shop, click};

/// Two runs that were measured once, and one of each kind.
pub(super) const RUNS: &str = "testdata/bench/runs.json";
const KINDS: &str = "testdata/bench/kinds.json";
const ODD: &str = "testdata/bench/odd.json";
const FIELD: &str = "document.querySelector('.opening input[type=file]')";
/// Tenths of pixels that end in five are rounded this way and that.
const PLACE_MAX: f64 = 0.11;
/// A column of charts, as wide as they are in a report.
const WIDTH: u32 = 720;

/// What charts draw, of a report and of the console. The legend of a report stands in its picture, that of the console beside it.
const DRAWN: &str = r"JSON.stringify([...document.querySelectorAll('figure')].map(figure => {
    // Nothing was measured where there is not a line of a raster.
    const svg = figure.querySelector('svg:has(.grid)') ?? document.createElement('svg');
    const isLegend = d => /h22$|^M\d+ \d+l/.test(d);
    const places = (what, names) => [...svg.querySelectorAll(what)].map(found => names.map(name => found.getAttribute(name)));
    const said = what => [...svg.querySelectorAll(what)].map(found => found.textContent);
    return {
        title: (figure.querySelector('text.head') ?? figure.querySelector('figcaption b')).textContent,
        labels: said('text.label').sort(),
        upwards: said('text.y'),
        ticks: places('text.y', ['x', 'y']),
        lines: places('path.line, path.curve', ['d']).flat().filter(d => !isLegend(d)),
        crosses: places('path.cross', ['d']).flat().filter(d => !isLegend(d)),
        bands: places('path.band', ['d']),
        circles: places('circle', ['cx', 'cy']),
        bars: places('rect', ['x', 'y', 'width', 'height']),
        said: said('circle title, rect title, .cross title'),
    };
}))";

/// All tables but that of what is opened, as their texts; what differs is marked by the style of a report.
const WRITTEN: &str = r"JSON.stringify([...document.querySelectorAll('table:not(.opened)')].map(table =>
    [...table.rows].map(row => [...row.cells].map(cell => cell.textContent.replace(' ≠', '').trim())
        .concat(row.matches('.differs, [data-differs]') ? ['≠'] : []))))";

pub(super) fn kept(name: &str) -> PathBuf {
    workspace().join(name)
}

fn read(text: &Value) -> Value {
    serde_json::from_str(text.as_str().expect("a text")).expect("JSON")
}

fn texts(browser: &mut Browser, selector: &str) -> Value {
    let script = format!(
        "JSON.stringify([...document.querySelectorAll({selector:?})].map(found => found.textContent))"
    );
    read(&browser.evaluate(&script))
}

pub(super) fn choose(browser: &mut Browser, files: &[&Path], runs: usize) {
    browser.wait_until(&format!("!!{FIELD}"));
    browser.choose(FIELD, files);
    browser.wait_until(&format!("document.querySelectorAll('.opened tbody tr').length === {runs}"));
}

/// Numbers in texts may be a little apart, all else is the same.
fn is_alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_alike(one, other))
        }
        (Value::String(one), Value::String(other)) => one == other || is_near(one, other),
        _ => one == other,
    }
}

fn is_near(one: &str, other: &str) -> bool {
    let pieces = |text: &str| {
        let spaced = text.replace(|c: char| !(c.is_ascii_digit() || "-.".contains(c)), " ");
        spaced.split(' ').filter_map(|word| word.parse::<f64>().ok()).collect::<Vec<_>>()
    };
    let letters = |text: &str| text.replace(|c: char| !c.is_ascii_alphabetic(), "");
    let (near, far) = (pieces(one), pieces(other));
    letters(one) == letters(other)
        && near.len() == far.len()
        && near.iter().zip(&far).all(|(one, other)| (one - other).abs() < PLACE_MAX)
}

#[test]
fn results_are_those_of_the_report() {
    are_those_of_the_report(&[KINDS, RUNS], 9, 15);
}

/// Axes that have no logarithm, values that are hardly apart, ranges that nobody knows.
#[test]
fn odd_charts_are_those_of_the_report() {
    are_those_of_the_report(&[ODD], 2, 9);
}

/// Each result is drawn twice, by the bench and by the console: all stands in the same place, in the same words.
fn are_those_of_the_report(files: &[&str], runs: usize, charts_min: usize) {
    let (shop, place) = (Shop::start(), folder(&[]));
    let Some(mut browser) = shop.open("#/bench") else { return };
    let page = place.path().join("report.html");
    let words = [&["bench", "report"], files, &["-o", page.to_str().expect("a path")]].concat();
    ends(workspace(), &words, 0, &[]);
    let mut judge = Browser::start(1400, 900).expect("as above");
    judge.open(&page);
    let expected = read(&judge.evaluate(DRAWN));
    let expected = expected.as_array().expect("charts");
    assert!(expected.len() > charts_min, "{expected:?}");
    browser.resize(WIDTH, 900);
    let files: Vec<PathBuf> = files.iter().map(|name| kept(name)).collect();
    choose(&mut browser, &files.iter().map(|file| &**file).collect::<Vec<_>>(), runs);
    let drawn = "document.querySelectorAll('figure:has(> svg), figure:has(.none)').length";
    browser.wait_until(&format!("{drawn} === {}", expected.len()));
    let found = read(&browser.evaluate(DRAWN));
    for (expected, found) in expected.iter().zip(found.as_array().expect("charts")) {
        for (part, expected) in expected.as_object().expect("parts") {
            let found_part = &found[part];
            assert!(is_alike(expected, found_part), "{}, {part}:\n{expected}\n{found_part}", found["title"]);
        }
    }
    let (expected, found) = (read(&judge.evaluate(WRITTEN)), read(&browser.evaluate(WRITTEN)));
    let (expected, found) = (expected.as_array().expect("tables"), found.as_array().expect("tables"));
    assert_eq!(expected.len(), found.len());
    for (expected, found) in expected.iter().zip(found) {
        let rows = |table: &Value| table.as_array().expect("rows").clone();
        let (expected, found) = (rows(expected), rows(found));
        expected.iter().zip(&found).for_each(|(expected, found)| assert_eq!(expected, found));
        assert_eq!(expected.len(), found.len());
    }
    let answers = texts(&mut browser, ".answer .told");
    assert_eq!(answers, texts(&mut judge, "p.answer"));
    assert_eq!(browser.complaints(), [""; 0]);
}

/// What the bench has just written, one as JSON and one as its report: which is first, which are shown, and that a red one has no figures.
#[test]
fn two_are_compared() {
    let (shop, server, place) = (Shop::start(), NullServer::start(&[]), folder(&[]));
    let Some(mut browser) = shop.open("#/bench") else { return };
    for (name, save, rate) in
        [("slow", ["--save", "slow.json"], "20"), ("quick", ["--report", "quick.html"], "40")]
    {
        let url = server.url("http");
        let load = ["bench", "load", &url, "--rate", rate, "--time", "1s", "--warm-up", "0", "--name", name];
        pointsman(place.path(), &[&load[..], &save].concat());
    }
    let files = ["slow.json", "quick.html"].map(|name| place.path().join(name));
    let red = place.path().join("red.json");
    let text = std::fs::read_to_string(&files[0]).expect("it is kept");
    let mut document: Value = serde_json::from_str(&text).expect("JSON");
    for colour in ["green", "red"] {
        document["runs"][0]["verdict"]["colour"] = colour.into();
        let file = if colour == "red" { &red } else { &files[0] };
        std::fs::write(file, document.to_string()).expect("a writable folder");
    }
    let page = std::fs::read_to_string(&files[1]).expect("it is drawn");
    // However busy this machine was.
    let page = page.replace("\"colour\":\"red\"", "\"colour\":\"green\"");
    std::fs::write(&files[1], page).expect("a writable folder");
    choose(&mut browser, &[&files[0], &files[1]], 2);
    let columns = |names: &[&str]| {
        let heads = "[...document.querySelectorAll('section[aria-labelledby=figures] thead th')].map(head => head.textContent).join()";
        let ratios = "[...document.querySelectorAll('[data-figure=demanded] td')].map(cell => cell.textContent.includes(' × ')).join()";
        let ratio_of = |at: usize| if at == 0 { "false" } else { "true" };
        let expected: Vec<_> = (0..names.len()).map(ratio_of).collect();
        format!("{heads} === '{}' && {ratios} === '{}'", names.join(","), expected.join(","))
    };
    browser.wait_until(&columns(&["slow", "quick"]));
    assert_eq!(texts(&mut browser, "[data-differs] th"), json!(["load.rate ≠"]));
    // The other one first.
    click(&mut browser, "[aria-label='quick first']");
    browser.wait_until(&columns(&["quick", "slow"]));
    click(&mut browser, "[data-run=quick] input");
    browser.wait_until(&columns(&["slow"]));
    // Pages come and go, and results stay.
    browser.evaluate("location.hash = '#/live'");
    browser.wait_until("!!document.querySelector('.totals')");
    browser.evaluate("location.hash = '#/bench'");
    browser.wait_until("document.querySelectorAll('.opened tbody tr').length === 2");
    click(&mut browser, "[aria-label='Close slow']");
    click(&mut browser, "[aria-label='Close quick']");
    browser.wait_until("!document.querySelector('.opened, .answer')");
    // What is no result has reasons and no figures.
    choose(&mut browser, &[&red], 1);
    browser.wait_until("document.querySelector('.answer .verdict').textContent === 'red'");
    assert_eq!(browser.evaluate("!!document.querySelector('figure, .tiles, [data-figure], .told')"), false);
    assert_eq!(browser.evaluate("!!document.querySelector('#circumstances')"), true);
    // Nothing was sent anywhere.
    let asked =
        "performance.getEntriesByType('resource').every(asked => !/bench|slow|quick/.test(asked.name))";
    assert_eq!(browser.evaluate(asked), true);
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Foreign and hostile files get a sentence, and the page stays as it was.
#[test]
fn what_is_no_result() {
    let (shop, place) = (Shop::start(), folder(&[]));
    let Some(mut browser) = shop.open("#/bench") else { return };
    let good = std::fs::read_to_string(kept("testdata/bench/small.json")).expect("it is kept");
    let with = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        good.replacen(from, to, 1)
    };
    let nested = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let many = format!("[{}]", vec!["{}"; 33].join(","));
    for (text, said) in [
        ("".to_owned(), "this is no JSON: "),
        ("{".to_owned(), "this is no JSON: "),
        ("GIF89a\u{0}\u{1b}[31m".to_owned(), "this is no JSON: "),
        (nested, ""),
        ("[]".to_owned(), "an object is wanted"),
        ("null".to_owned(), "an object is wanted"),
        ("{}".to_owned(), "`schema`: it is missing"),
        ("<html><body>hello</body></html>".to_owned(), "this page is no report: there is no document in it"),
        (with("bench/1", "bench/2"), "`schema`: `pointsman-bench/2` is not known; `pointsman-bench/1` is"),
        (with("\"amber\"", "\"blue\""), "`runs[0].verdict.colour`: `blue` is no colour"),
        (with("\"value\":500", "\"value\":\"500\""), "`runs[0].figures[0].value`: a number is wanted"),
        (
            with("[[1,2],[3,4]]", "[[1,2],[3]]"),
            "`runs[0].charts[0].lines[0].points[1]`: a list of 2 numbers is wanted",
        ),
        (with("\"answer\"", "\"__proto__\""), "`runs[0].__proto__`: this key is not known"),
        (with("\"title\":\"RSA", "\"more\":1,\"title\":\"RSA"), "`more`: this key is not known"),
        (
            format!("{{\"schema\": \"pointsman-bench/1\", \"title\": \"\", \"runs\": {many}}}"),
            "`runs`: 33 are too many",
        ),
    ] {
        let file = place.path().join("bad.json");
        std::fs::write(&file, &text).expect("a writable folder");
        browser.wait_until(&format!("!!{FIELD}"));
        browser.choose(FIELD, &[&file]);
        let is_said = format!(
            "document.querySelector('.opening .said').textContent.startsWith({:?})",
            format!("bad.json: {said}")
        );
        browser.wait_until(&is_said);
        assert_eq!(browser.evaluate("!!document.querySelector('.opened, .answer')"), false);
    }
    // Names are shown and do nothing.
    let bad = "<img src=x onerror=alert(1)>\u{202e}\u{1b}[31m";
    let hostile = good.replace("RSA < ECDSA", bad).replace("\"a\"", &json!(bad).to_string());
    let hostile =
        hostile.replace("\"Curve\"", &json!(bad).to_string()).replace("\"l\"", &json!(bad).to_string());
    let hostile = hostile.replace("\u{1b}", "\\u001b");
    let file = place.path().join("hostile.json");
    std::fs::write(&file, hostile).expect("a writable folder");
    choose(&mut browser, &[&file], 1);
    browser.wait_until("document.querySelectorAll('figure > svg').length === 2");
    let shown = "<img src=x onerror=alert(1)>\u{fffd}\u{fffd}[31m";
    assert_eq!(texts(&mut browser, ".opened th label"), json!([format!(" {shown}")]));
    assert_eq!(browser.evaluate("document.querySelectorAll('img').length"), 0);
    // It is said once, of the last files.
    assert_eq!(texts(&mut browser, ".opening .said"), json!([""]));
    // Dropped, anywhere on the page, it is opened, too.
    let small = json!(good).to_string();
    let drop = format!(
        "(() => {{ const files = new DataTransfer(); files.items.add(new File([{small}], 'dropped.json'));
            const dropped = new DragEvent('drop', {{ dataTransfer: files, bubbles: true, cancelable: true }});
            return document.querySelector('.bar').dispatchEvent(dropped); }})()"
    );
    assert_eq!(browser.evaluate(&drop), false, "the browser does not go there");
    browser.wait_until("document.querySelectorAll('.opened tbody tr').length === 2");
    assert_eq!(browser.complaints(), [""; 0]);
}
