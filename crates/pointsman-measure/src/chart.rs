//! Charts as inline SVG: lines with bands, steps, stacked bars. No script, no font, no network; colours come from the
//! style sheet of the [report](crate::report), so that they follow light, dark and print.

mod axis;
mod svg;

pub use axis::Range;
pub(crate) use axis::{number, rounded};
pub use svg::{ranges, svg};

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The same in each run that has this chart: they are drawn beside each other, on the same axes.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn.
    pub content: Content,
}

impl Chart {
    /// Whether its vertical axis is drawn as a logarithmic one. Bars stand on 0, which no such axis has.
    pub(crate) fn is_y_log(&self) -> bool {
        self.y.is_log && matches!(self.content, Content::Lines(_))
    }
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Axis {
    /// What it measures, with its unit.
    pub label: String,
    /// Logarithmic: values of 0 or less are left out. Means nothing of the heights of bars.
    pub is_log: bool,
    /// Begins at 0, however far from it the values are: what is twice as high is twice as much. Others do so where their values
    /// are not far from it. Means nothing of a logarithmic one.
    pub is_from_zero: bool,
}

impl Axis {
    /// One whose differences tell more than its heights: it may begin anywhere.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), is_log: false, is_from_zero: false }
    }

    /// One that begins at 0.
    pub fn from_zero(label: impl Into<String>) -> Self {
        Self { is_from_zero: true, ..Self::linear(label) }
    }

    /// One on which ratios are as long as each other.
    pub fn logarithmic(label: impl Into<String>) -> Self {
        Self { is_log: true, ..Self::linear(label) }
    }

    /// What it shows in any case.
    fn origin(&self) -> Option<f64> {
        (self.is_from_zero && !self.is_log).then_some(0.0)
    }
}

/// What a chart draws.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Lines over a number.
    Lines(Vec<Line>),
    /// Bars on top of each other for each category.
    Bars {
        /// Names along the horizontal axis.
        categories: Vec<String>,
        /// From below to above.
        layers: Vec<Layer>,
    },
}

/// A line.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Line {
    /// For the legend.
    pub name: String,
    /// x and y, in ascending order of x.
    pub points: Vec<(f64, f64)>,
    /// x, and the range of y there that is drawn as a band. It ends before one that is no number, and begins anew behind it.
    pub band: Vec<(f64, f64, f64)>,
    /// Drawn in steps: a distribution function.
    pub is_stepped: bool,
    /// Points alone, each a cross, and no line: what was seen and is no result.
    pub is_scattered: bool,
}

/// The same part of each bar.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Layer {
    /// For the legend.
    pub name: String,
    /// One for each category; what is missing or negative is 0.
    pub values: Vec<f64>,
}
