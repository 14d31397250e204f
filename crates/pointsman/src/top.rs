//! `pointsman top`: what the running switch does now.

mod figures;
mod scrape;
mod screen;
mod terminal;
mod view;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lexopt::Arg;
use pointsman_config::{AdminClient, AdminUse};
use pointsman_rules::Colour;

use crate::admin_client::{TlsOptions, Way, exchange};
use crate::check::terminal::colour;
use crate::usage::wrong_options;
use crate::{WRONG_USE, say};
use scrape::Scrape;
use screen::fitted;
use terminal::{Key, Terminal};
use view::{Times, View};

const HELP: &str = "\
pointsman top [--config FILE] [--once] [--json] [--ca FILE] [--cert FILE [--key FILE]]

    --config FILE    or `-c FILE`: the configuration of the running switch, whose `[admin]` says where it is;
                     pointsman.toml where none is named
    --once           show one second and end
    --json           an object each second, a line each; with `--once` one
    --ca FILE        authorities of the certificate of the admin listener; without it the certificate itself is trusted,
                     which the configuration names
    --cert FILE      a client certificate, shown instead of a token
    --key FILE       its key, where it does not stand in the same file

keys: up, down, page up, page down, home move what does not fit; q ends

exit status: 0 shown, 2 the switch cannot be asked
";

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long the switch may take to answer one.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Asks the running switch again and again.
pub(crate) fn top(arguments: Vec<OsString>) -> ExitCode {
    let options = match Options::read(arguments) {
        Ok(Some(options)) => options,
        Ok(None) => return say(&mut io::stdout(), HELP, 0),
        Err(error) => return wrong_options(HELP, &error),
    };
    let shown = found(&options).and_then(|client| {
        // What cannot be asked at all is said before a terminal is touched.
        let first = Look::at(&client)?;
        match terminal::own().filter(|_| !options.once && !options.json) {
            Some(terminal) => on_a_terminal(&client, first, &terminal),
            None => one_after_the_other(&client, first, &options),
        }
    });
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaint) => say(&mut io::stderr(), &complaint, WRONG_USE),
    }
}

struct Options {
    config: PathBuf,
    once: bool,
    json: bool,
    tls: TlsOptions,
}

impl Options {
    /// Nothing where help is wanted.
    fn read(arguments: Vec<OsString>) -> Result<Option<Options>, lexopt::Error> {
        let config = PathBuf::from("pointsman.toml");
        let mut options = Options { config, once: false, json: false, tls: TlsOptions::default() };
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("config") | Arg::Short('c') => options.config = parser.value()?.into(),
                Arg::Long("once") => options.once = true,
                Arg::Long("json") => options.json = true,
                Arg::Long(option) if TlsOptions::know(option) => {
                    let option = option.to_owned();
                    options.tls.take(&option, parser.value()?.into());
                }
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Value(file) => {
                    let file = file.to_string_lossy();
                    return Err(format!("unexpected argument `{file}`; write `top --config {file}`").into());
                }
                _ => return Err(argument.unexpected()),
            }
        }
        Ok(Some(options))
    }
}

/// Where the switch is asked, and with which token.
struct Asking {
    way: Way,
    token: Option<String>,
}

/// Where the switch is; the error is a text for people.
fn found(options: &Options) -> Result<Asking, String> {
    let config = &options.config;
    let client = AdminClient::of(config, options.tls.wanted(AdminUse::Read)).map_err(|problems| {
        let help = if problems.is_unreadable() { "help: name one with `--config FILE`\n" } else { "" };
        format!("{}{help}", problems.render(colour(&io::stderr())))
    })?;
    let client = client.ok_or_else(|| {
        format!(
            "error: `{}` has no `[admin]`, which says where the switch can be asked\n\
             help: add it with `bind` and start the switch anew\n",
            config.display()
        )
    })?;
    Ok(Asking { way: Way::to(&client, &options.tls)?, token: client.token })
}

/// What was seen, and when.
struct Look {
    scrape: Scrape,
    at: Instant,
}

impl Look {
    /// Asks the switch; the error is a text for people.
    fn at(client: &Asking) -> Result<Look, String> {
        let address = client.way.address;
        let token = client.token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n"));
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: {address}\r\n{}Connection: close\r\n\r\n",
            token.unwrap_or_default()
        );
        let reply = exchange(&client.way, &request, ANSWER_MAX)?;
        let foreign =
            || format!("error: what answers at {address} is no switch\nhelp: look what listens there\n");
        let reply = reply.ok_or_else(foreign)?;
        match reply.status {
            200 => {
                let scrape = Scrape::read(&String::from_utf8_lossy(&reply.body)).ok_or_else(foreign)?;
                Ok(Look { scrape, at: Instant::now() })
            }
            401 | 403 => Err(format!(
                "error: the switch at {address} does not let us read\n\
                 help: from elsewhere than its loopback it needs a token of its `token_file`, or a certificate (`--cert`)\n"
            )),
            _ => Err(foreign()),
        }
    }

    fn since(&self, before: &Look) -> View {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let times = Times { seconds: (self.at - before.at).as_secs_f64(), now_s: now.as_secs_f64() };
        View::between(&before.scrape, &self.scrape, times)
    }
}

/// Whole views, for a program, a file, or a terminal that knows no more.
fn one_after_the_other(client: &Asking, first: Look, options: &Options) -> Result<(), String> {
    let mut before = first;
    loop {
        std::thread::sleep(INTERVAL.saturating_sub(before.at.elapsed()));
        let now = Look::at(client)?;
        let view = now.since(&before);
        let text = match (options.json, options.once) {
            (true, true) => format!("{:#}\n", figures::json(&view)),
            (true, false) => format!("{}\n", figures::json(&view)),
            (false, true) => format!("{}\n", screen::lines(&view).join("\n")),
            (false, false) => format!("{}\n\n", screen::lines(&view).join("\n")),
        };
        let mut out = io::stdout();
        // Whoever has read enough, such as `head`, goes away.
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() || options.once {
            return Ok(());
        }
        before = now;
    }
}

/// One view in the place of the other, until a key ends it. A switch that cannot be asked for a while is waited for.
fn on_a_terminal(client: &Asking, first: Look, terminal: &Terminal) -> Result<(), String> {
    let mut before = first;
    let mut next = before.at + INTERVAL;
    let mut view: Option<View> = None;
    let (mut trouble, mut scroll, mut drawn_at) = (String::new(), 0_usize, None);
    let colour = colour(&io::stdout());
    loop {
        let size = terminal.size();
        let mut is_new = drawn_at != Some(size);
        if Instant::now() >= next {
            next = Instant::now() + INTERVAL;
            is_new = true;
            match Look::at(client) {
                Ok(now) => {
                    view = Some(now.since(&before));
                    (before, trouble) = (now, String::new());
                }
                Err(complaint) => trouble = complaint,
            }
        }
        if is_new {
            let lines = screen_of(view.as_ref(), &trouble, size, &mut scroll, colour);
            // A terminal that is gone needs no more.
            if terminal.draw(&lines).is_err() {
                return Ok(());
            }
            drawn_at = Some(size);
        }
        match terminal.key() {
            Key::None => continue,
            Key::End => return Ok(()),
            Key::Up => scroll = scroll.saturating_sub(1),
            Key::Down => scroll += 1,
            Key::PageUp => scroll = scroll.saturating_sub(size.rows / 2),
            Key::PageDown => scroll += size.rows / 2,
            Key::Home => scroll = 0,
        }
        drawn_at = None;
    }
}

fn screen_of(
    view: Option<&View>,
    trouble: &str,
    size: screen::Size,
    scroll: &mut usize,
    colour: Colour,
) -> Vec<String> {
    let mut lines: Vec<String> =
        trouble.lines().take(size.rows).map(|line| line.chars().take(size.columns).collect()).collect();
    let rest = screen::Size { rows: size.rows - lines.len(), ..size };
    match view {
        Some(view) => lines.extend(fitted(view, rest, scroll, colour)),
        None if rest.rows > 0 => lines.push("a second, please".chars().take(size.columns).collect()),
        None => {}
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let read = |words: &[&str]| Options::read(words.iter().map(OsString::from).collect());
        let options = read(&["--config", "a.toml", "--once", "--json"]).expect("good").expect("no help");
        assert_eq!((options.config, options.once, options.json), (PathBuf::from("a.toml"), true, true));
        let options = read(&[]).expect("good").expect("no help");
        assert_eq!(
            (options.config, options.once, options.json),
            (PathBuf::from("pointsman.toml"), false, false)
        );
        assert!(read(&["--help"]).expect("good").is_none());
        let error = read(&["a.toml"]).err().expect("it is wrong").to_string();
        assert_eq!(error, "unexpected argument `a.toml`; write `top --config a.toml`");
        assert!(read(&["--twice"]).is_err());
    }

    #[test]
    fn trouble_stands_above_what_was_seen() {
        let size = screen::Size { columns: 5, rows: 2 };
        let lines = |trouble: &str| screen_of(None, trouble, size, &mut 0, Colour::Never);
        assert_eq!(lines(""), ["a sec"]);
        assert_eq!(lines("error: no\n"), ["error", "a sec"]);
        assert_eq!(lines("error: no\nhelp: look\nmore"), ["error", "help:"]);
    }
}
