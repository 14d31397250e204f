//! What was asked, as an explanation begins with it: a request, or a connection that is passed on as it is.

use std::net::SocketAddr;

use pointsman_http::Version;
use pointsman_view::{
    Connection, ConnectionView, HOST_BYTES_MAX, HelloFacts, RequestView, TlsClient, TlsFacts, normal_host,
};
use serde_json::{Value, json};

use super::report::shown;
use super::request::Request;

/// What rules see first.
#[derive(Debug)]
pub(super) enum Asked {
    Request(AskedRequest),
    Connection(AskedConnection),
}

/// A request and where it comes from.
#[derive(Debug, Default)]
pub(super) struct AskedRequest {
    line: String,
    host: Option<String>,
    path: Option<String>,
    client: String,
    server: String,
    client_ip: Option<String>,
    tls: Option<TlsFacts>,
    /// Whether it asks to change to another protocol, and may.
    pub(super) changes_protocol: bool,
}

/// A connection and, where that is read, its hello.
#[derive(Debug)]
pub(super) struct AskedConnection {
    line: String,
    client: String,
    server: String,
    client_ip: Option<String>,
    hello: Option<Hello>,
}

#[derive(Debug)]
struct Hello {
    tls: Option<&'static str>,
    sni: Option<String>,
    alpn: Vec<String>,
}

impl Asked {
    pub(super) fn line(&self) -> &str {
        match self {
            Asked::Request(asked) => &asked.line,
            Asked::Connection(asked) => &asked.line,
        }
    }

    pub(super) fn changes_protocol(&self) -> bool {
        match self {
            Asked::Request(asked) => asked.changes_protocol,
            Asked::Connection(_) => false,
        }
    }

    /// What stands below it: names and values.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        match self {
            Asked::Request(asked) => asked.lines(),
            Asked::Connection(asked) => asked.lines(),
        }
    }
}

impl AskedRequest {
    pub(super) fn new(request: &Request, connection: &Connection) -> AskedRequest {
        let (head, bytes) = (&request.head, &request.bytes);
        let version = match head.version() {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http2 => "HTTP/2",
        };
        let mut scratch = [0; HOST_BYTES_MAX];
        AskedRequest {
            line: format!("{} {} {version}", shown(head.method_name(bytes)), shown(head.target(bytes))),
            host: normal_host(head.authority(bytes), &mut scratch).map(shown),
            path: None,
            client: shown_end(connection.src),
            server: shown_end(connection.dst),
            client_ip: None,
            tls: connection.tls.as_deref().cloned(),
            changes_protocol: false,
        }
    }

    /// Adds what only the view knows.
    pub(super) fn sees(&mut self, view: &RequestView<'_>) {
        self.path = Some(shown(view.path().path()));
        self.client_ip = view.client_ip().map(|client| client.to_string());
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        lines.extend(self.host.clone().map(|host| ("host", host)));
        lines.extend(self.path.clone().map(|path| ("path", path)));
        let over = match &self.tls {
            None => "plain".to_owned(),
            Some(tls) => {
                let resumed = if tls.resumed { ", resumed" } else { "" };
                shown_tls(tls.version, tls.sni.as_deref()) + resumed
            }
        };
        lines.push(("from", format!("{} to {}, {over}", self.client, self.server)));
        let holder = self.tls.as_ref().and_then(|tls| tls.client.as_ref());
        lines.extend(holder.map(|holder| ("holder", shown_holder(holder))));
        lines.extend(behind(self.client_ip.as_deref(), &self.client));
        lines
    }

    pub(super) fn to_json(&self) -> Value {
        let mut object = json!({
            "line": self.line, "host": self.host, "path": self.path, "client": self.client,
            "server": self.server, "client_ip": self.client_ip, "tls": null, "sni": null,
        });
        if let Some(tls) = &self.tls {
            object["tls"] = json!(tls.version);
            object["sni"] = json!(tls.sni);
            object["cipher"] = json!(tls.cipher);
            object["alpn"] = json!(tls.alpn.as_deref().map(String::from_utf8_lossy));
            object["resumed"] = json!(tls.resumed);
            if let Some(TlsClient { subject, sans, fingerprint, .. }) = &tls.client {
                object["certificate"] =
                    json!({ "subject": subject, "san": sans, "fingerprint": fingerprint });
            }
        }
        object
    }
}

impl AskedConnection {
    pub(super) fn new(
        listener: &str,
        view: &ConnectionView<'_>,
        hello: Option<&HelloFacts>,
    ) -> AskedConnection {
        let connection = view.connection();
        AskedConnection {
            line: format!("a connection of the listener `{}`", shown(listener.as_bytes())),
            client: shown_end(connection.src),
            server: shown_end(connection.dst),
            client_ip: view.client_ip().map(|client| client.to_string()),
            hello: hello.map(|hello| Hello {
                tls: hello.version,
                sni: hello.sni.clone(),
                alpn: hello.alpn.iter().map(|name| shown(name)).collect(),
            }),
        }
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![("from", format!("{} to {}", self.client, self.server))];
        lines.extend(behind(self.client_ip.as_deref(), &self.client));
        lines.extend(self.hello.as_ref().map(|hello| {
            let tls = shown_tls(hello.tls.unwrap_or_default(), hello.sni.as_deref());
            let offers: Vec<_> = hello.alpn.iter().map(|name| format!("`{name}`")).collect();
            ("hello", if offers.is_empty() { tls } else { format!("{tls}, offers {}", offers.join(", ")) })
        }));
        lines
    }

    pub(super) fn to_json(&self) -> Value {
        let mut object = json!({ "client": self.client, "server": self.server, "client_ip": self.client_ip });
        if let Some(hello) = &self.hello {
            object["hello"] = json!({ "tls": hello.tls, "sni": hello.sni, "alpn": hello.alpn });
        }
        object
    }
}

fn shown_end(end: Option<SocketAddr>) -> String {
    end.map_or_else(|| "unix:".to_owned(), |end| end.to_string())
}

fn shown_tls(version: &str, sni: Option<&str>) -> String {
    match sni {
        None => format!("TLS {version} without a server name"),
        Some(sni) => format!("TLS {version} for `{}`", shown(sni.as_bytes())),
    }
}

/// Who shows a certificate, by its subject and further names.
fn shown_holder(holder: &TlsClient) -> String {
    let names = holder.sans.iter().map(|name| format!(", `{}`", shown(name.as_bytes())));
    format!("`{}`{}", shown(holder.subject.as_bytes()), names.collect::<String>())
}

/// Only a proxy that is believed makes a difference.
fn behind(client_ip: Option<&str>, client: &str) -> Option<(&'static str, String)> {
    let ip = client_ip.filter(|ip| !client.contains(ip))?;
    Some(("clientip", format!("{ip}, behind a trusted proxy")))
}
