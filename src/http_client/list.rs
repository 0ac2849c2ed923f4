//! Fetches the public price list, or reads it from a file, within bounds of time and size.
//!
//! The address is configuration, so it is trusted; the content is not, and the caller validates it.

use std::time::Duration;

use tokio::io::AsyncReadExt as _;

const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Why there is no price list; the text can be shown to an administrator.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// A `file` address could not be read.
    #[error("the file cannot be read: {0}")]
    File(#[from] std::io::Error),
    /// The server could not be reached, or the exchange broke off.
    #[error("it could not be fetched: {0}")]
    Exchange(String),
    /// The server answered with this HTTP status, which is not a success.
    #[error("the answer was {0}")]
    Status(u16),
    /// There are more than this many bytes.
    #[error("it is larger than {0} bytes")]
    TooLarge(usize),
    /// It was not complete after this time.
    #[error("it did not come within {0:?}")]
    TooSlow(Duration),
    /// Its bytes are not valid UTF-8.
    #[error("it is not UTF-8 text")]
    NotText,
}

/// The text at an `http`, `https` or `file` address, of at most `max` bytes.
///
/// # Errors
/// [`ListError`], whose text can be shown to an administrator.
pub async fn text(address: &str, max: usize) -> Result<String, ListError> {
    let reading = async {
        match address.strip_prefix("file://") {
            Some(path) => from_file(path, max).await,
            None => from_server(address, max).await,
        }
    };
    let bytes = tokio::time::timeout(TIME_LIMIT, reading)
        .await
        .map_err(|_| ListError::TooSlow(TIME_LIMIT))??;
    String::from_utf8(bytes).map_err(|_| ListError::NotText)
}

async fn from_file(path: &str, max: usize) -> Result<Vec<u8>, ListError> {
    let file = tokio::fs::File::open(path).await?;
    let mut bytes = Vec::new();
    file.take(max as u64 + 1).read_to_end(&mut bytes).await?;
    if bytes.len() > max { Err(ListError::TooLarge(max)) } else { Ok(bytes) }
}

async fn from_server(address: &str, max: usize) -> Result<Vec<u8>, ListError> {
    let failed = |error| ListError::Exchange(super::describe(error));
    let client = super::builder(TIME_LIMIT).build().map_err(failed)?;
    let mut answer = client.get(address).send().await.map_err(failed)?;
    if !answer.status().is_success() {
        return Err(ListError::Status(answer.status().as_u16()));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(failed)? {
        if bytes.len() + chunk.len() > max {
            return Err(ListError::TooLarge(max));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}
