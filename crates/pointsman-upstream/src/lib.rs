//! Live connections to chosen servers and the pools of them.
