//! Where a curve bends.

/// How the curve runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bend {
    /// Rises ever more slowly, as throughput does over load.
    Concave,
    /// Rises ever faster, as latency does over load.
    Convex,
}

/// A knee and the axes that it was found in. It moves when the axes do (Christopoulos: Introducing unit invariant knee
/// (UIK), 2016), so they belong to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// Where it is.
    pub x: f64,
    /// The curve there.
    pub y: f64,
    /// What was made 0 and 1 on the horizontal axis.
    pub x_range: (f64, f64),
    /// The same on the vertical axis.
    pub y_range: (f64, f64),
}

/// How far the curve has to come back from a knee, in mean distances of points: the paper's S, its value for offline
/// use.
const SENSITIVITY: f64 = 1.0;

/// Kneedle (Satopaa, Albrecht, Irwin, Raghavan: Finding a "kneedle" in a haystack, ICDCSW 2011, section III), with
/// both axes brought to 0..1 by the least and the greatest of the points, and without the spline: what is noisy is to be
/// smoothed before, for instance by [`isotonic`](super::isotonic). Of several knees the one furthest from the chord.
///
/// The points are in ascending order of x. None of fewer than three, of a curve that is flat, and of one without a knee.
pub fn knee(points: &[(f64, f64)], bend: Bend) -> Option<Knee> {
    let range = |of: fn(&(f64, f64)) -> f64| {
        points
            .iter()
            .map(of)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
    };
    let (x_range, y_range) = (range(|point| point.0), range(|point| point.1));
    let spread = |(low, high): (f64, f64)| high - low > 0.0 && (high - low).is_finite();
    if points.len() < 3 || !spread(x_range) || !spread(y_range) {
        return None;
    }
    let unit = |value: f64, (low, high): (f64, f64)| (value - low) / (high - low);
    // How far above the chord, which runs from (0, 0) to (1, 1); a convex curve lies below it.
    let above: Vec<f64> = points
        .iter()
        .map(|(x, y)| unit(*y, y_range) - unit(*x, x_range))
        .map(|distance| if bend == Bend::Concave { distance } else { -distance })
        .collect();
    let step = 1.0 / (points.len() - 1) as f64;
    let is_top = |at: usize| above[at] >= above[at - 1] && above[at] > above[at + 1];
    let tops: Vec<usize> = (1..above.len() - 1).filter(|at| is_top(*at)).collect();
    // A curve that rises ever faster is read from its end.
    let comes_back = |top: usize| {
        let least = above[top] - SENSITIVITY * step;
        match bend {
            Bend::Concave => above[top + 1..].iter().take_while(|d| **d <= above[top]).any(|d| *d < least),
            Bend::Convex => above[..top].iter().rev().take_while(|d| **d <= above[top]).any(|d| *d < least),
        }
    };
    let best =
        tops.into_iter().filter(|top| comes_back(*top)).max_by(|a, b| above[*a].total_cmp(&above[*b]))?;
    Some(Knee { x: points[best].0, y: points[best].1, x_range, y_range })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(count: u32, f: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (0..=count).map(|at| f64::from(at) / f64::from(count)).map(|x| (x, f(x))).collect()
    }

    #[test]
    fn the_knee_of_the_papers_curve() {
        // Figure 2 of the paper: y = -1 / x + 5 on the points 0.1 to 1.0 bends at 0.22 by its analysis; of ten points
        // the nearest is 0.3 or 0.2.
        let points: Vec<(f64, f64)> =
            (1..=10).map(|at| f64::from(at) / 10.0).map(|x| (x, -1.0 / x + 5.0)).collect();
        let found = knee(&points, Bend::Concave).expect("it bends");
        assert!((found.x - 0.3).abs() < 0.11, "{found:?}");
        assert_eq!(found.x_range, (0.1, 1.0));
    }

    #[test]
    fn where_the_distance_to_the_chord_is_greatest() {
        let found = knee(&curve(100, f64::sqrt), Bend::Concave).expect("it bends");
        assert!((found.x - 0.25).abs() < 0.011, "{found:?}");
        let found = knee(&curve(100, |x| x * x), Bend::Convex).expect("it bends");
        assert!((found.x - 0.5).abs() < 0.011, "{found:?}");
        // Latency of M/M/1 up to 95 % of its capacity: 1 / (1 - x), chord and curve are furthest apart at 1 - sqrt(0.05).
        let found = knee(&curve(190, |x| 1.0 / (1.0 - 0.95 * x)), Bend::Convex).expect("it bends");
        assert!((0.95 * found.x - (1.0 - 0.05_f64.sqrt())).abs() < 0.02, "{found:?}");
    }

    #[test]
    fn a_line_has_none_nor_has_nothing() {
        assert_eq!(knee(&curve(50, |x| 2.0 * x), Bend::Concave), None);
        assert_eq!(knee(&curve(50, |_| 3.0), Bend::Convex), None);
        assert_eq!(knee(&[], Bend::Convex), None);
        assert_eq!(knee(&[(0.0, 0.0), (1.0, f64::INFINITY), (2.0, 1.0)], Bend::Convex), None);
    }
}
