//! What bodies cost that settle one rule after another, and those that settle none.
//!
//! `cargo bench -p pointsman-rules --bench bodies`. It ends with 1 where ten times as much costs far more than ten times.
#![expect(clippy::print_stdout, reason = "its figures are what it is for")]

use std::fmt::Write;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use pointsman_rules::{
    Cause, Evidence, Field, Halt, NameKind, Outcome, PayloadId, Program, Subject, Targets, Truths, Value,
    compile,
};

/// Of so many rules and values as the second one, in a tenth of them.
const SIZES: [usize; 2] = [2_000, 20_000];
/// Ten times as much may cost so many times as much: the square would be a hundred, and what leaves the caches is dear.
const RATIO_MAX: f64 = 60.0;
const TURNS: usize = 5;

/// Rules over a body, and its values: by the number of the field, in the order in which they come.
struct Case {
    name: &'static str,
    rule: fn(usize) -> String,
    /// Of so many.
    value: fn(usize, usize) -> (u32, String),
}

const CASES: &[Case] = &[
    Case {
        name: "effects, each value settles a rule",
        rule: |number| format!("if (json.l[*] == \"v{number}\") {{ tag(a); }}"),
        value: |number, _| (0, format!("v{number}")),
    },
    Case {
        name: "effects, no value settles one",
        rule: |number| format!("if (json.l[*] == \"v{number}\") {{ tag(a); }}"),
        value: |number, _| (0, format!("w{number}")),
    },
    Case {
        name: "each rule waits for another field",
        rule: |number| format!("if (json.l[*] == \"v{number}\" && json.q == \"z\") {{ tag(a); }}"),
        value: |number, _| (0, format!("v{number}")),
    },
    Case {
        name: "a field of each rule's own",
        rule: |number| format!("if (json.p{number} == \"x\") {{ routeTo(a); }}"),
        value: |number, _| (u32::try_from(number).unwrap_or(0), "v".to_owned()),
    },
    Case {
        name: "a field of its own, backwards",
        rule: |number| format!("if (json.p{number} == \"x\") {{ routeTo(a); }}"),
        value: |number, size| (u32::try_from(size - 1 - number).unwrap_or(0), "v".to_owned()),
    },
    Case {
        name: "regexes over other values",
        rule: |number| format!("if (json.l[*] matches \"w{number}[a-z]+\") {{ tag(a); }}"),
        value: |number, _| (0, format!("v{number}")),
    },
    Case {
        name: "twenty rules of the head between",
        rule: |number| match number % 20 {
            0 => format!("if (json.l[*] == \"v{number}\") {{ tag(a); }}"),
            _ => format!("if (path == \"/{number}\") {{ routeTo(a); }}"),
        },
        value: |number, _| (0, format!("v{number}")),
    },
];

fn main() -> ExitCode {
    let mut is_fine = true;
    for case in CASES {
        let [small, large] = SIZES.map(|size| case.fastest(size));
        let ratio = large.as_secs_f64() / small.as_secs_f64();
        let says = if ratio <= RATIO_MAX { "" } else { "BEYOND ITS BOUND" };
        is_fine &= ratio <= RATIO_MAX;
        let [small, large] = [small, large].map(|took| took.as_secs_f64() * 1e3);
        println!("{:<40} {small:>8.2} ms {large:>8.2} ms {ratio:>6.1} {says}", case.name);
    }
    if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Case {
    fn fastest(&self, size: usize) -> Duration {
        let mut source = String::new();
        for number in 0..size {
            writeln!(source, "{}", (self.rule)(number)).unwrap_or_default();
        }
        let compiled = compile(&source, &Targets::Any);
        let program = compiled.map(|compiled| compiled.program).unwrap_or_else(|findings| {
            panic!("{}: {:?}", self.name, findings.first());
        });
        let mut truths = Truths::default();
        let values: Vec<_> = (0..size).map(|number| (self.value)(number, size)).collect();
        (0..TURNS).map(|_| read(&program, &values, &mut truths)).min().unwrap_or_default()
    }
}

/// A body whose values come one by one, and which ends behind them.
fn read(program: &Program, values: &[(u32, String)], truths: &mut Truths) -> Duration {
    let began = Instant::now();
    let mut body = Body(Evidence::new(program));
    let mut halt = Halt::of(&program.decide(&body, truths));
    for (field, value) in values {
        let id = PayloadId(*field);
        body.0.see(id, Value::Text(value.as_bytes()));
        if *field > 0 {
            body.0.end(id);
        }
        if let Some(waits) = &mut halt
            && body.0.take_news()
            && waits.may_end(program, &body.0)
            && !program.waits_on(waits, &body, truths)
        {
            halt = None;
        }
    }
    body.0.end_all(None);
    assert!(!matches!(program.decide(&body, truths).outcome, Outcome::Waits), "all is known");
    began.elapsed()
}

struct Body(Evidence);

impl Subject for Body {
    fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>) {
        match field {
            Field::Path => {
                let _seen_enough = see(Value::Text(b"/"));
            }
            field => {
                let _seen_enough = self.0.each(field, see);
            }
        }
    }

    fn unsettled(&self, field: &Field) -> Option<Cause> {
        self.0.unsettled(field)
    }

    fn each_name(&self, _kind: NameKind, _see: &mut dyn FnMut(&[u8])) -> bool {
        true
    }

    fn evidence(&self) -> Option<&Evidence> {
        Some(&self.0)
    }
}
