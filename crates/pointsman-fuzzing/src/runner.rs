//! Runs a target over its seeds, its corpus and generated inputs, and shrinks what fails.

use std::cell::Cell;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use crate::Target;
use crate::mutation::mutated;
use crate::random::{Random, hash};

/// How a target is run.
#[derive(Clone, Debug)]
pub struct Run {
    /// How many inputs are generated, beside the seeds and the corpus.
    pub inputs: u64,
    /// Another number gives other inputs.
    pub seed: u64,
    /// Inputs that once failed, or that someone found interesting.
    pub corpus: Vec<Vec<u8>>,
}

/// An input for which a property does not hold, as small as it could be made.
#[derive(Debug)]
pub struct Failure {
    /// The target.
    pub target: &'static str,
    /// The input.
    pub input: Vec<u8>,
    /// What the target said.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { target, input, message } = self;
        write!(out, "{target} fails for b\"{}\"\n{message}\n", input.escape_ascii())?;
        write!(out, "keep it: printf '")?;
        for byte in input {
            write!(out, "\\{byte:03o}")?;
        }
        write!(out, "' > fuzz/corpus/{target}/NAME")
    }
}

/// Checks every input there is for `target`; returns how many there were.
///
/// # Errors
/// The first input that fails, shrunk.
pub fn run(target: &Target, run: &Run) -> Result<u64, Failure> {
    let mut pool = (target.seeds)();
    pool.extend(run.corpus.iter().cloned());
    let mut random = Random::new(run.seed ^ hash(target.name.as_bytes()));
    let known = pool.len() as u64;
    for number in 0..known + run.inputs {
        let generated;
        let input = match pool.get(number as usize) {
            Some(input) => input,
            None => {
                generated = mutated(&pool, target.tokens, &mut random);
                &generated
            }
        };
        if complaint(target.check, input).is_some() {
            return Err(shrunk(target, input.clone()));
        }
    }
    Ok(known + run.inputs)
}

thread_local! {
    /// Whether a panic on this thread is caught here, and need not be shown as well.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// What the target says against an input.
fn complaint(check: fn(&[u8]), input: &[u8]) -> Option<String> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let show = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_CAUGHT.get() {
                show(info);
            }
        }));
    });
    IS_CAUGHT.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| check(input)));
    IS_CAUGHT.set(false);
    let said = outcome.err()?;
    let text = said.downcast_ref::<String>().cloned();
    Some(text.or_else(|| said.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
}

/// Takes pieces away as long as what is left still fails, in halves first and in bytes at last.
fn shrunk(target: &Target, mut input: Vec<u8>) -> Failure {
    let mut piece = input.len().div_ceil(2);
    while piece > 0 {
        let mut at = 0;
        while at < input.len() {
            let mut smaller = input.clone();
            smaller.drain(at..(at + piece).min(input.len()));
            match complaint(target.check, &smaller) {
                Some(_) => input = smaller,
                None => at += piece,
            }
        }
        piece /= 2;
    }
    let message = complaint(target.check, &input).unwrap_or_default();
    Failure { target: target.name, input, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A target that does not like two things at once.
    const PICKY: Target = Target {
        name: "picky",
        check: |input| {
            let holds = |word: &[u8]| input.windows(word.len()).any(|piece| piece == word);
            assert!(!(holds(b"never") && holds(b"ever")), "both words");
        },
        seeds: || vec![b"a line\nwith nothing in it\n".to_vec()],
        tokens: &["never", "x", "\n"],
    };

    #[test]
    fn what_fails_is_found_and_shrunk() {
        let failure =
            run(&PICKY, &Run { inputs: 1000, seed: 1, corpus: vec![] }).expect_err("some input has it");
        assert_eq!(failure.input, b"never");
        assert_eq!(failure.message, "both words");
        assert!(failure.to_string().contains("picky fails for b\"never\""), "{failure}");
    }

    #[test]
    fn the_corpus_is_looked_at_and_counted() {
        let fine = Run { inputs: 0, seed: 1, corpus: vec![b"ever".to_vec()] };
        assert_eq!(run(&PICKY, &fine).expect("nothing is wrong"), 2);
        let corpus = vec![b"it never ends".to_vec()];
        assert_eq!(run(&PICKY, &Run { corpus, ..fine }).expect_err("found").input, b"never");
    }

    #[test]
    fn the_same_seed_gives_the_same_inputs() {
        let inputs = |seed| {
            let mut random = Random::new(seed);
            let pool = (PICKY.seeds)();
            (0..50).map(|_| mutated(&pool, PICKY.tokens, &mut random)).collect::<Vec<_>>()
        };
        assert_eq!(inputs(7), inputs(7));
        assert_ne!(inputs(7), inputs(8));
    }
}
