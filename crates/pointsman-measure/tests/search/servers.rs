//! Servers of known behaviour, simulated: arrivals in, what a load generator would have seen out.

use pointsman_measure::Random;
use pointsman_measure::search::{Seen, Trial};
use pointsman_measure::verdict::Colour;

/// How a server takes its time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Server {
    /// One at a time, each the same time: M/D/1 under Poisson arrivals.
    Deterministic { capacity: f64 },
    /// One at a time, exponential times: M/M/1.
    Exponential { capacity: f64 },
    /// Answers at once up to a rate, and refuses what is over it, by a bucket of tokens with a burst of a tenth of a second.
    Limiter { capacity: f64 },
    /// As the first, but each waiting request over thirty makes all slower: throughput falls beyond the capacity.
    Retrograde { capacity: f64 },
    /// As the first, but its speed is drawn anew for each trial, with this deviation.
    Noisy { capacity: f64, deviation: f64 },
    /// As the first, but in a share of the trials it stands still for a second.
    Stalling { capacity: f64, share: f64 },
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    due_s: f64,
    end_s: f64,
    is_error: bool,
}

/// Runs a trial with Poisson arrivals.
pub(crate) fn run(server: Server, trial: &Trial) -> Seen {
    let mut random = Random::new(trial.seed);
    let warm_up = trial.warm_up_ms as f64 / 1_000.0;
    let end = warm_up + trial.measured_ms as f64 / 1_000.0;
    let mut arrivals = Vec::new();
    let mut now = 0.0;
    loop {
        now += random.exponential(1.0 / trial.rate_per_s);
        if now >= end {
            break;
        }
        arrivals.push(now);
    }
    let answers = serve(server, &arrivals, end, &mut random);
    observe(&answers, warm_up, end)
}

fn serve(server: Server, arrivals: &[f64], end: f64, random: &mut Random) -> Vec<Answer> {
    let (stall_at, speed) = match server {
        Server::Stalling { share, .. } if random.unit() < share => (end * random.unit(), 1.0),
        Server::Noisy { deviation, .. } => (f64::INFINITY, (deviation * random.normal()).exp()),
        _ => (f64::INFINITY, 1.0),
    };
    let mut free_at: f64 = 0.0;
    let mut stalled = false;
    let (mut tokens, mut filled_at) = (0.0_f64, 0.0);
    let answer = |due_s: &f64| {
        let due_s = *due_s;
        if let Server::Limiter { capacity } = server {
            tokens = (tokens + (due_s - filled_at) * capacity).min(capacity / 10.0);
            filled_at = due_s;
            let is_error = tokens < 1.0;
            tokens -= if is_error { 0.0 } else { 1.0 };
            return Answer { due_s, end_s: due_s + 0.001, is_error };
        }
        let mut start = free_at.max(due_s);
        if !stalled && start >= stall_at {
            stalled = true;
            start += 1.0;
        }
        let service = match server {
            Server::Exponential { capacity } => random.exponential(1.0 / capacity),
            Server::Retrograde { capacity } => {
                let waiting = (free_at - due_s).max(0.0) * capacity;
                (1.0 + 0.001 * (waiting - 30.0).clamp(0.0, 300.0)) / capacity
            }
            Server::Deterministic { capacity }
            | Server::Noisy { capacity, .. }
            | Server::Stalling { capacity, .. }
            | Server::Limiter { capacity } => 1.0 / (capacity * speed),
        };
        free_at = start + service;
        Answer { due_s, end_s: free_at, is_error: false }
    };
    arrivals.iter().map(answer).collect()
}

fn observe(answers: &[Answer], warm_up: f64, end: f64) -> Seen {
    let seconds = end - warm_up;
    let measured: Vec<&Answer> = answers.iter().filter(|answer| answer.due_s >= warm_up).collect();
    let achieved = answers.iter().filter(|a| !a.is_error && (warm_up..end).contains(&a.end_s)).count();
    let errors = measured.iter().filter(|answer| answer.is_error).count();
    let mut times: Vec<u64> =
        measured.iter().map(|answer| ((answer.end_s.min(end) - answer.due_s) * 1e6) as u64).collect();
    times.sort_unstable();
    let at =
        |share: f64| times.get((times.len() as f64 * share) as usize).or(times.last()).copied().unwrap_or(0);
    Seen {
        offered_per_s: measured.len() as f64 / seconds,
        achieved_per_s: achieved as f64 / seconds,
        errors_share: errors as f64 / measured.len().max(1) as f64,
        p50_us: at(0.5),
        p90_us: at(0.9),
        p99_us: at(0.99),
        edge_per_s: 0.0,
        control: Colour::Green,
        is_disturbed: false,
    }
}
