//! An HTTP request as the fields that a rule can ask for, lazily.
