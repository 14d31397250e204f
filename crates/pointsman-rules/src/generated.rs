//! Subjects and programs made up for property tests.

use std::net::IpAddr;
use std::ops::ControlFlow;

use ipnet::IpNet;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use regex::bytes::RegexBuilder;

use crate::{
    Block, Cause, Condition, Decimal, Effect, Entry, Exit, Field, JsonStep, OnUnknown, Op, Order, Over,
    Payload, PayloadId, Place, Program, Rule, RuleIndex, Span, Stickiness, Subject, TargetId, Terminal, Test,
    Value,
};

/// A subject whose fields are lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct MadeUpSubject {
    pub(crate) fields: Vec<(Field, Vec<MadeUpValue>)>,
    pub(crate) unsettled: Vec<(Field, Cause)>,
}

/// A value that owns itself.
#[derive(Clone, Debug)]
pub(crate) enum MadeUpValue {
    Text(Vec<u8>),
    Integer(u64),
    Ip(IpAddr),
    Boolean(bool),
    Nothing,
    Unknown(Cause),
}

impl MadeUpSubject {
    pub(crate) fn of(field: Field, value: MadeUpValue) -> MadeUpSubject {
        MadeUpSubject { fields: vec![(field, vec![value])], unsettled: vec![] }
    }

    pub(crate) fn values(&self, field: &Field) -> Vec<Value<'_>> {
        let values = self.fields.iter().filter(|(name, _)| name == field).flat_map(|(_, values)| values);
        values.map(MadeUpValue::as_value).collect()
    }
}

impl MadeUpValue {
    fn as_value(&self) -> Value<'_> {
        match self {
            MadeUpValue::Text(text) => Value::Text(text),
            MadeUpValue::Integer(integer) => Value::Integer(*integer),
            MadeUpValue::Ip(ip) => Value::Ip(*ip),
            MadeUpValue::Boolean(boolean) => Value::Boolean(*boolean),
            MadeUpValue::Nothing => Value::Nothing,
            MadeUpValue::Unknown(cause) => Value::Unknown(*cause),
        }
    }
}

impl Subject for MadeUpSubject {
    fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>) {
        for value in self.values(field) {
            if see(value).is_break() {
                break;
            }
        }
    }

    fn unsettled(&self, field: &Field) -> Option<Cause> {
        self.unsettled.iter().find(|(name, _)| name == field).map(|(_, cause)| *cause)
    }
}

/// Few fields, few values: what matters is that conditions often meet.
fn fields() -> Vec<Field> {
    let head = [Field::SrcIp, Field::DstPort, Field::Host, Field::Header("x".into()), Field::TlsResumed];
    head.into_iter().chain(payload_fields()).collect()
}

/// What the generated rules ask of bodies.
pub(crate) fn payload_fields() -> Vec<Field> {
    let payload = |id: u32, steps: Box<[JsonStep]>| {
        let payload =
            Payload { id: PayloadId(id), spelling: format!("json {id}").into(), place: Place::Json(steps) };
        Field::Payload(payload.into())
    };
    let name = |name: &str| JsonStep::Member(name.into());
    vec![payload(0, [name("a")].into()), payload(1, [name("b"), JsonStep::Each].into())]
}

/// Why a field may have more values. Only of a body more may be read.
fn unsettled(fields: Vec<Field>) -> impl Strategy<Value = (Field, Cause)> {
    let cause = select(vec![Cause::Unread, Cause::Unread, Cause::Limit, Cause::Malformed, Cause::Encoding]);
    (select(fields), cause).prop_map(|(field, cause)| match (&field, cause) {
        (Field::Payload(_), _) => (field, cause),
        (_, Cause::Unread) => (field, Cause::Limit),
        _ => (field, cause),
    })
}

pub(crate) fn subjects() -> impl Strategy<Value = MadeUpSubject> {
    let one_field = (select(fields()), vec(values(), 0..4)).prop_map(|(field, mut values)| {
        if field == Field::SrcIp {
            values.retain(|value| matches!(value, MadeUpValue::Ip(_)));
        }
        (field, values)
    });
    let unsettled = vec(unsettled(fields()), 0..3);
    (vec(one_field, 0..8), unsettled).prop_map(|(fields, unsettled)| MadeUpSubject { fields, unsettled })
}

fn values() -> impl Strategy<Value = MadeUpValue> {
    prop_oneof![
        4 => texts().prop_map(|text| MadeUpValue::Text(text.into_vec())),
        2 => (0u64..4).prop_map(MadeUpValue::Integer),
        2 => addresses().prop_map(MadeUpValue::Ip),
        1 => any::<bool>().prop_map(MadeUpValue::Boolean),
        1 => select(vec![Cause::Limit, Cause::Encoding]).prop_map(MadeUpValue::Unknown),
        1 => (0..1).prop_map(|_| MadeUpValue::Nothing),
        1 => vec(any::<u8>(), 0..6).prop_map(MadeUpValue::Text),
    ]
}

fn texts() -> impl Strategy<Value = Box<[u8]>> {
    select(vec![
        "",
        "a",
        "A",
        "ab",
        "/a",
        "/a/b",
        "/a/long/ab",
        "0",
        "1",
        " 2.0",
        "3e0",
        "10.0.0.1",
        "::ffff:10.0.0.2",
        "true",
    ])
    .prop_map(|text| text.as_bytes().into())
}

fn addresses() -> impl Strategy<Value = IpAddr> {
    select(vec!["10.0.0.1", "10.0.0.2", "11.0.0.1", "::1", "::ffff:10.0.0.1"])
        .prop_map(|text| text.parse().expect("an address"))
}

fn networks() -> impl Strategy<Value = IpNet> {
    (addresses(), select(vec![0, 8, 32]))
        .prop_map(|(ip, bits)| IpNet::new(ip, bits).expect("few enough bits"))
}

fn decimals() -> impl Strategy<Value = Decimal> {
    select(vec!["0", "1", "1.5", "2", "3", "-1"]).prop_map(|text| text.parse().expect("a number"))
}

fn orders() -> impl Strategy<Value = Order> {
    select(vec![Order::Less, Order::LessOrEqual, Order::Greater, Order::GreaterOrEqual])
}

fn ops() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0..1).prop_map(|_| Op::Exists),
        any::<bool>().prop_map(|wanted| if wanted { Op::IsTrue } else { Op::IsFalse }),
        texts().prop_map(Op::TextEquals),
        texts().prop_map(Op::TextDiffers),
        (orders(), texts()).prop_map(|(order, text)| Op::TextOrder(order, text)),
        texts().prop_map(Op::Contains),
        texts().prop_map(Op::StartsWith),
        texts().prop_map(Op::EndsWith),
        "[a/*?]{0,3}".prop_map(|pattern| Op::Like(pattern.into_bytes().into())),
        regexes(),
        texts().prop_map(Op::Under),
        decimals().prop_map(Op::NumberEquals),
        decimals().prop_map(Op::NumberDiffers),
        (orders(), decimals()).prop_map(|(order, number)| Op::NumberOrder(order, number)),
        networks().prop_map(Op::IpIn),
        networks().prop_map(Op::IpNotIn),
        (orders(), addresses()).prop_map(|(order, ip)| Op::IpOrder(order, ip)),
        vec(entries(), 0..4).prop_map(Op::In),
    ]
}

/// As the compiler makes them.
fn regexes() -> impl Strategy<Value = Op> {
    const REGEXES: &[&str] = &[
        "a",
        "^/",
        "[0-9]$",
        "^/a",
        "b$",
        "(?i)aB",
        "a.*b",
        "long/",
        "^(a|/b)",
        "[ab]/",
        "(a|ab)/?",
        "^$",
        "",
        "l(o|a)ng",
        "(?i)^/A/(b|c)",
        "a{2}",
        "(?m)^a$",
        "[^a]",
        "(a|)b",
        "\\b1",
        "/(a|b|long)$",
    ];
    select(REGEXES).prop_map(|regex| {
        let built = RegexBuilder::new(regex).unicode(false).dot_matches_new_line(true).build();
        Op::Matches(built.expect("a regex").into())
    })
}

fn entries() -> impl Strategy<Value = Entry> {
    prop_oneof![
        texts().prop_map(Entry::Text),
        decimals().prop_map(Entry::Number),
        addresses().prop_map(|ip| Entry::Network(ip.into())),
        (decimals(), decimals(), any::<bool>()).prop_map(|(from, to, exclusive)| Entry::NumberRange {
            from,
            to,
            exclusive
        }),
        (addresses(), addresses(), any::<bool>()).prop_map(|(from, to, exclusive)| Entry::IpRange {
            from,
            to,
            exclusive
        }),
        (texts(), texts(), any::<bool>()).prop_map(|(from, to, exclusive)| Entry::TextRange {
            from,
            to,
            exclusive
        }),
    ]
}

fn tests() -> impl Strategy<Value = Test> {
    let overs = select(vec![Over::Any, Over::Any, Over::All, Over::First, Over::Once, Over::Count]);
    (select(fields()), overs, any::<bool>(), ops(), orders(), decimals(), 0u32..1000).prop_map(
        |(field, over, fold_case, op, order, number, start)| Test {
            span: Span { start, end: start + 1 },
            field: if takes_addresses(&op) { Field::SrcIp } else { field },
            over,
            fold_case,
            op: if over == Over::Count { Op::NumberOrder(order, number) } else { op },
        },
    )
}

/// Whether an address stands in it, as beside address fields only.
fn takes_addresses(op: &Op) -> bool {
    match op {
        Op::IpIn(_) | Op::IpNotIn(_) | Op::IpOrder(..) => true,
        Op::In(entries) => {
            entries.iter().any(|entry| matches!(entry, Entry::Network(_) | Entry::IpRange { .. }))
        }
        _ => false,
    }
}

/// Tests against plain texts, few enough for rules to share them, and some that are almost the same.
fn text_tests() -> impl Strategy<Value = Test> {
    let texts = vec!["", "a", "ab", "/a", "/a/", "/a/b", "1", "/a/long/", "/a/long/a", "/a/long/b"];
    let text = || select(texts.clone()).prop_map(|text| text.as_bytes().into());
    let op = prop_oneof![
        text().prop_map(Op::TextEquals),
        text().prop_map(Op::StartsWith),
        text().prop_map(Op::Under),
        vec(text().prop_map(Entry::Text), 0..3).prop_map(Op::In),
    ];
    let field = select(vec![Field::Host, Field::Header("x".into())]);
    let over = prop_oneof![9 => (0..1).prop_map(|_| Over::Any), 1 => (0..1).prop_map(|_| Over::All)];
    let fold_case = proptest::bool::weighted(0.1);
    (field, over, fold_case, op, 0u32..1000).prop_map(|(field, over, fold_case, op, start)| Test {
        span: Span { start, end: start + 1 },
        field,
        over,
        fold_case,
        op,
    })
}

pub(crate) fn conditions() -> impl Strategy<Value = Condition> {
    let leaf = prop_oneof![
        9 => tests().prop_map(Condition::Test),
        6 => text_tests().prop_map(Condition::Test),
        1 => (0..1).prop_map(|_| Condition::Always),
    ];
    leaf.prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| Condition::Not(Box::new(inner))),
            vec(inner.clone(), 1..4).prop_map(Condition::And),
            vec(inner, 1..4).prop_map(Condition::Or),
        ]
    })
}

/// A block and how far forward its goto would go.
fn blocks() -> impl Strategy<Value = (Block, u32)> {
    let terminal = (0u32..3, any::<bool>()).prop_map(|(number, route)| match route {
        true => Terminal::RouteTo { target: TargetId(number), sticky: Stickiness::None },
        false => Terminal::Reject { status: 400, reason: None },
    });
    let exit = prop_oneof![
        3 => (0..1).prop_map(|_| Exit::Next),
        1 => (0..1).prop_map(|_| Exit::Goto(RuleIndex(0))),
        2 => terminal.prop_map(Exit::Terminal),
    ];
    let effects = vec("[a-z]{4}".prop_map(|tag| Effect::Tag(tag.into())), 0..3);
    (effects, exit, 1u32..4)
        .prop_map(|(effects, exit, jump)| (Block { effects, exit, ..Block::default() }, jump))
}

/// Blocks that mostly let the walk go on, so that it sees many rules.
fn quiet_blocks() -> impl Strategy<Value = (Block, u32)> {
    prop_oneof![8 => (0..1).prop_map(|_| (Block::default(), 1)), 1 => blocks()]
}

/// A condition and what follows from it.
type MadeUpRule = (Condition, (Block, u32), (Block, u32));

/// Rules that begin with the same test, as they stand beside each other in files.
fn runs() -> impl Strategy<Value = Vec<MadeUpRule>> {
    let rule = (proptest::option::of(conditions()), blocks(), quiet_blocks());
    (text_tests(), vec(rule, 1..4)).prop_map(|(lead, rules)| {
        let begun = rules.into_iter().map(|(further, then, otherwise)| {
            let lead = Condition::Test(lead.clone());
            let condition = match further {
                Some(further) => Condition::And(vec![lead, further]),
                None => lead,
            };
            (condition, then, otherwise)
        });
        begun.collect()
    })
}

/// Tests whose values many rules share, of the kinds that are looked up.
fn crowd_tests() -> impl Strategy<Value = Test> {
    let texts = || {
        let number = (0u32..40).prop_map(|number| format!("/{number}"));
        let path = (0u32..12, 0u32..12).prop_map(|(a, b)| format!("/a/{a}/{b}"));
        prop_oneof![2 => texts(), 2 => number.prop_map(boxed), 1 => path.prop_map(boxed)]
    };
    let numbers = || {
        (0u64..60, any::<bool>()).prop_map(|(number, half)| {
            let text = if half { format!("{number}.5") } else { number.to_string() };
            text.parse::<Decimal>().expect("a number")
        })
    };
    let range = (numbers(), numbers(), any::<bool>()).prop_map(|(from, to, exclusive)| Entry::NumberRange {
        from,
        to,
        exclusive,
    });
    let op = prop_oneof![
        6 => texts().prop_map(Op::TextEquals),
        2 => texts().prop_map(Op::StartsWith),
        1 => texts().prop_map(Op::Under),
        1 => texts().prop_map(Op::EndsWith),
        1 => texts().prop_map(Op::Contains),
        3 => (orders(), numbers()).prop_map(|(order, number)| Op::NumberOrder(order, number)),
        1 => numbers().prop_map(Op::NumberEquals),
        1 => vec(prop_oneof![range, texts().prop_map(Entry::Text)], 0..3).prop_map(Op::In),
        1 => networks().prop_map(Op::IpIn),
        1 => regexes(),
    ];
    let overs = select(vec![Over::Any, Over::Any, Over::Any, Over::Any, Over::All, Over::First, Over::Once]);
    let field = select(fields_of_crowds());
    let fold_case = proptest::bool::weighted(0.1);
    (field, overs, fold_case, op, 0u32..1000).prop_map(|(field, over, fold_case, op, start)| Test {
        span: Span { start, end: start + 1 },
        field: if takes_addresses(&op) { Field::SrcIp } else { field },
        over,
        fold_case,
        op,
    })
}

fn boxed(text: String) -> Box<[u8]> {
    text.into_bytes().into()
}

/// A condition of few tests, most of them all required.
fn crowd_conditions() -> impl Strategy<Value = Condition> {
    let test = || crowd_tests().prop_map(Condition::Test);
    let negated = || test().prop_map(|inner| Condition::Not(Box::new(inner)));
    let part = prop_oneof![8 => test(), 1 => negated(), 1 => vec(test(), 1..4).prop_map(Condition::Or)];
    prop_oneof![
        8 => vec(part, 1..4).prop_map(Condition::And),
        1 => vec(vec(test(), 1..3).prop_map(Condition::And), 1..4).prop_map(Condition::Or),
        1 => conditions(),
    ]
}

/// Hundreds of rules over few values. Some begin with one test for all, some are made of a handful of tests.
pub(crate) fn crowds() -> impl Strategy<Value = Program> {
    let blocks = || (crowd_blocks(), proptest::option::weighted(0.02, blocks()));
    let quiet =
        |(then, otherwise): (_, Option<_>)| (then, otherwise.unwrap_or_else(|| (Block::default(), 1)));
    let begun = (vec((crowd_conditions(), blocks()), 17..300), proptest::option::of(crowd_tests()));
    let begun = begun.prop_map(move |(rules, shared)| {
        let rules = rules.into_iter().map(|(condition, blocks)| {
            let condition = match &shared {
                Some(shared) => Condition::And(vec![Condition::Test(shared.clone()), condition]),
                None => condition,
            };
            let (then, otherwise) = quiet(blocks);
            (condition, then, otherwise)
        });
        rules.collect()
    });
    let few = (vec(crowd_tests(), 2..9), vec((vec(any::<Index>(), 1..5), blocks()), 17..300));
    let few = few.prop_map(move |(tests, rules)| {
        let rules = rules.into_iter().map(|(parts, blocks)| {
            let part = |index: &Index| Condition::Test(index.get(&tests).clone());
            let (then, otherwise) = quiet(blocks);
            (Condition::And(parts.iter().map(part).collect()), then, otherwise)
        });
        rules.collect()
    });
    finished(prop_oneof![begun, few])
}

/// Mostly such as let the walk go on, so that it sees many rules.
fn crowd_blocks() -> impl Strategy<Value = (Block, u32)> {
    let tag =
        "[a-z]{4}".prop_map(|tag| (Block { effects: vec![Effect::Tag(tag.into())], ..Block::default() }, 1));
    let goto =
        (1u32..40).prop_map(|jump| (Block { exit: Exit::Goto(RuleIndex(0)), ..Block::default() }, jump));
    prop_oneof![8 => tag, 1 => goto, 2 => blocks()]
}

/// Subjects that the rules of a crowd speak of.
pub(crate) fn crowd_subjects() -> impl Strategy<Value = MadeUpSubject> {
    let text = |text: String| MadeUpValue::Text(text.into_bytes());
    let value = || {
        prop_oneof![
            3 => (0u32..40).prop_map(move |number| text(format!("/{number}"))),
            2 => (0u32..12, 0u32..12).prop_map(move |(a, b)| text(format!("/a/{a}/{b}"))),
            3 => (0u32..60, 0u32..2).prop_map(move |(number, half)| text(format!("{number}.{}", half * 5))),
            1 => (0u64..60).prop_map(MadeUpValue::Integer),
            2 => values(),
        ]
    };
    let values = || prop_oneof![6 => vec(value(), 1..2), 2 => vec(value(), 0..4)];
    let fields = vec(values(), fields_of_crowds().len());
    let unsettled = vec(unsettled(fields_of_crowds()), 0..3);
    let unsettled = prop_oneof![8 => (0..1).prop_map(|_| vec![]), 2 => unsettled];
    (fields, proptest::option::of(addresses()), unsettled).prop_map(|(fields, ip, unsettled)| {
        let ip = ip.into_iter().map(MadeUpValue::Ip).collect();
        let fields = fields_of_crowds().into_iter().zip(fields).chain([(Field::SrcIp, ip)]).collect();
        MadeUpSubject { fields, unsettled }
    })
}

fn fields_of_crowds() -> Vec<Field> {
    let head = [Field::Host, Field::Header("x".into()), Field::DstPort];
    head.into_iter().chain(payload_fields().pop()).collect()
}

pub(crate) fn programs() -> impl Strategy<Value = Program> {
    let few = vec((conditions(), blocks(), blocks()), 0..6);
    let many = vec(runs(), 0..12).prop_map(|runs| runs.into_iter().flatten().collect());
    finished(prop_oneof![few, many])
}

/// Whole programs of these rules.
fn finished(rules: impl Strategy<Value = Vec<MadeUpRule>>) -> impl Strategy<Value = Program> {
    let fallback = proptest::option::of(blocks());
    let on_unknown = select(vec![OnUnknown::Reject, OnUnknown::Skip, OnUnknown::RouteTo(TargetId(9))]);
    (rules, fallback, on_unknown).prop_map(|(rules, fallback, on_unknown)| {
        let count = u32::try_from(rules.len()).expect("few rules");
        let settle = |(mut block, jump): (Block, u32), index: u32| {
            if let Exit::Goto(target) = &mut block.exit {
                *target = RuleIndex((index + jump).min(count));
            }
            block
        };
        let rules = rules.into_iter().zip(0..).map(|((condition, then, otherwise), index)| Rule {
            label: format!("R{index}").into(),
            span: Span { start: index, end: index + 1 },
            condition,
            then: settle(then, index),
            otherwise: settle(otherwise, index),
        });
        let fallback = fallback.map(|(block, _)| Rule {
            label: "else".into(),
            span: Span::default(),
            condition: Condition::Always,
            then: match block.exit {
                Exit::Goto(_) => Block { exit: Exit::Next, ..block },
                _ => block,
            },
            otherwise: Block::default(),
        });
        Program::new(rules.collect(), fallback, on_unknown, vec![])
    })
}
