//! Shows the running switch: metrics and health on a listener of its own.
