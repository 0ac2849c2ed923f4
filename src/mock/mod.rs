//! A scripted upstream that speaks all four wire formats, for the demo, the tests and the bench.
