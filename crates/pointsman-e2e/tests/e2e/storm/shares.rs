//! Three classes of bandwidth below one ceiling: each has its share while all are busy, and the busy ones have what an
//! idle one leaves. Half of the clients speak TLS, and bytes are counted where they arrive.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pointsman_e2e::{
    Authority, Bound, Client, Exchange, Origin, SetOnDrop, Setup, Switch, Then, TlsClient, Unit, figure,
    pause, scale,
};

pointsman_e2e::for_threads!(all_are_busy, one_is_idle);

const CEILING: u64 = 20_000_000;
/// Names, and what each is guaranteed of the ceiling, in per cent.
const CLASSES: [(&str, u64); 3] = [("small", 10), ("middle", 20), ("large", 70)];
/// Clients of each class, every second one over TLS.
const CLIENTS: usize = 4;
/// An answer.
const BODY_BYTES: usize = 4 * 1024 * 1024;
static PIECE: [u8; 64 * 1024] = [b'x'; 64 * 1024];

/// An answer that never waits.
fn much(exchange: &mut Exchange<'_>) -> Then {
    exchange.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES}\r\n\r\n"));
    for _ in 0..BODY_BYTES / PIECE.len() {
        exchange.send(PIECE);
    }
    Then::KeepAlive
}

fn start(threads: usize, origin: &Origin, authority: &Authority) -> Switch {
    let classes: String = CLASSES
        .iter()
        .map(|(name, share)| {
            let rate = CEILING / 100 * share;
            format!("[bandwidth.{name}]\nparent = \"link\"\nguaranteed_bytes_per_second = {rate}\n")
        })
        .collect();
    let rules: String = CLASSES
        .iter()
        .map(|(name, _)| format!("if (path == \"/{name}\") {{ bandwidth({name}); routeTo(standard); }}\n"))
        .collect();
    let link = format!("[bandwidth.link]\nceiling_bytes_per_second = {CEILING}\n");
    let setup = Setup::new(threads).rules(&rules).pool("standard", &[origin]).raw(&(link + &classes));
    setup.another_listener("secure").rules(&rules).tls(&authority.server(&["shop.example"]), "").start()
}

/// What each class got, in per cent of the ceiling, from one second after the begin on.
fn measured(switch: &Switch, authority: &Authority, busy: &[(&'static str, u64)]) -> Vec<u64> {
    let counts: Vec<AtomicU64> = busy.iter().map(|_| AtomicU64::new(0)).collect();
    let is_over = AtomicBool::new(false);
    let secure = TlsClient::new(authority);
    let connect = |number: usize| match number % 2 {
        0 => Client::plain(switch.address("shop")),
        _ => Client::tls(switch.address("secure"), &secure, "shop.example").expect("a handshake"),
    };
    let (from, to, time) = std::thread::scope(|scope| {
        let _over = SetOnDrop(&is_over);
        for (count, (name, _)) in counts.iter().zip(busy) {
            for number in 0..CLIENTS {
                let (is_over, mut client) = (&is_over, connect(number));
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        client.send(format!("GET /{name} HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
                        assert_eq!(client.head().word(1), "200");
                        while let Some(piece) = client.piece().expect("all of it") {
                            count.fetch_add(piece.len() as u64, Ordering::Relaxed);
                            if is_over.load(Ordering::Relaxed) {
                                return;
                            }
                        }
                    }
                });
            }
        }
        let all = || counts.iter().map(|count| count.load(Ordering::Relaxed)).collect::<Vec<_>>();
        pause(Duration::from_secs(1));
        let (began, from) = (Instant::now(), all());
        pause(scale(Duration::from_secs(1), Duration::from_secs(10)));
        let (to, time) = (all(), began.elapsed());
        (from, to, time)
    });
    let micros = u64::try_from(time.as_micros()).expect("some seconds");
    let ceiling = CEILING * micros / 1_000_000;
    to.iter().zip(from).map(|(to, from)| (to - from) * 10_000 / ceiling).collect()
}

/// The median of some runs for each class, in hundredths of a per cent of the ceiling.
fn medians(threads: usize, busy: &[(&'static str, u64)]) -> Vec<u64> {
    let (origin, authority) = (Origin::answering("one", much), Authority::new("ours"));
    let switch = start(threads, &origin, &authority);
    let runs: Vec<Vec<u64>> = (0..scale(1, 5)).map(|_| measured(&switch, &authority, busy)).collect();
    let of_class = |class: usize| {
        let mut shares: Vec<u64> = runs.iter().map(|run| run[class]).collect();
        shares.sort_unstable();
        shares[shares.len() / 2]
    };
    (0..busy.len()).map(of_class).collect()
}

/// A figure for each class: how far it is from what it is to have, in per cent of that.
fn check(fault: &str, shares: &[u64], wanted: &[(&'static str, u64)]) {
    for (&share, (name, wanted)) in shares.iter().zip(wanted) {
        let off = share.abs_diff(wanted * 100) / wanted;
        // In a second, beside other tests, a share says nothing.
        let bound = scale(Bound::AtLeast(0), Bound::AtMost(5));
        figure(&format!("{fault}, {name} with {wanted} %"), off, Unit::PerCent("off its share"), bound);
    }
    // Nor is a lot let through in a burst.
    let all = shares.iter().sum::<u64>() / 100;
    figure(
        fault,
        all,
        Unit::PerCent("of the ceiling, all together"),
        scale(Bound::AtMost(150), Bound::AtMost(105)),
    );
}

fn all_are_busy(threads: usize) {
    let shares = medians(threads, &CLASSES);
    check(&format!("three classes busy, {threads} threads"), &shares, &CLASSES);
}

/// What nobody has goes to the others by what they are guaranteed.
fn one_is_idle(threads: usize) {
    let busy = [CLASSES[0], CLASSES[1]];
    let shares = medians(threads, &busy);
    check(
        &format!("one of three classes idle, {threads} threads"),
        &shares,
        &[("small", 33), ("middle", 67)],
    );
}
