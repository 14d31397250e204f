//! What rules may ask for and do: of a request everything, of a connection that is not looked into little.

use crate::ast::{Action, ActionKind, FieldRef, Sticky, StickyKind};
use crate::parser::shorten;
use crate::{Diagnostic, Field};

use super::Compiler;

/// What a rule set is asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Heads of HTTP requests.
    #[default]
    Requests,
    /// Connections whose bytes nobody looks into: their addresses.
    Connections,
    /// Connections of which the ClientHello of TLS is read, and nothing else.
    Hellos,
}

impl Scope {
    pub(crate) fn has(self, field: &Field) -> bool {
        match field {
            Field::SrcIp
            | Field::SrcPort
            | Field::DstIp
            | Field::DstPort
            | Field::Proto
            | Field::ClientIp
            | Field::Proxy(_) => true,
            Field::TlsSni | Field::TlsVersion | Field::TlsAlpn => self != Scope::Connections,
            _ => self.has_requests(),
        }
    }

    pub(crate) fn has_requests(self) -> bool {
        self == Scope::Requests
    }

    fn fields(self) -> &'static str {
        match self {
            Scope::Requests => "every field is known",
            Scope::Connections => {
                "known are `srcip`, `srcport`, `dstip`, `dstport`, `proto`, `clientip` and those of `proxy.`"
            }
            Scope::Hellos => {
                "known are `srcip`, `srcport`, `dstip`, `dstport`, `proto`, `clientip`, `tls.sni`, `tls.version`, \
                 `tls.alpn` and those of `proxy.`"
            }
        }
    }
}

impl Compiler<'_> {
    /// A field that is never there where the rules are asked is a mistake, not an absent one.
    pub(super) fn in_scope(&self, named: &FieldRef, field: Field) -> Result<Field, Diagnostic> {
        if self.scope.has(&field) {
            return Ok(field);
        }
        let message = format!("`{}` is not known here: no request is read", shorten(&named.name));
        Err(Diagnostic::error(named.span, message).help(self.scope.fields()))
    }

    /// Says what an action cannot do where there is no request, and whether it can.
    pub(super) fn check_scope(&mut self, action: &Action) -> Option<()> {
        if self.scope.has_requests() {
            return Some(());
        }
        match &action.kind {
            ActionKind::RouteTo(_, None)
            | ActionKind::Reject(None, None)
            | ActionKind::Reset
            | ActionKind::Discard
            | ActionKind::Goto(_)
            | ActionKind::Tag(_)
            | ActionKind::Bandwidth(_)
            | ActionKind::AllowConflict(_) => Some(()),
            ActionKind::RouteTo(_, Some(sticky)) => self.check_sticky(sticky),
            ActionKind::Reject(..) => {
                self.error(
                    action.span,
                    "a connection is refused without an answer",
                    "write `reject()` or `reject(reset)`",
                );
                None
            }
            _ => {
                let word = action.word.of(self.source);
                let message = format!("`{word}` needs a request, and none is read here");
                self.error(
                    action.word,
                    message,
                    "a connection can be routed, rejected, discarded, tagged and given bandwidth",
                );
                None
            }
        }
    }

    fn check_sticky(&mut self, sticky: &Sticky) -> Option<()> {
        let message = match sticky.kind {
            StickyKind::Cookie => "no request is read here, and what it would keep clients by is in one",
            StickyKind::TlsSession if self.scope == Scope::Connections => {
                "nothing is read of TLS here, and what it would keep clients by is there"
            }
            _ => return Some(()),
        };
        self.error(sticky.span, message, "`STICKY_ON_IP` keeps a client by its address");
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Targets, compile_for};

    /// What is wrong with rules in a scope: message and help of each finding.
    fn wrong(scope: Scope, rules: &str) -> Vec<(String, String)> {
        let findings = compile_for(rules, &Targets::Any, scope).err().unwrap_or_default();
        findings.into_iter().map(|finding| (finding.message, finding.help.unwrap_or_default())).collect()
    }

    fn check(scope: Scope, rules: &str, expected: &[&str]) {
        let messages: Vec<_> = wrong(scope, rules).into_iter().map(|(message, _)| message).collect();
        assert_eq!(messages, expected, "{scope:?}: {rules}");
    }

    #[test]
    fn addresses_are_known_of_every_connection() {
        let rules = "if (srcip in [10.0.0.0/8] && srcport > 1024 && dstip exists && dstport == 443
                         && clientip != 10.0.0.1 && proto == \"tcp\") { tag(inside); routeTo(a, STICKY_ON_IP); }
                     if (srcip == ::1) { routeTo(a.b, STICKY_ON_IP_PORT); } else { goto last; }
                     if (dstport == 1) { reject(); }
                     last: if (dstport == 2) { discard(); }
                     else: routeTo(a, STICKY_ON(srcip));";
        for scope in [Scope::Requests, Scope::Connections, Scope::Hellos] {
            check(scope, rules, &[]);
        }
    }

    #[test]
    fn a_hello_says_more() {
        let rules = "if (tls.sni == \"a\" || tls.alpn == \"h2\" || tls.version == \"1.3\") { routeTo(a, STICKY_ON(tls.sni)); }";
        check(Scope::Hellos, rules, &[]);
        let unknown = |field: &str| format!("`{field}` is not known here: no request is read");
        let fields = ["tls.sni", "tls.alpn", "tls.version", "tls.sni"].map(unknown);
        check(Scope::Connections, rules, &fields.each_ref().map(String::as_str));
        for field in ["tls.cipher exists", "tls.resumed", "tls.client.san == \"a\""] {
            let rules = format!("if ({field}) {{ reject(); }}");
            assert_eq!(wrong(Scope::Hellos, &rules).len(), 1, "{field}");
            check(Scope::Requests, &rules, &[]);
        }
    }

    #[test]
    fn what_is_of_a_request_is_named_with_what_is_known() {
        for field in
            ["path", "host", "method", "header[\"a\"]", "cookie[\"a\"]", "query[\"a\"]", "scheme", "version"]
        {
            let found = wrong(Scope::Connections, &format!("if ({field} == \"a\") {{ discard(); }}"));
            let [(message, help)] = &found[..] else { panic!("{field}: {found:?}") };
            assert!(message.contains("is not known here") && help.contains("`srcip`"), "{message}: {help}");
        }
    }

    #[test]
    fn what_answers_or_edits_is_refused() {
        for (action, message) in [
            ("reject(403)", "a connection is refused without an answer"),
            ("reject(403, \"no\")", "a connection is refused without an answer"),
            ("redirect(302, \"/\")", "`redirect` needs a request, and none is read here"),
            ("respond(200, \"\")", "`respond` needs a request, and none is read here"),
            ("setHeader(\"a\", \"b\")", "`setHeader` needs a request, and none is read here"),
            ("removeResponseHeader(\"a\")", "`removeResponseHeader` needs a request, and none is read here"),
            ("rewritePath(\"a\", \"b\")", "`rewritePath` needs a request, and none is read here"),
            (
                "routeTo(a, STICKY_ON_COOKIE)",
                "no request is read here, and what it would keep clients by is in one",
            ),
            ("routeTo(a, STICKY_ON(cookie[\"a\"]))", "`cookie` is not known here: no request is read"),
        ] {
            for scope in [Scope::Connections, Scope::Hellos] {
                check(scope, &format!("if (dstport == 1) {{ {action}; }}"), &[message]);
            }
        }
        let by_session = "if (dstport == 1) { routeTo(a, STICKY_ON_TLS_SESSION); }";
        check(Scope::Hellos, by_session, &[]);
        let message = "nothing is read of TLS here, and what it would keep clients by is there";
        check(Scope::Connections, by_session, &[message]);
    }
}
