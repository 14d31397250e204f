//! Who gets this request: algorithms, weights and stickiness, with time and randomness as arguments.
