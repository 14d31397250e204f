//! Starts the real binary on port 0 and talks to it as clients and servers do.
