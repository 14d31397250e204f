//! `pipeline = "hold"`, which is the default: the next request is sent when the answer before it is complete.

use super::{BY_DEFAULT, Over, Shop, Stage, expect, get, gets};

pointsman_e2e::for_threads!(one_after_the_other, a_slow_answer_holds_those_behind_it);

const MODES: [&str; 2] = [BY_DEFAULT, "hold"];

/// That a server which is asked too early would have been so by now: as much goes to it over another connection.
fn nothing_is_at(shop: &Shop, targets: &[&str]) {
    for target in targets {
        let other = format!("{}/other", &target[..2]);
        expect_get(shop, &other);
        assert!(!shop.stage.has(&format!("GET {target}")), "{target}: {:?}", shop.stage.happened());
    }
}

fn expect_get(shop: &Shop, target: &str) {
    let mut client = shop.client();
    client.send(get(target));
    expect(&mut client, target);
}

/// What happened to these requests, in order.
fn told(stage: &Stage, targets: &[&str]) -> Vec<String> {
    let is_of = |what: &String| targets.iter().any(|target| what.ends_with(target));
    stage.told().into_iter().filter(is_of).collect()
}

/// Three servers, of which one answers at once, one when it is let, and one begins and ends when it is let: whichever
/// comes first, each has its request when the answer before it is complete.
fn one_after_the_other(threads: usize) {
    for mode in MODES {
        for over in [Over::Plain, Over::Tls] {
            let shop = Shop::with(threads, mode, over, |setup| setup);
            let mut client = shop.client();
            for targets in [
                ["/a/gated/1", "/b/half/2", "/c/3"],
                ["/a/half/4", "/b/5", "/c/gated/6"],
                ["/a/7", "/b/gated/8", "/c/half/9"],
            ] {
                client.send(gets(&targets));
                for (at, target) in targets.iter().enumerate() {
                    lets_go(&shop, target, &targets[at + 1..]);
                    expect(&mut client, target);
                }
                let expected: Vec<String> = targets.into_iter().flat_map(steps).collect();
                assert_eq!(told(&shop.stage, &targets), expected, "{mode:?} {over:?}");
            }
        }
    }
}

/// Lets a server answer that has been asked, as it does, while nobody behind it has been.
fn lets_go(shop: &Shop, target: &str, behind: &[&str]) {
    let steps = steps(target);
    let Some(opens) = steps.iter().position(|step| step.starts_with("opens ")) else { return };
    shop.stage.wait_for(&steps[opens - 1]);
    nothing_is_at(shop, behind);
    shop.stage.note(steps[opens].clone());
    shop.stage.open(target);
}

/// What happens to a request, in order.
fn steps(target: &str) -> Vec<String> {
    let words = match () {
        () if target.contains("/gated/") => &["GET", "opens", "answers"][..],
        () if target.contains("/half/") => &["GET", "answers", "opens"],
        () => &["GET", "answers"],
    };
    words.iter().map(|word| format!("{word} {target}")).collect()
}

/// Half of an answer is at the client already, and still nothing behind it is at its server.
fn a_slow_answer_holds_those_behind_it(threads: usize) {
    for mode in MODES {
        let shop = Shop::open(threads, mode);
        let mut client = shop.client();
        client.send(gets(&["/a/half/1", "/b/2", "/c/3"]));
        assert_eq!(client.head().field("x-server"), Some("a"));
        let first = client.piece().expect("open").expect("half of it");
        nothing_is_at(&shop, &["/b/2", "/c/3"]);
        shop.stage.open("/a/half/1");
        let rest = client.rest().expect("a whole answer").bytes;
        assert_eq!(String::from_utf8_lossy(&[first, rest].concat()), "/a/half/1");
        expect(&mut client, "/b/2");
        expect(&mut client, "/c/3");
        shop.stage.expect_order("answers /b/2", "GET /c/3");
    }
}
