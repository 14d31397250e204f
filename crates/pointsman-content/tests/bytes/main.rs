//! Text encodings, forms and content codings against vectors in `testdata/content/` and against their own promises.

mod attacks;
mod coding;
mod coding_attacks;
mod heard;
mod multipart;
mod text;
mod urlencoded;
mod vectors;
