//! All handshakes of a plan, one at a time, the series in turns.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pointsman_bench::{Kind, Look, SelfWatch, Sessions, ThreadWatch, count_of, unlike_pinned};
use pointsman_measure::verdict::{Measure, SelfMeasures};
use pointsman_measure::{Interval, Random};
use pointsman_tls::{ClientTls, SystemAuthorities, TlsVersion};
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;

use super::capture::Capture;
use super::key_log::SecretsFile;
use super::outcome::{Measured, Outcome, Seen, Void};
use super::plan::{KindWanted, Plan, Wanted};
use super::predict::{self, Agreed};
use super::recording::Recording;
use super::shake::{Shaken, Where, shake};
use crate::crypto;
use crate::operation::{Operation, Primitive};
use crate::provider::Provider;
use crate::work::Trouble;

/// So many failures one after the other end the run.
const FAILURES_MAX: u32 = 10;
/// How often and how long each primitive is measured for the prediction.
const ROUNDS: u32 = 10;
const ROUND_TIME: Duration = Duration::from_millis(30);

/// How far it is.
#[derive(Clone, Debug)]
pub struct Progress {
    /// From 0 to 1.
    pub share: f64,
    /// What is measured now.
    pub what: String,
}

/// A series while it is measured.
struct Series {
    config: Arc<ClientConfig>,
    sessions: Arc<Sessions>,
    seen: Seen,
}

/// Measures all of a plan.
///
/// # Errors
/// A plan that contradicts itself, a server that does no handshake, files that cannot be written.
pub fn handshake(plan: &Plan, on_progress: &mut dyn FnMut(&Progress)) -> Result<Outcome, Trouble> {
    plan.check()?;
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let address = plan.url.address().map_err(|fault| Trouble::new(fault.to_string()))?;
    let secrets = plan.key_log.as_deref().map(SecretsFile::create).transpose()?.map(Arc::new);
    let mut capture = plan.capture.as_deref().map(Capture::create).transpose()?;
    let authorities = SystemAuthorities::default();
    let mut all = Vec::new();
    for wanted in &plan.series {
        all.push(Series::new(plan, wanted, &authorities, secrets.as_ref())?);
    }
    let own = SelfWatch::of(vec![ThreadWatch::own()]);
    let before = own.look();
    let done = take_turns(plan, address, &mut all, capture.as_mut(), on_progress)?;
    let watched = watched(&before, &own.look());
    if let Some(secrets) = &secrets {
        secrets.finish()?;
    }
    let left_out = capture.map(Capture::finish).transpose()?.unwrap_or(0);
    let mut outcome = Outcome {
        plan: plan.clone(),
        address,
        began_unix_s: began.as_secs(),
        series: Vec::new(),
        primitives: None,
        voids: Vec::new(),
        watched,
        connections_not_captured: left_out,
        interrupted: (done < plan.count).then(|| how_far(done, plan)),
    };
    let mut random = Random::new(plan.seed);
    for (wanted, series) in plan.series.iter().zip(all) {
        outcome.voids.extend(series.seen.voids(wanted, done));
        outcome.series.push(Measured::of(wanted, series.seen, &mut random));
    }
    match predict_all(plan, &mut outcome, on_progress) {
        Err(_) if plan.interrupt.has_come() => {
            let words = "the primitives of the prediction had not been measured by then";
            outcome.interrupted.get_or_insert_with(|| words.to_owned());
        }
        predicted => predicted?,
    }
    Ok(outcome)
}

fn how_far(done: u32, plan: &Plan) -> String {
    format!("{done} of {} handshakes of each series had been done by then", plan.count)
}

/// What one thread and its machine spent.
fn watched(before: &Look, after: &Look) -> SelfMeasures {
    let seconds = after.seconds_since(before);
    let spent = after.threads_since(before).into_iter().next().flatten();
    let stolen = after.stolen_since(before);
    let unknown = [
        (Measure::Waited, spent.is_none_or(|spent| spent.waited.is_none())),
        (Measure::Steal, stolen.is_none()),
    ];
    SelfMeasures {
        steal_share: stolen,
        waited_share: spent.and_then(|spent| spent.waited),
        switches_per_s: spent.map(|spent| spent.involuntary_switches as f64 / seconds),
        unknown: unknown.into_iter().filter(|(_, is_so)| *is_so).map(|(measure, _)| measure).collect(),
        ..SelfMeasures::default()
    }
}

impl Series {
    fn new(
        plan: &Plan,
        wanted: &Wanted,
        authorities: &SystemAuthorities,
        secrets: Option<&Arc<SecretsFile>>,
    ) -> Result<Series, Trouble> {
        let settings = ClientTls {
            ca: plan.ca.clone(),
            certificate: plan.certificate.clone(),
            verify: plan.verify,
            min_version: TlsVersion::Tls12,
            protocol: "http/1.1",
        };
        let config = wanted.offer.client_config(&settings, authorities);
        let mut config = config.map_err(|errors| {
            let words: Vec<String> = errors.iter().map(ToString::to_string).collect();
            Trouble::new(words.join("\n"))
        })?;
        let sessions = Arc::new(Sessions::default());
        if wanted.kind == KindWanted::Resumed {
            config.resumption = Resumption::store(sessions.clone());
        }
        if let Some(secrets) = secrets {
            config.key_log = secrets.clone();
        }
        Ok(Series { config: Arc::new(config), sessions, seen: Seen::default() })
    }

    /// One handshake; the first of a series that resumes only fetches a session, and is not counted.
    fn turn(
        &mut self,
        to: &Where<'_>,
        recording: &mut Recording,
        scratch: &mut Vec<u8>,
        offers: bool,
    ) -> Result<Shaken, Trouble> {
        self.sessions.offer(offers);
        let sessions = self.sessions.clone();
        shake(to, &self.config, move || sessions.was_offered(), recording, scratch)
    }
}

fn take_turns(
    plan: &Plan,
    address: SocketAddr,
    all: &mut [Series],
    mut capture: Option<&mut Capture>,
    on_progress: &mut dyn FnMut(&Progress),
) -> Result<u32, Trouble> {
    let name = plan.server_name.clone().unwrap_or_else(|| plan.url.host.clone());
    let parsed = ServerName::try_from(name.clone());
    let name = parsed.map_err(|_| Trouble::new(format!("`{name}` is no server name for TLS")))?;
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        plan.url.target,
        plan.url.authority()
    );
    let to = Where { address, name, request: request.as_bytes(), timeout: plan.timeout, close: plan.close };
    let mut recording = Recording { wanted: capture.is_some(), pieces: Vec::new() };
    let mut scratch = Vec::new();
    // Before anything counts: does it answer at all, and a session where one is to go on.
    for (series, wanted) in all.iter_mut().zip(&plan.series) {
        let first = series.turn(&to, &mut Recording::default(), &mut scratch, false);
        first.map_err(|trouble| {
            Trouble::new(format!("no handshake ({}) with {}: {trouble}", wanted.name(), plan.url))
        })?;
    }
    let mut in_a_row = 0;
    for number in 0..plan.count {
        match number {
            _ if !plan.interrupt.has_come() => {}
            0 => return Err(Trouble::new("it was interrupted before there was a handshake that counts")),
            done => return Ok(done),
        }
        on_progress(&Progress {
            share: f64::from(number) / f64::from(plan.count),
            what: format!("handshake {number} of {} in each of {} series", plan.count, all.len()),
        });
        for (series, wanted) in all.iter_mut().zip(&plan.series) {
            recording.pieces.clear();
            let offers = wanted.kind == KindWanted::Resumed;
            match series.turn(&to, &mut recording, &mut scratch, offers) {
                Ok(shaken) => {
                    in_a_row = 0;
                    if let Some(capture) = capture.as_deref_mut() {
                        capture.write((shaken.from, address), &shaken.moments, &recording.pieces)?;
                    }
                    series.seen.take(shaken);
                }
                Err(trouble) => {
                    in_a_row += 1;
                    if in_a_row == FAILURES_MAX {
                        let words =
                            format!("{FAILURES_MAX} handshakes failed one after the other: {trouble}");
                        return Err(Trouble::new(words));
                    }
                    series.seen.failed(trouble);
                }
            }
        }
    }
    Ok(plan.count)
}

impl Seen {
    /// What was not as it was wanted, of so many handshakes.
    fn voids(&self, wanted: &Wanted, done: u32) -> Vec<Void> {
        let mut voids = Vec::new();
        let mut void = |code, sentence: String| {
            voids.push(Void { code, sentence: format!("{}: {sentence}", wanted.name()) });
        };
        let all = count_of(&self.negotiated, |_| true);
        let kind = match wanted.kind {
            KindWanted::Full => Kind::Full,
            KindWanted::Resumed => Kind::Resumed,
        };
        for other in Kind::ALL.into_iter().filter(|other| *other != kind) {
            let count = count_of(&self.negotiated, |agreed| agreed.kind == other);
            if count > 0 {
                void("kind", format!("{count} of {all} handshakes were {}", other.name()));
            }
        }
        unlike_pinned(&wanted.offer, &self.negotiated)
            .into_iter()
            .for_each(|words| void("negotiated", words));
        if self.negotiated.len() > 1 {
            void("mixed", "the server did not agree on the same in all handshakes".to_owned());
        }
        if let Some(trouble) = &self.first_failure {
            let words = format!("{} of {done} handshakes failed ({trouble})", self.failed);
            void("failed", words);
        }
        voids
    }
}

/// Measures what the handshakes were made of, on this machine, in this run; then each series has its prediction.
fn predict_all(
    plan: &Plan,
    outcome: &mut Outcome,
    on_progress: &mut dyn FnMut(&Progress),
) -> Result<(), Trouble> {
    let Some(library) = plan.predicted_with.as_ref().filter(|_| outcome.interrupted.is_none()) else {
        return Ok(());
    };
    let agreed: Vec<Option<Agreed>> = outcome.series.iter().map(agreed).collect();
    let mut primitives: Vec<Primitive> = Vec::new();
    for operation in agreed.iter().flatten().flat_map(Agreed::operations) {
        if !primitives.contains(&operation.primitive()) {
            primitives.push(operation.primitive());
        }
    }
    if primitives.is_empty() {
        return Ok(());
    }
    let measured = crypto::crypto(
        &crypto::Plan {
            primitives,
            providers: vec![Provider::Library(library.clone())],
            depths: vec![1],
            rounds: ROUNDS,
            round_time: ROUND_TIME,
            seed: plan.seed,
            interrupt: plan.interrupt.clone(),
        },
        &mut |progress| {
            let what = format!("primitives for the prediction: {}", progress.what);
            on_progress(&Progress { share: progress.share, what });
        },
    )?;
    if measured.interrupted.is_some() {
        // A sum that lacks steps predicts nothing.
        return Err(Trouble::new("it was interrupted"));
    }
    let cost = |operation: Operation| {
        let row = measured.rows.iter().find(|row| row.operation == operation)?;
        let Interval { estimate, low, high } = row.figures.rate;
        // A rate's interval may reach below nothing, and a time has an end.
        let low = low.max(estimate / 100.0);
        Some(Interval { estimate: 1e6 / estimate, low: 1e6 / high, high: 1e6 / low })
    };
    for (series, agreed) in outcome.series.iter_mut().zip(agreed) {
        series.servers = agreed.map(|agreed| agreed.servers(cost));
        series.clients = agreed.map(|agreed| agreed.clients(cost));
    }
    outcome.primitives = Some(measured);
    Ok(())
}

/// What a series agreed on, if it was the same in all.
fn agreed(series: &Measured) -> Option<Agreed> {
    let [(negotiated, _)] = series.negotiated.as_slice() else { return None };
    let is_tls12 = negotiated.version == "1.2";
    Some(Agreed {
        kind: negotiated.kind,
        is_tls12,
        suite: predict::suite(negotiated.suite),
        group: predict::group(negotiated.group),
        key: series.key,
        flight_bytes: (series.flight_bytes as usize).min(crypto::BLOCK_BYTES_MAX),
    })
}
