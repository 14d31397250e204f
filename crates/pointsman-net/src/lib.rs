//! Listen, accept, deadlines, limits; the only crate that binds or accepts.
