//! The XML reader against vectors in `testdata/content/xml/`, against other readers, and against attacks.

mod reading;
mod vectors;
