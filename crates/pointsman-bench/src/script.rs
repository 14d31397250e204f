//! What a user does on a site, one step after the other, as text: `GET /cart`, what goes with it, and how long the user
//! looks at the answer.
//!
//! ```text
//! think exp:5s                     # behind each step that says nothing else
//!
//! GET /
//! GET /list?page={random 1 20}
//!   Accept: text/html
//!   name list
//! POST /order
//!   Content-Type: application/json
//!   body {"item": {random 1 1000}}
//!   think 20s
//!   expect 201
//! ```

use std::io;

use pointsman_rules::{Diagnostic, Span};
use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::plan::{Body, Target};
use crate::request::check_template;
use crate::think::Think;
use crate::url::Url;

/// The longest text.
const SCRIPT_BYTES_MAX: usize = 1024 * 1024;
/// Steps of a session: each has its own histogram.
const STEPS_MAX: usize = 200;
/// Fields of a step.
const HEADERS_MAX: usize = 100;
/// Findings that are shown; a text that is no script at all has one a line.
const FINDINGS_MAX: usize = 20;

/// What is asked in a session, in its order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Script {
    /// At least one.
    pub steps: Vec<Step>,
}

/// One request of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    /// What reports call it: the method and the path where it has no name.
    pub name: String,
    /// What is asked.
    pub target: Target,
    /// How long the user waits behind the answer; `None`: as the plan says.
    pub think: Option<Think>,
    /// The only status that is no failure; `None`: all below 400.
    pub expects: Option<u16>,
}

impl Script {
    /// Reads a script. Paths are those of `base`, where a URL is not whole; `read` fetches the files that it names.
    ///
    /// # Errors
    /// All that is wrong with it, up to a bound, each in its place.
    pub fn parse(
        text: &str,
        base: Option<&Url>,
        read: &mut dyn FnMut(&str) -> io::Result<Vec<u8>>,
    ) -> Result<Script, Vec<Diagnostic>> {
        let mut reader =
            Reader { base, read, steps: Vec::new(), think: None, errors: Vec::new(), is_lost: false };
        if text.len() > SCRIPT_BYTES_MAX {
            let words = format!("a session's script has at most {SCRIPT_BYTES_MAX} bytes");
            return Err(vec![Diagnostic::error(Span::default(), words)]);
        }
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            reader.line(Piece { text: line.trim_end(), start });
            start += line.len();
            if reader.errors.len() >= FINDINGS_MAX {
                return Err(reader.errors);
            }
        }
        if reader.steps.is_empty() && reader.errors.is_empty() {
            let end = Span { start: start as u32, end: start as u32 };
            let none = Diagnostic::error(end, "a session has at least one step");
            reader.errors.push(none.help("write one such as `GET /`"));
        }
        match reader.errors.is_empty() {
            true => Ok(Script { steps: reader.steps }),
            false => Err(reader.errors),
        }
    }
}

/// A part of the text, and where it begins.
#[derive(Clone, Copy)]
struct Piece<'t> {
    text: &'t str,
    start: usize,
}

impl<'t> Piece<'t> {
    fn span(self) -> Span {
        Span { start: self.start as u32, end: (self.start + self.text.len()) as u32 }
    }

    fn trimmed(self) -> Piece<'t> {
        let text = self.text.trim_start();
        let start = self.start + self.text.len() - text.len();
        Piece { text: text.trim_end(), start }
    }

    /// The first word, and what stands behind it.
    fn word(self) -> (Piece<'t>, Piece<'t>) {
        let end = self.text.find([' ', '\t']).unwrap_or(self.text.len());
        let (word, rest) = self.text.split_at(end);
        let rest = Piece { text: rest, start: self.start + end };
        (Piece { text: word, start: self.start }, rest.trimmed())
    }

    /// Without a remark at its end: `#` behind white space.
    fn without_remark(self) -> Piece<'t> {
        let is_remark = |at: &usize| self.text[..*at].ends_with([' ', '\t']);
        let at = self.text.match_indices('#').map(|(at, _)| at).find(is_remark);
        Piece { text: self.text[..at.unwrap_or(self.text.len())].trim_end(), start: self.start }
    }
}

struct Reader<'r> {
    base: Option<&'r Url>,
    read: &'r mut dyn FnMut(&str) -> io::Result<Vec<u8>>,
    steps: Vec<Step>,
    /// Of steps that say nothing of it.
    think: Option<Think>,
    errors: Vec<Diagnostic>,
    /// Whether the last step could not be read, and what belongs to it is passed over.
    is_lost: bool,
}

impl Reader<'_> {
    fn line(&mut self, line: Piece<'_>) {
        let inner = line.trimmed();
        if inner.text.is_empty() || inner.text.starts_with('#') {
            return;
        }
        let belongs = inner.start > line.start;
        let outcome = match (belongs, self.is_lost) {
            (true, true) => Ok(()),
            (true, false) => self.of_step(inner),
            (false, _) => self.top(inner),
        };
        if let Err(error) = outcome {
            self.is_lost |= !belongs;
            self.errors.push(error);
        }
    }

    /// A line that begins a step, or says something of all that follow.
    fn top(&mut self, line: Piece<'_>) -> Result<(), Diagnostic> {
        let (word, rest) = line.without_remark().word();
        if word.text == "think" {
            self.think = Some(think(rest)?);
            return Ok(());
        }
        if !word.text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-') {
            let error = Diagnostic::error(word.span(), format!("`{}` begins no step", word.text));
            return Err(error.help(
                "a step begins with its method in capital letters, such as `GET /`; what belongs to it is indented",
            ));
        }
        if self.steps.len() == STEPS_MAX {
            return Err(Diagnostic::error(word.span(), format!("a session has at most {STEPS_MAX} steps")));
        }
        let url = self.url(rest, word)?;
        let name = format!("{} {}", word.text, url.target);
        let (method, headers) = (word.text.to_owned(), Vec::new());
        let target = Target { url, weight: 1, method, headers, body: Body::None };
        self.steps.push(Step { name, target, think: self.think, expects: None });
        self.is_lost = false;
        Ok(())
    }

    fn url(&self, text: Piece<'_>, method: Piece<'_>) -> Result<Url, Diagnostic> {
        if text.text.is_empty() {
            let error = Diagnostic::error(method.span(), "what is asked for is missing");
            return Err(error.help(format!("say `{} /path`, or a whole URL", method.text)));
        }
        let read = if text.text.starts_with('/') {
            let before = self.steps.last().map(|step| &step.target.url);
            let Some(base) = before.or(self.base) else {
                let error = Diagnostic::error(text.span(), "nobody has said which server this is a path of");
                return Err(
                    error.help("give the server's URL on the command line, or begin with a whole one")
                );
            };
            base.with_target(text.text)
        } else if text.text.contains("://") {
            Url::parse(text.text)
        } else {
            let error =
                Diagnostic::error(text.span(), format!("`{}` is neither a path nor a URL", text.text));
            return Err(error.help("a path begins with `/`, a URL with `http://` or `https://`"));
        };
        let url = read.map_err(|fault| of_fault(text, &fault))?;
        check_template(&url.target).map_err(|fault| of_fault(text, &fault))?;
        Ok(url)
    }

    /// An indented line: a word of ours, or a field.
    fn of_step(&mut self, line: Piece<'_>) -> Result<(), Diagnostic> {
        let (word, rest) = line.word();
        let Some(step) = self.steps.last_mut() else {
            let error =
                Diagnostic::error(line.span(), "there is no step before this line that it could belong to");
            return Err(error.help("a step is not indented"));
        };
        match word.text {
            "think" => step.think = Some(think(rest.without_remark())?),
            "name" => step.name = said(word, rest.without_remark(), "name list")?.text.to_owned(),
            "expect" => step.expects = Some(status(word, rest.without_remark())?),
            "body" => {
                step.target.body = template(rest, said(word, rest, "body {\"id\": {n}}")?.text.to_owned())?
            }
            "body-file" => {
                let path = said(word, rest, "body-file order.xml")?;
                step.target.body = Body::Bytes((self.read)(path.text).map_err(|e| unreadable(path, &e))?);
            }
            "template" => {
                let path = said(word, rest, "template order.json")?;
                let bytes = (self.read)(path.text).map_err(|error| unreadable(path, &error))?;
                let text = String::from_utf8(bytes);
                let text = text.map_err(|_| Diagnostic::error(path.span(), "a template is text in UTF-8"))?;
                step.target.body = template(path, text)?;
            }
            _ => header(step, line)?,
        }
        Ok(())
    }
}

/// What stands behind a word of ours, which is something.
fn said<'t>(word: Piece<'_>, rest: Piece<'t>, example: &str) -> Result<Piece<'t>, Diagnostic> {
    if rest.text.is_empty() {
        let error = Diagnostic::error(word.span(), format!("nothing stands behind `{}`", word.text));
        return Err(error.help(format!("say such as `{example}`")));
    }
    Ok(rest)
}

fn template(place: Piece<'_>, text: String) -> Result<Body, Diagnostic> {
    check_template(&text).map_err(|fault| of_fault(place, &fault))?;
    Ok(Body::Template(text))
}

fn of_fault(place: Piece<'_>, fault: &Fault) -> Diagnostic {
    let error = Diagnostic::error(place.span(), fault.to_string());
    match fault.advice() {
        Some(help) => error.help(help),
        None => error,
    }
}

fn think(text: Piece<'_>) -> Result<Think, Diagnostic> {
    let think = text.text.parse().map_err(|words: String| Diagnostic::error(text.span(), words));
    think.map_err(|error| error.help("say `think 2s`, or `think exp:2s` for so long in the mean"))
}

fn status(word: Piece<'_>, text: Piece<'_>) -> Result<u16, Diagnostic> {
    let status = said(word, text, "expect 404")?.text.parse::<u16>().ok();
    status.filter(|status| (200..600).contains(status)).ok_or_else(|| {
        Diagnostic::error(text.span(), format!("`{}` is no status of an answer", text.text))
            .help("say one from 200 to 599, such as `expect 404`")
    })
}

fn header(step: &mut Step, line: Piece<'_>) -> Result<(), Diagnostic> {
    const WORDS: &str = "a line of a step is a field such as `Accept: text/html`, or begins with `body`, `body-file`, \
                         `template`, `think`, `expect` or `name`";
    let unknown = || Diagnostic::error(line.span(), format!("`{}` says nothing", line.text)).help(WORDS);
    let (name, value) = line.text.split_once(':').ok_or_else(unknown)?;
    let value = value.trim();
    if !pointsman_http::is_token(name.as_bytes()) || !pointsman_http::is_field_value(value.as_bytes()) {
        return Err(Diagnostic::error(line.span(), format!("`{}` is no header field", line.text)).help(WORDS));
    }
    if step.target.headers.len() == HEADERS_MAX {
        return Err(Diagnostic::error(line.span(), format!("a step has at most {HEADERS_MAX} fields")));
    }
    step.target.headers.push((name.to_owned(), value.to_owned()));
    Ok(())
}

fn unreadable(path: Piece<'_>, error: &io::Error) -> Diagnostic {
    Diagnostic::error(path.span(), format!("cannot read `{}`: {error}", path.text))
}

#[cfg(test)]
mod tests {
    use pointsman_rules::{Colour, draw};

    use super::*;

    fn parse(text: &str) -> Result<Script, Vec<Diagnostic>> {
        let base = Url::parse("http://shop.example:81/").expect("a URL");
        Script::parse(text, Some(&base), &mut |name| match name {
            "order.json" => Ok(b"{\"id\": {n}}".to_vec()),
            "order.bin" => Ok(vec![0xff]),
            _ => Err(io::ErrorKind::NotFound.into()),
        })
    }

    #[test]
    fn a_script_says_what_users_do() {
        let text = "# Who buys\nthink exp:5s  # in the mean\n\nGET /\nGET /list?page={random 1 20}\n\tAccept: text/html\n  \
                    name the list\n\nPOST https://pay.example/x\n  body {\"a\": \"#1\"}\n  think 2s\n  expect 201\n\
                    PUT /y\n  template order.json\n  think 0\nDELETE http://other.example/\n  body-file order.bin\n";
        let steps = parse(text).expect("a script").steps;
        let lines: Vec<String> = steps
            .iter()
            .map(|step| {
                let (target, body) = (&step.target, step.target.body.clone());
                format!("{} | {} {} {:?} {body:?}", step.name, target.method, target.url, target.headers)
            })
            .collect();
        assert_eq!(
            lines,
            [
                "GET / | GET http://shop.example:81/ [] None",
                "the list | GET http://shop.example:81/list?page={random 1 20} [(\"Accept\", \"text/html\")] None",
                "POST /x | POST https://pay.example/x [] Template(\"{\\\"a\\\": \\\"#1\\\"}\")",
                "PUT /y | PUT https://pay.example/y [] Template(\"{\\\"id\\\": {n}}\")",
                "DELETE / | DELETE http://other.example/ [] Bytes([255])",
            ]
        );
        let mean = Think::Exponential(std::time::Duration::from_secs(5));
        assert_eq!((steps[0].think, steps[4].think), (Some(mean), Some(mean)));
        assert_eq!(steps[3].think, Some(Think::Constant(std::time::Duration::ZERO)));
        assert_eq!((steps[1].expects, steps[2].expects), (None, Some(201)));
    }

    #[test]
    fn what_is_wrong_is_said_in_its_place() {
        let drawn = |text: &str| draw(&parse(text).expect_err(text), "shop.session", text, Colour::Never);
        for (text, words) in [
            ("", "a session has at least one step"),
            ("get /", "`get` begins no step"),
            ("GET", "what is asked for is missing"),
            ("GET x", "`x` is neither a path nor a URL"),
            ("GET ftp://a/", "neither `http` nor `https`"),
            ("GET /a b", "percent-encoded"),
            ("GET /{random 2 1}", "cannot be filled in"),
            ("  Accept: x", "there is no step before this line"),
            ("GET /\n  what", "`what` says nothing"),
            ("GET /\n  a b: c", "is no header field"),
            ("GET /\n  think long", "a time is a number"),
            ("think exp:", "a time is a number"),
            ("GET /\n  expect 99", "`99` is no status"),
            ("GET /\n  body", "nothing stands behind `body`"),
            ("GET /\n  body {letters 99999999999}", "cannot be filled in"),
            ("GET /\n  template nowhere", "cannot read `nowhere`"),
            ("GET /\n  template order.bin", "text in UTF-8"),
        ] {
            let drawn = drawn(text);
            assert!(drawn.starts_with("error: ") && drawn.contains(words), "{text}: {drawn}");
            assert!(drawn.contains("shop.session:") && drawn.contains('^') || text.is_empty(), "{drawn}");
        }
        // What belongs to a step that cannot be read is not looked at, and what follows is.
        assert_eq!(parse("get /\n  what\nGET /\n  what\nGET /").expect_err("two").len(), 2);
        assert_eq!(parse(&"x\n".repeat(1000)).expect_err("many").len(), FINDINGS_MAX);
        assert_eq!(parse(&"GET /\n".repeat(STEPS_MAX + 1)).expect_err("too many").len(), 1);
        assert_eq!(parse(&" ".repeat(SCRIPT_BYTES_MAX + 1)).expect_err("too long").len(), 1);
        assert!(Script::parse("GET /", None, &mut |_| unreachable!()).is_err());
    }

    /// Whatever a file holds: no panic, and what is wrong is within it.
    #[test]
    fn any_text_is_read_or_refused() {
        const WORDS: [&str; 26] = [
            "GET",
            "POST",
            " ",
            "  ",
            "\t",
            "\n",
            "/",
            "http://",
            "a",
            ":",
            "{",
            "}",
            "random 1 2",
            "n",
            "think",
            "body",
            "template",
            "name",
            "expect",
            "200",
            "#",
            "\u{e4}",
            "exp:",
            "1s",
            "\r\n",
            "\0",
        ];
        let mut random = fastrand::Rng::with_seed(11);
        for _ in 0..20_000 {
            let text: String = (0..random.usize(..24)).map(|_| WORDS[random.usize(..WORDS.len())]).collect();
            for error in parse(&text).err().into_iter().flatten() {
                let (start, end) = (error.span.start as usize, error.span.end as usize);
                assert!(start <= end && text.get(start..end).is_some(), "{text:?}: {error:?}");
            }
        }
    }
}
