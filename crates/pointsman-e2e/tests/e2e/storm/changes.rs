//! Large rule sets are replaced under load, and the binary as well: nobody's request fails, no connection that is kept
//! closes but those that the replaced process ends with an answer that says so, and whoever asks meanwhile waits little
//! longer.

use std::time::Duration;

use pointsman_e2e::{Bound, Client, Origin, Setup, Unit, figure, ok, pause, scale};

use super::traffic::{Clock, KEEPING, Noted, Phase, Traffic, p99};

pointsman_e2e::for_threads!(reloads);

/// So many rules that the last one counts; it sends to this pool.
fn rules(count: usize, pool: &str) -> String {
    let others: String = (2..=count)
        .map(|number| format!("R{number}: if (path startsWith \"/{number}/\") {{ routeTo(a); }}\n"))
        .collect();
    format!("{others}R1: if (path startsWith \"/1/\") {{ routeTo({pool}); }}\n")
}

fn reloads(threads: usize) {
    let (runs, reloads, count) = (scale(1, 5), scale(3, 20), scale(1_000, 20_000));
    let rest = scale(Duration::from_millis(200), Duration::from_secs(10));
    let fault = format!("{runs} times an upgrade and {reloads} reloads of {count} rules, {threads} threads");
    let (a, b) = (Origin::answering("sa", ok), Origin::answering("sb", ok));
    let setup = Setup::new(threads)
        .top("[access_log]\npath = \"access.log\"")
        .limits("idle_ms_max = 600000")
        .pool("a", &[&a])
        .pool("b", &[&b]);
    let [to_a, to_b] = ["a", "b"].map(|pool| setup.clone().rules(&rules(count, pool)));
    let mut switch = to_a.start();
    let (mut generation, mut all, mut ratios) = (1, Noted::default(), Vec::new());
    for _ in 0..runs {
        let address = switch.address("shop");
        let (clock, connect) = (Clock::default(), || Client::plain(address));
        let is_good = |server: &str| ["sa", "sb"].contains(&server);
        let noted = std::thread::scope(|scope| {
            let traffic = Traffic::begin(scope, &clock, &connect, &is_good);
            pause(rest);
            clock.set(Phase::Storm);
            for number in 0..reloads {
                if number == reloads / 2 {
                    switch.upgrade_to(&to_a);
                    switch.wait_for_predecessors();
                    generation = 1;
                }
                generation += 1;
                switch.reload(if generation % 2 == 0 { &to_b } else { &to_a }, generation);
            }
            clock.set(Phase::Rest);
            traffic.end()
        });
        all.failed += noted.failed;
        all.closed += noted.closed;
        ratios.push(p99(noted.storm_us) * 100 / p99(noted.rest_us).max(1));
    }
    figure(&fault, all.failed, Unit::Count("failed requests"), Bound::Exactly(0));
    // Each upgrade says to each of them, in an answer, that it ends.
    let told = (runs * KEEPING) as u64;
    figure(&fault, all.closed, Unit::Count("kept connections closed"), Bound::AtMost(told));
    ratios.sort_unstable();
    let median = ratios[ratios.len() / 2];
    // A small run has too few requests to say anything of the slowest.
    let bound = scale(Bound::AtLeast(0), Bound::AtMost(200));
    figure(&fault, median, Unit::PerCent("of the p99 at rest, median"), bound);
}
