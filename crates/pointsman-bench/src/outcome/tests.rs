//! What makes a run void.

use super::*;
use crate::Offer;
use pointsman_tls::OneVersion;

const AGREED: Negotiated = Negotiated {
    kind: Kind::Full,
    offered_session: false,
    version: "1.3",
    suite: "TLS_AES_128_GCM_SHA256",
    group: "secp256r1",
    protocol: "http/1.1",
};

fn codes(plan: &Plan, negotiated: &[(Negotiated, u64)]) -> Vec<&'static str> {
    let mut record = Record::new(1);
    (record.due, record.answered) = (10, 10);
    voids(plan, &record, negotiated).iter().map(|void| void.code).collect()
}

#[test]
fn handshakes_of_another_kind_void_a_run() {
    let mut plan = Plan::new(Vec::new(), Load::Closed { clients: 1 });
    let resumed = Negotiated { kind: Kind::Resumed, offered_session: true, ..AGREED };
    let refused = Negotiated { offered_session: true, ..AGREED };
    plan.handshakes = Handshakes::Full;
    assert_eq!(codes(&plan, &[(AGREED, 10)]).len(), 0);
    assert_eq!(codes(&plan, &[(AGREED, 10), (resumed, 1)]), ["resumed"]);
    plan.handshakes = Handshakes::Resumed(1.0);
    assert_eq!(codes(&plan, &[(AGREED, 1), (resumed, 9)]).len(), 0, "the first had nothing to resume");
    assert_eq!(codes(&plan, &[(resumed, 9), (refused, 1)]), ["not resumed"]);
    assert_eq!(codes(&plan, &[(AGREED, 9)]), ["not resumed"]);
    plan.handshakes = Handshakes::Keep;
    assert_eq!(codes(&plan, &[(resumed, 9), (refused, 1)]).len(), 0);
}

#[test]
fn full_handshakes_among_resumed_ones_are_as_many_as_may_be() {
    let url = crate::Url::parse("https://127.0.0.1/").expect("a URL");
    let target =
        crate::Target { url, weight: 1, method: "GET".into(), headers: Vec::new(), body: crate::Body::None };
    let mut plan = Plan::new(vec![target], Load::Closed { clients: 8 });
    let resumed = Negotiated { kind: Kind::Resumed, offered_session: true, ..AGREED };
    for (share, full, is_void) in [
        (1.0, 8, None),
        (1.0, 9, Some("not resumed")),
        (0.8, 200, None),
        (0.8, 300, Some("not resumed")),
        (0.8, 100, Some("resumed")),
        (0.1, 900, None),
    ] {
        let mut record = Record::new(1);
        (record.due, record.answered, record.connections_most) = (1000, 1000, 8);
        record.handshakes[Kind::Full as usize] = full;
        record.handshakes[Kind::Resumed as usize] = 1000 - full;
        plan.handshakes = Handshakes::Resumed(share);
        let negotiated = [(AGREED, full), (resumed, 1000 - full)];
        let codes: Vec<_> = voids(&plan, &record, &negotiated).iter().map(|void| void.code).collect();
        assert_eq!(codes, is_void.into_iter().collect::<Vec<_>>(), "{share} {full}");
    }
    plan.handshakes = Handshakes::Resumed(0.0);
    let fault = plan.check().expect_err("none is resumed");
    assert_eq!(fault.advice(), Some("say `--handshake full`"));
}

#[test]
fn what_was_pinned_is_what_was_agreed_on() {
    let mut plan = Plan::new(Vec::new(), Load::Closed { clients: 1 });
    plan.offer = Offer {
        version: Some(OneVersion::Tls13),
        suites: vec!["tls_aes_128_gcm_sha256".into()],
        groups: vec!["P-256".into()],
    };
    assert_eq!(codes(&plan, &[(AGREED, 3)]).len(), 0);
    for other in [
        Negotiated { version: "1.2", ..AGREED },
        Negotiated { suite: "TLS_AES_256_GCM_SHA384", ..AGREED },
        Negotiated { group: "X25519", ..AGREED },
        Negotiated { protocol: "h2", ..AGREED },
    ] {
        assert_eq!(codes(&plan, &[(AGREED, 3), (other, 1)]), ["negotiated"], "{other:?}");
    }
}

#[test]
fn shares_come_out_as_asked() {
    let mut plan = Plan::new(Vec::new(), Load::Closed { clients: 1 });
    plan.shares.persistent = Some(0.7);
    let mut record = Record::new(1);
    (record.due, record.answered, record.answered_kept) = (10_000, 10_000, 7_200);
    assert_eq!(voids(&plan, &record, &[]), []);
    record.answered_kept = 0;
    let void = &voids(&plan, &record, &[])[0];
    assert_eq!(void.sentence, "70.0 % of the requests were to be persistent, and 0.0 % were");
    // Heads say that all is kept, and connections that were opened tell another story.
    (record.answered_kept, record.connections_most) = (7_000, 10);
    for (opened, said) in [(3_010, None), (3_100, None), (10_000, Some("0.1 % were"))] {
        record.opened = opened;
        let voids = voids(&plan, &record, &[]);
        let ends = voids.first().map(|void| void.sentence.rsplit(", and ").next().unwrap_or_default());
        assert_eq!(ends, said, "{opened}");
    }
}

#[test]
fn what_is_spoken_is_what_was_agreed_on() {
    let mut plan = Plan::new(Vec::new(), Load::Closed { clients: 1 });
    let (none, h2) = (Negotiated { protocol: "", ..AGREED }, Negotiated { protocol: "h2", ..AGREED });
    assert_eq!(codes(&plan, &[(AGREED, 3), (none, 1)]).len(), 0, "without ALPN it is HTTP/1.1");
    plan.protocol = crate::Protocol::Http2;
    assert_eq!(codes(&plan, &[(h2, 3)]).len(), 0);
    for other in [AGREED, none] {
        assert_eq!(codes(&plan, &[(h2, 3), (other, 1)]), ["negotiated"], "{other:?}");
    }
}

#[test]
fn no_answer_is_no_result() {
    let plan = Plan::new(Vec::new(), Load::Closed { clients: 1 });
    let mut record = Record::new(1);
    record.due = 5;
    assert_eq!(voids(&plan, &record, &[])[0].code, "no answers");
    assert_eq!(nothing_measured(&record), None, "once is enough");
}

#[test]
fn nothing_measured_is_no_result() {
    for (due, answered, in_time, left, said) in [
        (5, 5, 4, 0, None),
        (
            5,
            5,
            0,
            0,
            Some("no answer came within the measured time, in which 5 requests were due: take a longer"),
        ),
        (0, 0, 0, 0, Some("nothing was due in the measured time: take a longer")),
        (
            0,
            0,
            0,
            4,
            Some(
                "no answer came in the measured time, and nothing was due in it; 4 requests of the warm-up had no \
                 answer when it began",
            ),
        ),
    ] {
        let mut record = Record::new(1);
        (record.due, record.answered, record.left_of_warm_up) = (due, answered, left);
        record.batches[0].completed = in_time;
        let void = nothing_measured(&record).map(|void| void.sentence);
        let void = void.map(|void| void.replace(" --time (or --trial)", ""));
        assert_eq!(void.as_deref(), said, "{due} {answered} {in_time} {left}");
    }
}
