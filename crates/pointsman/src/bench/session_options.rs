//! The script of users' sessions: read from its file, with the files that it names.

use std::path::Path;

use pointsman_bench::{Script, Url};
use pointsman_rules::{Colour, draw};

pub(super) const HELP: &str = "
users
    --session FILE           what each user does, step by step: `--rate N` is then sessions that begin a second, and
                             `--clients N` are users, each of whom begins another behind each. A URL is the server of
                             the steps that name only a path.
";

/// Reads the script at `path`; its paths are those of `base`.
pub(super) fn script(path: &Path, base: Option<&Url>) -> Result<Script, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut read = |name: &str| std::fs::read(folder.join(name));
    Script::parse(&text, base, &mut read).map_err(|errors| {
        let drawn = draw(&errors, &path.display().to_string(), &text, Colour::Never);
        // Whoever shows it says that it is an error.
        drawn.trim_end().strip_prefix("error: ").unwrap_or(&drawn).to_owned()
    })
}
