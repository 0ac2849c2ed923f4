//! All settings, as one table: path, kind with bounds, default, environment variable, reload.
//! `conf/tollgate.yaml` documents them.
//!
//! Parsing, environment, validation, printing, reload and the test of the documented file all read
//! this table. A new setting is a row in one of the files below, a field in `types` or `live`, its
//! line in `build`, and its entry in `conf/tollgate.yaml`.

mod listeners;
mod requests;
mod state;

use super::setting::Setting;
use super::telemetry;

const MS: u64 = 1;
const S: u64 = 1_000 * MS;
const MIN: u64 = 60 * S;
const HOUR: u64 = 60 * MIN;
const DAY: u64 = 24 * HOUR;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Minimum length of the admin token, in characters: shorter ones could be guessed.
pub const ADMIN_TOKEN_MIN: usize = 16;

/// The groups of rows, in the order of the documented file.
const GROUPS: [&[Setting]; 4] = [listeners::ROWS, state::ROWS, requests::ROWS, &telemetry::ROWS];

/// The table, in the order of the documented file.
pub const SETTINGS: &[Setting] = &joined();

const fn rows() -> usize {
    let (mut sum, mut group) = (0, 0);
    while group < GROUPS.len() {
        sum += GROUPS[group].len();
        group += 1;
    }
    sum
}

const fn joined() -> [Setting; rows()] {
    let mut all = [listeners::ROWS[0]; rows()];
    let (mut place, mut group) = (0, 0);
    while group < GROUPS.len() {
        let mut row = 0;
        while row < GROUPS[group].len() {
            all[place] = GROUPS[group][row];
            (place, row) = (place + 1, row + 1);
        }
        group += 1;
    }
    all
}

/// The row of a path.
#[must_use]
pub(super) fn find(path: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.path == path)
}
