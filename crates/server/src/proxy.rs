//! The real address of a request that came through a proxy.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use axum::http::HeaderMap;

/// The proxies whose forwarded addresses are trusted. Other clients could invent them.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Vec<Network>);

/// An address, or all addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    fn contains(self, address: IpAddr) -> bool {
        let same = |a: u128, b: u128, width: u8| {
            // A shift by the whole width would be undefined.
            let ignored = u32::from(width - self.bits);
            a.checked_shr(ignored) == b.checked_shr(ignored)
        };
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => same(a.to_bits().into(), b.to_bits().into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => same(a.to_bits(), b.to_bits(), 128),
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not an address (10.0.0.1) or network (10.0.0.0/8)");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.trim().parse().map_err(|_| wrong())?;
        let address = address.to_canonical();
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => bits.trim().parse().map_err(|_| wrong())?,
            None => width,
        };
        if bits > width {
            return Err(wrong());
        }
        Ok(Self { address, bits })
    }
}

impl TrustedProxies {
    /// Addresses and networks, such as `127.0.0.1` and `10.0.0.0/8`.
    pub fn parse(list: &[String]) -> Result<Self, String> {
        list.iter()
            .map(|entry| entry.parse())
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// The client's address. Each proxy appends the address that it was called from to `X-Forwarded-For`; entries
    /// before the first address that is not a trusted proxy may be invented.
    pub(crate) fn client(&self, peer: SocketAddr, headers: &HeaderMap) -> SocketAddr {
        let mut client = peer.ip();
        let lines: Vec<&str> = headers
            .get_all("x-forwarded-for")
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        for hop in lines.iter().rev().flat_map(|line| line.rsplit(',')) {
            if !self.contains(client) {
                break;
            }
            match parse_hop(hop.trim()) {
                Some(address) => client = address,
                None => break,
            }
        }
        if client == peer.ip() {
            peer
        } else {
            // The port is unknown.
            SocketAddr::new(client, 0)
        }
    }
}

/// Whether the browser's own connection is encrypted, according to a trusted proxy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct IsHttps(pub(crate) bool);

impl TrustedProxies {
    /// Each proxy appends to `X-Forwarded-Proto`; the first entry is what the browser used.
    pub(crate) fn is_https(&self, peer: IpAddr, headers: &HeaderMap) -> IsHttps {
        let scheme = headers
            .get("x-forwarded-proto")
            .and_then(|value| value.to_str().ok());
        let first = scheme.and_then(|schemes| schemes.split(',').next());
        let is_https = first.is_some_and(|scheme| scheme.trim().eq_ignore_ascii_case("https"));
        IsHttps(self.contains(peer) && is_https)
    }
}

/// An address; some proxies add its port.
fn parse_hop(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    bare.parse()
        .ok()
        .or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, forwarded: &[&str]) -> String {
        let list = ["127.0.0.1", "10.0.0.0/8", "fd00::/8"].map(str::to_owned);
        let proxies = TrustedProxies::parse(&list).unwrap();
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append("x-forwarded-for", line.parse().unwrap());
        }
        let peer = SocketAddr::new(peer.parse().unwrap(), 5);
        proxies.client(peer, &headers).ip().to_string()
    }

    #[test]
    fn a_trusted_proxy_is_believed_and_nobody_else() {
        assert_eq!(client("127.0.0.1", &[]), "127.0.0.1");
        assert_eq!(client("127.0.0.1", &["203.0.113.7"]), "203.0.113.7");
        assert_eq!(client("192.0.2.1", &["203.0.113.7"]), "192.0.2.1");
        // Through several proxies; an invented address stands before the client's own.
        assert_eq!(
            client("127.0.0.1", &["1.1.1.1, 203.0.113.7, 10.2.3.4"]),
            "203.0.113.7"
        );
        assert_eq!(
            client("127.0.0.1", &["1.1.1.1", "203.0.113.7:4711", "10.2.3.4"]),
            "203.0.113.7"
        );
        assert_eq!(client("127.0.0.1", &["[2001:db8::1]:80, fd00::2"]), "2001:db8::1");
        assert_eq!(client("127.0.0.1", &["203.0.113.7, unknown"]), "127.0.0.1");
        assert_eq!(client("::ffff:127.0.0.1", &["203.0.113.7"]), "203.0.113.7");
        assert_eq!(client("10.255.0.1", &["10.0.0.9"]), "10.0.0.9");
    }

    #[test]
    fn only_a_trusted_proxy_says_that_a_connection_is_encrypted() {
        let proxies = TrustedProxies::parse(&["127.0.0.1".to_owned()]).unwrap();
        let is_https = |peer: &str, scheme: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-proto", scheme.parse().unwrap());
            proxies.is_https(peer.parse().unwrap(), &headers).0
        };
        assert!(is_https("127.0.0.1", "https") && is_https("127.0.0.1", "HTTPS, http"));
        assert!(!is_https("127.0.0.1", "http") && !is_https("192.0.2.1", "https"));
    }

    #[test]
    fn a_network_is_an_address_or_some_bits_of_it() {
        let contains = |network: &str, address: &str| {
            let network: Network = network.parse().unwrap();
            network.contains(address.parse().unwrap())
        };
        assert!(contains("0.0.0.0/0", "203.0.113.7") && !contains("0.0.0.0/0", "::1"));
        assert!(contains("::/0", "2001:db8::1"));
        assert!(contains("192.168.1.0/24", "192.168.1.255") && !contains("192.168.1.0/24", "192.168.2.0"));
        for wrong in ["", "proxy", "10.0.0.0/33", "10.0.0.0/x", "10.0.0"] {
            let error = wrong.parse::<Network>().unwrap_err();
            assert!(error.contains("is not an address"), "{error}");
        }
    }
}
