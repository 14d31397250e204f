//! Requests that prove what is said: a sketch of fields and their values becomes a request, which is parsed again and shows
//! exactly those values.

mod arrivals;
mod body;
mod coding;
mod connection;
mod content;
mod draft;
mod ends;
mod handshake;
mod hosts;
mod least;
mod lines;
mod odds;
mod reading;
mod redirected;
mod sender;
mod setting;
mod shown;
mod sought;
mod target;
#[cfg(test)]
pub(crate) mod tests;
mod versions;

use std::sync::Arc;

use ipnet::IpNet;
use pointsman_rules::{Cause, Decision, Field, Program, Truths};
use pointsman_view::{BodyPaths, Connection, RequestView};

pub(crate) use self::arrivals::Arrival;
pub use self::connection::{is_certificate, is_fingerprint, server_name, usual_client};
pub use self::draft::usual_method;
pub use self::ends::Ends;
pub use self::handshake::{Agreed, AgreedTls, ClientCertificates, Handshakes, HttpVersion};
pub(crate) use self::handshake::{Narrowed, Says, is_of_handshake};
pub use self::hosts::Hosts;
pub(crate) use self::hosts::{Directed, Named};
pub(crate) use self::lines::cookie_line;
pub use self::odds::{NeverAgreed, Odds};
use self::reading::Reading;
pub use self::sender::Proxy;
pub use self::setting::{OddFields, ProxyHeader, Setting};
pub use self::shown::ExplainOptions;
pub(crate) use self::sought::as_shown;
use self::sought::{Sought, Wish};
use crate::Effort;
use crate::wanted::Sketch;

/// Bytes of the longest body that is written out. Of a longer one only what stands in it is, and not the spaces behind that.
pub const WRITTEN_BODY_BYTES_MAX: usize = 64 * 1024;

/// A request, and the connection that it comes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The message as HTTP/1.1 writes it.
    bytes: Vec<u8>,
    is_of_http2: bool,
    /// What follows in its body.
    rest: Option<Padding>,
    connection: Connection,
    /// A proxy that is believed besides those of the setting.
    proxy: Option<Proxy>,
}

/// The rest of a long body, which is the same byte again and again, and says nothing there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Padding {
    /// A space behind a document, `&` behind a form.
    pub byte: u8,
    /// How many there are.
    pub bytes: u64,
}

impl Witness {
    /// The connection that it comes on.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// What follows in its body behind what is written; then the end of its chunk, where it has one.
    #[must_use]
    pub fn rest(&self) -> Option<Padding> {
        self.rest
    }

    /// Whether a proxy must be believed that the setting does not name.
    pub(crate) fn needs_proxy(&self) -> bool {
        self.proxy.is_some()
    }

    /// Shows what rules decide of it, at a listener of this setting. Nothing where the switch refuses it as no request.
    pub fn decided<T>(
        &self,
        program: &Arc<Program>,
        setting: &Setting,
        see: impl FnOnce(&Decision<'_>) -> T,
    ) -> Option<T> {
        let paths = Arc::new(BodyPaths::new(program));
        with_subject(program, &paths, self, setting, |subject| {
            see(&program.decide(subject, &mut Truths::default()))
        })
    }

    /// Whether its body is longer than what is held of one.
    fn is_too_long(&self, setting: &Setting) -> bool {
        let written = self.bytes.len() as u64;
        self.rest.is_some_and(|rest| rest.bytes.saturating_add(written) > setting.held_bytes_max())
    }

    /// The networks of those who are believed.
    fn networks(&self, setting: &Setting) -> Vec<IpNet> {
        let further = match self.proxy {
            Some(Proxy::Address(address)) => Some(IpNet::from(address)),
            Some(Proxy::Unix) | None => None,
        };
        setting.trusted_proxies.iter().copied().chain(further).collect()
    }

    /// Whether those of Unix sockets are.
    fn trusts_unix(&self, setting: &Setting) -> bool {
        setting.trusts_unix || self.proxy == Some(Proxy::Unix)
    }
}

/// Fields that no request was found for: it would have to have these values in all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unrealisable {
    /// None could be left out: for the values of the others there is a request. Where the effort for it was used up there
    /// may be more of them than it takes.
    pub(crate) fields: Vec<Field>,
    /// Whether they stand in bodies of different kinds: no request has a value in one of them and anything in another.
    /// Otherwise it is only said that none was found, and proves nothing.
    pub(crate) are_of_two_kinds: bool,
}

/// The simplest request that shows these values in these fields, as it was seen to do when it was parsed again.
///
/// Where there is none, the effort is asked for the search of what keeps it from being.
pub(crate) fn realise(
    sketch: &Sketch<'_>,
    setting: &Setting,
    effort: &mut Effort,
) -> Result<Witness, Unrealisable> {
    let wishes = Wish::all(sketch);
    let wishes: Vec<&Wish<'_>> = wishes.iter().collect();
    checked(&wishes, setting).ok_or_else(|| least::unrealisable(&wishes, setting, effort))
}

/// The same where nobody asks what keeps it from being.
pub(crate) fn realisable(sketch: &Sketch<'_>, setting: &Setting) -> Option<Witness> {
    let wishes = Wish::all(sketch);
    let wishes: Vec<&Wish<'_>> = wishes.iter().collect();
    checked(&wishes, setting)
}

/// A request for some wishes, if it shows them.
fn checked(wishes: &[&Wish<'_>], setting: &Setting) -> Option<Witness> {
    let depth_max = setting.body_options.limits.depth_max as usize;
    if wishes.iter().any(|wish| wish.is_deeper_than(depth_max)) {
        return None;
    }
    let sought = Sought::new(wishes);
    let witness = draft::request(&sought, setting)?;
    let program = Program::of_places(sought.places());
    let paths = Arc::new(BodyPaths::new(&program));
    let reading = Reading { program: &program, paths: &paths, values_max: usize::MAX };
    let too_long = witness.is_too_long(setting).then_some(Cause::Limit);
    let shows = |view: &RequestView<'_>| sought.is_shown_by(view, &program, too_long);
    reading::read(&reading, &witness, setting, shows)?.then_some(witness)
}

/// The same with all values of the fields of its body, where [`with_subject`] shows the first alone.
pub(crate) fn with_all_values<T>(
    program: &Arc<Program>,
    paths: &Arc<BodyPaths>,
    witness: &Witness,
    setting: &Setting,
    see: impl FnOnce(&RequestView<'_>) -> T,
) -> Option<T> {
    reading::read(&Reading { program, paths, values_max: usize::MAX }, witness, setting, see)
}

/// Shows a witness, its body read to the end, as a program's rules see it. Nothing where the switch refuses it as no
/// request.
///
/// What follows in a body that is longer than what is written of it says nothing further; of one that is longer than what is
/// held of it, it is not known. `paths` are those of the program.
pub(crate) fn with_subject<T>(
    program: &Arc<Program>,
    paths: &Arc<BodyPaths>,
    witness: &Witness,
    setting: &Setting,
    see: impl FnOnce(&RequestView<'_>) -> T,
) -> Option<T> {
    reading::read(&Reading { program, paths, values_max: 1 }, witness, setting, see)
}
