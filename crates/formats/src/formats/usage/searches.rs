//! alt-cli: the searches that a reply shows, each query once. They stand in the sources of a text,
//! and in the steps of searches beside functions. Events repeat them.

use super::tag::UsageTag;
use super::tally::hash;
use crate::formats::scan::{Found, Kind, MemberKey, Node, key};

/// A reply has a few queries. This many are told apart.
const MAX_QUERIES: usize = 200;

/// A step that the service runs, of any of its tools.
pub(super) const STEP: Node<UsageTag> = Node::object(&STEP_KEYS).tagged(UsageTag::StepEnd);
static STEP_KEYS: [MemberKey<UsageTag>; 3] = [
    key("toolType", Node::value(UsageTag::StepType, 32)),
    key("tool_type", Node::value(UsageTag::StepType, 32)),
    key("args", Node::object(&ARGUMENT_KEYS)),
];
static ARGUMENT_KEYS: [MemberKey<UsageTag>; 1] = [key("queries", Node::array(&QUERY))];
static QUERY: Node<UsageTag> = Node::value(UsageTag::StepQuery, 512);

/// The queries of a reply so far, as hashes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Queries {
    known: Vec<u64>,
    /// Of the step that is being read, and whether it searches for images; `None` if it is no
    /// search.
    step: Vec<u64>,
    step_is_image: Option<bool>,
}

impl Queries {
    /// How many searches of pages and of images are new.
    pub(super) fn found(&mut self, found: &Found<'_, UsageTag>) -> [u64; 2] {
        match found.tag {
            UsageTag::StepType => {
                self.step_is_image = match found.text {
                    b"GOOGLE_SEARCH_WEB" => Some(false),
                    b"GOOGLE_SEARCH_IMAGE" => Some(true),
                    _ => None,
                }
            }
            UsageTag::StepQuery if self.step.len() < MAX_QUERIES => {
                self.step.extend(hash_of(found));
            }
            UsageTag::StepEnd => {
                let (step, is_image) = (std::mem::take(&mut self.step), self.step_is_image.take());
                let all = step.into_iter().map(|query| is_image.map(|kind| self.add(query, kind)));
                return all.flatten().fold([0; 2], |[a, b], [c, d]| [a + c, b + d]);
            }
            UsageTag::Query | UsageTag::ImageQuery => {
                let is_image = found.tag == UsageTag::ImageQuery;
                return hash_of(found).map_or([0; 2], |query| self.add(query, is_image));
            }
            _ => {}
        }
        [0; 2]
    }

    fn add(&mut self, query: u64, is_image: bool) -> [u64; 2] {
        // The same words may be searched for in pages and in images.
        let query = query ^ u64::from(is_image);
        if self.known.len() >= MAX_QUERIES || self.known.contains(&query) {
            return [0; 2];
        }
        self.known.push(query);
        [u64::from(!is_image), u64::from(is_image)]
    }
}

fn hash_of(found: &Found<'_, UsageTag>) -> Option<u64> {
    let is_query = found.kind == Kind::String && !found.text.trim_ascii().is_empty();
    is_query.then(|| hash(found.text))
}

#[cfg(test)]
mod tests {
    use crate::domain::format::WireFormat;
    use crate::domain::part::PartKind;
    use crate::formats::usage::UsageReader;

    #[test]
    fn searches_beside_functions_are_in_steps_and_count_once() {
        let mut reader = UsageReader::of_events(WireFormat::AltCli);
        for event in [
            r#"{"candidates":[{"content":{"parts":[
                {"toolCall":{"args":{"queries":["a","b"]},"toolType":"GOOGLE_SEARCH_WEB"}},
                {"tool_call":{"tool_type":"GOOGLE_SEARCH_IMAGE","args":{"queries":["a"]}}},
                {"toolCall":{"toolType":"GOOGLE_MAPS","args":{"queries":["c"]}}},
                {"functionCall":{"name":"f","args":{"queries":["d"]}}}]}}]}"#,
            r#"{"candidates":[{"finishReason":"STOP","groundingMetadata":{
                "webSearchQueries":["b","e"]}}],"usageMetadata":{"promptTokenCount":9}}"#,
        ] {
            reader.event(event.as_bytes());
        }
        let bill = reader.bill(7);
        assert_eq!(bill.usage.web_searches, 3, "a, b and e");
        let images = bill.parts.iter().find(|part| part.kind == PartKind::ImageSearch);
        assert_eq!(images.map(|part| part.quantity), Some(1));
    }
}
