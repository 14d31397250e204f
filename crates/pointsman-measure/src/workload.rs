//! WebBench's workloads: classes of requests with percentages, and mixes of clients.
//!
//! ```text
//! # lines that begin with a number sign, and what follows one after a space, are comments
//! DEFINE_CLASSES
//!     CLASS_223.gif:  20
//!     CLASS_6040.htm: 78
//!     CLASS_404:      2
//!
//! DEFINE_REQUESTS
//!     CLASS_223.gif:
//!         GET /wb30tree/1/223_1.gif
//!         GET /wb30tree/2/223_1.gif
//!     CLASS_6040.htm:
//!         GET /wb30tree/1/6040_1.htm
//!     CLASS_404:
//!         GET /wb30tree/nowhere.htm
//! ```
//!
//! Of a class each request is as likely as the others. A class called `CLASS_404` is one whose requests are to be
//! answered with 404: there that is right, and anything else an error.

mod mix;
mod parse;

pub use mix::{CLIENTS, Mix, Think, ladder};
pub use parse::{WORKLOAD_BYTES_MAX, parse};

use crate::Random;

/// The class whose requests are answered with 404.
pub const NOT_FOUND_CLASS: &str = "CLASS_404";

/// What clients ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// In the order of the file; their percentages sum to 100.
    classes: Vec<Class>,
}

/// Requests that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// As in the file.
    pub name: String,
    /// Hundredths of a per cent of all requests: 2,050 are 20.5 %.
    pub share_e4: u32,
    /// At least one.
    pub requests: Vec<Request>,
}

/// A line of `DEFINE_REQUESTS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `GET`, `HEAD` or `POST`.
    pub method: Method,
    /// From the `/`, of visible ASCII.
    pub target: String,
}

/// The methods that a workload may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `GET`.
    Get,
    /// `HEAD`.
    Head,
    /// `POST`: its body is the generator's.
    Post,
}

impl Method {
    /// As it is written in a request.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
        }
    }
}

impl Class {
    /// Whether its requests are right when they are answered with 404.
    pub fn expects_not_found(&self) -> bool {
        self.name == NOT_FOUND_CLASS
    }
}

impl Workload {
    /// The classes, in the order of the file.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// A request by the shares of the classes, and the class that it is of.
    pub fn draw(&self, random: &mut Random) -> (&Class, &Request) {
        let mut at = random.below(parse::WHOLE as usize) as u32;
        let drawn = self.classes.iter().find(|class| {
            let is_this = at < class.share_e4;
            at = at.saturating_sub(class.share_e4);
            is_this
        });
        // The shares sum to the whole, so one is found; the last would be as good.
        let class = drawn.unwrap_or(&self.classes[self.classes.len() - 1]);
        (class, &class.requests[random.below(class.requests.len())])
    }
}
