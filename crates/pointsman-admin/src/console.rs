//! The console: files that are built from `console/` and stand in the binary, under `/console/`.
//!
//! They say nothing of the switch, so whoever gets to the listener may read them; what the page in them asks for goes
//! through the API, like everybody else's requests ([why they are committed](../../../docs/adr/0063-the-console-is-built-before-it-is-committed.md)).

#[path = "../console/dist/files.rs"]
mod files;

use crate::page::Page;
use files::FILES;

const PREFIX: &str = "/console/";

/// What its page may load: what stands beside it, and nothing of another host. No text is taken for a script or a style.
const POLICY: &str = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

/// For its pages over TLS: in the clear browsers do not go by it, and complain.
pub(crate) const OVER_TLS: &str = "Cross-Origin-Opener-Policy: same-origin";

/// A built file, plain and compressed.
pub(crate) struct File {
    /// Behind the prefix.
    path: &'static str,
    media_type: &'static str,
    /// Whether its name says what stands in it, so that no name is ever another file.
    is_hashed: bool,
    plain: &'static [u8],
    gzip: &'static [u8],
    brotli: &'static [u8],
}

/// Whether a path is the console's.
pub(crate) fn has(path: &str) -> bool {
    path == "/console" || path.starts_with(PREFIX)
}

/// What stands at a path of its own.
pub(crate) fn file(method: &str, path: &str, accept_encoding: Option<&str>) -> Page {
    if !matches!(method, "GET" | "HEAD") {
        return Page::problem(405, "there is GET, HEAD alone").with_line("Allow: GET, HEAD");
    }
    let Some(name) = path.strip_prefix(PREFIX) else { return Page::moved(PREFIX) };
    let name = if name.is_empty() { "index.html" } else { name };
    let Some(file) = FILES.iter().find(|file| file.path == name) else {
        return Page::problem(404, "the console has no such file: it begins at `/console/`");
    };
    let (content, encoding) = match accept_encoding.map(Codings::of).unwrap_or_default() {
        Codings { brotli: true, .. } => (file.brotli, Some("Content-Encoding: br")),
        Codings { gzip: true, .. } => (file.gzip, Some("Content-Encoding: gzip")),
        _ => (file.plain, None),
    };
    // Which files there are is for the page to say: it is asked for again each time.
    let cache = if file.is_hashed { "public, max-age=31536000, immutable" } else { "no-cache" };
    let page = Page::file(file.media_type, cache, content)
        .with_line("Vary: Accept-Encoding")
        .with_line(POLICY)
        .with_line("Referrer-Policy: no-referrer")
        .with_line("Cross-Origin-Resource-Policy: same-origin");
    encoding.into_iter().fold(page, Page::with_line)
}

/// Which codings a client takes, as `Accept-Encoding` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Codings {
    gzip: bool,
    brotli: bool,
}

impl Codings {
    fn of(accepted: &str) -> Codings {
        let takes = |coding: &str| {
            accepted.split(',').any(|part| {
                let (name, weight) = part.split_once(';').unwrap_or((part, ""));
                let weight = weight.trim().strip_prefix("q=").map(|weight| weight.trim().parse::<f32>());
                name.trim().eq_ignore_ascii_case(coding)
                    && weight.is_none_or(|weight| weight.is_ok_and(|q| q > 0.0))
            })
        };
        Codings { gzip: takes("gzip"), brotli: takes("br") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codings_are_told_apart() {
        let check = |accepted, gzip, brotli| {
            assert_eq!(Codings::of(accepted), Codings { gzip, brotli }, "{accepted}")
        };
        check("gzip, deflate, br, zstd", true, true);
        check("GZIP;q=0.5", true, false);
        check("br;q=0, gzip; q=1.0", true, false);
        check("gzip;q=0.000", false, false);
        check("gzip;q=x", false, false);
        check("", false, false);
        check("x-gzip, brotli", false, false);
    }

    /// All of it is to come within 400 KB, compressed, and what a first look loads in much less: the editor is loaded when
    /// it is wanted.
    #[test]
    fn the_first_load_is_small() {
        let load = |is_loaded: fn(&File) -> bool, bytes: fn(&File) -> &'static [u8]| {
            FILES.iter().filter(|file| is_loaded(file)).map(|file| bytes(file).len()).sum::<usize>()
        };
        let first = load(|file| file.path == "index.html" || is_named_by_the_page(file), |file| file.gzip);
        assert!(first < 60_000, "{first} bytes");
        let all = [load(|_| true, |file| file.gzip), load(|_| true, |file| file.brotli)];
        assert!(all[0] < 400_000 && all[1] < load(|_| true, |file| file.plain), "{all:?} bytes");
    }

    fn is_named_by_the_page(file: &File) -> bool {
        let page = FILES.iter().find(|file| file.path == "index.html").expect("it is there");
        contains(page, file.path)
    }

    fn contains(file: &File, text: &str) -> bool {
        std::str::from_utf8(file.plain).is_ok_and(|content| content.contains(text))
    }

    #[test]
    fn the_page_names_no_other_host_and_has_nothing_inline() {
        let page = FILES.iter().find(|file| file.path == "index.html").expect("it is there");
        let text = std::str::from_utf8(page.plain).expect("text");
        for wrong in ["://", "<style", "style=", "<script>", "onload=", "javascript:"] {
            assert!(!text.contains(wrong), "{wrong} in {text}");
        }
        for file in FILES.iter().filter(|file| file.is_hashed && !is_named_by_the_page(file)) {
            let (_, name) = file.path.rsplit_once('/').expect("it stands in a folder");
            assert!(FILES.iter().any(|other| contains(other, name)), "{name} is loaded by nobody");
        }
    }

    #[test]
    fn nothing_is_there_but_files() {
        let status = |method, path| file(method, path, None).status();
        assert_eq!(status("GET", "/console/"), 200);
        assert_eq!(status("HEAD", "/console/index.html"), 200);
        assert_eq!(status("GET", "/console"), 308);
        assert_eq!(status("POST", "/console/"), 405);
        assert_eq!(status("GET", "/console/../Cargo.toml"), 404);
        assert!(!has("/consoles") && !has("/api/v1/console/"));
    }
}
