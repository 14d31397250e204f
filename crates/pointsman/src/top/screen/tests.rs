//! A view on terminals of several sizes.

use super::*;
use crate::top::scrape::Scrape;
use crate::top::view::Times;

/// A switch with a listener, two servers and two rules, of which one has no place of its own.
fn view() -> View {
    let page = |requests: u64| {
        let page = format!(
            "pointsman_build_info{{version=\"1.2.3\"}} 1\npointsman_start_time_seconds 1000\n\
             pointsman_plan_generation 7\npointsman_connections_open{{listener=\"shop\"}} 3\n\
             pointsman_requests_total{{listener=\"shop\",status=\"2xx\"}} {requests}\n\
             pointsman_requests_total{{listener=\"shop\",status=\"5xx\"}} 0\n\
             pointsman_request_duration_seconds_bucket{{listener=\"shop\",le=\"0.001024\"}} {requests}\n\
             pointsman_request_duration_seconds_bucket{{listener=\"shop\",le=\"+Inf\"}} {requests}\n\
             pointsman_rule_hits_total{{listener=\"shop\",rule=\"R1\"}} {requests}\n\
             pointsman_rule_hits_total{{listener=\"shop\",rule=\"odd\x1b[2J\"}} {requests}\n\
             pointsman_rule_responses_total{{listener=\"shop\",rule=\"R1\",status=\"5xx\"}} {requests}\n\
             pointsman_rule_responses_total{{listener=\"shop\",rule=\"(other)\",status=\"4xx\"}} {requests}\n\
             pointsman_rule_request_duration_seconds_bucket{{listener=\"shop\",rule=\"R1\",le=\"0.001024\"}} {requests}\n\
             pointsman_server_request_duration_seconds_bucket{{pool=\"fast\",server=\"one\",le=\"0.002048\"}} {requests}\n\
             pointsman_server_requests_total{{pool=\"fast\",server=\"one\"}} {requests}\n\
             pointsman_server_requests_total{{pool=\"fast\",server=\"two\"}} 0\n\
             pointsman_server_failures_total{{pool=\"fast\",server=\"one\",kind=\"connect\"}} {requests}\n\
             pointsman_server_up{{pool=\"fast\",server=\"one\"}} 1\n\
             pointsman_server_up{{pool=\"fast\",server=\"two\"}} 0\n\
             pointsman_server_in_flight_requests{{pool=\"fast\",server=\"one\"}} 2\n"
        );
        Scrape::read(&page).expect("a page")
    };
    View::between(&page(0), &page(4), Times { seconds: 1.0, now_s: 1090.0 })
}

#[test]
fn all_is_on_the_screen() {
    let expected = "\
pointsman 1.2.3  generation 7  up 1 min  over 1.0 s
requests  4.0/s  in flight 2  waiting 0  connections 3  tunnels 0
status    2xx 4.0/s  3xx 0/s  4xx 0/s  5xx 0/s  1xx 0/s  none 0/s
times     p50 512 us  p99 1.0 ms
bytes     in 0 B/s  out 0 B/s
errors    server connect 4.0/s

LISTENER      REQ/S    4XX/S    5XX/S      P50      P99     OPEN
shop            4.0        0        0   512 us   1.0 ms        3

POOL  SERVER  STATE      REQ/S   FAIL/S  RETRY/S      P50      P99   FLIGHT     IDLE
fast  two     down           0        0        0        -        -        0        0
fast  one     up           4.0      4.0        0   1.0 ms   2.0 ms        2        0

LISTENER  RULE        HITS/S    SHARE    4XX/S    5XX/S      P50      P99     HITS
shop      R1             4.0   50.0 %        0      4.0   512 us   1.0 ms        4
shop      odd?[2J        4.0   50.0 %        -        -        -        -        4
shop      (other)        4.0   50.0 %      4.0        0        -        -        4";
    assert_eq!(lines(&view()).join("\n"), expected);
}

/// What matters least goes first, and only as much as has no room.
#[test]
fn narrow_terminals_have_fewer_figures() {
    let check = |columns, expected: [&str; 3]| {
        let size = Size { columns, rows: 100 };
        let shown = fitted(&view(), size, &mut 0, Colour::Never);
        let titles = shown.iter().filter(|line| line.starts_with(|letter: char| letter.is_uppercase()));
        let words = titles.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(words.collect::<Vec<_>>(), expected, "{columns}");
    };
    let listeners = "LISTENER REQ/S 4XX/S 5XX/S P50 P99 OPEN";
    let whole = [
        listeners,
        "POOL SERVER STATE REQ/S FAIL/S RETRY/S P50 P99 FLIGHT IDLE",
        "LISTENER RULE HITS/S SHARE 4XX/S 5XX/S P50 P99 HITS",
    ];
    check(84, whole);
    check(
        80,
        [
            listeners,
            "POOL SERVER STATE REQ/S FAIL/S RETRY/S P50 P99 FLIGHT",
            whole[2].trim_end_matches(" HITS"),
        ],
    );
    check(
        60,
        [
            "LISTENER REQ/S 4XX/S 5XX/S P50 P99",
            "POOL SERVER STATE REQ/S FAIL/S P99 FLIGHT",
            "LISTENER RULE HITS/S 4XX/S 5XX/S P99",
        ],
    );
    check(
        50,
        [
            "LISTENER REQ/S 4XX/S 5XX/S P99",
            "POOL SERVER STATE REQ/S FAIL/S P99",
            "LISTENER RULE HITS/S 5XX/S P99",
        ],
    );
}

#[test]
fn what_fits_is_shown_from_where_it_is_wanted() {
    let view = view();
    let whole = lines(&view);
    let check = |columns, rows, wanted: usize, expected: usize| {
        let mut first = wanted;
        let shown = fitted(&view, Size { columns, rows }, &mut first, Colour::Never);
        assert_eq!(first, expected, "{columns} {rows}");
        assert_eq!(shown.len(), rows.min(whole.len()));
        assert!(shown.iter().all(|line| line.chars().count() <= columns), "{shown:?}");
        let body = shown.get(HEAD_LINES..).unwrap_or_default();
        for (shown, whole) in body.iter().zip(&whole[HEAD_LINES + expected..]) {
            assert!(whole.starts_with(&**shown), "{shown:?} of {whole:?}");
        }
    };
    check(200, 100, 5, 0);
    check(200, whole.len(), 5, 0);
    check(200, whole.len() - 2, 5, 2);
    check(200, whole.len() - 2, 1, 1);
    check(20, 10, 3, 3);
    check(1, 3, 0, 0);
    check(0, 0, 0, 0);
}

#[test]
fn colours_take_no_room() {
    let view = view();
    let size = Size { columns: 40, rows: 50 };
    let plain = fitted(&view, size, &mut 0, Colour::Never);
    let coloured = fitted(&view, size, &mut 0, Colour::Ansi);
    assert_ne!(plain, coloured);
    let bare = |line: &String| {
        let pieces: Vec<&str> = line.split('\x1b').collect();
        let rest = pieces[1..].iter().map(|piece| piece.split_once('m').map_or("", |(_, text)| text));
        let text: String = std::iter::once(pieces[0]).chain(rest).collect();
        text.trim_end().to_owned()
    };
    assert_eq!(coloured.iter().map(bare).collect::<Vec<_>>(), plain);
}
