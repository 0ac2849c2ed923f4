//! The built-in price table.

use tollgate::config;

#[test]
fn the_built_in_prices_can_be_read_exactly_and_hold_nothing_else() {
    let table: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(config::BUILT_IN_PRICES).unwrap();
    assert!(table.len() >= 300, "{}", table.len());
    let facts = [
        "litellm_provider",
        "mode",
        "source",
        "max_input_tokens",
        "max_output_tokens",
        "supports_fast_mode",
        "provider_specific_entry",
    ];
    let modes = [
        "chat",
        "responses",
        "embedding",
        "image_generation",
        "audio_transcription",
        "audio_speech",
        "rerank",
        "moderation",
    ];
    for (model, entry) in &table {
        let rates =
            tollgate::policy::cost::rates_from_json(entry, tollgate::policy::cost::Belief::Usual);
        assert!(rates.is_ok(), "{model}: {rates:?}");
        let fields = entry.as_object().unwrap();
        let other = fields.keys().find(|name| {
            !facts.contains(&name.as_str())
                && !["cost", "pricing"].iter().any(|word| name.contains(word))
        });
        assert_eq!(other, None, "{model}");
        assert!(modes.contains(&fields["mode"].as_str().unwrap()), "{model}");
        assert!(!model.contains('/'), "{model}: by the name that its vendor's own interface takes");
    }
    for vendor in ["anthropic", "openai", "gemini"] {
        assert!(table.values().any(|entry| entry["litellm_provider"] == vendor), "{vendor}");
    }
}
