//! What stands in a request's body decides which server gets it.

mod early;
mod faults;
mod http2;
mod limits;
mod servers;
mod ways;

use crate::bodies::chunks;
use pointsman_e2e::{Client, Origin, Request, Response, Setup, Switch};

/// The pools of [`Shop`] by what an order costs.
const RULES: &str = "R1: if (xml.purchase/totalAmount > 52000 || json.order.total > 52000) { routeTo(quick); }\n\
    R2: if (form[\"total\"] > 52000) { routeTo(quick); }\n\
    else: routeTo(usual);\n";

const XML: &str = "application/xml";
const JSON: &str = "application/json";

/// A switch before two servers.
struct Shop {
    standard: Origin,
    fast: Origin,
    switch: Switch,
}

impl Shop {
    fn start(threads: usize) -> Self {
        Self::with(threads, RULES, |setup| setup)
    }

    fn with(threads: usize, rules: &str, change: impl FnOnce(Setup) -> Setup) -> Self {
        let (standard, fast) = (Origin::new("standard"), Origin::new("fast"));
        let setup = change(Setup::new(threads)).rules(rules);
        let switch = setup.pool("usual", &[&standard]).pool("quick", &[&fast]).start();
        Self { standard, fast, switch }
    }

    fn client(&self) -> Client {
        self.switch.client()
    }

    /// The answer to a body of this type with a length, on a connection of its own.
    fn post(&self, media_type: &str, body: &[u8]) -> Response {
        let mut client = self.client();
        client.send(head(media_type, body.len()));
        client.try_send(body).ok();
        client.response()
    }

    /// No order reached a server whole.
    #[track_caller]
    fn has_no_whole_order(&self) {
        for origin in [&self.standard, &self.fast] {
            let whole = |request: &Request| request.complete && request.head.word(0) == "POST";
            assert!(!origin.requests().iter().any(whole), "{}", origin.name());
        }
    }
}

fn head(media_type: &str, length: usize) -> String {
    head_with(media_type, &format!("Content-Length: {length}\r\n"))
}

fn chunked_head(media_type: &str) -> String {
    head_with(media_type, "Transfer-Encoding: chunked\r\n")
}

fn head_with(media_type: &str, fields: &str) -> String {
    let media_type = match media_type {
        "" => String::new(),
        media_type => format!("Content-Type: {media_type}\r\n"),
    };
    format!("POST /orders HTTP/1.1\r\nHost: shop.example\r\n{media_type}{fields}\r\n")
}

/// An order of about so many bytes that costs so much, which stands behind its items.
fn xml_order(bytes: usize, total: u32) -> Vec<u8> {
    let items = "<item>some thing</item>".repeat(bytes / 23);
    format!("<purchase>{items}<totalAmount>{total}</totalAmount></purchase>").into_bytes()
}

/// The same with its costs at its start.
fn xml_order_first(bytes: usize, total: u32) -> Vec<u8> {
    let items = "<item>some thing</item>".repeat(bytes / 23);
    format!("<purchase><totalAmount>{total}</totalAmount>{items}</purchase>").into_bytes()
}

fn json_order(bytes: usize, total: u32) -> Vec<u8> {
    let items = "{\"name\":\"some thing\"},".repeat(bytes / 22);
    format!("{{\"order\":{{\"items\":[{items}0],\"total\":{total}}}}}").into_bytes()
}

fn json_order_first(bytes: usize, total: u32) -> Vec<u8> {
    let items = "{\"name\":\"some thing\"},".repeat(bytes / 22);
    format!("{{\"order\":{{\"total\":{total},\"items\":[{items}0]}}}}").into_bytes()
}
