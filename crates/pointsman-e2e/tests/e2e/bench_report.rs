//! The bench's report in a browser: it draws what its JSON says, complains of nothing, and looks as it is kept.

use std::path::Path;

use pointsman_e2e::{Browser, ends, folder, workspace};
use serde_json::Value;

/// Two runs that were measured once.
const RUNS: &str = "testdata/bench/runs.json";
/// What their report looks like.
const PICTURE: &str = "docs/guide/bench-report.png";
/// Of the pixels so many may be another colour than in the picture that is kept: fonts are those of the machine.
const DIFFERENCE_MAX: f64 = 0.06;
/// Half a pixel of a chart, and what its ticks are rounded by.
const PLACE_MAX: f64 = 0.6;

/// All charts of the page: where their ticks are and say, and where their points, crosses and bars are.
const DRAWN: &str = r"JSON.stringify([...document.querySelectorAll('figure svg')].map(svg => {
    const all = (what, of) => [...svg.querySelectorAll(what)].map(of);
    const number = (element, name) => Number(element.getAttribute(name));
    return {
        title: svg.querySelector('text.head').textContent,
        x: all('text.x', text => [text.textContent, number(text, 'x')]),
        y: all('text.y', text => [text.textContent, number(text, 'y') - 4]),
        circles: all('circle', circle => [number(circle, 'cx'), number(circle, 'cy')]),
        crosses: all('path.cross', path => path.getAttribute('d')).slice(0),
        bars: all('rect', rect => [number(rect, 'y'), number(rect, 'height')]),
        bands: all('path.band', path => path.getAttribute('d').split(/[ML]/).length - 1),
        width: svg.getBoundingClientRect().width,
    };
}))";

/// Colours as they are seen: the page, its text, and a verdict on its ground.
const COLOURS: &str = r"JSON.stringify((() => {
    const style = element => getComputedStyle(document.querySelector(element));
    const badge = style('.verdict strong');
    return [style('body').backgroundColor, style('body').color, badge.backgroundColor, badge.color];
})())";

fn read(text: &Value) -> Value {
    serde_json::from_str(text.as_str().expect("a text")).expect("JSON")
}

fn document(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("it is there")).expect("JSON")
}

/// A page of a document, and a browser that has it open; nothing where there is no browser.
fn opened(json: &Path, page: &Path) -> Option<Browser> {
    let words = ["bench", "report", json.to_str().expect("a path"), "-o", page.to_str().expect("a path")];
    ends(workspace(), &words, 0, &[]);
    let mut browser = Browser::start(1400, 900)?;
    browser.medium("screen", "light");
    browser.open(page);
    Some(browser)
}

/// From what an axis says at its ticks to where a value is.
struct Scale {
    is_log: bool,
    ends: [(f64, f64); 2],
}

impl Scale {
    fn of(ticks: &Value, axis: &Value) -> Self {
        let ticks = ticks.as_array().expect("ticks");
        let tick = |tick: &Value| {
            let text = tick[0].as_str().expect("a text").replace(',', "");
            (text.parse().expect("a number"), tick[1].as_f64().expect("a place"))
        };
        Self {
            is_log: axis["log"] == true,
            ends: [tick(&ticks[0]), tick(ticks.last().expect("at least two"))],
        }
    }

    fn place(&self, value: f64) -> f64 {
        let on_axis = |value: f64| if self.is_log { value.ln() } else { value };
        let [(low, from), (high, to)] = self.ends;
        from + (on_axis(value) - on_axis(low)) / (on_axis(high) - on_axis(low)) * (to - from)
    }
}

/// Each chart is drawn as its data say.
fn check_chart(chart: &Value, drawn: &Value) {
    let name = chart["title"].as_str().expect("a title");
    assert_eq!(drawn["title"], name);
    assert!(drawn["width"].as_f64().expect("a width") > 300.0, "{name} is too small to read");
    let y = Scale::of(&drawn["y"], &chart["y"]);
    let Some(lines) = chart["lines"].as_array() else { return check_bars(chart, drawn, &y) };
    let x = Scale::of(&drawn["x"], &chart["x"]);
    let shown = |axis: &Value, value: &Value| axis["log"] != true || value.as_f64().expect("a number") > 1e-9;
    let points: Vec<&Value> = lines
        .iter()
        .filter(|line| line["scattered"] != true)
        .flat_map(|line| line["points"].as_array().expect("points"))
        .filter(|point| shown(&chart["x"], &point[0]) && shown(&chart["y"], &point[1]))
        .collect();
    let circles = drawn["circles"].as_array().expect("circles");
    assert_eq!(circles.len(), points.len(), "{name}");
    for (point, circle) in points.iter().zip(circles) {
        for (scale, at) in [(&x, 0), (&y, 1)] {
            let expected = scale.place(point[at].as_f64().expect("a number"));
            let found = circle[at].as_f64().expect("a place");
            assert!((expected - found).abs() < PLACE_MAX, "{name}: {point} is at {circle}, not {expected}");
        }
    }
    let bands = lines.iter().filter(|line| line["band"].as_array().is_some_and(|band| band.len() > 1));
    let corners: Vec<usize> = bands.map(|line| 2 * line["band"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(drawn["bands"], serde_json::json!(corners), "{name}: an interval is not drawn");
}

fn check_bars(chart: &Value, drawn: &Value, y: &Scale) {
    let categories = chart["categories"].as_array().expect("categories").len();
    let layers = chart["layers"].as_array().expect("layers");
    let bars = drawn["bars"].as_array().expect("bars");
    assert_eq!(bars.len(), categories * layers.len());
    for category in 0..categories {
        for (at, layer) in layers.iter().enumerate() {
            let height = bars[category * layers.len() + at][1].as_f64().expect("a height");
            let expected = y.place(0.0) - y.place(layer["values"][category].as_f64().expect("a number"));
            assert!((height - expected).abs() < PLACE_MAX, "{layer}: {height}, not {expected}");
        }
    }
}

/// All charts of all runs that are results, in the order in which they are drawn.
fn check_charts(document: &Value, browser: &mut Browser) -> usize {
    let drawn = read(&browser.evaluate(DRAWN));
    let runs = document["runs"].as_array().expect("runs").iter();
    let charts: Vec<&Value> = runs
        .filter(|run| run["verdict"]["colour"] != "red")
        .flat_map(|run| run["charts"].as_array().expect("charts"))
        .collect();
    let mut ids: Vec<&Value> = Vec::new();
    charts.iter().for_each(|chart| {
        if !ids.contains(&&chart["id"]) {
            ids.push(&chart["id"])
        }
    });
    let in_order = ids.iter().flat_map(|id| charts.iter().filter(move |chart| &&chart["id"] == id));
    let in_order: Vec<_> = in_order.collect();
    assert_eq!(drawn.as_array().map(Vec::len), Some(in_order.len()));
    for (chart, drawn) in in_order.iter().zip(drawn.as_array().expect("charts")) {
        check_chart(chart, drawn);
    }
    in_order.len()
}

/// How far two colours are apart, as WCAG 2 has it: from 1 to 21.
fn contrast(one: &str, other: &str) -> f64 {
    let luminance = |colour: &str| {
        let inner = colour.split(['(', ')']).nth(1).expect("rgb(…)");
        let parts = inner.split(',').map(|part| part.trim().parse::<f64>().expect("a number") / 255.0);
        let linear = parts.map(|c| if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) });
        linear.zip([0.2126, 0.7152, 0.0722]).map(|(c, weight)| c * weight).sum::<f64>()
    };
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// `UPDATE_EXPECT=1` keeps the picture that there is now.
#[test]
fn a_report_in_a_browser_is_what_its_json_says() {
    let folder = folder(&[]);
    let (json, page) = (workspace().join(RUNS), folder.path().join("page.html"));
    let Some(mut browser) = opened(&json, &page) else { return };
    let document = document(&json);
    assert!(check_charts(&document, &mut browser) >= 8);
    let picture = browser.picture();
    let kept = workspace().join(PICTURE);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&kept, &picture).expect("a writable folder");
    }
    let difference = browser.difference(&picture, &std::fs::read(&kept).expect("it is kept"), 40);
    if difference > DIFFERENCE_MAX {
        let found = std::env::temp_dir().join("bench-report.png");
        std::fs::write(&found, &picture).expect("a writable folder");
        panic!("{difference} of the page is not as in {PICTURE}: see {}", found.display());
    }
    for (medium, scheme, ground) in [
        ("screen", "light", "rgb(255, 255, 255)"),
        ("screen", "dark", "rgb(18, 22, 28)"),
        ("print", "dark", "rgb(255, 255, 255)"),
    ] {
        browser.medium(medium, scheme);
        let colours = read(&browser.evaluate(COLOURS));
        let colour = |at: usize| colours[at].as_str().expect("a colour");
        assert_eq!(colour(0), ground, "{medium}, {scheme}");
        assert!(contrast(colour(0), colour(1)) > 7.0, "{medium}, {scheme}: {colours}");
        assert!(contrast(colour(2), colour(3)) > 4.5, "{medium}, {scheme}: {colours}");
    }
    // Nothing sticks out of a telephone.
    browser.medium("screen", "light");
    browser.resize(400, 800);
    assert_eq!(browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), true);
    assert_eq!(browser.complaints(), [""; 0]);
}

/// A picture that differs is found, and one that does not is not.
#[test]
fn pictures_are_compared() {
    let Some(mut browser) = Browser::start(400, 300) else { return };
    let white = browser.picture();
    browser.evaluate(
        "document.body.style = 'margin: 0; background: linear-gradient(90deg, #000 50%, #fff 50%)'",
    );
    let half = browser.picture();
    assert_eq!(browser.difference(&white, &white, 0), 0.0);
    let difference = browser.difference(&white, &half, 40);
    assert!((0.45..0.55).contains(&difference), "{difference}");
    browser.resize(200, 300);
    let narrow = browser.picture();
    assert_eq!(browser.difference(&white, &narrow, 40), 1.0);
    browser.evaluate("console.error('seen')");
    assert!(browser.complaints().iter().any(|words| words.contains("seen")));
}
