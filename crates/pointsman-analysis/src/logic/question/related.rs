//! Fields that are made of each other: what the values of one say of the other, where each by itself has values and no
//! request has both.

use pointsman_rules::{Entry, Field, Op, Over, OwnedValue, Place, Program, Targets, Test, compile};
use pointsman_view::Reads;

use super::giving_up::of_two_kinds;
use super::joined::Case;
use super::of_field::{fails_without_value, needs_value};
use super::places::{
    are_apart, holding_values, needs_holder, only_holds, stands_in, stands_in_one_behind, values_with,
};
use super::{REQUEST_STEPS, Trial, Try};
use crate::Effort;
use crate::logic::lemmas::Lemma;
use crate::logic::states::States;
use crate::logic::world::Matters;
use crate::space::{Solved, of_fixed, solve, solve_present};
use crate::wanted::{Asked, Sketch, Values, Wanted};
use crate::witness::{Agreed, Says, Unrealisable, is_of_handshake, realisable, with_subject};

/// Texts that a field is one of, each of which is looked at.
const PINNED_MAX: usize = 16;

/// A test that matters, and what it may come to.
pub(super) type Mattering<'p> = (&'p Test, States);

/// What is known of two fields.
pub(super) enum Related<'p> {
    /// What matters of them cannot be.
    Never(Lemma),
    /// Values that may do.
    Perhaps(Vec<(&'p Field, Values)>),
}

impl<'p> Trial<'_, 'p> {
    /// Looks at each two of the fields of which no request was found. Nothing where that leads no further.
    pub(super) fn relate(
        &mut self,
        sketch: &Sketch<'p>,
        matters: &Matters<'p>,
        why: &Unrealisable,
        effort: &mut Effort,
    ) -> Option<Try<'p>> {
        if why.fields.iter().all(is_of_handshake) {
            return self.agree(sketch, matters, effort);
        }
        if let Some(tried) = self.arrive(sketch, matters, why, effort) {
            return Some(tried);
        }
        if let [field] = why.fields.as_slice()
            && let Some(tried) = self.well_formed(sketch, matters, field, effort)
        {
            return Some(tried);
        }
        let never = of_two_kinds(matters, why).or_else(|| of_nowhere(matters, &why.fields));
        if let Some(lemma) = never.or_else(|| of_settled_size(matters)) {
            self.never(lemma);
            return Some(Try::Again);
        }
        let case = Case { sketch, matters, why };
        let tried = self.direct(&case, effort).or_else(|| self.exclude(&case, effort));
        let tried = tried.or_else(|| self.change(&case, effort)).or_else(|| self.tunnelled(&case, effort));
        let tried = tried.or_else(|| self.unnamed(&case, effort));
        if let Some(tried) = tried.or_else(|| self.join(&case, effort)).or_else(|| self.share(&case, effort))
        {
            return Some(tried);
        }
        for one in &why.fields {
            for other in why.fields.iter().filter(|other| *other != one) {
                let [tests, others] = [one, other].map(|field| tests_of(matters, field));
                for related in self.related(sketch, &tests, &others, effort) {
                    match related {
                        Related::Never(lemma) => {
                            self.never(lemma);
                            return Some(Try::Again);
                        }
                        Related::Perhaps(values) => {
                            if let Some(tried) = self.with_other_values(sketch, &[one, other], values, effort)
                            {
                                return Some(tried);
                            }
                        }
                    }
                }
            }
        }
        None
    }

    /// The sketch with other values in the place of two fields.
    pub(super) fn with_other_values(
        &mut self,
        sketch: &Sketch<'p>,
        of: &[&Field],
        values: Vec<(&'p Field, Values)>,
        effort: &mut Effort,
    ) -> Option<Try<'p>> {
        let kept = sketch.fields.iter().filter(|(field, _)| !of.contains(field)).cloned();
        let fields = kept.chain(values).collect();
        self.came_of(&Sketch { fields }, effort)
    }

    /// Looks through all that can be agreed on with a client, for all fields of the handshake: what was found for one of
    /// them by itself may be what the others keep from being.
    fn agree(&mut self, sketch: &Sketch<'p>, matters: &Matters<'p>, effort: &mut Effort) -> Option<Try<'p>> {
        let fields = sketch.fields.iter().map(|(field, _)| *field);
        let of: Vec<&Field> = fields.filter(|field| is_of_handshake(field)).collect();
        let tests_of = |field: &&Field| matters.each().filter(|(test, _)| test.field == **field).collect();
        let tests: Vec<Vec<Mattering<'p>>> = of.iter().map(tests_of).collect();
        let mut lemma = Lemma::new();
        let setting = self.analyst.setting;
        for agreed in setting.agreements() {
            match self.agreed(agreed, &tests, effort) {
                Some(Ok(values)) => {
                    return self.with_other_values(sketch, &of, values, effort);
                }
                Some(Err(failed)) => lemma.extend(failed),
                None => return None,
            }
        }
        self.never(lemma);
        Some(Try::Again)
    }

    /// Values of some fields where this is agreed on, or the tests of one of them that fail then.
    fn agreed(
        &mut self,
        agreed: Agreed,
        fields: &[Vec<Mattering<'p>>],
        effort: &mut Effort,
    ) -> Option<Result<Vec<(&'p Field, Values)>, Lemma>> {
        let mut found = Vec::new();
        for tests in fields {
            let wanted: Vec<_> =
                tests.iter().filter(|(_, states)| states.wanted().is_some()).copied().collect();
            let all: Vec<_> = asked(&wanted).collect();
            let (first, _) = wanted.first()?;
            let automata = &mut self.analyst.automata;
            effort.take(1);
            match match agreed.says(&first.field) {
                Says::These(values) => of_fixed(values, &all),
                Says::Some => solve_present(&first.field, &all, automata, effort),
                Says::Any => solve(&first.field, &all, automata, effort),
            } {
                Solved::Values(values) => found.push((&first.field, values)),
                Solved::Nothing { because } => {
                    return Some(Err(numbers(because, &wanted)));
                }
                Solved::Unknown => return None,
            }
        }
        Some(Ok(found))
    }

    fn related(
        &mut self,
        sketch: &Sketch<'p>,
        tests: &[Mattering<'p>],
        others: &[Mattering<'p>],
        effort: &mut Effort,
    ) -> Vec<Related<'p>> {
        let (Some((one, _)), Some((other, _))) = (tests.first(), others.first()) else { return Vec::new() };
        let is_host_line = |name: &str| name == "host";
        let found: Vec<Option<Related<'p>>> = match (&one.field, &other.field) {
            (Field::Url, Field::Path) => {
                let pinned = self.said_by_pinned(tests, others, effort);
                return pinned.into_iter().chain(self.other_targets(sketch, tests, others, effort)).collect();
            }
            (Field::Url, Field::Query | Field::QueryParam(_)) => {
                vec![self.said_by_pinned(tests, others, effort)]
            }
            (Field::Path, Field::Method | Field::Query | Field::QueryParam(_)) => {
                vec![self.said_by_pinned(tests, others, effort), self.said_by_asterisk(tests, others, effort)]
            }
            (Field::QueryParam(_), Field::Query) => vec![needs_line(tests, others)],
            (Field::Query, Field::QueryParam(_)) => vec![self.said_by_pinned(tests, others, effort)],
            (Field::Header(name), Field::Host) if is_host_line(name) => {
                vec![self.said_by_pinned(tests, others, effort)]
            }
            (Field::Header(name), made) if is_made_of_lines(made, name) => {
                vec![self.said_by_one_line(tests, others, effort)]
            }
            (made, Field::Header(name)) if is_made_of_lines(made, name) => {
                vec![needs_line(tests, others), type_with_parameter(tests, others)]
            }
            (Field::ContentLength, Field::Payload(payload)) if payload.place == Place::Size => {
                vec![self.same_number(tests, others, effort)]
            }
            (Field::Payload(_), Field::Payload(size)) if size.place == Place::Size => {
                vec![self.without_bytes(tests, others, effort)]
            }
            (Field::Payload(item), Field::Payload(before)) if item.place.stands_behind(&before.place) => {
                vec![needs_line(tests, others)]
            }
            (Field::Payload(inner), Field::Payload(outer)) if stands_in(&inner.place, &outer.place) => {
                let held = [needs_holder(tests, others), only_holds(tests, others)];
                held.into_iter().chain([holding_values(sketch, tests, others)]).collect()
            }
            (Field::Payload(inner), Field::Payload(first))
                if stands_in_one_behind(&inner.place, &first.place) =>
            {
                vec![needs_holder(tests, others)]
            }
            (Field::Payload(one), Field::Payload(all))
                if let Some(values) = values_with(&all.place, &one.place) =>
            {
                vec![self.too_few(tests, others, (values, &*all.spelling), effort)]
            }
            (Field::Payload(one), Field::Payload(other)) if are_apart(&one.place, &other.place) => {
                vec![never_both(tests, others)]
            }
            (Field::ContentType, Field::Payload(_)) => vec![of_another_type(tests, others)],
            (end, other) if is_end(end) && (is_end(other) || *other == Field::ClientIp) => {
                vec![needs_line(tests, others)]
            }
            _ => Vec::new(),
        };
        found.into_iter().flatten().collect()
    }

    /// Of a field whose value is one of a few, what others come to that are made of it alone.
    fn said_by_pinned(
        &mut self,
        tests: &[Mattering<'p>],
        others: &[Mattering<'p>],
        effort: &mut Effort,
    ) -> Option<Related<'p>> {
        let (pin, texts) = pinned(tests)?;
        let mut lemma: Lemma = vec![(pin.number(), States::TRUE)];
        for text in texts {
            let is_made_of_it = match pin.field {
                // What an absolute target means depends on more than itself.
                Field::Url => text.starts_with(b"/"),
                // Only OPTIONS asks for it.
                Field::Path => text == b"*",
                _ => true,
            };
            if !is_made_of_it {
                return None;
            }
            let fails = |_: &Test, states: States, comes_to| !states.covers(comes_to);
            lemma.push(self.first_of_text((&pin.field, text), others, fails, effort)?);
        }
        Some(Related::Never(lemma))
    }

    /// Of lines of which one is a text: some value of what is made of each line is then that of this one.
    fn said_by_one_line(
        &mut self,
        lines: &[Mattering<'p>],
        others: &[Mattering<'p>],
        effort: &mut Effort,
    ) -> Option<Related<'p>> {
        let (line, texts) = pinned(lines)?;
        let [text] = texts[..] else { return None };
        let holds = |test: &Test, states: States, comes_to: States| {
            test.over == Over::Any && !states.covers(States::TRUE) && comes_to == States::TRUE
        };
        let held = self.first_of_text((&line.field, text), others, holds, effort)?;
        Some(Related::Never(vec![(line.number(), States::TRUE), held]))
    }

    /// The first of some tests of which this is so, by what it comes to where a field is this text.
    pub(super) fn first_of_text(
        &self,
        (field, text): (&Field, &[u8]),
        tests: &[Mattering<'p>],
        is_so: impl Fn(&Test, States, States) -> bool,
        effort: &mut Effort,
    ) -> Option<(u32, States)> {
        if !effort.take(REQUEST_STEPS) {
            return None;
        }
        let known = vec![OwnedValue::Text(text.into())];
        let sketch = Sketch { fields: vec![(field, Values { known, rest: None })] };
        let analyst = &*self.analyst;
        let witness = realisable(&sketch, analyst.setting)?;
        let first = with_subject(analyst.program, &analyst.paths, &witness, analyst.setting, |subject| {
            let mut such =
                tests.iter().filter(|(test, states)| is_so(test, *states, States::of(test.eval(subject))));
            such.next().map(|(test, states)| (test.number(), *states))
        });
        first.flatten()
    }

    /// Of a place that has so many values at least where there is one at another: that these are too many.
    fn too_few(
        &mut self,
        one: &[Mattering<'p>],
        all: &[Mattering<'p>],
        (values, spelling): (u32, &str),
        effort: &mut Effort,
    ) -> Option<Related<'p>> {
        let (test, states) = one.iter().find(|(test, states)| needs_value(test, *states))?;
        let (first, _) = all.first()?;
        let program = made_up(&[&format!("count({spelling}) >= {values}")])?;
        let mut tests: Vec<_> = asked(all).collect();
        program.rules.iter().for_each(|rule| {
            rule.condition.each_test(&mut |test| tests.push(Asked { test, wanted: Wanted::True }));
        });
        match solve(&first.field, &tests, &mut self.analyst.automata, effort) {
            Solved::Nothing { because } => {
                Some(Related::Never([vec![(test.number(), *states)], numbers(because, all)].concat()))
            }
            _ => None,
        }
    }

    /// Of a body that is known to have no bytes all fields are known to be absent.
    fn without_bytes(
        &mut self,
        tests: &[Mattering<'p>],
        sizes: &[Mattering<'p>],
        effort: &mut Effort,
    ) -> Option<Related<'p>> {
        let (test, states) = tests.iter().find(|(test, states)| fails_without_value(test, *states))?;
        // Where one of them comes to true or false the size is settled.
        let settled: Vec<_> =
            sizes.iter().filter(|(_, states)| !states.covers(States::UNKNOWN)).copied().collect();
        let (first, _) = settled.first()?;
        let program = made_up(&["body.size > 0"])?;
        let mut all: Vec<_> = asked(&settled).collect();
        program.rules.iter().for_each(|rule| {
            rule.condition.each_test(&mut |test| all.push(Asked { test, wanted: Wanted::True }));
        });
        match solve(&first.field, &all, &mut self.analyst.automata, effort) {
            Solved::Nothing { because } => {
                Some(Related::Never([vec![(test.number(), *states)], numbers(because, &settled)].concat()))
            }
            _ => None,
        }
    }

    /// What is announced of a body is its size; where that is 0, there is none.
    fn same_number(
        &mut self,
        tests: &[Mattering<'p>],
        others: &[Mattering<'p>],
        effort: &mut Effort,
    ) -> Option<Related<'p>> {
        let announced = *tests.iter().find(|(test, states)| needs_value(test, *states))?;
        let both: Vec<_> = tests.iter().chain(others).copied().collect();
        let mut lemma = vec![announced];
        // With a byte, and with none.
        for (condition, sizes) in [("content_length > 0", &both[..]), ("content_length == 0", tests)] {
            let program = made_up(&[condition])?;
            let mut all: Vec<_> = asked(sizes).collect();
            program.rules.iter().for_each(|rule| {
                rule.condition.each_test(&mut |test| all.push(Asked { test, wanted: Wanted::True }));
            });
            let is_some = sizes.len() > tests.len();
            let absent = others.iter().find(|(test, states)| fails_without_value(test, *states));
            match (solve(&Field::ContentLength, &all, &mut self.analyst.automata, effort), absent) {
                (Solved::Values(values), _) if is_some => {
                    let fields =
                        [tests.first()?, others.first()?].map(|(test, _)| (&test.field, values.clone()));
                    return Some(Related::Perhaps(fields.into()));
                }
                (Solved::Nothing { because }, _) => {
                    lemma.extend(because.into_iter().filter_map(|place| sizes.get(place).copied()));
                }
                (Solved::Values(_), Some(absent)) => lemma.push(*absent),
                (Solved::Values(values), None) => {
                    let of = [(tests.first()?, values), (others.first()?, Values::default())];
                    let fields = of.map(|((test, _), values)| (&test.field, values));
                    return Some(Related::Perhaps(fields.into()));
                }
                (Solved::Unknown, _) => return None,
            }
        }
        let lemma = lemma.into_iter().map(|(test, states)| (test.number(), states)).collect();
        Some(Related::Never(lemma))
    }
}

pub(super) fn asked<'a, 'p>(tests: &'a [Mattering<'p>]) -> impl Iterator<Item = Asked<'p>> + 'a {
    tests.iter().filter_map(|(test, states)| Some(Asked { test, wanted: states.wanted()? }))
}

/// What matters of a field.
pub(super) fn tests_of<'p>(matters: &Matters<'p>, field: &Field) -> Vec<Mattering<'p>> {
    let own = matters.each().filter(|(test, states)| test.field == *field && states.wanted().is_some());
    own.collect()
}

/// A test that says of a field that it is one of a few texts, and these.
pub(super) fn pinned<'p>(tests: &[Mattering<'p>]) -> Option<(&'p Test, Vec<&'p [u8]>)> {
    tests.iter().find_map(|(test, states)| {
        let is_of_value = *states == States::TRUE && test.over != Over::Count && !test.fold_case;
        let texts: Vec<&[u8]> = match &test.op {
            Op::TextEquals(text) => vec![text],
            Op::In(entries) => entries
                .iter()
                .map(|entry| if let Entry::Text(text) = entry { Some(&**text) } else { None })
                .collect::<Option<_>>()?,
            _ => return None,
        };
        (is_of_value && !texts.is_empty() && texts.len() <= PINNED_MAX).then_some((*test, texts))
    })
}

/// A test that needs a value where no body has one.
fn of_nowhere(matters: &Matters<'_>, fields: &[Field]) -> Option<Lemma> {
    let is_nowhere = |field: &Field| matches!(field, Field::Payload(payload) if payload.place.is_nowhere());
    let mut tests =
        matters.each().filter(|(test, _)| fields.contains(&test.field) && is_nowhere(&test.field));
    let (test, states) = tests.find(|(test, states)| needs_value(test, *states))?;
    Some(vec![(test.number(), states)])
}

/// A size that is not known, where the head says it.
fn of_settled_size(matters: &Matters<'_>) -> Option<Lemma> {
    let is_size = |field: &Field| matches!(field, Field::Payload(of) if of.place == Place::Size);
    let (size, unknown) =
        matters.each().find(|(test, states)| is_size(&test.field) && *states == States::UNKNOWN)?;
    let is_announced =
        |(test, states): &(&Test, States)| test.field == Field::ContentLength && needs_value(test, *states);
    let (length, states) = matters.each().find(is_announced)?;
    Some(vec![(size.number(), unknown), (length.number(), states)])
}

/// Whether all connections have it but those to Unix sockets, which have none of its kind; nor has a client no address
/// whose peer has one.
fn is_end(field: &Field) -> bool {
    matches!(field, Field::SrcIp | Field::SrcPort | Field::DstIp | Field::DstPort)
}

/// Whether values of a field are made of the lines of a name, each of one line.
fn is_made_of_lines(made: &Field, name: &str) -> bool {
    match made {
        Field::ContentType => name == "content-type",
        Field::ContentLength => name == "content-length",
        Field::Cookie(_) => name == "cookie",
        _ => false,
    }
}

/// What is made of something is not there without it.
fn needs_line<'p>(made: &[Mattering<'p>], of: &[Mattering<'p>]) -> Option<Related<'p>> {
    let made = made.iter().find(|(test, states)| needs_value(test, *states))?;
    let without = of.iter().find(|(test, states)| {
        test.op == Op::Exists && test.over == Over::Any && !states.covers(States::TRUE)
    })?;
    let lemma = [made, without].map(|(test, states)| (test.number(), *states));
    Some(Related::Never(lemma.into()))
}

/// No request has a value in both.
fn never_both<'p>(tests: &[Mattering<'p>], others: &[Mattering<'p>]) -> Option<Related<'p>> {
    let needed = [tests, others].map(|tests| tests.iter().find(|(test, states)| needs_value(test, *states)));
    let [Some(one), Some(other)] = needed else { return None };
    let lemma = [one, other].map(|(test, states)| (test.number(), *states));
    Some(Related::Never(lemma.into()))
}

/// A media type with a parameter, which is no part of its name.
fn type_with_parameter<'p>(made: &[Mattering<'p>], lines: &[Mattering<'p>]) -> Option<Related<'p>> {
    let (pin, texts) = pinned(made)?;
    let field = &lines.first()?.0.field;
    let line = [texts.first()?, &b"; charset=utf-8"[..]].concat();
    let values = Values { known: vec![OwnedValue::Text(line.into())], rest: None };
    (pin.field == Field::ContentType).then(|| Related::Perhaps(vec![(field, values)]))
}

/// A value in a body is one of the kind that its media type says, where that is one that is read.
fn of_another_type<'p>(types: &[Mattering<'p>], of_body: &[Mattering<'p>]) -> Option<Related<'p>> {
    let (pin, texts) = pinned(types)?;
    let (test, states) = of_body.iter().find(|(test, states)| needs_value(test, *states))?;
    let Field::Payload(payload) = &test.field else { return None };
    let is_of_another = |text: &[u8]| Reads::of(text).is_some_and(|reads| !reads.has(&payload.place));
    let lemma = vec![(pin.number(), States::TRUE), (test.number(), *states)];
    (pin.over == Over::Any && texts.into_iter().all(is_of_another)).then_some(Related::Never(lemma))
}

/// Conditions as rules.
pub(in crate::logic) fn made_up(conditions: &[&str]) -> Option<Program> {
    let rules: String =
        conditions.iter().map(|condition| format!("if ({condition}) {{ discard(); }}\n")).collect();
    compile(&rules, &Targets::Any).ok().map(|compiled| compiled.program)
}

/// What matters at these places, as a lemma has it.
pub(super) fn numbers(places: Vec<usize>, of: &[Mattering<'_>]) -> Lemma {
    let chosen = places.into_iter().filter_map(|place| of.get(place));
    chosen.map(|(test, states)| (test.number(), *states)).collect()
}
