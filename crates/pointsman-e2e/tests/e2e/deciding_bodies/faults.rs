//! Orders that are not in order.
