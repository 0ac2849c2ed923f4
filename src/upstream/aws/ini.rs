//! Reads AWS' files of profiles: sections with settings.

use std::collections::BTreeMap;

/// The settings of each section, by the section's name.
pub(super) type Sections = BTreeMap<String, BTreeMap<String, String>>;

/// Adds the sections of a file. A setting that is there already stays. Indented lines belong to the
/// setting before them, and are not read.
pub(super) fn read(text: &str, into: &mut Sections) {
    let mut section: Option<String> = None;
    for line in text.lines() {
        let is_nested = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || is_nested || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            let name = name.split(']').next().unwrap_or_default();
            let name = name.strip_prefix("profile ").unwrap_or(name).trim().to_owned();
            into.entry(name.clone()).or_default();
            section = Some(name);
        } else if let (Some(name), Some((setting, value))) = (&section, line.split_once('=')) {
            // A comment follows a space.
            let value = value.split(" #").next().unwrap_or_default();
            let value = value.split(" ;").next().unwrap_or_default().trim();
            let settings = into.entry(name.clone()).or_default();
            settings.entry(setting.trim().to_ascii_lowercase()).or_insert_with(|| value.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_of_both_files_are_one() {
        let mut sections = Sections::new();
        read("[default]\naws_access_key_id = A\n# no\n[other]\nx=1 # one\n", &mut sections);
        read(
            "[default]\nregion=r\naws_access_key_id=B\ns3 =\n  x = 2\n[profile other]\ny= 2\n\
             [sso-session s]\nsso_region = eu\nstray\n",
            &mut sections,
        );
        let setting = |section: &str, name: &str| {
            sections.get(section).and_then(|one| one.get(name)).map(String::as_str)
        };
        assert_eq!(setting("default", "aws_access_key_id"), Some("A"));
        assert_eq!(setting("default", "region"), Some("r"));
        assert_eq!(setting("default", "x"), None);
        assert_eq!((setting("other", "x"), setting("other", "y")), (Some("1"), Some("2")));
        assert_eq!(setting("sso-session s", "sso_region"), Some("eu"));
    }
}
