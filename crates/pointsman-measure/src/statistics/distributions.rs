//! Quantiles of the distributions that intervals are made with.

/// The chance that a standard normal is at most `x` (Abramowitz, Stegun 1964, 26.2.17: to within 7.5e-8).
pub(crate) fn normal_cdf(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 5] =
        [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let polynomial = COEFFICIENTS.iter().rev().fold(0.0, |sum, coefficient| (sum + coefficient) * t);
    let tail = (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt() * polynomial;
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// The chance that a standard normal is at least as far from 0 as `z`, on either side.
pub(crate) fn two_sided_p(z: f64) -> f64 {
    2.0 * normal_cdf(-z.abs())
}

/// What a standard normal is below with a chance of `p`, found by halving on [`normal_cdf`].
pub(crate) fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-9.0, 9.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if normal_cdf(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// What Student's t is beyond, on either side, with a chance of `p` together (Hill 1970: algorithm 396).
pub(crate) fn student_quantile(p: f64, degrees: f64) -> f64 {
    let n = degrees.max(1.0);
    if n < 1.5 {
        return (std::f64::consts::PI * (1.0 - p) / 2.0).tan();
    }
    if n < 2.5 {
        return (2.0 / (p * (2.0 - p)) - 2.0).sqrt();
    }
    let a = 1.0 / (n - 0.5);
    let b = 48.0 / (a * a);
    let mut c = ((20_700.0 * a / b - 98.0) * a - 16.0) * a + 96.36;
    let d = ((94.5 / (b + c) - 3.0) / b + 1.0) * (a * std::f64::consts::FRAC_PI_2).sqrt() * n;
    let mut x = d * p;
    let mut y = x.powf(2.0 / n);
    if y > 0.05 + a {
        x = normal_quantile(p * 0.5);
        y = x * x;
        if n < 5.0 {
            c += 0.3 * (n - 4.5) * (x + 0.6);
        }
        c += (((0.05 * d * x - 5.0) * x - 7.0) * x - 2.0) * x + b;
        y = (((((0.4 * y + 6.3) * y + 36.0) * y + 94.5) / c - y - 3.0) / b + 1.0) * x;
        y = (a * y * y).exp_m1();
    } else {
        y = ((1.0 / (((n + 6.0) / (n * y) - 0.089 * d - 0.822) * (n + 2.0) * 3.0) + 0.5 / (n + 4.0)) * y
            - 1.0)
            * (n + 1.0)
            / (n + 2.0)
            + 1.0 / y;
    }
    (n * y).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_the_normal_distribution() {
        for (p, z) in [(0.5, 0.0), (0.975, 1.959_964), (0.025, -1.959_964), (0.999, 3.090_232)] {
            assert!((normal_quantile(p) - z).abs() < 1e-4, "{p}");
        }
        assert!((two_sided_p(1.959_964) - 0.05).abs() < 1e-6);
    }

    #[test]
    fn tables_of_students_t() {
        let table = [
            (1.0, 12.706),
            (2.0, 4.303),
            (3.0, 3.182),
            (4.0, 2.776),
            (7.0, 2.365),
            (19.0, 2.093),
            (29.0, 2.045),
        ];
        for (degrees, t) in table {
            let found = student_quantile(0.05, degrees);
            assert!((found - t).abs() < 2e-3, "{degrees}: {found}");
        }
    }
}
