//! Which tests must come to what for a request to reach a rule.
