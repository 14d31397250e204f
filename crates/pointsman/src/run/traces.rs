//! Spans on their way to a collector: one request of HTTP/1.1 for each batch, on a connection of its own.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use pointsman_config::Endpoint;
use pointsman_http::{AnswerTo, HeadLimits, ResponseHead};
use pointsman_telemetry::{ExportFault, Metrics, Sample, TraceSettings, Traces};

/// How long the collector may take to let us in.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// And to take a batch, or to answer, from one byte to the next.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// The longest head of an answer; what stands behind is not looked at.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Starts what sends spans to the collector.
pub(super) fn open(traces: &pointsman_config::Traces, metrics: &Metrics, seed: u64) -> io::Result<Traces> {
    let settings = TraceSettings {
        sample: Sample::per_million(traces.sample.millionths()),
        service: traces.service.clone(),
        version: env!("CARGO_PKG_VERSION"),
        seed,
    };
    let endpoint = traces.endpoint.clone();
    Traces::open(settings, metrics, move |body| export(&endpoint, body))
}

/// Sends a batch (OTLP 1, section OTLP/HTTP).
fn export(endpoint: &Endpoint, body: &[u8]) -> Result<(), ExportFault> {
    match post(endpoint, body) {
        Ok(200..=299) => Ok(()),
        Ok(429 | 502 | 503 | 504) | Err(_) => Err(ExportFault::Again),
        Ok(_) => Err(ExportFault::Never),
    }
}

/// The status of the answer.
fn post(endpoint: &Endpoint, body: &[u8]) -> io::Result<u16> {
    let mut stream = connect(endpoint)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PAUSE_MAX))?;
    stream.set_write_timeout(Some(PAUSE_MAX))?;
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\nUser-Agent: pointsman/{}\r\n\r\n",
        endpoint.path,
        endpoint.authority(),
        body.len(),
        env!("CARGO_PKG_VERSION"),
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut received = Vec::new();
    let mut answer = ResponseHead::default();
    loop {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece)?;
        received.extend_from_slice(&piece[..count]);
        let limits = HeadLimits { head_bytes_max: HEAD_BYTES_MAX, ..HeadLimits::default() };
        match answer.parse(&received, AnswerTo::Other, &limits) {
            Ok(true) if answer.status() >= 200 => return Ok(answer.status()),
            // Another one follows.
            Ok(true) => drop(received.drain(..answer.head_bytes())),
            Ok(false) if count > 0 => {}
            Ok(false) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(_) => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Tries each address of the name.
fn connect(endpoint: &Endpoint) -> io::Result<TcpStream> {
    let addresses: Vec<SocketAddr> = (endpoint.host.as_str(), endpoint.port).to_socket_addrs()?.collect();
    let mut fault = io::ErrorKind::NotFound.into();
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_MAX) {
            Ok(stream) => return Ok(stream),
            Err(error) => fault = error,
        }
    }
    Err(fault)
}
