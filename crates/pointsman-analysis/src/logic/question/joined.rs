//! A text and the fields that are cut out of it, of which no request was found: values of the text are looked for with which
//! the tests of all of them come to what matters. Likewise a media type, and what stands in the body.

use pointsman_rules::{Field, OwnedValue, Place};
use pointsman_view::BodyKind;

use super::kinds::Kind;
use super::of_field::needs_value;
use super::related::{Mattering, asked, made_up, numbers, tests_of};
use super::spelled::{Begin, Cover, Line, Spelled};
use super::{Trial, Try};
use crate::Effort;
use crate::logic::lemmas::Lemma;
use crate::logic::states::States;
use crate::logic::world::Matters;
use crate::space::{Solved, solve, solve_present};
use crate::wanted::{Asked, Sketch, Values, Wanted};
use crate::witness::{Unrealisable, cookie_line};

/// Texts are found for one sketch, of which another one is made that needs a further text, so many times.
pub(super) const DEPTH_MAX: u8 = 4;
/// Compiling a regex and making an automaton of it takes about so many steps.
const REGEX_STEPS: u64 = 500;

/// Of a request for which no other text was found.
pub(super) struct Case<'a, 'p> {
    pub(super) sketch: &'a Sketch<'p>,
    pub(super) matters: &'a Matters<'p>,
    pub(super) why: &'a Unrealisable,
}

/// A text that is looked for.
pub(super) struct Sought<'p> {
    field: &'p Field,
    /// As rules name it.
    name: &'static str,
    own: Vec<Mattering<'p>>,
    /// What is asked of it because of other fields.
    further: Vec<Further<'p>>,
    /// Whether there is a text in every request that is looked for.
    is_there: bool,
}

/// Asked of a text because of a field that has to do with it.
struct Further<'p> {
    said: Said,
    /// The test that says so. Without one it only says where is looked.
    from: Option<Mattering<'p>>,
}

enum Said {
    Covered {
        by: Cover,
        holds: bool,
    },
    /// A condition as rules write it.
    Holds(String),
}

/// Which texts are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Some with which all comes to what is asked.
    Within,
    /// All with which it may.
    Around,
}

impl<'p> Trial<'_, 'p> {
    /// Looks at each text that has to do with the fields of which no request was found. Nothing where that leads no further.
    pub(super) fn join(&mut self, case: &Case<'_, 'p>, effort: &mut Effort) -> Option<Try<'p>> {
        if self.depth == DEPTH_MAX {
            return None;
        }
        self.depth += 1;
        let mut found = None;
        for line in Line::ALL {
            found = found.or_else(|| self.join_line(line, case, effort));
        }
        found = found
            .or_else(|| self.join_type(case, effort))
            .or_else(|| self.join_cookies(case, effort))
            .or_else(|| self.decode(case, effort))
            .or_else(|| self.join_size(case, effort))
            .or_else(|| self.spoil_type(case, effort))
            .or_else(|| self.chain(case, effort));
        self.depth -= 1;
        found
    }

    /// With a text and what is cut out of it.
    fn join_line(&mut self, line: Line, case: &Case<'_, 'p>, effort: &mut Effort) -> Option<Try<'p>> {
        let (field, _) = *case.sketch.fields.iter().find(|(field, _)| line.is(field))?;
        let kind = Kind::of(case.sketch).filter(|_| line == Line::ContentType);
        let touches = |of: &Field| {
            line.is(of) || line.may_hold(of) || kind.is_some_and(|kind| Kind::of_field(of) == Some(kind))
        };
        if case.why.fields.iter().filter(|of| touches(of)).count() < 2 {
            return None;
        }
        for begin in line.begins() {
            let holds = |of: &Field| line.has(of) || begin.is_some_and(|begin| line.holds(begin, of));
            let made: Vec<_> = case.sketch.fields.iter().filter(|(of, _)| holds(of)).collect();
            let Some(mut sought) = self.sought((line, *begin), field, &made, case.matters) else { continue };
            if let Some(begin) = begin {
                sought.further.extend(line.usual(*begin).into_iter().map(Further::covered));
            }
            sought.add_kind(kind, case.matters);
            let left_out: Vec<_> = made.iter().map(|(of, _)| *of).chain([field]).collect();
            if let Some(tried) = self.with_text(&sought, &left_out, case, effort) {
                return Some(tried);
            }
        }
        if let Some(tried) = self.rule_out_plain(line, field, case, effort) {
            return Some(tried);
        }
        let made: Vec<_> = case.sketch.fields.iter().filter(|(of, _)| line.has(of)).collect();
        let mut sought = self.sought((line, None), field, &made, case.matters)?;
        if self.reads_by_type() {
            sought.add_kind(kind, case.matters);
        }
        self.rule_out(&sought, Lemma::new(), effort)
    }

    /// Proves that there is no such target, where what is asked of it leaves only those in which the path stands as it is.
    fn rule_out_plain(
        &mut self,
        line: Line,
        field: &'p Field,
        case: &Case<'_, 'p>,
        effort: &mut Effort,
    ) -> Option<Try<'p>> {
        let holds = |of: &Field| line.has(of) || *of == Field::Path;
        let made: Vec<_> = case.sketch.fields.iter().filter(|(of, _)| holds(of)).collect();
        if line != Line::Url || !made.iter().any(|(of, _)| **of == Field::Path) {
            return None;
        }
        let plain = self.plain(&tests_of(case.matters, field), true, effort)?;
        let sought = self.sought((line, Some(Begin::Path)), field, &made, case.matters)?;
        self.rule_out(&sought, plain, effort)
    }

    /// With the media type alone, and what stands in the body.
    fn join_type(&mut self, case: &Case<'_, 'p>, effort: &mut Effort) -> Option<Try<'p>> {
        let kind = Kind::of(case.sketch)?;
        let (field, _) = *case.sketch.fields.iter().find(|(field, _)| **field == Field::ContentType)?;
        let touches = |of: &Field| of == field || Kind::of_field(of) == Some(kind);
        let has_line = case.sketch.fields.iter().any(|(field, _)| Line::ContentType.is(field));
        if case.why.fields.iter().filter(|of| touches(of)).count() < 2 {
            return None;
        }
        let mut sought = Sought::new(field, "content_type", case.matters);
        sought.add_kind(Some(kind), case.matters);
        if !has_line && let Some(tried) = self.with_text(&sought, &[field], case, effort) {
            return Some(tried);
        }
        if self.reads_by_type() { self.rule_out(&sought, Lemma::new(), effort) } else { None }
    }

    /// With the cookies in a line of their own.
    fn join_cookies(&mut self, case: &Case<'_, 'p>, effort: &mut Effort) -> Option<Try<'p>> {
        let (field, lines) = case.sketch.fields.iter().find(|(field, _)| Line::Cookie.is(field))?;
        let cookies = case.sketch.fields.iter().filter(|(field, _)| Line::Cookie.has(field));
        let cookies: Vec<_> = cookies.cloned().collect();
        if !case.why.fields.iter().any(|of| Line::Cookie.has(of)) {
            return None;
        }
        let line = cookie_line(cookies.iter().map(|(of, values)| (*of, values)))?;
        let known = lines.known.iter().cloned().chain([OwnedValue::Text(line.into())]).collect();
        let left_out: Vec<_> = cookies.iter().map(|(of, _)| *of).chain([*field]).collect();
        let values = vec![(*field, Values { known, rest: None })];
        self.with_other_values(case.sketch, &left_out, values, effort)
    }

    /// With a size in which there is room for what stands in the body.
    fn join_size(&mut self, case: &Case<'_, 'p>, effort: &mut Effort) -> Option<Try<'p>> {
        Kind::of(case.sketch)?;
        let is_size = |field: &Field| matches!(field, Field::Payload(of) if of.place == Place::Size);
        let (field, old) = case.sketch.fields.iter().find(|(field, _)| is_size(field))?;
        if !case.why.fields.iter().any(is_size) {
            return None;
        }
        ["body.size exists", "body.size > 30", "body.size > 300"].into_iter().find_map(|room| {
            let mut sought = Sought::new(field, "body.size", case.matters);
            sought.narrow(room.to_owned());
            let Solved::Values(values) = self.solve_within(&sought, effort)? else { return None };
            if values == *old {
                return None;
            }
            let changed = vec![(*field, values.clone())];
            self.with_other_values(case.sketch, &[field], changed, effort).or_else(|| {
                let others = case.sketch.fields.iter().filter(|(other, _)| other != field).cloned();
                let sketch = Sketch { fields: others.chain([(*field, values)]).collect() };
                self.spoil_type(&Case { sketch: &sketch, ..*case }, effort)
            })
        })
    }

    /// A head that says twice what the body is: then nobody knows what stands there.
    fn spoil_type(&mut self, case: &Case<'_, 'p>, effort: &mut Effort) -> Option<Try<'p>> {
        static TYPE: Field = Field::ContentType;
        static LENGTH: Field = Field::ContentLength;
        let is_of_content = |field: &&Field| Kind::of_field(field).is_some();
        let of_content: Vec<_> =
            case.sketch.fields.iter().map(|(field, _)| *field).filter(is_of_content).collect();
        let may_be_unknown = |field: &&Field| {
            tests_of(case.matters, field).iter().all(|(_, states)| states.covers(States::UNKNOWN))
        };
        let has = |is_it: fn(&Field) -> bool| case.sketch.fields.iter().any(|(field, _)| is_it(field));
        if self.is_of_values
            || of_content.is_empty()
            || !of_content.iter().all(may_be_unknown)
            || has(|field| Line::ContentType.is(field))
        {
            return None;
        }
        let types = case.sketch.fields.iter().find(|(field, _)| **field == TYPE);
        let field = types.map_or(&TYPE, |(field, _)| *field);
        let mut sought = Sought::new(field, "content_type", case.matters);
        sought.narrow("count(content_type) > 1".to_owned());
        let Some(Solved::Values(values)) = self.solve_within(&sought, effort) else {
            return None;
        };
        let kept = case.sketch.fields.iter().filter(|(of, _)| !of_content.contains(of) && *of != field);
        let mut fields: Vec<_> = kept.cloned().chain([(field, values)]).collect();
        let says_length = |field: &Field| match field {
            Field::ContentLength => true,
            Field::Header(name) => matches!(&**name, "content-length" | "transfer-encoding"),
            field => matches!(field, Field::Payload(_)),
        };
        if !fields.iter().any(|(field, _)| says_length(field)) {
            fields.push((&LENGTH, Values { known: vec![OwnedValue::Integer(1)], rest: None }));
        }
        self.came_of(&Sketch { fields }, effort)
    }

    /// A text and what is asked of it because of what is cut out of it. Nothing where that cannot be said.
    fn sought(
        &self,
        (line, begin): (Line, Option<Begin>),
        field: &'p Field,
        made: &[&(&'p Field, Values)],
        matters: &Matters<'p>,
    ) -> Option<Sought<'p>> {
        let mut sought = Sought::new(field, line.name(), matters);
        sought.is_there = line == Line::Host;
        for (made, values) in made.iter().copied() {
            sought.add((line, begin), made, values, &tests_of(matters, made))?;
        }
        Some(sought)
    }

    /// The request with a text that is found, and without the fields that follow from it.
    fn with_text(
        &mut self,
        sought: &Sought<'p>,
        left_out: &[&Field],
        case: &Case<'_, 'p>,
        effort: &mut Effort,
    ) -> Option<Try<'p>> {
        let Solved::Values(values) = self.solve_within(sought, effort)? else { return None };
        let kept = case.sketch.fields.iter().filter(|(field, _)| !left_out.contains(field)).cloned();
        let changed = Sketch { fields: kept.chain([(sought.field, values)]).collect() };
        match self.realised(&changed, effort) {
            Ok(tried) => tried,
            Err(why) if why.fields == case.why.fields => None,
            Err(why) => match self.relate(&changed, case.matters, &why, effort) {
                Some(Try::Nowhere(_)) => None,
                tried => tried,
            },
        }
    }

    /// Proves that there is no such text, where what is given holds.
    fn rule_out(&mut self, sought: &Sought<'p>, given: Lemma, effort: &mut Effort) -> Option<Try<'p>> {
        let is_needed = |(test, states): &&Mattering<'p>| needs_value(test, *states);
        let premise = match sought.is_there {
            true => Some(*sought.own.iter().find(is_needed)?),
            false => None,
        };
        let Solved::Nothing { because } = self.solve_text(sought, Side::Around, effort)? else { return None };
        let further = sought.further.iter().filter_map(|further| further.from);
        let tests: Vec<_> = sought.own.iter().copied().chain(further).collect();
        let premise = premise.into_iter().map(|(test, states)| (test.number(), states));
        self.never(numbers(because, &tests).into_iter().chain(premise).chain(given).collect());
        Some(Try::Again)
    }

    /// Values with which all comes to what is asked.
    pub(super) fn solve_within(&mut self, sought: &Sought<'p>, effort: &mut Effort) -> Option<Solved> {
        self.solve_text(sought, Side::Within, effort)
    }

    fn solve_text(&mut self, sought: &Sought<'p>, side: Side, effort: &mut Effort) -> Option<Solved> {
        let counts = |further: &&Further<'p>| side == Side::Within || further.from.is_some();
        let written: Vec<_> = sought
            .further
            .iter()
            .filter(counts)
            .map(|further| further.said.written(sought.name, side))
            .collect();
        if !effort.take(REGEX_STEPS * written.len() as u64) {
            return None;
        }
        let conditions: Vec<&str> = written.iter().map(|(condition, _)| condition.as_str()).collect();
        let program = made_up(&conditions)?;
        let mut all: Vec<_> = asked(&sought.own).collect();
        for (rule, (_, wanted)) in program.rules.iter().zip(&written) {
            rule.condition.each_test(&mut |test| all.push(Asked { test, wanted: *wanted }));
        }
        // Otherwise nobody could tell which test is to blame.
        debug_assert_eq!(all.len(), sought.own.len() + written.len());
        let solve = if sought.is_there { solve_present } else { solve };
        Some(solve(sought.field, &all, &mut self.analyst.automata, effort))
    }

    /// Whether only a body of which the head says what it is has values.
    fn reads_by_type(&self) -> bool {
        self.analyst.setting.body_options.kind != BodyKind::Sniff
    }
}

impl<'p> Sought<'p> {
    pub(super) fn new(field: &'p Field, name: &'static str, matters: &Matters<'p>) -> Sought<'p> {
        Sought { field, name, own: tests_of(matters, field), further: Vec::new(), is_there: false }
    }

    /// Adds what is asked of a field that is cut out of it. Nothing where that cannot be said.
    fn add(
        &mut self,
        (line, begin): (Line, Option<Begin>),
        made: &Field,
        values: &Values,
        tests: &[Mattering<'p>],
    ) -> Option<()> {
        let mut are_all_said = true;
        for tested in tests {
            let wanted = match tested.1.wanted() {
                Some(Wanted::True | Wanted::NotFalse) => true,
                Some(Wanted::False | Wanted::NotTrue) => false,
                _ => {
                    are_all_said = false;
                    continue;
                }
            };
            match line.spelled(begin, tested.0) {
                Some(spelled) if wanted || spelled.len() == 1 => {
                    self.further.extend(spelled.into_iter().map(|(by, holds)| Further {
                        said: Said::Covered { by, holds: holds == wanted },
                        from: Some(*tested),
                    }));
                }
                _ => are_all_said = false,
            }
        }
        if are_all_said {
            return Some(());
        }
        // The value that was found for it is one that does.
        let value = match values.known.as_slice() {
            [] => None,
            [OwnedValue::Text(text)] => Some(&**text),
            _ => return None,
        };
        self.further.extend(line.pinned(begin, made, value)?.into_iter().map(Further::covered));
        if line == Line::Cookie {
            self.narrow(format!("count({}) < 2", line.name()));
        }
        Some(())
    }

    /// Looks only where a condition holds.
    pub(super) fn narrow(&mut self, condition: String) {
        self.further.push(Further::narrowing(Said::Holds(condition)));
    }

    /// Adds that it says what stands in the body: of a value there it must.
    fn add_kind(&mut self, kind: Option<Kind>, matters: &Matters<'p>) {
        let Some(kind) = kind else { return };
        let of_body = matters.each().filter(|(test, _)| Kind::of_field(&test.field) == Some(kind));
        let from = of_body.into_iter().find(|(test, states)| needs_value(test, *states));
        let by = kind.media_type(self.name != "content_type");
        self.further.push(Further { said: Said::Covered { by, holds: true }, from });
        self.further.push(Further { said: Said::Holds(format!("count({}) == 1", self.name)), from });
    }
}

impl Further<'_> {
    fn covered((by, holds): Spelled) -> Self {
        Further::narrowing(Said::Covered { by, holds })
    }

    fn narrowing(said: Said) -> Self {
        Further { said, from: None }
    }
}

impl Said {
    /// As a condition of rules, and what it is to come to.
    fn written(&self, name: &str, side: Side) -> (String, Wanted) {
        match self {
            Said::Holds(condition) => (condition.clone(), Wanted::True),
            Said::Covered { by, holds } => {
                let is_within = (side == Side::Within) == *holds;
                let regex = if is_within { &by.within } else { &by.around };
                let wanted = if *holds { Wanted::True } else { Wanted::False };
                (format!("{name} matches \"{regex}\""), wanted)
            }
        }
    }
}
