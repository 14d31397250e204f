//! What the operator wrote, with spans, and what it means, immutable.
