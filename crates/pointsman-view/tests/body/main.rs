//! Bodies against vectors in `testdata/bodies/`, in whatever pieces they come.

mod case;
mod cuts;
mod fields;
mod moments;
