//! SIGTERM while requests wait behind a large answer that the client does not take.

use pointsman_e2e::{Client, until};

use super::{BIG_BYTES, Over, Shop, big, expect, get, gets};

pointsman_e2e::for_threads!(what_was_taken_is_answered_whole, nothing_looks_whole_that_is_cut);

const BIG: &str = "/a/big/1";

/// What a client of a mode has sent when the drain begins, and which of it the servers have by then.
struct Sent {
    mode: &'static str,
    before: &'static [&'static str],
    taken: &'static [&'static str],
}

/// With `latest` a request behind an answer that has begun would end the connection, drain or not.
const SENT: [Sent; 3] = [
    Sent { mode: "hold", before: &[BIG], taken: &[BIG] },
    Sent { mode: "concurrent", before: &[BIG, "/b/2", "/c/3"], taken: &[BIG, "/b/2", "/c/3"] },
    Sent { mode: "latest", before: &[BIG], taken: &[BIG] },
];

impl Sent {
    /// Where requests overlap, what ends a connection under TLS is not what ends a plain one.
    fn over(&self) -> &'static [Over] {
        if self.taken.len() > 1 { &[Over::Plain, Over::Tls] } else { &[Over::Plain] }
    }
}

/// A client that has the head of the large answer and takes no more of it, when the drain has begun.
fn drains(shop: &mut Shop, sent: &Sent) -> Client {
    let mut client = shop.client();
    client.send(gets(sent.before));
    let head = client.head();
    assert_eq!((head.field("x-server"), head.field("connection")), (Some("a"), None), "{}", sent.mode);
    for target in &sent.taken[1..] {
        shop.stage.wait_for(&format!("answers {target}"));
        // Its answer waits in the switch.
        shop.wait_in_flight(&target[1..2], 0.0);
    }
    shop.switch.signal("TERM");
    until("a drain", || (shop.switch.admin_get("/health").status() == 503).then_some(()));
    assert!(!shop.stage.has(&format!("sent {BIG}")), "the client has not taken it");
    client
}

/// In order and to its end. Of what comes later one request is answered, so that an answer says that it is the last.
fn what_was_taken_is_answered_whole(threads: usize) {
    for sent in &SENT {
        for over in sent.over() {
            let mut shop = Shop::with(threads, sent.mode, *over, |setup| setup.top("drain_ms_max = 600000"));
            let mut client = drains(&mut shop, sent);
            client.send(gets(&["/c/4", "/b/5"]));
            let body = client.rest().expect("a whole answer").bytes;
            assert!(body == big(BIG), "{}: {} bytes", sent.mode, body.len());
            for target in &sent.taken[1..] {
                assert_eq!(expect(&mut client, target).head.field("connection"), None, "{}", sent.mode);
            }
            assert_eq!(expect(&mut client, "/c/4").head.field("connection"), Some("close"), "{}", sent.mode);
            assert!(client.closes(), "{}", sent.mode);
            assert!(!shop.stage.has("GET /b/5"), "{}", sent.mode);
            assert_eq!(shop.switch.wait_for_exit(), Some(0), "{}", sent.mode);
            shop.switch.expect_log_lines(sent.taken.len() + 1);
        }
    }
}

/// Who takes nothing holds the drain up for `drain_ms_max`, and sees then that the answer was cut.
fn nothing_looks_whole_that_is_cut(threads: usize) {
    for sent in &SENT {
        for over in sent.over() {
            let mut shop = Shop::with(threads, sent.mode, *over, |setup| setup.top("drain_ms_max = 300"));
            let mut client = drains(&mut shop, sent);
            client.send(get("/c/4"));
            assert_eq!(shop.switch.wait_for_exit(), Some(1), "{} {over:?}", sent.mode);
            let mut came = Vec::new();
            let is_whole = loop {
                match client.piece() {
                    Ok(Some(piece)) => came.extend(piece),
                    ended => break ended.is_ok(),
                }
            };
            assert!(!is_whole, "{} {over:?}: it looks whole", sent.mode);
            assert!(came.len() < BIG_BYTES, "{} {over:?}: {} bytes", sent.mode, came.len());
            assert!(big(BIG).starts_with(&came), "{} {over:?}: no byte of another answer", sent.mode);
            for target in sent.taken {
                let entry = shop.switch.log_of(target);
                assert_eq!(entry["error"], "cut off: the drain was over", "{entry}");
                assert_eq!(entry.get("status").is_some(), *target == BIG, "{entry}");
            }
            shop.switch.expect_log_lines(sent.taken.len());
            assert!(!shop.stage.has("GET /c/4"), "{} {over:?}", sent.mode);
        }
    }
}
