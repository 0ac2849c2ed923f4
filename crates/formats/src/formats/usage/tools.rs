//! The tools that a provider ran for a reply, where its tokens do not contain them: what they used,
//! as parts of the bill.

use std::sync::Arc;

use super::tally::{Figure, UsageTally};
use crate::domain::part::{Part, PartKind};
use crate::domain::usage::Usage;

/// What is known of the tools. A reply without any has none.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Tools {
    /// responses: the tool of the list that is being read, and the model of the one for images.
    pub(super) is_image: bool,
    pub(super) named: Option<Arc<str>>,
    image_model: Option<Arc<str>>,
    /// responses: hashes of the containers in which code ran.
    containers: Vec<u64>,
    /// responses: searches in files, and images.
    pub(super) files: u64,
    pub(super) images: u64,
    /// native: pages that were fetched, and code that ran.
    pub(super) fetches: u64,
    pub(super) executions: u64,
    /// alt-cli: searches for images, and whether the reply is based on a map.
    pub(super) image_searches: u64,
    pub(super) has_map: bool,
}

/// A reply has a few containers.
const MOST: usize = 100;

impl Tools {
    /// One of the request's tools, as the reply repeats them.
    pub(super) fn tool_ends(&mut self) {
        let named = self.named.take();
        if std::mem::take(&mut self.is_image) && named.is_some() {
            self.image_model = named;
        }
    }

    /// Code ran in a container.
    pub(super) fn container(&mut self, hash: u64) {
        if self.containers.len() < MOST && !self.containers.contains(&hash) {
            self.containers.push(hash);
        }
    }
}

/// Adds the parts of the tools that the reply used.
pub(super) fn add(tally: &UsageTally, parts: &mut Vec<Part>) {
    let nothing = Tools::default();
    let tools = tally.tools.as_deref().unwrap_or(&nothing);
    let image = images(tally);
    if image != Usage::default() {
        parts.push(Part::new(PartKind::ImageGeneration, tools.image_model.clone(), image));
    } else if tools.images > 0 {
        let model = tools.image_model.clone();
        parts.push(Part { model, ..Part::calls(PartKind::ImageGeneration, tools.images) });
    }
    for (kind, quantity) in [
        (PartKind::CodeInterpreter, tools.containers.len() as u64),
        (PartKind::FileSearch, tools.files),
        (PartKind::ImageSearch, tools.image_searches),
        (PartKind::Maps, tools.has_map.into()),
        (PartKind::CodeExecution, tools.executions),
        (PartKind::WebFetch, tools.fetches),
    ] {
        if quantity > 0 {
            let free = kind == PartKind::WebFetch;
            parts.push(Part { free, ..Part::calls(kind, quantity) });
        }
    }
}

/// responses: the tokens of the model that made images.
fn images(tally: &UsageTally) -> Usage {
    let figure = |figure| tally.figures.of(figure);
    let all = figure(Figure::DrawnInput);
    let cache_read = figure(Figure::DrawnCached).min(all);
    let image_cache_read = figure(Figure::DrawnCachedImage).min(cache_read);
    let input = all - cache_read;
    let output = figure(Figure::DrawnOutput);
    let image_input = figure(Figure::DrawnInputImage).saturating_sub(image_cache_read);
    Usage {
        input,
        output,
        cache_read,
        image_cache_read,
        image_input: image_input.min(input),
        // Without details they are images.
        image_output: tally.figures.get(Figure::DrawnOutputImage).unwrap_or(output).min(output),
        ..Usage::default()
    }
}
