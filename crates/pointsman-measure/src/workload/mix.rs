//! Mixes: with how many clients a workload is run, how long, and what they do between requests.

/// The ladder of the papers: 1, 4, 8 … 60 clients.
pub const CLIENTS: [u32; 16] = [1, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60];

/// What a client does between an answer and its next request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Think {
    /// Sends it at once.
    None,
    /// Waits so many ms.
    Constant(f64),
    /// Waits exponentially distributed times with this mean, in ms.
    Exponential(f64),
}

/// One rung: so many clients, each with one request on its way at a time (closed loop).
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// From 1.
    pub clients: u32,
    /// How long a client waits before its first request, times its number, in ms: they do not all begin at once.
    pub delay_ms: u64,
    /// How long it runs before it is measured, in ms.
    pub warm_up_ms: u64,
    /// How long it is measured, in ms.
    pub measured_ms: u64,
    /// Between requests.
    pub think: Think,
    /// Of a hundred connections so many are kept for several requests; the others have one each.
    pub persistent_percent: u8,
    /// Of a hundred persistent connections so many have several requests on their way.
    pub pipelined_percent: u8,
    /// Of a hundred connections so many are TLS.
    pub tls_percent: u8,
}

impl Default for Mix {
    /// One client on persistent plain connections for ten seconds, as WebBench has it by default.
    fn default() -> Self {
        Self {
            clients: 1,
            delay_ms: 0,
            warm_up_ms: 1_000,
            measured_ms: 10_000,
            think: Think::None,
            persistent_percent: 100,
            pipelined_percent: 0,
            tls_percent: 0,
        }
    }
}

/// The same mix with each number of clients.
pub fn ladder(mix: &Mix, clients: &[u32]) -> Vec<Mix> {
    clients.iter().map(|clients| Mix { clients: *clients, ..mix.clone() }).collect()
}

impl Think {
    /// The next wait in ms.
    pub fn draw_ms(self, random: &mut crate::Random) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Constant(ms) => ms,
            Self::Exponential(mean_ms) => random.exponential(mean_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn the_ladder_of_the_papers() {
        let mixes = ladder(&Mix { think: Think::Constant(5.0), ..Mix::default() }, &CLIENTS);
        let clients: Vec<u32> = mixes.iter().map(|mix| mix.clients).collect();
        assert_eq!((clients.len(), clients[0], clients[1], clients[15]), (16, 1, 4, 60));
        assert!(mixes.iter().all(|mix| mix.think == Think::Constant(5.0)));
    }

    #[test]
    fn think_times_have_their_mean() {
        let mut random = Random::new(1);
        let mean = (0..20_000).map(|_| Think::Exponential(40.0).draw_ms(&mut random)).sum::<f64>() / 20_000.0;
        assert!((mean - 40.0).abs() < 1.5, "{mean}");
        assert_eq!(Think::None.draw_ms(&mut random), 0.0);
        assert_eq!(Think::Constant(3.0).draw_ms(&mut random), 3.0);
    }
}
