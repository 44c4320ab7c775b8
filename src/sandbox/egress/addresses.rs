//! Which addresses a module may be connected to: those of the public internet, and others that its policy lists.

use std::{net::IpAddr, sync::LazyLock};

use ipnet::IpNet;

use crate::model::EgressPolicy;

/// Why an address is not connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocked {
    /// What the address is, in words.
    pub(super) what: &'static str,
    /// Whether the server must allow it besides the policy.
    pub(super) guarded: bool,
}

/// An address that the policy may list.
const LISTED: bool = false;
/// One that the server must allow besides: what is there trusts whoever reaches it, or it stands for another address.
const GUARDED: bool = true;

/// What is not the public internet; the first that contains an address counts.
const SPECIAL: &[(&str, bool, &str)] = &[
    ("169.254.0.0/16", GUARDED, "link-local, with the metadata of clouds"),
    ("100.100.100.200/32", GUARDED, "the metadata of a cloud"),
    ("168.63.129.16/32", GUARDED, "the metadata of a cloud"),
    ("192.0.0.192/32", GUARDED, "the metadata of a cloud"),
    ("fd00:ec2::254/128", GUARDED, "the metadata of a cloud"),
    ("fd20:ce::254/128", GUARDED, "the metadata of a cloud"),
    ("0.0.0.0/8", GUARDED, "unspecified"),
    ("127.0.0.0/8", GUARDED, "loopback"),
    ("10.0.0.0/8", LISTED, "private"),
    ("100.64.0.0/10", LISTED, "shared by a provider's customers"),
    ("172.16.0.0/12", LISTED, "private"),
    ("192.0.0.0/24", LISTED, "reserved"),
    ("192.0.2.0/24", LISTED, "for documentation"),
    ("192.88.99.0/24", LISTED, "a 6to4 relay"),
    ("192.168.0.0/16", LISTED, "private"),
    ("198.18.0.0/15", LISTED, "for benchmarks"),
    ("198.51.100.0/24", LISTED, "for documentation"),
    ("203.0.113.0/24", LISTED, "for documentation"),
    ("224.0.0.0/4", LISTED, "multicast"),
    ("255.255.255.255/32", LISTED, "broadcast"),
    ("240.0.0.0/4", LISTED, "reserved"),
    ("::1/128", GUARDED, "loopback"),
    ("::/128", GUARDED, "unspecified"),
    ("::ffff:0:0/96", GUARDED, "an IPv4 address written as IPv6"),
    ("::/96", GUARDED, "an IPv4 address written as IPv6"),
    ("::ffff:0:0:0/96", GUARDED, "an IPv4 address translated to IPv6"),
    ("64:ff9b::/96", GUARDED, "an IPv4 address behind NAT64"),
    ("64:ff9b:1::/48", GUARDED, "an IPv4 address behind NAT64"),
    ("2001::/32", GUARDED, "an IPv4 address behind Teredo"),
    ("2002::/16", GUARDED, "an IPv4 address behind 6to4"),
    ("fe80::/10", GUARDED, "link-local"),
    ("2001::/23", LISTED, "reserved"),
    ("2001:db8::/32", LISTED, "for documentation"),
    ("3fff::/20", LISTED, "for documentation"),
    ("fc00::/7", LISTED, "private"),
    ("fec0::/10", LISTED, "private"),
    ("ff00::/8", LISTED, "multicast"),
];

static NETWORKS: LazyLock<Vec<(IpNet, Blocked)>> = LazyLock::new(|| {
    let network = |text: &str| text.parse().expect("the table has networks");
    SPECIAL.iter().map(|(text, guarded, what)| (network(text), Blocked { what, guarded: *guarded })).collect()
});

/// Returns why a module with `policy` is not connected to `address`; none when it may be. `own` is whether this server
/// listens there, `allow_private` whether it allows guarded addresses.
pub(super) fn blocked(address: IpAddr, own: bool, policy: &EgressPolicy, allow_private: bool) -> Option<Blocked> {
    let special = special(address).or(own.then_some(Blocked { what: "this server itself", guarded: false }))?;
    let listed = policy.private.iter().any(|network| network.contains(&address));
    let allowed = listed && (allow_private || !special.guarded);
    (!allowed).then_some(special)
}

fn special(address: IpAddr) -> Option<Blocked> {
    if let Some((_, blocked)) = NETWORKS.iter().find(|(network, _)| network.contains(&address)) {
        return Some(*blocked);
    }
    match address {
        // Only 2000::/3 is given out.
        IpAddr::V6(address) if address.segments()[0] >> 13 != 1 => Some(Blocked { what: "reserved", guarded: false }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(private: &[&str]) -> EgressPolicy {
        EgressPolicy { allow: Vec::new(), private: private.iter().map(|text| text.parse().unwrap()).collect() }
    }

    #[test]
    fn only_the_public_internet_is_open() {
        for (address, open) in [
            ("1.1.1.1", true),
            ("9.255.255.255", true),
            ("11.0.0.0", true),
            ("100.63.255.255", true),
            ("100.128.0.0", true),
            ("172.15.255.255", true),
            ("172.32.0.0", true),
            ("192.0.1.0", true),
            ("198.17.255.255", true),
            ("198.20.0.0", true),
            ("223.255.255.255", true),
            ("2606:4700:4700::1111", true),
            ("2a00:1450::1", true),
            ("2001:4860::1", true),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("10.0.0.1", false),
            ("100.64.0.1", false),
            ("100.100.100.200", false),
            ("127.0.0.1", false),
            ("127.255.255.254", false),
            ("168.63.129.16", false),
            ("169.254.169.254", false),
            ("172.16.0.1", false),
            ("172.31.255.255", false),
            ("192.0.0.192", false),
            ("192.0.2.1", false),
            ("192.88.99.1", false),
            ("192.168.1.1", false),
            ("198.18.0.1", false),
            ("198.19.255.255", false),
            ("198.51.100.1", false),
            ("203.0.113.1", false),
            ("224.0.0.1", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("::", false),
            ("::1", false),
            ("::127.0.0.1", false),
            ("::ffff:1.1.1.1", false),
            ("::ffff:169.254.169.254", false),
            ("::ffff:0:127.0.0.1", false),
            ("64:ff9b::7f00:1", false),
            ("64:ff9b:1::1", false),
            ("100::1", false),
            ("2001::1", false),
            ("2001:db8::1", false),
            ("2002:7f00:1::", false),
            ("3fff::1", false),
            ("4000::1", false),
            ("5f00::1", false),
            ("fc00::1", false),
            ("fd00:ec2::254", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
        ] {
            let found = blocked(address.parse().unwrap(), false, &policy(&[]), true);
            assert_eq!(found.is_none(), open, "C066 {address}: {found:?}");
        }
    }

    #[test]
    fn a_policy_opens_private_networks_and_the_server_the_rest() {
        for (address, private, allow_private, open) in [
            ("10.1.2.3", "10.0.0.0/8", false, true),
            ("10.1.2.3", "10.2.0.0/16", true, false),
            ("127.0.0.1", "127.0.0.0/8", false, false),
            ("127.0.0.1", "127.0.0.0/8", true, true),
            ("127.0.0.1", "0.0.0.0/0", false, false),
            ("::1", "::/0", false, false),
            ("::ffff:127.0.0.1", "::/0", false, false),
            ("64:ff9b::7f00:1", "::/0", false, false),
            ("169.254.169.254", "0.0.0.0/0", false, false),
            ("fd00:ec2::254", "fc00::/7", false, false),
            ("fd00::1", "fc00::/7", false, true),
        ] {
            let found = blocked(address.parse().unwrap(), false, &policy(&[private]), allow_private);
            assert_eq!(found.is_none(), open, "C066 {address} with {private}");
        }
    }

    #[test]
    fn the_server_itself_is_closed_where_it_is_not_listed() {
        let address = "93.184.216.34".parse().unwrap();
        assert!(blocked(address, true, &policy(&[]), true).is_some());
        assert!(blocked(address, true, &policy(&["93.184.216.34/32"]), false).is_none());
    }
}
