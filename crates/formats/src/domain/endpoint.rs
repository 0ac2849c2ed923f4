//! The endpoints beside the replies of the four formats: embeddings, images, sound and others.
//!
//! [`ENDPOINTS`] is the one table of them. Routing, the records' features, the request to a
//! provider, the bill, the mock and docs/endpoints.md follow it. A new endpoint is a row here and a
//! case in `tests/proxy/endpoints`.

use std::sync::Arc;

use super::batch::BatchAsk;
use super::feature::Feature;
use super::format::WireFormat;

/// One endpoint.
#[derive(Debug, PartialEq, Eq)]
pub struct ApiEndpoint {
    /// Its name in traces and documents.
    pub name: &'static str,
    /// The path; in alt-cli the action after the model's name.
    pub path: &'static str,
    /// Whose clients call it: their errors have this format.
    pub format: WireFormat,
    /// The feature by which records allow and deny it.
    pub feature: Feature,
    /// What the body is.
    pub body: EndpointBody,
    /// The model of a request that names none; otherwise it must name one.
    pub default_model: Option<&'static str>,
    /// Where the reply has its figures.
    pub figures: ReplyFigures,
    /// What is charged if the price is per unit, or the provider reports no tokens.
    pub unit: Unit,
    /// One line for people.
    pub doc: &'static str,
}

/// What the body of a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointBody {
    /// A JSON object.
    Json,
    /// `multipart/form-data`.
    Form,
    /// Any: it passes unread.
    Any,
}

/// Where a reply has its figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyFigures {
    /// As a reply of this format.
    OfFormat(WireFormat),
    /// In `usage`, `usageMetadata` or `meta`, under any of their names.
    Own,
}

/// What a request to an endpoint is charged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Tokens alone, estimated from the request's size without a report.
    Tokens,
    /// Images: those of the reply, or else as many as the request asks for.
    Images,
    /// Characters of the text that is spoken.
    Characters,
    /// Seconds of sound: as reported, or else estimated from the file's size.
    Seconds,
    /// Searches, as reported, or else one.
    Searches,
    /// The results of a batch, once it has ended.
    Batch,
    /// Nothing.
    Free,
}

const ROW: ApiEndpoint = ApiEndpoint {
    name: "",
    path: "",
    format: WireFormat::Chat,
    feature: Feature::Embeddings,
    body: EndpointBody::Json,
    default_model: None,
    figures: ReplyFigures::Own,
    unit: Unit::Tokens,
    doc: "",
};

/// Every endpoint.
pub static ENDPOINTS: [ApiEndpoint; 20] = [
    ApiEndpoint {
        name: "embeddings",
        path: "/v1/embeddings",
        doc: "Embeddings of texts. An alt-cli provider serves them too: the request is converted.",
        ..ROW
    },
    ApiEndpoint {
        name: "embed_content",
        path: "embedContent",
        format: WireFormat::AltCli,
        doc: "The embedding of one content. Converted for OpenAI's form, if it has only texts.",
        ..ROW
    },
    ApiEndpoint {
        name: "batch_embed_contents",
        path: "batchEmbedContents",
        format: WireFormat::AltCli,
        doc: "Embeddings of several contents. Converted likewise.",
        ..ROW
    },
    ApiEndpoint {
        name: "rerank",
        path: "/v1/rerank",
        feature: Feature::Rerank,
        unit: Unit::Searches,
        doc: "Documents in the order of their relevance, in Cohere's, Jina's or Voyage's form.",
        ..ROW
    },
    ApiEndpoint {
        name: "moderations",
        path: "/v1/moderations",
        feature: Feature::Moderations,
        default_model: Some("omni-moderation-latest"),
        doc: "Whether texts and images are harmful.",
        ..ROW
    },
    ApiEndpoint {
        name: "completions",
        path: "/v1/completions",
        feature: Feature::Completions,
        figures: ReplyFigures::OfFormat(WireFormat::Chat),
        doc: "The continuation of a prompt, streamed or not.",
        ..ROW
    },
    ApiEndpoint {
        name: "image_generation",
        path: "/v1/images/generations",
        feature: Feature::Images,
        unit: Unit::Images,
        doc: "Images from a prompt, streamed or not.",
        ..ROW
    },
    ApiEndpoint {
        name: "image_edit",
        path: "/v1/images/edits",
        feature: Feature::Images,
        body: EndpointBody::Form,
        unit: Unit::Images,
        doc: "Images from images and a prompt, streamed or not.",
        ..ROW
    },
    ApiEndpoint {
        name: "image_variation",
        path: "/v1/images/variations",
        feature: Feature::Images,
        body: EndpointBody::Form,
        unit: Unit::Images,
        doc: "Variations of an image.",
        ..ROW
    },
    ApiEndpoint {
        name: "predict",
        path: "predict",
        format: WireFormat::AltCli,
        feature: Feature::Images,
        unit: Unit::Images,
        doc: "Images from a prompt by Google's Imagen models.",
        ..ROW
    },
    ApiEndpoint {
        name: "speech",
        path: "/v1/audio/speech",
        feature: Feature::Audio,
        unit: Unit::Characters,
        doc: "Speech from a text: sound, or a stream of events.",
        ..ROW
    },
    ApiEndpoint {
        name: "transcription",
        path: "/v1/audio/transcriptions",
        feature: Feature::Audio,
        body: EndpointBody::Form,
        unit: Unit::Seconds,
        doc: "The text of a recording, streamed or not.",
        ..ROW
    },
    ApiEndpoint {
        name: "translation",
        path: "/v1/audio/translations",
        feature: Feature::Audio,
        body: EndpointBody::Form,
        unit: Unit::Seconds,
        doc: "The text of a recording, in English.",
        ..ROW
    },
    ApiEndpoint {
        name: "compact",
        path: "/v1/responses/compact",
        format: WireFormat::Responses,
        feature: Feature::Compact,
        figures: ReplyFigures::OfFormat(WireFormat::Responses),
        doc: "A shortened conversation, which only its provider can read.",
        ..ROW
    },
    ApiEndpoint {
        name: "message_batch",
        path: "/v1/messages/batches",
        format: WireFormat::Native,
        feature: Feature::Batches,
        default_model: Some(""),
        unit: Unit::Batch,
        doc: "A batch of messages, which the body has.",
        ..ROW
    },
    ApiEndpoint {
        name: "batch",
        path: "/v1/batches",
        feature: Feature::Batches,
        default_model: Some(""),
        unit: Unit::Batch,
        doc: "A batch of requests, which an uploaded file has.",
        ..ROW
    },
    ApiEndpoint {
        name: "file",
        path: "/v1/files",
        feature: Feature::Files,
        body: EndpointBody::Form,
        default_model: Some(""),
        unit: Unit::Free,
        doc: "A file for batches and other requests, or of Anthropic's form for messages.",
        ..ROW
    },
    ApiEndpoint {
        name: "batch_generate_content",
        path: "batchGenerateContent",
        format: WireFormat::AltCli,
        feature: Feature::Batches,
        unit: Unit::Batch,
        doc: "A batch of requests, which the body or an uploaded file has.",
        ..ROW
    },
    ApiEndpoint {
        name: "async_batch_embed_content",
        path: "asyncBatchEmbedContent",
        format: WireFormat::AltCli,
        feature: Feature::Batches,
        unit: Unit::Batch,
        doc: "A batch of embeddings, whose contents the body or an uploaded file has.",
        ..ROW
    },
    ApiEndpoint {
        name: "upload",
        path: "/upload/v1beta/files",
        format: WireFormat::AltCli,
        feature: Feature::Files,
        body: EndpointBody::Any,
        default_model: Some(""),
        unit: Unit::Free,
        doc: "A file for batches and other requests of Google's form.",
        ..ROW
    },
];

/// The upload of a file by a client of Anthropic's, at the path of OpenAI's.
pub static NATIVE_FILE: ApiEndpoint = ApiEndpoint {
    name: "native_file",
    path: "/v1/files",
    format: WireFormat::Native,
    feature: Feature::Files,
    body: EndpointBody::Form,
    default_model: Some(""),
    unit: Unit::Free,
    doc: "A file for messages.",
    ..ROW
};

impl ApiEndpoint {
    /// The endpoint at this path or of this action.
    pub fn of(path: &str) -> Option<&'static Self> {
        ENDPOINTS.iter().find(|endpoint| endpoint.path == path)
    }

    /// Whether it is called by an action on a model, such as `:embedContent`.
    pub const fn is_action(&self) -> bool {
        matches!(self.format, WireFormat::AltCli) && !self.is_upload()
    }

    /// Whether it takes a file in the pieces and by the headers of Google's uploads.
    pub const fn is_upload(&self) -> bool {
        matches!(self.body, EndpointBody::Any)
    }

    /// Whether its price is that of units and of the request's own tokens, not of a reply's text.
    pub fn has_units(&self) -> bool {
        self.figures == ReplyFigures::Own && !self.is_held()
    }

    /// Whether what it makes is held by the provider's account for the key: a batch or a file.
    pub const fn is_held(&self) -> bool {
        matches!(self.unit, Unit::Batch | Unit::Free)
    }

    /// Whether its replies may be sound or plain text.
    pub fn has_sound(&self) -> bool {
        self.feature == Feature::Audio
    }

    /// Whether its replies are the embeddings of OpenAI or Google, which can be converted.
    pub fn embeds(&self) -> bool {
        self.feature == Feature::Embeddings
    }
}

/// What a request to an endpoint asks for, as far as its price depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointAsk {
    /// The endpoint.
    pub endpoint: &'static ApiEndpoint,
    /// How much, in the endpoint's unit.
    pub quantity: u64,
    /// Whether that is exact, not estimated.
    pub is_exact: bool,
    /// How many answers completions have at most, for the bound on each.
    pub answers: u64,
    /// The reply is to be a stream, by another member than `stream`.
    pub streams: bool,
    /// Price entries of this size and quality, without the model's name: the most exact one first.
    pub variants: Vec<String>,
    /// The requests of a batch, or of a file for one.
    pub batch: Option<Arc<BatchAsk>>,
}

impl EndpointAsk {
    /// The upload of a file that has requests for a batch.
    pub fn of_file(endpoint: &'static ApiEndpoint, batch: BatchAsk) -> Self {
        Self {
            endpoint,
            quantity: 0,
            is_exact: true,
            answers: 1,
            streams: false,
            variants: Vec::new(),
            batch: Some(Arc::new(batch)),
        }
    }
}
