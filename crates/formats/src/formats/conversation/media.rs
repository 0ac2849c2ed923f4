//! Images, documents, audio and video: data URLs, base64 in both alphabets, media types.

use std::borrow::Cow;

use super::{Text, Unsupported, json};

/// The kind of media; decides the field that it is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaKind {
    /// Media types `image/…`.
    Image,
    /// Any other media type, such as PDF or plain text.
    Document,
    /// Media types `audio/…`.
    Audio,
    /// Media types `video/…`.
    Video,
}

/// An attachment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media<'a> {
    /// What it is, by its media type or by the field that had it.
    pub kind: MediaKind,
    /// The bytes, or their address.
    pub source: MediaSource<'a>,
    /// A file name or title.
    pub name: Option<Text<'a>>,
    /// The requested level of detail of an image.
    pub detail: Option<Text<'a>>,
}

/// The source of its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaSource<'a> {
    /// Standard alphabet, padded.
    Base64 {
        /// Type and subtype without parameters, such as `image/png`.
        media_type: Text<'a>,
        /// The bytes in base64.
        data: Text<'a>,
    },
    /// An address that the provider fetches it from. The gateway does not.
    Url {
        /// The address as the client wrote it, `http://`, `https://` or `gs://`.
        url: Text<'a>,
        /// The media type, if the client gave one; see [`Media::media_type`].
        media_type: Option<Text<'a>>,
    },
}

impl MediaKind {
    /// By media type; anything but image, audio or video is a document.
    pub fn of(media_type: &str) -> Self {
        match media_type.split('/').next() {
            Some("image") => Self::Image,
            Some("audio") => Self::Audio,
            Some("video") => Self::Video,
            _ => Self::Document,
        }
    }
}

impl<'a> Media<'a> {
    /// Bytes in base64 of either alphabet.
    pub fn base64(media_type: Text<'a>, data: Text<'a>) -> Self {
        let media_type = known_type(media_type);
        Self {
            kind: MediaKind::of(&media_type),
            source: MediaSource::Base64 { media_type, data: standard_base64(data) },
            name: None,
            detail: None,
        }
    }

    /// A data URL or a web address. `kind` is the field's kind; a data URL's own type overrides it.
    ///
    /// # Errors
    /// A data URL that is not base64, or neither kind of address.
    pub fn from_url(url: Text<'a>, kind: MediaKind, field: &str) -> Result<Self, Unsupported> {
        if is_data_url(&url) {
            let (media_type, data) = split_data_url(url)
                .ok_or_else(|| Unsupported::new(field, "not a base64 data URL"))?;
            return Ok(Self::base64(media_type, data));
        }
        let url = web_address(url)
            .map_err(|_| Unsupported::new(field, "neither a data URL nor a web address"))?;
        Ok(Self {
            kind,
            source: MediaSource::Url { url, media_type: None },
            name: None,
            detail: None,
        })
    }

    /// A web address whose media type the client may have given.
    ///
    /// # Errors
    /// The address, if it is none.
    pub fn from_typed_url(url: Text<'a>, media_type: Option<Text<'a>>) -> Result<Self, Text<'a>> {
        let media_type = media_type.map(known_type);
        let kind = media_type.as_deref().map_or(MediaKind::Document, MediaKind::of);
        let source = MediaSource::Url { url: web_address(url)?, media_type };
        Ok(Self { kind, source, name: None, detail: None })
    }

    /// The media type, as given or as guessed from the address.
    pub fn media_type(&self) -> &str {
        match &self.source {
            MediaSource::Base64 { media_type, .. } => media_type,
            MediaSource::Url { media_type: Some(media_type), .. } => media_type,
            MediaSource::Url { url, .. } => guess_type(url, self.kind),
        }
    }

    /// Writes the address as a JSON string: the web address, or a data URL.
    pub fn write_url(&self, out: &mut Vec<u8>) {
        match &self.source {
            MediaSource::Url { url, .. } => json::string(out, url),
            MediaSource::Base64 { media_type, data } => {
                json::string_of(out, &["data:", media_type, ";base64,", data]);
            }
        }
    }
}

/// Whether the text is a data URL. Schemes have no case.
pub fn is_data_url(url: &str) -> bool {
    has_scheme(url, "data:")
}

fn has_scheme(url: &str, scheme: &str) -> bool {
    url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
}

/// The address with its scheme in lower case, as some services compare it; or as it was, if it is
/// none.
fn web_address(url: Text<'_>) -> Result<Text<'_>, Text<'_>> {
    let Some(scheme) = ["https://", "http://", "gs://"].into_iter().find(|s| has_scheme(&url, s))
    else {
        return Err(url);
    };
    Ok(if url.starts_with(scheme) {
        url
    } else {
        Cow::Owned(format!("{scheme}{}", &url[scheme.len()..]))
    })
}

fn split_data_url(url: Text<'_>) -> Option<(Text<'_>, Text<'_>)> {
    let comma = memchr::memchr(b',', url.as_bytes())?;
    let head = &url["data:".len()..comma];
    let (media_type, encoding) = head.rsplit_once(';')?;
    if !encoding.trim().eq_ignore_ascii_case("base64") {
        return None;
    }
    let type_end = "data:".len() + media_type.split(';').next().map_or(0, str::len);
    Some(match url {
        Cow::Borrowed(url) => {
            (Cow::Borrowed(&url["data:".len()..type_end]), Cow::Borrowed(&url[comma + 1..]))
        }
        Cow::Owned(mut url) => {
            let data = url.split_off(comma + 1);
            (Cow::Owned(url["data:".len()..type_end].to_owned()), Cow::Owned(data))
        }
    })
}

/// The spelling that every vendor accepts: in lower case, as types have no case. An invalid media
/// type would break the data URL that contains it.
fn known_type(media_type: Text<'_>) -> Text<'_> {
    let bare = media_type.split(';').next().unwrap_or_default().trim();
    let is_plain =
        bare.len() == media_type.len() && !bare.bytes().any(|byte| byte.is_ascii_uppercase());
    if !is_media_type(bare) {
        return Cow::Borrowed("application/octet-stream");
    }
    let media_type = if is_plain { media_type } else { Cow::Owned(bare.to_ascii_lowercase()) };
    match &*media_type {
        "image/jpg" | "image/pjpeg" => Cow::Borrowed("image/jpeg"),
        "image/x-png" => Cow::Borrowed("image/png"),
        _ => media_type,
    }
}

/// Type and subtype in the characters of RFC 6838, without parameters.
fn is_media_type(text: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
    };
    text.split_once('/').is_some_and(|(of, sub)| is_name(of) && is_name(sub))
}

/// Standard base64 with padding, from either alphabet, padded or not.
pub fn standard_base64(data: Text<'_>) -> Text<'_> {
    let bytes = data.as_bytes();
    let plain =
        bytes.len().is_multiple_of(4) && memchr::memchr3(b'-', b'_', b'\n', bytes).is_none();
    if plain {
        return data;
    }
    let mut text: String = data
        .chars()
        .filter(|c| !c.is_ascii_whitespace() && *c != '=')
        .map(|c| match c {
            '-' => '+',
            '_' => '/',
            other => other,
        })
        .collect();
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    Cow::Owned(text)
}

/// By the address's suffix; otherwise the usual type of its kind.
fn guess_type(url: &str, kind: MediaKind) -> &'static str {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let ending = path.rsplit('.').next().unwrap_or("").to_ascii_lowercase();
    match (ending.as_str(), kind) {
        ("png", _) => "image/png",
        ("gif", _) => "image/gif",
        ("webp", _) => "image/webp",
        ("heic", _) => "image/heic",
        ("txt", _) => "text/plain",
        ("csv", _) => "text/csv",
        ("html" | "htm", MediaKind::Document) => "text/html",
        ("wav", _) => "audio/wav",
        ("mov", _) => "video/quicktime",
        (_, MediaKind::Image) => "image/jpeg",
        (_, MediaKind::Document) => "application/pdf",
        (_, MediaKind::Audio) => "audio/mpeg",
        (_, MediaKind::Video) => "video/mp4",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_made_standard() {
        for (given, expected) in
            [("abcd", "abcd"), ("-_8", "+/8="), ("ab+/", "ab+/"), ("a-\nb", "a+b="), ("", "")]
        {
            assert_eq!(standard_base64(given.into()), expected, "{given:?}");
        }
    }

    #[test]
    fn data_urls_are_taken_apart_and_put_together() {
        let url = "data:image/jpg;name=x;base64,-_8";
        for url in [Cow::Borrowed(url), Cow::Owned(url.to_owned())] {
            let media = Media::from_url(url, MediaKind::Image, "f").unwrap();
            let mut out = Vec::new();
            media.write_url(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), r#""data:image/jpeg;base64,+/8=""#);
        }
        for bad in ["data:image/png,rawbytes", "data:nothing", "file:///etc/passwd", ""] {
            assert!(Media::from_url(bad.into(), MediaKind::Image, "f").is_err(), "{bad}");
        }
    }

    #[test]
    fn schemes_and_types_have_no_case() {
        for (given, expected) in [
            ("data:image/JPEG;base64,AAAA", "data:image/jpeg;base64,AAAA"),
            ("DATA:Image/Jpg;Name=X;BASE64,AAAA", "data:image/jpeg;base64,AAAA"),
            ("Data:IMAGE/PNG; Base64,AaAA", "data:image/png;base64,AaAA"),
            ("HTTPS://Host/A.PNG?X=Y", "https://Host/A.PNG?X=Y"),
            ("Http://h/a", "http://h/a"),
            ("GS://Bucket/a", "gs://Bucket/a"),
        ] {
            for url in [Cow::Borrowed(given), Cow::Owned(given.to_owned())] {
                let media = Media::from_url(url, MediaKind::Image, "f").unwrap();
                let mut out = Vec::new();
                media.write_url(&mut out);
                assert_eq!(String::from_utf8(out).unwrap(), format!("\"{expected}\""));
                assert_eq!(media.kind, MediaKind::Image, "{given}");
            }
        }
        let typed = Media::from_typed_url("HTTPS://h/a".into(), Some("Audio/WAV".into())).unwrap();
        assert_eq!((typed.media_type(), typed.kind), ("audio/wav", MediaKind::Audio));
        assert!(Media::from_typed_url("ftp://h/a".into(), None).is_err());
    }

    #[test]
    fn what_is_no_media_type_is_not_written_into_an_address() {
        let ok = ["image/png", "image/svg+xml", "application/vnd.ms-excel"];
        let not = [
            "",
            "image",
            "image,png",
            "image/png,x",
            "a,b;base64,b/c",
            "image/\"png",
            "image/p ng",
            "/png",
            "image/",
        ];
        for (text, kept) in
            ok.map(|text| (text, true)).into_iter().chain(not.map(|text| (text, false)))
        {
            let media = Media::base64(text.into(), "abcd".into());
            assert_eq!(
                media.media_type(),
                if kept { text } else { "application/octet-stream" },
                "{text}"
            );
            let mut url = Vec::new();
            media.write_url(&mut url);
            let url: String = serde_json::from_slice(&url).unwrap();
            assert!(Media::from_url(url.into(), MediaKind::Image, "f").is_ok(), "{text}");
        }
    }

    #[test]
    fn parameters_of_a_media_type_are_left_out() {
        let media = Media::base64("audio/pcm; rate=16000".into(), "abcd".into());
        assert_eq!((media.media_type(), media.kind), ("audio/pcm", MediaKind::Audio));
    }

    #[test]
    fn addresses_tell_their_type() {
        let media = |url: &'static str| Media::from_url(url.into(), MediaKind::Image, "f").unwrap();
        assert_eq!(media("https://x.test/a.PNG?x=1").media_type(), "image/png");
        assert_eq!(media("https://x.test/a").media_type(), "image/jpeg");
    }
}
