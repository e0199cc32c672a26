//! Sizes for people.

/// A size for people: `512 B`, `3.4 MiB`.
pub fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_well() {
        let sizes = [0, 1023, 1024, 3_565_158, 5 << 30].map(size);
        assert_eq!(sizes, ["0 B", "1023 B", "1.0 KiB", "3.4 MiB", "5.0 GiB"]);
    }
}
