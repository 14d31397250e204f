//! The request headers that a rule set names.

use std::collections::BTreeSet;

use crate::{
    Block, Effect, Exit, Field, HeaderEdit, Program, Rule, Side, Stickiness, Template, Terminal, pace,
};

/// The headers of requests that a rule set names, in lower case.
#[derive(Debug, Default)]
pub struct NamedHeaders<'p> {
    /// Those that it reads: in conditions, in texts, for stickiness.
    pub read: BTreeSet<&'p str>,
    /// Those that it sets, adds or removes on the way to a server.
    pub changed: BTreeSet<&'p str>,
}

impl Program {
    /// The headers of requests that the rules read or change.
    pub fn named_headers(&self) -> NamedHeaders<'_> {
        let mut named = NamedHeaders::default();
        pace::each(self.rules.iter().chain(&self.fallback)).for_each(|rule| named.rule(rule));
        named
    }
}

impl Rule {
    /// The same of one rule.
    pub fn named_headers(&self) -> NamedHeaders<'_> {
        let mut named = NamedHeaders::default();
        named.rule(self);
        named
    }
}

impl<'p> NamedHeaders<'p> {
    /// All of them.
    pub fn all(self) -> BTreeSet<&'p str> {
        let NamedHeaders { mut read, changed } = self;
        read.extend(changed);
        read
    }

    fn rule(&mut self, rule: &'p Rule) {
        rule.condition.each_test(&mut |test| self.field(&test.field));
        self.block(&rule.then);
        self.block(&rule.otherwise);
    }

    fn block(&mut self, block: &'p Block) {
        for effect in &block.effects {
            if let Effect::Header { side: Side::Request, name, .. } = effect {
                self.changed.insert(name);
            }
        }
        block.each_field(&mut |field| self.field(field));
    }

    fn field(&mut self, field: &'p Field) {
        if let Field::Header(name) = field {
            self.read.insert(name);
        }
    }
}

impl Block {
    /// The fields that its texts and its stickiness name.
    pub(crate) fn each_field<'p>(&'p self, see: &mut impl FnMut(&'p Field)) {
        for effect in &self.effects {
            if let Effect::Header { edit: HeaderEdit::Set(template) | HeaderEdit::Add(template), .. } = effect
            {
                template.each_field(see);
            }
        }
        let Exit::Terminal(terminal) = &self.exit else { return };
        if let Some(Stickiness::Field(field)) = terminal.stickiness() {
            see(field);
        }
        if let Terminal::Redirect { location: template, .. } | Terminal::Respond { body: template, .. } =
            terminal
        {
            template.each_field(see);
        }
    }
}

impl Template {
    fn each_field<'p>(&'p self, see: &mut impl FnMut(&'p Field)) {
        for piece in &self.0 {
            piece.fields().for_each(&mut *see);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Targets, compile};

    #[test]
    fn every_place_that_names_a_header_is_found() {
        let source = r#"
            R1: if (!(path == "/" && (header["A"] exists || count(header["b"]) > 1))) { setHeader("C", "${header["d"]}"); }
            R2: if (path == "/e") { removeHeader("f"); setResponseHeader("x", "${header["g"]}"); }
                else { addHeader("h", "1"); removeResponseHeader("y"); }
            R3: if (path == "/r") { redirect(302, "/${header["i"]}"); }
            R4: if (path == "/s") { respond(200, "${header["j"]}"); }
            else: routeTo(pool, STICKY_ON(header["k"]));
        "#;
        let program = compile(source, &Targets::Any).expect("rules").program;
        let named = program.named_headers();
        assert_eq!(named.read.into_iter().collect::<String>(), "abdgijk");
        assert_eq!(named.changed.into_iter().collect::<String>(), "cfh");
    }
}
