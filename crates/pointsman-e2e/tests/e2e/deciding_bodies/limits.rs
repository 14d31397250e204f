//! How much is held.
