//! Whether an `xml.` or `json.` path is one.

/// What is wrong with a path, and where in it.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) at: (u32, u32),
    pub(crate) message: String,
    pub(crate) help: &'static str,
}

const XML_HELP: &str =
    "an XML path is `xml.purchase/item[2]/@id`; `//` is any depth, and an unusual name stands in quotes";
const JSON_HELP: &str = "a JSON path is `json.order.items[0].price`; `[*]` is every element";

/// Reads a path as the lexer cuts it.
pub(crate) fn check(path: &str) -> Result<(), Fault> {
    let mut walk = Walk { path, at: 0 };
    if let Some(steps) = path.strip_prefix("xml.") {
        walk.at = path.len() - steps.len();
        return walk.xml();
    }
    walk.at = "json".len();
    walk.json()
}

struct Walk<'a> {
    path: &'a str,
    at: usize,
}

impl Walk<'_> {
    /// `step ("/" step | "//" step)*`, perhaps with `//` at its head.
    fn xml(&mut self) -> Result<(), Fault> {
        self.eat("//");
        loop {
            let attribute = self.eat("@");
            self.name(XML_HELP)?;
            if self.eat(":") {
                self.name(XML_HELP)?;
            }
            if !attribute && self.eat("[") {
                self.index(1, XML_HELP)?;
            }
            if self.done() {
                return Ok(());
            }
            if attribute {
                return Err(self.fault("nothing follows an attribute", XML_HELP));
            }
            if !self.eat("//") && !self.eat("/") {
                return Err(self.fault("expected `/`", XML_HELP));
            }
        }
    }

    /// `.name`, `["name"]`, `[0]` and `[*]`, at least one.
    fn json(&mut self) -> Result<(), Fault> {
        while !self.done() {
            if self.eat(".") {
                self.name(JSON_HELP)?;
            } else if self.eat("[") {
                if self.path[self.at..].starts_with('"') {
                    self.name(JSON_HELP)?;
                    self.close(JSON_HELP)?;
                } else if self.eat("*") {
                    self.close(JSON_HELP)?;
                } else {
                    self.index(0, JSON_HELP)?;
                }
            } else {
                return Err(self.fault("expected `.` or `[`", JSON_HELP));
            }
        }
        Ok(())
    }

    fn name(&mut self, help: &'static str) -> Result<(), Fault> {
        let rest = &self.path[self.at..];
        let quoted = rest.strip_prefix('"').and_then(|inner| inner.find('"'));
        let len = match quoted {
            Some(inner) => inner + 2,
            None => rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').unwrap_or(rest.len()),
        };
        if len == 0 || quoted == Some(0) {
            return Err(self.fault("expected a name", help));
        }
        self.at += len;
        Ok(())
    }

    fn index(&mut self, least: u32, help: &'static str) -> Result<(), Fault> {
        let rest = &self.path[self.at..];
        let len = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        match rest[..len].parse::<u32>() {
            Ok(index) if index >= least => {}
            Ok(_) => return Err(self.fault("positions count from 1", help)),
            Err(_) => return Err(self.fault("expected a position", help)),
        }
        self.at += len;
        self.close(help)
    }

    fn close(&mut self, help: &'static str) -> Result<(), Fault> {
        if self.eat("]") { Ok(()) } else { Err(self.fault("expected `]`", help)) }
    }

    fn eat(&mut self, text: &str) -> bool {
        let there = self.path[self.at..].starts_with(text);
        self.at += if there { text.len() } else { 0 };
        there
    }

    fn done(&self) -> bool {
        self.at == self.path.len()
    }

    fn fault(&self, message: &str, help: &'static str) -> Fault {
        let len = self.path[self.at..].chars().next().map_or(0, char::len_utf8);
        // Paths are parts of files whose length fits.
        let narrow = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Fault { at: (narrow(self.at), narrow(self.at + len)), message: message.to_owned(), help }
    }
}
