//! Users before a server that knows them by their cookies: each is somebody else, and goes its way to the end.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use pointsman_bench::{
    Arrivals, Handshakes, Kind, Load, Manner, NullServer, NullTls, Outcome, Plan, Script, Think, Url, run,
};
use pointsman_e2e::Authority;
use pointsman_measure::chart::Content;

/// What the server was asked: by which connection, what, and with which cookies.
type Asked = (usize, String, String);

/// A server on a thread for each connection. It gives each one that has none a cookie, and answers `/bad` with 404.
struct Shop {
    url: Url,
    asked: Receiver<Asked>,
}

impl Shop {
    fn start() -> Shop {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let url = Url::parse(&format!("http://{}/", listener.local_addr().expect("bound"))).expect("a URL");
        let (say, asked) = channel();
        // It ends with the test's process.
        std::thread::spawn(move || {
            for (number, socket) in listener.incoming().flatten().enumerate() {
                let say = say.clone();
                std::thread::spawn(move || serve(number, socket, &say));
            }
        });
        Shop { url, asked }
    }

    /// All that was asked behind the probe.
    fn all(&self) -> Vec<Asked> {
        self.asked.try_iter().skip(1).collect()
    }
}

/// Until the client closes.
fn serve(number: usize, socket: TcpStream, say: &Sender<Asked>) -> Option<()> {
    let mut reader = BufReader::new(socket.try_clone().ok()?);
    loop {
        let (mut first, mut cookie) = (String::new(), String::new());
        if reader.read_line(&mut first).ok()? == 0 {
            return None;
        }
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            if let Some(value) = line.strip_prefix("Cookie: ") {
                cookie = value.trim_end().to_owned();
            }
            if line == "\r\n" {
                break;
            }
        }
        let path = first.split(' ').nth(1)?.to_owned();
        let (status, body) = if path == "/bad" { ("404 Not Found", "") } else { ("200 OK", "hello") };
        let given = match cookie.is_empty() {
            true => format!("Set-Cookie: id={number}; Path=/\r\nSet-Cookie: deep=1; Path=/deep\r\n"),
            false => String::new(),
        };
        let is_last = path == "/last";
        say.send((number, path, cookie)).ok()?;
        if is_last {
            let answer = "HTTP/1.1 200 OK\r\nSet-Cookie: last=1; Path=/\r\nConnection: close\r\n\r\nhello";
            return (&socket).write_all(answer.as_bytes()).ok();
        }
        let head = format!("HTTP/1.1 {status}\r\n{given}Content-Length: {}\r\n\r\n{body}", body.len());
        (&socket).write_all(head.as_bytes()).ok()?;
    }
}

fn plan(url: &Url, text: &str, load: Load) -> Plan {
    let script = Script::parse(text, Some(url), &mut |_| unreachable!("no files")).expect("a script");
    let mut plan = Plan::of_sessions(script, load);
    plan.warm_up = Duration::ZERO;
    plan.time = Duration::from_millis(1000);
    plan
}

fn outcome(plan: &Plan) -> Outcome {
    let outcome = run(plan, &mut |_| {}).expect("it answers");
    assert!(outcome.voids.is_empty(), "{:?}", outcome.voids);
    outcome
}

/// What the chart of throughput says is demanded.
fn demanded(outcome: &Outcome) -> Vec<(f64, f64)> {
    let charts = outcome.report("it").charts;
    let throughput = charts.into_iter().find(|chart| chart.id == "throughput").expect("a chart");
    let Content::Lines(lines) = throughput.content else { panic!("lines") };
    lines.into_iter().find(|line| line.name == "demanded").expect("of an open loop").points
}

#[test]
fn each_user_is_somebody_else_and_keeps_its_cookies() {
    let open = Load::Open { rate: 40.0, arrivals: Arrivals::Uniform };
    for load in [Load::Closed { clients: 3 }, open] {
        let shop = Shop::start();
        let text = "think 5ms\nGET /\nGET /deep/a?b={n}\n  think exp:10ms\nGET /bad\n  expect 404\n";
        let outcome = outcome(&plan(&shop.url, text, load));
        let record = outcome.record.sessions.as_deref().expect("sessions");
        assert!(record.ended > 20 && record.failed == 0 && record.unsent == 0, "{load:?}: {record:?}");
        assert_eq!(outcome.record.failed(), 0, "a 404 that is expected is none");
        assert_eq!(record.due, record.ended + record.cut());
        assert_eq!(record.whole.len(), record.ended);
        assert!(record.whole.min() >= 5_000_000 && record.whole.mean() > record.waited.mean() + 1e7);
        assert!(record.steps[0].answered >= record.steps[2].answered, "{record:?}");
        assert!(record.steps[2].answered >= record.ended);
        let all = shop.all();
        for (connection, path, cookie) in &all {
            let own = format!("id={connection}");
            let expected = match path.as_str() {
                "/" => String::new(),
                "/bad" => own,
                _ => format!("deep=1; {own}"),
            };
            assert_eq!(*cookie, expected, "{path}: each session has a connection and a jar of its own");
        }
        let begun = all.iter().filter(|(_, path, _)| path == "/").count() as u64;
        assert!(begun >= record.ended, "{begun}");
        if let Load::Open { .. } = load {
            assert_eq!(demanded(&outcome), [(0.0, outcome.demanded()), (1.0, outcome.demanded())]);
            assert!(outcome.demanded() > 60.0, "requests, and not sessions");
        }
    }
}

/// What has no length ends with its connection, and its cookies are kept all the same.
#[test]
fn a_session_keeps_the_cookies_of_an_answer_that_ends_its_connection() {
    let shop = Shop::start();
    let plan = plan(&shop.url, "GET /last\nGET /behind\n", Load::Closed { clients: 2 });
    let record = outcome(&plan).record;
    let ended = record.sessions.as_deref().map_or(0, |sessions| sessions.ended);
    assert!(ended > 10 && record.failed() == 0, "{ended} ended");
    let cookies: Vec<String> =
        shop.all().into_iter().filter(|asked| asked.1 == "/behind").map(|asked| asked.2).collect();
    assert!(cookies.len() > 10 && cookies.iter().all(|cookie| cookie.contains("last=1")), "{cookies:?}");
}

#[test]
fn a_session_ends_where_a_step_fails() {
    let shop = Shop::start();
    let text = "GET /\nGET /bad\nGET /never\n";
    let plan = plan(&shop.url, text, Load::Closed { clients: 2 });
    let outcome = run(&plan, &mut |_| {}).expect("it answers");
    let record = outcome.record.sessions.as_deref().expect("sessions");
    assert!(record.failed > 10 && record.ended == 0, "{record:?}");
    assert_eq!((record.steps[2].answered, record.steps[0].failed), (0, 0));
    assert!(record.steps[1].failed >= record.failed);
    assert!(shop.all().iter().all(|(_, path, _)| path != "/never"));
    assert_eq!(outcome.voids.iter().map(|void| void.code).collect::<Vec<_>>(), ["no sessions"]);
    let json = outcome.json();
    assert_eq!(json["sessions"]["failed"], record.failed);
    assert_eq!(json["sessions"]["steps"][1]["name"], "GET /bad");
}

#[test]
fn a_user_resumes_its_own_tls_session_and_nobody_elses() {
    let pair = Authority::new("bench").server(&["localhost"]);
    let tls = NullTls { certificate: pair.certificate, key: pair.key, resumes: true };
    let manner = Manner { tls: Some(tls), ..Manner::default() };
    let server = NullServer::start("127.0.0.1:0".parse().expect("an address"), &manner).expect("loopback");
    let url = Url::parse(&format!("https://{}/", server.address())).expect("a URL");
    let of_kind = |outcome: &Outcome, kind| -> u64 {
        outcome.negotiated.iter().filter(|(agreed, _)| agreed.kind == kind).map(|(_, count)| count).sum()
    };
    let mut kept = plan(&url, "GET /a\nGET /b\nGET /c", Load::Closed { clients: 2 });
    kept.verify = false;
    let one_each = outcome(&kept);
    let record = one_each.record.sessions.as_deref().expect("sessions");
    let full = of_kind(&one_each, Kind::Full);
    assert!((record.ended..=record.ended + 4).contains(&full), "{full} {record:?}");
    assert_eq!(of_kind(&one_each, Kind::Resumed), 0);
    kept.handshakes = Handshakes::Resumed(1.0);
    let resumed = outcome(&kept);
    let (full, again) = (of_kind(&resumed, Kind::Full), of_kind(&resumed, Kind::Resumed));
    // The first connection of a session has nothing to resume, the two others do.
    assert!(full * 2 <= again + 8 && again <= full * 2, "{full} {again}");
    assert!(resumed.voids.is_empty(), "who is new has nothing to resume: {:?}", resumed.voids);
}

#[test]
fn sessions_that_find_no_room_are_counted() {
    let shop = Shop::start();
    let load = Load::Open { rate: 100.0, arrivals: Arrivals::Uniform };
    let mut plan = plan(&shop.url, "GET /\n  think 10s\nGET /b", load);
    plan.connections_max = 5;
    let outcome = run(&plan, &mut |_| {}).expect("it answers");
    let record = outcome.record.sessions.as_deref().expect("sessions");
    assert_eq!((record.due, record.unsent, record.cut()), (100, 95, 5), "{record:?}");
    assert_eq!(outcome.record.due, outcome.record.begun + outcome.record.unsent);
    assert_eq!(plan.think, Think::None);
}
