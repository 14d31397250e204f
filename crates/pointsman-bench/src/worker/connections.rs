//! Which connections a thread has: those with room, those of its clients, new ones, and those that end.

use std::io;

use rustls::ClientConnection;

use super::Worker;
use crate::Close;
use crate::bell::Bell;
use crate::clock::now_ns;
use crate::connection::{Connection, Job, Parts, kind_of};
use crate::plan::Handshakes;
use crate::record::{ErrorKind, LOOK_NS};
use crate::transport::Transport;

impl Worker {
    /// Sees to it that a connection is among those with room if it has some, and not otherwise.
    pub(super) fn list(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        if connection.owner.is_some() || connection.is_listed == connection.has_room() {
            return;
        }
        connection.is_listed = !connection.is_listed;
        let listed = &mut self.idle[connection.origin];
        match connection.is_listed {
            true => listed.push(number),
            // It is the one that was used last, nearly always.
            false => drop(listed.iter().rposition(|other| *other == number).map(|at| listed.remove(at))),
        }
    }

    /// A connection to this place that has room for so many requests.
    pub(super) fn free(&mut self, origin: usize, client: Option<u32>, requests: u32) -> Option<usize> {
        loop {
            let number = match client {
                Some(client) => self.own[self.place(client, origin)],
                None => self.idle[origin].last().copied(),
            }?;
            let connection = &self.connections[number];
            if connection.goes_on() && connection.left >= requests {
                return Some(number);
            }
            // It ends with what others have under way there.
            if !connection.is_quiet() {
                return None;
            }
            self.close_as(number, self.given.plan.close);
        }
    }

    /// Where a client's connection to an origin is known.
    fn place(&self, client: u32, origin: usize) -> usize {
        (client / self.given.plan.streams) as usize * self.idle.len() + origin
    }

    /// Makes room for a connection to this place by closing an idle one to another.
    pub(super) fn close_another(&mut self, origin: usize) -> bool {
        let others = (0..self.idle.len()).filter(|other| *other != origin);
        let is_quiet = |number: &&usize| self.connections[**number].is_quiet();
        let found = others.filter_map(|other| self.idle[other].iter().rfind(is_quiet)).next().copied();
        found.inspect(|number| self.close_as(*number, self.given.plan.close)).is_some()
    }

    /// Opens so many connections that no request waits for, to each place in turns, and waits until their handshakes are done
    /// or have failed, but no longer than a request may take.
    pub(crate) fn open_first(&mut self, count: usize) -> io::Result<()> {
        let mut ready = Vec::with_capacity(64);
        let origins = self.idle.len();
        (0..count).for_each(|number| self.open(number % origins, &[], now_ns()));
        let until_ns = now_ns() + self.given.plan.timeout.as_nanos() as u64;
        let is_over = |bell: &Bell| now_ns() >= until_ns || bell.is_over();
        while !is_over(&self.given.bell) && self.connections.iter().any(|(_, opened)| !opened.is_open()) {
            let now = now_ns();
            self.wait(now, until_ns.min(now + LOOK_NS), &mut ready)?;
            ready.drain(..).for_each(|ready| self.on_ready(ready, now_ns()));
        }
        (self.record.first_wanted, self.record.first_opened) = (count as u64, self.open_by_now());
        Ok(())
    }

    /// Waits until the load begins, and sees what of the connections that were to be open first is open then.
    pub(super) fn keep_open(&mut self, begin_ns: u64) -> io::Result<()> {
        if self.record.first_wanted == 0 {
            return Ok(());
        }
        let mut ready = Vec::with_capacity(64);
        loop {
            let now = now_ns();
            // What has ended meanwhile is heard of, even where the load has begun by now.
            self.wait(now, begin_ns.min(now + LOOK_NS), &mut ready)?;
            ready.drain(..).for_each(|ready| self.on_ready(ready, now_ns()));
            if now >= begin_ns || self.given.bell.has_rung() {
                break;
            }
        }
        self.record.first_open = self.open_by_now();
        Ok(())
    }

    fn open_by_now(&self) -> u64 {
        self.connections.iter().filter(|(_, connection)| connection.is_open()).count() as u64
    }

    /// Opens a connection for these. Where there are none it is kept for those to come.
    pub(super) fn open(&mut self, origin: usize, jobs: &[Job], now: u64) {
        let first = jobs.first();
        let client = first.and_then(|job| job.client.filter(|_| job.is_kept));
        match self.opened(origin, first, now) {
            Ok(mut connection) => {
                connection.owner = client;
                let entry = self.connections.vacant_entry();
                let number = entry.key();
                let watched = self.poller.watch(connection.socket(), number);
                entry.insert(connection);
                let most = self.connections.len() as u64;
                self.record.connections_most = self.record.connections_most.max(most);
                if let Some(client) = client {
                    let place = self.place(client, origin);
                    self.own[place] = Some(number);
                }
                if self.given.timeline.measures(now) {
                    self.record.opened += 1;
                }
                self.ask(number, jobs, now);
                if let Err(error) = watched {
                    self.fail_connection(number, kind_of(&error), now);
                }
            }
            Err(error) => {
                let kind = match kind_of(&error) {
                    ErrorKind::Reset | ErrorKind::Closed => ErrorKind::Connect,
                    kind => kind,
                };
                jobs.iter().for_each(|job| self.fail(*job, kind, now));
            }
        }
    }

    fn opened(&mut self, origin: usize, job: Option<&Job>, now: u64) -> io::Result<Connection> {
        let place = &self.given.requests.origins[origin];
        let (mut tls, mut offered) = (None, false);
        let client = job.and_then(|job| job.client);
        let user = self.turn.users.as_mut().zip(client).map(|(users, user)| users.get(user));
        let (config, sessions) = &user.and_then(|user| user.setup()).unwrap_or(&self.given.setup)[origin];
        if let (Some(config), Some(name)) = (config, &place.tls) {
            if let (Some(sessions), Handshakes::Resumed(share)) = (sessions, self.given.plan.handshakes) {
                sessions.offer(self.random.f64() < share);
            }
            let mut connection =
                ClientConnection::new(config.clone(), name.clone()).map_err(io::Error::other)?;
            // What is sent is ours, and as long as it is.
            connection.set_buffer_limit(None);
            offered = sessions.as_ref().is_some_and(|sessions| sessions.was_offered());
            tls = Some(Box::new(connection));
        }
        let from =
            self.given.plan.sources.at(self.opened * self.given.threads as u64 + self.given.index as u64);
        self.opened += 1;
        let transport = Transport::open(place.address, from, tls)?;
        let plan = &self.given.plan;
        let parts = self.spare.pop().unwrap_or_else(|| Parts::new(plan.protocol));
        let left = if job.is_none_or(|job| job.is_kept) { plan.requests_a_connection() } else { 1 };
        Ok(Connection::new(transport, parts, origin, (left, plan.streams), now, offered))
    }

    pub(super) fn close_as(&mut self, number: usize, how: Close) {
        let connection = self.connections.remove(number);
        if let Some(client) = connection.owner {
            let place = self.place(client, connection.origin);
            // They may have another by now.
            self.own[place] = self.own[place].filter(|own| *own != number);
        }
        if connection.is_listed {
            self.idle[connection.origin].retain(|listed| *listed != number);
        }
        self.spare.push(connection.close(how));
    }
}
