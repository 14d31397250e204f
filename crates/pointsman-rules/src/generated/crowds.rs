//! Hundreds of rules over few values, and subjects that they speak of.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;

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
        1 => crowd_regexes(),
    ];
    let overs = select(vec![Over::Any, Over::Any, Over::Any, Over::Any, Over::All, Over::First, Over::Once]);
    let field = select(fields_of_crowds());
    let fold_case = proptest::bool::weighted(0.1);
    (field, overs, fold_case, op, 0u32..1000).prop_map(|(field, over, fold_case, op, start)| Test {
        number: 0,
        span: Span { start, end: start + 1 },
        field: if takes_addresses(&op) { Field::SrcIp } else { field },
        over,
        fold_case,
        op,
    })
}

/// Regexes and patterns that have their ends in common, with what tells them apart inside.
fn crowd_regexes() -> impl Strategy<Value = Op> {
    (0u32..12, 0u32..12, 0usize..12).prop_map(|(a, b, kind)| {
        let regexes = [
            format!("^/a/[0-9]+/{a}$"),
            format!("^/a/{a}/.*[0-9]$"),
            format!("^/(a|b)/{a}/[0-9]?{b}"),
            format!("(?i)^/A/[0-9]+/{a}|^/A/{b}/"),
            format!("(?i)/A/({a}|{b}/long)"),
            format!("^(/[a-z]+)+/{a}/"),
            format!("^/a(/{a}|/{b}/[0-9]+)$"),
            format!("a/[{}-9]+/{b}", a % 10),
            format!("^/[a-c]/({a}/)?{b}$"),
            format!("(?i)^/A{{1,2}}/{a}/{b}(long|$)"),
        ];
        match (regexes.get(kind), kind) {
            (Some(regex), _) => matches(regex),
            (None, 10) => Op::Like(boxed(format!("/a/*/{a}"))),
            (None, _) => Op::Like(boxed(format!("/?/{a}/*{b}*"))),
        }
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
    finished(prop_oneof![begun, few, names()])
}

/// Rules that mostly ask a field of their own, of dozens.
fn names() -> impl Strategy<Value = Vec<MadeUpRule>> {
    let own =
        (crowd_tests(), select(own_fields()), 0..4_usize).prop_map(|(test, field, kind)| match test.op {
            op if takes_addresses(&op) => Condition::Test(Test { op, ..test }),
            // Few values, so that rules hold.
            op => {
                let texts = ["/1", "1", "/a", "0"].map(|text| boxed(text.to_owned()));
                let text = texts[kind].clone();
                let op = match kind {
                    0 => op,
                    1 => Op::TextDiffers(text),
                    2 => Op::In(vec![Entry::Text(text), Entry::Text(boxed("a".to_owned()))]),
                    _ => Op::TextEquals(text),
                };
                Condition::Test(Test { field, op, ..test })
            }
        });
    let further = proptest::option::weighted(0.3, crowd_conditions());
    let condition = (own, further, 0..12_u32).prop_map(|(own, further, kind)| match (further, kind) {
        (Some(further), 0) => Condition::Or(vec![own, further]),
        (Some(further), _) => Condition::And(vec![own, further]),
        (None, 0) => Condition::Not(Box::new(own)),
        (None, _) => own,
    });
    let quiet = || (0..1).prop_map(|_| (Block::default(), 1));
    vec((condition, crowd_blocks(), quiet()), 17..200)
}

/// Fields that few rules ask, of each kind that is found by its name.
fn own_fields() -> Vec<Field> {
    let named = (0..30).flat_map(|number| {
        let name = format!("f{number}");
        [
            Field::Header(name.as_str().into()),
            Field::QueryParam(boxed(name.clone())),
            Field::Cookie(name.into()),
        ]
    });
    named.chain(payload_fields().into_iter().skip(SHARED_PAYLOADS)).collect()
}

/// Mostly such as let the walk go on, so that it sees many rules.
fn crowd_blocks() -> impl Strategy<Value = (Block, u32)> {
    let tag = "[a-z]{4}"
        .prop_map(|tag| (Block { effects: [Effect::Tag(tag.into())].into(), ..Block::default() }, 1));
    let goto =
        (1u32..40).prop_map(|jump| (Block { exit: Exit::Goto(RuleIndex(0)), ..Block::default() }, jump));
    prop_oneof![8 => tag, 1 => goto, 2 => blocks()]
}

/// Subjects that the rules of a crowd speak of.
pub(crate) fn crowd_subjects() -> impl Strategy<Value = MadeUpSubject> {
    let text = |text: String| OwnedValue::Text(text.into_bytes().into());
    let value = || {
        prop_oneof![
            3 => (0u32..40).prop_map(move |number| text(format!("/{number}"))),
            2 => (0u32..12, 0u32..12).prop_map(move |(a, b)| text(format!("/a/{a}/{b}"))),
            3 => (0u32..60, 0u32..2).prop_map(move |(number, half)| text(format!("{number}.{}", half * 5))),
            1 => (0u64..60).prop_map(OwnedValue::Integer),
            2 => values(),
        ]
    };
    let values = || prop_oneof![6 => vec(value(), 1..2), 2 => vec(value(), 0..4)];
    let own = vec((select(own_fields()), values()), 0..12);
    let fields = vec(values(), fields_of_crowds().len());
    let all_fields = fields_of_crowds().into_iter().chain(own_fields()).collect();
    let unsettled = vec(unsettled(all_fields), 0..3);
    let unsettled = prop_oneof![8 => (0..1).prop_map(|_| vec![]), 2 => unsettled];
    let ip = proptest::option::of(addresses());
    (fields, own, ip, unsettled).prop_map(|(fields, own, ip, unsettled)| {
        let ip = ip.into_iter().map(OwnedValue::Ip).collect();
        let fields = fields_of_crowds().into_iter().zip(fields).chain([(Field::SrcIp, ip)]);
        let fields = fields.chain(own).collect();
        MadeUpSubject { fields, unsettled }
    })
}

fn fields_of_crowds() -> Vec<Field> {
    let head = [Field::Host, Field::Header("x".into()), Field::DstPort];
    head.into_iter().chain(payload_fields().into_iter().nth(SHARED_PAYLOADS - 1)).collect()
}
