package openfga

// accessSamples restate the published sample stores about documents, devices,
// channels and plans.
var accessSamples = []sample{
	{
		name: "google drive",
		files: folder("model.fga", `model
  schema 1.1
type user
type group
  relations
    define member: [user]
type folder
  relations
    define owner: [user]
    define parent: [folder]
    define viewer: [user, user:*, group#member] or owner or viewer from parent
    define can_create_file: owner
type doc
  relations
    define owner: [user]
    define parent: [folder]
    define viewer: [user, user:*, group#member]
    define can_read: viewer or owner or viewer from parent
    define can_share: owner or owner from parent
`, "store.fga.yaml", `name: drive
model_file: ./model.fga
tuples:
  - {user: user:ann, relation: member, object: group:sales}
  - {user: group:sales#member, relation: viewer, object: folder:plans}
  - {user: user:bob, relation: owner, object: folder:plans}
  - {user: folder:plans, relation: parent, object: doc:roadmap}
  - user: user:*
    relation: viewer
    object: doc:handbook
tests:
  - name: who reads what
    check:
      - user: user:ann
        object: doc:roadmap
        assertions: {can_read: true, can_share: false}
    list_objects:
      - user: user:bob
        type: doc
        assertions:
          can_read: [doc:roadmap, doc:handbook]
          can_share: [doc:roadmap]
    list_users:
      - object: doc:handbook
        user_filter: [{type: user}]
        assertions:
          viewer: {users: ["user:*"]}
      - object: folder:plans
        user_filter: [{type: group, relation: member}]
        assertions:
          viewer: {users: ["group:sales#member"]}
`),
		types: `
folder
.owner [user]
.parent [folder]
.viewer this owner parent->viewer [user user:* group#member]
.can_create_file owner
doc
.owner [user]
.parent [folder]
.viewer [user user:* group#member]
.can_read viewer owner parent->viewer
.can_share owner parent->owner
`,
		relations: `
group:sales#member@user:ann
folder:plans#viewer@group:sales#member
folder:plans#owner@user:bob
doc:roadmap#parent@folder:plans
doc:handbook#viewer@user:*
`,
		report: `widened model.fga:6: members of a group may be users, applications and members of groups`,
		assertions: `
16: may user:ann can_read doc:roadmap? [allowed]
16: may user:ann can_share doc:roadmap? [denied]
21: which doc may user:bob can_read? [handbook roadmap]
22: which doc may user:bob can_share? [roadmap]
27: which user may viewer doc:handbook? [*]
31: which group#member may viewer folder:plans? [sales]
`,
	},
	{
		name: "iot",
		files: folder("store.fga.yaml", `model: |
  model
    schema 1.1
  type user
  type device_group
    relations
      define it_admin: [user]
      define security_guard: [user]
  type device
    relations
      define it_admin: [user, device_group#it_admin]
      define security_guard: [user, device_group#security_guard]
      define can_rename: it_admin
      define can_watch: it_admin or security_guard
tuples:
  - {user: user:ann, relation: security_guard, object: device:1}
  - {user: user:bob, relation: it_admin, object: device_group:west}
  - {user: device_group:west#it_admin, relation: it_admin, object: device:1}
tests:
  - check:
      - users: [user:ann, user:bob]
        objects: [device:2, device:3]
        assertions: {can_rename: false}
    tuple_files: []
  - check:
      - user: user:bob
        object: device:1
        assertions: {can_rename: true, can_watch: yes}
`),
		types: `
device_group
.it_admin [user]
.security_guard [user]
device
.it_admin [user device_group#it_admin]
.security_guard [user device_group#security_guard]
.can_rename it_admin
.can_watch it_admin security_guard
`,
		relations: `
device:1#security_guard@user:ann
device_group:west#it_admin@user:bob
device:1#it_admin@device_group:west#it_admin
`,
		assertions: `
23: may user:ann can_rename device:2? [denied]
23: may user:ann can_rename device:3? [denied]
23: may user:bob can_rename device:2? [denied]
23: may user:bob can_rename device:3? [denied]
28: may user:bob can_rename device:1? [allowed]
28: may user:bob can_watch device:1? [allowed]
`,
	},
	{
		name: "slack",
		files: folder("store.fga.yaml", `model: |
  model
    schema 1.1
  type user
  type workspace
    relations
      define legacy_admin: [user]
      define channels_admin: [user] or legacy_admin
      define member: [user] or legacy_admin or channels_admin
      define guest: [user]
  type channel
    relations
      define parent_workspace: [workspace]
      define writer: [user, workspace#member]
      define commenter: [user, workspace#member] or writer
tuple_file: tuples.csv
tests:
  - list_users:
      - object: channel:campaign
        user_filter: [{type: user}]
        assertions:
          commenter: {users: [user:amy, user:dan, user:eve]}
          writer: {users: [user:amy, user:eve]}
`, "tuples.csv", `user_type,user_id,user_relation,relation,object_type,object_id
user,amy,,legacy_admin,workspace,west
workspace,west,,parent_workspace,channel,campaign
workspace,west,member,writer,channel,campaign
user,eve,,writer,channel,campaign
user,dan,,commenter,channel,campaign
`),
		types: `
workspace
.legacy_admin [user]
.channels_admin this legacy_admin [user]
.member this legacy_admin channels_admin [user]
.guest [user]
channel
.parent_workspace [workspace]
.writer [user workspace#member]
.commenter this writer [user workspace#member]
`,
		relations: `
workspace:west#legacy_admin@user:amy
channel:campaign#parent_workspace@workspace:west
channel:campaign#writer@workspace:west#member
channel:campaign#writer@user:eve
channel:campaign#commenter@user:dan
`,
		assertions: `
22: which user may commenter channel:campaign? [amy dan eve]
23: which user may writer channel:campaign? [amy eve]
`,
	},
	{
		name: "entitlements",
		files: folder("models/model.json", `{
  "schema_version": "1.1",
  "type_definitions": [
    {"type": "user"},
    {"type": "organization", "relations": {"member": {"this": {}}},
     "metadata": {"relations": {"member": {"directly_related_user_types": [{"type": "user"}]}}}},
    {"type": "plan",
     "relations": {
       "subscriber": {"this": {}},
       "subscriber_member": {"tupleToUserset": {"tupleset": {"relation": "subscriber"}, "computedUserset": {"relation": "member"}}}},
     "metadata": {"relations": {"subscriber": {"directly_related_user_types": [{"type": "organization"}]}, "subscriber_member": {}}}},
    {"type": "feature",
     "relations": {
       "can_access": {"tupleToUserset": {"tupleset": {"relation": "associated_plan"}, "computedUserset": {"relation": "subscriber_member"}}},
       "associated_plan": {"this": {}}},
     "metadata": {"relations": {"associated_plan": {"directly_related_user_types": [{"type": "plan"}]}}}}
  ]
}`, "store.fga.yaml", `model_file: models/model.json
tuple_file: tuples.jsonl
tests:
  - check:
      - user: user:ann
        object: feature:sso
        assertions: {can_access: true}
      - user: user:bob
        object: feature:sso
        assertions: {can_access: false}
`, "tuples.jsonl", `{"user": "user:ann", "relation": "member", "object": "organization:alpha"}

{"user": "organization:alpha", "relation": "subscriber", "object": "plan:team"}
{"user": "plan:team", "relation": "associated_plan", "object": "feature:sso", "condition": null}
`),
		types: `
organization
.member [user]
plan
.subscriber [organization]
.subscriber_member subscriber->member
feature
.associated_plan [plan]
.can_access associated_plan->subscriber_member
`,
		relations: `
organization:alpha#member@user:ann
plan:team#subscriber@organization:alpha
feature:sso#associated_plan@plan:team
`,
		assertions: `
7: may user:ann can_access feature:sso? [allowed]
10: may user:bob can_access feature:sso? [denied]
`,
	},
}
