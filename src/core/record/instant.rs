//! Instants in JSON files: `2026-01-31T12:00:00Z`.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

pub fn serialize<S: Serializer>(instant: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&instant.to_rfc3339_opts(SecondsFormat::Secs, true))
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DateTime<Utc>, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}
