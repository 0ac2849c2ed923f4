//! What the machine says of its own identity at a cloud: variables that the clouds' own tools set,
//! under their names. They are not settings, and only credentials that ask for them use them.

use super::process_env;

/// The identity of the machine.
#[derive(Debug, Default)]
pub struct MachineIdentity {
    /// `GCE_METADATA_HOST`: `host[:port]` of Google's metadata service.
    pub gce_metadata_host: Option<String>,
    /// `AZURE_TENANT_ID`.
    pub azure_tenant_id: Option<String>,
    /// `AZURE_CLIENT_ID`.
    pub azure_client_id: Option<String>,
    /// `AZURE_FEDERATED_TOKEN_FILE`.
    pub azure_token_file: Option<String>,
    /// `AZURE_AUTHORITY_HOST`.
    pub azure_authority_host: Option<String>,
    /// `AZURE_POD_IDENTITY_AUTHORITY_HOST`: the address of Azure's metadata service.
    pub azure_metadata_host: Option<String>,
    /// `IDENTITY_ENDPOINT`: the address that issues tokens to an app at Azure.
    pub identity_endpoint: Option<String>,
    /// `IDENTITY_HEADER`: the secret for that address.
    pub identity_header: Option<String>,
}

/// The identity of this machine; an empty variable counts as unset.
#[must_use]
pub fn machine_identity() -> MachineIdentity {
    let set = |name: &str| process_env(name).filter(|value| !value.trim().is_empty());
    MachineIdentity {
        gce_metadata_host: set("GCE_METADATA_HOST"),
        azure_tenant_id: set("AZURE_TENANT_ID"),
        azure_client_id: set("AZURE_CLIENT_ID"),
        azure_token_file: set("AZURE_FEDERATED_TOKEN_FILE"),
        azure_authority_host: set("AZURE_AUTHORITY_HOST"),
        azure_metadata_host: set("AZURE_POD_IDENTITY_AUTHORITY_HOST"),
        identity_endpoint: set("IDENTITY_ENDPOINT"),
        identity_header: set("IDENTITY_HEADER"),
    }
}
