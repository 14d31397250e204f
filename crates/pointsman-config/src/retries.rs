//! When another server is asked, and for which requests: from the keys of a pool to what they mean.

use pointsman_http::Method;

use crate::notation::Refusal;
use crate::section::Section;

/// Why a try at a server has failed, as far as another one may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryCause {
    /// No connection came about.
    Connect,
    /// The connection ended before the answer's head was whole, or the server said that it did not look.
    Reset,
    /// The server was too slow.
    Timeout,
    /// It answered 502.
    Status502,
    /// It answered 503.
    Status503,
    /// It answered 504.
    Status504,
}

/// What a pool says of further tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// One bit for each cause.
    causes: u8,
    methods: RetryMethods,
}

/// Requests that may be sent again though a server may have looked at them: one bit for each method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RetryMethods(u16);

const CAUSES: [(&str, RetryCause); 6] = [
    ("connect", RetryCause::Connect),
    ("reset", RetryCause::Reset),
    ("timeout", RetryCause::Timeout),
    ("status-502", RetryCause::Status502),
    ("status-503", RetryCause::Status503),
    ("status-504", RetryCause::Status504),
];

/// Those that a list can name. CONNECT is refused; of others only the server knows what they do.
const METHODS: [(&str, Method); 7] = [
    ("GET", Method::Get),
    ("HEAD", Method::Head),
    ("POST", Method::Post),
    ("PUT", Method::Put),
    ("DELETE", Method::Delete),
    ("OPTIONS", Method::Options),
    ("TRACE", Method::Trace),
];

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy {
            causes: bit_of(RetryCause::Connect) | bit_of(RetryCause::Reset),
            methods: RetryMethods::of(Method::is_idempotent),
        }
    }
}

impl RetryPolicy {
    pub(crate) fn read(section: &Section<'_>) -> RetryPolicy {
        let mut policy = RetryPolicy::default();
        if section.has("retry_on") {
            let causes = section.parsed_list("retry_on", cause);
            policy.causes = causes.iter().fold(0, |bits, cause| bits | bit_of(cause.value));
        }
        if section.has("retry_methods") {
            let methods = section.parsed_list("retry_methods", methods);
            let none = RetryMethods(0);
            policy.methods = methods.iter().fold(none, |all, methods| all.and(methods.value));
        }
        policy
    }

    /// Whether another server is asked for that.
    #[must_use]
    pub fn is_on(self, cause: RetryCause) -> bool {
        self.causes & bit_of(cause) != 0
    }

    /// Whether a request of this method may be sent again though a server may have looked at it.
    #[must_use]
    pub fn repeats(self, method: Method) -> bool {
        self.methods.0 & 1 << method as u16 != 0
    }
}

impl RetryMethods {
    fn of(takes: impl Fn(Method) -> bool) -> RetryMethods {
        let methods = METHODS.iter().filter(|(_, method)| takes(*method));
        RetryMethods(methods.fold(0, |bits, (_, method)| bits | 1 << *method as u16))
    }

    fn and(self, other: RetryMethods) -> RetryMethods {
        RetryMethods(self.0 | other.0)
    }
}

impl RetryCause {
    /// What a status says, if it can be a cause.
    #[must_use]
    pub fn of_status(status: u16) -> Option<RetryCause> {
        match status {
            502 => Some(RetryCause::Status502),
            503 => Some(RetryCause::Status503),
            504 => Some(RetryCause::Status504),
            _ => None,
        }
    }
}

fn bit_of(cause: RetryCause) -> u8 {
    1 << cause as u8
}

fn cause(text: &str) -> Result<RetryCause, Refusal> {
    let found = CAUSES.iter().find(|(name, _)| *name == text).map(|(_, cause)| *cause);
    found.ok_or_else(|| Refusal {
        message: format!("`{text}` is nothing that another server is asked for"),
        help: format!("the causes are {}", listed(CAUSES.iter().map(|(name, _)| *name))),
    })
}

fn methods(text: &str) -> Result<RetryMethods, Refusal> {
    match text {
        "any" => return Ok(RetryMethods(u16::MAX)),
        "safe" => return Ok(RetryMethods::of(Method::is_safe)),
        "idempotent" => return Ok(RetryMethods::of(Method::is_idempotent)),
        _ => {}
    }
    let found = METHODS.iter().any(|(name, _)| *name == text);
    if found {
        return Ok(RetryMethods::of(|method| METHODS.contains(&(text, method))));
    }
    let upper = text.to_ascii_uppercase();
    let help = match METHODS.iter().any(|(name, _)| *name == upper) {
        true => format!("methods are written in capitals: `{upper}`"),
        false => format!(
            "write `idempotent`, `safe` or `any`, or some of {}",
            listed(METHODS.iter().map(|(name, _)| *name))
        ),
    };
    Err(Refusal { message: format!("`{text}` is no method that can be named here"), help })
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_again() {
        let repeated = |words: &[&str]| -> Vec<&str> {
            let none = RetryMethods(0);
            let all = words.iter().fold(none, |all, word| all.and(methods(word).expect(word)));
            let policy = RetryPolicy { methods: all, ..RetryPolicy::default() };
            let names = METHODS.iter().filter(|(_, method)| policy.repeats(*method)).map(|(name, _)| *name);
            names.chain(policy.repeats(Method::Other).then_some("others")).collect()
        };
        assert_eq!(repeated(&[]), [""; 0]);
        assert_eq!(repeated(&["safe"]), ["GET", "HEAD", "OPTIONS", "TRACE"]);
        assert_eq!(repeated(&["idempotent"]), ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"]);
        assert_eq!(repeated(&["GET", "POST"]), ["GET", "POST"]);
        let all = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "others"];
        assert_eq!(repeated(&["any"]), all);
        assert_eq!(repeated(&["PUT", "any"]), all);
    }

    #[test]
    fn the_default_is_what_cannot_be_done_twice() {
        let policy = RetryPolicy::default();
        let on: Vec<_> =
            CAUSES.iter().filter(|(_, cause)| policy.is_on(*cause)).map(|(name, _)| *name).collect();
        assert_eq!(on, ["connect", "reset"]);
        assert!(
            policy.repeats(Method::Put) && !policy.repeats(Method::Post) && !policy.repeats(Method::Other)
        );
    }
}
