//! Colours are for terminals, and for people who want them.

use std::io::IsTerminal;

use pointsman_rules::Colour;

/// Whether what is written to `stream` may have colours: a terminal, and no `NO_COLOR`.
pub(crate) fn colour(stream: &impl IsTerminal) -> Colour {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if stream.is_terminal() && !unwanted { Colour::Ansi } else { Colour::Never }
}

/// How a piece of text looks on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Bold,
    Dim,
    Green,
    Yellow,
    Red,
    Cyan,
}

/// `text` in a style, filled up with spaces to `width` characters.
pub(crate) fn cell(text: &str, width: usize, style: Style, colour: Colour) -> String {
    let fill = " ".repeat(width.saturating_sub(text.chars().count()));
    let code = match style {
        Style::Plain => return format!("{text}{fill}"),
        _ if colour == Colour::Never || text.is_empty() => return format!("{text}{fill}"),
        Style::Bold => "1",
        Style::Dim => "2",
        Style::Green => "32",
        Style::Yellow => "33",
        Style::Red => "31",
        Style::Cyan => "36",
    };
    format!("\x1b[{code}m{text}\x1b[0m{fill}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_as_wide_with_colours_as_without() {
        assert_eq!(cell("än", 4, Style::Red, Colour::Never), "än  ");
        assert_eq!(cell("än", 4, Style::Red, Colour::Ansi), "\x1b[31män\x1b[0m  ");
        assert_eq!(cell("", 2, Style::Red, Colour::Ansi), "  ");
        assert_eq!(cell("long", 2, Style::Plain, Colour::Ansi), "long");
    }
}
