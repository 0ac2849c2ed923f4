//! Builds frames, and sends those of one scope to all its clients.

use bytes::Bytes;
use serde::Serialize;

use super::ring::{Frames, Ring};
use crate::admin::records::live::{LiveEvent, Missed};

/// Log entries per check, once a second. More cannot be read by a person, and cost the gateway
/// time.
const LOGS_PER_LOOK: u32 = 100;

pub(super) struct Feed {
    frames: Ring,
    /// The last frame of each kind: sent to new clients, and compared with the next one.
    status: Option<Bytes>,
    overview: Option<Bytes>,
    sessions: Option<Bytes>,
    logs_left: u32,
    missed: u64,
}

impl Default for Feed {
    fn default() -> Self {
        Self {
            frames: Ring::default(),
            status: None,
            overview: None,
            sessions: None,
            logs_left: LOGS_PER_LOOK,
            missed: 0,
        }
    }
}

impl Feed {
    pub(super) fn clients(&self) -> usize {
        self.frames.clients()
    }

    pub(super) fn join(&self) -> Frames {
        self.frames.join()
    }

    /// The present frames.
    pub(super) fn latest(&self) -> Vec<Bytes> {
        [&self.status, &self.overview, &self.sessions].into_iter().flatten().cloned().collect()
    }

    pub(super) fn send(&self, frame: Bytes) {
        self.frames.send(frame);
    }

    /// Sends a log entry, unless there were too many since the last check.
    pub(super) fn send_log(&mut self, frame: Bytes) {
        match self.logs_left.checked_sub(1) {
            Some(left) => {
                self.logs_left = left;
                self.send(frame);
            }
            None => self.missed += 1,
        }
    }

    pub(super) fn missed(&mut self, count: u64) {
        self.missed += count;
    }

    /// Reports the number of omitted entries, and starts a new interval.
    pub(super) fn look(&mut self) {
        self.logs_left = LOGS_PER_LOOK;
        let count = std::mem::take(&mut self.missed);
        if count > 0 {
            self.send(frame(&LiveEvent::Missed(Missed { count })));
        }
    }

    pub(super) fn show_status(&mut self, frame: Bytes) {
        if self.status.as_ref() != Some(&frame) {
            self.status = Some(frame.clone());
            self.send(frame);
        }
    }

    pub(super) fn show_overview(&mut self, frame: Bytes) {
        if self.overview.as_ref() != Some(&frame) {
            self.overview = Some(frame.clone());
            self.send(frame);
        }
    }

    pub(super) fn show_sessions(&mut self, frame: Bytes) {
        if self.sessions.as_ref() != Some(&frame) {
            self.sessions = Some(frame.clone());
            self.send(frame);
        }
    }
}

/// An event as it is sent to clients.
pub(super) fn frame(event: &LiveEvent) -> Bytes {
    match event {
        LiveEvent::Hello(data) => write("hello", data),
        LiveEvent::Status(data) => write("status", data),
        LiveEvent::Overview(data) => write("overview", data),
        LiveEvent::Sessions(data) => write("sessions", data),
        LiveEvent::Breaker(data) => write("breaker", data),
        LiveEvent::Log(data) => write("log", data),
        LiveEvent::Configuration(data) => write("configuration", data),
        LiveEvent::Missed(data) => write("missed", data),
    }
}

/// JSON has no line breaks outside its strings, and inside they are escaped: one line holds it.
fn write<T: Serialize>(name: &str, data: &T) -> Bytes {
    let data = serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned());
    format!("event: {name}\ndata: {data}\n\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_entries_are_bounded_and_report_what_is_left_out() {
        let mut feed = Feed::default();
        let mut client = feed.join();
        for _ in 0..LOGS_PER_LOOK + 7 {
            feed.send_log(Bytes::from_static(b"log"));
        }
        assert_eq!(client.texts().len(), 100);
        feed.look();
        assert_eq!(client.texts(), ["event: missed\ndata: {\"count\":7}\n\n"]);
        feed.look();
        feed.send_log(Bytes::from_static(b"log"));
        assert_eq!(client.texts(), ["log"]);
    }

    #[test]
    fn figures_are_sent_when_they_change_and_kept_for_who_comes_later() {
        let mut feed = Feed::default();
        let mut client = feed.join();
        for text in ["a", "a", "b", "b"] {
            feed.show_overview(Bytes::from_static(text.as_bytes()));
        }
        assert_eq!(client.texts(), ["a", "b"]);
        assert_eq!(feed.latest(), ["b"]);
    }

    #[test]
    fn an_event_is_named_as_the_document_says() {
        let event = LiveEvent::Missed(Missed { count: 1 });
        let documented = serde_json::to_value(&event).unwrap();
        let written = String::from_utf8(frame(&event).to_vec()).unwrap();
        assert!(
            written.starts_with(&format!("event: {}\n", documented["event"].as_str().unwrap())),
            "{written}"
        );
    }
}
