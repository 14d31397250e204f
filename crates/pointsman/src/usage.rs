//! How the command line is read where no library says it well enough, and what is said where it is wrong.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;
use std::str::FromStr;

use lexopt::{Parser, ValueExt};
use pointsman_rules::Suggestions;

use crate::{WRONG_USE, say};

/// Complains about the command line, before it is known which command is meant.
pub(crate) fn wrong_use(message: &str) -> ExitCode {
    let text = format!("error: {message}\nhelp: `pointsman --help` shows the commands\n");
    say(&mut io::stderr(), &text, WRONG_USE)
}

/// Complains about the options of the command whose help this is.
pub(crate) fn wrong_options(help: &str, error: &lexopt::Error) -> ExitCode {
    let text = complaint(help, error);
    say(&mut io::stderr(), &text, WRONG_USE)
}

fn complaint(help: &str, error: &lexopt::Error) -> String {
    let message = match error {
        lexopt::Error::UnexpectedOption(option) => no_option(help, option),
        lexopt::Error::MissingValue { option: Some(option) } => format!("`{option}` needs a value"),
        lexopt::Error::UnexpectedValue { option, value } => {
            format!("`{option}` takes no value, and `{}` is one", value.to_string_lossy())
        }
        other => other.to_string(),
    };
    format!("error: {message}\nhelp: `{} --help` lists its options\n", command(help))
}

fn no_option(help: &str, option: &str) -> String {
    let words = help.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'));
    let names = words.filter_map(|word| word.strip_prefix("--"));
    // Without their hyphens, which make short names look alike.
    let nearest = option.strip_prefix("--").and_then(|name| Suggestions::default().nearest(name, names));
    match nearest {
        Some(nearest) => format!("no option `{option}`; did you mean `--{nearest}`?"),
        None => format!("no option `{option}`"),
    }
}

/// The command that a help text is of, as `pointsman bench load`: what stands before its first argument.
fn command(help: &str) -> String {
    let is_name = |word: &&str| {
        word.starts_with(|first: char| first.is_ascii_lowercase())
            && word.bytes().all(|letter| letter.is_ascii_lowercase() || letter == b'-')
    };
    let first = help.lines().next().unwrap_or_default();
    first.split_ascii_whitespace().take_while(is_name).collect::<Vec<_>>().join(" ")
}

/// A part of a help text that several commands have, without what one of them says of the same options in its own words, and
/// without `others`, which it does not take. Names are without their hyphens.
pub(crate) fn beside(own: &str, part: &str, others: &[&str]) -> String {
    let is_left_out =
        |name: &str| others.contains(&name) || own.lines().any(|line| entry(line) == Some(name));
    let (mut kept, mut keeps) = (String::new(), true);
    for line in part.lines() {
        // What is indented further belongs to the entry above.
        if !line.starts_with("     ") {
            keeps = !entry(line).is_some_and(is_left_out);
        }
        if keeps {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    // Where the last entry stood by itself.
    while kept.ends_with("\n\n") {
        kept.pop();
    }
    kept
}

/// The option that a line of a help text is about.
fn entry(line: &str) -> Option<&str> {
    let name = line.strip_prefix("    --")?;
    name.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-')).next()
}

/// The number behind an option.
pub(crate) fn number<T: FromStr<Err: Display>>(
    option: &str,
    parser: &mut Parser,
) -> Result<T, lexopt::Error> {
    parsed(option, "a number", parser)
}

/// The address and port behind an option.
pub(crate) fn address(option: &str, parser: &mut Parser) -> Result<std::net::SocketAddr, lexopt::Error> {
    parsed(option, "an address and a port such as `127.0.0.1:8480`", parser)
}

fn parsed<T: FromStr<Err: Display>>(
    option: &str,
    what: &str,
    parser: &mut Parser,
) -> Result<T, lexopt::Error> {
    let word = parser.value()?.string()?;
    word.parse().map_err(|error| format!("`{option}` takes {what}, not `{word}`: {error}").into())
}

/// What the word behind an option stands for.
pub(crate) fn one_of<T: Copy>(option: &str, word: &str, choices: &[(&str, T)]) -> Result<T, String> {
    let found = choices.iter().find(|(name, _)| *name == word).map(|(_, choice)| *choice);
    let names = || choices.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(" or ");
    found.ok_or_else(|| format!("`{option}` takes {}, not `{word}`", names()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "\
pointsman bench find URL... [OPTION...]

    --trial TIME      how long
    --clients N       so many,
                      in a closed loop
";

    #[test]
    fn a_complaint_names_the_command_and_what_was_meant() {
        let of = |words: [&str; 1]| {
            let mut parser = Parser::from_args(words);
            let argument = parser.next().expect("one").expect("one");
            complaint(HELP, &argument.unexpected())
        };
        let help = "help: `pointsman bench find --help` lists its options\n";
        assert_eq!(of(["--tial"]), format!("error: no option `--tial`; did you mean `--trial`?\n{help}"));
        assert_eq!(of(["--what"]), format!("error: no option `--what`\n{help}"));
        assert_eq!(of(["-x"]), format!("error: no option `-x`\n{help}"));
        let mut parser = Parser::from_args(["--clients", "x"]);
        parser.next().expect("one");
        let error = number::<u32>("--clients", &mut parser).expect_err("no number");
        let words = "error: `--clients` takes a number, not `x`: invalid digit found in string\n";
        assert_eq!(complaint(HELP, &error), format!("{words}{help}"));
        assert_eq!(command("pointsman dry-run [RULES]\n"), "pointsman dry-run");
        assert_eq!(command("pointsman bench agent --cert FILE\n"), "pointsman bench agent");
    }

    #[test]
    fn what_a_command_says_itself_is_not_said_twice() {
        let part = "\nhow much\n    --clients N   a loop\n                  that is closed\n    --rate N      a rate\n\
                    \x20   --time TIME   how long\n";
        assert_eq!(beside(HELP, part, &["rate"]), "\nhow much\n    --time TIME   how long\n");
        assert_eq!(beside("", part, &[]), part);
    }

    #[test]
    fn words_are_choices() {
        assert_eq!(one_of("--close", "reset", &[("fin", 1), ("reset", 2)]), Ok(2));
        let error = one_of("--close", "x", &[("fin", 1), ("reset", 2)]).expect_err("neither");
        assert_eq!(error, "`--close` takes `fin` or `reset`, not `x`");
    }
}
