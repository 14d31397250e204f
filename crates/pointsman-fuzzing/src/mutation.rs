//! New inputs out of old ones: bytes, lines and tokens are changed, repeated, moved and crossed.

use crate::random::Random;

/// Longer inputs only take longer.
const INPUT_BYTES_MAX: usize = 2048;

/// How many changes are made to one input, at most.
const CHANGES_MAX: usize = 6;

/// A changed copy of one of `seeds`.
pub(crate) fn mutated(seeds: &[Vec<u8>], tokens: &[&str], random: &mut Random) -> Vec<u8> {
    let seed = random.pick(seeds).map_or(&[][..], Vec::as_slice);
    let mut input = if random.below(4) == 0 { seed.to_vec() } else { excerpt(seed, random).to_vec() };
    // Mostly few: what is changed a lot is refused at its first byte.
    let changes = 1 + random.below(CHANGES_MAX);
    for _ in 0..=random.below(changes) {
        change(&mut input, seeds, tokens, random);
    }
    input.truncate(INPUT_BYTES_MAX);
    input
}

/// The whole of a short seed, a few lines of a long one: most of a long text is read in vain each time.
fn excerpt<'s>(seed: &'s [u8], random: &mut Random) -> &'s [u8] {
    const EXCERPT_BYTES: usize = 400;
    if seed.len() <= EXCERPT_BYTES {
        return seed;
    }
    let starts = line_starts(seed);
    let start = starts[random.below(starts.len())];
    let within = |end: &&usize| **end > start && **end <= start + EXCERPT_BYTES;
    let ends: Vec<&usize> = starts.iter().filter(within).collect();
    let end = random.pick(&ends).map_or(seed.len().min(start + EXCERPT_BYTES), |end| **end);
    &seed[start..end]
}

fn change(input: &mut Vec<u8>, seeds: &[Vec<u8>], tokens: &[&str], random: &mut Random) {
    let at = random.below(input.len() + 1);
    match random.below(12) {
        0 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = random.next() as u8;
            }
        }
        2 => drop(input.splice(at..at, [random.next() as u8])),
        3 => {
            let end = (at + 1 + random.below(8)).min(input.len());
            input.drain(at..end);
        }
        4 => {
            let end = (at + 1 + random.below(40)).min(input.len());
            let piece = input[at..end].to_vec();
            let to = random.below(input.len() + 1);
            input.splice(to..to, piece);
        }
        5 => input.truncate(at),
        6 => {
            let end = (at + random.below(12)).min(input.len());
            input.splice(at..end, token(tokens, random));
        }
        7 => cross(input, random.pick(seeds).map_or(&[][..], Vec::as_slice), random),
        8 => lines(input, random),
        9 => {
            let token: Vec<u8> = token(tokens, random);
            let repeated = token.repeat(1 + random.below(30));
            input.splice(at..at, repeated);
        }
        _ => drop(input.splice(at..at, token(tokens, random))),
    }
}

fn token(tokens: &[&str], random: &mut Random) -> Vec<u8> {
    random.pick(tokens).map_or_else(Vec::new, |token| token.as_bytes().to_vec())
}

/// The beginning of one and the end of the other, cut at a line where both have lines.
fn cross(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let (mine, theirs) = (line_starts(input), line_starts(other));
    let (mine, theirs) = match (random.below(2), random.pick(&mine), random.pick(&theirs)) {
        (0, Some(mine), Some(theirs)) => (*mine, *theirs),
        _ => (random.below(input.len() + 1), random.below(other.len() + 1)),
    };
    input.truncate(mine);
    input.extend_from_slice(&other[theirs..]);
}

/// A line twice, gone, or in another line's place.
fn lines(input: &mut Vec<u8>, random: &mut Random) {
    let starts = line_starts(input);
    let chosen = random.below(starts.len());
    let start = starts[chosen];
    let end = starts.get(chosen + 1).copied().unwrap_or(input.len());
    let line = input[start..end].to_vec();
    match random.below(3) {
        0 => drop(input.splice(start..start, line)),
        1 => drop(input.drain(start..end)),
        _ => {
            input.drain(start..end);
            let starts = line_starts(input);
            let to = starts[random.below(starts.len())];
            input.splice(to..to, line);
        }
    }
}

fn line_starts(input: &[u8]) -> Vec<usize> {
    let after = input.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    std::iter::once(0).chain(after).collect()
}
