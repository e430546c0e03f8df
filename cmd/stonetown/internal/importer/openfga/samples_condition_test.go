package openfga

// conditionSamples restate the published sample stores about conditions.
var conditionSamples = []sample{
	{
		name: "temporal access",
		files: folder("store.fga.yaml", `model: |
  model
    schema 1.1

  type user

  type document
    relations
      define viewer: [user, user with in_time]

  condition in_time(granted: timestamp, lasts: duration, now: timestamp) {
    now < granted + lasts
  }

tuples:
  - user: user:bob
    relation: viewer
    object: document:1
  - user: user:ann
    relation: viewer
    object: document:1
    condition:
      name: in_time
      context:
        granted: 2023-01-01T00:00:00Z
        lasts: 1h
tests:
  - check:
      - user: user:ann
        object: document:1
        context: {now: "2023-01-01T00:10:00Z"}
        assertions: {viewer: true}
      - user: user:ann
        object: document:1
        context: {now: 2023-01-01T02:00:00Z}
        assertions: {viewer: false}
    list_users:
      - object: document:1
        user_filter: [{type: user}]
        context: {now: "2023-01-01T00:00:01Z"}
        assertions:
          viewer: {users: [user:ann, user:bob]}
`),
		types: `
document
.viewer [user]
?in_time[{granted timestamp} {lasts duration} {now timestamp}] now < granted + lasts
`,
		relations: `
document:1#viewer@user:bob
document:1#viewer@user:ann if in_time {"granted":"2023-01-01T00:00:00Z","lasts":"1h"}
`,
		report: `widened store.fga.yaml:9: any tuple of document#viewer may stand on any condition of document, or on none`,
		assertions: `
32: may user:ann viewer document:1? [allowed] given map[now:2023-01-01T00:10:00Z]
36: may user:ann viewer document:1? [denied] given map[now:2023-01-01T02:00:00Z]
42: which user may viewer document:1? [ann bob] given map[now:2023-01-01T00:00:01Z]
`,
	},
	{
		name: "access by address",
		files: folder("store.fga.yaml", `model: |
  model
    schema 1.1
  type user
  type organization
    relations
      define member: [user]
      define address_policy: [organization#member with in-network]
  type document
    relations
      define organization: [organization]
      define viewer: [user]
      define can_view: viewer and address_policy from organization
  condition in-network(user_ip: ipaddress, cidr: string) {
    user_ip.in_cidr(cidr)
  }
tuples:
  - user: organization:acme#member
    relation: address_policy
    object: organization:acme
    condition: {name: in-network, context: {cidr: 192.168.0.0/24}}
  - {user: organization:acme, relation: organization, object: document:1}
  - {user: user:ann, relation: member, object: organization:acme}
  - {user: user:ann, relation: viewer, object: document:1}
tests:
  - check:
      - user: user:ann
        object: document:1
        context: &inside {user_ip: 192.168.0.1}
        assertions: {can_view: true}
      - user: user:ann
        object: document:1
        context: {user_ip: 192.168.1.1}
        assertions: {can_view: false}
    list_objects:
      - {user: user:ann, type: document, context: *inside, assertions: {can_view: [document:1]}}
`),
		types: `
organization
.member [user]
.address_policy [organization#member]
?in_network[{cidr string} {user_ip ipaddress}] user_ip.in_cidr(cidr)
document
.organization [organization]
.viewer [user]
.can_view (viewer & organization->address_policy)
`,
		relations: `
organization:acme#address_policy@organization:acme#member if in_network {"cidr":"192.168.0.0/24"}
document:1#organization@organization:acme
organization:acme#member@user:ann
document:1#viewer@user:ann
`,
		report: `
renamed store.fga.yaml:14: condition "in-network" is called "in_network"
widened store.fga.yaml:8: any tuple of organization#address_policy may stand on any condition of organization, or on none
`,
		assertions: `
30: may user:ann can_view document:1? [allowed] given map[user_ip:192.168.0.1]
34: may user:ann can_view document:1? [denied] given map[user_ip:192.168.1.1]
36: which document may user:ann can_view? [1] given map[user_ip:192.168.0.1]
`,
	},
	{
		name: "types of parameters",
		files: folder("store.fga.yaml", `model: |
  model
    schema 1.1
  type user
  type plan
    relations
      define subscriber: [user with limits, user with named]
  condition limits(used: int, limit: uint, ratio: double, on: bool, tags: list<string>, prices: map<double>) {
    on && used < int(limit) && ratio > 0.5 && "a" in tags && prices["a"] >= 1.5
  }
  condition named(name: string) {
    // A comment and a "quote (".
    name.startsWith("x") # more
  }
tuples:
  - user: user:ann
    relation: subscriber
    object: plan:basic
    condition:
      name: limits
      context: {limit: 0x10, ratio: 1, tags: [a, b], prices: {a: 1.5e0}}
tests:
  - name: with a tuple of its own
    tuples:
      - {user: user:bob, relation: subscriber, object: plan:basic, condition: {name: named, context: {name: xyz}}}
    list_objects:
      - {user: user:ann, type: plan, context: {used: 15, on: true}, assertions: {subscriber: [plan:basic]}}
      - {user: user:ann, type: plan, context: {used: 16, on: true}, assertions: {subscriber: []}}
      - {user: user:bob, type: plan, assertions: {subscriber: [plan:basic]}}
`),
		types: `
plan
.subscriber [user]
?limits[{limit uint} {on bool} {prices map<double>} {ratio double} {tags list<string>} {used int}] on && used < int(limit) && ratio > 0.5 && "a" in tags && prices["a"] >= 1.5
?named[{name string}] name.startsWith("x")
`,
		relations: `plan:basic#subscriber@user:ann if limits {"limit":16,"prices":{"a":1.5},"ratio":1,"tags":["a","b"]}`,
		report:    `widened store.fga.yaml:7: any tuple of plan#subscriber may stand on any condition of plan, or on none`,
		assertions: `
27: which plan may user:ann subscriber? [basic] given map[on:true used:15] with [plan:basic#subscriber@user:bob if named {"name":"xyz"}]
28: which plan may user:ann subscriber? [] given map[on:true used:16] with [plan:basic#subscriber@user:bob if named {"name":"xyz"}]
29: which plan may user:bob subscriber? [basic] with [plan:basic#subscriber@user:bob if named {"name":"xyz"}]
`,
	},
}
