//! The terminal while `top` has it: keys come at once, and it is given back as it was.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::screen::Size;

/// What was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// Nothing for a while, or nothing that means something.
    None,
    End,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
}

/// How long a key is waited for, in tenths of a second: as late is a new size seen.
const WAIT_TENTHS: u8 = 2;
/// Where a terminal does not say how large it is.
const USUAL: Size = Size { columns: 80, rows: 24 };
/// Another screen, without a cursor and without lines that go on in the next one.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// A terminal that is ours until this is dropped.
pub(super) struct Terminal {
    before: Termios,
    /// A signal has come.
    ended: Arc<AtomicBool>,
}

/// The terminal, where both ends are one that can move its cursor.
pub(super) fn own() -> Option<Terminal> {
    let can_move = std::env::var("TERM").is_ok_and(|kind| !kind.is_empty() && kind != "dumb");
    if !can_move || !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return None;
    }
    let before = tcgetattr(io::stdin()).ok()?;
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, ended.clone()).ok()?;
    }
    let mut ours = before.clone();
    ours.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
    ours.special_codes[SpecialCodeIndex::VMIN] = 0;
    ours.special_codes[SpecialCodeIndex::VTIME] = WAIT_TENTHS;
    tcsetattr(io::stdin(), OptionalActions::Now, &ours).ok()?;
    let terminal = Terminal { before, ended };
    terminal.write(ENTER).ok()?;
    Some(terminal)
}

impl Terminal {
    pub(super) fn size(&self) -> Size {
        match tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                Size { columns: size.ws_col.into(), rows: size.ws_row.into() }
            }
            _ => USUAL,
        }
    }

    /// Writes over what stood there, so that nothing flickers.
    pub(super) fn draw(&self, lines: &[String]) -> io::Result<()> {
        self.write(&format!("\x1b[H{}\x1b[K\x1b[J", lines.join("\x1b[K\r\n")))
    }

    /// Waits for a key, a fifth of a second at most.
    pub(super) fn key(&self) -> Key {
        let mut pressed = [0; 32];
        match rustix::io::read(io::stdin(), &mut pressed) {
            _ if self.ended.load(Ordering::Relaxed) => Key::End,
            Ok(count) => key(&pressed[..count]),
            Err(rustix::io::Errno::INTR) => Key::None,
            Err(_) => Key::End,
        }
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        drop(self.write(LEAVE));
        tcsetattr(io::stdin(), OptionalActions::Now, &self.before).unwrap_or_default();
    }
}

/// What a terminal sends for a key.
fn key(pressed: &[u8]) -> Key {
    const CONTROL_C: u8 = 3;
    const CONTROL_D: u8 = 4;
    const ESCAPE: u8 = 27;
    match pressed {
        b"q" | b"Q" | [CONTROL_C | CONTROL_D | ESCAPE] => Key::End,
        b"\x1b[A" | b"\x1bOA" | b"k" => Key::Up,
        b"\x1b[B" | b"\x1bOB" | b"j" => Key::Down,
        b"\x1b[5~" => Key::PageUp,
        b"\x1b[6~" | b" " => Key::PageDown,
        b"\x1b[H" | b"\x1bOH" | b"\x1b[1~" | b"g" => Key::Home,
        // Keys that were pressed fast come together: the last of them counts.
        [.., b'q' | CONTROL_C] => Key::End,
        [_, rest @ ..] if pressed.len() > 3 => key(rest),
        _ => Key::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart() {
        let check = |pressed: &str, expected| assert_eq!(key(pressed.as_bytes()), expected, "{pressed:?}");
        check("", Key::None);
        check("x", Key::None);
        check("q", Key::End);
        check("\x03", Key::End);
        check("\x1b", Key::End);
        check("\x1b[A", Key::Up);
        check("\x1bOB", Key::Down);
        check("\x1b[5~", Key::PageUp);
        check("\x1b[6~", Key::PageDown);
        check("\x1b[1~", Key::Home);
        check("\x1b[B\x1b[B\x1b[B", Key::Down);
        check("\x1b[B\x1b[Aq", Key::End);
        check("\x1b[24~", Key::None);
    }
}
