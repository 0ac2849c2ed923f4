//! The fixed texts of the decision chain.

use std::sync::{Arc, LazyLock};

/// A text that is made once and shared by every decision.
pub(super) type Shared = LazyLock<Arc<str>>;

/// Declares each text, and the list of all.
macro_rules! reasons {
    ($($name:ident = $text:literal;)*) => {
        $(pub(super) static $name: Shared = LazyLock::new(|| $text.into());)*

        /// All fixed texts. The request log stores their positions: add new ones at the end, and
        /// never remove or move one.
        pub const REASONS: &[&str] = &[$($text),*];
    };
}

reasons! {
    OTHER_GROUP = "none of its groups is among the key's";
    DISABLED = "disabled by an administrator";
    SWITCHED_OFF = "disabled by the gateway: its probes failed";
    NO_MODEL = "the model is neither in its list nor redirected";
    NO_PRICE = "the model has no price at it, and unpriced models are refused";
    NO_FORMAT = "requests of this format cannot be converted to its own";
    LIMIT = "one of its spending limits is reached";
    SESSION_CAP = "it serves as many sessions as it may";
    SESSION = "this session is already served by it";
    ONLY = "the only one that can serve this request";
    PRIORITY = "lowest priority number";
    DRAW = "drawn by weight among its equals";
    NEXT_PRIORITY = "its priority number is higher";
    NEXT_FORMAT = "needs conversion, others of its priority do not";
    NEXT_DRAW = "not drawn, stands in";
    STANDS_IN = "stands in for the session's provider";
    FAILED_LAST = "it failed the last request of this session";
    NO_CREDENTIAL = "its stored credential cannot be opened: enter it again";
    NO_NAMED_MODEL = "another model that the request names is not in its list";
    NO_FEATURE = "it does not allow a feature that the request uses";
    CHEAPEST = "this request costs least at it, of those of its priority";
    FASTEST = "the fastest of its priority";
    EXPLORED = "drawn by weight, to measure how fast it is";
    COSTS_MORE = "this request costs more at it";
    IS_SLOWER = "it took longer to the first byte, or was not measured yet";
    CREDENTIALS_OFF = "each of its keys is disabled";
    NEARLY_USED_UP = "the windows of its account are used above its quota guard: others first";
    NO_OWN = "it takes the client's own credential, and the request has none beside the gateway's key";
    OWN_LATER = "it would be asked again later, without the client's own credential";
}
