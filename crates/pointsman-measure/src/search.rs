//! The saturation point by itself: which trial to run next, and what all of them come to.
//!
//! A machine without IO: [`Search::step`] names a trial, whoever has a load generator runs it and says by
//! [`Search::saw`] what was seen, until the end. Three figures come of it, which are not the same:
//!
//! - **sustained** (R_slo): the greatest rate at which half of all trials meet the [`Goal`];
//! - **knee**: the load from which latency rises out of proportion;
//! - **peak** (R_peak): the greatest rate that is answered at any load: the capacity.
//!
//! The way: a geometric ramp; bisection in the manner of MLRsearch (draft-ietf-bmwg-mlrsearch: a load is good when the
//! time of its bad trials can no longer exceed a share of the goal's time); trials in random order at 0.90, 0.95, 1.00
//! and 1.05 of what was found; a sweep up and down, which is then zoomed where it bends; and fresh trials at the load
//! with the most answers, so that the peak is no lucky draw among many.
//!
//! What disturbs a machine for some seconds looks like a boundary. One that later trials contradict is given up, and the
//! ramp goes on above them: a confirmation that passes in full twice, loads well above it that pass, or a client that is in
//! control where it was not. Where that comes again and again there is no result.

mod boundary;
mod bracket;
mod curve;
mod found;
mod goal;
mod stage;
mod stages;
mod trial;

pub use curve::CurvePoint;
pub use found::{Findings, Limit, NoResult, Rate};
pub use goal::{BadGoal, Goal};
pub use stages::{Search, Step};
pub use trial::{Phase, Record, Seen, Shortfall, Trial};
