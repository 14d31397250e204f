//! One event enum; metrics and the access log are readers of it.
