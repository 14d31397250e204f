//! What the bench says where descriptors and ports are few: the shell of the test sees to that.

use pointsman_e2e::{Finished, NullServer, folder, program, skipped, tool};
use serde_json::Value;

/// The colour of the verdict of a run, and its reasons.
fn verdict(finished: &Finished) -> (Value, String, Value) {
    let document: Value = serde_json::from_str(&finished.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", finished.output());
    });
    let run = &document["runs"][0];
    (
        run["outcome"]["generator"].clone(),
        run["verdict"]["colour"].to_string(),
        run["verdict"]["reasons"].clone(),
    )
}

#[test]
fn descriptors_that_are_few_are_told_before_there_are_none() {
    let (null, place) = (NullServer::start(&[]), folder(&[]));
    let load = |clients: &str| {
        let line = format!(
            "ulimit -n 40 && exec {} bench load {} --clients {clients} --threads 1 --time 300ms --warm-up 100ms --json",
            program().display(),
            null.url("http")
        );
        tool(place.path(), "sh", &["-c", &line]).expect("there is a shell")
    };
    let (generator, colour, reasons) = verdict(&load("26"));
    let most = generator["descriptors_most"].as_u64().expect("a count");
    assert_eq!(generator["descriptors_max"], 40);
    assert!((34..=40).contains(&most), "{generator}");
    assert_ne!(colour, "\"green\"");
    assert!(reasons.to_string().contains("of the descriptors that the process may have"), "{reasons}");
    let (_, colour, reasons) = verdict(&load("60"));
    assert_eq!(colour, "\"red\"");
    assert!(reasons.to_string().contains("sockets found no descriptor"), "{reasons}");
}

/// In a network of its own, which has 20 ports for connections.
const FEW_PORTS: &str = r#"
    ip link set lo up && echo 40000 40019 > /proc/sys/net/ipv4/ip_local_port_range || exit 99
    mkfifo said
    "$0" bench null --listen 127.0.0.1:8480 2>said &
    null=$!
    read listening <said
    "$0" bench load http://127.0.0.1:8480/ --clients "$1" --threads 1 --time 300ms --warm-up 100ms --json
    kill $null
"#;

#[test]
fn ports_that_are_few_are_told_before_there_are_none() {
    let run = |clients: &str| {
        let place = folder(&[]);
        let own = program().display().to_string();
        let words = ["-rn", "sh", "-c", FEW_PORTS, &own, clients];
        tool(place.path(), "unshare", &words).filter(|finished| {
            let is_there = finished.code != 99 && !finished.output().contains("unshare failed");
            if !is_there {
                skipped("no network of our own may be made here");
            }
            is_there
        })
    };
    let Some(some) = run("17") else { return };
    let (generator, colour, reasons) = verdict(&some);
    assert_eq!((&generator["ports"], &generator["ports_most"]), (&20.into(), &17.into()), "{generator}");
    assert_ne!(colour, "\"green\"");
    assert!(reasons.to_string().contains("85.0 % of the local ports were taken"), "{reasons}");
    let all = run("40").expect("it was there before");
    let (_, colour, reasons) = verdict(&all);
    assert_eq!(colour, "\"red\"");
    assert!(reasons.to_string().contains("connections found no local port"), "{reasons}");
}
