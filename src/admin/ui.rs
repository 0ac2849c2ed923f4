//! The web UI: serves the files of `npm run build` in `admin/dist` from inside the binary.
//!
//! A path that is not a file is a view of the single-page application and gets its `index.html`.
//! Names with a hash (below `assets/`) never change and may be cached without limit; everything
//! else is revalidated each time. Most files are in the binary in two compressed forms only (`.br`,
//! `.gz`): whoever accepts neither gets them decompressed. A debug build reads the folder at run
//! time. Without a build, a page explains how to make one; the API works nevertheless.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read as _;
use std::sync::LazyLock;

use axum::body::{Body, Bytes};
use axum::http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header,
};
use flate2::read::GzDecoder;
use parking_lot::Mutex;
use rust_embed::{EmbeddedFile, RustEmbed};

use super::made;

#[derive(RustEmbed)]
#[folder = "admin/dist"]
#[allow_missing = true]
struct Files;

const INDEX: &str = "index.html";
const UNBUILT: &str = "<!doctype html><html lang=\"en\"><meta \
                       charset=\"utf-8\"><title>tollgate</title><h1>The web UI is not in this \
                       build</h1><p>The gateway and its administration API work. To have the web \
                       UI too, build it and then the gateway:</p><pre>cd admin\nnpm ci\nnpm run \
                       build\ncd ..\ncargo build --release</pre><p>or let <code>make run</code> do \
                       both.</p></html>\n";

/// The file or the view at a path outside `/api/`; `None` for other methods than GET and HEAD.
pub(super) fn serve(request: &Request<Body>) -> Option<Response<Body>> {
    let path = request.uri().path();
    let reading = request.method() == Method::GET || request.method() == Method::HEAD;
    if !reading || path == "/api" || path.starts_with("/api/") {
        return None;
    }
    let name = path.trim_start_matches('/');
    if let Some(file) = find(name) {
        return Some(answer(name, file, request.headers()));
    }
    // A view's address has no extension; a path with one is a missing file, and a page in its place
    // would only confuse.
    let last = name.rsplit('/').next().unwrap_or_default();
    if name.starts_with("assets/") || last.contains('.') {
        return Some(page(
            StatusCode::NOT_FOUND,
            "text/plain; charset=utf-8",
            "there is no such file\n",
        ));
    }
    Some(match find(INDEX) {
        Some(index) => answer(INDEX, index, request.headers()),
        None => unbuilt(),
    })
}

/// Whether this build contains the file.
pub(super) fn has(name: &str) -> bool {
    find(name).is_some()
}

/// The file, or its compressed twin if the build kept only that.
fn find(name: &str) -> Option<EmbeddedFile> {
    Files::get(name).or_else(|| Files::get(&format!("{name}.gz")))
}

/// The page of a build without the web UI.
pub(super) fn unbuilt() -> Response<Body> {
    page(StatusCode::OK, "text/html; charset=utf-8", UNBUILT)
}

fn page(status: StatusCode, kind: &'static str, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn answer(name: &str, file: EmbeddedFile, asked: &HeaderMap) -> Response<Body> {
    let tag = etag(&file);
    let fixed = name.starts_with("assets/");
    let kept = if fixed { "public, max-age=31536000, immutable" } else { "no-cache" };
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(kept));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    insert(headers, header::ETAG, &tag);
    let kind = mime_guess::from_path(name).first_or_octet_stream();
    let text = kind.type_() == mime_guess::mime::TEXT;
    insert(
        headers,
        header::CONTENT_TYPE,
        &if text { format!("{kind}; charset=utf-8") } else { kind.to_string() },
    );
    let (coding, bytes) = match twin(name, asked) {
        Some((coding, twin)) => (Some(coding), shared(twin)),
        None => (None, plain(name)),
    };
    if let Some(coding) = coding {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    *response.body_mut() = Body::from(bytes);
    made::unless_known(response, asked)
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Not copied: many clients that read slowly share the program's own bytes.
fn shared(file: EmbeddedFile) -> Bytes {
    match file.data {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => bytes.into(),
    }
}

/// A file without compression. Made from its twin once: the largest has four megabytes.
fn plain(name: &str) -> Bytes {
    static MADE: LazyLock<Mutex<HashMap<String, Bytes>>> = LazyLock::new(Mutex::default);
    if let Some(file) = Files::get(name) {
        return shared(file);
    }
    let mut made = MADE.lock();
    if let Some(bytes) = made.get(name) {
        return bytes.clone();
    }
    let mut bytes = Vec::new();
    if let Some(twin) = Files::get(&format!("{name}.gz"))
        && let Err(error) = GzDecoder::new(&*twin.data).read_to_end(&mut bytes)
    {
        tracing::error!(name, %error, "a file of the web UI cannot be decompressed");
    }
    made.entry(name.to_owned()).or_insert_with(|| bytes.into()).clone()
}

/// The compressed twin that the browser accepts.
fn twin(name: &str, asked: &HeaderMap) -> Option<(&'static str, EmbeddedFile)> {
    let takes =
        asked.get(header::ACCEPT_ENCODING).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let named = |coding: &str| {
        takes.split(',').any(|part| {
            let mut words = part.split(';').map(str::trim);
            words.next() == Some(coding) && !words.any(|word| word == "q=0")
        })
    };
    for (coding, ending) in [("br", "br"), ("gzip", "gz")] {
        if named(coding)
            && let Some(twin) = Files::get(&format!("{name}.{ending}"))
        {
            return Some((coding, twin));
        }
    }
    None
}

/// Identifies the content. Twins share it: `Vary` names the difference.
fn etag(file: &EmbeddedFile) -> String {
    let hash = file.metadata.sha256_hash();
    format!("W/\"{}\"", hex::encode(&hash[..12]))
}
