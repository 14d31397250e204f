//! Which requests may be copied: what asks to change to another protocol never is.

use pointsman_rules::{Effect, Program, pace};

use crate::logic::question::made_up;
use crate::witness::Setting;

/// A handshake of WebSocket is refused where it is none, so that what asks for it changes to it.
const WEBSOCKET: &str = "websocket";
/// What has a body, and HEAD, changes to no protocol, whatever it asks for.
const STAYS: &str =
    r#"header["content-length"] exists || header["transfer-encoding"] exists || method == "HEAD""#;

/// Two programs in one, and behind them one more rule, whose condition is true of every request that may be copied. Nothing
/// where none is, or where all may be.
pub(super) fn copied([old, new]: [&Program; 2], setting: &Setting) -> Option<Program> {
    if setting.upgrades.is_empty() || ![old, new].into_iter().any(copies) {
        return None;
    }
    let names = setting.upgrades.iter().map(|name| name.to_ascii_lowercase());
    let (websocket, others): (Vec<_>, Vec<_>) = names.partition(|name| name == WEBSOCKET);
    let parts = [(websocket, ""), (others, STAYS)].into_iter().filter(|(names, _)| !names.is_empty());
    let parts = parts.map(|(names, unless)| {
        let names = names.iter().map(|name| spelled(name)).collect::<Option<Vec<_>>>()?.join(", ");
        let or = if unless.is_empty() { "" } else { " || " };
        Some(format!("(!(upgrade in [{names}]){or}{unless})"))
    });
    let condition = parts.collect::<Option<Vec<_>>>()?.join(" && ");
    Some(Program::joined(&[old, new, &made_up(&[&condition])?]))
}

fn copies(program: &Program) -> bool {
    let mut rules = pace::each(program.rules.iter().chain(&program.fallback));
    rules.any(|rule| {
        let effects = rule.then.effects.iter().chain(&rule.otherwise.effects);
        effects.into_iter().any(|effect| matches!(effect, Effect::Mirror(_)))
    })
}

/// A protocol between quotes.
fn spelled(name: &str) -> Option<String> {
    let is_plain = |byte: u8| pointsman_http::is_token(&[byte]) || b"/.".contains(&byte);
    name.bytes().all(is_plain).then(|| format!("\"{name}\""))
}
