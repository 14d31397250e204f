//! One request before the run: whether the server answers at all, and a session to resume.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use pointsman_http::AnswerTo;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::follow::{Answered, Follow};
use crate::request::{Origin, Requests};
use crate::{Fault, Plan};

/// Asks the `index`th request once, and waits for the answer.
pub(crate) fn probe(
    plan: &Plan,
    requests: &Requests,
    index: usize,
    tls: Option<&Arc<ClientConfig>>,
) -> Result<Answered, Fault> {
    let request = requests.get(index);
    let origin = &requests.origins[request.origin];
    let what = format!("cannot ask {}", plan.targets[index].url);
    let socket = connect(plan, origin).map_err(|error| Fault::io(&what, &error))?;
    let mut text = Vec::new();
    request.write(&mut text, 0, &mut fastrand::Rng::with_seed(plan.seed));
    let to = if request.is_head { AnswerTo::Head } else { AnswerTo::Other };
    let answered = match (&origin.tls, tls) {
        (Some(name), Some(config)) => {
            let connection = ClientConnection::new(config.clone(), name.clone());
            let connection = connection.map_err(|error| Fault::new(format!("{what}: {error}")))?;
            let mut stream = StreamOwned::new(connection, socket);
            let outcome = ask(&mut stream, &text, to);
            stream.conn.send_close_notify();
            let (Ok(()) | Err(_)) = stream.flush();
            outcome
        }
        _ => ask(&mut { socket }, &text, to),
    };
    answered.map_err(|error| advised(Fault::io(&what, &error), &error))
}

fn connect(plan: &Plan, origin: &Origin) -> io::Result<TcpStream> {
    let socket = TcpStream::connect_timeout(&origin.address, plan.timeout)?;
    socket.set_read_timeout(Some(plan.timeout))?;
    socket.set_write_timeout(Some(plan.timeout))?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

fn ask(stream: &mut (impl Read + Write), text: &[u8], to: AnswerTo) -> io::Result<Answered> {
    stream.write_all(text)?;
    stream.flush()?;
    let mut follow = Follow::default();
    let mut piece = vec![0; 16 * 1024];
    loop {
        let count = match stream.read(&mut piece) {
            Ok(count) => count,
            // Many servers end a connection without the word that TLS has for it.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
            Err(error) => return Err(error),
        };
        if count == 0 {
            let early = || io::Error::other("the connection ends before the answer does");
            return follow.end().ok_or_else(early);
        }
        let (_, answered) =
            follow.feed(&piece[..count], to).map_err(|_| io::Error::other("what comes is no answer"))?;
        if let Some(answered) = answered {
            return Ok(answered);
        }
    }
}

/// What people most often stumble over.
fn advised(fault: Fault, error: &io::Error) -> Fault {
    let words = error.to_string();
    let is_untrusted = words.contains("certificate") && !words.contains("required");
    if is_untrusted {
        return fault.help("name the authority's certificate with `--ca FILE`, or say `--insecure`");
    }
    fault
}
