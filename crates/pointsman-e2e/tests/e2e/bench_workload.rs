//! A WebBench workload and orders that grow, before a server that says what it was asked for.

use pointsman_e2e::{Origin, ends, folder, ok, pointsman};
use serde_json::Value;

const WORKLOAD: &str = "\
DEFINE_CLASSES
    CLASS_small:  60
    CLASS_gone:   10
    CLASS_404:    30
DEFINE_REQUESTS
    CLASS_small:
        GET /small/1
        GET /small/2
    CLASS_gone:
        GET /nowhere/that/should/be
    CLASS_404:
        GET /nowhere
";

fn shop() -> Origin {
    Origin::answering("shop", |exchange| match exchange.target().starts_with("/nowhere") {
        true => exchange.answer("404 Not Found", "gone"),
        false => ok(exchange),
    })
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn each_class_is_counted_for_each_number_of_clients() {
    let origin = shop();
    let folder = folder(&[("static.wl", WORKLOAD)]);
    let url = format!("http://{}", origin.address());
    let words = [
        "bench",
        "workload",
        "static.wl",
        &url,
        "--clients",
        "1,3",
        "--time",
        "1s",
        "--warm-up",
        "100ms",
        "--delay",
        "10ms",
        "--csv",
        "a.csv",
        "--xlsx",
        "a.xlsx",
        "--save",
        "a.json",
        "--report",
        "a.html",
    ];
    let finished = pointsman(folder.path(), &words);
    // A machine that is busy gives no result, and says so.
    assert!((0..=1).contains(&finished.code), "{}", finished.output());
    let read = |name: &str| std::fs::read(folder.path().join(name)).expect("it is written");
    let csv = String::from_utf8(read("a.csv")).expect("text");
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), ["clients", "1", "3"], "{csv}");
    assert!(csv.contains("CLASS_404: bytes/s") && rows.iter().all(|row| row.len() == rows[0].len()), "{csv}");
    assert_eq!(read("a.xlsx")[..2], *b"PK");
    assert!(String::from_utf8(read("a.html")).expect("text").contains("Workload on"));
    let document = json(&String::from_utf8(read("a.json")).expect("text"));
    let steps = document["runs"][0]["outcome"]["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), 2);
    for step in steps {
        let number = |value: &Value| value.as_f64().expect("a number");
        let answered = number(&step["requests"]["answered_in_time"]);
        let classes = step["classes"].as_array().expect("classes");
        for (class, share) in classes.iter().zip([0.6, 0.1, 0.3]) {
            let came = number(&class["answered_in_time"]) / answered;
            // Five standard errors.
            let slack = 5.0 * (share * (1.0 - share) / answered).sqrt();
            assert!((came - share).abs() < slack, "{class}: {came} of {answered}");
        }
        assert_eq!(number(&classes[0]["failed"]), 0.0, "{classes:?}");
        assert!(number(&classes[1]["failed"]) > 0.0, "404 is wrong there: {classes:?}");
        assert_eq!(number(&classes[2]["failed"]), 0.0, "404 is right: {classes:?}");
        assert_eq!(step["requests"]["failed"], classes[1]["failed"]);
        let bytes: f64 = classes.iter().map(|class| number(&class["bytes_received"])).sum();
        // The answers at the ends of the time are counted by when they are whole.
        let all = number(&step["requests"]["bytes_received"]);
        assert!((bytes / all - 1.0).abs() < 0.05, "{bytes} of {all}");
    }
}

#[test]
fn orders_of_each_size_are_sent_as_often() {
    let origin = shop();
    let folder = folder(&[]);
    let url = format!("http://{}/orders", origin.address());
    let words = [
        "bench",
        "workload",
        "--orders=1,40",
        &url,
        "--every",
        "20ms",
        "--repeat",
        "10",
        "--csv",
        "a.csv",
        "--json",
    ];
    let finished = pointsman(folder.path(), &words);
    assert!((0..=1).contains(&finished.code), "{}", finished.output());
    let steps = json(&finished.stdout)["runs"][0]["outcome"]["steps"].clone();
    for (step, items) in steps.as_array().expect("steps").iter().zip([1, 40]) {
        assert_eq!(step["items"], items);
        assert_eq!(step["outcome"]["requests"]["due"], 10, "{}", step["outcome"]["requests"]);
        let sent =
            origin.requests().into_iter().filter(|request| request.body.bytes.len() as u64 == step["bytes"]);
        assert!(sent.count() >= 10, "orders of {} bytes", step["bytes"]);
    }
    let csv = std::fs::read_to_string(folder.path().join("a.csv")).expect("it is written");
    assert!(csv.starts_with("items,bytes,answered,failed,verdict,mean,"), "{csv}");
    let order =
        origin.requests().into_iter().find(|request| request.head.word(0) == "POST").expect("an order");
    assert_eq!(order.head.field("content-type"), Some("application/xml"));
}

#[test]
fn what_is_wrong_is_said() {
    let folder = folder(&[("static.wl", WORKLOAD), ("bad.wl", &WORKLOAD.replace("60", "61"))]);
    let says = |words: &[&str], said: &str| ends(folder.path(), words, 2, &[said]);
    says(&["bench", "workload", "bad.wl", "http://127.0.0.1:1"], "bad.wl:2:5");
    says(&["bench", "workload", "static.wl", "http://127.0.0.1:1/path"], "paths are the workload's");
    says(&["bench", "workload", "static.wl", "http://127.0.0.1:1"], "cannot ask");
    says(&["bench", "report", "static.wl"], "this is no JSON");
}
