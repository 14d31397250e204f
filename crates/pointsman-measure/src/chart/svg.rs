//! The drawing.

use std::fmt::Write as _;

use super::axis::{GREATEST_SHOWN, Range, Scale, is_shown, number};
use super::{Axis, Chart, Content, Layer, Line};
use crate::report::escape;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 84.0;
/// Lines that have a colour of their own; further ones begin anew.
const COLOURS: usize = 6;
/// Lines of more points are drawn without a mark at each.
const MARKS_MAX: usize = 200;

/// How wide and high a cross is, and how wide the range of a place is that has none beside it.
const CROSS: f64 = 8.0;

/// What both axes of a chart span; None where nothing can be drawn. Bars have no horizontal range.
pub fn ranges(chart: &Chart) -> Option<(Option<Range>, Range)> {
    match &chart.content {
        Content::Lines(lines) => {
            let is_drawn = |x: f64, y: f64| is_shown(x, chart.x.is_log) && is_shown(y, chart.y.is_log);
            let of_band = |(x, low, high): &(f64, f64, f64)| [(*x, *low), (*x, *high)];
            let places = lines
                .iter()
                .flat_map(|line| line.points.iter().copied().chain(line.band.iter().flat_map(of_band)));
            let drawn: Vec<(f64, f64)> = places.filter(|(x, y)| is_drawn(*x, *y)).collect();
            let (xs, ys) = (drawn.iter().map(|place| place.0), drawn.iter().map(|place| place.1));
            let (xs, ys) = (Range::of(xs, chart.x.is_log)?, Range::of(ys, chart.y.is_log)?);
            let with = |range: Range, axis: &Axis| {
                axis.origin().map_or(range, |zero| range.joined(Range { low: zero, high: zero }))
            };
            Some((Some(with(xs, &chart.x)), with(ys, &chart.y)))
        }
        Content::Bars { categories, layers } => {
            let sum = |at| layers.iter().fold(0.0, |below, layer| top(below, height(layer, at)));
            let sums = (0..categories.len()).map(sum);
            Some((None, Range::of(sums.chain([0.0]), false)?))
        }
    }
}

fn height(layer: &Layer, at: usize) -> f64 {
    layer.values.get(at).copied().filter(|value| is_shown(*value, false)).unwrap_or(0.0).max(0.0)
}

/// Where a part of a bar ends that stands on others. Parts that are shown each for itself may come to more than is.
fn top(below: f64, height: f64) -> f64 {
    (below + height).min(GREATEST_SHOWN)
}

/// A chart as an SVG element, on axes that span at least what is given. `name` is to be unique in the page: the title is
/// found by it.
pub fn svg(chart: &Chart, name: &str, spans: Option<(Option<Range>, Range)>) -> String {
    let (name, title) = (escape(name), escape(&chart.title));
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"{name}-title {name}-desc\">\
         <title id=\"{name}-title\">{title}</title><desc id=\"{name}-desc\">{}</desc>\
         <text class=\"head\" x=\"{LEFT}\" y=\"20\">{title}</text>",
        escape(&description(chart))
    );
    match ranges(chart).and_then(|own| drawing(chart, own, spans)) {
        Some(drawn) => out.push_str(&drawn),
        None => write(&mut out, format_args!("<text x=\"{LEFT}\" y=\"60\">nothing was measured</text>")),
    }
    out.push_str("</svg>\n");
    out
}

/// Writing into a string does not fail.
fn write(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).unwrap_or_default();
}

fn description(chart: &Chart) -> String {
    let names: Vec<&str> = match &chart.content {
        Content::Lines(lines) => lines.iter().map(|line| line.name.as_str()).collect(),
        Content::Bars { layers, .. } => layers.iter().map(|layer| layer.name.as_str()).collect(),
    };
    format!("{} over {}: {}", chart.y.label, chart.x.label, names.join(", "))
}

fn drawing(
    chart: &Chart,
    (own_x, own_y): (Option<Range>, Range),
    spans: Option<(Option<Range>, Range)>,
) -> Option<String> {
    let (span_x, span_y) = spans.map_or((None, None), |(x, y)| (x, Some(y)));
    let y = Scale::new(span_y.map_or(own_y, |span| span.joined(own_y)), chart.is_y_log());
    let mut out = String::new();
    vertical(&mut out, chart, &y);
    match &chart.content {
        Content::Lines(lines) => {
            let own_x = own_x?;
            let x = Scale::new(span_x.map_or(own_x, |span| span.joined(own_x)), chart.x.is_log);
            horizontal(&mut out, &x);
            for (at, line) in lines.iter().enumerate() {
                draw_line(&mut out, line, at % COLOURS, (&x, chart.x.is_log), (&y, chart.y.is_log));
            }
            legend(&mut out, lines.iter().map(|line| (line.name.as_str(), line.is_scattered)));
        }
        Content::Bars { categories, layers } => {
            bars(&mut out, categories, layers, &y);
            legend(&mut out, layers.iter().map(|layer| (layer.name.as_str(), false)));
        }
    }
    let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
    let label = escape(&chart.x.label);
    write(
        &mut out,
        format_args!("<text class=\"label\" x=\"{middle}\" y=\"{}\">{label}</text>", HEIGHT - BOTTOM + 36.0),
    );
    Some(out)
}

fn across(scale: &Scale, value: f64) -> f64 {
    LEFT + scale.place(value) * (WIDTH - LEFT - RIGHT)
}

fn upwards(scale: &Scale, value: f64) -> f64 {
    HEIGHT - BOTTOM - scale.place(value) * (HEIGHT - TOP - BOTTOM)
}

fn vertical(out: &mut String, chart: &Chart, y: &Scale) {
    for tick in &y.ticks {
        let at = upwards(y, *tick);
        write(out, format_args!("<path class=\"grid\" d=\"M{LEFT} {at:.1}H{:.1}\"/>", WIDTH - RIGHT));
        write(
            out,
            format_args!(
                "<text class=\"y\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                LEFT - 6.0,
                at + 4.0,
                number(*tick)
            ),
        );
    }
    let middle = f64::midpoint(TOP, HEIGHT - BOTTOM);
    let label = escape(&chart.y.label);
    write(
        out,
        format_args!("<text class=\"label\" transform=\"translate(14 {middle}) rotate(-90)\">{label}</text>"),
    );
}

fn horizontal(out: &mut String, x: &Scale) {
    let (top, bottom) = (TOP, HEIGHT - BOTTOM);
    for tick in &x.ticks {
        let at = across(x, *tick);
        write(out, format_args!("<path class=\"grid\" d=\"M{at:.1} {top}V{bottom}\"/>"));
        write(
            out,
            format_args!(
                "<text class=\"x\" x=\"{at:.1}\" y=\"{:.1}\">{}</text>",
                bottom + 16.0,
                number(*tick)
            ),
        );
    }
}

fn draw_line(
    out: &mut String,
    line: &Line,
    colour: usize,
    (x, x_log): (&Scale, bool),
    (y, y_log): (&Scale, bool),
) {
    let shown = |vx: f64, vy: f64| is_shown(vx, x_log) && is_shown(vy, y_log);
    // Where no range is known there is no band. One that begins at 0 is known, and a logarithmic axis has no such place.
    let is_known = |(at, low, high): &(f64, f64, f64)| shown(*at, *high) && is_shown(*low, false);
    for band in line.band.split(|place| !is_known(place)) {
        let spot = |at: f64, vy: f64| (across(x, at), upwards(y, y.at_least(vy)));
        let above = band.iter().map(|(at, _, high)| spot(*at, *high));
        let below = band.iter().rev().map(|(at, low, _)| spot(*at, *low));
        let outline = match band {
            [] => continue,
            [(at, low, high)] => {
                let ((middle, top), (_, bottom)) = (spot(*at, *high), spot(*at, *low));
                let (left, right) = (middle - CROSS / 2.0, middle + CROSS / 2.0);
                path([(left, top), (right, top), (right, bottom), (left, bottom)].into_iter(), false)
            }
            _ => path(above.chain(below), false),
        };
        write(out, format_args!("<path class=\"band s{colour}\" d=\"{outline}Z\"/>"));
    }
    let points: Vec<_> = line.points.iter().filter(|(vx, vy)| shown(*vx, *vy)).collect();
    let places = points.iter().map(|(vx, vy)| (across(x, *vx), upwards(y, *vy)));
    if !line.is_scattered {
        let path = path(places.clone(), line.is_stepped);
        write(out, format_args!("<path class=\"line s{colour}\" d=\"{path}\"/>"));
    }
    if points.len() > MARKS_MAX && !line.is_scattered {
        return;
    }
    let name = escape(&line.name);
    for ((vx, vy), (cx, cy)) in points.iter().zip(places) {
        let title = format!("<title>{name}: {}, {}</title>", number(*vx), number(*vy));
        if line.is_scattered {
            let (left, top) = (cx - CROSS / 2.0, cy - CROSS / 2.0);
            let strokes = format!("M{left:.1} {top:.1}l{CROSS} {CROSS}m0-{CROSS}l-{CROSS} {CROSS}");
            write(out, format_args!("<path class=\"cross\" d=\"{strokes}\">{title}</path>"));
        } else {
            let circle = format!("<circle class=\"s{colour}\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"2.5\">");
            write(out, format_args!("{circle}{title}</circle>"));
        }
    }
}

fn path(places: impl Iterator<Item = (f64, f64)>, is_stepped: bool) -> String {
    let mut out = String::new();
    for (at, (x, y)) in places.enumerate() {
        match (at, is_stepped) {
            (0, _) => write(&mut out, format_args!("M{x:.1} {y:.1}")),
            (_, false) => write(&mut out, format_args!("L{x:.1} {y:.1}")),
            (_, true) => write(&mut out, format_args!("H{x:.1}V{y:.1}")),
        }
    }
    out
}

fn bars(out: &mut String, categories: &[String], layers: &[Layer], y: &Scale) {
    let room = (WIDTH - LEFT - RIGHT) / categories.len().max(1) as f64;
    let every = categories.len().div_ceil(12).max(1);
    for (at, category) in categories.iter().enumerate() {
        let left = LEFT + room * (at as f64 + 0.15);
        let mut below = 0.0;
        for (colour, layer) in layers.iter().enumerate() {
            let value = height(layer, at);
            let end = top(below, value);
            let (from, to) = (upwards(y, below), upwards(y, end));
            let (name, width) = (escape(&layer.name), room * 0.7);
            write(
                out,
                format_args!(
                    "<rect class=\"s{}\" x=\"{left:.1}\" y=\"{to:.1}\" width=\"{width:.1}\" height=\"{:.1}\">\
                     <title>{}, {name}: {}</title></rect>",
                    colour % COLOURS,
                    from - to,
                    escape(category),
                    number(value)
                ),
            );
            below = end;
        }
        if at % every == 0 {
            let middle = left + room * 0.35;
            let short: String = category.chars().take(14).collect();
            let bottom = HEIGHT - BOTTOM + 16.0;
            write(
                out,
                format_args!(
                    "<text class=\"x\" x=\"{middle:.1}\" y=\"{bottom:.1}\">{}</text>",
                    escape(&short)
                ),
            );
        }
    }
}

/// Two rows of three names below the chart.
fn legend<'n>(out: &mut String, names: impl Iterator<Item = (&'n str, bool)>) {
    for (at, (name, is_scattered)) in names.take(COLOURS).enumerate() {
        let x = LEFT + (at % 3) as f64 * 184.0;
        let y = HEIGHT - 28.0 + (at / 3) as f64 * 18.0;
        let short: String = name.chars().take(24).collect();
        match is_scattered {
            true => write(
                out,
                format_args!("<path class=\"cross\" d=\"M{} {}l8 8m0-8l-8 8\"/>", x + 7.0, y - 4.0),
            ),
            false => write(out, format_args!("<path class=\"line s{at}\" d=\"M{x} {y}h22\"/>")),
        }
        write(out, format_args!("<text x=\"{}\" y=\"{}\">{}</text>", x + 28.0, y + 4.0, escape(&short)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(lines: Vec<Line>) -> Chart {
        Chart {
            id: "curve".to_owned(),
            title: "Demanded against achieved".to_owned(),
            x: Axis::linear("demanded, 1/s"),
            y: Axis::linear("achieved, 1/s"),
            content: Content::Lines(lines),
        }
    }

    #[test]
    fn a_line_is_drawn_where_its_points_are() {
        let line = Line {
            name: "found <1>".to_owned(),
            points: vec![(0.0, 0.0), (500.0, 500.0), (1_000.0, 500.0)],
            band: vec![(0.0, 0.0, 0.0), (1_000.0, 450.0, 550.0)],
            ..Line::default()
        };
        let drawn = svg(&lines(vec![line.clone()]), "c", None);
        assert!(drawn.contains("<title>found &lt;1&gt;: 500, 500</title>"), "{drawn}");
        // From the left edge at the bottom to the middle: 0..600 upwards, 0..1,000 across.
        assert!(drawn.contains("d=\"M76.0 296.0L350.0 77.7L624.0 77.7\""), "{drawn}");
        assert!(drawn.contains("class=\"band s0\""));
        let crosses = svg(&lines(vec![Line { is_scattered: true, ..line.clone() }]), "c", None);
        assert_eq!(
            (crosses.matches("<path class=\"cross").count(), crosses.matches("<circle").count()),
            (4, 0)
        );
        assert!(crosses.contains("d=\"M72.0 292.0l8 8m0-8l-8 8\""), "{crosses}");
        let stepped = svg(&lines(vec![Line { is_stepped: true, ..line }]), "c", None);
        assert!(stepped.contains("d=\"M76.0 296.0H350.0V77.7H624.0V77.7\""), "{stepped}");
    }

    #[test]
    fn what_begins_at_zero_does_so_however_high_its_values_are() {
        let line = Line { points: vec![(1.0, 98.0), (2.0, 100.0)], ..Line::default() };
        let mut chart = lines(vec![line]);
        let has_zero = |drawn: &str| drawn.contains("y=\"300.0\">0</text>");
        assert!(!has_zero(&svg(&chart, "c", None)), "it is zoomed");
        chart.y = Axis::from_zero("achieved, 1/s");
        assert!(has_zero(&svg(&chart, "c", None)), "{}", svg(&chart, "c", None));
        // So does one beside it that is drawn on the same axes.
        let (_, y) = ranges(&chart).expect("it has points");
        assert_eq!((y.low, y.high), (0.0, 100.0));
        chart.y.is_log = true;
        assert!(!has_zero(&svg(&chart, "c", None)), "there is no 0 on it");
    }

    #[test]
    fn a_band_has_a_gap_where_no_range_is_known() {
        let at = |x: f64| (x, x, x + 1.0);
        let none = |x: f64| (x, f64::NAN, f64::NAN);
        let bands = |band: Vec<(f64, f64, f64)>| {
            let line = Line { points: vec![(0.0, 0.0), (9.0, 9.0)], band, ..Line::default() };
            svg(&lines(vec![line]), "c", None).matches("class=\"band").count()
        };
        assert_eq!(bands(vec![at(0.0), at(1.0), at(2.0), at(3.0)]), 1);
        assert_eq!(bands(vec![at(0.0), at(1.0), none(2.0), at(3.0), at(4.0)]), 2);
        assert_eq!(bands(vec![none(0.0), none(1.0)]), 0);
        assert_eq!(bands(vec![none(0.0), at(1.0), none(2.0), at(3.0), at(4.0), none(5.0)]), 2);
    }

    #[test]
    fn a_range_that_is_known_is_drawn_whatever_is_beside_it() {
        let none = (1.0, f64::NAN, f64::NAN);
        let line = Line {
            points: vec![(0.0, 0.0), (4.0, 10.0)],
            band: vec![(0.0, f64::NAN, 1.0), (2.0, 2.0, 8.0), none],
            ..Line::default()
        };
        let drawn = svg(&lines(vec![line]), "c", None);
        // Eight wide around the middle, from 8 to 2 of 10.
        assert!(drawn.contains("band s0\" d=\"M346.0 86.4L354.0 86.4L354.0 243.6L346.0 243.6Z\""), "{drawn}");
        // What reaches down to 0 does so to the end of an axis that has no 0.
        let line = Line {
            points: vec![(0.0, 1.0), (4.0, 100.0)],
            band: vec![(0.0, 1.0, 10.0), (2.0, 0.0, 10.0), (4.0, -5.0, 100.0)],
            ..Line::default()
        };
        let mut log = lines(vec![line]);
        log.y.is_log = true;
        let drawn = svg(&log, "c", None);
        let path = "M76.0 165.0L350.0 165.0L624.0 34.0L624.0 296.0L350.0 296.0L76.0 296.0Z";
        assert!(drawn.contains(&format!("band s0\" d=\"{path}\"")), "{drawn}");
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        let bad =
            Line { points: vec![(f64::NAN, 1.0), (1.0, f64::INFINITY), (1.0, 1e300)], ..Line::default() };
        assert!(svg(&lines(vec![bad]), "c", None).contains("nothing was measured"));
        assert!(svg(&lines(vec![]), "c", None).contains("nothing was measured"));
        let mut log =
            lines(vec![Line { points: vec![(1.0, 0.0), (2.0, 10.0), (3.0, 100.0)], ..Line::default() }]);
        log.y.is_log = true;
        let drawn = svg(&log, "c", None);
        assert_eq!(drawn.matches("<circle").count(), 2, "{drawn}");
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"));
    }

    #[test]
    fn bars_stand_on_each_other() {
        let layer = |name: &str, values: &[f64]| Layer { name: name.to_owned(), values: values.to_vec() };
        let mut chart = lines(vec![]);
        chart.content = Content::Bars {
            categories: vec!["full".to_owned(), "resumed".to_owned()],
            layers: vec![layer("server", &[30.0, 10.0]), layer("client", &[10.0, -5.0])],
        };
        let drawn = svg(&chart, "c", None);
        assert_eq!(drawn.matches("<rect").count(), 4);
        assert!(drawn.contains("<title>resumed, client: 0</title>"), "{drawn}");
        // 30 of 40, then the next 10 on top.
        assert!(drawn.contains("y=\"99.5\"") && drawn.contains("y=\"34.0\""), "{drawn}");
        chart.y.is_log = true;
        assert_eq!(svg(&chart, "c", None), drawn, "they stand on 0");
    }

    /// Each of them is shown, and the two on each other are more than is.
    #[test]
    fn bars_end_where_the_greatest_is_that_is_shown() {
        let layer = |values: &[f64]| Layer { name: String::new(), values: values.to_vec() };
        let mut chart = lines(vec![]);
        let categories = vec![String::new(); 2];
        chart.content =
            Content::Bars { categories, layers: vec![layer(&[9e14, 1e14]), layer(&[9e14, 1e14])] };
        let drawn = svg(&chart, "c", None);
        let of = |name: &str| -> Vec<f64> {
            let values =
                drawn.split("<rect").skip(1).filter_map(|bar| bar.split(name).nth(1)?.split('"').nth(1));
            values.map(|value| value.parse().expect("a number")).collect()
        };
        let (tops, heights) = (of(" y="), of(" height="));
        assert!(tops.iter().all(|top| (TOP..=HEIGHT - BOTTOM).contains(top)), "{drawn}");
        assert!(heights[1] > 0.0 && heights.iter().all(|height| *height >= 0.0), "{drawn}");
    }
}
