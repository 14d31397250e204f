//! WebBench's workloads: classes of requests with percentages, and the numbers of clients that ask; orders in XML that grow.
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

mod orders;
mod parse;

pub use orders::{ITEMS, ITEMS_MAX, order};
pub use parse::{CLASSES_MAX, WORKLOAD_BYTES_MAX, parse};

/// The ladder of the papers: 1, 4, 8 … 60 clients.
pub const CLIENTS: [u32; 16] = [1, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60];

/// The class whose requests are answered with 404.
pub const NOT_FOUND_CLASS: &str = "CLASS_404";

/// Rounded, such a weight is off by less than a thousandth.
const WEIGHT_MIN: u32 = 1_000;

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

    /// How often each request is asked for beside the others: of each class its weights, one for each of its requests.
    ///
    /// None where a class has so many requests that its share cannot be told from the others' any more.
    pub fn weights(&self) -> Option<Vec<u32>> {
        let of_one = |class: &Class| f64::from(class.share_e4) / class.requests.len() as f64;
        let most = self.classes.iter().map(of_one).fold(0.0, f64::max);
        // As great as they may be, so that what is rounded away is small.
        let scale = f64::from(u32::MAX) / most;
        let weights: Vec<u32> = self.classes.iter().map(|class| (of_one(class) * scale) as u32).collect();
        weights.iter().all(|weight| *weight >= WEIGHT_MIN).then_some(weights)
    }
}
