//! Whether options fit the listener that is asked: what changes nothing there, or never comes to it, is wrong.

use pointsman_config::{Listener, Plan, Protocol, ProxyProtocol};

use super::options::Options;

/// Whether the options fit what the listener reads; the error is a text for people.
pub(super) fn check_use(options: &Options, listener: &Listener, plan: &Plan) -> Result<(), String> {
    let name = &listener.name;
    check_socket(options, listener)?;
    let (protocol, misfits, help) = match listener.protocol {
        Protocol::Http if options.request.is_some() => return check_connection(options, listener),
        Protocol::Http => return Err(no_request(name, plan)),
        Protocol::Tcp => {
            let misfits = [
                ("--trusted-proxy", !options.trusted_proxies.is_empty() || options.trusts_unix),
                (options.handshake.first_said().unwrap_or_default(), !options.handshake.is_unsaid()),
            ];
            let help =
                "its rules know addresses alone: `--srcip`, `--srcport`, `--dstip`, `--dstport`, `--proxied`";
            ("tcp", misfits, help)
        }
        Protocol::TlsPassthrough => {
            let of_requests = options.handshake.first_of_requests();
            let misfits = [
                ("--trusted-proxy", !options.trusted_proxies.is_empty() || options.trusts_unix),
                (of_requests.unwrap_or_default(), of_requests.is_some()),
            ];
            let help = "the one who names a client there is a PROXY header: `--proxied`";
            ("tls-passthrough", misfits, help)
        }
    };
    if options.request.is_some() {
        return Err(format!(
            "error: the listener `{name}` reads no requests: its `protocol` is `{protocol}`\n\
             help: leave the request out, and a connection is explained\n"
        ));
    }
    match misfits.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => Err(format!(
            "error: `{option}` changes nothing at the listener `{name}`: its `protocol` is `{protocol}`\n\
             help: {help}\n"
        )),
    }
}

/// Whether the listener has a socket of the kind that the connection comes to.
fn check_socket(options: &Options, listener: &Listener) -> Result<(), String> {
    let name = &listener.name;
    let has = |is_of_unix: bool| listener.binds.iter().any(|bind| bind.address().is_none() == is_of_unix);
    if options.comes_by_unix && !has(true) {
        return Err(format!(
            "error: `--srcip unix:` says what never comes to the listener `{name}`: it has no Unix socket\n\
             help: leave it out, or give the listener one by `bind`\n"
        ));
    }
    match options.first_end().filter(|_| !has(false)) {
        None => Ok(()),
        Some(option) => Err(format!(
            "error: `{option}` says what never comes to the listener `{name}`: it has Unix sockets alone\n\
             help: leave it out: `--srcip unix:` is taken for granted there\n"
        )),
    }
}

/// A listener that speaks no TLS gets no request over it, and one without PROXY headers gets none.
fn check_connection(options: &Options, listener: &Listener) -> Result<(), String> {
    let name = &listener.name;
    if let Some(option) = options.handshake.first_said().filter(|_| !listener.is_tls()) {
        return Err(format!(
            "error: `{option}` says what never comes to the listener `{name}`: it speaks no TLS\n\
             help: leave it out, or name a listener with `tls` by `--listener`\n"
        ));
    }
    if options.proxied.is_some() && listener.proxy_protocol == ProxyProtocol::Off {
        return Err(format!(
            "error: `--proxied` says what never comes to the listener `{name}`: it reads no PROXY header\n\
             help: leave it out, or set `proxy_protocol` to `required`\n"
        ));
    }
    Ok(())
}

fn no_request(name: &str, plan: &Plan) -> String {
    let others = plan.listeners.iter().filter(|listener| listener.protocol != Protocol::Http);
    let others: Vec<_> = others.map(|listener| format!("`{}`", listener.name)).collect();
    let help = match others.as_slice() {
        [] => "pointsman explain RULES REQUEST".to_owned(),
        others => {
            let others = others.join(", ");
            format!(
                "pointsman explain RULES REQUEST; without a request, one that reads none (`--listener`): {others}"
            )
        }
    };
    format!("error: the listener `{name}` reads requests, and there is none to explain\nhelp: {help}\n")
}
