//! Which numbers requests have: a server that writes down what it is asked for.

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pointsman_bench::{Bulk, Load, Manner, Plan, Url, Way, haul, run};

use super::{ANY, RIGHT, plan, started};

/// What was asked for, in any order.
type Asked = Arc<Mutex<Vec<String>>>;

fn server(asked: &Asked) -> SocketAddr {
    let listener = TcpListener::bind(ANY).expect("loopback");
    let address = listener.local_addr().expect("it listens");
    let asked = asked.clone();
    std::thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let asked = asked.clone();
            std::thread::spawn(move || -> io::Result<()> {
                for line in BufReader::new(&socket).lines() {
                    let line = line?;
                    if line.starts_with("GET ") {
                        asked.lock().expect("nobody panics").push(line);
                    } else if line.is_empty() {
                        (&socket).write_all(RIGHT)?;
                    }
                }
                Ok(())
            });
        }
    });
    address
}

fn numbered(address: SocketAddr, path: &str) -> Plan {
    let mut plan = plan("http", &started(&Manner::default()), Load::Closed { clients: 2 });
    plan.targets[0].url = Url::parse(&format!("http://{address}{path}")).expect("a URL");
    (plan.threads, plan.warm_up, plan.time) = (2, Duration::from_millis(20), Duration::from_millis(100));
    plan
}

fn all_differ(asked: &Asked) {
    let asked = asked.lock().expect("nobody panics");
    let different: HashSet<&String> = asked.iter().collect();
    assert!(asked.len() > 20 && different.len() == asked.len(), "{} of {}", different.len(), asked.len());
    assert!(different.iter().all(|line| !line.contains("/0/")), "they count from 1");
}

#[test]
fn no_two_requests_have_the_same_whichever_trial_they_are_of() {
    let asked = Asked::default();
    let again = numbered(server(&asked), "/{n}/");
    for _ in 0..2 {
        run(&again.clone(), &mut |_| {}).expect("it answers");
    }
    all_differ(&asked);
    // Of plans that are measured beside each other, too.
    let asked = Asked::default();
    let address = server(&asked);
    let plans = vec![numbered(address, "/{n}/{size}"), numbered(address, "/{n}/{size}")];
    let found = haul(&Bulk { plans, way: Way::Down, sizes: vec![2], rounds: 2 }, &mut |_| {});
    assert_eq!(found.expect("it answers").trials.len(), 4);
    all_differ(&asked);
}
