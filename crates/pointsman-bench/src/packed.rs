//! How values of other libraries go from one machine to another: histograms as their buckets, bytes in base64, offers by
//! their names.

use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A time and how many requests took no longer than it, and longer than the one before.
type Buckets = Vec<(u64, u64)>;

fn buckets(times: &Histogram<u64>) -> Buckets {
    times.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())).collect()
}

/// The histogram with these buckets, each of which it has.
fn fill<E: de::Error>(mut empty: Histogram<u64>, buckets: Buckets) -> Result<Histogram<u64>, E> {
    for (time_ns, count) in buckets {
        empty.record_n(time_ns, count).map_err(|_| E::custom(format!("no histogram has {time_ns} ns")))?;
    }
    Ok(empty)
}

/// Histograms of a record.
pub(crate) mod times {
    use super::{Deserialize, Deserializer, Serialize, Serializer, buckets, fill};
    use crate::record::{Times, new_histogram};

    pub(crate) fn serialize<S: Serializer>(times: &Times, into: S) -> Result<S::Ok, S::Error> {
        buckets(times).serialize(into)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Times, D::Error> {
        fill(new_histogram(), Deserialize::deserialize(from)?)
    }
}

/// Histograms of classes, which know fewer digits.
pub(crate) mod coarse_times {
    use super::{Deserialize, Deserializer, Serialize, Serializer, buckets, fill};
    use crate::classes::coarse_histogram;
    use crate::record::Times;

    pub(crate) fn serialize<S: Serializer>(times: &Times, into: S) -> Result<S::Ok, S::Error> {
        buckets(times).serialize(into)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Times, D::Error> {
        fill(coarse_histogram(), Deserialize::deserialize(from)?)
    }
}

/// Bytes that are no text.
pub(crate) mod bytes {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::{Deserialize, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], into: S) -> Result<S::Ok, S::Error> {
        into.serialize_str(&STANDARD.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        STANDARD.decode(String::deserialize(from)?).map_err(de::Error::custom)
    }
}

/// What is offered in handshakes.
pub(crate) mod offer {
    use pointsman_tls::{Offer, OneVersion};

    use super::{Deserialize, Deserializer, Serialize, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(offer: &Offer, into: S) -> Result<S::Ok, S::Error> {
        (offer.version.map(OneVersion::name), &offer.suites, &offer.groups).serialize(into)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Offer, D::Error> {
        let (version, suites, groups) = <(Option<String>, Vec<String>, Vec<String>)>::deserialize(from)?;
        let known = |name: String| {
            let found = [OneVersion::Tls12, OneVersion::Tls13].into_iter().find(|known| known.name() == name);
            found.ok_or_else(|| de::Error::custom(format!("TLS has no version `{name}`")))
        };
        Ok(Offer { version: version.map(known).transpose()?, suites, groups })
    }
}
