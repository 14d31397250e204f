//! The XML reader against vectors in `testdata/content/xml/` and against other readers.

mod agreement;
mod generated;
mod mutations;
mod reading;
mod vectors;
