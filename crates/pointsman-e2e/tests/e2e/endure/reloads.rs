//! Reloads under load: nobody's request fails, nobody's connection closes, and the memory of old plans goes back.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use pointsman_e2e::{
    Authority, Bound, Client, Origin, Pair, SetOnDrop, Setup, Switch, TlsClient, Unit, figure, ok, scale,
    until,
};

use super::{clients, crowd, for_crowds, is_served, tell};

pointsman_e2e::for_threads!(rules, certificates);

const TRAFFIC: usize = 3;
/// How long memory may take to go back.
const SETTLES_MAX: Duration = Duration::from_secs(2);

/// Requests one after the other on one connection, until told to stop or one fails; returns how many failed.
fn keeps_asking<'scope>(
    scope: &'scope Scope<'scope, '_>,
    mut client: Client,
    stop: &'scope AtomicBool,
    asked: &'scope AtomicU64,
) -> ScopedJoinHandle<'scope, u64> {
    scope.spawn(move || {
        let (mut failed, started) = (0, Instant::now());
        while !stop.load(Ordering::Relaxed) {
            drop(client.try_send("GET /1/x HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
            let answer = client.try_response();
            let is_good = answer
                .as_ref()
                .is_ok_and(|answer| answer.status() == 200 && ["sa", "sb"].contains(&answer.server()));
            asked.fetch_add(1, Ordering::Relaxed);
            if !is_good {
                failed += 1;
                tell(&format!("failed after {:?}: {answer:?}", started.elapsed()));
                break;
            }
        }
        failed
    })
}

/// A hundred rules, so that a plan has a size; the one that counts sends to this pool.
fn hundred_rules(pool: &str) -> String {
    let others: String = (2..=100)
        .map(|number| format!("R{number}: if (path startsWith \"/{number}/\") {{ routeTo(a); }}\n"))
        .collect();
    format!("R1: if (path startsWith \"/1/\") {{ routeTo({pool}); }}\n{others}")
}

/// Rules, a hundred times, while some ask without a pause and a thousand are idle.
fn rules(threads: usize) {
    let reloads = scale(30, 100);
    let count = crowd(300, 1000, 1);
    let fault = format!("{reloads} reloads of rules, {count} idle connections, {threads} threads");
    let (a, b) = (Origin::answering("sa", ok), Origin::answering("sb", ok));
    let setup = for_crowds(threads).limits("idle_ms_max = 600000").pool("a", &[&a]).pool("b", &[&b]);
    let [to_a, to_b] = ["a", "b"].map(|pool| setup.clone().rules(&hundred_rules(pool)));
    let switch = to_a.start();
    let mut idle = clients(&switch, count);
    idle.iter_mut().for_each(|client| assert_eq!(client.get("/1/x").server(), "sa"));
    let (stop, asked) = (AtomicBool::new(false), AtomicU64::new(0));
    let (failed, before, after) = std::thread::scope(|scope| {
        let over = SetOnDrop(&stop);
        let traffic: Vec<_> =
            (0..TRAFFIC).map(|_| keeps_asking(scope, switch.client(), &stop, &asked)).collect();
        more_than(&asked, 300);
        // What compares new rules with old ones is there from the first reload on.
        switch.reload(&to_b, 2);
        switch.wait_for_line("rules differ listener=shop");
        let before = switch.resident_bytes();
        for generation in 3..3 + reloads {
            switch.reload(if generation % 2 == 0 { &to_b } else { &to_a }, generation);
            // Each plan serves somebody before the next one comes.
            more_than(&asked, asked.load(Ordering::Relaxed) + 3);
        }
        let after = settled(&switch, before);
        drop(over);
        let failed: u64 = traffic.into_iter().map(|asking| asking.join().expect("it counts only")).sum();
        (failed, before, after)
    });
    figure(&fault, failed, Unit::Count("failed requests"), Bound::Exactly(0));
    figure(&fault, asked.load(Ordering::Relaxed), Unit::Count("requests meanwhile"), Bound::AtLeast(300));
    // The idle ones are all there, and each has its next answer.
    let served = idle.iter_mut().map(is_served).filter(|is_served| *is_served).count();
    figure(&fault, (count - served) as u64, Unit::Count("closed connections"), Bound::Exactly(0));
    figure(&fault, after * 100 / before, Unit::PerCent("resident memory of before"), Bound::AtMost(110));
}

fn more_than(asked: &AtomicU64, count: u64) {
    until("more requests", || (asked.load(Ordering::Relaxed) > count).then_some(()));
}

/// What is resident once the last plans are freed and the allocator has given back what it wants to: both are
/// done now and then, while somebody asks.
fn settled(switch: &Switch, before: u64) -> u64 {
    let end = Instant::now() + SETTLES_MAX;
    loop {
        let resident = switch.resident_bytes();
        if resident <= before || Instant::now() > end {
            return resident;
        }
        assert_eq!(switch.admin_get("/health").status(), 200);
    }
}

/// Certificates, while new clients shake hands without a pause and others stay connected.
fn certificates(threads: usize) {
    let reloads = scale(10, 100);
    let fault = format!("{reloads} reloads of a certificate, {threads} threads");
    let (authority, origin) = (Authority::new("test CA"), Origin::answering("sa", ok));
    let pairs: Vec<Pair> = (0..2).map(|_| authority.server(&["shop.example"])).collect();
    let setup = Setup::new(threads).tls(&pairs[0], "").pool("standard", &[&origin]);
    let switch = setup.start();
    let trust = TlsClient::new(&authority).forgetful();
    let (stop, asked, shaken) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let connect = || switch.tls_client(&trust, "shop.example");
    let failed: u64 = std::thread::scope(|scope| {
        let over = SetOnDrop(&stop);
        let kept = keeps_asking(scope, connect().expect("a handshake"), &stop, &asked);
        let new = scope.spawn(|| {
            let mut failed = 0;
            while !stop.load(Ordering::Relaxed) {
                let answer = connect().and_then(|mut client| {
                    let known = pairs.iter().any(|pair| pair.der == client.certificate());
                    client.try_send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n")?;
                    Ok(known && client.try_response()?.status() == 200)
                });
                failed += u64::from(!answer.is_ok_and(|good| good));
                shaken.fetch_add(1, Ordering::Relaxed);
            }
            failed
        });
        for generation in 2..2 + reloads {
            let pair = &pairs[usize::from(generation % 2 == 0)];
            switch.reload(&setup.clone().pair("shop", pair), generation);
            assert!(connect().expect("a handshake").certificate() == pair.der, "generation {generation}");
            let before = shaken.load(Ordering::Relaxed);
            until("another handshake", || (shaken.load(Ordering::Relaxed) > before).then_some(()));
        }
        drop(over);
        [kept, new].into_iter().map(|asking| asking.join().expect("it counts only")).sum()
    });
    figure(&fault, failed, Unit::Count("failed handshakes and requests"), Bound::Exactly(0));
    let done = shaken.load(Ordering::Relaxed);
    figure(&fault, done, Unit::Count("handshakes meanwhile"), Bound::AtLeast(u64::from(reloads)));
    assert_eq!(switch.metric("pointsman_tls_handshakes_total", &[("result", "failed")]), 0.0);
}
