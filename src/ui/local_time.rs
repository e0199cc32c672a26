//! Times in the user's zone.
use std::fs;
use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The time zone of this machine; `None` if `TZ` is set, or if `/etc/localtime` cannot be read.
static ZONE: LazyLock<Option<TimeZone>> = LazyLock::new(|| {
    if std::env::var_os("TZ").is_some() {
        return None;
    }
    TimeZone::tzif("Local", &fs::read("/etc/localtime").ok()?).ok()
});

/// The time zone of this machine, from `/etc/localtime`. `None` if its name has to be searched
/// among all zones of the system, which is slow.
pub fn zone() -> Option<&'static TimeZone> {
    ZONE.as_ref()
}

/// A time in the user's zone: `2026-11-20 14:30:00`.
pub fn text(at: Timestamp) -> String {
    let zone = zone().cloned().unwrap_or_else(TimeZone::system);
    at.to_zoned(zone).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_as_by_the_name_of_the_zone() {
        for second in [0, 951_782_400, 1_763_800_000, 1_784_000_000] {
            let at = Timestamp::from_second(second).expect("in range");
            let named = at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string();
            assert_eq!(text(at), named);
        }
    }
}
