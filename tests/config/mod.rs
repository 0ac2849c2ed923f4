//! Configuration from outside: the documented file, precedence, every problem at once, reload,
//! secrets.

mod documented;
mod every_setting;
mod meaning;
mod mistakes;
mod prices;
mod secrets;

use std::collections::HashMap;

use tollgate::config::{self, Config, Problems};

fn load(yaml: &str, env: &[(&str, &str)]) -> Result<Config, Problems> {
    let env: HashMap<&str, &str> = env.iter().copied().collect();
    config::load_str(yaml, "test.yaml", &|name| env.get(name).map(|text| (*text).to_owned()))
}

/// The paths and texts of all problems.
fn problems(yaml: &str, env: &[(&str, &str)]) -> Vec<(String, String)> {
    let problems = load(yaml, env).expect_err("should have been refused");
    problems.0.iter().map(|problem| (problem.path.clone(), problem.to_string())).collect()
}
