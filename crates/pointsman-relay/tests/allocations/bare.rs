//! rustls by itself: a server that reads as many bytes as a request has and writes as many as its answer.
//!
//! What it and the client take from the heap is what the same records cost without the switch.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};

use rustls::{ServerConnection, StreamOwned};

use crate::site::Site;

/// A server for one connection.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
}

impl Server {
    pub(crate) fn start(site: &Site, request_bytes: usize, answer_bytes: usize) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let config = site.bare_server();
        std::thread::spawn(move || {
            let (socket, _) = listener.accept().expect("the client");
            socket.set_nodelay(true).expect("a TCP socket");
            let connection = ServerConnection::new(config).expect("a working configuration");
            let mut stream = StreamOwned::new(connection, socket);
            let mut request = vec![0; request_bytes];
            let answer = vec![b'x'; answer_bytes];
            // The client's end of the connection ends this.
            while stream.read_exact(&mut request).is_ok() {
                if stream.write_all(&answer).and_then(|()| stream.flush()).is_err() {
                    return;
                }
            }
        });
        Self { address }
    }
}
