//! Text patterns: regexes as values that can be compared, `like` and `under`.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use regex::bytes::Regex;

/// Threads that have a copy of a regex to themselves; if there are more, two or three share one.
const COPIES: usize = 64;

/// A regex of a rule. All are built with the same options, so that those of the same text are equal.
///
/// A regex has room to work in for one thread, and more of it behind locks for the others; at each match somebody
/// writes what all of them read. So each thread asks a copy of its own, which is made when it first does.
#[derive(Clone)]
pub struct Matcher(Arc<Copies>);

struct Copies {
    original: Regex,
    /// By the number of the thread.
    own: [OnceLock<Regex>; COPIES],
}

thread_local! {
    /// Given to each thread that asks a regex.
    static NUMBER: usize = {
        static NUMBERED: AtomicUsize = AtomicUsize::new(0);
        NUMBERED.fetch_add(1, Ordering::Relaxed)
    };
}

/// The regex for this thread to ask.
impl Deref for Matcher {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        let Copies { original, own } = &*self.0;
        // A thread that is about to end has no number any more.
        NUMBER.try_with(|number| own[number % COPIES].get_or_init(|| original.clone())).unwrap_or(original)
    }
}

impl From<Regex> for Matcher {
    fn from(regex: Regex) -> Matcher {
        Matcher(Arc::new(Copies { original: regex, own: [const { OnceLock::new() }; COPIES] }))
    }
}

impl Matcher {
    /// What it was written as.
    fn text(&self) -> &str {
        self.0.original.as_str()
    }
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Matcher) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Matcher {}

impl Hash for Matcher {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text().hash(state);
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.original.fmt(f)
    }
}

/// Whether the whole of `text` fits `pattern`: `*` is any run of bytes, `?` any one byte.
///
/// Only the last `*` that was passed can need a longer run, since every earlier one could only
/// move the rest of the pattern further right; so the work is bounded by the product of the
/// lengths, without recursion.
pub(crate) fn like(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                last_star = Some((p, t));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((star, taken)) = last_star else {
                    return false;
                };
                last_star = Some((star, taken + 1));
                p = star + 1;
                t = taken + 1;
            }
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// Whether `path` is `prefix` or lies below it. A prefix that ends with `/` names only what lies
/// below.
pub(crate) fn under(prefix: &[u8], path: &[u8]) -> bool {
    match path.strip_prefix(prefix) {
        Some([] | [b'/', ..]) => true,
        Some(_) => prefix.ends_with(b"/"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{COPIES, Matcher, Regex, like, under};

    #[test]
    fn threads_ask_copies_of_their_own() {
        let matcher = Matcher::from(Regex::new("^a+$").expect("a regex"));
        // All are there at the same time, and so are their numbers.
        let all_there = std::sync::Barrier::new(COPIES + 1);
        let place = || {
            assert!(matcher.is_match(b"aa") && !matcher.is_match(b"ab"));
            all_there.wait();
            assert!(std::ptr::eq(&*matcher, &*matcher), "it is made once");
            std::ptr::from_ref::<Regex>(&matcher).addr()
        };
        let mut places: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..=COPIES).map(|_| scope.spawn(place)).collect();
            threads.into_iter().map(|thread| thread.join().expect("it matches")).collect()
        });
        places.sort_unstable();
        places.dedup();
        // Other tests take numbers meanwhile.
        assert!(places.len() > COPIES / 2 && places.len() <= COPIES, "{}", places.len());
    }

    fn slow_like(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            ([b'*', rest @ ..], _) => {
                slow_like(rest, text) || (!text.is_empty() && slow_like(pattern, &text[1..]))
            }
            ([b'?', rest @ ..], [_, text @ ..]) => slow_like(rest, text),
            ([byte, rest @ ..], [first, text @ ..]) => byte == first && slow_like(rest, text),
            _ => false,
        }
    }

    /// By segments: the prefix's are the first of the path's.
    fn slow_under(prefix: &str, path: &str) -> bool {
        let below_only = prefix.len() > 1 && prefix.ends_with('/');
        let prefix: Vec<_> = prefix.trim_end_matches('/').split('/').collect();
        let path: Vec<_> = path.split('/').collect();
        path.len() >= prefix.len() + usize::from(below_only) && path[..prefix.len()] == prefix[..]
    }

    #[test]
    fn like_by_example() {
        for (pattern, text, expected) in [
            ("*.gif", "/a/b.gif", true),
            ("*.gif", "/a/b.gif?x", false),
            ("/a/?/c", "/a/b/c", true),
            ("/a/?/c", "/a//c", false),
            ("", "", true),
            ("*", "", true),
            ("?", "", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
        ] {
            assert_eq!(like(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn like_stays_polynomial() {
        let pattern = b"a*".repeat(50);
        let text = [vec![b'a'; 20_000], vec![b'b']].concat();
        assert!(!like(&[&pattern[..], b"c"].concat(), &text));
    }

    #[test]
    fn under_by_example() {
        for (prefix, path, expected) in [
            ("/api", "/api", true),
            ("/api", "/api/x", true),
            ("/api", "/api/", true),
            ("/api", "/apix", false),
            ("/api", "/", false),
            ("/api/", "/api", false),
            ("/api/", "/api/x", true),
            ("/", "/", true),
            ("/", "/anything", true),
        ] {
            assert_eq!(under(prefix.as_bytes(), path.as_bytes()), expected, "{prefix} {path}");
        }
    }

    proptest! {
        #[test]
        fn like_is_its_definition(pattern in "[ab*?]{0,8}", text in "[ab]{0,10}") {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(like(pattern, text), slow_like(pattern, text));
        }

        #[test]
        fn under_is_its_definition(
            prefix in "(/[ab]{1,2}){0,3}/?".prop_filter("starts with a slash", |p| p.starts_with('/')),
            path in "(/[ab]{0,2}){1,4}",
        ) {
            prop_assert_eq!(under(prefix.as_bytes(), path.as_bytes()), slow_under(&prefix, &path));
        }
    }
}
