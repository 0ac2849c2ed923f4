//! The API's description as pages for reading and trying: Scalar's, and the classic one of Swagger
//! UI.
//!
//! Both render `openapi.json` in the browser with scripts that are part of the web UI's files
//! (`admin/scripts/reference.mjs`). So each has its own content security policy: scripts, styles
//! and requests only of this origin, and no code from text. Scalar may also add style elements to
//! the page; nothing else is allowed that the web UI's policy refuses.

use std::fmt::Write;

use axum::body::Body as Stream;
use axum::http::{HeaderValue, Response, header};
use schemars::JsonSchema;

use crate::admin::call::Call;
use crate::admin::envelope::ApiError;
use crate::admin::made::Made;
use crate::admin::operation::{Operation, Permission};
use crate::admin::ui;

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation::whole::<Page, _>("actions/scalar", Permission::Open, "text/html", scalar)
            .doc("This document as a page to read and to try operations on."),
        Operation::whole::<Page, _>("actions/docs", Permission::Open, "text/html", docs)
            .doc("This document as a page to read and to try operations on, in the classic form."),
    ]
}

/// A page for a browser.
#[derive(JsonSchema)]
#[schemars(transparent)]
#[expect(dead_code, reason = "describes the page in the document")]
struct Page(String);

/// What a page loads, and which styles it may have.
struct PageParts {
    sheets: &'static [&'static str],
    scripts: &'static [&'static str],
    styles: &'static str,
}

const SCALAR: PageParts = PageParts {
    sheets: &[],
    scripts: &["scalar-start.js", "scalar.js"],
    styles: "'self' 'unsafe-inline'",
};

const DOCS: PageParts = PageParts {
    sheets: &["swagger-ui.css", "docs.css"],
    scripts: &["docs-start.js", "swagger-ui-bundle.js"],
    styles: "'self'",
};

async fn scalar(_: Call) -> Result<Response<Stream>, ApiError> {
    page(&SCALAR)
}

async fn docs(_: Call) -> Result<Response<Stream>, ApiError> {
    page(&DOCS)
}

fn page(parts: &PageParts) -> Result<Response<Stream>, ApiError> {
    if !parts.scripts.iter().all(|name| ui::has(&address(name))) {
        return Ok(ui::unbuilt());
    }
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src {}; connect-src 'self'; img-src 'self' \
         data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        parts.styles
    );
    let mut response = Made::new(html(parts), "text/html; charset=utf-8")?.response();
    response.headers_mut().insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_str(&policy).map_err(ApiError::internal)?,
    );
    Ok(response)
}

/// Where a file is among those of the web UI.
fn address(name: &str) -> String {
    format!("reference/{name}")
}

fn html(parts: &PageParts) -> String {
    let mut page = String::from(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" \
         content=\"light dark\"><title>tollgate administration API</title><link rel=\"icon\" \
         href=\"/icon.svg\" type=\"image/svg+xml\">",
    );
    // Writing into a string cannot fail.
    for name in parts.sheets {
        let _ = write!(page, "<link rel=\"stylesheet\" href=\"/{}\">", address(name));
    }
    for name in parts.scripts {
        let _ = write!(page, "<script src=\"/{}\"></script>", address(name));
    }
    page.push_str(
        "</head><body><div id=\"reference\"></div><noscript>This page needs JavaScript; the \
         document itself is <a href=\"openapi.json\">openapi.json</a>.</noscript></body></html>\n",
    );
    page
}
