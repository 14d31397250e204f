//! Requests that prove what is said.
