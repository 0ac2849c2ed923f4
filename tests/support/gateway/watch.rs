//! What a gateway shows of itself: readiness, metrics, memory and its log.

use std::cell::Cell;
use std::time::Duration;

use serde_json::Value;

use super::Gateway;
use crate::support::wait;

impl Gateway {
    /// `/readyz`: whether the gateway is ready, and its parts.
    pub async fn readiness(&self) -> (bool, Value) {
        let answer = self.client.get(format!("{}/readyz", self.metrics)).send().await.unwrap();
        let ready = answer.status() == 200;
        (ready, answer.json::<Value>().await.unwrap()["parts"].clone())
    }

    /// Waits until `/readyz` meets a condition.
    pub async fn readiness_shows(&self, wanted: impl Fn(bool, &Value) -> bool) {
        let last = Cell::default();
        wait::until(
            || format!("still {:?}:\n{}", last.take(), self.log()),
            async || {
                let (ready, parts) = self.readiness().await;
                let is_so = wanted(ready, &parts);
                last.set((ready, parts));
                is_so
            },
        )
        .await;
    }

    /// The text of `/metrics`.
    pub async fn scrape(&self) -> String {
        let scrape = self.client.get(format!("{}/metrics", self.metrics)).send();
        scrape.await.unwrap().text().await.unwrap()
    }

    /// The sum of a metric's samples.
    pub async fn metric(&self, name: &str) -> f64 {
        let text = self.scrape().await;
        let of =
            |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']));
        let values: Vec<f64> = text
            .lines()
            .filter(of)
            .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
            .collect();
        assert!(!values.is_empty(), "no metric {name}");
        values.iter().sum()
    }

    /// Waits until a metric's sum meets a condition.
    pub async fn metric_shows(&self, name: &str, wanted: impl Fn(f64) -> bool) {
        let last = Cell::default();
        wait::until(
            || format!("{name} is {} still:\n{}", last.get(), self.log()),
            async || {
                last.set(self.metric(name).await);
                wanted(last.get())
            },
        )
        .await;
    }

    /// A figure of the process in MiB: `VmRSS` (its present memory), `VmHWM` (its peak).
    pub fn memory_mib(&self, what: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with(what)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    }

    /// The complete lines of the log so far. A line appears some milliseconds after it is logged:
    /// [`Gateway::log_shows`] waits for it.
    pub fn log(&self) -> String {
        let mut log = std::fs::read_to_string(self.log_path()).unwrap_or_default();
        // What follows the last end of a line is still being written.
        log.truncate(log.rfind('\n').map_or(0, |end| end + 1));
        log
    }

    /// Waits until the log contains a text; returns the log.
    pub async fn log_shows(&self, wanted: &str) -> String {
        wait::found(
            || format!("the log does not say {wanted:?}:\n{}", self.log()),
            async || Some(self.log()).filter(|log| log.contains(wanted)),
        )
        .await
    }

    /// The longest time of a request in the gateway itself, by the access lines in the log so far:
    /// its total time without its provider's.
    pub fn longest_overhead(&self) -> Duration {
        let log = self.log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let longest = lines.filter_map(|line| line["overhead_us"].as_u64()).max();
        Duration::from_micros(longest.expect("access lines"))
    }
}
