//! Names that stand for models, as the groups of the key say: which models a request is selected
//! for, and when the cheaper ones take their place.
//!
//! A request for a name that is not one passes here with one look at the settings.

use std::sync::Arc;

use super::identify::Identified;
use super::intake::Inbound;
use super::screen::Screened;
use crate::domain::alias::ModelAlias;
use crate::domain::key::Key;
use crate::domain::provider::Provider;
use crate::domain::record::DecisionStep;
use crate::domain::user::User;
use crate::limits::{Amount, HolderUsage};
use crate::proxy::caller::Principal;
use crate::proxy::context::RequestContext;
use crate::proxy::reply::refusal::Refusal;

/// What the client's name for a model stands for.
pub struct Choices {
    /// The client's name.
    pub name: Arc<str>,
    /// The models, the first choice first; never empty.
    pub models: Vec<Arc<str>>,
    /// The cheaper ones, while the others are used.
    cheaper: Vec<Arc<str>>,
    /// These are the cheaper ones.
    is_degraded: bool,
}

impl Choices {
    /// Whether there are models that take the place of these.
    const fn has_cheaper(&self) -> bool {
        !self.cheaper.is_empty()
    }

    fn cheaper(self) -> Self {
        Self { models: self.cheaper, cheaper: Vec::new(), is_degraded: true, ..self }
    }
}

impl Inbound {
    /// Whether its alias has cheaper models, which are not used yet.
    pub(in crate::proxy) fn has_cheaper(&self) -> bool {
        self.choices.as_ref().is_some_and(|choices| choices.has_cheaper())
    }

    /// The model as the body or the path names it.
    pub fn named_model(&self) -> &Arc<str> {
        self.choices.as_ref().map_or(&self.model, |choices| &choices.name)
    }

    /// The models that the client's name stands for; empty if it is that of a model.
    pub fn choices(&self) -> &[Arc<str>] {
        self.choices.as_ref().map_or(&[], |choices| &choices.models)
    }

    /// The model that a provider is asked for, before its redirects.
    pub fn model_at(&self, provider: &Provider) -> &Arc<str> {
        let own = self.choices().iter().find(|model| provider.supports_model(model));
        own.unwrap_or(&self.model)
    }

    fn choose(&mut self, ctx: &mut RequestContext, choices: Choices, why: &str) {
        let names = choices.models.join(", ");
        let detail = format!("{} stands for {names}{why}", choices.name);
        ctx.decide_itself(DecisionStep::Candidate, detail, None);
        self.model = Arc::clone(&choices.models[0]);
        if let Some(body) = ctx.record.as_mut().and_then(|record| record.body.as_mut()) {
            body.model = Arc::clone(&self.model);
            body.is_degraded = Some(choices.is_degraded);
        }
        self.choices = Some(Box::new(choices));
    }
}

/// Looks the request's model up in the names of the key's groups. A list of models of the key or of
/// its user allows what a name stands for if it has the name; else the models that it has remain.
///
/// # Errors
/// When the lists allow none of the models.
pub(super) async fn resolve(
    ctx: &mut RequestContext,
    identified: &Identified,
    inbound: &mut Inbound,
) -> Result<(), Refusal> {
    let settings = &identified.snapshot.settings;
    let Principal::Key { key, user } = &identified.caller else { return Ok(()) };
    let is_held = inbound.ask.as_ref().is_some_and(|ask| ask.endpoint.is_held());
    if settings.group_features.is_empty() || is_held {
        return Ok(());
    }
    let Some(alias) = settings.alias_of(&key.provider_group, &inbound.model) else {
        return Ok(());
    };
    let choices = allowed(alias, key, user).ok_or_else(|| Refusal::ModelNotAllowed {
        model: inbound.model.to_string(),
        member: None,
    })?;
    let used = match choices.has_cheaper() {
        true => nearly_spent(ctx, key, user, alias.degrade_at).await,
        false => None,
    };
    match used {
        Some(used) => inbound.choose(ctx, choices.cheaper(), &used),
        None => inbound.choose(ctx, choices, ""),
    }
    Ok(())
}

/// The request again, for the cheaper models of its alias, if a spending limit has refused it.
pub(in crate::proxy) fn cheaper(
    ctx: &mut RequestContext,
    inbound: Option<Arc<Inbound>>,
    refusal: &Refusal,
) -> Option<Screened> {
    let Refusal::Limit(denied) = refusal else { return None };
    if !matches!(denied.limit, Amount::Money(_)) {
        return None;
    }
    let mut inbound = Arc::into_inner(inbound?)?;
    let choices = inbound.choices.take()?;
    inbound.choose(ctx, choices.cheaper(), &format!(", because {denied}"));
    Some(Screened(Arc::new(inbound)))
}

/// The models of an alias that the lists of key and user allow; `None` if there are none.
fn allowed(alias: &ModelAlias, key: &Key, user: &User) -> Option<Choices> {
    let those = |models| {
        let lists: [&[String]; 2] = [&key.allowed_models, &user.allowed_models];
        alias.allowed(models, lists).map(|model| Arc::from(model.as_str())).collect()
    };
    let (models, cheaper) = (those(&alias.models[..]), those(&alias.degrade_models[..]));
    let name = alias.name.as_str().into();
    let choices = Choices { name, models, cheaper, is_degraded: false };
    match (choices.models.is_empty(), choices.has_cheaper()) {
        (false, _) => Some(choices),
        (true, true) => Some(choices.cheaper()),
        (true, false) => None,
    }
}

/// The first of the caller's spending limits of which so many percent are spent, for the log.
async fn nearly_spent(
    ctx: &RequestContext,
    key: &Key,
    user: &User,
    percent: u32,
) -> Option<String> {
    let (counters, now) = (&ctx.gateway.node.counters, ctx.now());
    let used = |usage: &HolderUsage, whose| {
        usage.money.each().into_iter().find_map(|(period, money)| {
            let limit = money.limit?;
            let [most, spent] = [limit, money.current].map(|m| u128::try_from(m.0).unwrap_or(0));
            let is_reached = spent * 100 >= most * u128::from(percent);
            let (spent, period) = (money.current, period.as_str());
            let why = || {
                format!(
                    ", because {spent} of {limit} USD of the {whose}'s {period} limit are spent"
                )
            };
            is_reached.then(why)
        })
    };
    let of_key = used(&counters.key_usage(key, now).await, "key");
    match of_key {
        None => used(&counters.user_usage(user, now).await, "user"),
        found => found,
    }
}
