//! `pointsman demo`: five small servers, the switch before them, requests to follow, and traffic to watch.

mod client;
mod entry;
mod event;
mod invitation;
mod leash;
mod origin;
mod site;
mod switch;
mod traffic;
mod visits;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::Arg;
use pointsman_rules::Colour;

use crate::check::terminal;
use crate::say;
use crate::usage::wrong_options;
use entry::Entry;
use event::{Event, Events};
use site::Site;
use switch::RunningSwitch;
use traffic::Traffic;

const HELP: &str = "\
pointsman demo [--once]

    --once    send the requests, show who got them, and end

Starts five small servers and a TLS switch on free ports, sends requests, and stays up until Ctrl-C, with some traffic of
its own to watch in the console.
exit status: 0 fine, 1 it cannot start or a request went astray, 2 wrong use
";

/// Shows the switch at work.
pub(crate) fn demo(arguments: Vec<OsString>) -> ExitCode {
    let once = match read_options(arguments) {
        Ok(Wish::Show { once }) => once,
        Ok(Wish::Switch(config)) => return leash::run(config),
        Ok(Wish::Help) => return say(&mut io::stdout(), HELP, 0),
        Err(error) => return wrong_options(HELP, &error),
    };
    match show(once) {
        Ok(()) | Err(Stop::Interrupted) => ExitCode::SUCCESS,
        Err(Stop::Failed(message)) => say(&mut io::stderr(), &format!("error: {message}\n"), 1),
    }
}

enum Wish {
    Show {
        once: bool,
    },
    /// What the demo starts as its child: the switch, until the demo is gone.
    Switch(PathBuf),
    Help,
}

fn read_options(arguments: Vec<OsString>) -> Result<Wish, lexopt::Error> {
    let mut once = false;
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("once") => once = true,
            Arg::Long("switch") => return Ok(Wish::Switch(parser.value()?.into())),
            Arg::Long("help") | Arg::Short('h') => return Ok(Wish::Help),
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(Wish::Show { once })
}

/// Why the demo ends before its time.
#[derive(Debug)]
enum Stop {
    /// Somebody wants it to.
    Interrupted,
    /// It cannot go on.
    Failed(String),
}

impl Stop {
    fn because(what: &str) -> impl FnOnce(io::Error) -> Stop {
        move |error| Stop::Failed(format!("{what}: {error}"))
    }
}

/// Everything that is started ends with this function: the switch is killed, the folder removed.
fn show(once: bool) -> Result<(), Stop> {
    let (teller, mut events) = event::channel();
    event::listen_for_signals(teller.clone())?;
    let origins = site::start_origins()?;
    let site = Site::create(&origins)?;
    let switch = RunningSwitch::start(&site.config(), teller, &mut events)?;
    let mut screen = Screen::new();
    screen.show(&invitation::opening(&switch.addresses, &origins))?;
    let astray = visits::send_all(&site, &switch.addresses, &mut events, &mut screen)?;
    if astray > 0 {
        return Err(Stop::Failed(format!("{astray} of the requests went another way than the rules say")));
    }
    if once {
        return Ok(());
    }
    screen.show(&invitation::try_it(&switch.addresses, &site))?;
    let traffic = Traffic::start(&site, &switch.addresses)?;
    follow(&mut events, &mut screen, &traffic)
}

/// Shows what others ask, until somebody ends it.
fn follow(events: &mut Events, screen: &mut Screen, traffic: &Traffic) -> Result<(), Stop> {
    loop {
        match events.next()? {
            Event::Logged(line) => match Entry::read(&line) {
                Some(entry) if traffic.is_its_own(&entry.client) => {}
                Some(entry) => screen.show(&format!("{}\n", entry.row(&entry.request(), screen.colour)))?,
                None => screen.show(&format!("{line}\n"))?,
            },
            // Listeners are named again at each reload.
            Event::Said(line) if line.starts_with("listening ") => {}
            Event::Said(line) => screen.show(&format!("{line}\n"))?,
            Event::Ended => return Err(Stop::Failed("the switch has ended".to_owned())),
            Event::Interrupted => return Err(Stop::Interrupted),
        }
    }
}

/// Standard output.
struct Screen {
    colour: Colour,
}

impl Screen {
    fn new() -> Screen {
        Screen { colour: terminal::colour(&io::stdout()) }
    }

    /// A reader that has gone away ends the demo.
    fn show(&mut self, text: &str) -> Result<(), Stop> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|_| Stop::Interrupted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let read = |words: &[&str]| read_options(words.iter().map(OsString::from).collect());
        assert!(matches!(read(&[]), Ok(Wish::Show { once: false })));
        assert!(matches!(read(&["--once"]), Ok(Wish::Show { once: true })));
        assert!(matches!(read(&["--help"]), Ok(Wish::Help)));
        assert!(matches!(read(&["--switch", "a.toml"]), Ok(Wish::Switch(_))));
        assert!(read(&["--twice"]).is_err());
        assert!(read(&["more"]).is_err());
    }
}
