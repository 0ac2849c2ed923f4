//! Decisions as pure functions: cost, windows, selection, breakers, classification, key rules. Takes the time as an argument.
