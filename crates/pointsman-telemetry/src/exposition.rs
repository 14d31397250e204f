//! The text form that Prometheus reads (exposition format 0.0.4).

use std::fmt::Write;

/// Appends families of samples to a text.
pub(crate) struct Exposition<'a> {
    out: &'a mut String,
}

/// What kind of figure a family holds.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// A label's name and its value.
pub(crate) type Label<'a> = (&'a str, &'a str);

impl<'a> Exposition<'a> {
    pub(crate) fn new(out: &'a mut String) -> Exposition<'a> {
        Exposition { out }
    }

    /// The two lines before a family's samples.
    pub(crate) fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        self.push(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// A whole number.
    pub(crate) fn sample(&mut self, name: &str, labels: &[Label<'_>], value: u64) {
        self.series(name, labels);
        self.push(format_args!(" {value}\n"));
    }

    /// A counter that is a family by itself.
    pub(crate) fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, Kind::Counter, help);
        self.sample(name, &[], value);
    }

    /// A time, in seconds.
    pub(crate) fn sample_seconds(&mut self, name: &str, labels: &[Label<'_>], value_us: u64) {
        self.series(name, labels);
        self.push(format_args!(" {}\n", Seconds(value_us)));
    }

    fn series(&mut self, name: &str, labels: &[Label<'_>]) {
        self.out.push_str(name);
        for (index, (label, value)) in labels.iter().enumerate() {
            self.out.push(if index == 0 { '{' } else { ',' });
            self.out.push_str(label);
            self.out.push_str("=\"");
            for character in value.chars() {
                match character {
                    '\\' => self.out.push_str("\\\\"),
                    '"' => self.out.push_str("\\\""),
                    '\n' => self.out.push_str("\\n"),
                    other => self.out.push(other),
                }
            }
            self.out.push('"');
        }
        if !labels.is_empty() {
            self.out.push('}');
        }
    }

    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        self.out.write_fmt(text).expect("a string takes all text");
    }
}

/// Microseconds as seconds, exactly and without needless zeros.
pub(crate) struct Seconds(pub(crate) u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, fraction) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if fraction == 0 {
            return write!(f, "{whole}");
        }
        let digits = format!("{fraction:06}");
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_exact() {
        for (value_us, expected) in
            [(0, "0"), (64, "0.000064"), (1_000_000, "1"), (1_500_000, "1.5"), (67_108_864, "67.108864")]
        {
            assert_eq!(Seconds(value_us).to_string(), expected);
        }
    }

    #[test]
    fn label_values_are_escaped() {
        let mut out = String::new();
        Exposition::new(&mut out).sample("x", &[("a", "q\"b\\n\n"), ("b", "")], 7);
        assert_eq!(out, "x{a=\"q\\\"b\\\\n\\n\",b=\"\"} 7\n");
    }
}
