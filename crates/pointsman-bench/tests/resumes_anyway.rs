//! A server that resumes sessions that nobody offered it: what is measured there are no full handshakes.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use pointsman_bench::{
    Body, ErrorKind, Handshakes, Load, Manner, NullServer, NullTls, Offer, Plan, Target, Url, run,
};
use pointsman_e2e::Authority;
use pointsman_tls::OneVersion;

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

#[test]
fn a_server_that_resumes_anyway_voids_the_run() {
    let pair = Authority::new("bench").server(&["localhost"]);
    let tls = NullTls { certificate: pair.certificate, key: pair.key, resumes: true };
    let manner = Manner { tls: Some(tls), ..Manner::default() };
    let honest = NullServer::start(ANY, &manner).expect("loopback");
    let listener = TcpListener::bind(ANY).expect("loopback");
    let address = listener.local_addr().expect("it listens");
    std::thread::spawn(move || serve(&listener, honest.address()));

    let url = Url::parse(&format!("https://{address}/")).expect("a URL");
    let target = Target { url, weight: 1, method: "GET".into(), headers: Vec::new(), body: Body::None };
    let mut plan = Plan::new(vec![target], Load::Closed { clients: 2 });
    (plan.verify, plan.handshakes) = (false, Handshakes::Full);
    (plan.warm_up, plan.time) = (Duration::from_millis(100), Duration::from_millis(500));
    plan.offer = Offer { version: Some(OneVersion::Tls12), ..Offer::default() };
    let outcome = run(&plan, &mut |_| {}).expect("its first request is answered");
    assert!(outcome.record.errors_of(ErrorKind::Unasked) > 0, "{:?}", outcome.record.errors);
    assert_eq!(outcome.voids[0].code, "resumed", "{:?}", outcome.voids);
    assert!(!outcome.is_result());
}

/// The first connection goes to an honest server. To all others it is one that resumes, whatever it is asked: it
/// answers a ClientHello with the ServerHello of a resumed session and the news that its keys are in use.
fn serve(listener: &TcpListener, honest: SocketAddr) {
    let mut connections = listener.incoming().map_while(Result::ok);
    if let Some(first) = connections.next() {
        std::thread::spawn(move || pass_on(first, honest));
    }
    for connection in connections {
        // A client that has gone away wants no answer.
        let (Ok(()) | Err(_)) = resume(connection);
    }
}

fn pass_on(mut client: TcpStream, honest: SocketAddr) -> io::Result<()> {
    let mut server = TcpStream::connect(honest)?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || {
        // Whichever side ends first ends both.
        let (Ok(_) | Err(_)) = io::copy(&mut from_client, &mut to_server);
        to_server.shutdown(Shutdown::Both)
    });
    io::copy(&mut server, &mut client)?;
    client.shutdown(Shutdown::Both)
}

fn resume(mut client: TcpStream) -> io::Result<()> {
    let mut head = [0; 5];
    client.read_exact(&mut head)?;
    let mut hello = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
    client.read_exact(&mut hello)?;
    let suite = first_suite(&hello);
    // RFC 5246, section 7.4.1.3: version, random, a session's identifier, the suite, no compression, and of extensions
    // the renegotiation info (RFC 5746) that every server says.
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([32].into_iter().chain([9; 32]));
    body.extend(suite);
    body.extend([0, 0, 5, 0xff, 1, 0, 1, 0]);
    let mut handshake = vec![2, 0, 0, body.len() as u8];
    handshake.extend(body);
    let mut answer = vec![22, 3, 3, 0, handshake.len() as u8];
    answer.extend(handshake);
    answer.extend([20, 3, 3, 0, 1, 1]);
    client.write_all(&answer)?;
    // Until the client has said what it thinks of that.
    client.read(&mut [0; 64]).map(drop)
}

/// The first suite of a ClientHello that is one of ECDHE with a certificate of ECDSA.
fn first_suite(hello: &[u8]) -> [u8; 2] {
    let session = usize::from(hello[38]);
    let suites = 39 + session;
    let length = usize::from(u16::from_be_bytes([hello[suites], hello[suites + 1]]));
    let offered = hello[suites + 2..suites + 2 + length].chunks(2).map(|suite| [suite[0], suite[1]]);
    let known = [[0xc0, 0x2b], [0xc0, 0x2c], [0xcc, 0xa9]];
    offered.into_iter().find(|suite| known.contains(suite)).expect("TLS 1.2 is offered")
}
