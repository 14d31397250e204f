//! Which values of one field satisfy many tests at once.
