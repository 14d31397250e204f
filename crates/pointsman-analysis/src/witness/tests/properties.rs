//! Whatever is sought: there is no request, or one that shows it.
