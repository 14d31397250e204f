//! Sessions of TLS that is not ended here: its server names them in the clear under TLS 1.2, and whoever shows the name again
//! belongs to that server.

use std::ops::ControlFlow;

use pointsman_config::Target;
use pointsman_rules::Stickiness;
use pointsman_tls::{SessionWatch, ShownSession, shown_session};

use crate::choice::Choice;
use crate::learned::Place;
use crate::local::LocalServer;
use crate::pick::{Fork, KnownBy, Route};
use crate::shard::Shard;
use crate::sticky_clients::seconds;

/// Listens to the server of one connection.
#[derive(Debug)]
pub(crate) struct Listening {
    watch: SessionWatch,
    place: Place,
}

impl Listening {
    /// Hears what the server says next. It breaks off where no name can follow.
    pub(crate) fn hear(&mut self, bytes: &[u8], server: &LocalServer, shard: &Shard) -> ControlFlow<()> {
        let Listening { watch, place } = self;
        watch.hear(bytes, &mut |name| place.put(name.as_bytes(), server, shard))
    }
}

impl Fork<'_> {
    /// The session that a client shows, where clients are kept by it; otherwise the hello is not looked into.
    pub(crate) fn session_shown(&self, sticky: &Stickiness, hello: Option<&[u8]>) -> ShownSession {
        let mut by = self.keeps.iter().map(|by| &by.sticky).chain([sticky]);
        let asks = by.any(|sticky| *sticky == Stickiness::TlsSession);
        hello.filter(|_| asks).map(shown_session).unwrap_or_default()
    }

    /// Who is to listen to the server that a choice leads to, where clients are kept by sessions that it names.
    pub(crate) fn listening(
        &self,
        sticky: &Stickiness,
        choice: &Choice,
        shown: ShownSession,
    ) -> Option<Box<Listening>> {
        if *sticky != Stickiness::TlsSession {
            return None;
        }
        let place = Place::of(sticky, choice, self)?;
        Some(Box::new(Listening { watch: SessionWatch::new(shown), place }))
    }

    /// Where a client goes whose session some server of the route is known to have named. There is nowhere to go for any
    /// other: under TLS 1.3 an identifier says nothing, and to hash it would be to draw lots.
    pub(crate) fn of_session(&self, sticky: &Stickiness, known: KnownBy<'_>) -> Option<Choice> {
        let name = known.key;
        let target = match self.route {
            Route::To(target) => self.knows(target, name).then_some(target),
            Route::Split(shares) => {
                let mut targets = shares.iter().map(|share| self.listener.target(share.target));
                targets.find(|target| self.knows(*target, name))
            }
        }?;
        let choice = self.inside(target, known);
        self.keep(sticky, name, &choice);
        Some(choice)
    }

    fn knows(&self, target: Target, name: &[u8]) -> bool {
        let Some(table) = self.shard.shared.sticky_clients.get() else { return false };
        let pool = self.local.pool(target.pool);
        let client = self.local.live.sticky.hash(pool.name().as_bytes(), name);
        let kept = table.server_of(client, seconds(self.shard.clock.round_us()));
        kept.is_some_and(|kept| pool.has_number(target.server, kept.server))
    }
}
