//! The options of `explain` as members of an object, for whoever asks the admin listener.

use serde_json::{Map, Value, json};

/// What a member is, and which option it stands for.
const MEMBERS: &[(&str, Kind)] = &[
    ("srcip", Kind::Text),
    ("srcport", Kind::Number),
    ("dstip", Kind::Text),
    ("dstport", Kind::Number),
    ("proxied", Kind::Text),
    ("proxy_value", Kind::Texts),
    ("tls", Kind::Text),
    ("cipher", Kind::Text),
    ("sni", Kind::Text),
    ("alpn", Kind::Texts),
    ("resumed", Kind::Flag),
    ("client_subject", Kind::Text),
    ("client_san", Kind::Texts),
    ("client_fingerprint", Kind::Text),
    ("client_certificate", Kind::Text),
    ("trusted_proxy", Kind::Texts),
    ("miss", Kind::Text),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    /// A port.
    Number,
    Flag,
    /// It may be said several times.
    Texts,
}

/// The words of a command line as members. What names the listener is left out: whoever asks names it otherwise.
pub(crate) fn of_words(words: &[String]) -> Value {
    let mut members = Map::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let name = word.trim_start_matches('-').replace('-', "_");
        let Some((name, kind)) = MEMBERS.iter().find(|(known, _)| *known == name) else {
            words.next();
            continue;
        };
        let mut value = || words.next().cloned().unwrap_or_default();
        match kind {
            Kind::Flag => drop(members.insert((*name).to_owned(), json!(true))),
            Kind::Text => drop(members.insert((*name).to_owned(), json!(value()))),
            Kind::Number => {
                drop(members.insert((*name).to_owned(), json!(value().parse::<u16>().unwrap_or_default())))
            }
            Kind::Texts => {
                let texts = members.entry(*name).or_insert_with(|| json!([]));
                if let Some(texts) = texts.as_array_mut() {
                    texts.push(json!(value()));
                }
            }
        }
    }
    Value::Object(members)
}

/// Members as words of a command line; those that are taken are gone. The error is a sentence.
pub(crate) fn to_words(members: &mut Map<String, Value>) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    for (name, kind) in MEMBERS {
        let option = format!("--{}", name.replace('_', "-"));
        let mut say = |value: String| words.push(format!("{option}={value}"));
        match (kind, members.remove(*name)) {
            (_, None | Some(Value::Null)) | (Kind::Flag, Some(Value::Bool(false))) => {}
            (Kind::Flag, Some(Value::Bool(true))) => words.push(option),
            (Kind::Text, Some(Value::String(text))) => say(text),
            (Kind::Number, Some(Value::Number(number))) => say(number.to_string()),
            (Kind::Texts, Some(Value::Array(texts))) => {
                for text in texts {
                    let Value::String(text) = text else { return Err(misfit(name, *kind)) };
                    say(text);
                }
            }
            (kind, Some(_)) => return Err(misfit(name, *kind)),
        }
    }
    Ok(words)
}

fn misfit(name: &str, kind: Kind) -> String {
    let what = match kind {
        Kind::Text => "a text",
        Kind::Number => "a number",
        Kind::Flag => "`true` or `false`",
        Kind::Texts => "a list of texts",
    };
    format!("`{name}` is {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_options_and_back() {
        let words = [
            "--srcip",
            "10.0.0.1",
            "--srcport",
            "7",
            "--resumed",
            "--client-san",
            "a",
            "--client-san",
            "--b",
        ];
        let words = words.map(str::to_owned);
        let members = of_words(&words);
        let expected =
            json!({ "srcip": "10.0.0.1", "srcport": 7, "resumed": true, "client_san": ["a", "--b"] });
        assert_eq!(members, expected);
        let mut members = members.as_object().cloned().expect("an object");
        let options = ["--srcip=10.0.0.1", "--srcport=7", "--resumed", "--client-san=a", "--client-san=--b"];
        assert_eq!(to_words(&mut members).expect("good"), options);
        assert!(members.is_empty());
        let named = ["--listener", "shop", "--tls", "1.2"].map(str::to_owned);
        assert_eq!(of_words(&named), json!({ "tls": "1.2" }));
    }

    #[test]
    fn what_is_something_else_is_named() {
        for (members, expected) in [
            (json!({ "srcip": 1 }), "`srcip` is a text"),
            (json!({ "srcport": "1" }), "`srcport` is a number"),
            (json!({ "resumed": 1 }), "`resumed` is `true` or `false`"),
            (json!({ "alpn": "h2" }), "`alpn` is a list of texts"),
            (json!({ "client_san": [1] }), "`client_san` is a list of texts"),
        ] {
            let mut members = members.as_object().cloned().expect("an object");
            assert_eq!(to_words(&mut members).expect_err("bad"), expected);
        }
        let mut nulls =
            json!({ "srcip": null, "resumed": false, "other": 1 }).as_object().cloned().expect("an object");
        assert!(to_words(&mut nulls).expect("good").is_empty());
        assert_eq!(nulls.len(), 1);
    }
}
