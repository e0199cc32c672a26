//! The time in commits and reflogs that git-frites writes.
use gix::date::Time;
use jiff::Timestamp;

use crate::ui::local_time;

/// The current time here.
pub(super) fn now() -> Time {
    match local_time::zone() {
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
