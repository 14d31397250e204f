//! OpenSSL, through its own `openssl speed`: whichever version, provider or engine is installed, without linking any.
//!
//! It is told to count by the wall clock (`-elapsed`); by itself it divides by CPU time, which makes a card that works
//! while the CPU idles look as fast as one likes. CPU time is read from the kernel when it says that a measurement begins
//! and ends.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pointsman_bench::clock::now_ns;
use pointsman_bench::{Spent, Time, ticks_per_second};

use crate::operation::{Cipher, Group, Operation, Primitive, Signature};
use crate::round::Round;
use crate::work::Trouble;

/// The program, and what it is told besides.
#[derive(Clone, Debug)]
pub struct Openssl {
    program: PathBuf,
    version: String,
    options: Vec<String>,
}

impl Openssl {
    /// Asks the program for its version. `options` come before each algorithm: `-engine`, `-provider`, `-async_jobs`.
    ///
    /// # Errors
    /// When it does not start, or is no OpenSSL.
    pub fn find(program: &Path, options: Vec<String>) -> Result<Openssl, Trouble> {
        let cannot = |why: String| Trouble::new(format!("cannot run `{}`: {why}", program.display()));
        let output = Command::new(program).arg("version").stdin(Stdio::null()).output();
        let output = output.map_err(|error| cannot(error.to_string()))?;
        let said = String::from_utf8_lossy(&output.stdout);
        // `OpenSSL 3.0.19 27 Jan 2026 (Library: …)`: name and version.
        let mut words = said.split_ascii_whitespace();
        match (words.next(), words.next()) {
            (Some(name), Some(version)) if output.status.success() => {
                Ok(Openssl { program: program.to_owned(), version: format!("{name} {version}"), options })
            }
            _ => Err(cannot("it does not say its version".to_owned())),
        }
    }

    /// Its name with what it is told, for people.
    pub fn name(&self) -> String {
        [vec!["openssl".to_owned()], self.options.clone()].concat().join(" ")
    }

    /// What `openssl version` says.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Measures a primitive for whole seconds, at least one, in so many processes at once.
    pub(crate) fn rounds(
        &self,
        primitive: Primitive,
        depth: usize,
        time: Duration,
    ) -> Result<Vec<(Operation, Round)>, Trouble> {
        let (words, operations) = asked(primitive)?;
        let mut command = Command::new(&self.program);
        command.args(["speed", "-mr", "-elapsed", "-seconds"]);
        command.arg(time.as_secs_f64().ceil().max(1.0).to_string());
        if depth > 1 {
            command.args(["-multi", &depth.to_string()]);
        }
        command.args(&self.options).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| Trouble::new(format!("cannot run openssl: {error}")))?;
        let mut running = Running(child);
        let seen = running.follow(operations.len(), depth)?;
        Ok(operations.into_iter().zip(seen).collect())
    }
}

/// What `openssl speed` is asked, and what it measures then, in this order.
fn asked(primitive: Primitive) -> Result<(Vec<String>, Vec<Operation>), Trouble> {
    let (word, operations) = match primitive {
        Primitive::Signature(signature) => {
            let word = match signature {
                Signature::Rsa2048 => "rsa2048",
                Signature::Rsa3072 => "rsa3072",
                Signature::Rsa4096 => "rsa4096",
                Signature::EcdsaP256 => "ecdsap256",
                Signature::EcdsaP384 => "ecdsap384",
                Signature::Ed25519 => "ed25519",
            };
            (word, primitive.operations())
        }
        // Only the step with one's own key is measured of these.
        Primitive::Exchange(group) => match group {
            Group::X25519 => ("ecdhx25519", vec![Operation::Finish(group)]),
            Group::P256 => ("ecdhp256", vec![Operation::Finish(group)]),
            Group::P384 => ("ecdhp384", vec![Operation::Finish(group)]),
            // From 3.5 on: a key pair, a capsule, and what is in it.
            Group::X25519MlKem768 => ("X25519MLKEM768", primitive.operations()),
        },
        Primitive::Cipher(cipher, bytes) => {
            let name = match cipher {
                Cipher::Aes128Gcm => "aes-128-gcm",
                Cipher::Aes256Gcm => "aes-256-gcm",
                Cipher::ChaCha20Poly1305 => "chacha20-poly1305",
            };
            // A record at a time: nonce, additional data, tag and all, not one long stream.
            let words = ["-aead", "-bytes", &bytes.to_string(), "-evp", name].map(str::to_owned);
            return Ok((words.to_vec(), primitive.operations()));
        }
        Primitive::Schedule(_) => return Err(Trouble::new("`openssl speed` measures no key schedule")),
    };
    Ok((vec![word.to_owned()], operations))
}

/// A line that it says to machines.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    /// `+DT…`: a measurement begins.
    Begins,
    /// `+R…:N:…`: it has ended, with so many operations.
    Ended(u64),
    /// Anything else.
    Other,
}

impl Said {
    fn read(line: &str) -> Said {
        if line.starts_with("+DT") {
            return Said::Begins;
        }
        let count = line.strip_prefix("+R").and_then(|rest| rest.split(':').nth(1)?.trim().parse().ok());
        count.map_or(Said::Other, Said::Ended)
    }
}

/// What it says of an engine that it does not have, or that does not start. It measures all the same then, without one, and
/// ends as if all was well.
fn is_no_engine(line: &str) -> bool {
    line.starts_with("Invalid engine") || line.starts_with("Can't use that engine")
        // The library's own complaints: `40B7…:error:13000074:engine routines:ENGINE_by_id:no such engine:…`.
        || (line.contains(":error:") && line.contains(":engine routines:"))
}

/// It runs, and is ended when nobody wants more of it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Running {
    /// Reads along until so many measurements have ended in all of its `depth` processes.
    fn follow(&mut self, wanted: usize, depth: usize) -> Result<Vec<Round>, Trouble> {
        let errors = self.0.stderr.take().ok_or_else(|| Trouble::new("openssl has no standard error"))?;
        let (mut begun, mut ended) = (0, 0);
        let mut phases: Vec<Phase> = Vec::new();
        let mut complaint = String::new();
        for line in BufReader::new(errors).lines().map_while(Result::ok) {
            if is_no_engine(&line) {
                return Err(Trouble::new(format!("openssl goes on without its engine: {}", line.trim())));
            }
            match Said::read(&line) {
                Said::Begins => {
                    if begun % depth == 0 {
                        phases.push(Phase::begin(self.0.id()));
                    }
                    begun += 1;
                }
                // Processes are a little apart: the first may begin anew before the last has ended.
                Said::Ended(operations) => {
                    if let Some(phase) = phases.get_mut(ended / depth) {
                        phase.end(self.0.id(), operations);
                    }
                    ended += 1;
                }
                Said::Other if !line.starts_with('+') => complaint = line,
                Said::Other => {}
            }
            if ended == wanted * depth {
                break;
            }
        }
        if ended < wanted * depth {
            return Err(Trouble::new(format!("`openssl speed` does not measure it: {}", complaint.trim())));
        }
        if depth > 1 {
            // Its children end with it, and not when it is killed.
            drop(self.0.wait());
        }
        Ok(phases.iter().take(wanted).map(|phase| phase.round(depth)).collect())
    }
}

/// One measurement, from its first process that begins to its last that has ended.
struct Phase {
    begun_ns: u64,
    before: Option<Time>,
    /// Until the first process had ended: all of them were at work.
    spent: Option<(u64, Spent)>,
    /// Operations, and how long after the beginning they were said.
    ended: Vec<(u64, u64)>,
}

impl Phase {
    fn begin(process: u32) -> Phase {
        let before = Time::of_trees(&[process]).ok();
        Phase { begun_ns: now_ns(), before, spent: None, ended: Vec::new() }
    }

    fn end(&mut self, process: u32, operations: u64) {
        let lasted_ns = now_ns().saturating_sub(self.begun_ns).max(1);
        self.ended.push((operations, lasted_ns));
        if self.spent.is_none() {
            let spent = self
                .before
                .as_ref()
                .and_then(|before| Some(Time::of_trees(&[process]).ok()?.since(before, ticks_per_second())));
            self.spent = spent.map(|spent| (lasted_ns, spent));
        }
    }

    fn round(&self, depth: usize) -> Round {
        let thread_ns: u64 = self.ended.iter().map(|(_, lasted_ns)| lasted_ns).sum();
        // What was spent until the first had ended stands for the rest.
        let share = |seconds: f64, of_ns: u64| {
            (seconds * 1e9 * thread_ns as f64 / (depth as f64 * of_ns as f64)) as u64
        };
        let (asking_cpu_ns, waited_ns) = match &self.spent {
            Some((of_ns, spent)) => {
                (share(spent.user + spent.system, *of_ns), spent.waited.map(|waited| share(waited, *of_ns)))
            }
            None => (0, None),
        };
        Round {
            operations: self.ended.iter().map(|(operations, _)| operations).sum(),
            rate: self.ended.iter().map(|(operations, ns)| *operations as f64 * 1e9 / *ns as f64).sum(),
            asking_cpu_ns,
            other_cpu_ns: 0,
            thread_ns,
            waited_ns,
            switched: None,
            latency: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_lines_are_read() {
        assert_eq!(Said::read("+DTP:2048:private:rsa:1"), Said::Begins);
        assert_eq!(Said::read("+DT:AES-128-GCM:1:1024"), Said::Begins);
        assert_eq!(Said::read("+R1:4316:2048:1.00"), Said::Ended(4316));
        assert_eq!(Said::read("+R8:40231:253:Ed25519:1.00"), Said::Ended(40_231));
        assert_eq!(Said::read("+R:1924774:AES-128-GCM:1.000000"), Said::Ended(1_924_774));
        for other in ["+F2:2:2048:4316.0:71554.0", "+H:16", "", "+R", "+R:x", "Forked child 0"] {
            assert_eq!(Said::read(other), Said::Other, "{other}");
        }
    }

    #[test]
    fn an_engine_that_is_not_there_is_not_measured_without() {
        for line in [
            "Invalid engine \"nope\"",
            "Can't use that engine",
            "4087442C587F0000:error:13000074:engine routines:ENGINE_by_id:no such engine:../eng_list.c:428:id=nope",
        ] {
            assert!(is_no_engine(line), "{line}");
        }
        assert!(!is_no_engine("Engine \"dynamic\" set.") && !is_no_engine("+DT:AES-128-GCM:1:16"));
        // What it does on the way, as OpenSSL 1.1 and 3 do it: it complains, and measures all the same.
        let says = "echo 'Invalid engine \"nope\"' >&2; echo +DT:x:1:16 >&2; echo +R:9:x:1.0 >&2";
        let mut shell = Command::new("sh");
        shell.args(["-c", says]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let trouble = Running(shell.spawn().expect("a shell")).follow(1, 1).expect_err("no engine");
        assert_eq!(trouble.to_string(), "openssl goes on without its engine: Invalid engine \"nope\"");
    }

    #[test]
    fn what_was_spent_by_all_is_that_of_the_time_in_which_all_worked() {
        let phase = Phase {
            begun_ns: 0,
            before: None,
            spent: Some((1_000_000_000, Spent { user: 1.8, system: 0.0, waited: Some(0.2) })),
            ended: vec![(100, 1_000_000_000), (110, 1_100_000_000)],
        };
        let round = phase.round(2);
        assert_eq!((round.operations, round.thread_ns), (210, 2_100_000_000));
        assert!((round.rate - 200.0).abs() < 1e-9 && (round.cpu_us() - 9000.0).abs() < 1.0, "{round:?}");
        assert!((round.cpu_share() - 1.0).abs() < 1e-6);
    }

    #[test]
    fn every_primitive_has_its_words_or_a_reason() {
        for primitive in Primitive::all(&[16]) {
            match asked(primitive) {
                Ok((words, operations)) => {
                    assert!(!words.is_empty());
                    let all = primitive.operations();
                    assert!(!operations.is_empty() && operations.iter().all(|one| all.contains(one)));
                }
                Err(trouble) => assert!(matches!(primitive, Primitive::Schedule(_)), "{trouble}"),
            }
        }
        let trouble = Openssl::find(Path::new("/nowhere/openssl"), Vec::new()).expect_err("not there");
        assert!(trouble.to_string().starts_with("cannot run `/nowhere/openssl`"), "{trouble}");
    }
}
