//! The text of a workload.

use pointsman_rules::{Diagnostic, Span};

use super::{Class, Method, Request, Workload};

/// A longer text is refused.
pub const WORKLOAD_BYTES_MAX: usize = 16 * 1024 * 1024;
/// All requests, in hundredths of a per cent.
const WHOLE: u32 = 10_000;
/// More classes are refused: each is measured by itself.
pub const CLASSES_MAX: usize = 256;
/// After so many errors no more are looked for.
const ERRORS_MAX: usize = 50;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Before,
    Classes,
    Requests,
}

struct Parser {
    section: Section,
    classes: Vec<(Class, Span)>,
    /// Index of the class that requests are being read for.
    current: Option<usize>,
    errors: Vec<Diagnostic>,
}

/// Reads a workload.
///
/// # Errors
/// All that is wrong with it (at most fifty findings), each with its place.
pub fn parse(text: &str) -> Result<Workload, Vec<Diagnostic>> {
    if text.len() > WORKLOAD_BYTES_MAX {
        let error =
            Diagnostic::error(Span::default(), format!("a workload of {} bytes is too long", text.len()));
        return Err(vec![error.help(format!("{WORKLOAD_BYTES_MAX} bytes are the most"))]);
    }
    let mut parser =
        Parser { section: Section::Before, classes: Vec::new(), current: None, errors: Vec::new() };
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if parser.errors.len() < ERRORS_MAX {
            parser.line(line, start);
        }
        start += line.len();
    }
    parser.end(text.len())
}

/// A piece of the text and where it stands.
#[derive(Clone, Copy)]
struct Piece<'t> {
    text: &'t str,
    start: usize,
}

impl<'t> Piece<'t> {
    fn trim(self) -> Self {
        let from_start = self.text.trim_start();
        let start = self.start + self.text.len() - from_start.len();
        Self { text: from_start.trim_end(), start }
    }

    fn split_once(self, separator: impl Fn(char) -> bool) -> Option<(Self, Self)> {
        let at = self.text.find(&separator)?;
        let rest = at + self.text[at..].chars().next().map_or(0, char::len_utf8);
        Some((
            Self { text: &self.text[..at], ..self },
            Self { text: &self.text[rest..], start: self.start + rest },
        ))
    }

    fn span(self) -> Span {
        Span { start: self.start as u32, end: (self.start + self.text.len()) as u32 }
    }
}

impl Parser {
    fn line(&mut self, line: &str, start: usize) {
        // A number sign inside a path is part of it.
        let begins = |at: usize| at == 0 || line[..at].ends_with([' ', '\t']);
        let comment = line.char_indices().find(|(at, c)| *c == '#' && begins(*at));
        let text = &line[..comment.map_or(line.len(), |(at, _)| at)];
        let piece = Piece { text, start }.trim();
        if piece.text.is_empty() {
            return;
        }
        match (piece.text, self.section) {
            ("DEFINE_CLASSES", Section::Before) => self.section = Section::Classes,
            ("DEFINE_REQUESTS", Section::Classes) => self.section = Section::Requests,
            ("DEFINE_CLASSES" | "DEFINE_REQUESTS", _) => {
                let error = Diagnostic::error(piece.span(), format!("`{}` does not belong here", piece.text));
                self.errors.push(error.help("a workload is DEFINE_CLASSES, then DEFINE_REQUESTS, each once"));
            }
            (_, Section::Before) => {
                let error = Diagnostic::error(piece.span(), "a workload begins with `DEFINE_CLASSES`");
                self.errors.push(error.help("write DEFINE_CLASSES on a line of its own before the classes"));
                self.section = Section::Classes;
            }
            (_, Section::Classes) => self.class(piece),
            (_, Section::Requests) => self.request(piece),
        }
    }

    /// `NAME: PERCENT`.
    fn class(&mut self, piece: Piece<'_>) {
        let Some((name, percent)) = piece.split_once(|c| c == ':') else {
            let error = Diagnostic::error(piece.span(), format!("`{}` has no percentage", piece.text));
            self.errors
                .push(error.help("a class is a name, a colon and a percentage, like `CLASS_223.gif: 20`"));
            return;
        };
        let (name, percent) = (name.trim(), percent.trim());
        if name.text.is_empty() || name.text.contains(char::is_whitespace) {
            self.errors
                .push(Diagnostic::error(piece.span(), "a class is called by one word before the colon"));
        } else if self.classes.iter().any(|(class, _)| class.name == name.text) {
            self.errors
                .push(Diagnostic::error(name.span(), format!("the class `{}` is defined twice", name.text)));
        } else if let Some(share_e4) = hundredths(percent.text) {
            if self.classes.len() == CLASSES_MAX {
                let error = Diagnostic::error(name.span(), format!("a class more than {CLASSES_MAX}"));
                self.errors.push(error.help("put requests that are alike into one class"));
                return;
            }
            let class = Class { name: name.text.to_owned(), share_e4, requests: Vec::new() };
            self.classes.push((class, name.span()));
        } else {
            let error = Diagnostic::error(percent.span(), format!("`{}` is no percentage", percent.text));
            self.errors.push(error.help("a percentage is above 0, at most 100, with at most two decimals"));
        }
    }

    /// `NAME:` begins the requests of a class, `METHOD TARGET` is one.
    fn request(&mut self, piece: Piece<'_>) {
        let words = piece.split_once(char::is_whitespace);
        if let (None, Some(name)) = (words, piece.text.strip_suffix(':')) {
            self.current = self.classes.iter().position(|(class, _)| class.name == name);
            if self.current.is_none() {
                let error = Diagnostic::error(piece.span(), format!("there is no class `{name}`"));
                self.errors
                    .push(error.help("each class of DEFINE_REQUESTS has a percentage in DEFINE_CLASSES"));
            }
            return;
        }
        let Some((method, target)) = words else {
            let error =
                Diagnostic::error(piece.span(), format!("`{}` is neither a class nor a request", piece.text));
            self.errors.push(
                error.help("a class ends in a colon; a request is a method and a path, like `GET /a.gif`"),
            );
            return;
        };
        let target = target.trim();
        let method_read = match method.text {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "POST" => Method::Post,
            other => {
                let error = Diagnostic::error(method.span(), format!("`{other}` is no method of a workload"));
                self.errors.push(error.help("GET, HEAD and POST are"));
                return;
            }
        };
        if !target.text.starts_with('/') || !target.text.bytes().all(|byte| byte.is_ascii_graphic()) {
            let error = Diagnostic::error(target.span(), format!("`{}` is no path", target.text));
            self.errors.push(
                error.help("a path begins with `/`; spaces and letters beyond ASCII are written as %20 is"),
            );
            return;
        }
        match self.current {
            Some(class) => {
                let request = Request { method: method_read, target: target.text.to_owned() };
                self.classes[class].0.requests.push(request);
            }
            // Of a class that does not exist enough has been said.
            None if self.errors.is_empty() => {
                let error = Diagnostic::error(piece.span(), "this request belongs to no class");
                self.errors.push(
                    error.help("write the class with a colon on a line before it, like `CLASS_223.gif:`"),
                );
            }
            None => {}
        }
    }

    fn end(mut self, length: usize) -> Result<Workload, Vec<Diagnostic>> {
        let end = Span { start: length as u32, end: length as u32 };
        if self.section != Section::Requests && self.errors.is_empty() {
            let missing = if self.section == Section::Before { "DEFINE_CLASSES" } else { "DEFINE_REQUESTS" };
            self.errors.push(Diagnostic::error(end, format!("the workload has no `{missing}`")));
        }
        if self.errors.is_empty() {
            self.check_classes(end);
        }
        if self.errors.is_empty() {
            Ok(Workload { classes: self.classes.into_iter().map(|(class, _)| class).collect() })
        } else {
            Err(self.errors)
        }
    }

    fn check_classes(&mut self, end: Span) {
        let without = self.classes.iter().filter(|(class, _)| class.requests.is_empty()).take(ERRORS_MAX);
        let errors = without.map(|(class, span)| {
            let error = Diagnostic::error(*span, format!("the class `{}` has no requests", class.name));
            error.help(format!("write `{}:` and its requests in DEFINE_REQUESTS", class.name))
        });
        self.errors.extend(errors);
        let sum: u64 = self.classes.iter().map(|(class, _)| u64::from(class.share_e4)).sum();
        if sum != u64::from(WHOLE) {
            let all = self.classes.first().zip(self.classes.last());
            let span = all.map_or(end, |((_, first), (_, last))| Span { start: first.start, end: last.end });
            let error =
                Diagnostic::error(span, format!("the percentages sum to {}, not to 100", sum as f64 / 100.0));
            self.errors.push(error.help("change them until they do: a class is drawn by its percentage"));
        }
    }
}

/// A percentage above 0 and up to 100 as hundredths.
fn hundredths(text: &str) -> Option<u32> {
    let text = text.strip_suffix('%').unwrap_or(text).trim_end();
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || whole.len() > 3 || decimals.len() > 2 {
        return None;
    }
    let hundreds = whole.parse::<u32>().ok()? * 100;
    let rest = decimals.parse::<u32>().ok()? * if decimals.len() == 1 { 10 } else { 1 };
    Some(hundreds + rest).filter(|share| (1..=WHOLE).contains(share))
}

#[cfg(test)]
mod tests {
    use pointsman_rules::{Colour, draw};
    use proptest::prelude::*;

    use super::*;

    const STATIC: &str = "\
# The classes of a static workload.
DEFINE_CLASSES
    CLASS_223.gif:  20.5
    CLASS_6040.htm: 77.5%   # most of all
    CLASS_404:      2

DEFINE_REQUESTS

    CLASS_223.gif:
        GET /wb30tree/1/223_1.gif
        GET /wb30tree/2/223_1.gif#part
    CLASS_6040.htm:
        HEAD /wb30tree/1/6040_1.htm
    CLASS_404:
        POST /wb30tree/nowhere.htm?a=b
";

    fn errors(text: &str) -> String {
        draw(&parse(text).expect_err("an error"), "w.wl", text, Colour::Never)
    }

    #[test]
    fn a_workload_is_read() {
        let workload = parse(STATIC).expect("no errors");
        let classes: Vec<_> =
            workload.classes().iter().map(|c| (c.name.as_str(), c.share_e4, c.requests.len())).collect();
        assert_eq!(
            classes,
            [("CLASS_223.gif", 2_050, 2), ("CLASS_6040.htm", 7_750, 1), ("CLASS_404", 200, 1)]
        );
        assert!(workload.classes()[2].expects_not_found());
        let second = &workload.classes()[0].requests[1];
        assert_eq!((second.method.as_str(), second.target.as_str()), ("GET", "/wb30tree/2/223_1.gif#part"));
        assert_eq!(parse(&STATIC.replace('\n', "\r\n")), Ok(workload));
    }

    #[test]
    fn weights_give_classes_their_percentages() {
        let weights = parse(STATIC).expect("no errors").weights().expect("few requests");
        // Two requests of 20.5 %, one of 77.5 %, one of 2 %.
        let all = f64::from(weights[0]) * 2.0 + f64::from(weights[1]) + f64::from(weights[2]);
        for (weight, share) in weights.iter().zip([0.1025, 0.775, 0.02]) {
            assert!((f64::from(*weight) / all / share - 1.0).abs() < 1e-6, "{weights:?}");
        }
        let crowd = "        GET /a\n".repeat(500_000);
        let text = format!("DEFINE_CLASSES\nA: 99.99\nB: 0.01\nDEFINE_REQUESTS\nA:\nGET /b\nB:\n{crowd}");
        assert_eq!(parse(&text).expect("no errors").weights(), None);
    }

    #[test]
    fn what_is_wrong_is_shown_where_it_stands() {
        let text = STATIC.replace("77.5%", "70");
        let drawn = errors(&text);
        assert!(drawn.contains("the percentages sum to 92.5, not to 100"), "{drawn}");
        assert!(drawn.contains("w.wl:3:5") && drawn.contains("|_____________^"), "{drawn}");
        for (from, to, expected) in [
            ("DEFINE_CLASSES\n", "", "begins with `DEFINE_CLASSES`"),
            ("CLASS_404:      2", "CLASS_404 2", "`CLASS_404 2` has no percentage"),
            ("CLASS_404:      2", "CLASS_404: two", "`two` is no percentage"),
            ("CLASS_404:      2", "CLASS_404: 2.001", "`2.001` is no percentage"),
            ("CLASS_404:      2", "CLASS_404: -2", "`-2` is no percentage"),
            ("CLASS_404:      2", "CLASS_223.gif: 2", "the class `CLASS_223.gif` is defined twice"),
            ("        POST /wb30tree/nowhere.htm?a=b\n", "", "the class `CLASS_404` has no requests"),
            ("    CLASS_404:\n", "    CLASS_403:\n", "there is no class `CLASS_403`"),
            ("POST", "PUT", "`PUT` is no method of a workload"),
            ("HEAD /wb30tree", "HEAD wb30tree", "`wb30tree/1/6040_1.htm` is no path"),
            ("HEAD /wb30tree/1/", "HEAD", "is neither a class nor a request"),
            ("    CLASS_223.gif:\n", "", "this request belongs to no class"),
            ("DEFINE_REQUESTS\n", "DEFINE_CLASSES\n", "`DEFINE_CLASSES` does not belong here"),
        ] {
            let text = STATIC.replacen(from, to, 1);
            assert_ne!(text, STATIC, "{from}");
            let drawn = errors(&text);
            assert!(drawn.contains(expected), "{to}: {drawn}");
        }
        assert!(errors("").contains("the workload has no `DEFINE_CLASSES`"));
        assert!(errors("DEFINE_CLASSES").contains("the workload has no `DEFINE_REQUESTS`"));
        assert!(errors("DEFINE_CLASSES\nDEFINE_REQUESTS").contains("sum to 0"));
    }

    #[test]
    fn errors_and_length_have_a_bound() {
        let many = format!("DEFINE_CLASSES\n{}", "x\n".repeat(10_000));
        assert_eq!(parse(&many).expect_err("errors").len(), ERRORS_MAX);
        let classes: String = (0..300).map(|at| format!("C{at}: 0.01\n")).collect();
        let found = parse(&format!("DEFINE_CLASSES\n{classes}")).expect_err("too many classes");
        assert!(found[0].message.contains("a class more than 256"), "{found:?}");
        assert_eq!(parse(&" ".repeat(WORKLOAD_BYTES_MAX + 1)).expect_err("too long").len(), 1);
    }

    proptest! {
        #[test]
        fn no_text_panics(lines in prop::collection::vec("(DEFINE_CLASSES|DEFINE_REQUESTS|[a#: é%/]{0,8}|A: 1?00?|GET /a?)", 0..12)) {
            let text = lines.join("\n");
            match parse(&text) {
                Ok(workload) => prop_assert!(workload.classes().iter().all(|class| !class.requests.is_empty())),
                Err(errors) => prop_assert!(!draw(&errors, "w", &text, Colour::Never).is_empty()),
            }
        }
    }
}
