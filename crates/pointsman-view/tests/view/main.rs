//! The view against vectors in `testdata/normal-forms/` and against its own promises.

mod fields;
mod forwarding;
mod head;
mod headers;
mod hosts;
mod papers;
mod parameters;
mod paths;
mod vectors;
