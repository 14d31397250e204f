//! Why nothing comes as a test says.

use pointsman_analysis::{NeverAgreed, Odds, ProxyHeader, Setting};
use pointsman_rules::{Field, OwnedValue};

use super::said::Said;
use super::trial::{Verdict, listed, text_of};

/// What is said of a field: its values, none where it is absent.
type Told = (Field, Vec<OwnedValue>);

/// What is said beside what never comes with it.
pub(super) fn never(test: Said<'_>, said: &[Told], never: &NeverAgreed, setting: &Setting) -> Verdict {
    let Some((field, values)) = said.get(never.at) else {
        return Verdict::Impossible("no request comes to such a listener".to_owned());
    };
    let told = |(field, values): &Told| format!("`{field}` is {}", shown(values));
    let whole = match never.with {
        Odds::Field(other) => {
            let other = said.get(other).map(told).unwrap_or_default();
            format!("`{field}` is never {} where {other}", shown(values))
        }
        Odds::Several => format!("`{field}` is never {} beside what is said before it", shown(values)),
        Odds::Itself | Odds::Listener => format!("`{field}` is never {} here", shown(values)),
    };
    let is_of_ends = match never.with {
        Odds::Listener => !values.is_empty(),
        Odds::Field(other) => said.get(other).is_some_and(|(field, _)| *field == Field::DstIp),
        Odds::Itself | Odds::Several => false,
    };
    let help = match (never.with, field) {
        (Odds::Itself, Field::TlsSni) => {
            Some("it is a name of DNS in lower case, such as `shop.example`, and no address".to_owned())
        }
        (Odds::Itself, Field::TlsClientFingerprint) => {
            Some("it is a SHA-256 of 64 digits in lower-case hex".to_owned())
        }
        (Odds::Itself, Field::TlsClientCertificate) => Some("it is base64, with its padding".to_owned()),
        (Odds::Itself, Field::SrcPort | Field::DstPort) => Some("a port is from 1 to 65535".to_owned()),
        (_, Field::SrcIp) if setting.proxy_header == ProxyHeader::Required => {
            Some("the listener lets nobody in but its `trusted_proxies`".to_owned())
        }
        (_, Field::SrcIp) if never.instead.is_empty() && is_of_ends => {
            Some("both ends of a connection are of one family: IPv4 or IPv6".to_owned())
        }
        (_, Field::ClientIp | Field::Header(_)) if never.instead.is_empty() => {
            Some("only `trusted_proxies` are believed when they name a client".to_owned())
        }
        _ if never.instead.is_empty() => None,
        _ => Some(format!("it is {}", alternatives(&never.instead))),
    };
    test.impossible(field, whole, help)
}

fn shown(values: &[OwnedValue]) -> String {
    let values: Vec<_> = values.iter().map(|value| text_of(value.as_value())).collect();
    if values.is_empty() { "absent".to_owned() } else { listed(&values) }
}

/// `` `1.3` or `1.2` ``
fn alternatives(all: &[Vec<OwnedValue>]) -> String {
    let all: Vec<_> = all.iter().map(|values| shown(values)).collect();
    match all.as_slice() {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        all => all.concat(),
    }
}
