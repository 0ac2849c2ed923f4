//! The table of features.

use super::*;

#[test]
fn rows_are_in_the_order_of_the_features_and_their_names_are_read() {
    for (at, row) in FEATURES.iter().enumerate() {
        assert_eq!(row.feature as usize, at, "{}", row.name);
        assert_eq!(Feature::parse(row.name), Some(row.feature));
        assert!(row.doc.ends_with('.'), "{}", row.name);
    }
}

#[test]
fn a_fee_is_that_of_the_type_or_member() {
    for (feature, word, fee) in [
        (Feature::WebSearch, "web_search_20260318", Fee::Rate(CostKind::WebSearch)),
        (Feature::WebSearch, "X_SEARCH", Fee::Unknown),
        (Feature::CodeInterpreter, "code_interpreter", Fee::Container(TOOLS)),
        (Feature::CodeInterpreter, "code_execution_20260521", Fee::Unknown),
        (Feature::CodeInterpreter, "codeExecution", Fee::Free),
        (Feature::FileSearch, "file_search", Fee::Rate(CostKind::FileSearch)),
        (Feature::FileSearch, "fileSearch", Fee::Free),
        (Feature::Speed, "speed", Fee::Free),
    ] {
        assert_eq!(feature.fee(word), fee, "{word}");
    }
}

#[test]
fn a_tool_is_known_by_its_type() {
    for (kind, expected) in [
        ("function", None),
        ("bash_20250124", None),
        ("tool_search_tool_bm25_20251119", None),
        ("web_search_20260318", Some(Feature::WebSearch)),
        ("WEB_SEARCH_preview", Some(Feature::WebSearch)),
        ("computer_use_preview", Some(Feature::Computer)),
        ("code_execution_20260521", Some(Feature::CodeInterpreter)),
        ("advisor_20260301", Some(Feature::Adviser)),
        ("something_new", Some(Feature::OtherTools)),
        ("", Some(Feature::OtherTools)),
    ] {
        assert_eq!(Feature::of_tool_type(kind), expected, "{kind}");
    }
}
