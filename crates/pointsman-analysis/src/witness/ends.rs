//! Where a connection comes from and to, and whom it speaks for, as far as it is said.

use std::net::{IpAddr, SocketAddr};

use pointsman_rules::{Field, OwnedValue};

use super::Setting;
use super::odds::{NeverAgreed, Odds, Told, first_at_odds};
use super::sender::{CLIENT_PORT, Proxy, Sender, is_of_sender};
use super::sought::{Sought, Wish};
use crate::wanted::Values;

/// The ends of a connection, and who is believed that speaks for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Where it comes from; nothing where that is a Unix socket.
    pub src: Option<SocketAddr>,
    /// Where it comes to, likewise.
    pub dst: Option<SocketAddr>,
    /// The client that a PROXY header names.
    pub proxied: Option<SocketAddr>,
    /// The client that an X-Forwarded-For line has to name, or a Forwarded line where there is to be no such.
    pub forwarded_for: Option<IpAddr>,
    /// Who is believed besides those of the setting.
    pub proxy: Option<Proxy>,
}

impl Setting {
    /// What a connection is where these fields have these values, each all of its own; without one it is absent. What is not
    /// said is as usual there. Fields of which the ends say nothing are passed over.
    ///
    /// # Errors
    /// Where nothing comes so.
    pub fn ends(&self, said: &[(Field, Vec<OwnedValue>)], is_tls: bool) -> Result<Ends, NeverAgreed> {
        let told: Vec<Told<'_>> =
            said.iter().enumerate().filter(|(_, (field, _))| is_of_sender(field)).collect();
        self.ends_of(&told, is_tls).ok_or_else(|| self.never_ends(&told, is_tls))
    }

    fn ends_of(&self, told: &[Told<'_>], is_tls: bool) -> Option<Ends> {
        let wish = |(_, (field, values)): &Told<'_>| (field.clone(), values.clone());
        let fields: Vec<_> = told.iter().map(wish).collect();
        let wishes: Vec<_> = fields
            .iter()
            .map(|(field, known)| Wish { field, values: Values { known: known.clone(), rest: None } })
            .collect();
        let wishes: Vec<&Wish<'_>> = wishes.iter().collect();
        let sought = Sought::new(&wishes);
        let sender = Sender::new(&sought, self)?;
        let ends = sender.ends(&sought, self, is_tls)?;
        Some(Ends {
            src: ends.map(|(src, _)| src),
            dst: ends.map(|(_, dst)| dst),
            proxied: sender.proxied.map(|client| SocketAddr::new(client, CLIENT_PORT)),
            forwarded_for: sender.forwarded_for,
            proxy: sender.proxy,
        })
    }

    /// Which field is the first that never comes so, and what it may be instead.
    fn never_ends(&self, told: &[Told<'_>], is_tls: bool) -> NeverAgreed {
        let comes = |told: &[Told<'_>]| self.ends_of(told, is_tls).is_some();
        let Some(((at, (field, _)), before, with)) = first_at_odds(told, &comes, can_be) else {
            return NeverAgreed { at: 0, with: Odds::Listener, instead: Vec::new() };
        };
        let mut instead: Vec<Vec<OwnedValue>> = match field {
            Field::DstIp | Field::DstPort => {
                self.choices(field).into_iter().flatten().map(|choice| choice.known).collect()
            }
            Field::ClientIp => {
                let is_peer = |(_, (field, _)): &&Told<'_>| *field == Field::SrcIp;
                before.iter().find(is_peer).map(|(_, (_, values))| values.clone()).into_iter().collect()
            }
            _ => Vec::new(),
        };
        if !self.takes_addresses && instead.is_empty() {
            instead.push(Vec::new());
        }
        instead.retain(|values| {
            let other = (field.clone(), values.clone());
            let with_other: Vec<Told<'_>> = before.iter().copied().chain([(at, &other)]).collect();
            comes(&with_other)
        });
        NeverAgreed { at, with, instead }
    }
}

/// Whether a connection can have it at all.
fn can_be(field: &Field, value: &OwnedValue) -> bool {
    match (field, value) {
        (Field::SrcPort | Field::DstPort, OwnedValue::Integer(port)) => (1..=0xffff).contains(port),
        _ => true,
    }
}
