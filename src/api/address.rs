//! Parses the address on which the HTTP server listens.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const PORT: u16 = 4001;

pub const DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT);

/// Parses an address as people type it, for example `4001`, `localhost:4001`, `127.0.0.1` or `[::1]:4001`. An empty text
/// means [`DEFAULT`]. Returns `None` if the text is not an address.
pub fn read_address(text: &str) -> Option<SocketAddr> {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let port =
        |text: &str| text.bytes().all(|it| it.is_ascii_digit()).then(|| text.parse::<u16>().ok()).flatten();
    if text.is_empty() {
        return Some((loopback, PORT).into());
    }
    let local = text.strip_prefix("localhost").and_then(|it| match it.strip_prefix(':') {
        Some(it) => port(it),
        None => it.is_empty().then_some(PORT),
    });
    let bare = || text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
    let local = local.or_else(|| port(text)).map(|it| (loopback, it).into());
    local.or_else(|| text.parse().ok()).or_else(|| bare().map(|it| (it, PORT).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_type_them() {
        for (text, expected) in [
            ("", Some("127.0.0.1:4001")),
            ("4002", Some("127.0.0.1:4002")),
            ("0", Some("127.0.0.1:0")),
            ("localhost", Some("127.0.0.1:4001")),
            ("localhost:7", Some("127.0.0.1:7")),
            ("127.0.0.1:7", Some("127.0.0.1:7")),
            ("0.0.0.0:7", Some("0.0.0.0:7")),
            ("10.0.0.7", Some("10.0.0.7:4001")),
            ("[::1]:7", Some("[::1]:7")),
            ("::1", Some("[::1]:4001")),
            ("[::1]", Some("[::1]:4001")),
            ("example.org:7", None),
            ("localhost:x", None),
            ("70000", None),
            ("-1", None),
        ] {
            assert_eq!(read_address(text).map(|it| it.to_string()).as_deref(), expected, "{text}");
        }
    }
}
