//! The hosts of AWS that serve models: the region, and the name of the service that requests are
//! signed for.

/// Ends of the names of AWS's hosts.
const DOMAINS: [&str; 3] = [".amazonaws.com", ".amazonaws.com.cn", ".api.aws"];

/// The part of a host's name before the region, the service of signatures, and whether it serves
/// `InvokeModel`.
const SERVICES: [(&str, &str, bool); 5] = [
    ("bedrock-runtime", "bedrock", true),
    ("bedrock-mantle", "bedrock-mantle", false),
    ("aws-external-anthropic", "aws-external-anthropic", false),
    ("bedrock-agent-runtime", "bedrock", false),
    ("bedrock", "bedrock", false),
];

/// What the name of a host says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AwsHost<'a> {
    /// Such as `us-east-1`.
    pub region: &'a str,
    /// As it is part of signatures.
    pub service: &'static str,
    /// Whether it serves `InvokeModel`.
    pub is_runtime: bool,
}

impl<'a> AwsHost<'a> {
    /// `None` for any other host. Endpoints with FIPS and those within a virtual private cloud
    /// (`vpce-….bedrock-runtime.REGION.vpce.amazonaws.com`) are known too.
    pub fn of(host: &'a str) -> Option<Self> {
        let host = DOMAINS.iter().find_map(|domain| host.strip_suffix(domain))?;
        let mut labels = host.split('.');
        let (service, is_runtime) = labels.find_map(|label| {
            let name = label.strip_suffix("-fips").unwrap_or(label);
            let row = SERVICES.iter().find(|(known, ..)| *known == name)?;
            Some((row.1, row.2))
        })?;
        let region = labels.next().filter(|region| !region.is_empty())?;
        Some(Self { region, service, is_runtime })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn region_and_service_are_those_of_the_host() {
        for (host, found) in [
            ("bedrock-runtime.us-east-1.amazonaws.com", Some(("us-east-1", "bedrock", true))),
            (
                "bedrock-runtime-fips.us-gov-west-1.amazonaws.com",
                Some(("us-gov-west-1", "bedrock", true)),
            ),
            (
                "vpce-0a-b.bedrock-runtime.eu-west-1.vpce.amazonaws.com",
                Some(("eu-west-1", "bedrock", true)),
            ),
            ("bedrock-mantle.eu-west-1.api.aws", Some(("eu-west-1", "bedrock-mantle", false))),
            (
                "aws-external-anthropic.us-west-2.api.aws",
                Some(("us-west-2", "aws-external-anthropic", false)),
            ),
            (
                "bedrock-agent-runtime.cn-north-1.amazonaws.com.cn",
                Some(("cn-north-1", "bedrock", false)),
            ),
            ("bedrock-runtime.amazonaws.com", None),
            ("sts.us-east-1.amazonaws.com", None),
            ("bedrock-runtime.us-east-1.example.org", None),
            ("127.0.0.1", None),
        ] {
            let host = AwsHost::of(host);
            assert_eq!(host.map(|host| (host.region, host.service, host.is_runtime)), found);
        }
    }
}
