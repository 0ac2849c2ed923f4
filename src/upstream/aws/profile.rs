//! Profiles of AWS' files: their keys, roles with a chain of source profiles, web identity, single
//! sign-on.

use std::path::PathBuf;

use super::ini::{self, Sections};
use super::sso::SsoSettings;
use super::{AwsKeys, Environment};
use crate::domain::secret::Secret;
use crate::upstream::tokens::read_file;

/// Profiles that one may be built on.
const LONGEST_CHAIN: usize = 8;

/// A role to assume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AssumedRole {
    pub arn: String,
    pub external_id: Option<String>,
    pub session_name: Option<String>,
}

/// The first keys of a profile.
#[derive(Debug)]
pub(super) enum Base {
    Keys(AwsKeys),
    /// The role, and the file of the token.
    WebIdentity(AssumedRole, String),
    Sso(SsoSettings),
    Environment,
    Container,
    Instance,
}

/// How the keys of a profile are made.
#[derive(Debug)]
pub(super) struct KeyPlan {
    pub name: String,
    pub base: Base,
    /// Assumed in this order.
    pub roles: Vec<AssumedRole>,
}

/// The profiles of the two files.
pub(super) struct ProfileFiles(Sections);

/// A path in the home directory.
pub(super) fn at_home(environment: &Environment, path: &str) -> Option<PathBuf> {
    let home = environment("HOME").filter(|home| !home.is_empty())?;
    Some(PathBuf::from(home).join(path))
}

impl ProfileFiles {
    /// Reads both files; one that is not there has no profiles.
    pub(super) async fn read(environment: &Environment) -> Self {
        let mut sections = Sections::new();
        for (variable, path) in [
            ("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"),
            ("AWS_CONFIG_FILE", ".aws/config"),
        ] {
            let named = environment(variable).map(PathBuf::from);
            let Some(path) = named.or_else(|| at_home(environment, path)) else { continue };
            if let Ok(text) = read_file(&path.to_string_lossy()).await {
                ini::read(&text, &mut sections);
            }
        }
        Self(sections)
    }

    fn name(profile: Option<&str>, environment: &Environment) -> String {
        let named = profile.map(str::to_owned).or_else(|| environment("AWS_PROFILE"));
        named.unwrap_or_else(|| "default".to_owned())
    }

    /// Whether there is this profile; `None` is the environment's.
    pub(super) fn has(&self, profile: Option<&str>, environment: &Environment) -> bool {
        self.0.contains_key(&Self::name(profile, environment))
    }

    /// # Errors
    /// The profile is not there, or not complete.
    pub(super) fn plan(
        &self,
        profile: Option<&str>,
        environment: &Environment,
    ) -> Result<KeyPlan, String> {
        let first = Self::name(profile, environment);
        let (mut name, mut roles) = (first.clone(), Vec::new());
        for _ in 0..LONGEST_CHAIN {
            let section = self.0.get(&name);
            let section = section.ok_or_else(|| format!("there is no profile “{name}”"))?;
            let setting = |of: &str| section.get(of).filter(|value| !value.is_empty()).cloned();
            let role = setting("role_arn").map(|arn| AssumedRole {
                arn,
                external_id: setting("external_id"),
                session_name: setting("role_session_name"),
            });
            let Some(role) = role else {
                let base = self.base(&name, setting)?;
                roles.reverse();
                return Ok(KeyPlan { name: first, base, roles });
            };
            if let Some(file) = setting("web_identity_token_file") {
                roles.reverse();
                return Ok(KeyPlan { name: first, base: Base::WebIdentity(role, file), roles });
            }
            roles.push(role);
            let base = match (setting("source_profile"), setting("credential_source").as_deref()) {
                // A profile may be its own source: then its keys are meant.
                (Some(source), None) if source == name => Some(self.base(&name, setting)?),
                (Some(source), None) => {
                    name = source;
                    None
                }
                (None, Some("Environment")) => Some(Base::Environment),
                (None, Some("EcsContainer")) => Some(Base::Container),
                (None, Some("Ec2InstanceMetadata")) => Some(Base::Instance),
                _ => {
                    return Err(format!(
                        "the profile “{name}” needs source_profile or credential_source"
                    ));
                }
            };
            if let Some(base) = base {
                roles.reverse();
                return Ok(KeyPlan { name: first, base, roles });
            }
        }
        Err(format!("the profile “{first}” has too many source profiles, or a circle of them"))
    }

    fn base(&self, name: &str, setting: impl Fn(&str) -> Option<String>) -> Result<Base, String> {
        if let (Some(id), Some(secret)) =
            (setting("aws_access_key_id"), setting("aws_secret_access_key"))
        {
            let token = setting("aws_session_token").map(Secret::new);
            let secret = Secret::new(secret);
            return Ok(Base::Keys(AwsKeys { id, secret, token, expires_at: None }));
        }
        let Some(account) = setting("sso_account_id") else {
            let why = match setting("credential_process") {
                Some(_) => "runs a program (credential_process), which the gateway does not",
                None => "has no keys",
            };
            return Err(format!("the profile “{name}” {why}"));
        };
        let session = setting("sso_session");
        let shared = session.as_ref().and_then(|name| self.0.get(&format!("sso-session {name}")));
        let either =
            |of: &str| setting(of).or_else(|| shared.and_then(|section| section.get(of)).cloned());
        let wanted =
            |of: &str| either(of).ok_or_else(|| format!("the profile “{name}” needs {of}"));
        let start_url = wanted("sso_start_url")?;
        Ok(Base::Sso(SsoSettings {
            cached_as: session.unwrap_or(start_url),
            region: wanted("sso_region")?,
            account,
            role: wanted("sso_role_name")?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn plan(text: &str, profile: &str) -> Result<String, String> {
        let mut sections = Sections::new();
        ini::read(text, &mut sections);
        let environment: Environment = Arc::new(|_| None);
        let plan = ProfileFiles(sections).plan(Some(profile), &environment)?;
        let base = match plan.base {
            Base::Keys(keys) => keys.id,
            Base::WebIdentity(role, file) => format!("{} {file}", role.arn),
            Base::Sso(sso) => {
                format!("{} {} {} {}", sso.cached_as, sso.region, sso.account, sso.role)
            }
            Base::Environment => "environment".to_owned(),
            Base::Container => "container".to_owned(),
            Base::Instance => "instance".to_owned(),
        };
        let roles = plan.roles.into_iter().map(|role| role.arn);
        Ok([base].into_iter().chain(roles).collect::<Vec<_>>().join(" → "))
    }

    const KEYS: &str = "aws_access_key_id = ID\naws_secret_access_key = S\n";

    #[test]
    fn a_profile_is_keys_and_the_roles_that_follow() {
        let text = format!(
            "[a]\n{KEYS}[profile b]\nrole_arn = B\nsource_profile = a\n\
             [profile c]\nrole_arn = C\nsource_profile = b\n\
             [profile own]\nrole_arn = O\nsource_profile = own\n{KEYS}\
             [profile env]\nrole_arn = E\ncredential_source = Environment\n\
             [profile ec2]\nrole_arn = E\ncredential_source = Ec2InstanceMetadata\n\
             [profile ecs]\nrole_arn = E\ncredential_source = EcsContainer\n\
             [profile web]\nrole_arn = W\nweb_identity_token_file = /f\n\
             [profile old]\nsso_start_url = u\nsso_region = r\nsso_account_id = 1\nsso_role_name = n\n\
             [profile new]\nsso_session = s\nsso_account_id = 1\nsso_role_name = n\n\
             [sso-session s]\nsso_start_url = u\nsso_region = r\n"
        );
        for (profile, made) in [
            ("a", "ID"),
            ("b", "ID → B"),
            ("c", "ID → B → C"),
            ("own", "ID → O"),
            ("env", "environment → E"),
            ("ec2", "instance → E"),
            ("ecs", "container → E"),
            ("web", "W /f"),
            ("old", "u r 1 n"),
            ("new", "s r 1 n"),
        ] {
            assert_eq!(plan(&text, profile), Ok(made.to_owned()), "{profile}");
        }
    }

    #[test]
    fn an_incomplete_profile_says_what_it_lacks() {
        let text = "[x]\nrole_arn = X\nsource_profile = y\n[y]\nrole_arn = Y\nsource_profile = x\n\
                    [lone]\nrole_arn = L\n[empty]\n[run]\ncredential_process = /bin/x\n\
                    [sso]\nsso_account_id = 1\n";
        for (profile, why) in [
            ("none", "there is no profile “none”"),
            ("x", "the profile “x” has too many source profiles, or a circle of them"),
            ("lone", "the profile “lone” needs source_profile or credential_source"),
            ("empty", "the profile “empty” has no keys"),
            ("sso", "the profile “sso” needs sso_start_url"),
            (
                "run",
                "the profile “run” runs a program (credential_process), which the gateway does not",
            ),
        ] {
            assert_eq!(plan(text, profile), Err(why.to_owned()));
        }
    }
}
