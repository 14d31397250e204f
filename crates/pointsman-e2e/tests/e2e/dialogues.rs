//! The transcripts in `testdata/dialogues`, folder by folder.

use pointsman_e2e::dialogue::play_all;

pointsman_e2e::for_threads!(actions, bodies, connections, headers, limits, servers);

/// Every action, and what effects do.
fn actions(threads: usize) {
    play_all("actions", threads);
}

/// Framing, streaming, trailers, 1xx.
fn bodies(threads: usize) {
    play_all("bodies", threads);
}

/// Keep-alive, HTTP/1.0, HEAD, pipelining.
fn connections(threads: usize) {
    play_all("connections", threads);
}

/// Hop-by-hop fields, who is believed about the client, the switch's own cookie.
fn headers(threads: usize) {
    play_all("headers", threads);
}

/// Sizes, counts and deadlines of a client.
fn limits(threads: usize) {
    play_all("limits", threads);
}

/// What servers do wrong, and what their client sees of it.
fn servers(threads: usize) {
    play_all("servers", threads);
}
