//! The rules for what a target format cannot express: one table, which the documentation shows and
//! a test compares.
//!
//! Code that leaves something out, changes it or refuses it names the rule. So every rule in the
//! table has code, and all such code has a rule.

use super::Unsupported;
use crate::domain::format::WireFormat;
use crate::domain::format::WireFormat::{AltCli, Chat, Native, Responses};

/// What happens to the thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleVerdict {
    /// The request goes on without it.
    LeftOut,
    /// It is said in another way.
    Changed,
    /// 400, naming the field.
    Refused,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct RuleRow {
    /// The rule of this row.
    pub rule: Rule,
    /// The id in records and logs.
    pub id: &'static str,
    /// What happens to the part of the request.
    pub verdict: RuleVerdict,
    /// Targets that the rule is for.
    pub targets: &'static [WireFormat],
    /// The part of the request that it is about, as Markdown for docs/conversion.md.
    pub what: &'static str,
    /// The treatment of that part, as Markdown for docs/conversion.md.
    pub how: &'static str,
}

macro_rules! rules {
    ($($name:ident $id:literal $verdict:ident [$($target:ident)*] $what:literal $how:literal;)*) => {
        /// A rule's name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Rule {
            $(
                #[doc = concat!("For ", $what, ": ", $how, ".")]
                $name,
            )*
        }

        /// The whole table, in the order of [`Rule`].
        pub const TABLE: &[RuleRow] = &[$(RuleRow {
            rule: Rule::$name, id: $id, verdict: RuleVerdict::$verdict, targets: &[$($target,)*], what: $what, how: $how,
        },)*];
    };
}

rules! {
    TopK "top_k" LeftOut [Chat Responses] "`top_k`" "left out";
    Penalties "penalties" LeftOut [Native Responses Chat] "frequency and presence penalty" "left \
        out; for chat-compatible only for the models named under `effort` that can reason, which \
        refuse them";
    Seed "seed" LeftOut [Native Responses] "`seed`" "left out";
    Stop "stop_sequences" LeftOut [Responses Chat] "stop sequences" "left out: the reply may run \
        past them; for chat-compatible as penalties are";
    BlankStop "blank_stop_sequences" LeftOut [Native] "a stop sequence of white \
        space only" "left out: the service refuses it";
    ParallelTools "parallel_tools" LeftOut [AltCli] "at most one tool call at a time" "left out";
    Verbosity "verbosity" LeftOut [Native AltCli Chat] "verbosity" "left out; to chat-compatible \
        it is sent for models whose name begins with `gpt-` and a number from 5 on, or with `o` \
        and a number";
    VendorFields "vendor_fields" LeftOut [Native Responses Chat AltCli] "fields that only steer \
        one vendor's service: tier, log probabilities, logit bias, safety settings, labels, \
        truncation, context management, moderation, predictions and the like" "left out";
    CacheMarks "cache_marks" LeftOut [Responses Chat AltCli Native] "marks for the vendor's prompt \
        cache, cache key and \
        retention" "left out; a key or provider with a cache preference makes a native request ask \
                    for automatic caching; the cache key is kept between responses and \
                    chat-compatible (the latter for the models named above)";
    User "user" LeftOut [AltCli] "the end user's id" "left out";
    LongUser "long_user" Changed [Responses Chat] "an end user's id of more than 64 \
        characters" "its SHA-256 in hexadecimal is sent";
    Citations "citations" LeftOut [Native Responses Chat AltCli] "citations, annotations, titles \
        of text blocks" "left out, the text stays";
    ForeignReasoning "foreign_reasoning" LeftOut [Native Responses Chat AltCli] "reasoning in the history that another format's model gave, or whose proof is missing" "left out as a block; reasoning goes back to the format that it came from, with its proof";
    ThinkingOff "thinking_off" LeftOut [Native] "reasoning, where the service would refuse it: a \
        tool must be called (Claude before 5); before 4.7 also if `max_tokens` is 1024 or less, or \
        the tool calls being answered carry no signed thinking" "thinking is not asked for in this \
        request; an effort is, from 4.7 on";
    AdaptiveThinking "adaptive_thinking" Changed [Native] "a thinking budget, for Claude from 4.7 \
        on, which refuses it; or none, for those that always think" "adaptive thinking, with the \
        strongest effort whose budget is not above it; or the effort `low`";
    ForcedTool "forced_tool" Changed [Native] "a tool that must be called, for Claude Opus and \
        Sonnet from 5.5 on, Fable and Mythos from 5.1 on" "the model decides: the service refuses \
        the demand";
    AdaptiveSampling "adaptive_sampling" LeftOut [Native] "temperature, `top_p`, `top_k`, for \
        Claude from 4.7 on" "left out: the service refuses them";
    ThinkingSampling "thinking_sampling" LeftOut [Native] "temperature other than 1, `top_k`, \
        `top_p` below 0.95 together with thinking" "left out: the service refuses the pair";
    HighTemperature "high_temperature" Changed [Native] "a temperature above 1, which the other \
        formats allow up to 2" "1, the most that the service takes";
    TopPBesideTemperature "top_p_beside_temperature" LeftOut [Native] "`top_p` together with a \
        temperature, from responses and alt-cli, whose clients send both as \
        a habit" "left out: newer models of the service refuse the pair; from chat-compatible both \
                  are kept";
    ReasoningSampling "reasoning_sampling" LeftOut [Responses Chat] "temperature and `top_p` \
        together with reasoning, which some models do unless they are told not to" "left out for \
            responses, and for chat-compatible models named under `verbosity`: the service refuses \
            the pair";
    Effort "effort" Changed [Responses Chat] "a reasoning effort that the model does not take, \
        where its name begins with `gpt-` or `o` and a number, or `gpt-oss`: `gpt-5` takes none of \
        `none`, `xhigh` and `max`, `gpt-4o` no effort at all. Any effort beside functions, for \
        chat-compatible and `gpt-5.4` and later" "the strongest that it takes and that is not \
        above it, else the weakest; left out if it takes none; `none` beside functions, as the \
        service refuses the pair: a responses provider keeps the reasoning";
    MaxOutput "max_output" Changed [Native Responses Chat AltCli] "a limit of output tokens above \
        the model's, by `max_output_tokens` (or else `max_tokens`) of its price entry" "the model's";
    MinOutput "min_output" Changed [Responses] "a limit of fewer than 16 \
        tokens" "16, the least that the service takes";
    ThinkingBudget "thinking_budget" Changed [Native AltCli] "a thinking budget out of the \
        target's bounds" "native: at least 1024 and below `max_tokens`; alt-cli: at most 32768 for \
            models with `pro` in their name, else 24576; Gemini 2.5 Pro thinks with at least 128, \
            2.5 Flash-Lite with 512 unless it is told not to";
    ThinkingLevel "thinking_level" Changed [AltCli] "a thinking budget, or none, for Gemini from 3 \
        on, which takes levels and always thinks" "the strongest level whose budget is not above \
        it, of those that the model takes, else the weakest";
    VendorTools "vendor_tools" LeftOut [Native Responses Chat AltCli] "tools that one vendor runs \
        (code execution, file search, computer, shell, tool search, image generation, remote MCP, \
        maps, URL context, memory, text editor \
        and such)" "left out, and a choice that names one too";
    WebSearch "web_search" Changed [Native Responses AltCli] "the vendor's web search" "becomes the \
        target's own; its sources are not in the converted reply, nor its steps, unless they must \
        come back. To alt-cli it is left out beside functions, but for models that take both \
        (`takes_search_beside_functions`), clients of native and responses that show reasoning, \
        and requests that neither demand nor forbid calls: the service wants the steps back, and \
        these clients return them as they do [reasoning](#reasoning-across-formats). A responses \
        search without external access has no equal and is left out";
    SearchFields "web_search_fields" LeftOut [Native Responses AltCli] "fields of a web search that \
        the target has none for ([web search](#web-search))" "left out";
    WebSearchChat "web_search_chat" LeftOut [Chat] "the vendor's web search" "left out";
    VendorHistory "vendor_history" LeftOut [Native Responses Chat AltCli] "steps of vendor-run \
        tools, compaction, the trigger of one (`compaction_trigger`) and other items in the \
        history that only their vendor can read" "left out; the reply to a trigger is an ordinary \
        one, without a summary";
    ToolRemoval "tool_removal" LeftOut [Native Responses Chat AltCli] "a tool that the conversation \
        withdraws" "it stays on offer: the list of tools does not change within a session";
    ClearedSystem "cleared_system" LeftOut [Native Responses Chat AltCli] "an instruction for one \
        turn (`clear_at`), once a message of the user follows it" "left out, as its own service does";
    FreeTextTools "free_text_tools" Changed [Native Responses Chat AltCli] "tools that take free \
        text, perhaps by a grammar" "become functions with one string argument `input`, the \
            grammar is added to the description; calls are turned back";
    Namespaces "namespaces" Changed [Native Chat AltCli] "tools in a namespace" "the namespace goes before the name, joined by two underscores; calls are turned back";
    Names "tool_names" Changed [Native Responses Chat AltCli] "tool names of more than 64 \
        characters, or with characters other than letters, digits, `_` and `-`; for alt-cli also \
        names that begin with a digit or `-`" "shortened to a prefix and a hash in tools, choice \
        and history, after a `_` where the first character is refused; calls are turned back";
    CallIds "call_ids" Changed [Native Responses Chat AltCli] "ids of tool calls of more than 64 \
        characters, with other characters, or of an earlier call" "shortened to a prefix and a hash, or numbered (`call_0_2`), in call and result \
        alike; alt-cli calls without id get one by their position";
    AllowedTools "allowed_tools" Changed [Native Chat AltCli] "a choice among some of \
        the tools" "only those tools are sent; with the choice `any`/`required` if one must be \
                    called. To Claude from 5.1 on all are: another list would make the thinking \
                    of earlier turns void";
    NoToolChoice "no_tool_choice" Changed [Native] "tool choice `none` from \
        chat-compatible" "the choice is left unset; from other formats it is `none`";
    StrictTools "strict" Changed [Responses Chat Native] "strict schemas" "kept; where nothing was \
        said, `strict: false` is sent to responses, whose default is another; a structured output \
        is strict if its schema allows it; a tool of native is not strict if its schema has objects \
        that are meant to have members without a name, as the service takes closed ones only";
    SchemaKeywords "schema_keywords" Changed [Native] "keywords that the service does not take in \
        structured output and strict tools (bounds of numbers, lengths and counts; open \
        objects)" "left out of the schema, objects are closed with `additionalProperties: false`";
    SchemaDialect "schema_dialect" Changed [Native Responses Chat AltCli] "`$schema`, members that \
        are null; alt-cli's upper-case types, `nullable`, counts as \
        strings" "`$schema` and null members are left out (`default` and `const` may be null); \
                  schemas become plain JSON Schema, which alt-cli takes as `parametersJsonSchema`";
    JsonMode "json_mode" Changed [Native] "JSON output without a \
        schema" "a line is added to the instructions that asks for one JSON object and \
                 nothing else";
    SystemInside "system_inside" Changed [Native AltCli] "instructions in the middle of the \
        conversation" "added to the instructions before it, in order; Claude from 5 on and Opus \
        4.8 get it where it stands";
    SystemOrder "system_order" Changed [Chat Responses] "an instruction between a tool call and \
        its result" "moved behind the result";
    ResultOrder "result_order" Changed [Native Responses Chat AltCli] "messages between a tool \
        call and its result, or between the results of parallel calls" "moved behind the results";
    Alternation "alternation" Changed [Native AltCli Chat] "neighbouring messages of the \
        same role" "joined into one; for chat-compatible only those of the assistant of which one \
        has tool calls";
    FirstTurn "first_turn" Changed [Native AltCli] "a conversation that begins with the \
        assistant" "a user message `(continued)` goes before it";
    LastTurn "last_turn" Changed [Native] "a conversation that ends with the assistant, for Claude \
        from 4.6 on" "a user message `(continue)` goes after it: the service refuses to continue \
        an answer";
    EmptyText "empty_text" LeftOut [Native AltCli] "texts that are empty or only \
        white space" "left out: the services refuse them; white space at the end of a last \
                      assistant message is cut off";
    ResultMedia "result_media" Changed [Chat AltCli] "images and documents in a tool's \
        result" "chat-compatible: in a user message after the results; alt-cli: in parts after the \
                 result";
    ResultError "result_error" Changed [Responses Chat AltCli] "`is_error` of a tool's \
        result" "responses and chat-compatible: the text begins with `Error:`; alt-cli: member \
                 `error` of the response";
    PlainDocuments "plain_documents" Changed [Responses Chat AltCli Native] "documents that are plain text, search results" "become text, after their title";
    BadArguments "bad_arguments" Changed [Native AltCli] "arguments in the history that are not a \
        JSON object" "put into an object: `{\"value\": …}`";
    ReplyMedia "reply_media" LeftOut [Native Responses Chat AltCli] "images, audio and code runs \
        in a reply" "left out of the converted reply";
    FileIds "file_ids" Refused [Native Responses Chat AltCli] "files by a vendor's file id" "refused: only their own vendor can read them";
    DocumentUrl "document_url" Refused [Chat] "documents by address" "refused";
    AudioVideo "audio_video" Refused [Native Responses Chat] "audio and video" "refused; wav and mp3 go between chat-compatible and alt-cli";
    SeveralAnswers "several_answers" Refused [Native Responses Chat AltCli] "more than one answer \
        (`n`, `candidateCount`)" "refused";
    Stored "stored_state" Refused [Native Responses Chat AltCli] "state that the vendor keeps: \
        previous response, conversation, stored prompt, item reference, cached content, \
        background runs" "refused";
    LegacyFunctions "legacy_functions" Refused [Native Responses AltCli] "`functions` and `function_call`" "refused: `tools` says the same";
    Modalities "modalities" Refused [Native Responses Chat AltCli] "replies that are not text" "refused";
    ProofStandIn "proof_stand_in" Changed [AltCli] "tool calls in the history without the model's \
        proof of thought, where the model (`gemini-3` and later) \
        demands one" "the vendor's word for skipping the check is sent in its place";
    StopCount "stop_count" Refused [Chat AltCli] "more stop sequences than the target takes (4, \
        alt-cli 5)" "refused";
    CalledTools "called_tools" Changed [Native] "tool calls in the history of a request without \
        tools, for Bedrock's Converse" "the tools that were called are listed, with any arguments: \
        the service refuses the history without them";
    MediaUrl "media_url" Refused [Native] "images and documents by address, for Bedrock's \
        Converse" "refused: the service takes bytes";
    MediaType "media_type" Refused [Native] "attachments of a type that Bedrock's Converse does \
        not know" "refused";
    Unknown "unknown_parts" Refused [Native Responses Chat AltCli] "messages and parts of a type \
        that is not known here" "refused";
}

impl Rule {
    /// The rule's row in [`TABLE`].
    pub fn row(self) -> &'static RuleRow {
        // The macro writes rows and names in the same order; the test below checks it.
        &TABLE[self as usize]
    }

    /// The refusal that the rule prescribes, for the field at `field`.
    pub fn refuse(self, field: impl Into<String>) -> Unsupported {
        Unsupported::new(
            field,
            format!("this cannot be converted for the provider: {}", self.row().what),
        )
    }
}

/// The rules that one request needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rules {
    noted: u128,
    /// The target has marks for the prompt cache: a reader keeps them.
    pub keeps_marks: bool,
}

impl Rules {
    /// No rule yet, for a target with marks for the prompt cache.
    pub const fn keeping_marks() -> Self {
        Self { noted: 0, keeps_marks: true }
    }

    /// Adds a rule. A rule that is already there stays once.
    pub fn note(&mut self, rule: Rule) {
        self.noted |= 1 << (rule as u32);
    }

    /// Notes `rule` if `used`.
    pub fn note_if(&mut self, used: bool, rule: Rule) {
        if used {
            self.note(rule);
        }
    }

    /// Whether the rule was noted.
    pub const fn has(self, rule: Rule) -> bool {
        self.noted & (1 << (rule as u32)) != 0
    }

    /// Ids of the noted rules that leave a part out, in the table's order.
    pub fn left_out(self) -> Vec<&'static str> {
        self.ids(RuleVerdict::LeftOut)
    }

    /// Ids of the noted rules that change a part, in the table's order.
    pub fn changed(self) -> Vec<&'static str> {
        self.ids(RuleVerdict::Changed)
    }

    fn ids(self, verdict: RuleVerdict) -> Vec<&'static str> {
        TABLE
            .iter()
            .filter(|row| row.verdict == verdict && self.has(row.rule))
            .map(|row| row.id)
            .collect()
    }
}

/// The table as Markdown, for the documentation.
pub fn markdown() -> String {
    let mut text = String::from(
        "| rule | when the target is | what is asked for | what becomes of it \
         |\n|---|---|---|---|\n",
    );
    for row in TABLE {
        let targets: Vec<&str> = row.targets.iter().map(|target| target.as_str()).collect();
        let targets = if row.targets.len() == WireFormat::ALL.len() {
            "any".to_owned()
        } else {
            targets.join(", ")
        };
        text.push_str(&format!("| `{}` | {targets} | {} | {} |\n", row.id, row.what, row.how));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_where_their_names_point() {
        assert!(TABLE.len() <= 128, "the set of rules is 128 bits wide");
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.rule as usize, index);
            assert_eq!(row.rule.row().id, row.id);
            assert!(!row.targets.is_empty(), "{}", row.id);
            assert_eq!(TABLE.iter().filter(|other| other.id == row.id).count(), 1, "{}", row.id);
            let refused = row.how.starts_with("refused");
            assert_eq!(refused, row.verdict == RuleVerdict::Refused, "{}", row.id);
        }
    }

    #[test]
    fn sets_keep_what_is_noted() {
        let mut rules = Rules::default();
        rules.note(Rule::Names);
        rules.note_if(true, Rule::TopK);
        rules.note_if(false, Rule::Seed);
        assert_eq!((rules.left_out(), rules.changed()), (vec!["top_k"], vec!["tool_names"]));
        assert_eq!(markdown().lines().count(), TABLE.len() + 2);
    }
}
