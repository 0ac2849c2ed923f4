//! Billing files: Google Cloud's BigQuery export and AWS's Cost and Usage Report (CUR 2.0, also the
//! older form), both as CSV.
//!
//! Only lines of AI models count. Their model and kind of tokens are in the description of what was
//! sold; lines that are not for tokens are charges with the vendor's words.

use super::{Unreadable, amount, day_of, in_dollars, kind_of};
use crate::domain::clock::Timestamp;
use crate::domain::invoice::{CostLine, Tokens, UsageLine, VendorReport};

/// Whose billing file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum FileKind {
    /// AWS's Cost and Usage Report.
    Aws,
    /// Google Cloud's billing export.
    Google,
}

impl FileKind {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The columns that are read, and whether a file must have them.
    const fn columns(self) -> &'static [(&'static str, bool)] {
        match self {
            Self::Aws => &[
                ("line_item_usage_start_date", true),
                ("line_item_usage_type", true),
                ("line_item_unblended_cost", true),
                ("line_item_usage_amount", true),
                ("line_item_currency_code", false),
                ("line_item_line_item_description", false),
                ("line_item_line_item_type", false),
                ("line_item_product_code", false),
                ("product_servicecode", false),
                ("product_product_name", false),
                ("pricing_unit", false),
            ],
            Self::Google => &[
                ("usage_start_time", true),
                ("sku_description", true),
                ("cost", true),
                ("usage_amount", true),
                ("currency", false),
                ("service_description", true),
                ("cost_type", false),
                ("usage_unit", false),
            ],
        }
    }

    /// Words of which the texts of a line have one if it is of an AI model.
    const fn services(self) -> &'static [&'static str] {
        match self {
            Self::Aws => &["bedrock"],
            Self::Google => &["vertex ai", "gemini api", "generative language", "agent platform"],
        }
    }
}

/// The columns of a file, found by its first line.
struct Table<'t> {
    kind: FileKind,
    reader: csv::Reader<&'t [u8]>,
    /// Where each of the kind's columns is.
    places: Vec<Option<usize>>,
}

/// `lineItem/UsageStartDate`, `usage.amount` and `line_item_usage_amount` alike.
fn plain_name(header: &str) -> String {
    let mut name = String::with_capacity(header.len() + 4);
    for c in header.trim_start_matches('\u{feff}').chars() {
        match c {
            '/' | '.' | ' ' | ':' => name.push('_'),
            c if c.is_ascii_uppercase() => {
                if !name.is_empty() && !name.ends_with('_') {
                    name.push('_');
                }
                name.push(c.to_ascii_lowercase());
            }
            c => name.push(c),
        }
    }
    name
}

fn damaged(error: &csv::Error) -> Unreadable {
    let line = error.position().map_or(0, csv::Position::line);
    Unreadable(format!("line {line} of the file cannot be read: {error}"))
}

impl<'t> Table<'t> {
    fn open(kind: FileKind, text: &'t str) -> Result<Self, Unreadable> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let headers: Vec<String> =
            reader.headers().map_err(|e| damaged(&e))?.iter().map(plain_name).collect();
        let place = |name: &str| headers.iter().position(|header| header == name);
        let lacks = |&&(name, required): &&(&str, bool)| required && place(name).is_none();
        if let Some((name, _)) = kind.columns().iter().find(lacks) {
            return Err(Unreadable(format!(
                "the file has no column {name}: export it as CSV with its first line, with the \
                 columns that the documentation names"
            )));
        }
        let places = kind.columns().iter().map(|(name, _)| place(name)).collect();
        Ok(Self { kind, reader, places })
    }

    /// Calls `each` with every line of an AI model.
    fn each(
        mut self,
        mut each: impl FnMut(&FileLine<'_>) -> Result<(), Unreadable>,
    ) -> Result<(), Unreadable> {
        let mut record = csv::StringRecord::new();
        while self.reader.read_record(&mut record).map_err(|e| damaged(&e))? {
            let line = FileLine { kind: self.kind, record: &record, places: &self.places };
            if line.is_of_a_model() {
                let number = record.position().map_or(0, csv::Position::line);
                each(&line)
                    .map_err(|why| Unreadable(format!("line {number} of the file: {why}")))?;
            }
        }
        Ok(())
    }
}

struct FileLine<'l> {
    kind: FileKind,
    record: &'l csv::StringRecord,
    places: &'l [Option<usize>],
}

impl<'l> FileLine<'l> {
    fn get(&self, column: &str) -> &'l str {
        let at = self.kind.columns().iter().position(|(name, _)| *name == column);
        let place = at.and_then(|at| self.places.get(at).copied().flatten());
        place.and_then(|place| self.record.get(place)).unwrap_or_default().trim()
    }

    fn is_of_a_model(&self) -> bool {
        let texts = match self.kind {
            FileKind::Aws => &[
                "line_item_product_code",
                "product_servicecode",
                "product_product_name",
                "line_item_line_item_description",
                "line_item_usage_type",
            ][..],
            FileKind::Google => &["service_description"][..],
        };
        texts.iter().any(|column| {
            let text = self.get(column).to_ascii_lowercase();
            self.kind.services().iter().any(|service| text.contains(service))
        })
    }

    /// The day, what was sold, the unit, the type of the line if it is not use, and the currency.
    fn parts(&self) -> (&'l str, String, &'l str, Option<&'l str>, &'l str) {
        let get = |column| self.get(column);
        match self.kind {
            FileKind::Aws => {
                let kind = Some(get("line_item_line_item_type"));
                let is_use = |kind: &&str| !kind.is_empty() && !kind.ends_with("Usage");
                let what = [
                    get("product_product_name"),
                    get("line_item_usage_type"),
                    get("line_item_line_item_description"),
                ];
                let what =
                    what.into_iter().filter(|text| !text.is_empty() && !text.starts_with('{'));
                (
                    get("line_item_usage_start_date"),
                    what.collect::<Vec<_>>().join(" · "),
                    get("pricing_unit"),
                    kind.filter(is_use),
                    get("line_item_currency_code"),
                )
            }
            FileKind::Google => {
                let kind = Some(get("cost_type"));
                let is_use = |kind: &&str| !kind.is_empty() && *kind != "regular";
                (
                    get("usage_start_time"),
                    get("sku_description").to_owned(),
                    get("usage_unit"),
                    kind.filter(is_use),
                    get("currency"),
                )
            }
        }
    }

    fn add_to(&self, report: &mut VendorReport) -> Result<(), Unreadable> {
        let (time, what, unit, other, currency) = self.parts();
        if !currency.is_empty() {
            in_dollars(currency)?;
        }
        let day = day_of(moment(time)?);
        let (cost, count) = match self.kind {
            FileKind::Aws => ("line_item_unblended_cost", "line_item_usage_amount"),
            FileKind::Google => ("cost", "usage_amount"),
        };
        let kind = kind_of(&what).filter(|_| other.is_none());
        let charge = other.map_or_else(|| what.clone(), |other| format!("{other}: {what}"));
        report.costs.push(CostLine {
            day,
            model: kind.map(|_| what.clone()),
            api_key: None,
            variant: String::new(),
            kind,
            what: charge,
            amount: amount(self.get(cost), 0)?,
        });
        if let Some(kind) = kind {
            let tokens = Tokens::of(kind, tokens(self.get(count), &format!("{unit} {what}"))?);
            report.usage.push(UsageLine {
                day,
                model: what,
                api_key: None,
                variant: String::new(),
                tokens,
            });
        }
        Ok(())
    }
}

/// A count of tokens: units may be thousands or millions of them.
fn tokens(count: &str, unit: &str) -> Result<i64, Unreadable> {
    let unit = unit.to_ascii_lowercase();
    let factor = if unit.starts_with("1m") || unit.contains("million") {
        1_000_000
    } else if unit.starts_with("1k") || unit.contains("thousand") {
        1_000
    } else {
        1
    };
    // Read as an amount: exact, and without a binary fraction.
    let billionths = i128::from(amount(count, 0)?.0) * factor;
    i64::try_from((billionths + 500_000_000).div_euclid(1_000_000_000))
        .map_err(|_| Unreadable(format!("the count {count:.40} is too large")))
}

/// `2026-11-01T00:00:00.000Z` and BigQuery's `2026-11-01 07:00:00 UTC`.
fn moment(text: &str) -> Result<Timestamp, Unreadable> {
    let plain = text.trim_end_matches(" UTC").trim_end_matches('Z').replace('T', " ");
    let forms = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M"];
    let with_offset = chrono::DateTime::parse_from_rfc3339(text).ok().map(|t| t.to_utc());
    let found = with_offset.or_else(|| {
        let read = |form| chrono::NaiveDateTime::parse_from_str(&plain, form).ok();
        forms.into_iter().find_map(read).map(|time| time.and_utc())
    });
    found
        .map(Timestamp::from)
        .ok_or_else(|| Unreadable(format!("the time {text:.40} cannot be read")))
}

/// Reads a billing file.
///
/// # Errors
/// It lacks a column, is damaged, or has amounts that are not in US dollars; the text names the
/// line.
pub fn read_file(kind: FileKind, text: &str) -> Result<VendorReport, Unreadable> {
    let mut report = VendorReport { by_description: true, ..VendorReport::default() };
    Table::open(kind, text)?.each(|line| line.add_to(&mut report))?;
    Ok(report)
}

/// The file with the lines and columns that [`read_file`] reads.
///
/// # Errors
/// It lacks a column, or is damaged.
pub fn reduce(kind: FileKind, text: &str) -> Result<String, Unreadable> {
    let mut out = csv::Writer::from_writer(Vec::new());
    let names = kind.columns().iter().map(|(name, _)| *name);
    out.write_record(names.clone()).map_err(|e| damaged(&e))?;
    Table::open(kind, text)?.each(|line| {
        out.write_record(names.clone().map(|name| line.get(name))).map_err(|e| damaged(&e))
    })?;
    let bytes = out.into_inner().map_err(|e| Unreadable(e.to_string()))?;
    String::from_utf8(bytes).map_err(|e| Unreadable(e.to_string()))
}
