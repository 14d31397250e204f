//! Bytes a second by size, before servers that answer with as many bytes as they are asked for, or do not.

use std::time::Duration;

use pointsman_bench::{Bulk, Bulked, Handshakes, Load, Manner, NullServer, Protocol, Url, Way, haul};
use pointsman_measure::chart::Content;
use pointsman_measure::verdict::Colour;

use super::{of_tls, plan, started, tls};

/// Room for a few bodies of some MiB on a busy machine, too.
const TRIAL: Duration = Duration::from_millis(800);

/// Two clients of a server that is asked for `/bytes/{size}`.
fn bulk(scheme: &str, server: &NullServer, sizes: &[u64]) -> Bulk {
    let load = Load::Closed { clients: 2 };
    let mut plan = match scheme {
        "https" => of_tls(server, load, Handshakes::Keep),
        _ => plan(scheme, server, load),
    };
    plan.targets[0].url =
        Url::parse(&format!("{scheme}://{}/bytes/{{size}}", server.address())).expect("a URL");
    (plan.warm_up, plan.time) = (Duration::from_millis(100), TRIAL);
    Bulk { plans: vec![plan], way: Way::Down, sizes: sizes.to_vec(), rounds: 1 }
}

fn hauled(bulk: &Bulk) -> Bulked {
    haul(bulk, &mut |_| {}).expect("it answers")
}

/// Whatever a busy machine makes of the generator: what came is right.
fn is_whole(found: &Bulked, at: usize, size: u64) {
    let trial = &found.trials[at];
    assert_eq!((trial.size, trial.voids.len()), (size, 0), "{:?}", trial.voids);
    let by_answers = trial.answers_per_s * size as f64;
    assert!(by_answers > 0.0, "{trial:?}");
    // Bodies of both clients may be under way at either end.
    let at_the_ends = 4.0 * size as f64 / TRIAL.as_secs_f64();
    assert!((trial.payload_per_s - by_answers).abs() <= at_the_ends, "{} {by_answers}", trial.payload_per_s);
    assert!(trial.own_us_per_mib.is_some_and(|us| us > 0.0), "{trial:?}");
}

#[test]
fn bodies_of_each_size_come_whole_with_each_suite() {
    let server = started(&tls(false));
    let sizes = [1, 70_000, 2 << 20];
    let mut asked = bulk("https", &server, &sizes);
    let suites = ["TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"];
    asked.plans[0].offer.suites = suites.map(str::to_owned).to_vec();
    let found = hauled(&asked);
    for (at, trial) in found.trials.iter().enumerate() {
        is_whole(&found, at, sizes[at / 2]);
        assert_eq!(trial.suite, suites[at % 2]);
    }
    for (agreed, suite) in found.negotiated.iter().zip(suites) {
        assert!(agreed.iter().all(|(agreed, _)| agreed.suite == suite), "{agreed:?}");
    }
    assert_eq!((found.rows.len(), found.rows[0].times_first), (6, None));
    let run = found.report("it");
    assert_eq!(
        (run.tables[0].rows.len(), run.outcome.map(|all| all["kind"].clone())),
        (6, Some("bulk".into()))
    );
    let counted = found.rows.iter().filter(|row| row.payload_per_s.is_some()).count();
    assert_eq!(run.figures.iter().filter(|figure| figure.name.starts_with("payload, ")).count(), counted);
    let Content::Lines(lines) = &run.charts[0].content else { panic!("lines") };
    let points: usize = lines.iter().filter(|line| !line.is_scattered).map(|line| line.points.len()).sum();
    assert_eq!(points, counted);
}

#[test]
fn http2_has_bodies_without_their_frames() {
    let server = started(&Manner { body_bytes: 50_000, ..Manner::default() });
    let mut asked = bulk("http", &server, &[50_000]);
    asked.plans[0].protocol = Protocol::Http2;
    is_whole(&hauled(&asked), 0, 50_000);
}

#[test]
fn bodies_go_to_the_server_too() {
    let (plain, over_tls) = (started(&Manner::default()), started(&tls(false)));
    let sizes = [1, 70_000, 3 << 20];
    let up = |scheme: &str, server: &NullServer| {
        let mut asked = Bulk { way: Way::Up, ..bulk(scheme, server, &sizes) };
        let target = &mut asked.plans[0].targets[0];
        (target.url.target, target.method) = ("/".to_owned(), "POST".to_owned());
        asked
    };
    let mut with_h2 = up("http", &plain);
    with_h2.plans[0].protocol = Protocol::Http2;
    for asked in [up("http", &plain), up("https", &over_tls), with_h2] {
        let found = hauled(&asked);
        for (trial, size) in found.trials.iter().zip(sizes) {
            assert_eq!((trial.size, trial.voids.len()), (size, 0), "{:?}", trial.voids);
            // Each right answer is a body.
            let by_answers = trial.answers_per_s * size as f64;
            assert!(
                by_answers > 0.0 && (trial.payload_per_s - by_answers).abs() < 1e-6 * by_answers,
                "{trial:?}"
            );
            assert!(trial.own_us_per_mib.is_some_and(|us| us > 0.0), "{trial:?}");
        }
        let run = found.report("it");
        assert_eq!(
            (run.settings["bodies"].as_str(), &run.outcome.expect("all")["way"]),
            ("to the server", &"up".into())
        );
    }
    // Whatever a server sends instead is no upload.
    let limiter =
        Manner { capacity: Some(1.0), service: pointsman_bench::Service::Limiter, ..Manner::default() };
    let refuses = started(&limiter);
    let row = &hauled(&Bulk { sizes: vec![100], ..up("http", &refuses) }).rows[0];
    assert_eq!((row.colour, row.payload_per_s), (Colour::Red, None));
}

#[test]
fn bodies_of_another_size_are_no_result() {
    let server = started(&Manner { body_bytes: 100, ..Manner::default() });
    let mut asked = bulk("http", &server, &[100, 200]);
    asked.plans[0].targets[0].url.target = "/all?{size}".to_owned();
    let found = hauled(&asked);
    is_whole(&found, 0, 100);
    let row = &found.rows[1];
    assert_eq!((row.colour, row.payload_per_s), (Colour::Red, None));
    assert!(row.reasons[0].contains("bodies of 100 bytes came, and 200 were asked for"), "{:?}", row.reasons);
}

#[test]
fn a_server_that_keeps_no_connection_is_no_result() {
    let server = started(&Manner { closes: true, ..Manner::default() });
    let found = hauled(&bulk("http", &server, &[100]));
    assert!(
        found.rows[0].reasons[0].contains("the server does not keep them"),
        "{:?}",
        found.rows[0].reasons
    );
}

#[test]
fn what_cannot_be_run_is_void_and_the_rest_is_kept() {
    let (plain, over_tls) = (started(&Manner::default()), started(&tls(false)));
    let mut asked = bulk("http", &plain, &[1000]);
    let mut other = bulk("https", &over_tls, &[1000]).plans.remove(0);
    // Nobody knows its certificate.
    other.verify = true;
    asked.plans.push(other);
    asked.rounds = 2;
    let found = hauled(&asked);
    assert_eq!(found.trials.len(), 3, "it is tried once");
    is_whole(&found, 0, 1000);
    assert_eq!(found.rows[1].colour, Colour::Red);
    assert!(found.rows[1].reasons[0].contains("cannot ask https://"), "{:?}", found.rows[1].reasons);
    asked.plans.swap(0, 1);
    assert!(haul(&asked, &mut |_| {}).is_err(), "nothing was measured before");
}
