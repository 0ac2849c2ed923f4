//! Collects what the scanner finds in a request body, and refuses members of the wrong type.

use std::ops::Range;

use bytes::Bytes;

use super::place::PeekPlace;
use super::{Peek, StreamOptions};
use crate::domain::feature::Feature;
use crate::domain::feature_policy::FeatureUse;
use crate::domain::fee::{Fee, TOOLS};
use crate::domain::named_model::NamedModel;
use crate::formats::bad_request::BadRequest;
use crate::formats::conversation::signature::is_foreign;
use crate::formats::scan::{Found, Kind};

/// Models in one request beside its own. Each is compared with those before it.
const MOST_NAMED: usize = 64;

#[derive(Default)]
pub(super) struct PeekReader {
    peek: Box<Peek>,
    /// One bit for each place seen.
    seen: u64,
    bad: Option<BadRequest>,
    include_usage: Option<(bool, Range<usize>)>,
    /// Of the current block: media by address or id, and whether they are images.
    remote: usize,
    is_image: bool,
}

impl PeekReader {
    pub(super) fn found(&mut self, found: &Found<'_, PeekPlace>) {
        if let Some(name) = found.tag.unique() {
            let bit = 1 << found.tag as u64;
            if !found.exact && !found.tag.is_among_free_names() {
                self.refuse(name, "a member's name differs from this one in letter case only");
            } else if self.seen & bit != 0 {
                self.refuse(name, "this member occurs more than once");
            }
            self.seen |= bit;
        }
        match found.tag {
            PeekPlace::Text | PeekPlace::SystemText | PeekPlace::Role => self.content(found),
            PeekPlace::Media | PeekPlace::ImageUrl | PeekPlace::Remote | PeekPlace::Kind => {
                self.medium(found)
            }
            PeekPlace::Proof => self.peek.has_foreign_proof |= is_foreign(found.text),
            PeekPlace::InnerBlock => self.block_ends(),
            PeekPlace::Fallback => self.named(found, NamedModel::FALLBACKS),
            PeekPlace::ToolModel => self.named(found, NamedModel::TOOLS),
            PeekPlace::ToolTokens => {
                self.peek.tool_bounds.tokens = self.peek.tool_bounds.tokens.max(found.as_u64());
            }
            PeekPlace::ToolUses => {
                self.peek.tool_bounds.uses = self.peek.tool_bounds.uses.max(found.as_u64());
            }
            PeekPlace::Speed | PeekPlace::FallbackSpeed => {
                self.peek.is_fast |= found.text == b"fast";
                self.member(found);
            }
            PeekPlace::Models => self.named(found, "models"),
            PeekPlace::PluginModel => self.named(found, "plugins[].model"),
            PeekPlace::EditModel => self.named(found, "context_management.edits[].model"),
            PeekPlace::CompactionModel => self.named(found, "compaction.model"),
            PeekPlace::ModerationModel => self.named(found, "moderation.model"),
            PeekPlace::RoutedModel => self.named(found, "generationConfig.routingConfig"),
            // Of most tools.
            PeekPlace::ToolType if matches!(found.text, b"function" | b"custom") => {}
            PeekPlace::Message | PeekPlace::AltMessage => {
                self.block_ends();
                let user_if_unsaid = found.tag == PeekPlace::AltMessage;
                self.peek.prompt.message_ends(found.span.clone(), found.len, user_if_unsaid);
                self.peek.texts.end_of_message(user_if_unsaid);
                self.peek.pieces.block_ends(found.span.end);
            }
            PeekPlace::Tools => self.peek.prompt.tools = Some(found.span.clone()),
            PeekPlace::CacheMark => self.peek.prompt.mark(found.span.clone()),
            PeekPlace::Block => {
                self.block_ends();
                self.peek.prompt.block_ends(found.len);
                self.peek.pieces.block_ends(found.span.end);
            }
            _ => self.member(found),
        }
    }

    fn content(&mut self, found: &Found<'_, PeekPlace>) {
        if found.tag == PeekPlace::Text {
            self.peek.prompt.content(found);
        }
        if found.kind != Kind::String {
            return;
        }
        match found.tag {
            PeekPlace::Role => {
                self.peek.prompt.role(found.text);
                self.peek.texts.role(found.text);
            }
            PeekPlace::SystemText => self.peek.texts.add_system(inside(found)),
            PeekPlace::Text => self.peek.texts.text(inside(found)),
            _ => {}
        }
    }

    fn medium(&mut self, found: &Found<'_, PeekPlace>) {
        if found.kind != Kind::String || found.span.len() <= 2 {
            return;
        }
        match found.tag {
            PeekPlace::Kind => {
                self.peek.prompt.kind(found.text == b"text");
                self.is_image |=
                    found.text.starts_with(b"image") || found.text.starts_with(b"input_image");
            }
            PeekPlace::Remote => self.remote += 1,
            // What is shorter than this holds no medium.
            PeekPlace::Media if found.span.len() <= 256 => {}
            _ => {
                self.peek.media_len += found.span.len();
                self.peek.media_count += 1;
            }
        }
    }

    /// Only now the kind of the linked media is known.
    fn block_ends(&mut self) {
        let count = std::mem::take(&mut self.remote);
        let images = std::mem::take(&mut self.is_image);
        *(if images { &mut self.peek.media_count } else { &mut self.peek.remote_count }) += count;
    }

    fn member(&mut self, found: &Found<'_, PeekPlace>) {
        match found.tag {
            PeekPlace::Body => self.body(found),
            PeekPlace::Model => self.model(found),
            PeekPlace::Stream => match (found.kind, found.as_bool()) {
                (Kind::Null, _) => {}
                (_, Some(stream)) => self.peek.stream = Some(stream),
                _ => self.refuse("stream", "a boolean is expected"),
            },
            PeekPlace::Store => self.peek.is_not_stored = found.as_bool() == Some(false),
            PeekPlace::Diagnostics => self.peek.asks_for_diagnosis = true,
            PeekPlace::Safeguards => self.peek.safeguards = Some(found.span.clone()),
            PeekPlace::Messages => self.peek.has_messages = self.is_array(found),
            PeekPlace::Contents => self.peek.has_contents = self.is_array(found),
            PeekPlace::Input => match found.kind {
                Kind::String => {
                    self.peek.has_input = true;
                    self.peek.input_is_text = true;
                    self.peek.prompt.message_ends(found.span.clone(), 0, true);
                    self.peek.texts.whole_input(inside(found));
                }
                Kind::Array => self.peek.has_input = true,
                _ => self.refuse("input", "an array or a string is expected"),
            },
            PeekPlace::Request => self.peek.wrapped = found.kind == Kind::Object,
            PeekPlace::InnerModel => self.inner_model(found),
            PeekPlace::System | PeekPlace::Instructions | PeekPlace::SystemInstruction => {
                self.peek.prompt.system(found);
                if found.kind == Kind::String {
                    self.peek.texts.add_system(inside(found));
                }
            }
            PeekPlace::MaxTokens
            | PeekPlace::MaxOutputTokens
            | PeekPlace::MaxCompletionTokens
            | PeekPlace::AltMaxOutputTokens => {
                self.max_tokens(found);
            }
            PeekPlace::Choices | PeekPlace::AltChoices => {
                self.bound(found);
            }
            PeekPlace::StreamOptions | PeekPlace::IncludeUsage => self.stream_options(found),
            PeekPlace::Prompt => self.peek.has_prompt = found.kind == Kind::Object,
            // Services also accept other values as true.
            PeekPlace::Background => {
                self.peek.background = is_on(found);
                self.uses(found);
            }
            place if place.feature().is_some() => self.uses(found),
            _ => self.hint(found),
        }
    }

    fn body(&mut self, found: &Found<'_, PeekPlace>) {
        if found.kind == Kind::Object {
            self.peek.object_start = found.span.start;
            self.peek.object_empty = found.len == 0;
        } else {
            self.bad = Some(BadRequest {
                field: None,
                message: "the request body must be a JSON object".to_owned(),
            });
        }
    }

    fn model(&mut self, found: &Found<'_, PeekPlace>) {
        let problem = match found.as_str() {
            None if found.kind == Kind::String => "the name is too long",
            None => "a string is expected",
            Some(name) if name.trim().is_empty() => "the name is empty",
            Some(name) if name.chars().any(char::is_control) => "the name holds control characters",
            Some(name) => {
                self.peek.model = Some(name.into_owned());
                self.peek.model_span = Some(found.span.clone());
                return;
            }
        };
        self.refuse("model", problem);
    }

    /// A further model. Values of other types name none, and neither do empty ones.
    fn named(&mut self, found: &Found<'_, PeekPlace>, member: &'static str) {
        if found.kind != Kind::String {
            return;
        }
        let Some(name) = found.as_str() else {
            return self.refuse(member, "the name is too long");
        };
        let is_known = |named: &NamedModel| named.member == member && named.name == name;
        if name.trim().is_empty() || self.peek.named.iter().any(is_known) {
            return;
        }
        if name.chars().any(char::is_control) {
            return self.refuse(member, "the name holds control characters");
        }
        if self.peek.named.len() >= MOST_NAMED {
            return self.refuse(member, "the request names too many models");
        }
        self.peek.named.push(NamedModel { member, name: name.into_owned() });
    }

    /// Clients write it as a resource's name. One of the wrong type is ignored.
    fn inner_model(&mut self, found: &Found<'_, PeekPlace>) {
        let name = found.as_str().filter(|name| !name.chars().any(char::is_control));
        let name = name.map(|name| name.trim_start_matches("models/").to_owned());
        self.peek.inner_model = name.filter(|name| !name.trim().is_empty());
    }

    fn max_tokens(&mut self, found: &Found<'_, PeekPlace>) {
        // The old and the new name may both be present: the higher one is what can be spent.
        self.peek.max_tokens = self.peek.max_tokens.max(self.bound(found));
    }

    /// Notes a bound on the reply; its value, unless it is `null`.
    fn bound(&mut self, found: &Found<'_, PeekPlace>) -> Option<u64> {
        if found.kind == Kind::Null {
            return None;
        }
        let Some(bound) = found.as_u64() else {
            self.refuse(found.tag.unique().unwrap_or_default(), "a whole number is expected");
            return None;
        };
        let bounds = &mut self.peek.bounds;
        let place = match found.tag {
            PeekPlace::MaxOutputTokens => &mut bounds.max_output_tokens,
            PeekPlace::MaxCompletionTokens => &mut bounds.max_completion_tokens,
            PeekPlace::AltMaxOutputTokens => &mut bounds.alt_max_tokens,
            PeekPlace::Choices => &mut bounds.choices,
            PeekPlace::AltChoices => &mut bounds.alt_choices,
            _ => &mut bounds.max_tokens,
        };
        *place = Some(bound);
        Some(bound)
    }

    fn stream_options(&mut self, found: &Found<'_, PeekPlace>) {
        if found.tag == PeekPlace::IncludeUsage {
            self.include_usage = Some((found.as_bool().unwrap_or(false), found.span.clone()));
            return;
        }
        let is_null = found.kind == Kind::Null;
        if !is_null && found.kind != Kind::Object {
            self.refuse("stream_options", "an object is expected");
            return;
        }
        let (include_usage, span) =
            self.include_usage.take().map_or((false, None), |(on, span)| (on, Some(span)));
        self.peek.stream_options = Some(StreamOptions {
            span: found.span.clone(),
            is_null,
            is_empty: found.len == 0,
            include_usage,
            include_usage_span: span,
        });
    }

    /// Session hints of the wrong type are ignored, and no reason to refuse.
    fn hint(&mut self, found: &Found<'_, PeekPlace>) {
        let place = match found.tag {
            PeekPlace::MetadataUserId => &mut self.peek.metadata_user_id,
            PeekPlace::MetadataSessionId | PeekPlace::SessionId => {
                &mut self.peek.metadata_session_id
            }
            PeekPlace::PromptCacheKey => &mut self.peek.prompt_cache_key,
            PeekPlace::PreviousResponseId => &mut self.peek.previous_response_id,
            PeekPlace::ThreadMessage => &mut self.peek.thread_message,
            _ => return,
        };
        if let Some(text) = found.as_str().filter(|t| !t.is_empty()) {
            *place = Some(text.into_owned());
        }
    }

    /// Notes a feature, unless the value only says what is usual.
    fn uses(&mut self, found: &Found<'_, PeekPlace>) {
        let Some((of_member, member)) = found.tag.feature() else { return };
        if !is_on(found) {
            return;
        }
        let word = found.as_str();
        let word = word.as_deref().unwrap_or_default();
        let feature = match found.tag {
            PeekPlace::ServiceTier if is_usual(word) => return,
            PeekPlace::Speed | PeekPlace::FallbackSpeed
                if word.eq_ignore_ascii_case("standard") =>
            {
                return;
            }
            PeekPlace::ToolType => match Feature::of_tool_type(word) {
                Some(feature) => feature,
                None => return,
            },
            PeekPlace::ShellEnvironment if !word.starts_with("container") => return,
            // The size stands in it.
            PeekPlace::Container if found.kind == Kind::Object => return,
            PeekPlace::PluginId if word == "web" => Feature::WebSearch,
            _ => of_member,
        };
        let fee = match found.tag {
            PeekPlace::Container => Fee::of_container(None),
            PeekPlace::ContainerMemory => Fee::of_container(Some(word)),
            PeekPlace::ToolType => feature.fee(word),
            _ => feature.fee(member.rsplit('.').next().unwrap_or(member)),
        };
        let used = FeatureUse::new(feature, member, fee);
        let features = &mut self.peek.features;
        let same = |one: &&mut FeatureUse| one.feature == feature && one.fee.is_same_tool(fee);
        match features.iter_mut().find(same) {
            None => features.push(used),
            // The size of a container goes before the usual one.
            Some(one) if fee != Fee::Container(TOOLS) => *one = used,
            Some(_) => {}
        }
    }

    fn is_array(&mut self, found: &Found<'_, PeekPlace>) -> bool {
        if found.kind != Kind::Array {
            self.refuse(found.tag.unique().unwrap_or_default(), "an array is expected");
        }
        found.kind == Kind::Array
    }

    fn refuse(&mut self, field: &str, message: &str) {
        if self.bad.is_none() {
            self.bad = Some(BadRequest::field(field, message));
        }
    }

    pub(super) fn finish(mut self, chunks: &[Bytes]) -> Result<Box<Peek>, BadRequest> {
        self.peek.body_len = chunks.iter().map(Bytes::len).sum();
        self.peek.pieces.body_ends(self.peek.body_len);
        if self.peek.wrapped && self.peek.model.is_none() {
            self.peek.model = self.peek.inner_model.clone();
        }
        self.bad.map_or(Ok(self.peek), Err)
    }
}

/// The span of a string without its quotes.
const fn inside(found: &Found<'_, PeekPlace>) -> Range<usize> {
    found.span.start + 1..found.span.end - 1
}

/// Whether the value asks for something: services also accept other values as true.
fn is_on(found: &Found<'_, PeekPlace>) -> bool {
    let is_empty = found.kind == Kind::Array && found.len == 0;
    found.kind != Kind::Null && found.as_bool() != Some(false) && !is_empty
}

/// The tier that the provider serves without being asked, or leaves to its own settings.
fn is_usual(tier: &str) -> bool {
    let usual = ["auto", "default", "standard", "standard_only", "service_tier_standard"];
    usual.iter().any(|one| tier.eq_ignore_ascii_case(one))
}
