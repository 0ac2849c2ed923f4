//! The parts of the scripts that are made from the rows of the limits.

use crate::domain::limit_type::{LimitFigure, LimitOwner, LimitType};
use crate::domain::limits::{DailyReset, Period, ResetMode};
use crate::policy::window::Window;

/// A part by its name, as `--include` has it.
pub(super) fn part(name: &str) -> Option<String> {
    match name {
        "rows" => Some(rows()),
        "checks" => Some(checks()),
        _ => None,
    }
}

/// How many numbers a holder's limits are: its spending limits, and those of `lua/limits.lua`.
pub(super) const BLOCK: usize = Period::IN_ORDER.len() + 4;

/// `PERIODS`: how many spending limits there are. `SUMS`: where a record has what counts against
/// each (`lua/record.lua`), by whether the day is fixed. `CHECKS`: by which number each is checked.
fn rows() -> String {
    let list = |number: &dyn Fn(Period) -> u8| {
        Period::IN_ORDER.map(|period| number(period).to_string()).join(", ")
    };
    let sums = |mode| {
        let reset = DailyReset { mode, ..DailyReset::default() };
        list(&|period| sum_of(Window::of(period, reset)))
    };
    let checks = |holder| list(&|period| check_of(holder, period));
    let (rolling, fixed) = (sums(ResetMode::Rolling), sums(ResetMode::Fixed));
    let (key, user) = (checks(LimitOwner::Key), checks(LimitOwner::User));
    format!(
        "local PERIODS, SUMS = {}, {{ [0] = {{ {rolling} }}, [1] = {{ {fixed} }} }}\n\
         local CHECKS = {{ key = {{ {key} }}, user = {{ {user} }} }}\n",
        Period::IN_ORDER.len()
    )
}

/// The place of a window's pair of sums in a record.
const fn sum_of(window: Option<Window>) -> u8 {
    match window {
        None => 10,
        Some(Window::FiveHours) => 12,
        Some(Window::Daily(DailyReset { mode: ResetMode::Rolling, .. })) => 14,
        Some(Window::Daily(_)) => 16,
        Some(Window::Weekly) => 18,
        Some(Window::Monthly) => 20,
    }
}

/// The number of the check of a holder's spending limit; 0: the holder has no such limit.
fn check_of(holder: LimitOwner, period: Period) -> u8 {
    let is_it = |limit: &LimitType| limit.holder() == holder && limit.period() == Some(period);
    LimitType::IN_ORDER.into_iter().find(is_it).map_or(0, |limit| limit as u8)
}

/// All checks in their order: each is a call of its mechanism in `lua/full.lua`.
fn checks() -> String {
    let checks = LimitType::IN_ORDER.map(|limit| {
        let (number, holder) = (limit as u8, if limit.is_keys() { "key" } else { "user" });
        match limit.figure() {
            LimitFigure::Money(period) => {
                format!("money({number}, {holder}, {})", 1 + period.place())
            }
            LimitFigure::Sessions => format!("sessions({number}, {holder})"),
            LimitFigure::Requests => format!("requests({number}, {holder})"),
        }
    });
    format!("return {}\n", checks.join(" or "))
}
