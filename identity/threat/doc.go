// Package threat has the threat feeds of a tenant: lists of addresses and of mail domains from which
// sign-ins and sign-ups are recorded or refused.
//
//	address      IP addresses and networks, of IPv4 and IPv6
//	mail_domain  domains of e-mail addresses, each with its subdomains
//
// The entries of a feed are fetched from a URL again and again, or uploaded. A line that is no entry is
// counted and left out. A list that cannot be fetched, that is too long or that has no entry changes
// nothing: the last good one stays.
//
// # Storage
//
// A [List] is sorted text, an entry on each line. It is stored compressed, in rows of a limited size,
// under the version of the feed that it belongs to. A change of what a tenant's feeds match increases
// the revision of the tenant ([Config.Changed]). The caller of [Feeds.Match] reads that revision with
// the settings that it needs anyway, so a tenant without feeds costs no statement, and every process
// uses the newest lists from the next sign-in on. Lists in memory are bounded in total by [MaxMemory].
package threat
