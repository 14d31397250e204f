//! Stand-in until the rules crate exports its renderer.
use pointsman_rules::Diagnostic;
/// Whether a rendering may use terminal colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Text only.
    Never,
    /// ANSI escapes.
    Ansi,
}
pub(crate) trait Render { fn render(&self, name: &str, source: &str, colour: Colour) -> String; }
impl Render for Diagnostic {
    fn render(&self, name: &str, source: &str, _: Colour) -> String {
        let s = self.span; let t = source.get(s.start as usize..s.end as usize).unwrap_or("?");
        format!("{:?}: {} --> {name} [{}..{}] {t:?}\n  = help: {:?}", self.severity, self.message, s.start, s.end, self.help)
    }
}
