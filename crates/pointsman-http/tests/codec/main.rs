//! The codec against vectors in `testdata/http1/` and against its own promises.

mod answers;
mod bodies;
mod forwarding;
mod frames;
mod limits;
mod own_answers;
mod refusals;
mod requests;
mod upgrades;
mod vectors;
