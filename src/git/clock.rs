//! The time in commits and reflogs that git-frites writes.
use std::fs;
use std::sync::LazyLock;

use gix::date::Time;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The zone of this machine; none if `TZ` names another, or it cannot be read.
static ZONE: LazyLock<Option<TimeZone>> = LazyLock::new(|| {
    if std::env::var_os("TZ").is_some() {
        return None;
    }
    TimeZone::tzif("Local", &fs::read("/etc/localtime").ok()?).ok()
});

/// The current time here. Reads the one file of the zone: a look at the system's zones by their
/// names walks through all of them.
pub(super) fn now() -> Time {
    match &*ZONE {
        Some(zone) => {
            let now = Timestamp::now();
            Time { seconds: now.as_second(), offset: zone.to_offset(now).seconds() }
        }
        None => Time::now_local_or_utc(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_is_that_of_the_system() {
        let (first, ours, last) = (Time::now_local_or_utc(), now(), Time::now_local_or_utc());
        assert_eq!(ours.offset, first.offset);
        assert!((first.seconds..=last.seconds).contains(&ours.seconds));
    }
}
