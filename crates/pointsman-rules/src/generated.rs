//! Subjects and programs made up for property tests.

mod crowds;

use std::net::{IpAddr, Ipv4Addr};
use std::ops::ControlFlow;
use std::sync::Arc;

use ipnet::IpNet;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use regex::bytes::RegexBuilder;

use crate::list::INDEXED_MAX;
use crate::subject::OwnedValue;
use crate::{
    Block, Cause, Condition, Decimal, Effect, Entry, Exit, Field, JsonStep, List, Members, NameKind,
    NetworkList, OnUnknown, Op, Order, Over, Payload, PayloadId, Place, Program, Rule, RuleIndex, Share,
    Span, Split, Stickiness, Subject, TargetId, Terminal, Test, TextList, Value,
};

pub(crate) use self::crowds::{crowd_subjects, crowds};

/// A subject whose fields are lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct MadeUpSubject {
    pub(crate) fields: Vec<(Field, Vec<OwnedValue>)>,
    pub(crate) unsettled: Vec<(Field, Cause)>,
}

impl MadeUpSubject {
    pub(crate) fn of(field: Field, value: OwnedValue) -> MadeUpSubject {
        MadeUpSubject { fields: vec![(field, vec![value])], unsettled: vec![] }
    }

    /// One more value, behind the others of its field.
    pub(crate) fn add(&mut self, field: &Field, value: Value<'_>) {
        self.fields.push((field.clone(), vec![value.into()]));
    }

    /// Another value in the place of one of a field's.
    pub(crate) fn set(&mut self, field: &Field, number: usize, value: Value<'_>) {
        let of_field = self.fields.iter_mut().filter(|(name, _)| name == field);
        if let Some(place) = of_field.flat_map(|(_, values)| values).nth(number) {
            *place = value.into();
        }
    }

    /// The fields that have values, or of which more may come.
    pub(crate) fn present(&self) -> impl Iterator<Item = &Field> {
        let with_values = self.fields.iter().filter(|(_, values)| !values.is_empty()).map(|(field, _)| field);
        with_values.chain(self.unsettled.iter().map(|(field, _)| field))
    }

    pub(crate) fn values(&self, field: &Field) -> Vec<Value<'_>> {
        let values = self.fields.iter().filter(|(name, _)| name == field).flat_map(|(_, values)| values);
        values.map(OwnedValue::as_value).collect()
    }
}

impl Subject for MadeUpSubject {
    fn only(&self, field: &Field) -> Option<Value<'_>> {
        match self.values(field)[..] {
            // Others show theirs the long way.
            [value] if matches!(field, Field::Path | Field::SrcPort) && self.unsettled(field).is_none() => {
                Some(value)
            }
            _ => None,
        }
    }

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

/// The same, which knows the names of its fields.
pub(crate) struct Telling<'s>(pub(crate) &'s MadeUpSubject);

impl Subject for Telling<'_> {
    fn each(&self, field: &Field, see: &mut dyn FnMut(Value<'_>) -> ControlFlow<()>) {
        self.0.each(field, see);
    }

    fn unsettled(&self, field: &Field) -> Option<Cause> {
        self.0.unsettled(field)
    }

    fn each_name(&self, kind: NameKind, see: &mut dyn FnMut(&[u8])) -> bool {
        for field in self.0.present() {
            match (kind, field) {
                (NameKind::Header, Field::Header(name)) => see(name.to_ascii_uppercase().as_bytes()),
                (NameKind::QueryParam, Field::QueryParam(name)) => see(name),
                (NameKind::Cookie, Field::Cookie(name)) => see(name.as_bytes()),
                _ => {}
            }
        }
        true
    }

    fn is_without_body(&self) -> bool {
        !self.0.present().any(|field| matches!(field, Field::Payload(_)))
    }
}

/// Few fields, few values: what matters is that conditions often meet.
fn fields() -> Vec<Field> {
    let head = [Field::SrcIp, Field::DstPort, Field::Host, Field::Header("x".into()), Field::TlsResumed];
    head.into_iter().chain(payload_fields().into_iter().take(SHARED_PAYLOADS)).collect()
}

/// The fields of bodies that many rules ask.
pub(crate) const SHARED_PAYLOADS: usize = 2;

/// What the generated rules ask of bodies: a few fields that many ask, and many that few ask.
pub(crate) fn payload_fields() -> Vec<Field> {
    let payload = |id: u32, steps: Box<[JsonStep]>| {
        let payload =
            Payload { id: PayloadId(id), spelling: format!("json {id}").into(), place: Place::Json(steps) };
        Field::Payload(payload.into())
    };
    let name = |name: &str| JsonStep::Member(name.into());
    let shared = [payload(0, [name("a")].into()), payload(1, [name("b"), JsonStep::Each].into())];
    let own = (2..30).map(|id| payload(id, [name(&format!("p{id}"))].into()));
    shared.into_iter().chain(own).collect()
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
            values.retain(|value| matches!(value, OwnedValue::Ip(_)));
        }
        (field, values)
    });
    let unsettled = vec(unsettled(fields()), 0..3);
    (vec(one_field, 0..8), unsettled).prop_map(|(fields, unsettled)| MadeUpSubject { fields, unsettled })
}

fn values() -> impl Strategy<Value = OwnedValue> {
    prop_oneof![
        4 => texts().prop_map(OwnedValue::Text),
        2 => (0u64..4).prop_map(OwnedValue::Integer),
        2 => addresses().prop_map(OwnedValue::Ip),
        1 => any::<bool>().prop_map(OwnedValue::Boolean),
        1 => select(vec![Cause::Limit, Cause::Encoding]).prop_map(OwnedValue::Unknown),
        1 => (0..1).prop_map(|_| OwnedValue::Nothing),
        1 => vec(any::<u8>(), 0..6).prop_map(|text| OwnedValue::Text(text.into())),
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
    select(REGEXES).prop_map(matches)
}

fn matches(regex: &str) -> Op {
    let built = RegexBuilder::new(regex).unicode(false).dot_matches_new_line(true).build();
    Op::Matches(built.expect("a regex").into())
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
        lists().prop_map(Entry::List),
    ]
}

/// Named lists, short ones and such as are looked up by themselves.
fn lists() -> impl Strategy<Value = Arc<List>> {
    let many = INDEXED_MAX as u32 + 6;
    let addresses =
        (vec((addresses(), addresses()), 0..4), any::<bool>()).prop_map(move |(ranges, is_long)| {
            let further =
                (0..many).filter(|_| is_long).map(|place| IpAddr::from(Ipv4Addr::from_bits(place * 2)));
            let further = further.map(|address| (address, address));
            Members::Networks(NetworkList::new(ranges.into_iter().chain(further)))
        });
    let texts = (vec(texts(), 0..4), any::<bool>()).prop_map(move |(texts, is_long)| {
        let further: Vec<String> = (0..many).filter(|_| is_long).map(|place| place.to_string()).collect();
        let further = further.iter().map(String::as_bytes);
        Members::Texts(TextList::new(texts.iter().map(|text| &**text).chain(further)))
    });
    let members = prop_oneof![addresses, texts];
    members.prop_map(|members| Arc::new(List { name: "list".into(), members }))
}

fn tests() -> impl Strategy<Value = Test> {
    let overs = select(vec![Over::Any, Over::Any, Over::All, Over::First, Over::Once, Over::Count]);
    (select(fields()), overs, any::<bool>(), ops(), orders(), decimals(), 0u32..1000).prop_map(
        |(field, over, fold_case, op, order, number, start)| Test {
            number: 0,
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
            let is_of_addresses = |entry: &Entry| match entry {
                Entry::Network(_) | Entry::IpRange { .. } => true,
                Entry::List(list) => matches!(list.members, Members::Networks(_)),
                _ => false,
            };
            entries.iter().any(is_of_addresses)
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
        number: 0,
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
    let terminal = (0u32..3, 0..5).prop_map(|(number, kind)| match kind {
        0 | 1 => Terminal::RouteTo { target: TargetId(number), sticky: Stickiness::None },
        2 => {
            let share = |target| Share { target: TargetId(target), parts: Share::WHOLE / 2 };
            let shares = [share(number), share(number + 1)].into();
            Terminal::Split(Box::new(Split { shares, sticky: Stickiness::Ip }))
        }
        _ => Terminal::Reject { status: 400, reason: None },
    });
    let exit = prop_oneof![
        3 => (0..1).prop_map(|_| Exit::Next),
        1 => (0..1).prop_map(|_| Exit::Goto(RuleIndex(0))),
        2 => terminal.prop_map(Exit::Terminal),
    ];
    let effect = prop_oneof![
        "[a-z]{4}".prop_map(|tag| Effect::Tag(tag.into())),
        "[a-z]{4}".prop_map(|class| Effect::Bandwidth(class.into())),
        "[a-z]{4}".prop_map(|pool| Effect::Mirror(pool.into())),
    ];
    let effects = vec(effect, 0..3);
    (effects, exit, 1u32..4)
        .prop_map(|(effects, exit, jump)| (Block { effects: effects.into(), exit, ..Block::default() }, jump))
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
