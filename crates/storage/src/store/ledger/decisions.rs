//! The decision chain as one text of the request log: JSON that names each provider once.
//!
//! A step is `[step, at_ms, detail, took_ms, status, [provider_id, provider_name], usage]`, without
//! what is absent at the end. The provider is absent if it is the record's own. A fixed text is its
//! number in [`REASONS`]. The chain of a session's next request takes 57 bytes; as objects it would
//! take 178.

use std::sync::Arc;

use serde::ser::SerializeSeq as _;
use serde::{Deserialize, Serialize, Serializer};

use crate::domain::ids::ProviderId;
use crate::domain::record::{Decision, DecisionStep, Record};
use crate::domain::usage::Usage;
use crate::policy::select::REASONS;

/// The record's chain as text.
pub(in crate::store) fn text(record: &Record) -> String {
    let own = Own { id: record.provider_id, name: record.provider_name.as_deref() };
    let steps: Vec<StepRow<'_>> =
        record.decisions.iter().map(|decision| StepRow { decision, own: &own }).collect();
    serde_json::to_string(&steps).unwrap_or_default()
}

/// Reads the chain of a record, whose own provider is given.
pub(in crate::store) fn parse(
    text: &str,
    id: Option<ProviderId>,
    name: Option<&Arc<str>>,
) -> Result<Vec<Decision>, serde_json::Error> {
    let rows: Vec<DecisionRow> = serde_json::from_str(text)?;
    let own = || (id, name.map_or_else(|| Arc::from(""), Arc::clone));
    let read = |DecisionRow(step, at_ms, detail, took_ms, status, provider, usage)| {
        let (provider_id, provider_name) = provider.unwrap_or_else(own);
        let detail = detail.map(Detail::text);
        Decision { provider_id, provider_name, step, detail, status, at_ms, took_ms, usage }
    };
    Ok(rows.into_iter().map(read).collect())
}

/// The provider of the record, which steps do not repeat.
struct Own<'r> {
    id: Option<ProviderId>,
    name: Option<&'r str>,
}

struct StepRow<'r> {
    decision: &'r Decision,
    own: &'r Own<'r>,
}

impl Serialize for StepRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Decision { provider_id, provider_name, step, detail, status, at_ms, took_ms, usage } =
            self.decision;
        let is_own = *provider_id == self.own.id && Some(&**provider_name) == self.own.name;
        let provider = (!is_own).then_some((provider_id, provider_name));
        let optional =
            [detail.is_some(), took_ms.is_some(), status.is_some(), !is_own, usage.is_some()];
        let length = 2 + optional.iter().rposition(|present| *present).map_or(0, |last| last + 1);
        let mut seq = serializer.serialize_seq(Some(length))?;
        seq.serialize_element(step)?;
        seq.serialize_element(at_ms)?;
        for place in 2..length {
            match place {
                2 => seq.serialize_element(&detail.as_deref().map(Detail::of))?,
                3 => seq.serialize_element(took_ms)?,
                4 => seq.serialize_element(status)?,
                5 => seq.serialize_element(&provider)?,
                _ => seq.serialize_element(usage)?,
            }
        }
        seq.end()
    }
}

#[derive(Deserialize)]
struct DecisionRow(
    DecisionStep,
    u64,
    #[serde(default)] Option<Detail>,
    #[serde(default)] Option<u64>,
    #[serde(default)] Option<u16>,
    #[serde(default)] Option<(Option<ProviderId>, Arc<str>)>,
    #[serde(default)] Option<Usage>,
);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Detail<T = Arc<str>> {
    /// The number of a fixed text.
    Reason(usize),
    Text(T),
}

impl<'r> Detail<&'r str> {
    fn of(text: &'r str) -> Self {
        REASONS.iter().position(|reason| *reason == text).map_or(Self::Text(text), Self::Reason)
    }
}

impl Detail {
    /// A later version may have more reasons than this one.
    fn text(self) -> Arc<str> {
        match self {
            Self::Text(text) => text,
            Self::Reason(number) => REASONS
                .get(number)
                .map_or_else(|| format!("reason {number}").into(), |reason| Arc::from(*reason)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(id: i64, name: &str, step: DecisionStep) -> Decision {
        Decision {
            provider_id: Some(ProviderId(id)),
            provider_name: name.into(),
            step,
            detail: None,
            status: None,
            at_ms: 0,
            took_ms: None,
            usage: None,
        }
    }

    #[test]
    fn a_chain_is_read_as_it_was_written() {
        let usage = Usage { input: 7, output: 9, ..Usage::default() };
        let decisions = vec![
            Decision {
                detail: Some("this session is already served by it".into()),
                ..decision(1, "first", DecisionStep::ChosenForSession)
            },
            Decision {
                status: Some(529),
                took_ms: Some(31),
                detail: Some("529 overloaded".into()),
                usage: Some(usage),
                ..decision(2, "other", DecisionStep::AttemptFailed)
            },
            Decision {
                provider_id: None,
                detail: Some("12 more".into()),
                ..decision(0, "(others)", DecisionStep::OtherGroup)
            },
            Decision {
                at_ms: 40,
                took_ms: Some(12),
                status: Some(200),
                ..decision(1, "first", DecisionStep::Succeeded)
            },
            // Renamed while the request ran.
            decision(1, "before", DecisionStep::Candidate),
        ];
        let name = Arc::from("first");
        let read = |text: &str| parse(text, Some(ProviderId(1)), Some(&name)).unwrap();
        let own = Own { id: Some(ProviderId(1)), name: Some("first") };
        let steps: Vec<StepRow<'_>> =
            decisions.iter().map(|decision| StepRow { decision, own: &own }).collect();
        let text = serde_json::to_string(&steps).unwrap();
        assert_eq!(read(&text), decisions, "{text}");
        let begin = r#"[["chosen_for_session",0,8],["attempt_failed",0,"529 overloaded",31,529,[2,"other"],{"#;
        assert!(text.starts_with(begin), "{text}");
        assert!(
            text.contains(r#"["other_group",0,"12 more",null,null,[null,"(others)"]]"#),
            "{text}"
        );
        assert!(text.contains(r#"["succeeded",40,null,12,200]"#), "{text}");
    }

    #[test]
    fn the_numbers_of_stored_reasons_stay() {
        let stored = [
            "none of its groups is among the key's",
            "disabled by an administrator",
            "disabled by the gateway: its probes failed",
            "the model is neither in its list nor redirected",
            "the model has no price at it, and unpriced models are refused",
            "requests of this format cannot be converted to its own",
            "one of its spending limits is reached",
            "it serves as many sessions as it may",
            "this session is already served by it",
            "the only one that can serve this request",
            "lowest priority number",
            "drawn by weight among its equals",
            "its priority number is higher",
            "needs conversion, others of its priority do not",
            "not drawn, stands in",
            "stands in for the session's provider",
        ];
        assert_eq!(REASONS[..stored.len()], stored);
        let later = parse(r#"[["chosen",0,4711]]"#, None, None).unwrap();
        assert_eq!(later[0].detail.as_deref(), Some("reason 4711"));
    }

    #[test]
    fn what_has_another_form_is_an_error() {
        for wrong in [
            "",
            "{}",
            "[1]",
            r#"[["chosen"]]"#,
            r#"[["chosen",0,null,"first"]]"#,
            r#"[["flown",0]]"#,
            r#"[{"step":"chosen"}]"#,
        ] {
            assert!(parse(wrong, None, None).is_err(), "{wrong}");
        }
    }
}
